"""Pictures of a fitted model. Each function draws on one Axes, given or new, and returns it.

Colours keep 3:1 contrast on white and on near-black and differ for colour-blind readers; classes also differ by marker
and dash. Where there are many classes or features the most telling ones are drawn, and the picture says how many.
"""

from plackett.plots.chains import rank, trace
from plackett.plots.estimates import path, relevance, weights
from plackett.plots.prediction import calibration, decision_boundary, roc
from plackett.plots.row import probabilities, race

__all__ = [
    "calibration",
    "decision_boundary",
    "path",
    "probabilities",
    "race",
    "rank",
    "relevance",
    "roc",
    "trace",
    "weights",
]
