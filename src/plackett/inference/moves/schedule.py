"""One iteration: a Gibbs sweep, then every move a planned number of times; the plan is adapted in tuning only."""

from __future__ import annotations

import math

import numpy as np

from plackett.compiled import FAST, jit
from plackett.inference.moves.chain import refresh
from plackett.inference.moves.mirror import mirror
from plackett.inference.moves.rows import Columns
from plackett.inference.moves.shape import draw_shape_collapsed, redraw_inactive
from plackett.inference.moves.weights import FLIP, FLIP_NEAR, NEAR, UNIFORM, coordinate, exchange
from plackett.inference.sweeps import LOG_MASS, SHAPE, State, draw_mass, draw_weights, log_add, race
from plackett.model.race import Array

NAMES = ("redraw", "coordinate", "swap", "swap near", "flip", "flip near", "mirror")
REDRAW, COORDINATE, SWAP, SWAP_NEAR, FLIP_ONE, FLIP_CLOSE, MIRROR = range(len(NAMES))
WORK = np.array([4.0, 4.0, 5.0, 5.0, 6.0, 6.0, 12.0])  # passes over n rows that a run of a move costs, about
OVERHEAD = 300.0  # rows' worth of work that a run costs besides


def first_plan(columns: Columns, n_classes: int) -> Array:
    """Runs of each move in an iteration, before any adaptation."""
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


def cost(columns: Columns, plan: Array) -> float:
    """Work of the moves of an iteration as a multiple of a plain sweep's, in operations counted and not timed."""
    p, n = columns.W.shape
    sweep = n * (2.5 * p + 40.0)
    return float(plan @ (WORK * n + OVERHEAD)) / sweep


def adapted_plan(columns: Columns, plan: Array, runs: Array, gains: Array, budget: float) -> Array:
    """More runs for moves that moved much for their work, fewer for the others, within the budget.

    A function of what happened in tuning; counts and not clocks, so that a seed gives the same draws on any machine.
    """
    p, n = columns.W.shape
    effect = np.where(runs > 0, gains / np.maximum(runs, 1.0), 0.0) / (WORK * n + OVERHEAD)
    used = (plan > 0) & (np.arange(len(plan)) != REDRAW)
    if used.any() and effect[used].max() > 0:
        typical = np.exp(np.mean(np.log(np.maximum(effect[used], 1e-6 * effect[used].max()))))
        factor = np.sqrt(np.maximum(effect, 1e-6 * effect[used].max()) / typical)
        plan = np.where(used, plan * np.clip(factor, 0.25, 4.0), plan)
    excess = cost(columns, plan) / budget
    return plan / excess if excess > 1 else plan


@jit(fastmath=FAST, forceinline=True)
def movement(new, old, level):
    """Σ of squared changes of λ/(λ + level): how much a move changed which weights are active."""
    x, y = new.reshape(new.size), old.reshape(old.size)
    total = 0.0
    for i in range(x.size):
        change = x[i] / (x[i] + level) - y[i] / (y[i] + level)
        total += change * change
    return total


@jit
def run_move(columns, chain, rng, target, move):
    """One run of one move."""
    if move == REDRAW:
        return redraw_inactive(columns, chain, rng, target)
    if move == COORDINATE:
        return coordinate(columns, chain, rng)
    if move == SWAP:
        return exchange(columns, chain, rng, UNIFORM)
    if move == SWAP_NEAR:
        return exchange(columns, chain, rng, NEAR)
    if move == FLIP_ONE:
        return exchange(columns, chain, rng, FLIP)
    if move == FLIP_CLOSE:
        return exchange(columns, chain, rng, FLIP_NEAR)
    return mirror(columns, chain, rng)


@jit
def sweep(panels, chain, rng, target, room):
    """The paper's sweep (11) to (13), with a drawn given C and Z and λ integrated out; returns ln L before it."""
    state = State(chain.theta, chain.numbers)
    key = np.uint64(rng.integers(0, 1 << 62))
    value = race(panels, chain.theta, key, room)
    if target.learn:
        K, p = chain.theta.shape
        exposures = 0.0
        for j in range(p):
            exposures -= K * log_add(0.0, math.log(room.exposure[j] / target.rate) - chain.numbers[LOG_MASS])
        chain.numbers[SHAPE] = draw_shape_collapsed(rng, target, room.wins, exposures, chain.numbers[SHAPE])
    draw_weights(rng, state, room.wins, room.exposure, target.rate)
    return value


@jit
def iterations(panels, columns, chain, rng, target, plan, room, runs, gains, watch, draws, shapes, values):
    """Record the state, sweep, run the moves, and so on until `draws` is full.

    Every iteration starts from θ and a alone: Λ is drawn and the caches are made afresh, so that a chain can be
    stopped between iterations and go on as if it had not been.
    """
    size = chain.theta.size
    for t in range(shapes.size):
        draws[t] = chain.theta
        shapes[t] = chain.numbers[SHAPE]
        draw_mass(rng, State(chain.theta, chain.numbers), target.rate)
        values[t] = sweep(panels, chain, rng, target, room)
        refresh(columns, chain)
        for move in range(plan.size):
            for _ in range(int(plan[move] + rng.random())):
                if watch:
                    chain.scratch[:] = chain.weights.reshape(size)
                    before = chain.scratch.copy()
                    if run_move(columns, chain, rng, target, move):
                        gains[move] += movement(chain.weights, before, 0.1 * chain.mass[0] / size)
                    runs[move] += 1.0
                else:
                    run_move(columns, chain, rng, target, move)
        refresh_theta(chain)


@jit
def refresh_theta(chain):
    """Shift θ so that Λ = 1."""
    top = chain.theta.max()
    total = 0.0
    for value in chain.theta.flat:
        total += math.exp(value - top)
    chain.theta[:] -= top + math.log(total)
