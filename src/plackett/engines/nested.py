"""Passes over nested choices with rates computed during the pass: r_e = Σ_j e^{z_e·β_j} λ_gj.

Let ρ_ej be the shares of the components in a rate, and take the slopes of V in ln r_e from `plackett.responses.nests`.
Then the gradient is Σ_e ∂V/∂ln r_e ρ_ej z_e in β_j, and the same without z_e in ln λ_gj. The module knows no prior.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from plackett.data.observations import Observations
from plackett.model.race import Array, Slopes
from plackett.responses.base import Outcomes, Whole
from plackett.responses.nests import START, Nests, nested_slopes


@dataclass(frozen=True)
class NestedSlopes(Slopes):
    """Slopes, with the gradient in the dissimilarities."""

    parameters: Array


@dataclass(frozen=True)
class NestedChoices:
    """Choices with covariates of their entries, at given dissimilarities of the nests.

    Attributes
    ----------
    x : (entries, d) array
        Covariates, the chosen entry of each situation first.
    outcomes : Outcomes
        Starts and counts of the situations.
    group, nest : (entries,) arrays
        Group whose weights an entry uses, and its nest (−1: stands alone).
    dissimilarity : (G,) array
        α.
    """

    x: Array
    outcomes: Outcomes
    group: Whole
    nest: Whole
    dissimilarity: Array

    @classmethod
    def of(cls, Z: Array, seen: Observations, nests: Nests, of_row: Whole) -> Self:
        """Build from observations whose rows of Z belong to these nests."""
        outcomes, group, row = seen.all_situations
        x = np.ascontiguousarray(Z[row], dtype=np.float64)
        return cls(x, outcomes, group, of_row[row].astype(np.int64), np.full(len(nests.names), START))

    def at(self, dissimilarity: Array) -> Self:
        """Return the same choices with other dissimilarities."""
        return replace(self, dissimilarity=np.ascontiguousarray(dissimilarity))

    def gradient(self, beta: Array, log_weights: Array) -> NestedSlopes:
        """Return the log-likelihood and its gradient in β (M, d), ln λ (K, M) and α (G,)."""
        log_share = self.x @ beta.T + log_weights[self.group]
        log_rate = logsumexp(log_share, axis=1)
        counts, start = self.outcomes.counts, self.outcomes.start
        values, slope = np.empty(len(counts)), np.empty(len(log_rate))
        to_alpha = np.empty((len(counts), len(self.dissimilarity)))
        nested_slopes(start, self.nest, log_rate, self.dissimilarity, values, slope, to_alpha)
        log_share -= log_rate[:, None]
        pull = np.exp(log_share, out=log_share)
        pull *= (slope * np.repeat(counts, np.diff(start)))[:, None]
        to_weights = np.zeros_like(log_weights)
        np.add.at(to_weights, self.group, pull)
        return NestedSlopes(float(counts @ values), pull.T @ self.x, to_weights, counts @ to_alpha)

    def packed_for(self, n_components: int, dtype: npt.DTypeLike) -> tuple[Sequence[Array], ...] | None:
        """Return None: chains are not compiled."""
        return None
