"""What a fit leaves behind: a point, laws of the weights or draws; and probabilities computed from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from scipy.special import logsumexp

from plackett.engines import Features
from plackett.model.race import Array
from plackett.model.weights import GIG, WeightPrior

__all__ = ["Draws", "GIGs", "Gammas", "Point"]

CHUNK = 1 << 18  # probabilities held at a time
MANY = 1 << 24  # probabilities from which compiled code averages them


class Posterior(Protocol):
    """Normalised weights λ̄, as one best estimate and as draws that stand for the distribution."""

    @property
    def weights(self) -> Array:
        """(K, p), sums to 1."""
        ...

    def flat_draws(self) -> Array:
        """(S, K, p), each sums to 1."""
        ...


@dataclass(frozen=True)
class Point:
    """A single λ̄: the maximum a posteriori."""

    weights: Array

    def flat_draws(self) -> Array:
        """The point itself."""
        return self.weights[None]


@dataclass(frozen=True)
class Gammas:
    """Independent q(λ_kj) = Gam(shape_kj, rate_kj) of (19), with draws of λ̄ made once."""

    shape: Array
    rate: Array
    log_weights: Array = field(repr=False)  # (S, K, p)

    @property
    def weights(self) -> Array:
        """Mean of the normalised weights over the draws."""
        return self.flat_draws().mean(axis=0)

    def flat_draws(self) -> Array:
        """(S, K, p)."""
        return np.exp(self.log_weights)


@dataclass(frozen=True)
class GIGs:
    """Independent q(λ_kj) = GIG(shape_kj, tail, rate_kj), with draws of λ̄ made once."""

    shape: Array
    tail: float
    rate: Array
    log_weights: Array = field(repr=False)  # (S, K, p)

    @property
    def weights(self) -> Array:
        """Mean of the normalised weights over the draws."""
        return self.flat_draws().mean(axis=0)

    def flat_draws(self) -> Array:
        """(S, K, p)."""
        return np.exp(self.log_weights)


def approximation(q: WeightPrior, n_draws: int, rng: np.random.Generator) -> Gammas | GIGs:
    """What the variational scheme found, and draws from it."""
    log_weights = normalised(q.draw(rng, (n_draws, *q.shape.shape)))
    if isinstance(q, GIG):
        return GIGs(q.shape, q.tail, q.rate, log_weights)
    return Gammas(q.shape, q.rate, log_weights)


@dataclass(frozen=True)
class Draws:
    """Draws of a Markov chain.

    Attributes
    ----------
    log_weights : (chain, draw, K, p) array
        ln λ̄, normalised so that logsumexp over class and feature is 0.
    shape : (chain, draw) array
        The shape a.
    """

    log_weights: Array = field(repr=False)
    shape: Array = field(repr=False)

    @property
    def weights(self) -> Array:
        """Posterior mean of λ̄."""
        return self.flat_draws().mean(axis=0)

    @property
    def median(self) -> Array:
        """Posterior median of each λ̄_kj; it does not sum to 1."""
        return np.median(self.flat_draws(), axis=0)

    def flat_draws(self) -> Array:
        """(S, K, p)."""
        return np.exp(self.log_weights).reshape(-1, *self.log_weights.shape[2:])


def normalised(log_weights: Array) -> Array:
    """Shift the last two axes so that logsumexp over them is 0."""
    shifted: Array = log_weights - logsumexp(log_weights, axis=(-2, -1), keepdims=True)
    return shifted


def chunks(features: Features, weights: Array) -> Iterator[Array]:
    """Probabilities (2) of runs of rows under every draw: arrays (rows, S, K)."""
    n_draws, n_classes, p = weights.shape
    step = max(1, CHUNK // (n_draws * n_classes))
    flat = weights.transpose(2, 1, 0).reshape(p, -1)
    silent = without_answer(weights).T
    for start in range(0, features.shape[0], step):
        shares = (features[start : start + step] @ flat).reshape(-1, n_classes, n_draws)
        total = shares.sum(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):
            shares /= total
        np.copyto(shares, silent, where=total == 0)
        yield shares.transpose(0, 2, 1)


def without_answer(weights: Array) -> Array:
    """Probabilities (S, K) of a row that no active weight answers to: it says nothing, as if W = 1."""
    sums = weights.sum(axis=2)
    shares: Array = sums / sums.sum(axis=1, keepdims=True)
    return shares


def mean_probabilities(features: Features, weights: Array) -> Array:
    """Predictions averaged over draws (section 4.2), (n, K)."""
    if features.shape[0] * weights.shape[0] * weights.shape[1] < MANY:
        return averaged(chunks(features, weights))
    from plackett.posterior.averaging import mean_shares

    return mean_shares(features, weights, without_answer(weights))


def probability_interval(features: Features, weights: Array, prob: float) -> tuple[Array, Array]:
    """Equal-tailed credible interval of each class probability, two arrays (n, K)."""
    return equal_tailed(chunks(features, weights), prob)


def averaged(blocks: Iterable[Array]) -> Array:
    """Mean over the draws of blocks (rows, S, K)."""
    return np.concatenate([block.mean(axis=1) for block in blocks])


def equal_tailed(blocks: Iterable[Array], prob: float) -> tuple[Array, Array]:
    """Interval over the draws of blocks (rows, S, K) with equal probability on either side."""
    tail = (1 - prob) / 2
    lower, upper = np.concatenate([np.quantile(block, [tail, 1 - tail], axis=1) for block in blocks], axis=1)
    return lower, upper
