"""Chains over (β, λ) and their scales: the driver of the Gibbs sampler around a Hamiltonian walk."""

from __future__ import annotations

from typing import Any

import numpy as np

from plackett.directions.learning import LENGTH
from plackett.directions.positions import unpacked
from plackett.directions.prior import Prior, size
from plackett.directions.stacking import choose_scale, stacked_mode
from plackett.directions.starts import start
from plackett.directions.task import Task
from plackett.directions.walk import make_sampler
from plackett.inference.base import Fit
from plackett.inference.driver import Chain, Run
from plackett.inference.gibbs import USUAL, Gibbs
from plackett.inference.hmc import begin
from plackett.inference.limits import Clock
from plackett.posterior.diagnostics import Diagnostics, diagnose, probed
from plackett.posterior.directions import DirectionDraws, probabilities


class DirectionRun(Run):
    """One run of the chains, new or continued from a checkpoint."""

    def __init__(self, settings: Gibbs, task: Task, prior: Prior, longest: int, clock: Clock, open_ended: bool = False):
        self.task, self.prior = task, prior
        runner = make_sampler(task, prior, settings.tune, longest)
        generators = [np.random.default_rng(seed) for seed in task.seed.spawn(settings.chains)]
        chains = [Chain(begin(start(task, prior, rng)), rng) for rng in generators]
        identity = (task.Z, task.codes, task.weight, *prior, longest)
        shapes = {"position": (size(prior, task.Z.shape[1]),), "value": ()}
        super().__init__(settings, task, runner, chains, shapes, identity, clock, open_ended)

    def posterior(self) -> DirectionDraws:
        """The draws so far."""
        return unpacked(self.draws()["position"], self.prior, self.task.Z.shape[1])

    def measure(self) -> Diagnostics | None:
        """R-hat and ESS of predictive probabilities: components have no identity across chains."""
        return diagnose(probability=probabilities(self.posterior(), self.task.Z[probed(len(self.task.Z))]))


def sample(settings: Gibbs, task: Task, learned: Any, shape: float) -> tuple[Fit, Task]:
    """The posterior of directions and weights, with a mode stacked beside it."""
    open_ended = settings.draws is None and settings.target_ess is None
    usual = LENGTH if settings.target_ess is None else LENGTH | {"max_draws": USUAL["max_draws"]}
    settings = settings.completed(**usual)
    clock = Clock(settings.max_seconds)
    task, held_out = choose_scale(task, learned, shape, settings.tune, clock)
    mode = None if held_out is None else stacked_mode(task, learned, shape, held_out, clock)
    prior = learned.prior(task.n_classes, task.Z.shape[1], shape)
    run = DirectionRun(settings, task, prior, learned.leapfrogs, clock, open_ended)
    draws, posterior = run.run(stacklevel=5), run.posterior()
    fit = Fit(
        posterior if mode is None else posterior.with_mode(*mode),
        shape=shape,
        trace=draws["value"],
        n_iter=settings.tune + run.store.iterations,
        extra={"diagnostics_": run.diagnose(), "inference_": settings},
    )
    return fit, task
