"""Moves of one weight and of two: a slice that revives inactive features, and exchanges."""

from __future__ import annotations

import math

import numpy as np

from plackett.compute.compiled import REAL, RNG, WHOLE, apart, jit
from plackett.compute.vectors import dot
from plackett.inference.moves.weight_moves import FLIP, NEAR, UNIFORM, pick, saturate
from plackett.inference.situation_moves.cache import (
    HELD,
    POINT,
    RESPONSE,
    accept,
    judge,
    kept,
    mass_of,
    rescore,
    touch,
    weigh,
    weight_of,
)
from plackett.inference.sweeps import SHAPE

LOST = 1e-17  # relative part of a rate that is lost in rounding


@jit
def movement(new, old, level):
    """Squared change of λ/(λ + level), which measures whether a move changed the activity of a weight."""
    change = new / (new + level) - old / (old + level)
    return change * change


@jit
def level_of(point):
    """Return the weight that counts as half active."""
    return 0.1 * mass_of(point) / point.theta.size


@jit
def without(held, point, k, j):
    """Write rates of group k without the weight (k, j) into `base`; return the size below which the weight is lost."""
    old, least = point.weights[k, j], np.inf
    first, last = held.entry_start[k], held.entry_start[k + 1]
    for i in range(first, last):
        e = held.entry[i]
        point.base[e] = point.rates[e]
        w = held.W[held.row[e], j]
        if w > 0.0:
            least = min(least, point.rates[e] / w)
    if old <= LOST * least:
        return LOST * least
    point.weights[k, j], least, weights = 0.0, np.inf, point.weights[k]
    for i in range(first, last):
        e = held.entry[i]
        point.base[e] = dot(held.W[held.row[e]], weights)
        w = held.W[held.row[e], j]
        if w > 0.0:
            least = min(least, point.base[e] / w)
    point.weights[k, j] = old
    return LOST * least


@jit
def with_weight(held, point, k, j, weight):
    """Compute new rates of the entries of group k from `base` and the weight (k, j)."""
    for i in range(held.entry_start[k], held.entry_start[k + 1]):
        e = held.entry[i]
        point.new_rates[e] = kept(point.base[e] + weight * held.W[held.row[e], j])


@apart(REAL(HELD, POINT, RESPONSE, RNG))
def coordinate(held, point, respond, rng):
    """Slice-sample one weight, chosen uniformly; return its movement.

    With c the sum of the other weights, of its group or of all, either with probability ½, and α = min(a, ½),
    v = (λ/(λ+c))^α runs over (0, 1) and has log-density ln L + (a−α) θ + (α+1) ln(λ+c) − aM ln Λ; the bracket shrinks
    from (0, 1). Small a piles the prior up at v uniform, so a dead weight is as likely to come back as a live one to
    die.
    """
    K, p = point.theta.shape
    k, j = int(rng.random() * K), int(rng.random() * p)
    a, M = point.numbers[SHAPE], K * p
    alpha = min(a, 0.5)
    old, theta = point.weights[k, j], point.theta[k, j]
    in_group = 0.0
    for i in range(p):
        if i != j:
            in_group += point.weights[k, i]
    rest = in_group
    for g in range(K):
        if g != k:
            rest += point.mass[g]
    c = in_group if p > 1 and rng.random() < 0.5 else rest
    lost = without(held, point, k, j)
    n = touch(held, point, k, k)
    here = (a - alpha) * theta + (alpha + 1.0) * math.log(old + c) - a * M * math.log(old + rest)
    level = here - rng.standard_exponential()
    v = math.exp(alpha * (theta - math.log(old + c)))
    left, right = 0.0, 1.0
    known, nothing = old <= lost, 0.0  # difference of ln L without the weight
    for _ in range(200):
        z = left + (right - left) * rng.random()
        log_share = math.log(z) / alpha
        theta = math.log(c) + log_share - math.log(-math.expm1(log_share))
        new = weight_of(theta)
        if new > lost:
            with_weight(held, point, k, j, new)
            gain = judge(held, point, respond, n)
        else:
            if not known:
                with_weight(held, point, k, j, 0.0)
                nothing, known = judge(held, point, respond, n), True
            gain = nothing
        if gain + (a - alpha) * theta + (alpha + 1.0) * math.log(new + c) - a * M * math.log(new + rest) > level:
            if new <= lost and old > lost:
                with_weight(held, point, k, j, 0.0)
                judge(held, point, respond, n)
            if new > lost or old > lost:
                accept(held, point, n)
            moved = movement(new, old, 0.1 * (rest + old) / M)
            point.theta[k, j], point.weights[k, j] = theta, new
            point.mass[k] = in_group + new
            return moved
        if z < v:
            left = z
        else:
            right = z
    return 0.0


