"""Chains over (β, λ) and their scales: the driver of the Gibbs sampler around a Hamiltonian walk."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from plackett.compiled import call
from plackett.directions.diagnostics import DirectionDiagnostics, advice, diagnose
from plackett.directions.gradient import Panels, pack
from plackett.directions.hmc import Walk, advance, begin, windows
from plackett.directions.positions import unpacked
from plackett.directions.posterior import DirectionDraws
from plackett.directions.prior import Prior, make_target, size
from plackett.directions.stacking import choose_scale, stack
from plackett.directions.starts import start
from plackett.directions.task import Task
from plackett.inference.base import Fit
from plackett.inference.checkpoint import Journal, fingerprint
from plackett.inference.gibbs import Gibbs, Run
from plackett.inference.store import Portion, Store
from plackett.model.race import Array

LENGTH = {"draws": 250, "tune": 250}


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
        call(advance, chain.state, chain.rng, target, self.ends, self.longest, tuning, draws[:, 0], values)
        shapes[:] = np.nan

    def adapt(self, chains: list[Walker], seen: Portion, done: float) -> None:
        """Step and mass are each chain's own."""


class DirectionRun(Run):
    """One run of the chains, new or continued from a checkpoint."""

    def __init__(self, settings: Gibbs, task: Task, prior: Prior, longest: int):
        self.settings, self.task, self.prior = settings, task, prior
        self.problem = task  # type: ignore[assignment]
        self.runner = HamiltonianSampler(pack(task.Z, task.codes, task.weight), prior, settings.tune, longest)  # type: ignore[assignment]
        d = task.Z.shape[1]
        generators = [np.random.default_rng(seed) for seed in task.seed.spawn(settings.chains)]
        self.chains = [Walker(begin(start(task, prior, rng)), rng) for rng in generators]  # type: ignore[misc]
        capacity = settings.draws if settings.target_ess is None else 2 * settings.draws
        self.store = Store(settings.chains, capacity, (1, size(prior, d)))
        self._begin_tuning((1, size(prior, d)))
        self.found: tuple[int, DirectionDiagnostics | None] = (-1, None)  # type: ignore[assignment]
        self.journal: Journal | None = None
        if settings.checkpoint is not None:
            same = [settings.draws, settings.tune, settings.chains, settings.target_ess is None, longest]
            seed = task.seed.entropy if task.seeded else None
            self._open(fingerprint(task.Z, task.codes, task.weight, seed, *prior, *same))

    def posterior(self) -> DirectionDraws:
        """The draws so far."""
        return unpacked(self.store.filled().log_weights[:, :, 0], self.prior, self.task.Z.shape[1])

    def diagnose(self) -> DirectionDiagnostics | None:  # type: ignore[override]
        """R-hat and ESS of predictive probabilities of the draws so far."""
        if self.found[0] != self.store.iterations:
            self.found = (self.store.iterations, diagnose(self.posterior(), self.task.Z))
        return self.found[1]


def _completed(settings: Gibbs) -> Gibbs:
    """The settings with lengths that suit this sampler; those of the other one are refused."""
    usual = Gibbs().get_params(deep=False)
    for name in ("moves", "shape_prior", "move_budget"):
        if getattr(settings, name) != usual[name]:
            raise ValueError(
                f"Gibbs({name}) is a setting of the sampler for fixed features, and there is nothing to set with "
                f"features='learned'. Leave it out, or add features='exp' for the paper's model."
            )
    return settings.completed(**LENGTH)


def sample(settings: Gibbs, task: Task, learned: Any, shape: float) -> tuple[Fit, Task]:
    """The posterior of directions and weights, with a mode stacked beside it; a run cut short goes without."""
    settings = _completed(settings)
    task, held_out = choose_scale(task, learned, shape, settings.tune, settings.draws)
    run = DirectionRun(settings, task, learned.prior(task.n_classes, shape), learned.leapfrogs)
    try:
        word = run.go()
    finally:
        run.close()
    if run.store.count == 0:
        raise KeyboardInterrupt("interrupted while tuning: there are no draws to keep")
    posterior, found = run.posterior(), run.diagnose()
    if word is None:
        posterior = stack(posterior, task, learned, shape, held_out)
    word = word or advice(found, run.store.count, settings.target_ess)
    if word:
        warnings.warn(word, ConvergenceWarning, stacklevel=5)
    fit = Fit(
        posterior,  # type: ignore[arg-type]
        shape=shape,
        trace=run.store.filled().value,
        n_iter=settings.tune + run.store.iterations,
        extra={"diagnostics_": found},
    )
    return fit, task
