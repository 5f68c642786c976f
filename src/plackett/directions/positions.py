"""Map positions of a chain to directions and weights, and slopes in these to slopes in positions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from plackett.compute.compiled import NOTHING, REAL, REALS, TABLE, apart, record
from plackett.directions.prior import PRIOR, Prior, directions_of, log_weights_of, n_owners, parts, reflected
from plackett.model.race import Array


def directions_and_weights(positions: Array, prior: Prior, d: int) -> tuple[Array, Array, Array]:
    """β (…, M, d), ln λ (…, K, M) and s (…, d) of positions (…, D)."""
    K, M = prior.shape.shape
    u, v, t, log_s, log_sigma = parts(positions, K, M, d, n_owners(prior))
    log_weights = log_weights_of(t, prior.shape)
    if prior.totals:  # the position has separate coordinates for them
        log_total = reflected(positions[..., -K:]) - np.logaddexp.reduce(log_weights, axis=-1)
        log_weights = log_weights + log_total[..., None]
    return directions_of(u, v, log_s, log_sigma, prior.owner), log_weights, np.exp(log_s)


class Place(NamedTuple):
    """Directions and weights at a position, with memory for the sums of its gradient."""

    beta: Array  # (M, d)
    log_weights: Array  # (K, M)
    scale: Array  # (d,) s
    to_shared: Array  # (d,)
    to_single: Array  # (d,)
    squares: Array  # (d,)


PLACE = record(Place, TABLE, TABLE, REALS, REALS, REALS, REALS)


def make_place(prior: Prior, n_columns: int) -> Place:
    """Allocate memory for one chain."""
    (K, M), d = prior.shape.shape, n_columns
    return Place(np.empty((M, d)), np.empty((K, M)), *(np.empty(d) for _ in range(4)))


@apart(NOTHING(REALS, PRIOR, PLACE))
def unpack(q, prior, place):
    """Compute s, β and ln λ of a position, as `directions_of` and `log_weights_of` do."""
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
    """Return the log-posterior of a position and write its gradient, from those of the log-likelihood in β and ln λ."""
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