@jit
def near(held, j, rng):
    """Draw a partner from the symmetric kernel."""
    return min(np.searchsorted(held.near[j], rng.random()), held.near.shape[0] - 1)


@jit
def put(point, k1, j1, theta1, k2, j2, theta2):
    """Set two weights, and the masses of their groups."""
    point.theta[k1, j1], point.theta[k2, j2] = theta1, theta2
    point.weights[k1, j1], point.weights[k2, j2] = weight_of(theta1), weight_of(theta2)
    weigh(point, k1)
    weigh(point, k2)


@apart(REAL(HELD, POINT, RESPONSE, RNG, WHOLE))
def exchange(held, point, respond, rng, kind):
    """Exchange two weights up to a factor: θ₁′ = θ₂ − d, θ₂′ = θ₁ + d with d ~ N(μ₁₂, s²), μ₁₂ = −μ₂₁.

    The group of the first is drawn uniformly, and it with probability f₁/F₁, f = λ/(λ + εΛ_g), F the sum over the
    group and Λ_g its mass, ε log-uniform; the second from a symmetric kernel: in the same group uniformly or near, or
    in another group the mirror feature or one near it. The map is its own inverse under d → −d with roles exchanged,
    and Σθ is kept: accept with

        L′/L · (Λ′/Λ)^(−aM) · (f₂′/F₂′) / (f₁/F₁).

    Returns the movement of both.
    """
    K, p = point.theta.shape
    eps = math.exp(-7.0 + 5.0 * rng.random())
    k1 = int(rng.random() * K)
    active = saturate(point.activity, point.weights[k1], eps * point.mass[k1])
    j1 = pick(point.activity, active, rng.random())
    chance = point.activity[j1] / active
    k2, j2 = k1, j1
    if kind == UNIFORM:
        j2 = (j1 + 1 + int(rng.random() * (p - 1))) % p
    elif kind == NEAR:
        j2 = near(held, j1, rng)
    else:
        k2 = (k1 + 1 + int(rng.random() * (K - 1))) % K
        j2 = held.mirror[j1] if kind == FLIP else near(held, held.mirror[j1], rng)
    d = (0.3 if k1 == k2 else 0.7) * rng.standard_normal()
    if kind == NEAR:
        d += held.level[j1] - held.level[j2]
    elif k1 != k2:
        d += math.log((held.placed[k2] + 1.0) / (held.placed[k1] + 1.0))
    if k1 == k2 and j1 == j2:
        return 0.0
    theta1, theta2, old1, old2 = point.theta[k1, j1], point.theta[k2, j2], point.weights[k1, j1], point.weights[k2, j2]
    level, before = level_of(point), mass_of(point)
    put(point, k1, j1, theta2 - d, k2, j2, theta1 + d)
    back = saturate(point.activity, point.weights[k2], eps * point.mass[k2])
    back = point.activity[j2] / back
    n = touch(held, point, k1, k2)
    rescore(held, point, k1)
    if k1 != k2:
        rescore(held, point, k2)
    log_ratio = math.log(back / chance) - point.numbers[SHAPE] * K * p * math.log(mass_of(point) / before)
    log_ratio += judge(held, point, respond, n)
    if -rng.standard_exponential() < log_ratio:
        accept(held, point, n)
        return movement(point.weights[k1, j1], old1, level) + movement(point.weights[k2, j2], old2, level)
    put(point, k1, j1, theta1, k2, j2, theta2)
    return 0.0
