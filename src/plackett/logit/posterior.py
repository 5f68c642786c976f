"""What a fit of the sparse logit leaves behind: draws for covariates as they came, and how good they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from plackett.model.race import Array
from plackett.posterior.diagnostics import measures
from plackett.posterior.weights import CHUNK


@dataclass(frozen=True)
class LogitDraws:
    """Draws of a Markov chain, for covariates on their original scale.

    Attributes
    ----------
    coef : (chain, draw, K, d) array
        Coefficients; 0 for the last class.
    intercept : (chain, draw, K) array
        Intercepts; 0 for the last class.
    penalty : (chain, draw) array
        θ of the Laplace prior with rate √θ, which holds for the standardised covariates.
    """

    coef: Array = field(repr=False)
    intercept: Array = field(repr=False)
    penalty: Array = field(repr=False)

    @classmethod
    def from_standardised(cls, beta: Array, penalty: Array, mean: Array, scale: Array) -> LogitDraws:
        """From draws (chain, draw, K−1, 1+d) of intercept and coefficients of (x − mean)/scale."""
        n_chains, n_draws, free, p = beta.shape
        coef, intercept = np.zeros((n_chains, n_draws, free + 1, p - 1)), np.zeros((n_chains, n_draws, free + 1))
        np.divide(beta[..., 1:], scale, out=coef[:, :, :-1])
        intercept[:, :, :-1] = beta[..., 0] - coef[:, :, :-1] @ mean
        return cls(coef, intercept, penalty)

    def log_probabilities(self, X: Array) -> Iterator[Array]:
        """Log-probabilities (1) of runs of rows under every draw: arrays (rows, S, K)."""
        n_classes, d = self.coef.shape[2:]
        coef, intercept = self.coef.reshape(-1, d).T, self.intercept.reshape(-1, n_classes)
        step = max(1, CHUNK // intercept.size)
        for start in range(0, len(X), step):
            scores = (X[start : start + step] @ coef).reshape(-1, *intercept.shape)
            scores += intercept
            scores -= scores.max(axis=2, keepdims=True)
            scores -= np.log(np.exp(scores).sum(axis=2, keepdims=True))
            yield scores

    def probabilities(self, X: Array) -> Iterator[Array]:
        """Probabilities (1) of runs of rows under every draw: arrays (rows, S, K)."""
        return (np.exp(block) for block in self.log_probabilities(X))

    def pointwise(self, X: Array, codes: npt.NDArray[np.intp]) -> Array:
        """Log-likelihood (chain, draw, n) of each row."""
        start, own = 0, np.empty((len(codes), self.penalty.size))
        for block in self.log_probabilities(X):
            stop = start + len(block)
            own[start:stop] = np.take_along_axis(block, codes[start:stop, None, None], axis=2)[:, :, 0]
            start = stop
        return own.T.reshape(*self.penalty.shape, len(codes))


@dataclass(frozen=True)
class Measures:
    """R-hat (NaN for a constant), bulk and tail ESS of each of some quantities."""

    rhat: Array
    ess_bulk: Array
    ess_tail: Array

    def __repr__(self) -> str:
        rhat, ess = np.fmax.reduce(self.rhat, axis=None), np.fmin(self.ess_bulk, self.ess_tail).min()
        return f"Measures(shape={self.rhat.shape}, worst R-hat {rhat:.2f}, smallest effective sample size {ess:,.0f})"


@dataclass(frozen=True)
class LogitDiagnostics:
    """Measures of the coefficients (K, d), the intercepts (K,) and ln θ ()."""

    coef: Measures
    intercept: Measures
    penalty: Measures

    def __repr__(self) -> str:
        return (
            f"LogitDiagnostics of {self.coef.rhat.size} coefficients, their intercepts and the penalty:\n"
            f"  worst R-hat {self.worst_rhat:.2f}, smallest effective sample size {self.smallest_ess:,.0f}"
        )

    @property
    def worst_rhat(self) -> float:
        """The largest R-hat; NaN (a constant) does not count."""
        return float(np.nanmax(np.concatenate([part.rhat for part in self._parts()])))

    @property
    def smallest_ess(self) -> float:
        """The smallest bulk or tail ESS."""
        values = [size for part in self._parts() for size in (part.ess_bulk, part.ess_tail)]
        return float(np.nanmin(np.concatenate(values)))

    def _parts(self) -> list[Measures]:
        parts = (self.coef, self.intercept, self.penalty)
        return [Measures(*(np.ravel(value) for value in vars(part).values())) for part in parts]


def diagnose(draws: LogitDraws) -> LogitDiagnostics | None:
    """Diagnostics of a run, or None if it is too short for any (fewer than 4 draws a chain)."""
    if draws.penalty.shape[1] < 4:
        return None
    parts = (draws.coef, draws.intercept, np.log(draws.penalty))
    return LogitDiagnostics(*(Measures(*measures(part)) for part in parts))
