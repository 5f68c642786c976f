"""Declaration of model files of the sparse logit; importing this module registers it."""

from __future__ import annotations

from typing import Any

import numpy as np

from plackett.features.standardise import FARTHEST
from plackett.logit.classifier import MOVES, SAMPLERS, SparseLogitClassifier
from plackett.logit.posterior import LogitDraws
from plackett.model.diagnostics import Diagnostics
from plackett.output.schema import (
    NONE,
    POSITIVE,
    SCALE,
    TEXT,
    TRUTH,
    Declaration,
    Range,
    Sizes,
    array,
    each,
    insist,
    is_a,
    labels,
    number,
    one_of,
    whole,
)
from plackett.output.stored import COLUMNS, COUNT, LIMIT, NAMES, RUN, WIDTH
from plackett.output.stored_models import law_of_classes, law_of_columns_known, register

LARGEST = 1e200  # limit of a coefficient times a covariate: sums of these do not overflow


def law_of_logit(model: Any, name: str, sizes: Sizes) -> None:
    """Check that no linear predictor overflows, however far a covariate is."""
    law_of_classes(model, name, sizes)
    law_of_columns_known(model)
    coef = np.abs(model.posterior_.coef).max(axis=(0, 1, 2))
    with np.errstate(over="ignore", invalid="ignore"):
        reach = np.where(coef == 0, 0.0, coef * (np.abs(model.mean_) + FARTHEST * model.scale_))
    right = (reach <= LARGEST).all()
    insist(bool(right), "posterior_.coef must be 0 for a constant column, and such that no linear predictor overflows.")


register(
    Declaration(
        SparseLogitClassifier,
        {
            "sampler": one_of(*SAMPLERS),
            "penalty": number(POSITIVE) | one_of("learn"),
            "penalty_prior": each(number(POSITIVE), 2),
            "penalize_intercept": TRUTH,
            "intercept_scale": number(POSITIVE),
            "standardize": TRUTH,
            "draws": COUNT | NONE,
            "tune": whole(),
            "chains": COUNT,
            "moves": one_of(*MOVES),
            "target_ess": LIMIT,
            "max_draws": COUNT | NONE,
            "max_seconds": LIMIT,
            "checkpoint": TEXT | NONE,
            **RUN,
        },
        {
            **WIDTH,
            "classes_": labels("group", "outcome"),
            "posterior_": is_a(LogitDraws),
            "coef_": array("group column"),
            "intercept_": array("group"),
            "penalty_": number(POSITIVE),
            "mean_": array("column"),
            "scale_": array("column", SCALE),
            "trace_": array("chain draw"),
            "n_iter_": whole(),
            "diagnostics_": is_a(Diagnostics) | NONE,
        },
        {**NAMES, "columns_": COLUMNS, "sampler_": one_of(*SAMPLERS[1:])},
        law_of_logit,
    ),
    Declaration(
        LogitDraws,
        {
            "coef": array("chain draw group column"),
            "intercept": array("chain draw group", Range(-LARGEST, LARGEST, f"no larger than {LARGEST:g}")),
            "penalty": array("chain draw", POSITIVE),
        },
    ),
)
