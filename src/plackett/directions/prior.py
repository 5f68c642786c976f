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

from plackett.compiled import FAST, jit
from plackett.directions.gradient import Panels, Room, log_likelihood, make_room
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


def make_target(panels: Panels, prior: Prior) -> Target:
    """With scratch of its own, for one chain."""
    (K, M), d = prior.shape.shape, panels.values.shape[1]
    return Target(panels, prior, make_room(M, d, K), np.empty((M, d)), np.empty((K, M)), np.empty((K, M)), np.empty(M))


def size(prior: Prior, n_columns: int) -> int:
    """Length of a position."""
    K, M = prior.shape.shape
    return (K + M) * n_columns + K * M + n_columns + 2


@jit(forceinline=True)
def parts(q, K, M, d):
    """Views of a position: u (K, d), v (M, d), t (K, M), ln s (d,), ln σ (2,)."""
    a, b, c = K * d, (K + M) * d, (K + M) * d + K * M
    return q[:a].reshape(K, d), q[a:b].reshape(M, d), q[b:c].reshape(K, M), q[c : c + d], q[c + d :]


@jit(forceinline=True)
def softplus(x):
    """ln(1 + e^x)."""
    return max(x, 0.0) + np.log1p(np.exp(-abs(x)))


@jit(forceinline=True)
def weights_from(t, shape, log_weights):
    """Fill ln λ = h(t)."""
    for k in range(t.shape[0]):
        for j in range(t.shape[1]):
            log_weights[k, j] = t[k, j] - (1 / shape[k, j] - 1) * softplus(-t[k, j])


def inverse_weights(log_weights: Array, shape: Array) -> Array:
    """The t of given ln λ: h is concave for a < 1, and Newton's method from its asymptote does not overshoot."""
    steep = 1 / shape - 1
    t = np.where(steep > 0, np.minimum(log_weights, log_weights * shape), np.maximum(log_weights, log_weights * shape))
    for _ in range(50):
        h = t - steep * np.logaddexp(0.0, -t)
        t = t + (log_weights - h) / (1 + steep / (1 + np.exp(t)))
    return t


@jit(forceinline=True)
def directions(u, v, log_s, log_sigma, owner, beta):
    """Fill β_jf = s_f (σ_0 u_kf + σ_1 v_jf)."""
    M, d = v.shape
    shared, single = np.exp(log_sigma[0]), np.exp(log_sigma[1])
    for f in range(d):
        s = np.exp(log_s[f])
        for j in range(M):
            beta[j, f] = s * (shared * u[owner[j], f] + single * v[j, f])


@jit(fastmath=FAST, forceinline=True)
def log_density(q, gradient, target):
    """Log-posterior of a position, up to a constant, and its gradient."""
    prior, room, beta, log_weights = target.prior, target.room, target.beta, target.log_weights
    (K, M), d = prior.shape.shape, beta.shape[1]
    u, v, t, log_s, log_sigma = parts(q, K, M, d)
    to_u, to_v, to_t, to_s, to_sigma = parts(gradient, K, M, d)
    directions(u, v, log_s, log_sigma, prior.owner, beta)
    weights_from(t, prior.shape, log_weights)
    value = log_likelihood(target.panels, beta, log_weights, target.votes, target.log_total, room)
    to_sigma[:] = 0.0
    to_u[:] = 0.0
    shared, single = np.exp(log_sigma[0]), np.exp(log_sigma[1])
    for f in range(d):
        s = np.exp(log_s[f])
        to_s[f] = 0.0
        for j in range(M):
            k, slope = prior.owner[j], room.directions[j, f] * s
            to_u[k, f] += slope * shared
            to_v[j, f] = slope * single - v[j, f]
            to_s[f] += room.directions[j, f] * beta[j, f]
            to_sigma[0] += slope * shared * u[k, f]
            to_sigma[1] += slope * single * v[j, f]
            value -= 0.5 * v[j, f] ** 2
        for k in range(K):
            value -= 0.5 * u[k, f] ** 2
            to_u[k, f] -= u[k, f]
        z = log_s[f] / prior.covariate_spread
        value -= 0.5 * z * z
        to_s[f] -= z / prior.covariate_spread
    for i in range(2):
        z = (log_sigma[i] - prior.scale_centre[i]) / prior.scale_spread[i]
        value -= 0.5 * z * z
        to_sigma[i] -= z / prior.scale_spread[i]
    for k in range(K):
        for j in range(M):
            a, weight = prior.shape[k, j], np.exp(log_weights[k, j])
            steep = 1 / a - 1
            rest = 1 / (1 + np.exp(t[k, j]))
            slope = 1 + steep * rest
            value += a * log_weights[k, j] - weight + np.log(slope)
            uphill = room.wins[k, j] - room.gates[j] * target.votes[k, j] + a - weight
            to_t[k, j] = uphill * slope - steep * rest * (1 - rest) / slope
    return value
