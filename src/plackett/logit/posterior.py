"""What a fit of the sparse logit leaves behind: draws for covariates as they came."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from plackett.model.race import Array
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
