"""Convert the result of learning directions to the posterior of a fitted model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from plackett.features.gate_summary import gate_shares, readable_draw, spread_rows
from plackett.model.mixture import Mode
from plackett.model.race import Array
from plackett.posterior.directions import DirectionDraws, DirectionPoint
from plackett.posterior.situations import SituationDraws, SituationPoint

if TYPE_CHECKING:
    from plackett.inference.base import Fit


def of_situations(fit: Fit) -> Fit:
    """Return the fit of situations with its posterior."""
    kind = SituationPoint if isinstance(fit.posterior, Mode) else SituationDraws
    return replace(fit, posterior=kind(**vars(fit.posterior)))  # type: ignore[arg-type]


def of_classes(fit: Fit, rows: Array, weight: Array) -> Fit:
    """Return the fit of classes with its posterior, the gates as feature map and readable summaries.

    `rows` and `weight` are covariates before standardisation, of all training rows or of a representative subset.
    """
    found, scaling = vars(fit.posterior), fit.extra["design_"]
    draws = (DirectionPoint if isinstance(fit.posterior, Mode) else DirectionDraws)(**found)
    gates, some = draws.gates(scaling, rows), spread_rows(rows, weight)
    probability = np.concatenate(list(draws.probabilities(draws.rows(gates, some))))
    extra = {
        "features_": gates,
        "gate_shares_": gate_shares(gates, some),
        "readable_draw_": readable_draw(probability, gates, rows, weight),
    }
    kept = {name: value for name, value in fit.extra.items() if name != "design_"}
    return replace(fit, posterior=draws, extra=kept | extra)
