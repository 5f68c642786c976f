"""Moves of one weight and of two: a slice that revives inactive features, and exchanges."""

from __future__ import annotations

import math

import numpy as np

from plackett.compute.compiled import RNG, TRUTH, WHOLE, apart, inner, jit
from plackett.compute.vectors import WIDTH, load, spread, store, total
from plackett.inference.moves.chain import CHAIN, add_up, keep, mass_of, metropolis, negligible, rescore
from plackett.inference.moves.rows import COLUMNS, copy, least, rise, score, shift, sum_log, sum_of
from plackett.inference.sweeps import SHAPE

UNIFORM, NEAR, FLIP, FLIP_NEAR = range(4)  # how an exchange chooses its partner


@jit
def without(columns, chain, k, j):
    """Compute new_scores of class k and new_rival without the weight (k, j), recomputed where that cancels."""
    weight = chain.weights[k, j]
    chain.weights[k, j] = 0.0
    if shift(chain.new_scores[k], chain.scores[k], columns.W[j], -weight, chain.peak[k]) > 0:
        score(columns, chain.weights[k], chain.new_scores[k])
    if shift(chain.new_rival, chain.rival, columns.W[j], -weight, chain.peak[-1]) > 0:
        for c in range(chain.theta.shape[0]):
            if c != k:
                copy(chain.new_scores[c], chain.scores[c])
        add_up(columns, chain.new_scores, chain.new_rival)
    chain.weights[k, j] = weight


@apart(TRUTH(COLUMNS, CHAIN, RNG))
def coordinate(columns, chain, rng):
    """Slice-sample one weight, chosen uniformly.

    With c = Λ − λ and α = min(a, ½), v = (λ/(λ+c))^α runs over (0, 1) and has log-density
    ln L + (a−α) θ + (α+1−aM) ln(λ+c); the bracket shrinks from (0, 1). Small a piles the prior up at v uniform,
    so a dead weight is as likely to come back as a live one to die.
    """
    K, p = chain.theta.shape
    k, j = int(rng.random() * K), int(rng.random() * p)
    a, M = chain.numbers[SHAPE], K * p
    alpha = min(a, 0.5)
    old, theta = chain.weights[k, j], chain.theta[k, j]
    nothing = negligible(columns, chain)
    scores, rival = chain.scores[k], chain.rival
    first, last = columns.start[k], columns.start[k + 1]
    rest = chain.mass[0] - old
    removed = old > nothing or rest < 1e-6 * chain.mass[0]
    if removed:
        without(columns, chain, k, j)
        scores, rival = chain.new_scores[k], chain.new_rival
        rest = mass_of(chain.weights) - old
        if columns.size[k]:
            nothing = min(nothing, 1e-15 * least(scores[first:last]) / max(rival.size, sum_of(columns.class_weight)))
    if not rest > 0.0:
        return False
    w = columns.W[j]
    w_own, own_scores, own_weight = w[first:last], scores[first:last], columns.weight[first:last]
    here = chain.logs[k] - chain.logs[K] + (a - alpha) * theta + (alpha + 1.0 - a * M) * math.log(rest + old)
    level = here - rng.standard_exponential()
    v = math.exp(alpha * (theta - math.log(rest + old)))
    left, right = 0.0, 1.0
    base_own, base_rival = chain.logs[k], chain.logs[K]
    known = not removed
    for _ in range(200):
        z = left + (right - left) * rng.random()
        log_share = math.log(z) / alpha
        theta = math.log(rest) + log_share - math.log(-math.expm1(log_share))
        new = math.exp(theta)
        if new > nothing:
            log_own = sum_log(own_scores, w_own, new, own_weight)
            log_rival = sum_log(rival, w, new, columns.weight)
        else:
            if not known:
                base_own = sum_log(own_scores, w_own, 0.0, own_weight)
                base_rival = sum_log(rival, w, 0.0, columns.weight)
                known = True
            log_own, log_rival = base_own, base_rival
        if log_own - log_rival + (a - alpha) * theta + (alpha + 1.0 - a * M) * math.log(rest + new) > level:
            chain.theta[k, j], chain.weights[k, j], chain.mass[0] = theta, new, rest + new
            if removed or new > nothing:
                shift(chain.scores[k], scores, w, new, chain.peak[k])
                shift(chain.rival, rival, w, new, chain.peak[K])
                rise(chain.peak[k], chain.scores[k])
                rise(chain.peak[K], chain.rival)
                chain.logs[k], chain.logs[K] = log_own, log_rival
                if columns.size[k]:
                    chain.floor[k] = least(chain.scores[k][first:last])
            return True
        if z < v:
            left = z
        else:
            right = z
    return False


