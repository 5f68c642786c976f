"""The log-posterior of a position over situations, compiled, and the walk on it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plackett.compute.compiled import REAL, REALS, apart, inner, record
from plackett.directions.density import PLACE, Place, add_prior, make_place, unpack
from plackett.directions.prior import PRIOR, Prior
from plackett.directions.totals import TOTALS, Totals, make_totals, share_out, take_back
from plackett.directions.walk import walking
from plackett.engines import exponential_rankings as rankings
from plackett.engines import exponential_situations as entries


class SituationDensity(NamedTuple):
    """All that the compiled density needs: situations as a pass reads them, prior, and room of one chain."""

    packed: Any
    prior: Prior
    scratch: Any
    place: Place
    totals: Totals


def record_of(packed: Any, scratch: Any) -> Any:
    """The compiled type."""
    return record(SituationDensity, packed, PRIOR, scratch, PLACE, TOTALS)


def make_density(packed: Any, prior: Prior, n_columns: int) -> SituationDensity:
    """With room of its own, for one chain."""
    K, M = prior.shape.shape
    room = rankings if isinstance(packed, rankings.RankedRows) else entries
    scratch = room.make_scratch(packed, M, n_columns, K)
    return SituationDensity(packed, prior, scratch, make_place(prior, n_columns), make_totals(prior))


@inner
def begin(q, density):
    """β and ln λ of a position."""
    unpack(q, density.prior, density.place)
    share_out(q, density.prior, density.place, density.totals)


@inner
def end(q, gradient, density, value):
    """The log-posterior and its gradient from the likelihood's."""
    scratch = density.scratch
    value = take_back(q, gradient, density.prior, density.totals, value, scratch.log_weights)
    return add_prior(q, gradient, density.prior, density.place, value, scratch.directions, scratch.log_weights)


@apart(REAL(REALS, REALS, record_of(entries.COVARIATES, entries.SCRATCH)))
def log_density(q, gradient, density):
    """Log-posterior of a position, up to a constant, and its gradient; both laid out as `parts` has them."""
    packed, place, totals = density.packed, density.place, density.totals
    begin(q, density)
    value = entries.log_likelihood(packed, 0, len(packed.blocks) - 1, place.beta, totals.log_weights, density.scratch)
    return end(q, gradient, density, value)


@apart(REAL(REALS, REALS, record_of(rankings.ROWS, rankings.SCRATCH)))
def log_density_of_rankings(q, gradient, density):
    """The same where everyone has a row of their own."""
    packed, place, totals = density.packed, density.place, density.totals
    begin(q, density)
    value = rankings.log_likelihood(packed, 0, len(packed.values), place.beta, totals.log_weights, density.scratch)
    return end(q, gradient, density, value)


@apart(REAL(REALS, REALS, record_of(rankings.FLOAT_ROWS, rankings.FLOAT_SCRATCH)))
def log_density_in_floats(q, gradient, density):
    """The same in floats, in half the time."""
    packed, place, totals = density.packed, density.place, density.totals
    begin(q, density)
    value = rankings.log_likelihood_in_floats(
        packed, 0, len(packed.values), place.beta, totals.log_weights, density.scratch
    )
    return end(q, gradient, density, value)


walk_on_entries, walk_on_rankings = walking(log_density), walking(log_density_of_rankings)
walk_in_floats = walking(log_density_in_floats)


def walk_on(density: SituationDensity, *how: Any) -> None:
    """Iterations of a chain, as `plackett.inference.hmc.walk_on` has them."""
    if not isinstance(density.packed, rankings.RankedRows):
        walk_on_entries(density, *how)
    elif density.packed.values.dtype == np.float32:
        walk_in_floats(density, *how)
    else:
        walk_on_rankings(density, *how)
