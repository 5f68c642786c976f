"""Leap: weights proposed from laws that are learned during tuning and then frozen, which jump between modes.

Given the wins n and exposures s of a sweep, λ_kj ~ Gam(a + n_kj, b + s_j), equation (13): averaged over sweeps these
laws are a Rao–Blackwell estimate of the posterior. `memory` builds them from the sweeps of tuning.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from plackett.compute.compiled import REALS, RNG, TABLE, WHOLE, WHOLES, apart, inner, jit, record
from plackett.inference.moves.chain import CHAIN, accept, evaluate_all, go_back, keep, log_likelihood, rescore
from plackett.inference.moves.rows import COLUMNS, add, copy, fill, score
from plackett.inference.sweeps import SHAPE, TARGET, log, log_gamma, log_gamma_draw, log_prior
from plackett.model.race import Array

Integers = npt.NDArray[np.int64]
DEAD = 1e-280  # a partial leap is relative to the other weights if any of them exceeds this


class Memory(NamedTuple):
    """S laws of θ, each a product of Gammas whose common scale is integrated out, and blocks B of features to redraw.

    The shapes α of a law are κ where it has won rows, and the chain's a elsewhere. With A = Σα over all weights, A_B
    over those of the block and R = Σ s λ over the others,

        ln q(θ_B | θ_−B) = ln Γ(A) − ln Γ(A − A_B) + (A − A_B) ln R − A ln(R + Σ_B s λ) + Σ_B [α (ln s + θ) − ln Γ(α)].

    For a block of all features the terms with A − A_B = R = 0 are absent, and a is drawn too: ln a ~ N(ln a_s, h²).
    """

    exposure: Array  # (p, S) s
    kappa: Array  # (M, S) κ, 0 where a law has no wins
    taken: Array  # (M, S) 1 where it has wins, 0 elsewhere
    won: Array  # (S,) Σ κ
    idle: Array  # (S,) number of weights without wins
    block: Integers  # (B + 1,) start of each block in the next array
    feature: Integers  # features of the blocks
    chance: Array  # (B,) cumulative probabilities of the blocks
    block_won: Array  # (B, S) Σ κ over the block
    block_idle: Array  # (B, S) number of weights without wins in the block
    block_known: Array  # (B, S) Σ κ ln s − ln Γ(κ) over weights with wins
    block_rate: Array  # (B, S) Σ ln s over weights without wins
    log_shape: Array  # (S,) ln a_s
    spread: Array  # (1,) h; 0 if a is not learned


MEMORY = record(
    Memory, TABLE, TABLE, TABLE, REALS, REALS, WHOLES, WHOLES, REALS, TABLE, TABLE, TABLE, TABLE, REALS, REALS
)


@inner
def largest(x):
    """Return the largest of non-negative numbers."""
    top = 0.0
    for i in range(x.size):
        top = max(top, x[i])
    return top


@jit
def total_weights(weights, features, inside, outside):
    """Write Σ_k λ_kj of the features in the block and of the others; return Λ."""
    K, p = weights.shape
    fill(inside, 0.0)
    fill(outside, 0.0)
    for k in range(K):
        for j in range(p):
            outside[j] += weights[k, j]
    total = 0.0
    for j in range(p):
        total += outside[j]
    for j in features:
        inside[j], outside[j] = outside[j], 0.0
    return total


@inner
def constants_of_all(memory, b, a, base, constant, total):
    """For a block of all features, write ln Γ(A) + Σ [α ln s − ln Γ(α)] + ln N(ln a; ln a_s, h²), and A."""
    known, rate, idle, won = memory.block_known[b], memory.block_rate[b], memory.idle, memory.won
    near = 0.5 / memory.spread[0] ** 2 if memory.spread[0] > 0.0 else 0.0
    log_a = math.log(a)
    for s in range(constant.size):
        A = won[s] + a * idle[s]
        constant[s] = log_gamma(A) + known[s] + a * rate[s] - idle[s] * base - near * (log_a - memory.log_shape[s]) ** 2
        total[s] = A


@inner
def constants_of_part(memory, b, a, base, rest, constant, total):
    """For a part, write ln Γ(A) − ln Γ(A − A_B) + (A − A_B) ln R + Σ_B [α ln s − ln Γ(α)], and A."""
    known, rate, idle, won = memory.block_known[b], memory.block_rate[b], memory.block_idle[b], memory.block_won[b]
    for s in range(constant.size):
        A = memory.won[s] + a * memory.idle[s]
        others = A - won[s] - a * idle[s]
        value = log_gamma(A) - log_gamma(others) + others * log(rest[s])
        constant[s] = value + known[s] + a * rate[s] - idle[s] * base
        total[s] = A


@inner
def less_logs(room, constant, total):
    """Set room = constant − A ln(R + Σ_B s λ), given R + Σ_B s λ in `room`."""
    for s in range(room.size):
        room[s] = constant[s] - total[s] * log(room[s])


@inner
def add_tilt(room, kappa, taken, theta, a):
    """Add (κ − a) θ where κ > 0 to `room`."""
    for s in range(room.size):
        room[s] += theta * (kappa[s] - a * taken[s])


@jit
def law_constants(memory, b, outside, a, constant, total, rest):
    """For each law, compute the terms of ln q(θ_B | θ_−B) without θ_B, then A and R."""
    fill(rest, 0.0)
    if memory.block[b + 1] - memory.block[b] == outside.size:
        constants_of_all(memory, b, a, math.lgamma(a), constant, total)
    else:
        for j in range(outside.size):
            add(rest, memory.exposure[j], outside[j])
        constants_of_part(memory, b, a, math.lgamma(a), rest, constant, total)


@jit
def log_mixture(memory, features, theta, inside, a, constant, total, rest, room):
    """Return ln Σ_s q_s(θ_B | θ_−B) − a Σ_B θ, up to a constant."""
    K, p = theta.shape
    copy(room, rest)
    for j in features:
        add(room, memory.exposure[j], inside[j])
    less_logs(room, constant, total)
    for k in range(K):
        for j in features:
            add_tilt(room, memory.kappa[k * p + j], memory.taken[k * p + j], theta[k, j], a)
    top = -np.inf
    for value in room:
        top = max(top, value)
    sum_of = 0.0
    for value in room:
        if value > top - 40.0:
            sum_of += math.exp(value - top)
    return top + math.log(sum_of)


@jit
def block_at(memory, u):
    """Return the block whose probability interval contains u."""
    b = 0
    while memory.chance[b] <= u:
        b += 1
    return b


@jit
def log_importance(target, memory, features, theta, mass, inside, a, constant, total, rest, room):
    """Return ln w − ln L for the acceptance of a leap, from the results of `law_constants`.

    w = L · Λ^(−aM) e^(aΣθ) / Σ_s q_s(θ_B | θ_−B); for a block of all features, where a changes too, multiplied by
    Γ(aM)/Γ(a)^M · p(ln a).
    """
    M, whole = theta.size, features.size == theta.shape[1]
    value = -a * M * math.log(mass)
    value -= log_mixture(memory, features, theta, inside, a, constant, total, rest, room)
    if whole and target.learn:
        value += math.lgamma(a * M) - M * math.lgamma(a) + log_prior(target, math.log(a))
    return value


@jit
def propose(memory, b, features, chain, rng, outside):
    """Choose a law, draw an a near its own if the block contains all features, and θ_B from it given the others."""
    K, p = chain.theta.shape
    s = int(rng.random() * memory.won.size)
    whole, log_scale = features.size == p, 0.0
    if whole and memory.spread[0] > 0.0:
        chain.numbers[SHAPE] = math.exp(memory.log_shape[s] + memory.spread[0] * rng.standard_normal())
    a = chain.numbers[SHAPE]
    if not whole:
        rest = 0.0
        for j in range(p):
            rest += memory.exposure[j, s] * outside[j]
        others = memory.won[s] - memory.block_won[b, s] + a * (memory.idle[s] - memory.block_idle[b, s])
        log_scale = math.log(rest) - log_gamma_draw(rng, others)
    top = -np.inf
    for j in features:
        shift = log_scale - math.log(memory.exposure[j, s])
        for k in range(K):
            kappa = memory.kappa[k * p + j, s]
            chain.theta[k, j] = log_gamma_draw(rng, kappa if kappa > 0.0 else a) + shift
            top = max(top, chain.theta[k, j])
    for j in features:
        for k in range(K):
            if whole:
                chain.theta[k, j] -= top
            chain.weights[k, j] = math.exp(chain.theta[k, j])


@apart(WHOLE(COLUMNS, CHAIN, RNG, TARGET, MEMORY, WHOLE), allocates=True)
def leap(columns, chain, rng, target, memory, tries):
    """Redraw the weights of a block of features from the laws, `tries` times; return the number of acceptances.

    Accepts with w′/w of `log_importance`.
    """
    (K, p), S = chain.theta.shape, memory.won.size
    if S == 0:
        return 0
    b = block_at(memory, rng.random())
    features = memory.feature[memory.block[b] : memory.block[b + 1]]
    whole = features.size == p
    inside, outside = np.empty(p), np.empty(p)
    constant, total, rest, room = np.empty(S), np.empty(S), np.empty(S), np.empty(S)
    here, moved = 0.0, 0
    for t in range(tries + 1):
        old = chain.numbers[SHAPE]
        if t > 0:
            keep(chain)
            propose(memory, b, features, chain, rng, outside)
        a = chain.numbers[SHAPE]
        mass = total_weights(chain.weights, features, inside, outside)
        if t == 0 and not whole and largest(outside) < DEAD:
            return 0
        if t == 0 or whole:
            law_constants(memory, b, outside, a, constant, total, rest)
        there = log_importance(target, memory, features, chain.theta, mass, inside, a, constant, total, rest, room)
        if t == 0:
            here = there + log_likelihood(chain.logs)
            continue
        for k in range(K):
            if whole:
                score(columns, chain.weights[k], chain.new_scores[k])
            else:
                rescore(columns, chain, k, 1.0, features)
        there += evaluate_all(columns, chain)
        if -rng.standard_exponential() < there - here:
            here = there
            moved += 1
            for k in range(K):
                accept(columns, chain, k, k)
        else:
            go_back(chain)
            chain.numbers[SHAPE] = old
    return moved
