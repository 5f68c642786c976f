"""Plots of a fitted model. Each function draws on one Axes, given or new, and returns it.

A class has the same colour in every plot; grey or muted elements belong to none. Colours keep 3:1 contrast on white and
on near-black, and with their markers and dashes differ for colour-blind readers. With many classes or features the most
informative ones are drawn, and the plot says how many.
"""

from plackett.plots.chains import rank, trace
from plackett.plots.effect import effect
from plackett.plots.estimates import path, relevance, weights
from plackett.plots.items import prob_better, rank_distribution, tiers, worth
from plackett.plots.prediction import calibration, decision_boundary, roc
from plackett.plots.row import contributions, probabilities, race

__all__ = [
    "calibration",
    "contributions",
    "decision_boundary",
    "effect",
    "path",
    "prob_better",
    "probabilities",
    "race",
    "rank",
    "rank_distribution",
    "relevance",
    "roc",
    "tiers",
    "trace",
    "weights",
    "worth",
]
