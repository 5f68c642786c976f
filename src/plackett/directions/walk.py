"""Samplers that advance the chains over directions, in the main run and in the short runs of held-out folds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize

from plackett.compute.pieces import cores
from plackett.directions import flights
from plackett.directions.density import compiled_walk, density_of, make_kernels
from plackett.directions.prior import Prior, size
from plackett.directions.scales import renew_scales
from plackett.directions.task import Task
from plackett.engines.cupy_directions import CupyDirections
from plackett.inference import hmc
from plackett.inference.driver import Chain
from plackett.inference.store import Portion
from plackett.model.race import Array

MANY = 5000  # observations from which chains start near modes, and share their mass
CLIMB, GAIN = 1000, 0.1  # iterations of L-BFGS, and the smallest gain in log-density worth another
AT_ONCE = 8  # concurrent chains if passes are remote
NARROW = 200.0  # prior variance of a coordinate, times the number of observations, if there are many


class HamiltonianSampler:
    """Advance chains, whose states are `Walk`s, on the posterior of the directions."""

    def __init__(self, task: Task, prior: Prior, tune: int, longest: int):
        self.rows, self.prior, self.longest = task.prepared(task.precision), prior, longest
        self.n_columns, self.ends = task.n_columns, hmc.windows(tune)
        self.n_seen = task.n_seen
        self.narrow = prior.totals or self.n_seen >= MANY  # True if the posterior is narrow
        self.walk_on = compiled_walk(self.rows, prior, task.n_columns, task.precision)
        self.workers = AT_ONCE if task.is_remote else 1 if self.walk_on is None else cores()

    def begin(self, positions: list[Array], up: Callable[[], bool] | None = None) -> list[hmc.Walk]:
        """Start chains at positions, or near modes for many observations; optimisation ends when `up` is true.

        A mode far below another, by more than their widths can compensate, is replaced by that one.
        """
        if self.n_seen < MANY or self.prior.totals:
            return [hmc.begin(position, by_slopes=self.narrow) for position in positions]
        places, values = zip(*(self._uphill(position, up) for position in positions), strict=True)
        best = int(np.argmax(values))
        chosen = [c if value > values[best] - len(places[c]) else best for c, value in enumerate(values)]
        return [hmc.begin(places[c].copy(), NARROW / self.n_seen, self.narrow) for c in chosen]

    def _uphill(self, position: Array, up: Callable[[], bool] | None) -> tuple[Array, float]:
        """Return a position near the mode above a position, and its log-density."""

        def note(_: Array) -> None:
            if up is not None and up():
                raise StopIteration

        density, gradient = density_of(self.rows, self.prior, self.n_columns), np.empty_like(position)

        def objective(q: Array) -> tuple[float, Array]:
            return -density(q, gradient) / self.n_seen, -gradient / self.n_seen

        limits = {"maxiter": CLIMB, "maxfun": CLIMB, "maxcor": 20, "ftol": GAIN / self.n_seen}
        found = minimize(objective, position, jac=True, method="L-BFGS-B", callback=note, options=limits)
        return found.x, -found.fun * self.n_seen

    def advance(self, chain: Chain, tuning: bool, position: Array, value: Array) -> None:
        """Fill `position` (n, D), and `value` with log-densities."""
        if not self.narrow or not len(position):
            self._walk(chain, tuning, position, value)
            return
        for t in range(len(position)):
            renew_scales(chain.state.position, self.n_columns, self.prior, chain.rng)
            self._walk(chain, tuning, position[t : t + 1], value[t : t + 1])

    def _walk(self, chain: Chain, tuning: bool, position: Array, value: Array) -> None:
        how = chain.state, chain.rng, self.ends, self.longest, tuning, position, value
        if self.walk_on is None:
            hmc.walk_on(density_of(self.rows, self.prior, self.n_columns), *how)
        else:
            self.walk_on(*how)

    def advance_all(self, chains: list[Chain], tuning: bool, position: Array, value: Array) -> None:
        """Fill `position` (chain, n, D), and `value` (chain, n)."""
        for c, chain in enumerate(chains):
            self.advance(chain, tuning, position[c], value[c])

    def adapt(self, chains: list[Chain], states: Portion, done: float) -> None:
        """Share the mass among chains: what one has learned of a coordinate holds for the others.

        For a narrow posterior the masses are averaged, so that a coordinate that is narrow in one chain is narrow in
        all.
        """
        found = np.array([chain.state.variance[hmc.INVERSE_MASS] for chain in chains])
        shared = 1 / (1 / found).mean(axis=0) if self.narrow else found.mean(axis=0)
        for chain in chains:
            chain.state.variance[hmc.INVERSE_MASS] = shared


class FlyingTogether(HamiltonianSampler):
    """Sampler that moves all chains in step on the GPU, if the rows of the engine allow it."""

    rows: Any

    def begin(self, positions: list[Array], up: Callable[[], bool] | None = None) -> list[hmc.Walk]:
        """Start chains at modes if rows are many."""
        if self._many:
            return flights.begin_at_modes(self.rows, self.prior, positions)
        return super().begin(positions, up)

    def advance_together(self, chains: list[Chain], tuning: bool, position: Array, value: Array) -> None:
        """Fill `position` (chain, n, D), and `value` (chain, n) with log-densities."""
        how = [chain.state for chain in chains], [chain.rng for chain in chains], self.ends, self.longest, tuning
        flights.walk_together(self.rows, self.prior, *how, position, value, self._many, self._renewal)

    advance_all = advance_together

    def advance(self, chain: Chain, tuning: bool, position: Array, value: Array) -> None:
        """Fill the arrays of one chain."""
        self.advance_together([chain], tuning, position[None], value[None])

    @property
    def _many(self) -> bool:
        return flights.are_many(self.rows)

    @property
    def _renewal(self) -> flights.Renewal | None:
        """Renewal of scales over situations with a narrow posterior, or None."""
        if not self.narrow or isinstance(self.rows, CupyDirections):
            return None
        return lambda position, rng: renew_scales(position, self.n_columns, self.prior, rng)


def make_sampler(task: Task, prior: Prior, tune: int, longest: int) -> HamiltonianSampler:
    """Return the sampler for the rows of the task's engine."""
    kind = FlyingTogether if task.on_gpu else HamiltonianSampler
    return kind(task, prior, tune, longest)


def load_kernels(task: Task, prior: Prior) -> None:
    """Compile kernels by zero iterations in this thread, where Ctrl-C is noticed."""
    D = size(prior, task.n_columns)
    runner = make_sampler(task, prior, 0, 1)
    packed = runner.rows.packed_for(len(prior.owner), task.precision)
    if packed is not None:
        make_kernels(packed, *([renew_scales] if runner.narrow else []))
    runner.advance(Chain(hmc.begin(np.zeros(D)), np.random.default_rng(0)), False, np.empty((0, D)), np.empty(0))
