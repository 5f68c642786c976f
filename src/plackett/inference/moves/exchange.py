"""Sampler of weights over rows of classes: sweeps and exact moves, fully compiled."""

from __future__ import annotations

import numpy as np

from plackett.compute.pieces import cores
from plackett.engines.numba import PanelRows
from plackett.inference.base import Problem
from plackett.inference.chains import Begin, WeightChain
from plackett.inference.moves.chain import make_chain
from plackett.inference.moves.memory import Laws, learn, nothing
from plackett.inference.moves.rows import lay_out
from plackett.inference.moves.schedule import adapted_plan, first_plan, iterations
from plackett.inference.store import Portion
from plackett.inference.sweeps import Target, make_room
from plackett.model.race import Array


class ExchangeSampler:
    """Sweeps and exact moves over rows of classes (`plackett.inference.moves`)."""

    def __init__(self, rows: PanelRows, problem: Problem, target: Target, budget: float, begin: Begin | None = None):
        K = rows.n_groups
        self.panels = rows.panels
        self.columns = lay_out(rows.features, rows.codes, K, problem.mirrors, rows.counts)
        self.target, self.budget, self.n_groups, self.begin = target, budget, K, begin
        self.plan = first_plan(self.columns, K)
        self.laws = nothing(rows.n_features)
        self.workers = cores()

    def advance(self, chain: WeightChain, tuning: bool, log_weights: Array, shape: Array, value: Array) -> None:
        """Advance a chain, which consists of its state and random numbers; the caches are scratch."""
        theta, numbers = chain.state
        cached = make_chain(theta, numbers, self.columns)
        room = make_room(self.panels, self.n_groups)
        iterations(self.panels, self.columns, cached, chain.rng, self.target, self.plan, self.laws,
            room, chain.runs, chain.gains, tuning, log_weights, shape, value,
        )  # fmt: skip

    def adapt(self, chains: list[WeightChain], states: Portion, done: float) -> None:
        """In the first half of tuning, restart the chains, so that more modes are found than one chain would find.

        Later, learn laws for the leaps from the states, and one plan for all chains from the statistics of their moves.
        """
        if done < 0.5:
            if self.begin is not None:
                for chain in chains:
                    for array, new in zip(chain.state, self.begin(chain.rng), strict=True):
                        array[...] = new
            return
        later = states["shape"].shape[1] // (2 if done == 1.0 else 4)
        log_weights, shapes = states["log_weights"][:, later:], states["shape"][:, later:]
        self.laws = self.learned(log_weights, shapes)
        self.plan = self.planned(np.sum([c.runs for c in chains], axis=0), np.sum([c.gains for c in chains], axis=0))

    def learned(self, log_weights: Array, shapes: Array) -> Laws:
        """Learn laws for the leaps."""
        return learn(self.panels, log_weights, shapes, self.columns.mirror, self.target.learn)

    def planned(self, runs: Array, gains: Array) -> Array:
        """Plan the moves from their statistics."""
        return adapted_plan(self.columns, self.n_groups, self.laws, runs, gains, self.budget)
