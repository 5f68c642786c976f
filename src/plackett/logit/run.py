"""Run of the chains of the sparse logit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from plackett.engines.base import canonical_order
from plackett.inference.driver import Chain, Run, Source
from plackett.inference.limits import Clock
from plackett.inference.store import Portion
from plackett.logit import samplers
from plackett.logit.posterior import LogitDraws
from plackett.model.diagnostics import Diagnostics, Report, diagnose, probed
from plackett.model.race import Array

if TYPE_CHECKING:
    from plackett.logit.classifier import SparseLogitClassifier


class LogitRun(Run):
    """Draws of β (K−1, 1+d) and θ for the covariates (X − mean)/scale; penalty None samples θ ~ Gam(*prior)."""

    def __init__(
        self,
        settings: SparseLogitClassifier,
        source: Source,
        X: Array,
        codes: npt.NDArray[np.intp],
        mean: Array,
        scale: Array,
        penalty: float | None,
        prior: tuple[float, float],
        open_ended: bool,
    ):
        if settings.sampler == "polya-gamma":
            samplers.polya_gamma_generator()  # raises an error that says how to install it
        self.name, self.mean, self.scale = settings.sampler, mean, scale
        Z = (X - mean) / scale
        order, _ = canonical_order(Z, codes)
        self.probed = X[order[probed(len(X))]]
        intercept = settings.intercept_scale, settings.penalize_intercept
        n_classes, extra_moves = int(codes.max()) + 1, settings.moves == "all"
        model = samplers.prepare(Z[order], codes[order], n_classes, penalty, prior, *intercept, extra_moves)
        generators = [np.random.default_rng(seed) for seed in source.seed.spawn(settings.chains)]
        chains = [Chain(samplers.start(model, rng), rng) for rng in generators]
        runner = samplers.LogitSampler(settings.sampler, model)
        shapes = {"beta": (n_classes - 1, model.X.shape[1]), "theta": (), "value": ()}
        clock = Clock(settings.max_seconds, type(settings).__name__)
        super().__init__(settings, source, runner, chains, shapes, (settings.sampler, *model), clock, open_ended)

    def posterior(self) -> LogitDraws:
        """Return the draws so far, for the original covariates."""
        return self._as_posterior(self.draws())

    def _as_posterior(self, draws: Portion) -> LogitDraws:
        return LogitDraws.from_standardised(draws["beta"], draws["theta"], self.mean, self.scale)

    def measure(self, report: Report | None) -> Diagnostics | None:
        """Return R-hat and ESS of coefficients, intercepts, ln θ and probabilities of the draws so far."""
        draws = self.posterior()
        single: dict[str, Any] = {"coef": draws.coef, "intercept": draws.intercept, "penalty": np.log(draws.penalty)}
        return diagnose(report, self.returned, **single, probability=self._probabilities(draws))

    def probe(self, draws: Portion) -> Array:
        """Return class probabilities of some rows."""
        return self._probabilities(self._as_posterior(draws))

    def _probabilities(self, draws: LogitDraws) -> Array:
        """Return probabilities (chain, draw, row, K) of some rows."""
        found = np.concatenate(list(draws.probabilities(self.probed)))
        return np.moveaxis(found.reshape(len(found), *draws.penalty.shape, -1), 0, 2)

    def remedies(self) -> str:
        """Suggest another sampler, or a fixed penalty."""
        other = ["sampler='polya-gamma'"] if self.settings.sampler == "holmes-held" else []
        if self.settings.penalty == "learn":
            other.append("a fixed penalty such as penalty=1.0 (where classes are separable a learned one mixes slowly)")
        return "".join(f", or {remedy}" for remedy in other)
