"""Laws of the weights: Gam(shape, rate) of (7) and the generalised inverse Gaussian of section 5.

A law is conjugate to the complete likelihood (6), λⁿ e^(−λs). With numbers as parameters it is a prior, with K×p arrays
the posterior of every weight given wins and exposure. It offers all that inferences need of a prior. The module sees no
rows, and weights are passed as logarithms.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from scipy.special import gammaln, logsumexp, psi

from plackett.capabilities import NoMoves
from plackett.data.validation import plain
from plackett.model import gig
from plackett.model.race import Array, Weights


class WeightPrior(Protocol):
    """Methods that inferences need of a law.

    `scale_free` is True if λ̄ = λ/Λ and the total Λ are independent a priori. EM then climbs on the simplex of λ̄, the
    sampler integrates Λ out and may use the moves of `inference.moves`, and the shape can be learned.
    """

    scale_free: ClassVar[bool]

    @property
    def shape(self) -> Any:
        """Power of λ plus one."""
        ...

    @property
    def rate(self) -> Any:
        """Rate of the exponential decay."""
        ...

    def given(self, wins: Array, exposure: Array) -> Self:
        """Return the law of λ given arrivals and times, (13) and (19)."""
        ...

    def mean(self) -> Array:
        """⟨λ⟩."""
        ...

    def weights(self) -> Weights:
        """Return U = exp⟨ln λ⟩ and V = ⟨λ⟩ as logarithms, the input of the pass in (18)."""
        ...

    def divergence(self, prior: Self) -> float:
        """KL(this‖prior), summed over the weights."""
        ...

    def rescaled(self, prior: Self) -> Self:
        """Rescale λ by the common factor that minimises the divergence; the likelihood does not depend on it."""
        ...

    def draw(self, rng: np.random.Generator, size: tuple[int, ...]) -> Array:
        """Draw ln λ with this size; its last axes are those of the parameters."""
        ...

    def coordinates(self, law: Self) -> Array:
        """Return a law of this family as logarithms of positive numbers, for an optimiser."""
        ...

    def law_at(self, coordinates: Array, size: tuple[int, ...]) -> Self:
        """Return the law with these coordinates, with parameters of this size."""
        ...


@dataclass(frozen=True)
class Gam:
    """λ ~ Gam(shape, rate), equation (7): density ∝ λ^(shape−1) exp(−rate·λ)."""

    shape: Any
    rate: Any = 1.0
    scale_free: ClassVar[bool] = True

    def given(self, wins: Array, exposure: Array) -> Gam:
        """Gam(a + n, b + s), equations (13) and (19)."""
        return Gam(self.shape + wins, self.rate + exposure)

    def mean(self) -> Array:
        """A/B."""
        mean: Array = self.shape / self.rate
        return mean

    def weights(self) -> Weights:
        """ψ(A) − ln B and ln A − ln B, equation (18)."""
        return Weights(psi(self.shape) - np.log(self.rate), np.log(self.shape) - np.log(self.rate))

    def divergence(self, prior: Gam) -> float:
        """KL of Gam(A, B) from the prior Gam(a, b)."""
        A, B, a, b = self.shape, self.rate, prior.shape, prior.rate
        terms = (A - a) * psi(A) - gammaln(A) + gammaln(a) + a * (np.log(B) - np.log(b)) + A * (b / B - 1)
        return float(terms.sum())

    def rescaled(self, prior: Gam) -> Gam:
        """Rescale so that ⟨Λ⟩ = Kpa/b (section 3.5)."""
        factor = prior.rate * float((self.shape / self.rate).sum()) / (self.shape.size * prior.shape)
        return Gam(self.shape, self.rate * factor)

    def draw(self, rng: np.random.Generator, size: tuple[int, ...]) -> Array:
        """Draw ln Gam(a) = ln Gam(a+1) + ln(U)/a, which cannot underflow."""
        log_weights = np.log(rng.standard_gamma(self.shape + 1, size)) - rng.standard_exponential(size) / self.shape
        draws: Array = log_weights - np.log(self.rate)
        return draws

    def coordinates(self, law: Gam) -> Array:
        """ln A and ln B."""
        return np.concatenate([np.log(law.shape).ravel(), np.log(law.rate).ravel()])

    def law_at(self, coordinates: Array, size: tuple[int, ...]) -> Gam:
        """Return Gam(A, B)."""
        A, B = np.exp(coordinates.reshape(2, *size))
        return Gam(A, B)

    def shape_slope(self, wins: Array, exposure: Array) -> Callable[[float], float]:
        """Return the derivative in a of Σ_kj ln ∫ λⁿ e^(−λs) Gam(λ|a, b) dλ, as a function of a (section 3.5)."""
        rates = (np.log(self.rate) - np.log(self.rate + exposure)).sum()
        return lambda a: rates + psi(a + wins).sum() - wins.size * psi(a)


def log_mode(power: Any, tail: Any, rate: Any) -> Array:
    """Log of the λ > 0 that maximises power·ln λ − rate·λ − tail/λ: a root of a quadratic, without cancellation."""
    root = np.hypot(power, 2.0 * np.sqrt(rate) * np.sqrt(tail))
    found: Array = np.where(
        np.greater_equal(power, 0),
        np.log(root + np.maximum(power, 0.0)) - np.log(2.0 * rate),
        np.log(2.0 * tail) - np.log(root - np.minimum(power, 0.0)),
    )
    return found


class GIGMoments(NamedTuple):
    """⟨ln λ⟩, ln⟨λ⟩, ln⟨1/λ⟩ and the logarithm of the normalising integral."""

    mean_log: Array
    log_mean: Array
    log_mean_inverse: Array
    log_integral: Array


@dataclass(frozen=True)
class GIG:
    """λ ~ GIG(shape, tail, rate), the generalised inverse Gaussian: density ∝ λ^(shape−1) exp(−rate·λ − tail/λ).

    The paper's section 5 proposes it as a prior of the weights. As ``tail`` goes to 0 it becomes Gam(shape, rate). With
    a tail no weight is close to zero: the density falls to 0 faster than any power there. The shape may then be
    negative, which makes the density fall like a power λ^(shape−1) between the tail and 1/rate. Unlike the Gamma's, its
    λ̄ = λ/Λ depends on the scale Λ, so that all three parameters matter.

    Parameters
    ----------
    shape : float
        Power of λ plus one; any finite number.
    tail : float
        Keeps weights away from 0; positive.
    rate : float
        Keeps weights away from infinity; positive.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from plackett import PlackettLuceClassifier
    >>> from plackett.priors import GIG
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = PlackettLuceClassifier("em", features="exp", prior=GIG(shape=-0.5, tail=0.01, rate=1.0)).fit(X, y)
    >>> bool((clf.weights_ > 0).all())
    True
    """

    shape: Any
    tail: Any
    rate: Any = 1.0
    scale_free: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for name, value in tuple(vars(self).items()):
            number = not isinstance(value, (bool, str)) and np.asarray(value).dtype.kind in "iuf"
            if not (number and np.isfinite(value).all() and (name == "shape" or np.greater(value, 0).all())):
                kind = "a finite number" if name == "shape" else "a positive number"
                hint = " Without a tail it is the Gamma prior: prior='gamma'." if name == "tail" else ""
                raise ValueError(f"GIG({name}) must be {kind}, got {plain(value)} instead.{hint}")
            if np.ndim(value) == 0:
                object.__setattr__(self, name, float(value))

    @property
    def no_moves(self) -> NoMoves:
        """Reason why a sampler cannot move between modes."""
        return NoMoves(
            f"Gibbs(moves='exchange') cannot be had with prior={self!r}: the moves take the proportions of the weights "
            "for independent of their scale, which is so for prior='gamma' alone. Use Gibbs(moves='none').",
            f"there are no moves with prior={self!r}.",
        )

    def checked(self) -> GIG:
        """Return self as a prior, after checking that its parameters are numbers."""
        for name in ("shape", "tail", "rate"):
            if np.ndim(getattr(self, name)):
                raise ValueError(f"a prior is one for all weights: GIG({name}) must be a number, got an array instead.")
        return self

    def given(self, wins: Array, exposure: Array) -> GIG:
        """Return GIG(a + n, tail, b + s)."""
        return GIG(self.shape + wins, self.tail, self.rate + exposure)

    @cached_property
    def moments(self) -> GIGMoments:
        """Moments by sums over the density of ln λ (`model.gig`)."""
        order, log_tail, log_rate, size = self._laws()
        found = np.empty((4, order.size))
        gig.moments(order, log_tail, log_rate, found)
        return GIGMoments(*found.reshape(4, *size))

    def mean(self) -> Array:
        """⟨λ⟩."""
        mean: Array = np.exp(self.moments.log_mean)
        return mean

    def weights(self) -> Weights:
        """⟨ln λ⟩ and ln⟨λ⟩."""
        return Weights(self.moments.mean_log, self.moments.log_mean)

    def divergence(self, prior: GIG) -> float:
        """⟨ln q − ln p⟩, from the moments of q and the two integrals."""
        mean_log, log_mean, log_inverse, log_integral = self.moments
        terms = (self.shape - prior.shape) * mean_log - (self.rate - prior.rate) * np.exp(log_mean)
        terms = terms - (self.tail - prior.tail) * np.exp(log_inverse)
        return float((terms - log_integral + prior.moments.log_integral).sum())

    def rescaled(self, prior: GIG) -> GIG:
        """Rescale to cλ ~ GIG(A, cT, B/c); −⟨ln p(cλ)⟩ − ln c of all weights has its minimum in closed form."""
        _, log_mean, log_inverse, _ = self.moments
        pull, push = prior.tail * np.exp(log_inverse).sum(), prior.rate * np.exp(log_mean).sum()
        factor = np.exp(log_mode(log_mean.size * prior.shape, pull, push))
        return GIG(self.shape, self.tail * factor, self.rate / factor)

    def draw(self, rng: np.random.Generator, size: tuple[int, ...]) -> Array:
        """Draw exactly by rejection (`model.gig`)."""
        order, log_tail, log_rate, _ = self._laws()
        draws = np.empty((int(np.prod(size)) // order.size, order.size))
        gig.log_gig_draws(rng, order, log_tail, log_rate, draws)
        return draws.reshape(size)

    def coordinates(self, law: GIG) -> Array:
        """Logarithms of wins + 1 (the shape itself may be negative), of the rates and of the tail."""
        wins = law.shape - self.shape
        return np.concatenate([np.log(wins + 1).ravel(), np.log(law.rate).ravel(), [np.log(law.tail)]])

    def law_at(self, coordinates: Array, size: tuple[int, ...]) -> GIG:
        """Return GIG(A, T, B) with one tail for all weights."""
        above, rate = np.exp(coordinates[:-1].reshape(2, *size))
        return GIG(above - 1 + self.shape, float(np.exp(coordinates[-1])), rate)

    def log_mode(self) -> Array:
        """Mode of the density of λ, as ln λ: the M-step of EM, in place of (10)."""
        return log_mode(self.shape - 1, self.tail, self.rate)

    def log_density(self, log_weights: Array) -> Array:
        """ln p(λ)."""
        terms = (self.shape - 1) * log_weights - self.rate * np.exp(log_weights) - self.tail * np.exp(-log_weights)
        density: Array = terms - self.moments.log_integral
        return density

    def at_best_scale(self, log_weights: Array) -> Array:
        """Rescale λ̄ to the Λ that maximises the density."""
        pull, push = self.tail * np.exp(logsumexp(-log_weights)), self.rate * np.exp(logsumexp(log_weights))
        scaled: Array = log_weights + log_mode(log_weights.size * (self.shape - 1), pull, push)
        return scaled

    def _laws(self) -> tuple[Array, Array, Array, tuple[int, ...]]:
        """Orders, ln tails and ln rates as flat arrays, and their original shape."""
        shape, tail, rate = np.broadcast_arrays(*(np.asarray(v, float) for v in (self.shape, self.tail, self.rate)))
        return shape.ravel(), np.log(tail).ravel(), np.log(rate).ravel(), shape.shape
