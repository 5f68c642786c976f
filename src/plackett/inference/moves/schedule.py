"""Schedule of an iteration: a Gibbs sweep, then a planned number of runs of every move; adapts during tuning only."""

from __future__ import annotations

import math

import numpy as np

from plackett.compute.compiled import REAL, RNG, WHOLE, apart, inner, jit, record
from plackett.engines.panels import FLOAT_PANELS, PANELS
from plackett.inference.moves.chain import CHAIN, refresh
from plackett.inference.moves.leap import MEMORY, leap
from plackett.inference.moves.memory import Laws
from plackett.inference.moves.mirror import mirror
from plackett.inference.moves.rows import COLUMNS, MoveColumns, copy_table
from plackett.inference.moves.shape import draw_shape_collapsed, redraw_inactive
from plackett.inference.moves.weight_moves import coordinate, exchange
from plackett.inference.sweeps import (
    LOG_MASS,
    ROOM,
    SHAPE,
    TARGET,
    State,
    draw_mass,
    draw_weights,
    key_from,
    log_add,
    normalise,
    race,
)
from plackett.model.race import Array

NAMES = ("redraw", "coordinate", "swap", "swap near", "flip", "flip near", "mirror", "leap", "part")
REDRAW, COORDINATE, SWAP, SWAP_NEAR, FLIP_ONE, FLIP_CLOSE, MIRROR, LEAP, PART = range(len(NAMES))

# Cost of a run of each move in nanoseconds on a typical machine: counted and never timed, so that a seed gives the
# same draws on every machine. Leaps and redraws use all weights, leaps all laws; for parts, the cost of one try.
A_RUN = np.array([500.0, 800.0, 1000.0, 1000.0, 1400.0, 1400.0, 2500.0, 2000.0, 2500.0])
A_ROW = np.array([3.0, 1.3, 1.4, 1.4, 2.3, 2.3, 3.5, 3.0, 3.0])
A_WEIGHT = np.array([50.0, 0, 0, 0, 0, 0, 0, 90.0, 0])
A_PRODUCT = np.array([0.05, 0, 0, 0, 0, 0, 0, 0.05, 0])  # per row and weight
A_LAW = np.array([0, 0, 0, 0, 0, 0, 0, 20.0, 10.0])
COLD = 1.3  # the costs above are of repeated runs of one move; interleaved moves take longer

LAWS = record(Laws, MEMORY, MEMORY)
REDRAWS = 0.3  # redraws per iteration after tuning, where the sweep draws a too
IN_A_ROW = 2  # tries of the same block, which share the constants of the laws
UNKNOWN = np.array([0.3, 0.2])  # shares of the budget for full and partial leaps before any was tried
MOST = np.array([0.6, 0.4])  # their shares if nearly all are accepted
WORTHLESS = np.array([0.02, 0.01])  # acceptance rate from which they are worth their work


def works(columns: MoveColumns, n_classes: int, n_laws: int) -> Array:
    """Estimate the cost of a run of each move."""
    p, n = columns.W.shape
    M = n_classes * p
    return COLD * (A_RUN + n * (A_ROW + A_PRODUCT * M) + A_WEIGHT * M + A_LAW * n_laws)


def sweep_work(columns: MoveColumns, n_classes: int) -> float:
    """Estimate the cost of a plain sweep."""
    p, n = columns.W.shape
    return n * (0.35 * p + 4.0) + 60.0 * n_classes * p + 1800.0


def upkeep(columns: MoveColumns, n_classes: int) -> float:
    """Estimate the cost of an iteration besides sweep and moves: a with λ integrated out, and the caches."""
    p, n = columns.W.shape
    M = n_classes * p
    return n * (2.0 + 0.06 * M) + 50.0 * M + 1500.0


def first_plan(columns: MoveColumns, n_classes: int) -> Array:
    """Return the runs of each move per iteration before any adaptation, without leaps."""
    p = columns.W.shape[0]
    plan = np.zeros(len(NAMES))
    plan[REDRAW] = 1.0
    plan[COORDINATE] = n_classes * p / (4 if n_classes == 2 else 8)
    if p > 1:
        plan[SWAP] = p / 16 if n_classes == 2 else p / 4
    if columns.near.size:
        plan[SWAP_NEAR] = p / 4
    if columns.mirror.size:
        plan[FLIP_CLOSE if columns.near.size else FLIP_ONE] = p / 8
        plan[MIRROR] = p / 4 if n_classes == 2 else p / 16
    return plan


def leap_shares(laws: Laws, runs: Array, gains: Array) -> Array:
    """Return the shares of the budget for full and partial leaps, which increase with their acceptance rates."""
    tried = np.maximum(runs[LEAP:], 1.0)
    worth = np.maximum(1.0 - WORTHLESS * tried / np.maximum(gains[LEAP:], 1e-9), 0.0)
    share = np.where(runs[LEAP:] > 0, MOST * worth, UNKNOWN)
    share *= [laws.whole.won.size > 0, laws.parts.won.size > 0]
    share[1] *= 1.0 - (share[0] / MOST[0]) ** 2  # if full leaps succeed, partial leaps are not needed
    return share


