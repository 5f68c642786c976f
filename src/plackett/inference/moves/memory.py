"""Laws for the leaps from the states of tuning: which states, how wide, and for which blocks.

Everything here is a function of the stored states, independent of time and of later states of the chains.
"""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaln, logsumexp

from plackett.inference.moves.leap import Integers, Memory
from plackett.inference.sweeps import make_room, race
from plackett.model.race import Array

WIDER = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)  # divisors of wins: laws must be wider than the observed states
CHANCE = (0, 2, 8, 32)  # wins up to one of these count as none: another state may lack that weight
SPREAD = 0.5  # spread of ln a around a stored one, in standard deviations of ln a
SIZES = (2, 3, 5)  # variables in a block
WINDOWS = 8  # windows per chain, over which activity is averaged to find slow variables
WIDE = 2000  # number of weights beyond which no laws are learned
PROBED = 6  # number of blocks used to choose the width of laws


class Sweeps(NamedTuple):
    """S sweeps: their initial states and their statistics."""

    theta: Array  # (S, M) ln λ̄, M = Kp
    log_shape: Array  # (S,)
    wins: Array  # (S, M) n
    log_exposure: Array  # (S, M) ln s of each weight's feature
    chain: Integers  # (S,)


class Laws(NamedTuple):
    """Laws learned during tuning, for leaps of all features and of parts."""

    whole: Memory
    parts: Memory


def counted_sweeps(panels: object, log_weights: Array, shapes: Array, seed: int) -> Sweeps:
    """Run one sampled pass from each of the states (chain, draw, K, p)."""
    C, R, K, p = log_weights.shape
    S, room = C * R, make_room(panels, K)
    theta = np.ascontiguousarray(log_weights.reshape(S, K, p))
    wins, exposure = np.empty((S, K * p)), np.empty((S, p))
    for s, key in enumerate(np.random.default_rng(seed).integers(0, 1 << 62, S)):
        race(panels, theta[s], np.uint64(key), room)
        wins[s], exposure[s] = room.wins.ravel(), room.exposure[0] / room.exposure.mean()
    chain = np.repeat(np.arange(C), R) if C > 1 else np.arange(S) * 2 // S  # halves of a single chain
    return Sweeps(theta.reshape(S, -1), np.log(shapes).ravel(), wins, np.tile(np.log(exposure), K), chain)


def log_laws(laws: Sweeps, kappa: Array, spread: float, block: Array, theta: Array, log_shape: Array) -> Array:
    """ln q_s(θ_B | θ_−B) of `Memory` at points θ (T, M) and ln a (T,), up to a constant: (T, S).

    κ (S, M) is 0 where a law has no wins; the block is 1 at its weights and 0 elsewhere.
    """
    a, idle, others = np.exp(log_shape)[:, None], (kappa == 0) * 1.0, 1.0 - block
    A = kappa.sum(axis=1) + a * idle.sum(axis=1)
    A_others = kappa @ others + a * (idle @ others)
    theta = theta - theta.max(axis=1, keepdims=True)
    weights, exposure = np.exp(theta), np.exp(laws.log_exposure)
    known = kappa * laws.log_exposure - np.where(kappa > 0, gammaln(np.where(kappa > 0, kappa, 1.0)), 0.0)
    value = gammaln(A) + known @ block + a * ((idle * laws.log_exposure) @ block) - (idle @ block) * gammaln(a)
    value += theta @ (kappa * block).T + a * (theta @ (idle * block).T) - A * np.log(weights @ exposure.T)
    if others.any():
        value += A_others * np.log(weights @ (exposure * others).T + 1e-300) - gammaln(A_others)
    elif spread > 0:
        value -= 0.5 * ((log_shape[:, None] - laws.log_shape) / spread) ** 2
    return value


