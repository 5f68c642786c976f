"""Style of all plots: colours, markers, dashes, labels and Axes."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from plackett.data.validation import check_prob
from plackett.model.race import Array
from plackett.optional import optional

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes


PALETTE = (
    *("#4C6FD0", "#D55E00", "#009E73", "#CC79A7", "#A8452A", "#B5399A", "#8F00FF", "#FF14F5", "#AD8F52", "#CC1F52"),
    *("#0085B8", "#5C991F", "#477052", "#A37AFF", "#855C7A", "#B87AD6", "#7A3DEB", "#D67070", "#C23DD6", "#C22900"),
    *("#5C6699", "#EB3DB8", "#FF523D", "#5C8F99", "#00993D", "#8F47B8", "#F54799", "#A35C5C", "#477029", "#7A47D6"),
)
REST = "#808080"  # colour of elements without a class
MARKERS = "osD^vP*X<>phd"
DASHES = ("-", "--", ":", "-.", (0, (7, 2)), (0, (5, 1, 1, 1, 1, 1)), (0, (1, 3)), (0, (8, 2, 2, 2)))
HATCHES = ("", "////", "..", "xxxx", "----", "||||", "\\\\\\\\", "++")
LONGEST = 34  # maximum characters of a label
NARROW = 4.0  # inches below which words are short
PART = 0.775, 0.77  # of a figure, or its part, that its only Axes have before they are laid out
KEY, LETTER, SMALL_LETTER, LINE = 0.5, 0.085, 0.072, 0.17  # inches of a handle, a letter, one of a legend, and a line
LABELLED, FURTHER = 4.5, 1.4  # heights of ticks with a label, and of a further line of it, in letters of a legend


def axes(ax: Axes | None) -> Axes:
    """Return the given Axes, or those of a new figure."""
    if ax is not None:
        return ax
    new: Axes = optional("matplotlib.pyplot", "a plot").subplots(layout="constrained")[1]
    return new


def colour(k: int) -> str:
    """Return the colour of class k in every plot; colours repeat after thirty, with other markers."""
    return PALETTE[k % len(PALETTE)]


def chain_colour(c: int, chains: int) -> tuple[float, float, float]:
    """Return a muted colour for a chain, to distinguish it from classes; all chains are equally light."""
    from matplotlib.colors import hsv_to_rgb

    light = hsv_to_rgb((c / chains, 0.4, 1.0)) ** 2.2
    red, green, blue = np.clip(0.19 * light / (light @ [0.2126, 0.7152, 0.0722]), 0, 1) ** (1 / 2.2)
    return float(red), float(green), float(blue)


def marker(k: int) -> str:
    """Return the marker of the k-th class."""
    return MARKERS[(k + k // len(PALETTE)) % len(MARKERS)]


def dash(i: int) -> str | tuple[int, tuple[int, ...]]:
    """Return the line style of the i-th curve."""
    return DASHES[i % len(DASHES)]


def of(what: str, drawn: int, total: int) -> str:
    """Return a title with the number of drawn elements; empty if all are drawn."""
    return "" if drawn == total else f"{drawn} of {total} {what}"


def size_of(ax: Axes) -> tuple[float, float]:
    """Return the width and height in inches of the figure, or of the part of it where these Axes are."""
    box, figure = ax.get_position(), ax.figure
    width, height = (size / figure.dpi for size in (figure.bbox.width, figure.bbox.height))
    return width * box.width / PART[0], height * box.height / PART[1]


def beside(ax: Axes, inches: float = 1.3) -> int:
    """Return how many letters a label on the left may have, to leave so many inches for the rest."""
    return int(np.clip((size_of(ax)[0] - inches) / LETTER, 8, LONGEST))


def across(ax: Axes, share: float = 0.46) -> int:
    """Return how many letters fit into a line of this share of the width; by default below Axes with long labels."""
    return int(np.clip(share * size_of(ax)[0] / LETTER, 12, LONGEST))


def lines_of(ax: Axes, n: int, inches: float = 0.9, least: int = 2) -> int:
    """Return how many of n lines fit, besides so many inches for the rest."""
    return max(min(n, least), min(n, int((size_of(ax)[1] - inches) / LINE)))


def columns_of(ax: Axes, names: Sequence[str]) -> int:
    """Return how many columns of a legend with these names fit below."""
    return int(np.clip(size_of(ax)[0] / (KEY + SMALL_LETTER * max(map(len, names))), 1, len(names)))


def keys_of(ax: Axes, n: int, longest: int, inches: float = 0.9) -> int:
    """Return how many of n keys of a legend fit into two fifths of the height, besides so many inches."""
    room = max(1, int(0.4 * (size_of(ax)[1] - inches) / LINE))
    return min(n, room * columns_of(ax, ["x" * longest] * n))


def below(ax: Axes, handles: Sequence[Artist]) -> None:
    """Draw a legend below the label of the horizontal axis, in as many columns as fit."""
    from matplotlib.transforms import blended_transform_factory

    names = [str(handle.get_label()) for handle in handles]
    box = ax.get_position()
    place = {
        "loc": "upper center",
        "bbox_to_anchor": (box.x0 + box.width / 2, 0),
        "bbox_transform": blended_transform_factory(ax.figure.transFigure, ax.transAxes),
        "borderaxespad": LABELLED + FURTHER * ax.get_xlabel().count("\n"),
    }
    look = {"fontsize": "small", "frameon": False, "handleheight": 1.2}
    ax.legend(handles=handles, ncols=columns_of(ax, names), **look, **place)


def wrapped(text: str, longest: int = LONGEST) -> str:
    """Break a sentence into lines that fit next to long names."""
    return "\n".join(textwrap.wrap(text, longest))


def label(text: object, longest: int = LONGEST) -> str:
    """Format a name for matplotlib: on one line, shortened in the middle, dollar signs escaped.

    A thin space precedes an initial underscore, since matplotlib hides labels that begin with one.
    """
    text = "".join(c if c.isprintable() else " " for c in str(text))
    if len(text) > longest:
        text = text[: longest // 2] + "…" + text[longest // 2 + 1 - longest :]
    return ("\u2009" if text.startswith("_") else "") + text.replace("$", r"\$")


def pair(own: object, feature: object, longest: int = LONGEST) -> str:
    """Return a class and a feature in one label."""
    return f"{label(own, longest // 3)}: {label(feature, longest - longest // 3)}"


def interval(draws: Array, prob: float) -> tuple[Array, Array]:
    """Return the equal-tailed interval over the first axis."""
    tail = (1 - check_prob(prob)) / 2
    lower, upper = np.quantile(draws, [tail, 1 - tail], axis=0)
    return lower, upper
