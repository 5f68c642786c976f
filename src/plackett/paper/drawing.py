"""Style of figures: sizes, and colours that colour-blind readers can distinguish (Okabe and Ito)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
LIGHT = ("#a6cfe8", "#f6c9a4", "#a8dfcb", "#ecc9dc")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "lines.linewidth": 1.4,
}


@contextmanager
def panels(
    rows: int, columns: int, width: float, height: float, sharex: bool = False, sharey: bool = False
) -> Iterator[tuple[Figure, list[Axes]]]:
    """Yield a figure without window and its axes in reading order, in our style."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        yield figure, list(figure.subplots(rows, columns, squeeze=False, sharex=sharex, sharey=sharey).flat)


def spaced(places: Sequence[float], least: float) -> list[float]:
    """Return heights for labels, as close to their sorted positions as a minimum distance between neighbours allows."""
    found: list[float] = []
    for place in places:
        found.append(place if not found else max(place, found[-1] + least))
    return found