def adapted_plan(columns: MoveColumns, n_classes: int, laws: Laws, runs: Array, gains: Array, budget: float) -> Array:
    """Return a plan within the budget, with more runs for moves that moved more for their work."""
    work = works(columns, n_classes, laws.whole.won.size)
    plan, budget = first_plan(columns, n_classes), budget * sweep_work(columns, n_classes)
    budget = max(budget - upkeep(columns, n_classes), 0.1 * budget)
    share = leap_shares(laws, runs, gains)
    plan[LEAP:] = share * budget / work[LEAP:]
    budget -= share.sum() * budget
    plan[REDRAW] = min(REDRAWS, 0.5 * budget / work[REDRAW])
    budget -= plan[REDRAW] * work[REDRAW]
    small = slice(COORDINATE, LEAP)
    effect = np.divide(gains, runs * work, out=np.zeros(len(plan)), where=runs > 0)[small]
    used = plan[small] > 0
    if used.any() and effect[used].max() > 0:
        effect = np.maximum(effect, 1e-6 * effect[used].max())
        typical = np.exp(np.log(effect[used]).mean())
        plan[small] *= np.clip(np.sqrt(effect / typical), 0.25, 4.0)
    plan[small] /= max(float(plan[small] @ work[small]) / budget, 1.0)
    return plan


@inner
def movement(weights, before, level):
    """Return Σ of squared changes of λ/(λ + level), which measures how a move changed the set of active weights."""
    result = 0.0
    for k in range(weights.shape[0]):
        for j in range(weights.shape[1]):
            change = weights[k, j] / (weights[k, j] + level) - before[k, j] / (before[k, j] + level)
            result += change * change
    return result


@apart(WHOLE(COLUMNS, CHAIN, RNG, TARGET, LAWS, WHOLE, WHOLE), allocates=True)
def run_move(columns, chain, rng, target, laws, move, tries):
    """Run one move once (leaps several times); return the number of acceptances."""
    if move == REDRAW:
        return int(redraw_inactive(columns, chain, rng, target))
    if move == COORDINATE:
        return int(coordinate(columns, chain, rng))
    if move == MIRROR:
        return int(mirror(columns, chain, rng))
    if move < LEAP:
        return int(exchange(columns, chain, rng, move - SWAP))
    return leap(columns, chain, rng, target, laws.whole if move == LEAP else laws.parts, tries)


@apart(REAL(PANELS, CHAIN, RNG, TARGET, ROOM), REAL(FLOAT_PANELS, CHAIN, RNG, TARGET, ROOM), allocates=True)
def sweep(panels, chain, rng, target, room):
    """Do the paper's sweep (11) to (13), with a drawn given C and Z and λ integrated out; return ln L before it."""
    state = State(chain.theta, chain.numbers)
    value = race(panels, chain.theta, key_from(rng), room)
    if target.learn:
        K, p = chain.theta.shape
        exposures = 0.0
        for j in range(p):
            exposures -= K * log_add(0.0, math.log(room.exposure[0, j] / target.rate) - chain.numbers[LOG_MASS])
        chain.numbers[SHAPE] = draw_shape_collapsed(rng, target, room.wins, exposures, chain.numbers[SHAPE])
    draw_weights(rng, state, room.wins, room.exposure, target.rate)
    return value


@inner
def how_often(plan, move, u):
    """Return whole numbers of runs and of tries per run whose product equals the plan on average."""
    tries = IN_A_ROW if move == PART else 1
    times = int(plan[move] / tries + u)
    return (min(times, 1), times) if move == LEAP else (times, tries)


@jit
def iterations(panels, columns, chain, rng, target, plan, laws, room, runs, gains, tuning, draws, shapes, values):
    """Record the state, sweep and run the moves, until `draws` is full.

    Every iteration starts from θ and a alone: Λ is drawn and the caches are recomputed, so that a chain can be stopped
    between iterations and continued.
    """
    before = np.empty(chain.theta.shape)
    for t in range(shapes.size):
        copy_table(draws[t], chain.theta)
        shapes[t] = chain.numbers[SHAPE]
        draw_mass(rng, State(chain.theta, chain.numbers), target.rate)
        values[t] = sweep(panels, chain, rng, target, room)
        refresh(columns, chain)
        for move in range(plan.size):
            times, tries = how_often(plan, move, rng.random())
            for _ in range(times):
                if tuning:
                    copy_table(before, chain.weights)
                moved = run_move(columns, chain, rng, target, laws, move, tries)
                if tuning:
                    runs[move] += tries
                    if move >= LEAP:
                        gains[move] += moved
                    elif moved:
                        gains[move] += movement(chain.weights, before, 0.1 * chain.mass[0] / chain.theta.size)
        normalise(chain.theta)
