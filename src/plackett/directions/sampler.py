"""Chains over (β, λ) and their scales: the driver of the Gibbs sampler around a Hamiltonian walk."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from plackett.directions.diagnostics import DirectionDiagnostics, advice, diagnose
from plackett.directions.gradient import Panels, pack
from plackett.directions.hmc import Walk, advance, begin, windows
from plackett.directions.learning import LENGTH
from plackett.directions.positions import unpacked
from plackett.directions.prior import Prior, make_target, size
from plackett.directions.stacking import choose_scale, stacked_mode
from plackett.directions.starts import start
from plackett.directions.task import Task
from plackett.inference.base import Fit
from plackett.inference.driver import INTERRUPTED, Run
from plackett.inference.gibbs import Gibbs
from plackett.inference.limits import Clock
from plackett.inference.store import Portion
from plackett.model.race import Array
from plackett.posterior.directions import DirectionDraws


@dataclass
class Walker:
    """A chain as the driver knows it: arrays that a checkpoint keeps, and a generator."""

    state: Walk
    rng: np.random.Generator
    runs: Array = field(default_factory=lambda: np.empty(0))
    gains: Array = field(default_factory=lambda: np.empty(0))


class HamiltonianSampler:
    """Advances walkers on the posterior of the directions."""

    def __init__(self, panels: Panels, prior: Prior, tune: int, longest: int):
        from plackett.engines.numba import cores

        self.panels, self.prior, self.longest = panels, prior, longest
        self.ends = windows(tune)
        self.workers = cores()

    def advance(self, chain: Walker, tuning: bool, draws: Array, shapes: Array, values: Array) -> None:
        """Fill `draws` (n, 1, D) with positions and `values` with log-densities."""
        target = make_target(self.panels, self.prior)
        advance(chain.state, chain.rng, target, self.ends, self.longest, tuning, draws[:, 0], values)
        shapes[:] = np.nan

    def adapt(self, chains: list[Walker], seen: Portion, done: float) -> None:
        """Step and mass are each chain's own."""


def load_kernels(task: Task, prior: Prior) -> None:
    """No iteration at all, in this thread: where it has to compile, Ctrl-C is heard."""
    D = size(prior, task.Z.shape[1])
    runner = HamiltonianSampler(pack(task.Z, task.codes, task.weight), prior, 0, 1)
    walker = Walker(begin(np.zeros(D)), np.random.default_rng(0))
    runner.advance(walker, False, np.empty((0, 1, D)), np.empty(0), np.empty(0))


class DirectionRun(Run):
    """One run of the chains, new or continued from a checkpoint."""

    def __init__(self, settings: Gibbs, task: Task, prior: Prior, longest: int, clock: Clock):
        self.task, self.prior = task, prior
        runner = HamiltonianSampler(pack(task.Z, task.codes, task.weight), prior, settings.tune, longest)
        generators = [np.random.default_rng(seed) for seed in task.seed.spawn(settings.chains)]
        chains = [Walker(begin(start(task, prior, rng)), rng) for rng in generators]
        identity = (task.Z, task.codes, task.weight, *prior, longest)
        super().__init__(settings, task, runner, chains, (1, size(prior, task.Z.shape[1])), identity, clock)

    def posterior(self) -> DirectionDraws:
        """The draws so far."""
        return unpacked(self.store.filled().log_weights[:, :, 0], self.prior, self.task.Z.shape[1])

    def measure(self) -> DirectionDiagnostics | None:
        """R-hat and ESS of predictive probabilities of the draws so far."""
        return diagnose(self.posterior(), self.task.Z)


def sample(settings: Gibbs, task: Task, learned: Any, shape: float) -> tuple[Fit, Task]:
    """The posterior of directions and weights, with a mode stacked beside it."""
    settings = settings.completed(**LENGTH)
    clock = Clock(settings.max_seconds)
    task, held_out = choose_scale(task, learned, shape, settings.tune, clock)
    mode = None if held_out is None else stacked_mode(task, learned, shape, held_out, clock)
    run = DirectionRun(settings, task, learned.prior(task.n_classes, shape), learned.leapfrogs, clock)
    try:
        end = run.go()
    finally:
        run.close()
    posterior, found = run.posterior(), run.diagnose()
    word = run.kept() if end == INTERRUPTED else advice(found, settings, end)
    if word:
        warnings.warn(word, ConvergenceWarning, stacklevel=5)
    fit = Fit(
        posterior if mode is None else posterior.with_mode(*mode),
        shape=shape,
        trace=run.draws().value,
        n_iter=settings.tune + run.store.iterations,
        extra={"diagnostics_": found},
    )
    return fit, task
