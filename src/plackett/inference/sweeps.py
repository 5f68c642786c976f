"""The paper's Gibbs sampler (section 3.3) on the log scale: updates of K×p arrays between two passes.

The state of a chain is λ̄ (as logarithms whose exponentials sum to 1), the scale Λ and the shape a. The scale is stored
separately because it underflows: with a near 0.01, draws of Gam(Kpa, b) reach 1e-300.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import types

from plackett.compute.compiled import REAL, REALS, TABLE, TRUTH, apart, inner, jit, record
from plackett.compute.numba_private import next_uint64
from plackett.engines.panels import FLOAT_PANELS, PANELS, sample_blocks
from plackett.model.gig import log_gig_draw
from plackett.model.race import Array

LOG_MASS, SHAPE, LOG_STEP, STEPS = range(4)  # indices of State.numbers


class State(NamedTuple):
    """State of a chain: ln λ̄ (K, p) and the numbers ln Λ, a, ln of the step of a, and steps tuned."""

    log_weights: Array
    numbers: Array


class Target(NamedTuple):
    """Prior: rate b, whether a is sampled, the table of its log-density in ln a, and the tail of a GIG."""

    rate: float
    learn: bool
    table: Array
    table_start: float
    table_step: float
    tail: float = 0.0  # 0 is the Gamma


TARGET = record(Target, REAL, TRUTH, REALS, REAL, REAL, REAL)


@jit
def log_gamma_draw(rng, shape):
    """Draw ln of Gam(shape, 1); for small shapes as ln Gam(a) = ln Gam(a+1) + ln(U)/a, which cannot underflow."""
    if shape >= 1.0:
        return math.log(rng.standard_gamma(shape))
    return math.log(rng.standard_gamma(shape + 1.0)) - rng.standard_exponential() / shape


@jit
def log(x):
    """ln x of a normal positive double, without branch or call, so that loops over it vectorise.

    x = 2^e m with m in [√½, √2), and ln m = 2 artanh(s) with s = (m−1)/(m+1), |s| < 0.172: ten terms of the
    series reach the last bit.
    """
    bits = np.float64(x).view(np.int64)
    e = (bits - np.int64(0x3FE6A09E667F3BCD)) >> np.int64(52)
    m = np.int64(bits - (e << np.int64(52))).view(np.float64)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    high = 1 / 11 + z * (1 / 13 + z * (1 / 15 + z * (1 / 17 + z * (1 / 19))))
    low = 1 / 3 + z * (1 / 5 + z * (1 / 7 + z * (1 / 9 + z * high)))
    return np.float64(e) * 0.6931471805599453 + 2.0 * s * (1.0 + z * low)


@jit
def log_gamma(x):
    """ln Γ(x) for x > 0, to 1e-9: Stirling's series at x + 4."""
    z = x + 4.0
    u = 1.0 / (z * z)
    series = (1.0 / 12 - u * (1.0 / 360 - u * (1.0 / 1260 - u * (1.0 / 1680 - u / 1188)))) / z
    return (z - 0.5) * log(z) - z + 0.9189385332046727 + series - log(x * (x + 1.0) * (x + 2.0) * (x + 3.0))


@inner
def log_add(x, y):
    """ln(e^x + e^y)."""
    return max(x, y) + math.log1p(math.exp(-abs(x - y)))


@inner
def normalise(log_weights):
    """Shift ln λ so that Σ λ = 1, and return the previous ln Λ."""
    K, p = log_weights.shape
    top, total = -np.inf, 0.0
    for k in range(K):
        for j in range(p):
            top = max(top, log_weights[k, j])
    for k in range(K):
        for j in range(p):
            total += math.exp(log_weights[k, j] - top)
    log_mass = top + math.log(total)
    for k in range(K):
        for j in range(p):
            log_weights[k, j] -= log_mass
    return log_mass


