"""What goes into one pass over the rows, and what comes out of it.

The same pass serves EM, the variational scheme, the Gibbs sampler and any gradient (sections 3.2 to 3.4);
they differ only in the weights they put in and in what they do with the statistics.
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
    """The two K×p arrays of a pass, as logarithms.

    Attributes
    ----------
    log_own : (K, p) array
        ln U: the weight of a competitor who arrives; −inf for an exact zero.
    log_rival : (K, p) array
        ln V: the weight of a competitor who is waited for.
    """

    log_own: Array
    log_rival: Array

    @classmethod
    def point(cls, log_weights: Array) -> Weights:
        """U = V = λ: EM, Gibbs and gradients."""
        return cls(log_weights, log_weights)

    @cached_property
    def scaled_own(self) -> tuple[Array, Array]:
        """U, scaled, and the logarithms of the scales; made once for all blocks of rows."""
        return scaled(self.log_own)

    @cached_property
    def scaled_total(self) -> tuple[Array, Array]:
        """The same of Σ_l V_l (1, p): of all teams, where each of them is waited for in every row."""
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
        s_kj, the time for which competitor j of team k was waited for, weighed by W: expected or sampled. Where every
        team is waited for in every row, Σ_i z_i W_ij for all k.
    value : float
        The log-likelihood when U = V; with classes Σ_i ln(W_i·U_{Y_i}) − ln(W_i·Σ_l V_l).
    """

    wins: Array
    exposure: Array
    value: float

    def __add__(self, other: Stats) -> Stats:
        return Stats(self.wins + other.wins, self.exposure + other.exposure, self.value + other.value)


@dataclass(frozen=True)
class Slopes:
    """The log-likelihood of features exp(x·β), and its gradient; they add over rows.

    Attributes
    ----------
    value : float
        ln p(Y|β, λ).
    directions : (M, d) array
        The gradient in β.
    log_weights : (K, M) array
        The gradient in ln λ.
    """

    value: float
    directions: Array
    log_weights: Array

    @classmethod
    def none(cls, n_components: int, n_columns: int, n_classes: int) -> Slopes:
        """Of no rows at all."""
        return cls(0.0, np.zeros((n_components, n_columns)), np.zeros((n_classes, n_components)))

    def __add__(self, other: Slopes) -> Slopes:
        return Slopes(
            self.value + other.value, self.directions + other.directions, self.log_weights + other.log_weights
        )


def scaled(log_weights: Array) -> tuple[Array, Array]:
    """Exponentials of the rows, each scaled to a largest entry of 1, and the logarithms of the scales.

    A positive weight stays positive (at least 1e-300 of the largest), so that no row of data loses the
    weights it stands on by underflow.
    """
    log_weights = np.atleast_2d(log_weights)
    scale = np.maximum(log_weights.max(axis=1), -np.finfo(np.float64).max)  # finite also where all weights are zero
    relative = np.exp(np.maximum(log_weights - scale[:, None], -690.0))
    return np.where(np.isneginf(log_weights), 0.0, relative), scale
