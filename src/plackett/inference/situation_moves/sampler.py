"""Sampler of weights over situations: sweeps and exact moves, for any response."""

from __future__ import annotations

import numpy as np

from plackett.compute.pieces import cores
from plackett.engines.numba import CompiledSituations
from plackett.inference.base import Problem
from plackett.inference.chains import Begin, WeightChain
from plackett.inference.moves.exchange import ExchangeSampler
from plackett.inference.moves.memory import Laws, nothing
from plackett.inference.situation_moves.cache import hold, make_point
from plackett.inference.situation_moves.leap import learn
from plackett.inference.situation_moves.schedule import adapted_plan, first_plan, run_moves
from plackett.inference.situation_moves.shape import after_pass, renew_mass
from plackett.inference.sweeps import SHAPE, Target
from plackett.model.race import Array, Weights


class SituationExchange(ExchangeSampler):
    """Sweeps and exact moves over situations; chains run in parallel, each on one thread."""

    def __init__(
        self, rows: CompiledSituations, problem: Problem, target: Target, budget: float, begin: Begin | None = None
    ):
        rows.set_threads(1)
        self.rows, self.held = rows, hold(rows, problem.mirrors)
        self.target, self.budget, self.begin = target, budget, begin
        self.plan = first_plan(self.held, budget)
        self.laws = nothing(rows.n_groups * rows.n_features)
        self.workers = cores()

    def advance(self, chain: WeightChain, tuning: bool, log_weights: Array, shape: Array, value: Array) -> None:
        """Repeat: record the state, sweep, run the moves. (11) to (13), with a drawn while λ is integrated out."""
        (theta, numbers), rng, target = chain.state, chain.rng, self.target
        point = make_point(theta, numbers, self.held)
        moves = self.held, point, self.rows.response.expect_block, rng, target, self.plan, *self.laws
        for t in range(len(shape)):
            log_weights[t], shape[t] = theta, numbers[SHAPE]
            renew_mass(rng, theta, numbers, target)
            stats = self.rows.sample(Weights.point(theta), int(rng.integers(0, 1 << 62)))
            value[t] = stats.value
            after_pass(rng, theta, numbers, stats.wins, np.ascontiguousarray(stats.exposure), target)
            run_moves(*moves, chain.runs, chain.gains, tuning)

    def learned(self, log_weights: Array, shapes: Array) -> Laws:
        """Learn laws for the leaps."""
        return learn(self.rows, log_weights, shapes, self.held.mirror, self.target.learn)

    def planned(self, runs: Array, gains: Array) -> Array:
        """Plan the moves from their statistics."""
        return adapted_plan(self.held, self.laws, runs, gains, self.budget)
