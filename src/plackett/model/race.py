"""Input and output of one pass over the rows.

The same pass serves EM, the variational scheme, the Gibbs sampler and any gradient (sections 3.2 to 3.4); they differ
only in the weights they pass in and in their use of the statistics.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Weights:
    """Pair of K×p weight arrays of a pass, as logarithms.

    Attributes
    ----------
    log_own : (K, p) array
        ln U: weight of an arriving competitor; −inf for an exact zero.
    log_rival : (K, p) array
        ln V: weight of a competitor at risk.
    """

    log_own: Array
    log_rival: Array

    @classmethod
    def point(cls, log_weights: Array) -> Weights:
        """Set U = V = λ, as in EM, Gibbs and gradients."""
        return cls(log_weights, log_weights)

    @cached_property
    def scaled_own(self) -> tuple[Array, Array]:
        """U, scaled, with the logarithms of the scales; computed once for all blocks of rows."""
        return scaled(self.log_own)

    @cached_property
    def scaled_total(self) -> tuple[Array, Array]:
        """Σ_l V_l (1, p), scaled, with the logarithm of the scale; used where all groups are at risk in every row."""
        return scaled(logsumexp(self.log_rival, axis=0))

    def __getstate__(self) -> dict[str, Array]:
        return {"log_own": self.log_own, "log_rival": self.log_rival}


@dataclass(frozen=True)
class Stats:
    """Sufficient statistics of the complete likelihood (6); they add over rows.

    Attributes
    ----------
    wins : (K, p) array
        n_kj, expected or sampled.
    exposure : (K, p) array
        s_kj, expected or sampled: time at risk of competitor j of group k, multiplied by W. Where every group is at
        risk in every row, Σ_i z_i W_ij for all k.
    value : float
        Log-likelihood if U = V; for classes Σ_i ln(W_i·U_{Y_i}) − ln(W_i·Σ_l V_l).
    """

    wins: Array
    exposure: Array
    value: float

    def __add__(self, other: Stats) -> Stats:
        return Stats(self.wins + other.wins, self.exposure + other.exposure, self.value + other.value)


@dataclass(frozen=True)
class Slopes:
    """Log-likelihood of features exp(x·β), with its gradient; instances add over rows.

    Attributes
    ----------
    value : float
        ln p(Y|β, λ).
    directions : (M, d) array
        Gradient in β.
    log_weights : (K, M) array
        Gradient in ln λ.
    """

    value: float
    directions: Array
    log_weights: Array

    @classmethod
    def none(cls, n_components: int, n_columns: int, n_classes: int) -> Slopes:
        """Return the slopes of zero rows."""
        return cls(0.0, np.zeros((n_components, n_columns)), np.zeros((n_classes, n_components)))

    def __add__(self, other: Slopes) -> Slopes:
        return Slopes(
            self.value + other.value, self.directions + other.directions, self.log_weights + other.log_weights
        )


def scaled(log_weights: Array) -> tuple[Array, Array]:
    """Exponentiate rows, each scaled to a largest entry of 1, and return them with the logarithms of the scales.

    A positive weight stays positive (at least 1e-300 of the largest), so that underflow cannot leave a row of data
    without weights.
    """
    log_weights = np.atleast_2d(log_weights)
    scale = np.maximum(log_weights.max(axis=1), -np.finfo(np.float64).max)  # finite also where all weights are zero
    relative = np.exp(np.maximum(log_weights - scale[:, None], -690.0))
    return np.where(np.isneginf(log_weights), 0.0, relative), scale
