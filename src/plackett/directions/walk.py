"""What advances the chains over directions, for the long run and for the short ones of held-out rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from plackett.compute.compiled import jit
from plackett.compute.pieces import cores
from plackett.directions.density import density_of, log_density
from plackett.directions.prior import Prior, size
from plackett.inference import hmc
from plackett.inference.driver import Chain
from plackett.inference.hmc import TOO_FAR, Flight, land, launch, leap, push, step_of
from plackett.inference.store import Portion
from plackett.model.race import Array

if TYPE_CHECKING:
    from plackett.directions.task import DirectionTask


def walking(log_density: Callable[..., float]) -> Any:
    """`plackett.inference.hmc.walk_on` around a compiled density, without Python."""

    @jit
    def walk_on(density, walk, rng, ends, longest, tuning, draws, values):
        D = len(walk.position)
        flight = Flight(np.empty(D), np.empty(D), np.empty(D), np.empty(D))
        value = log_density(walk.position, flight.gradient, density)
        for t in range(len(draws)):
            step, old_value = step_of(walk, tuning), value
            energy = launch(walk, flight, value, rng)
            for _ in range(1 + int(rng.random() * longest)):
                leap(walk, flight, step)
                value = log_density(walk.position, flight.gradient, density)
                if not value > old_value - TOO_FAR:
                    break
                push(flight, step)
            if not land(walk, flight, energy, value, rng, ends, tuning):
                value = old_value
            values[t] = value
            for i in range(D):
                draws[t, i] = walk.position[i]

    return walk_on


walk_on = walking(log_density)


class HamiltonianSampler:
    """Advances chains, whose states are a `Walk`, on the posterior of the directions."""

    def __init__(self, task: DirectionTask, prior: Prior, tune: int, longest: int):
        self.rows, self.prior, self.longest = task.prepared(np.float32), prior, longest
        self.n_columns, self.ends = task.n_columns, hmc.windows(tune)
        self.walk_on = task.compiled_walk(self.rows, prior)
        self.workers = 1 if self.walk_on is None else cores()

    def advance(self, chain: Chain, tuning: bool, position: Array, value: Array) -> None:
        """Fill `position` (n, D), and `value` with log-densities."""
        if not self.prior.totals or not len(position):
            self._walk(chain, tuning, position, value)
            return
        from plackett.directions.scales import renew_scales

        for t in range(len(position)):
            renew_scales(chain.state.position, self.n_columns, self.prior, chain.rng)
            self._walk(chain, tuning, position[t : t + 1], value[t : t + 1])

    def _walk(self, chain: Chain, tuning: bool, position: Array, value: Array) -> None:
        how = chain.state, chain.rng, self.ends, self.longest, tuning, position, value
        if self.walk_on is None:
            hmc.walk_on(density_of(self.rows, self.prior, self.n_columns), *how)
        else:
            self.walk_on(*how)

    def adapt(self, chains: list[Chain], states: Portion, done: float) -> None:
        """Chains share their mass: what one has learned of a coordinate holds for the others.

        By slopes it is the mean of the masses, so that what is narrow for one chain is taken for narrow.
        """
        found = np.array([chain.state.variance[hmc.INVERSE_MASS] for chain in chains])
        shared = 1 / (1 / found).mean(axis=0) if self.prior.totals else found.mean(axis=0)
        for chain in chains:
            chain.state.variance[hmc.INVERSE_MASS] = shared


def load_kernels(task: DirectionTask, prior: Prior) -> None:
    """No iteration at all, in this thread: where it has to compile, Ctrl-C is heard."""
    D = size(prior, task.n_columns)
    runner = HamiltonianSampler(task, prior, 0, 1)
    runner.advance(Chain(hmc.begin(np.zeros(D)), np.random.default_rng(0)), False, np.empty((0, D)), np.empty(0))
