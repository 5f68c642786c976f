"""One iteration over situations: a sweep, then every move a planned number of times; adapted in tuning only.

Work is counted and never timed, so that a seed gives the same draws anywhere.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from plackett.compute.compiled import NOTHING, REAL, REALS, RNG, TRUTH, WHOLE, apart
from plackett.inference.moves.leap import MEMORY
from plackett.inference.moves.memory import Laws
from plackett.inference.moves.schedule import (
    COORDINATE,
    FLIP_CLOSE,
    FLIP_ONE,
    LEAP,
    NAMES,
    PART,
    REDRAW,
    REDRAWS,
    SWAP,
    SWAP_NEAR,
    how_often,
    leap_shares,
)
from plackett.inference.situation_moves.cache import HELD, POINT, RESPONSE, Held, refresh
from plackett.inference.situation_moves.leap import leap
from plackett.inference.situation_moves.shape import redraw_inactive
from plackett.inference.situation_moves.weight_moves import coordinate, exchange
from plackett.inference.sweeps import TARGET, normalise
from plackett.model.race import Array

# Nanoseconds of a usual machine.
A_VALUE = 7.0  # V, of an entry
A_TIE = 600.0  # V, of an entry that shares its place: a sum over orders
A_RATE, A_PRODUCT = 5.0, 0.2  # the rate of an entry, and of each of its features
AN_ENTRY, AN_ARRIVAL = (10.0, 1.0), (50.0, 4.0)  # of an entry in a sweep, and of one that is placed; of each feature
A_WEIGHT = 100.0  # a Gamma
A_SWEEP, A_CALL = 80_000.0, 100_000.0  # what a sweep costs besides, and going over to the moves
A_RUN = 700.0  # of any move
A_LAW, A_TILT = 100.0, 1.2  # of a law, and each weight of it in a leap
SLICES = 3.0  # points that a slice looks at, apart from those where the weight is dead
IN_A_PART = 3.0  # groups that a part touches

FIRST = {COORDINATE: 0.5, SWAP: 0.1, SWAP_NEAR: 0.2, FLIP_ONE: 0.2, FLIP_CLOSE: 0.2}  # shares of the work
ENOUGH = 1.0  # runs of a move in an iteration for each weight


class Works(NamedTuple):
    """What a run of each move costs, and a plain sweep, and what an iteration costs besides both: the caches."""

    moves: Array
    sweep: float
    upkeep: float


def works(held: Held, n_laws: int) -> Works:
    """Counted from the entries, those of a group, and those of the situations that a group is in."""
    K, p, E = len(held.placed), held.W.shape[1], len(held.group)
    M, sizes = K * p, held.outcomes.sizes
    tied = float(sizes[sizes > 1].sum())
    value, rate = A_VALUE + A_TIE * tied / E, A_RATE + A_PRODUCT * p
    of_group, whole = rate * E / K, value * E
    everything = rate * E + whole
    around = value * float(np.diff(held.outcomes.start)[held.situation].sum()) / K  # V of the situations of a group
    moves = np.full(len(NAMES), A_RUN)
    moves[REDRAW] += everything + A_WEIGHT * M
    moves[COORDINATE] += of_group + SLICES * around
    moves[[SWAP, SWAP_NEAR]] += of_group + around
    moves[[FLIP_ONE, FLIP_CLOSE]] += 2 * of_group + min(2 * around, whole)
    moves[LEAP] += everything + A_WEIGHT * M + n_laws * (A_LAW + A_TILT * M)
    moves[PART] += IN_A_PART * of_group + min(IN_A_PART * around, whole) + n_laws * (A_LAW + 0.1 * A_TILT * M)
    sweep = E * (AN_ENTRY[0] + AN_ENTRY[1] * p) + sizes.sum() * (AN_ARRIVAL[0] + AN_ARRIVAL[1] * p) + 1.5 * A_TIE * tied
    return Works(moves, float(sweep) + A_WEIGHT * M + A_SWEEP, everything + A_WEIGHT * M + A_CALL)


def first_plan(held: Held, budget: float) -> Array:
    """Runs of each move in an iteration, before any adaptation and without leaps."""
    work = works(held, 0)
    left = max(budget * work.sweep - work.upkeep, 0.1 * budget * work.sweep)
    plan = np.zeros(len(NAMES))
    plan[REDRAW] = min(1.0, 0.3 * left / work.moves[REDRAW])
    left -= plan[REDRAW] * work.moves[REDRAW]
    return fill(held, plan, shares(held), work.moves, left)


def shares(held: Held) -> Array:
    """Of the work for small moves, at first."""
    share = np.zeros(len(NAMES))
    for move, part in FIRST.items():
        share[move] = part
    if not held.near.size:
        share[[SWAP_NEAR, FLIP_CLOSE]] = 0.0
    if not held.mirror.size:
        share[[FLIP_ONE, FLIP_CLOSE]] = 0.0
    if share[FLIP_CLOSE]:
        share[FLIP_ONE] = 0.0
    return share


def fill(held: Held, plan: Array, share: Array, work: Array, left: float) -> Array:
    """The plan with so much work for the small moves, as far as they are of use."""
    most = ENOUGH * len(held.placed) * held.W.shape[1]
    return plan + np.minimum(share / share.sum() * left / work, most * (share > 0))


def adapted_plan(held: Held, laws: Laws, runs: Array, gains: Array, budget: float) -> Array:
    """More runs for moves that moved much for their work, fewer for the others, within the budget."""
    work = works(held, laws.whole.won.size)
    left = max(budget * work.sweep - work.upkeep, 0.1 * budget * work.sweep)
    plan, part = np.zeros(len(NAMES)), leap_shares(laws, runs, gains)
    plan[LEAP:] = part * left / work.moves[LEAP:]
    left -= part.sum() * left
    plan[REDRAW] = min(REDRAWS, 0.5 * left / work.moves[REDRAW])
    left -= plan[REDRAW] * work.moves[REDRAW]
    share = shares(held)
    effect = np.divide(gains, runs * work.moves, out=np.zeros(len(plan)), where=runs > 0)
    used = share > 0
    if effect[used].max() > 0:
        effect = np.maximum(effect, 1e-6 * effect[used].max())
        share *= np.clip(np.sqrt(effect / np.exp(np.log(effect[used]).mean())), 0.25, 4.0)
    return fill(held, plan, share, work.moves, left)


@apart(REAL(HELD, POINT, RESPONSE, RNG, TARGET, MEMORY, MEMORY, WHOLE, WHOLE))
def run_move(held, point, respond, rng, target, whole, parts, move, tries):
    """One run of one move, in which leaps are tried several times; returns how far, or how often, it moved."""
    if move == REDRAW:
        return 1.0 if redraw_inactive(held, point, respond, rng, target) else 0.0
    if move == COORDINATE:
        return coordinate(held, point, respond, rng)
    if move < LEAP:
        return exchange(held, point, respond, rng, move - SWAP)
    return float(leap(held, point, respond, rng, target, whole if move == LEAP else parts, tries))


@apart(NOTHING(HELD, POINT, RESPONSE, RNG, TARGET, REALS, MEMORY, MEMORY, REALS, REALS, TRUTH))
def run_moves(held, point, respond, rng, target, plan, whole, parts, runs, gains, tuning):
    """Caches from θ, and every move as often as planned.

    Every iteration starts from θ and a alone, so that a chain can be stopped between iterations and go on as if it had
    not been.
    """
    refresh(held, point, respond)
    for move in range(plan.size):
        times, tries = how_often(plan, move, rng.random())
        for _ in range(times):
            moved = run_move(held, point, respond, rng, target, whole, parts, move, tries)
            if tuning:
                runs[move] += tries
                gains[move] += moved
    normalise(point.theta)
