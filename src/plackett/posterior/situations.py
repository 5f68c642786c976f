"""Posterior of learned directions of rankings: draws of (β, λ), and predictions of new situations.

Entry e of a situation has the rate r_e = Σ_j exp(z_e·β_j) λ_gj. The posterior does not store rows of the training data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.special import logsumexp

from plackett.features.scaled_columns import Columns
from plackett.model.race import Array
from plackett.posterior.base import Explanation, FittedModel, Table, Variables
from plackett.posterior.contributions import Mixture, contributions
from plackett.posterior.pool import SituationPosterior
from plackett.posterior.reasons import reasons
from plackett.posterior.stacked import NAMELESS, LearnedPosterior, ModeAlone


class RankedModel(FittedModel, Protocol):
    """What the posterior of learned directions reads of a model of rankings."""

    features_: Columns

    def _checked_rows(self, X: Any, reset: bool) -> Any:
        """Check covariates and convert them for the feature map."""


@dataclass(frozen=True)
class SituationDraws(LearnedPosterior[RankedModel], SituationPosterior[RankedModel]):
    """Draws of a Markov chain: directions along the columns of the design, and ln λ of groups, whose weights differ."""

    no_estimates = f"{NAMELESS}, so there are no weights to compare."
    no_race = f"{NAMELESS}, so none can be said to win."

    @property
    def shape_of_estimate(self) -> tuple[int, int]:
        """Shape (K, M)."""
        K, M = self.log_weights.shape[2:]
        return K, M

    def rows(self, features: Columns, X: Any) -> Array:
        """Return persons' columns, standardised."""
        return features.of(X)

    def size(self, model: RankedModel) -> str:
        """Describe groups and components."""
        K, M = self.log_weights.shape[2:]
        return f"{M} learned directions of {self.directions.shape[-1]} columns, weights of {K}"

    def explain(self, model: RankedModel, row: object, prob: float) -> Explanation:
        """Explain the log-odds of the item that most probably comes first by persons' columns.

        Pr(k first) = Σ_j softmax_j(z·β_j + ln Λ_j) λ_kj/Λ_j; the reference is z = 0.
        """
        x = model._checked_rows(row, reset=False)
        (z,), members = model.features_.of(x), self.members()
        log_totals = logsumexp(members.log_weights, axis=1)  # ln Λ_j, (S, M)
        votes = np.exp(members.log_weights - log_totals[:, None]).transpose(0, 2, 1)
        line = Mixture(log_totals, members.directions @ z, votes, members.share, members.modes, members.power)
        k = int(np.argmax(line.mixed(line.probabilities(np.array([1.0]))[1])[0]))
        found = contributions(line, k, members.directions, lambda slopes: z * slopes)
        return reasons(model, found, k, x[0], model.features_.reference(), prob)

    def variables(self, model: RankedModel, raw: bool) -> Variables:
        """Return no identified draws; if raw, draws for the columns of the design."""
        if not raw:
            return Variables({}, {}, {})
        values = {"direction": self.directions, "log_weight": self.log_weights, "scale": self.scales}
        dims = {"direction": ["component", "column"], "log_weight": ["group", "component"], "scale": ["column"]}
        (K, M), d = self.log_weights.shape[2:], self.directions.shape[-1]
        coords: Table = {"component": np.arange(M), "column": np.arange(d), "group": np.arange(K)}
        return Variables(values, dims, coords)


class SituationPoint(ModeAlone, SituationDraws):
    """Posterior that consists of the mode alone."""
