"""Chains over (β, λ) and their scales: the driver of the Gibbs sampler with a Hamiltonian walk."""

from __future__ import annotations

import numpy as np

from plackett.directions.prior import Prior, size
from plackett.directions.task import Task
from plackett.directions.walk import MANY, make_sampler
from plackett.inference.driver import Chain, Run
from plackett.inference.gibbs import Gibbs
from plackett.inference.hmc import windows
from plackett.inference.limits import BEGUN, Clock
from plackett.inference.store import SURE, Portion
from plackett.model.diagnostics import Diagnostics, Report, diagnose
from plackett.model.mixture import POOLED, Mode, Stacked, contributions
from plackett.model.race import Array
from plackett.model.verdict import PROBABILITIES

FEW_DRAWS = 10_000  # draws of all chains


class DirectionRun(Run):
    """Run of the chains, new or continued from a checkpoint.

    `mode` is stacked with the draws in predictions: a mode, its weight and κ.
    """

    averaged = POOLED
    most = 0  # number of probabilities per draw to diagnose

    def __init__(
        self,
        settings: Gibbs,
        task: Task,
        prior: Prior,
        longest: int,
        clock: Clock,
        open_ended: bool = False,
        mode: tuple[Mode, float, float] | None = None,
    ):
        self.task, self.prior, self.mode = task, prior, mode
        runner = make_sampler(task, prior, settings.tune, longest)
        generators = [np.random.default_rng(seed) for seed in task.seed.spawn(settings.chains)]
        walks = runner.begin(task.starts(prior, generators), lambda: clock.past(BEGUN))
        chains = [Chain(*each) for each in zip(walks, generators, strict=True)]
        identity = (*task.identity, *prior, longest, *(["flying"] if task.on_gpu else []))
        shapes = {"position": (size(prior, task.n_columns),), "value": ()}
        super().__init__(settings, task, runner, chains, shapes, identity, clock, open_ended)

    def _begin_tuning(self) -> None:
        """Begin tuning; with many rows, or totals, chains share their mass matrix at every renewal.

        The posterior is then narrow: a step adapted to a chain's own mass can be too long for the shared one, and the
        chain would get stuck.
        """
        super()._begin_tuning()
        if self.task.n_seen >= MANY or self.prior.totals:
            self.milestones |= {int(end) for end in windows(self.settings.tune) if end < self.settings.tune}

    def found_draws(self) -> Stacked:
        """Return the draws so far."""
        return self.task.unpacked(self.draws()["position"], self.prior)

    def probe(self, draws: Portion) -> Array:
        """Return predictive probabilities of some observations, for a limited number of draws at a time."""
        positions = draws["position"]
        parts = (positions[:, start : start + SURE] for start in range(0, positions.shape[1], SURE))
        found = [self.task.reader.probed(self.task, self.task.unpacked(part, self.prior), self.most) for part in parts]
        return found[0] if len(found) == 1 else np.concatenate(found, axis=1)

    def measure_predictions(self) -> Diagnostics | None:
        """Return the full diagnostics: only predictions are measured."""
        found: Diagnostics | None = self.diagnose()
        return found

    def measure(self, report: Report | None) -> Diagnostics | None:
        """Diagnose predictive probabilities and their error, as components have no identity across chains."""
        draws = self.draws()
        self.most = PROBABILITIES if draws["value"].size <= FEW_DRAWS else 0
        return diagnose(report, self.returned, self.averaged, probability=self.probe(draws))

    def returned(self, probability: Array) -> Array:
        """Return the contribution of each draw to predictions with the mode and κ, to first order."""
        if self.mode is None:
            return probability
        mode, weight, power = self.mode
        return contributions(probability, self.task.reader.probed(self.task, mode, self.most)[0, 0], weight, power)
