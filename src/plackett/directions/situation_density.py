"""The log-posterior of a position over situations, compiled, and the walk on it."""

from __future__ import annotations

from typing import NamedTuple

from plackett.compute.compiled import REAL, REALS, apart, record
from plackett.directions.density import PLACE, Place, add_prior, make_place, unpack
from plackett.directions.prior import PRIOR, Prior
from plackett.directions.walk import walking
from plackett.engines.exponential_situations import (
    COVARIATES,
    SCRATCH,
    Covariates,
    Scratch,
    log_likelihood,
    make_scratch,
)


class SituationDensity(NamedTuple):
    """All that the compiled density needs: situations, prior, and room of one chain."""

    packed: Covariates
    prior: Prior
    scratch: Scratch
    place: Place


DENSITY = record(SituationDensity, COVARIATES, PRIOR, SCRATCH, PLACE)


def make_density(packed: Covariates, prior: Prior, n_columns: int) -> SituationDensity:
    """With room of its own, for one chain."""
    K, M = prior.shape.shape
    return SituationDensity(packed, prior, make_scratch(packed, M, n_columns, K), make_place(prior, n_columns))


@apart(REAL, REALS, REALS, DENSITY)
def log_density(q, gradient, density):
    """Log-posterior of a position, up to a constant, and its gradient; both laid out as `parts` has them."""
    packed, scratch, place = density.packed, density.scratch, density.place
    unpack(q, density.prior, place)
    value = log_likelihood(packed, 0, len(packed.blocks) - 1, place.beta, place.log_weights, scratch)
    return add_prior(q, gradient, density.prior, place, value, scratch.directions, scratch.log_weights)


walk_on = walking(log_density)
