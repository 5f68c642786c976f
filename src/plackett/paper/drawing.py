"""How figures look: sizes, and colours that colour-blind readers can tell apart (Okabe and Ito)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
LIGHT = ("#a6cfe8", "#f6c9a4", "#a8dfcb", "#ecc9dc")
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "figure.constrained_layout.use": True,
}


@contextmanager
def panels(rows: int, columns: int, width: float, height: float, **settings: Any) -> Iterator[tuple[Any, list[Any]]]:
    """A figure and its axes in reading order, in our style; settings go to `plt.subplots`."""
    import matplotlib
    import matplotlib.pyplot as plt

    with plt.rc_context({**STYLE, "backend": matplotlib.get_backend()}):
        figure, axes = plt.subplots(rows, columns, figsize=(width, height), squeeze=False, **settings)
        yield figure, list(axes.flat)


def apart(places: Sequence[float], least: float) -> list[float]:
    """Heights for labels: as near to their places (rising) as a least distance between neighbours allows."""
    found: list[float] = []
    for place in places:
        found.append(place if not found else max(place, found[-1] + least))
    return found
