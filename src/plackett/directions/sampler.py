"""Chains over (β, λ) and their scales: the driver of the Gibbs sampler around a Hamiltonian walk."""

from __future__ import annotations

from typing import Any

import numpy as np

from plackett.directions.learning import lengths
from plackett.directions.prior import Prior, size
from plackett.directions.stacking import choose_scale, stacked_mode
from plackett.directions.task import ClassTask, DirectionTask
from plackett.directions.walk import MANY, make_sampler
from plackett.inference.base import Fit, open_ended
from plackett.inference.driver import Chain, Run
from plackett.inference.gibbs import Gibbs
from plackett.inference.hmc import windows
from plackett.inference.limits import Clock
from plackett.inference.store import SURE, Portion
from plackett.model.diagnostics import Diagnostics, Report, diagnose
from plackett.model.race import Array


class DirectionRun(Run):
    """One run of the chains, new or continued from a checkpoint."""

    def __init__(
        self,
        settings: Gibbs,
        task: DirectionTask,
        prior: Prior,
        longest: int,
        clock: Clock,
        open_ended: bool = False,
    ):
        self.task, self.prior = task, prior
        runner = make_sampler(task, prior, settings.tune, longest)
        generators = [np.random.default_rng(seed) for seed in task.seed.spawn(settings.chains)]
        walks = runner.begin([task.start(prior, rng) for rng in generators])
        chains = [Chain(*each) for each in zip(walks, generators, strict=True)]
        identity = (*task.identity, *prior, longest, *(["flying"] if task.flies else []))
        shapes = {"position": (size(prior, task.n_columns),), "value": ()}
        super().__init__(settings, task, runner, chains, shapes, identity, clock, open_ended)

    def _begin_tuning(self) -> None:
        """With many rows, or totals apart, chains share their mass as soon as it is renewed.

        The posterior is narrow then: a step that was found with a chain's own mass can be too long for that of all,
        and the chain would stand still.
        """
        super()._begin_tuning()
        if self.task.n_seen >= MANY or self.prior.totals:
            self.milestones |= {int(end) for end in windows(self.settings.tune) if end < self.settings.tune}

    def posterior(self) -> Any:
        """The draws so far."""
        return self.task.unpacked(self.draws()["position"], self.prior)

    def probe(self, draws: Portion) -> Array:
        """Predictive probabilities of some observations, of a limited number of draws at a time."""
        positions = draws["position"]
        parts = (positions[:, start : start + SURE] for start in range(0, positions.shape[1], SURE))
        found = [self.task.probed(self.task.unpacked(part, self.prior)) for part in parts]
        return found[0] if len(found) == 1 else np.concatenate(found, axis=1)

    def measure_predictions(self) -> Diagnostics | None:
        """Nothing else is measured."""
        found: Diagnostics | None = self.diagnose()
        return found

    def measure(self, report: Report | None) -> Diagnostics | None:
        """R-hat and ESS of predictive probabilities: components have no identity across chains."""
        return diagnose(report, probability=self.probe(self.draws()))


def sample(settings: Gibbs, task: ClassTask, learned: Any, shape: float) -> tuple[Fit, ClassTask]:
    """The posterior of directions and weights, with a mode stacked beside it."""
    goes_on, settings = open_ended(settings), settings.completed(**lengths(task.wide, task.n_seen))
    clock = Clock(settings.max_seconds)
    task, held_out = choose_scale(task, learned, shape, settings.tune, clock)
    mode = None if held_out is None else stacked_mode(task, learned, shape, held_out, clock)
    owned = learned.owned(task.n_classes, few=held_out is None)
    prior = learned.prior(task.n_classes, task.n_columns, shape, owned)
    run = DirectionRun(settings, task, prior, learned.longest(task.wide), clock, goes_on)
    return drawn(run, mode, shape), task


def drawn(run: DirectionRun, mode: tuple[Any, float, float] | None, shape: float) -> Fit:
    """What a run leaves behind, with the mode, its weight and κ beside the draws."""
    draws, posterior = run.run(stacklevel=6), run.posterior()
    return Fit(
        posterior if mode is None else posterior.with_mode(*mode),
        shape=shape,
        trace=draws["value"],
        n_iter=run.settings.tune + run.store.iterations,
        extra={"diagnostics_": run.diagnose(), "inference_": run.settings},
    )
