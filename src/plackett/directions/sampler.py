"""Chains over (β, λ) and their scales: the driver of the Gibbs sampler around a Hamiltonian walk."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from plackett.compute.pieces import cores
from plackett.directions.density import density_of, make_density
from plackett.directions.diagnostics import DirectionDiagnostics, advice, diagnose
from plackett.directions.learning import LENGTH
from plackett.directions.positions import unpacked
from plackett.directions.posterior import DirectionDraws
from plackett.directions.prior import Prior, size
from plackett.directions.stacking import choose_scale, stacked_mode
from plackett.directions.starts import start
from plackett.directions.task import Task
from plackett.directions.walk import walk_on as compiled_walk
from plackett.inference.base import Fit
from plackett.inference.driver import INTERRUPTED, Run
from plackett.inference.gibbs import Gibbs
from plackett.inference.hmc import Walk, begin, walk_on, windows
from plackett.inference.limits import Clock
from plackett.inference.store import Portion
from plackett.model.race import Array


@dataclass
class Walker:
    """A chain as the driver knows it: arrays that a checkpoint keeps, and a generator."""

    state: Walk
    rng: np.random.Generator
    runs: Array = field(default_factory=lambda: np.empty(0))
    gains: Array = field(default_factory=lambda: np.empty(0))


class HamiltonianSampler:
    """Advances walkers on the posterior of the directions."""

    def __init__(self, task: Task, prior: Prior, tune: int, longest: int):
        from plackett.engines.exponential import ExponentialRows

        self.rows, self.prior, self.longest = task.prepared(np.float32), prior, longest
        self.n_columns, self.ends = task.Z.shape[1], windows(tune)
        self.compiled = isinstance(self.rows, ExponentialRows) and not self.rows.large(len(prior.owner))
        self.workers = cores() if self.compiled else 1

    def advance(self, chain: Walker, tuning: bool, draws: Array, shapes: Array, values: Array) -> None:
        """Fill `draws` (n, 1, D) with positions and `values` with log-densities."""
        how = chain.state, chain.rng, self.ends, self.longest, tuning, draws[:, 0], values
        if self.compiled:
            compiled_walk(make_density(self.rows.packed, self.prior), *how)  # type: ignore[attr-defined]
        else:
            walk_on(density_of(self.rows, self.prior, self.n_columns), *how)
        shapes[:] = np.nan

    def adapt(self, chains: list[Walker], seen: Portion, done: float) -> None:
        """Step and mass are each chain's own."""


def load_kernels(task: Task, prior: Prior) -> None:
    """No iteration at all, in this thread: where it has to compile, Ctrl-C is heard."""
    D = size(prior, task.Z.shape[1])
    runner = HamiltonianSampler(task, prior, 0, 1)
    walker = Walker(begin(np.zeros(D)), np.random.default_rng(0))
    runner.advance(walker, False, np.empty((0, 1, D)), np.empty(0), np.empty(0))


class DirectionRun(Run):
    """One run of the chains, new or continued from a checkpoint."""

    def __init__(self, settings: Gibbs, task: Task, prior: Prior, longest: int, clock: Clock):
        self.task, self.prior = task, prior
        runner = HamiltonianSampler(task, prior, settings.tune, longest)
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
    run = DirectionRun(settings, task, learned.prior(task.n_classes, task.Z.shape[1], shape), learned.leapfrogs, clock)
    try:
        end = run.go()
    finally:
        run.close()
    posterior, found = run.posterior(), run.diagnose()
    word = run.kept() if end == INTERRUPTED else advice(found, settings, end)
    if word:
        warnings.warn(word, ConvergenceWarning, stacklevel=5)
    fit = Fit(
        posterior if mode is None else posterior.with_mode(*mode),  # type: ignore[arg-type]
        shape=shape,
        trace=run.draws().value,
        n_iter=settings.tune + run.store.iterations,
        extra={"diagnostics_": found},
    )
    return fit, task
