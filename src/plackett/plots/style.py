"""What all plots share: colours, markers, dashes, labels, and the Axes to draw on."""

from __future__ import annotations

from typing import Any

import numpy as np

from plackett.model.race import Array
from plackett.validation import check_prob

PALETTE = ("#4C6FD0", "#D55E00", "#009E73", "#CC79A7", "#A8452A", "#B5399A")
REST = "#808080"
MARKERS = "osD^vP"
DASHES = ("-", "--", ":", "-.")
LONGEST = 34  # characters of a label


def axes(ax: Any) -> Any:
    """The Axes given, or those of a new figure."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'plackett[plots]'") from error
    return plt.subplots(layout="constrained")[1]


def colour(k: int) -> str:
    """Colour of the k-th of several things; after six they come again."""
    return PALETTE[k % len(PALETTE)]


def marker(k: int) -> str:
    """Marker of the k-th class; colour and marker together come again after 36."""
    return MARKERS[(k + k // len(PALETTE)) % len(MARKERS)]


def dash(k: int) -> str:
    """Line style of the k-th curve."""
    return DASHES[(k + k // len(PALETTE)) % len(DASHES)]


def of(what: str, drawn: int, total: int) -> str:
    """A title that admits what was left out, and is empty where nothing was."""
    return "" if drawn == total else f"{drawn} of {total} {what}"


def label(text: Any, longest: int = LONGEST) -> str:
    """A name as matplotlib should show it: on one line, not too long, without mathematics in dollars.

    A thin space goes before an underscore, since matplotlib hides labels that begin with one.
    """
    text = "".join(c if c.isprintable() else " " for c in str(text))
    text = text if len(text) <= longest else text[: longest - 1] + "…"
    return ("\u2009" if text.startswith("_") else "") + text.replace("$", r"\$")


def pair(own: Any, feature: Any) -> str:
    """A class and a feature in one label."""
    return f"{label(own, LONGEST // 3)}: {label(feature, LONGEST - LONGEST // 3)}"


def interval(draws: Array, prob: float) -> tuple[Array, Array]:
    """Equal-tailed interval over the first axis."""
    tail = (1 - check_prob(prob)) / 2
    lower, upper = np.quantile(draws, [tail, 1 - tail], axis=0)
    return lower, upper
