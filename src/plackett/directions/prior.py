"""The prior of directions and weights, and the log-density that is sampled.

Each class k owns some components; component j of class k points along

    β_jf = s_f (σ_0 u_kf + σ_1 v_jf),      u, v ~ N(0, 1):

a direction of the class and a deviation of the component. Where σ_1 is small the components of a class agree and the
model is a multinomial logit; σ_1 says how far to leave it, and s_f how much covariate f matters. σ_0, σ_1 and s_f are
log-normal. The weights are λ_kj ~ Gam(a_kj, 1), with a larger a where class k owns component j.

The chain walks in (u, v, t, ln s, ln σ), where all are of the order 1. With a small, ln λ has a tail e^{a ln λ} of
length 1/a on one side and a wall on the other; ln λ = h(t) = t − (1/a − 1) ln(1 + e^{−t}) has slope 1/a there and 1
here.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from plackett.compute.compiled import REAL, REALS, TABLE, WHOLES, apart, inner, record
from plackett.directions.gradient import PANELS, ROOM, Panels, Room, log_likelihood, make_room
from plackett.model.race import Array


class Prior(NamedTuple):
    """Who owns which component, shapes of the weights, and the log-normal priors of the scales."""

    owner: npt.NDArray[np.int64]  # (M,) the class of each component
    shape: Array  # (K, M) a_kj
    covariate_spread: float  # deviation of ln s_f about 0
    scale_centre: Array  # (2,) of ln σ_0, ln σ_1
    scale_spread: Array  # (2,)


class Target(NamedTuple):
    """All that the density needs: rows, prior, and scratch of one chain."""

    panels: Panels
    prior: Prior
    room: Room
    beta: Array  # (M, d)
    log_weights: Array  # (K, M)
    votes: Array  # (K, M)
    log_total: Array  # (M,)
    scale: Array  # (d,) s
    to_shared: Array  # (d,)
    to_single: Array  # (d,)
    squares: Array  # (d,)


PRIOR = record(Prior, WHOLES, TABLE, REAL, REALS, REALS)
TARGET = record(Target, PANELS, PRIOR, ROOM, TABLE, TABLE, TABLE, REALS, REALS, REALS, REALS, REALS)


def make_target(panels: Panels, prior: Prior) -> Target:
    """With scratch of its own, for one chain."""
    (K, M), d = prior.shape.shape, panels.n_columns
    scratch = np.empty((M, d)), np.empty((K, M)), np.empty((K, M)), np.empty(M), *(np.empty(d) for _ in range(4))
    return Target(panels, prior, make_room(M, d, K), *scratch)


def size(prior: Prior, n_columns: int) -> int:
    """Length of a position."""
    K, M = prior.shape.shape
    return (K + M) * n_columns + K * M + n_columns + 2


def parts(q: Array, K: int, M: int, d: int) -> tuple[Array, ...]:
    """Views of positions (…, D): u (…, K, d), v (…, M, d), t (…, K, M), ln s (…, d), ln σ (…, 2)."""
    u, v, t, log_s, log_sigma = np.split(q, np.cumsum([K * d, M * d, K * M, d]), axis=-1)
    size = q.shape[:-1]
    return u.reshape(*size, K, d), v.reshape(*size, M, d), t.reshape(*size, K, M), log_s, log_sigma


def log_weights_of(t: Array, shape: Array) -> Array:
    """ln λ = h(t)."""
    log_weights: Array = t - (1 / shape - 1) * np.logaddexp(0.0, -t)
    return log_weights


def inverse_weights(log_weights: Array, shape: Array) -> Array:
    """The t of given ln λ: h is concave for a < 1, and Newton's method from its asymptote does not overshoot."""
    steep = 1 / shape - 1
    t = np.where(steep > 0, np.minimum(log_weights, log_weights * shape), np.maximum(log_weights, log_weights * shape))
    for _ in range(50):
        h = t - steep * np.logaddexp(0.0, -t)
        t = t + (log_weights - h) / (1 + steep / (1 + np.exp(t)))
    return t


def directions_of(u: Array, v: Array, log_s: Array, log_sigma: Array, owner: npt.NDArray[np.int64]) -> Array:
    """β_jf = s_f (σ_0 u_kf + σ_1 v_jf)."""
    sigma = np.exp(log_sigma)[..., None, None, :]
    beta: Array = np.exp(log_s)[..., None, :] * (sigma[..., 0] * u[..., owner, :] + sigma[..., 1] * v)
    return beta


@inner
def unpack(q, prior, scale, beta, log_weights):
    """Fill s, β and ln λ from a position, as `directions_of` and `log_weights_of` do."""
    (K, M), d = log_weights.shape, len(scale)
    v, t, log_s = K * d, (K + M) * d, (K + M) * d + K * M
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


@apart(REAL, REALS, REALS, TARGET)
def log_density(q, gradient, target):
    """Log-posterior of a position, up to a constant, and its gradient; both laid out as `parts` has them."""
    prior, room, beta, log_weights = target.prior, target.room, target.beta, target.log_weights
    (K, M), d = log_weights.shape, beta.shape[1]
    to_shared, to_single, squares, scale = target.to_shared, target.to_single, target.squares, target.scale
    unpack(q, prior, scale, beta, log_weights)
    value = log_likelihood(target.panels, beta, log_weights, target.votes, target.log_total, room)
    v, t, s = K * d, (K + M) * d, (K + M) * d + K * M
    sigma = s + d
    shared, single = np.exp(q[sigma]), np.exp(q[sigma + 1])
    for f in range(d):
        gradient[s + f], to_shared[f], to_single[f], squares[f] = 0.0, 0.0, 0.0, 0.0
    for k in range(K):
        for f in range(d):
            gradient[k * d + f] = -q[k * d + f]
            squares[f] += q[k * d + f] * q[k * d + f]
    for j in range(M):
        u, own = prior.owner[j] * d, v + j * d
        for f in range(d):
            slope = room.directions[j, f] * scale[f]
            gradient[u + f] += slope * shared
            gradient[own + f] = slope * single - q[own + f]
            gradient[s + f] += room.directions[j, f] * beta[j, f]
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
            uphill = room.wins[k, j] - room.gates[j] * target.votes[k, j] + a - weight
            gradient[t + k * M + j] = uphill * slope - steep * rest * (1 - rest) / slope
    return value