@inner
def activity(weights, level, out):
    """Write λ/(λ + level) into `out` and return its sum: nearly uniform over the active weights."""
    K, p = weights.shape
    result = 0.0
    for k in range(K):
        result += saturate(out[k * p : (k + 1) * p], weights[k], level)
    return result


@inner
def saturate(out, x, level):
    """Write x/(x + level) into `out` and return its sum."""
    whole = x.size - x.size % WIDTH
    lanes = spread(0.0)
    for i in range(0, whole, WIDTH):
        value = load(x, i) / (load(x, i) + spread(level))
        store(out, i, value)
        lanes = lanes + value
    result = total(lanes)
    for i in range(whole, x.size):
        out[i] = x[i] / (x[i] + level)
        result += out[i]
    return result


@inner
def pick(chances, sum_of, u):
    """Return an index with probability chances/sum_of."""
    left = u * sum_of
    for i in range(chances.size):
        left -= chances[i]
        if left < 0.0:
            return i
    return chances.size - 1


@inner
def near(columns, j, rng):
    """Draw a partner from the symmetric kernel."""
    return min(np.searchsorted(columns.near[j], rng.random()), columns.near.shape[0] - 1)


@apart(TRUTH(COLUMNS, CHAIN, RNG, WHOLE), allocates=True)
def exchange(columns, chain, rng, kind):
    """Exchange two weights up to a factor: θ₁′ = θ₂ − d, θ₂′ = θ₁ + d with d ~ N(μ₁₂, s²), μ₁₂ = −μ₂₁.

    The first is drawn with probability f₁/F, f = λ/(λ + εΛ), ε log-uniform, drawn afresh; the second from a symmetric
    kernel: in the same class uniformly or near, or in another class the mirror feature or one near it. The map is
    its own inverse under d → −d with roles exchanged, and Σθ is kept: accept with

        L′/L · (Λ′/Λ)^(−aM) · (f₂′/F′) / (f₁/F).
    """
    K, p = chain.theta.shape
    if p == 1 and kind < FLIP:
        return False
    eps = math.exp(-7.0 + 5.0 * rng.random())
    active = activity(chain.weights, eps * chain.mass[0], chain.scratch)
    first = pick(chain.scratch, active, rng.random())
    chance = chain.scratch[first] / active
    k1, j1 = first // p, first % p
    k2, j2 = k1, j1
    if kind == UNIFORM:
        j2 = (j1 + 1 + int(rng.random() * (p - 1))) % p
    elif kind == NEAR:
        j2 = near(columns, j1, rng)
    else:
        k2 = (k1 + 1 + int(rng.random() * (K - 1))) % K
        j2 = columns.mirror[j1] if kind == FLIP else near(columns, columns.mirror[j1], rng)
    d = (0.3 if k1 == k2 else 0.7) * rng.standard_normal()
    if kind == NEAR:
        d += columns.level[j1] - columns.level[j2]
    elif k1 != k2:
        d += math.log((columns.class_weight[k2] + 1.0) / (columns.class_weight[k1] + 1.0))
    if k1 == k2 and j1 == j2:
        return False
    keep(chain)
    chain.theta[k1, j1], chain.theta[k2, j2] = chain.old_theta[k2, j2] - d, chain.old_theta[k1, j1] + d
    chain.weights[k1, j1], chain.weights[k2, j2] = math.exp(chain.theta[k1, j1]), math.exp(chain.theta[k2, j2])
    mass = mass_of(chain.weights)
    active = activity(chain.weights, eps * mass, chain.scratch)
    back = chain.scratch[k2 * p + j2] / active
    changed = np.empty(2, dtype=np.int64)
    changed[0], changed[1] = j1, j2
    rescore(columns, chain, k1, 1.0, changed if k1 == k2 else changed[:1])
    if k1 != k2:
        rescore(columns, chain, k2, 1.0, changed[1:])
    return metropolis(columns, chain, rng, k1, k2, math.log(back / chance))