@inner
def draw_weights(rng, state, wins, exposure, rate):
    """Draw λ_kj ~ Gam(a + n_kj, b + s_kj), equation (13); `exposure` (K or 1, p) has units of Λ = 1."""
    log_weights, numbers = state
    log_rate = 0.0
    for j in range(log_weights.shape[1]):
        for k in range(log_weights.shape[0]):
            if k < exposure.shape[0]:
                log_rate = log_add(math.log(rate), math.log(exposure[k, j]) - numbers[LOG_MASS])
            log_weights[k, j] = log_gamma_draw(rng, numbers[SHAPE] + wins[k, j]) - log_rate
    numbers[LOG_MASS] = normalise(log_weights)


@jit
def log_prior(target, log_shape):
    """Log-density of ln a, from the table."""
    place = (log_shape - target.table_start) / target.table_step
    low = math.floor(place)
    if low < 0 or low > target.table.size - 1 or place > target.table.size - 1:
        return -np.inf
    low = min(low, target.table.size - 2)
    part = place - low
    left, right = target.table[low], target.table[low + 1]
    if part == 0.0:
        return left
    if left == -np.inf or right == -np.inf:
        return -np.inf
    return left + part * (right - left)


@inner
def log_dirichlet(shape, size, sum_log_weights):
    """Log-density of λ̄ ~ Dirichlet(a, …, a), without terms free of a."""
    return math.lgamma(shape * size) - size * math.lgamma(shape) + shape * sum_log_weights


@inner
def step_shape(rng, numbers, log_shape, log_ratio, adapt):
    """Accept the proposed ln a or keep the old one; adapt the step during tuning only."""
    accepted = math.log(rng.random()) < log_ratio
    if accepted:
        numbers[SHAPE] = math.exp(log_shape)
    if adapt:
        numbers[STEPS] += 1.0
        numbers[LOG_STEP] += ((1.0 if accepted else 0.0) - 0.44) / math.sqrt(numbers[STEPS])


@inner
def draw_shape(rng, state, target, adapt):
    """Metropolis–Hastings on ln a given λ̄ (section 3.5), Λ integrated out.

    Accept with p(λ̄|a′) p(a′) a′ / (p(λ̄|a) p(a) a).
    """
    log_weights, numbers = state
    size, total = log_weights.size, 0.0
    for k in range(log_weights.shape[0]):
        for j in range(log_weights.shape[1]):
            total += log_weights[k, j]
    old = math.log(numbers[SHAPE])
    new = old + math.exp(numbers[LOG_STEP]) * rng.standard_normal()
    log_ratio = log_prior(target, new) - log_prior(target, old)
    if log_ratio > -np.inf:
        log_ratio += log_dirichlet(math.exp(new), size, total) - log_dirichlet(math.exp(old), size, total)
    step_shape(rng, numbers, new, log_ratio, adapt)


@inner
def draw_mass(rng, state, rate):
    """Draw Λ ~ Gam(Kpa, b): the likelihood does not depend on the scale (section 3.5, corrected)."""
    log_weights, numbers = state
    numbers[LOG_MASS] = log_gamma_draw(rng, log_weights.size * numbers[SHAPE]) - math.log(rate)


@jit
def draw_tailed(rng, state, wins, exposure, target):
    """Draw λ_kj ~ GIG(a + n_kj, tail, b + s_kj), then Λ given λ̄ ~ GIG(Kpa, tail Σ 1/λ̄, b).

    The likelihood does not depend on the scale, so that the second draw is exact too; without it Λ would mix slowly.
    """
    log_weights, numbers = state
    shape, log_tail, log_rate = numbers[SHAPE], math.log(target.tail), 0.0
    for j in range(log_weights.shape[1]):
        for k in range(log_weights.shape[0]):
            if k < exposure.shape[0]:
                log_rate = log_add(math.log(target.rate), math.log(exposure[k, j]) - numbers[LOG_MASS])
            log_weights[k, j] = log_gig_draw(rng, shape + wins[k, j], log_tail, log_rate)
    normalise(log_weights)
    log_inverse = -np.inf
    for k in range(log_weights.shape[0]):
        for j in range(log_weights.shape[1]):
            log_inverse = log_add(-log_weights[k, j], log_inverse)
    numbers[LOG_MASS] = log_gig_draw(rng, log_weights.size * shape, log_tail + log_inverse, math.log(target.rate))


