"""Leap: weights proposed from laws that are learned during tuning and then frozen, which jump between modes.

The laws are those of classes (`inference.moves.leap`), with an exposure for each weight instead of each feature: the M
= Kp weights act as the features of one class, and a block is a set of weights.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from plackett.compute.compiled import RNG, WHOLE, apart, jit
from plackett.inference.moves.leap import (
    DEAD,
    MEMORY,
    Integers,
    block_at,
    largest,
    law_constants,
    log_importance,
    propose,
    total_weights,
)
from plackett.inference.moves.memory import Laws, Sweeps, nothing, remember, slow_blocks
from plackett.inference.moves.rows import copy_table
from plackett.inference.situation_moves.cache import (
    HELD,
    POINT,
    RESPONSE,
    accept,
    judge,
    mass_of,
    rescore,
    rescore_all,
    touch_some,
    weigh,
    weight_of,
)
from plackett.inference.sweeps import SHAPE, TARGET
from plackett.model.race import Array, Weights

WIDE = 1000  # number of weights beyond which no laws are learned


class Line(NamedTuple):
    """Weights as those of one class, for `propose`."""

    theta: Array  # (1, M)
    weights: Array  # (1, M)
    numbers: Array


@jit
def rescore_block(held, point, features, groups):
    """Compute new rates and masses of the groups with these weights; return the number of touched situations."""
    p = point.theta.shape[1]
    for k in range(groups.size):
        groups[k] = 0
    for i in features:
        point.line_weights[0, i] = weight_of(point.line[0, i])
        groups[i // p] = 1
    if features.size == point.line.size:
        return rescore_all(held, point)
    n = touch_some(held, point, groups)
    for k in range(groups.size):
        if groups[k] != 0:
            weigh(point, k)
            rescore(held, point, k)
    return n


@apart(WHOLE(HELD, POINT, RESPONSE, RNG, TARGET, MEMORY, WHOLE), allocates=True)
def leap(held, point, respond, rng, target, memory, tries):
    """Redraw a block B of weights from the laws, `tries` times; return the number of acceptances.

    Accepts with w′/w of `log_importance`.
    """
    S, M = memory.won.size, point.line.size
    if S == 0:
        return 0
    b = block_at(memory, rng.random())
    features = memory.feature[memory.block[b] : memory.block[b + 1]]
    whole = features.size == M
    inside, outside, groups = np.empty(M), np.empty(M), np.empty(point.mass.size, dtype=np.int64)
    constant, total, rest, room = np.empty(S), np.empty(S), np.empty(S), np.empty(S)
    here, moved, n = 0.0, 0, 0
    for t in range(tries + 1):
        old = point.numbers[SHAPE]
        if t > 0:
            copy_table(point.old_line, point.line)
            copy_table(point.old_weights, point.line_weights)
            propose(memory, b, features, Line(point.line, point.line_weights, point.numbers), rng, outside)
            n = rescore_block(held, point, features, groups)
        a = point.numbers[SHAPE]
        total_weights(point.line_weights, features, inside, outside)
        if t == 0 and not whole and largest(outside) < DEAD:
            return 0
        if t == 0 or whole:
            law_constants(memory, b, outside, a, constant, total, rest)
        mass = mass_of(point)
        there = log_importance(target, memory, features, point.line, mass, inside, a, constant, total, rest, room)
        if t == 0:
            here = there
            continue
        if -rng.standard_exponential() < there - here + judge(held, point, respond, n):
            here = there
            moved += 1
            accept(held, point, n)
        else:
            copy_table(point.line, point.old_line)
            copy_table(point.line_weights, point.old_weights)
            point.numbers[SHAPE] = old
            for k in range(groups.size):
                if groups[k] != 0:
                    weigh(point, k)
    return moved


def learn(rows: object, log_weights: Array, shapes: Array, mirror: Integers, learn_shape: bool) -> Laws:
    """Learn laws from states (chain, draw, K, p) and their a; a block is a few weights, each with its mirror."""
    C, R, K, p = log_weights.shape
    M = K * p
    if C * R < 2 or M > WIDE:
        return nothing(M)
    sweeps = counted_sweeps(rows, log_weights, shapes, seed=C * R)
    whole = remember(sweeps, 1, [np.arange(M)], np.ones(1), learn_shape)
    mirrors = (np.arange(K)[:, None] * p + mirror).ravel() if mirror.size else mirror
    blocks, chance = slow_blocks(sweeps, C, mirrors, M)
    return Laws(whole, remember(sweeps, 1, blocks, chance, learn_shape) if blocks else nothing(M).parts)


def counted_sweeps(rows: object, log_weights: Array, shapes: Array, seed: int) -> Sweeps:
    """Run one sampled pass from each of the states (chain, draw, K, p).

    Given Λ, a weight has the rate b + s/Λ; at the prior mean aM/b of Λ this is proportional to s + aM.
    """
    C, R, K, p = log_weights.shape
    S = C * R
    theta = log_weights.reshape(S, K, p)
    wins, log_exposure = np.empty((S, K * p)), np.empty((S, K * p))
    for s, key in enumerate(np.random.default_rng(seed).integers(0, 1 << 62, S)):
        stats = rows.sample(Weights.point(theta[s]), int(key))  # type: ignore[attr-defined]
        exposure = stats.exposure.ravel() + shapes.ravel()[s] * K * p
        wins[s], log_exposure[s] = stats.wins.ravel(), np.log(exposure / exposure.mean())
    chain = np.repeat(np.arange(C), R) if C > 1 else np.arange(S) * 2 // S  # halves of a single chain
    return Sweeps(theta.reshape(S, -1), np.log(shapes).ravel(), wins, log_exposure, chain)
