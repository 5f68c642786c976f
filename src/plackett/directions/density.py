"""The log-posterior of a position and its gradient: a pass of the engine, and K×M mathematics around it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from plackett.compute.compiled import NOTHING, REAL, REALS, TABLE, apart, record
from plackett.directions.prior import PRIOR, Prior
from plackett.engines.base import Gradient
from plackett.engines.exponential import (
    FLOAT_COVARIATES,
    FLOAT_SCRATCH,
    Covariates,
    Scratch,
    log_likelihood_in_floats,
    make_scratch,
)
from plackett.model.race import Array


class Place(NamedTuple):
    """A position in the terms of the model, and room for the sums of its gradient."""

    beta: Array  # (M, d)
    log_weights: Array  # (K, M)
    scale: Array  # (d,) s
    to_shared: Array  # (d,)
    to_single: Array  # (d,)
    squares: Array  # (d,)


class ChainDensity(NamedTuple):
    """All that the compiled density needs: rows in floats, prior, and room of one chain.

    A chain leaves the density as it is computed in place, so that rounding a row's log-likelihood at 1e-6 changes the
    posterior by that much and no more.
    """

    packed: Covariates
    prior: Prior
    scratch: Scratch
    place: Place


PLACE = record(Place, TABLE, TABLE, REALS, REALS, REALS, REALS)
DENSITY = record(ChainDensity, FLOAT_COVARIATES, PRIOR, FLOAT_SCRATCH, PLACE)


def make_place(prior: Prior, n_columns: int) -> Place:
    """Room for one chain."""
    (K, M), d = prior.shape.shape, n_columns
    return Place(np.empty((M, d)), np.empty((K, M)), *(np.empty(d) for _ in range(4)))


def make_density(packed: Covariates, prior: Prior) -> ChainDensity:
    """With room of its own, for one chain."""
    (K, M), d = prior.shape.shape, packed.n_columns
    return ChainDensity(packed, prior, make_scratch(M, d, K, np.float32), make_place(prior, d))


@apart(NOTHING(REALS, PRIOR, PLACE))
def unpack(q, prior, place):
    """Fill s, β and ln λ from a position, as `directions_of` and `log_weights_of` do."""
    scale, beta, log_weights = place.scale, place.beta, place.log_weights
    (K, M), d, owners = log_weights.shape, len(scale), prior.owner[-1] + 1
    v, t, log_s = owners * d, (owners + M) * d, (owners + M) * d + K * M
    shared, single = np.exp(q[log_s + d]), np.exp(q[log_s + d + 1])
    for f in range(d):
        scale[f] = np.exp(q[log_s + f])
    for j in range(M):
        u = prior.owner[j] * d
        for f in range(d):
            beta[j, f] = scale[f] * (shared * q[u + f] + single * q[v + j * d + f])
        for k in range(K):
            x = q[t + k * M + j]
            log_weights[k, j] = x - (1 / prior.shape[k, j] - 1) * (max(-x, 0.0) + np.log1p(np.exp(-abs(x))))


@apart(REAL(REALS, REALS, PRIOR, PLACE, REAL, TABLE, TABLE))
def add_prior(q, gradient, prior, place, value, to_directions, to_log_weights):
    """Log-posterior of a position and its gradient, from the likelihood's in β and ln λ."""
    beta, log_weights, scale = place.beta, place.log_weights, place.scale
    to_shared, to_single, squares = place.to_shared, place.to_single, place.squares
    (K, M), d, owners = log_weights.shape, beta.shape[1], prior.owner[-1] + 1
    v, t, s = owners * d, (owners + M) * d, (owners + M) * d + K * M
    sigma = s + d
    shared, single = np.exp(q[sigma]), np.exp(q[sigma + 1])
    for f in range(d):
        gradient[s + f], to_shared[f], to_single[f], squares[f] = 0.0, 0.0, 0.0, 0.0
    for k in range(owners):
        for f in range(d):
            gradient[k * d + f] = -q[k * d + f]
            squares[f] += q[k * d + f] * q[k * d + f]
    for j in range(M):
        u, own = prior.owner[j] * d, v + j * d
        for f in range(d):
            slope = to_directions[j, f] * scale[f]
            gradient[u + f] += slope * shared
            gradient[own + f] = slope * single - q[own + f]
            gradient[s + f] += to_directions[j, f] * beta[j, f]
            to_shared[f] += slope * q[u + f]
            to_single[f] += slope * q[own + f]
            squares[f] += q[own + f] * q[own + f]
    gradient[sigma], gradient[sigma + 1] = 0.0, 0.0
    for f in range(d):
        z = q[s + f] / prior.covariate_spread
        gradient[s + f] -= z / prior.covariate_spread
        gradient[sigma] += to_shared[f] * shared
        gradient[sigma + 1] += to_single[f] * single
        value -= 0.5 * (squares[f] + z * z)
    for i in range(2):
        z = (q[sigma + i] - prior.scale_centre[i]) / prior.scale_spread[i]
        value -= 0.5 * z * z
        gradient[sigma + i] -= z / prior.scale_spread[i]
    for k in range(K):
        for j in range(M):
            a, weight = prior.shape[k, j], np.exp(log_weights[k, j])
            steep = 1 / a - 1
            rest = 1 / (1 + np.exp(q[t + k * M + j]))
            slope = 1 + steep * rest
            value += a * log_weights[k, j] - weight + np.log(slope)
            uphill = to_log_weights[k, j] + a - weight
            gradient[t + k * M + j] = uphill * slope - steep * rest * (1 - rest) / slope
    return value


@apart(REAL(REALS, REALS, DENSITY))
def log_density(q, gradient, density):
    """Log-posterior of a position, up to a constant, and its gradient; both laid out as `parts` has them."""
    scratch, place = density.scratch, density.place
    unpack(q, density.prior, place)
    packed = density.packed
    value = log_likelihood_in_floats(packed, 0, len(packed.label), place.beta, place.log_weights, scratch)
    return add_prior(q, gradient, density.prior, place, value, scratch.directions, scratch.log_weights)


def density_of(rows: Gradient, prior: Prior, n_columns: int) -> Callable[[Array, Array], float]:
    """The same with the pass of any engine: of a position, filling its gradient."""
    place = make_place(prior, n_columns)
    if prior.totals:
        from plackett.directions.totals import make_totals, share_out, take_back

        totals = make_totals(prior)

    def log_density(q: Array, gradient: Array) -> float:
        unpack(q, prior, place)
        if prior.totals:
            share_out(q, prior, place, totals)
        found = rows.gradient(place.beta, totals.log_weights if prior.totals else place.log_weights)
        value = found.value
        if prior.totals:
            value = take_back(q, gradient, prior, totals, value, found.log_weights)
        value = add_prior(q, gradient, prior, place, value, found.directions, found.log_weights)
        return value

    return log_density
