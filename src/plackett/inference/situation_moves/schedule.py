"""Schedule of an iteration over situations: a sweep, then a planned number of runs of every move.

Plans adapt during tuning only. Work is counted and never timed, so that a seed gives the same draws on every machine.
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
from plackett.inference.situation_moves.cache import HELD, POINT, RESPONSE, MovedSituations, refresh
from plackett.inference.situation_moves.leap import leap
from plackett.inference.situation_moves.shape import redraw_inactive
from plackett.inference.situation_moves.weight_moves import coordinate, exchange
from plackett.inference.sweeps import TARGET, normalise
from plackett.model.race import Array

# Costs in nanoseconds on a typical machine.
A_VALUE = 7.0  # V, per entry
A_TIE = 600.0  # V, per tied entry: a sum over orders
A_RATE, A_PRODUCT = 5.0, 0.2  # the rate of an entry; per feature
AN_ENTRY, AN_ARRIVAL = (10.0, 1.0), (50.0, 4.0)  # in a sweep, per entry; per placed entry; each (base, per feature)
A_WEIGHT = 100.0  # a Gamma
A_SWEEP, A_CALL = 80_000.0, 100_000.0  # fixed cost of a sweep, and of starting the moves
A_RUN = 700.0  # fixed cost of a move
A_LAW, A_TILT = 100.0, 1.2  # in a leap, per law; per weight of it
SLICES = 3.0  # evaluations of a slice, except where the weight is inactive
IN_A_PART = 3.0  # groups that a partial leap touches

FIRST = {COORDINATE: 0.5, SWAP: 0.1, SWAP_NEAR: 0.2, FLIP_ONE: 0.2, FLIP_CLOSE: 0.2}  # initial shares of the work
ENOUGH = 1.0  # maximum runs of a move per iteration and weight


class Works(NamedTuple):
    """Cost of a run of each move, of a plain sweep, and of the caches per iteration."""

    moves: Array
    sweep: float
    upkeep: float


def works(held: MovedSituations, n_laws: int) -> Works:
    """Estimate costs from the numbers of entries, of entries per group, and of entries in a group's situations."""
    K, p, E = len(held.placed), held.W.shape[1], len(held.group)
    M, sizes = K * p, held.outcomes.sizes
    tied = float(sizes[sizes > 1].sum())
    value, rate = A_VALUE + A_TIE * tied / E, A_RATE + A_PRODUCT * p
    of_group, whole = rate * E / K, value * E
    everything = rate * E + whole
    around = value * float(np.diff(held.outcomes.start)[held.situation].sum()) / K  # V of all situations of a group
    moves = np.full(len(NAMES), A_RUN)
    moves[REDRAW] += everything + A_WEIGHT * M
    moves[COORDINATE] += of_group + SLICES * around
    moves[[SWAP, SWAP_NEAR]] += of_group + around
    moves[[FLIP_ONE, FLIP_CLOSE]] += 2 * of_group + min(2 * around, whole)
    moves[LEAP] += everything + A_WEIGHT * M + n_laws * (A_LAW + A_TILT * M)
    moves[PART] += IN_A_PART * of_group + min(IN_A_PART * around, whole) + n_laws * (A_LAW + 0.1 * A_TILT * M)
    sweep = E * (AN_ENTRY[0] + AN_ENTRY[1] * p) + sizes.sum() * (AN_ARRIVAL[0] + AN_ARRIVAL[1] * p) + 1.5 * A_TIE * tied
    return Works(moves, float(sweep) + A_WEIGHT * M + A_SWEEP, everything + A_WEIGHT * M + A_CALL)


def first_plan(held: MovedSituations, budget: float) -> Array:
    """Return the runs of each move per iteration before any adaptation, without leaps."""
    work = works(held, 0)
    left = max(budget * work.sweep - work.upkeep, 0.1 * budget * work.sweep)
    plan = np.zeros(len(NAMES))
    plan[REDRAW] = min(1.0, 0.3 * left / work.moves[REDRAW])
    left -= plan[REDRAW] * work.moves[REDRAW]
    return fill(held, plan, shares(held), work.moves, left)


def shares(held: MovedSituations) -> Array:
    """Return initial shares of the work of small moves."""
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


def fill(held: MovedSituations, plan: Array, share: Array, work: Array, left: float) -> Array:
    """Return the plan with the given work for the small moves, as far as they are useful."""
    most = ENOUGH * len(held.placed) * held.W.shape[1]
    return plan + np.minimum(share / share.sum() * left / work, most * (share > 0))


def adapted_plan(held: MovedSituations, laws: Laws, runs: Array, gains: Array, budget: float) -> Array:
    """Return a plan within the budget, with more runs for moves that moved more for their work."""
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
    """Run one move once (leaps several times); return its distance, or its number of acceptances."""
    if move == REDRAW:
        return 1.0 if redraw_inactive(held, point, respond, rng, target) else 0.0
    if move == COORDINATE:
        return coordinate(held, point, respond, rng)
    if move < LEAP:
        return exchange(held, point, respond, rng, move - SWAP)
    return float(leap(held, point, respond, rng, target, whole if move == LEAP else parts, tries))


@apart(NOTHING(HELD, POINT, RESPONSE, RNG, TARGET, REALS, MEMORY, MEMORY, REALS, REALS, TRUTH))
def run_moves(held, point, respond, rng, target, plan, whole, parts, runs, gains, tuning):
    """Compute the caches from θ, and run every move as often as planned.

    Every iteration starts from θ and a alone, so that a chain can be stopped between iterations and continued.
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