def slow_blocks(sweeps: Sweeps, n_chains: int, mirror: Integers, n_features: int) -> tuple[list[Integers], Array]:
    """Return blocks of variables that change slowly and together, and how often to try each block.

    Activity λ/(λ + level) is averaged over windows; the covariance of the averages shows what mixes last. Each variable
    (a feature with its mirror) leads a block of variables with correlated averages, and is tried in proportion to its
    variance.
    """
    M = sweeps.theta.shape[1]
    weights = np.exp(sweeps.theta)
    activity = (weights / (weights + 0.1 / M)).reshape(n_chains, -1, M)
    length = max(activity.shape[1] // WINDOWS, 1)
    windows = activity[:, : activity.shape[1] // length * length].reshape(n_chains, -1, length, M).mean(axis=2)
    means = windows.reshape(-1, M) - windows.mean(axis=(0, 1))
    head = np.minimum(np.arange(n_features), mirror) if mirror.size else np.arange(n_features)
    variables = np.unique(head)
    squares = np.einsum("wi,wj->ij", means, means) ** 2
    of = [np.flatnonzero(np.tile(head, M // n_features) == v) for v in variables]
    rows = np.array([squares[i].sum(axis=0) for i in of])
    together = np.sqrt(np.array([rows[:, i].sum(axis=1) for i in of]))
    blocks, chance = [], []
    for size in SIZES:
        if size < len(variables):
            for v, row in enumerate(together):
                chosen = np.argsort(-np.where(np.arange(len(row)) == v, np.inf, row), kind="stable")[:size]
                blocks.append(np.flatnonzero(np.isin(head, variables[chosen])))
                chance.append(row[v] + 1e-3 * together.trace() / len(row) + 1e-12)
    return blocks, np.array(chance)


def remember(sweeps: Sweeps, n_classes: int, blocks: list[Integers], chance: Array, learn: bool) -> Memory:
    """Learn laws whose width and sparsity maximise the likelihood of each chain's states under those of the others."""
    p = sweeps.theta.shape[1] // n_classes
    spread = max(SPREAD * float(sweeps.log_shape.std()), 0.01) if learn else 0.0
    masks = [np.tile(np.isin(np.arange(p), block), n_classes) * 1.0 for block in blocks]
    likeliest = np.argsort(-chance, kind="stable")[:PROBED]
    of_others = np.where(sweeps.chain[:, None] != sweeps.chain, 0.0, -np.inf)
    shapes, heights = [], []
    for wider, chances in product(WIDER, CHANCE):
        kappa = np.where(sweeps.wins > chances, np.exp(sweeps.log_shape)[:, None] + sweeps.wins / wider, 0.0)
        found = [log_laws(sweeps, kappa, spread, masks[b], sweeps.theta, sweeps.log_shape) for b in likeliest]
        shapes.append(kappa)
        heights.append(sum(float(np.median(logsumexp(value + of_others, axis=1))) for value in found))
    return tables(sweeps, shapes[int(np.argmax(heights))], spread, n_classes, blocks, chance)


def tables(
    sweeps: Sweeps, kappa: Array, spread: float, n_classes: int, blocks: list[Integers], chance: Array
) -> Memory:
    """Arrange laws and blocks in tables for the leap."""
    S, p = len(kappa), kappa.shape[1] // n_classes
    won = kappa > 0

    def in_blocks(values: Array) -> Array:
        table = values.reshape(S, n_classes, p)
        return np.array([table[:, :, block].sum(axis=(1, 2)) for block in blocks]).reshape(len(blocks), S)

    known = np.where(won, kappa * sweeps.log_exposure - gammaln(np.where(won, kappa, 1.0)), 0.0)
    return Memory(
        exposure=np.ascontiguousarray(np.exp(sweeps.log_exposure[:, :p]).T),
        kappa=np.ascontiguousarray(kappa.T),
        taken=np.ascontiguousarray(won.T * 1.0),
        won=kappa.sum(axis=1),
        idle=(~won).sum(axis=1) * 1.0,
        block=np.cumsum([0, *(len(block) for block in blocks)]),
        feature=np.concatenate([*blocks, np.empty(0, dtype=np.int64)]).astype(np.int64),
        chance=np.cumsum(chance) / np.cumsum(chance)[-1:],
        block_won=in_blocks(kappa),
        block_idle=in_blocks(np.where(won, 0.0, 1.0)),
        block_known=in_blocks(known),
        block_rate=in_blocks(np.where(won, 0.0, sweeps.log_exposure)),
        log_shape=sweeps.log_shape,
        spread=np.array([spread]),
    )


def nothing(n_features: int) -> Laws:
    """Return empty laws, with which leaps do nothing."""
    none = np.empty((0, n_features))
    empty = tables(Sweeps(none, np.empty(0), none, none, np.empty(0, np.int64)), none, 0.0, 1, [], np.empty(0))
    return Laws(empty, empty)


def learn(panels: Any, log_weights: Array, shapes: Array, mirror: Integers, learn_shape: bool) -> Laws:
    """Learn laws from states (chain, draw, K, p) and their a.

    Sums that a chain computes with avoid library matrix products, whose last bits depend on threads.
    """
    C, R, K, p = log_weights.shape
    if C * R < 2 or K * p > WIDE:
        return nothing(p)
    sweeps = counted_sweeps(panels, log_weights, shapes, seed=C * R)
    whole = remember(sweeps, K, [np.arange(p)], np.ones(1), learn_shape)
    blocks, chance = slow_blocks(sweeps, C, mirror, p)
    return Laws(whole, remember(sweeps, K, blocks, chance, learn_shape) if blocks else nothing(p).parts)
