"""What advances the chains over directions, for the long run and for the short ones of held-out rows."""

from __future__ import annotations

import numpy as np

from plackett.directions.gradient import Panels, pack
from plackett.directions.hmc import advance, begin, windows
from plackett.directions.prior import Prior, make_target, size
from plackett.directions.task import Task
from plackett.inference.driver import Chain
from plackett.inference.store import Portion
from plackett.model.race import Array


class HamiltonianSampler:
    """Advances chains, whose states are a `Walk`, on the posterior of the directions."""

    def __init__(self, panels: Panels, prior: Prior, tune: int, longest: int):
        from plackett.engines.numba import cores

        self.panels, self.prior, self.longest = panels, prior, longest
        self.ends = windows(tune)
        self.workers = cores()

    def advance(self, chain: Chain, tuning: bool, position: Array, value: Array) -> None:
        """Fill `position` (n, D), and `value` with log-densities."""
        target = make_target(self.panels, self.prior)
        advance(chain.state, chain.rng, target, self.ends, self.longest, tuning, position, value)

    def adapt(self, chains: list[Chain], states: Portion, done: float) -> None:
        """Step and mass are each chain's own."""


def load_kernels(task: Task, prior: Prior) -> None:
    """No iteration at all, in this thread: where it has to compile, Ctrl-C is heard."""
    D = size(prior, task.Z.shape[1])
    runner = HamiltonianSampler(pack(task.Z, task.codes, task.weight), prior, 0, 1)
    runner.advance(Chain(begin(np.zeros(D)), np.random.default_rng(0)), False, np.empty((0, D)), np.empty(0))