@jit
def update(rng, state, wins, exposure, target, adapt):
    """Do all updates after a pass: (13), then a and Λ given λ̄."""
    if target.tail > 0.0:
        draw_tailed(rng, state, wins, exposure, target)
        return
    draw_weights(rng, state, wins, exposure, target.rate)
    if target.learn:
        draw_shape(rng, state, target, adapt)
    draw_mass(rng, state, target.rate)


@jit
def redraw_shape(rng, state, target, adapt, steps):
    """Do more steps of a given λ̄, and draw Λ."""
    for _ in range(steps):
        draw_shape(rng, state, target, adapt)
    draw_mass(rng, state, target.rate)


class Room(NamedTuple):
    """Scratch for compiled passes."""

    own: Array
    wins: Array
    exposure: Array
    block_wins: Array
    block_exposure: Array
    block_value: Array


ROOM = record(Room, *[TABLE] * 5, REALS)


def make_room(panels: Any, n_classes: int) -> Room:
    """Allocate scratch for passes over these panels."""
    p, n_blocks = panels.values.shape[1], len(panels.block_class)
    sizes = ((n_classes, p), (n_classes, p), (1, p), (n_blocks, p), (n_blocks, p), (n_blocks,))
    return Room(*(np.empty(size) for size in sizes))


@inner
def key_from(rng):
    """Return the key of a pass, equal to `rng.integers(0, 1 << 62)`."""
    return next_uint64(rng.bit_generator) >> np.uint64(2)


@apart(REAL(PANELS, TABLE, types.uint64, ROOM), REAL(FLOAT_PANELS, TABLE, types.uint64, ROOM), allocates=True)
def race(panels, log_weights, key, room):
    """Do the sampled pass, (11) and (12), on one thread from ln λ̄; write wins and exposure, return ln L."""
    K, p = log_weights.shape
    wins, exposure = room.wins, room.exposure
    own_scale, total = np.empty(K), np.empty(p)
    top = -np.inf
    for k in range(K):
        own_scale[k] = -np.inf
        for j in range(p):
            own_scale[k] = max(own_scale[k], log_weights[k, j])
        top = max(top, own_scale[k])
    for j in range(p):
        total[j], exposure[0, j] = 0.0, 0.0
    for k in range(K):
        for j in range(p):
            room.own[k, j] = math.exp(max(log_weights[k, j] - own_scale[k], -690.0))
            total[j] += math.exp(max(log_weights[k, j] - top, -690.0))
            wins[k, j] = 0.0
    n_blocks = panels.block_class.size
    sums = room.block_wins, room.block_exposure, room.block_value
    sample_blocks(panels, 0, n_blocks, room.own, total, key, None, *sums)
    value = 0.0
    for b in range(n_blocks):
        k = panels.block_class[b]
        value += room.block_value[b] + panels.block_weight[b] * (own_scale[k] - top)
        for j in range(p):
            wins[k, j] += room.block_wins[b, j]
            exposure[0, j] += room.block_exposure[b, j]
    for j in range(p):
        exposure[0, j] *= math.exp(-top)
    return value


@jit
def sweeps(panels, state, rng, target, room, adapt, draws, shapes, values):
    """Record the state and sweep, until `draws` is full; fully compiled.

    The pass of a sweep returns the log-likelihood of the state it starts from: that state is the draw.
    """
    K, p = state.log_weights.shape
    for t in range(shapes.size):
        for k in range(K):
            for j in range(p):
                draws[t, k, j] = state.log_weights[k, j]
        shapes[t] = state.numbers[SHAPE]
        values[t] = race(panels, state.log_weights, key_from(rng), room)
        update(rng, state, room.wins, room.exposure, target, adapt)
