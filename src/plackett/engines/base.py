"""Protocols of engines, rows and gradients, and what rows of classes and situations share on all engines."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from plackett.capabilities import NoMoves, Offers
from plackett.data.observations import Observations
from plackett.engines.by_passes import ByPasses
from plackett.features.mapped import in_order
from plackett.model.draws import uniforms
from plackett.model.features import RUN, Features
from plackett.model.race import Array, Slopes, Stats, Weights
from plackett.responses.base import Parameter

PROBED = 2000  # rows in, or effective size of, the likelihood that chooses starting points
Places = npt.NDArray[np.unsignedinteger]
Trial = Callable[[Array, float], float]  # log-likelihood of ln λ̄ and ln Λ
COMPILED = NoMoves(
    "Gibbs(moves='exchange') is compiled and cannot be had with engine='{engine}'. Use Gibbs(moves='none') or "
    "engine='auto'.",
    "there are no moves with Gibbs(moves='none'), engine='numpy' or 'cupy'.",
)
ON_WORKERS = NoMoves(
    "Gibbs(moves='exchange') cannot be had with engine='dask': the moves go through all {what} at once, and with "
    "engine='dask' they lie on workers. Use Gibbs(moves='none'), or engine='auto' where the {what} fit into memory.",
    "there are no moves with engine='dask': they go through all {what} at once, and with engine='dask' they lie on "
    "workers.",
)


class Rows(Protocol):
    """Observations prepared by an engine for passes."""

    n_rows: int
    n_groups: int
    n_features: int
    n_seen: float  # number of rows or situations, with their counts
    parameters: tuple[Parameter, ...]  # parameters of the response; empty for most
    values_of_parameters: Array  # values of the parameters during passes
    absolute: bool  # True if the likelihood depends on the scale Λ of the weights, as for race ties

    @property
    def order(self) -> Any:
        """Canonical order: order[i] is the input position of the i-th row or situation."""
        ...

    @property
    def features(self) -> Features:
        """Rows of W in canonical order; for situations the rows in use, by first use."""
        ...

    @property
    def work(self) -> int:
        """Count of numbers read by a pass."""
        ...

    def set_threads(self, n_threads: int) -> None:
        """Share passes among so many threads; results do not change."""
        ...

    def expect(self, weights: Weights) -> Stats:
        """Return expected wins and exposure, the E-step of (10) and (18)."""
        ...

    def sample(self, weights: Weights, key: int) -> Stats:
        """Return sampled wins and exposure, (11) and (12), as a function of weights and key alone."""
        ...

    def value(self, weights: Weights) -> float:
        """Return the log-likelihood."""
        ...

    def trial(self, rng: np.random.Generator) -> Trial:
        """Return a log-likelihood of ln λ̄ and ln Λ from at most about 2,000 rows, to choose starting points."""
        ...

    def identity(self, mirrors: Any) -> tuple[Any, ...]:
        """Return what must be unchanged for a checkpoint to continue; `mirrors` are those of the feature map."""
        ...

    def at(self, values: Array) -> Self:
        """Return these rows with other values of the response's parameters."""
        ...

    def moves(self) -> object | None:
        """Return what the sampler's exact moves need of these rows, or None if there are no moves for them."""
        ...

    def walk(self) -> Likelihood | None:
        """Return the likelihood of worths and parameters for a Hamiltonian walk, or None if sweeps are used."""
        ...

    def likelihood(self) -> Likelihood | None:
        """Return the likelihood of worths and parameters without covariates, or None if it cannot be had."""
        ...


class Likelihood(Protocol):
    """V of x = ln λ, one weight per item, and of the unconstrained response parameters f, with derivatives."""

    n_groups: int
    n_seen: float
    absolute: bool
    parameters: tuple[Parameter, ...]

    @property
    def work_of_curvature(self) -> int:
        """Count of numbers read for a curvature."""
        ...

    def slopes(self, log_weights: Array, free: Array) -> tuple[float, Array, Array]:
        """Return V, ∂V/∂x (K,) and ∂V/∂f (P,)."""
        ...

    def curvature(self, log_weights: Array, free: Array) -> Array:
        """Return −∂²V (K + P, K + P)."""
        ...

    def curvature_of_parameters(self, log_weights: Array, free: Array) -> Array:
        """Return −∂²V (P, P) in the parameters alone."""
        ...


class Unparametrised:
    """Rows whose response has no parameters."""

    parameters: tuple[Parameter, ...] = ()
    values_of_parameters: Array = np.empty(0)

    def at(self, values: Array) -> Self:
        """Return self: there are no parameters."""
        return self

    def walk(self) -> Likelihood | None:
        """Return None: plain sweeps or exact moves mix."""
        return None

    def likelihood(self) -> Likelihood | None:
        """Return that of a walk."""
        return self.walk()


class ClassRows(Unparametrised):
    """Features, classes and weights of rows of classes, in canonical order."""

    absolute = False
    codes: npt.NDArray[np.intp]
    counts: Array | None  # None if all counts are 1
    features_of: Callable[[], Features]

    def describe(self, features_of: Callable[[], Features], codes: npt.NDArray[np.intp], counts: Array | None) -> Self:
        """Store the observations in canonical order; features are computed on first access."""
        self.features_of, self.codes, self.counts = features_of, codes, counts
        return self

    def describe_in_order(self, W: Features, seen: Observations, order: npt.NDArray[np.intp]) -> Self:
        """Store observations given in input order."""
        counts = None if seen.counts is None else seen.counts[order]
        return self.describe(partial(in_order, W, order), seen.class_codes[order], counts)

    @cached_property
    def features(self) -> Features:
        """Rows of W."""
        return self.features_of()

    def trial(self, rng: np.random.Generator) -> Trial:
        """Return the log-likelihood of a subset of rows, which does not depend on Λ."""
        n = len(self.codes)
        some = rng.choice(n, PROBED, replace=False) if n > PROBED else np.arange(n)
        W, codes = self.features[some], self.codes[some]
        weight = np.ones(len(some)) if self.counts is None else self.counts[some]
        weight = weight * min(1.0, PROBED / weight.sum())

        def log_likelihood(log_weights: Array, log_mass: float) -> float:
            scores = W @ np.exp(log_weights).T
            own = scores[np.arange(len(codes)), codes] / scores.sum(axis=1)
            return float((weight * np.log(np.maximum(own, 1e-300))).sum())

        return log_likelihood

    def identity(self, mirrors: object) -> tuple[Any, ...]:
        """Return features, classes, mirrors and weights."""
        weight = () if self.counts is None else (self.counts,)
        return self.features, self.codes, mirrors, *weight

    def moves(self) -> object | None:
        """Return None: only dense rows of the compiled engine have moves."""
        return None


class SituationRows(Unparametrised):
    """Methods of rows of situations that follow from their passes."""

    n_groups: int
    n_seen: float
    absolute: bool
    held: Any  # arrays that define the observations
    value: Callable[..., float]
    expect: Callable[..., Stats]

    @property
    def work(self) -> int:
        """Count of numbers read by a pass."""
        raise NotImplementedError

    def likelihood(self) -> Likelihood | None:
        """Return that of a walk, or one by passes if there are no parameters."""
        return self.walk() or (None if self.parameters else ByPasses(self))

    def trial(self, rng: np.random.Generator) -> Trial:
        """Return the log-likelihood of all situations, raised to the power that makes them worth 2,000."""
        power = min(1.0, PROBED / self.n_seen)
        return lambda log_weights, log_mass: power * self.value(Weights.point(log_weights + log_mass))

    def identity(self, mirrors: object) -> tuple[Any, ...]:
        """Return features and outcomes in canonical order, and mirrors."""
        return *self.held, mirrors

    def moves(self) -> object | None:
        """Return None: only situations of the compiled engine have moves."""
        return None


class Gradient(Protocol):
    """Covariates prepared by an engine; features exp(x·β) are computed during a pass."""

    def gradient(self, beta: Array, log_weights: Array) -> Slopes:
        """Return ln p(Y|β, λ) and its gradient, for β (M, d) and ln λ (K, M)."""
        ...

    def packed_for(self, n_components: int, dtype: npt.DTypeLike) -> tuple[Any, ...] | None:
        """Return the arrays for compiled chains; None if threads should share rows or chains are not compiled."""
        ...


class ParametricSlopes(Protocol):
    """Log-likelihood and its gradient, including the gradient in the response's parameters."""

    value: float
    directions: Array
    log_weights: Array
    parameters: Array


class ParametricGradient(Protocol):
    """Covariates prepared by an engine for a response with parameters."""

    def at(self, values: Array) -> Self:
        """Return the same observations with other parameter values."""
        ...

    def gradient(self, beta: Array, log_weights: Array) -> ParametricSlopes:
        """Return the result of `Gradient.gradient`, with the gradient in the parameters."""
        ...


class Engine(Protocol):
    """Factory of rows and gradients from features or covariates and observations."""

    offers: Offers

    def rows(self, W: Features | None, seen: Observations, places: Any = None) -> Rows:
        """Sort, pack and store the rows.

        Parameters
        ----------
        W : (rows, p) or None
            Non-negative. A factor common to all entries of a situation has no effect except for race ties.
            None for rankings without covariates, which are reduced to their distinct sets of remaining items.
        seen : Observations
            Classes or situations.
        places : array or pair of arrays, optional
            If these are part of a larger table: position of each row among all rows, or positions of each situation
            and of its first entry. Random numbers depend on them.
        """
        ...

    def gradient(self, Z: Array, seen: Observations, dtype: npt.DTypeLike) -> Gradient:
        """Pack and store covariates in input order within each class; `dtype` is a sufficient precision."""
        ...


def canonical_order(
    features: Features, codes: npt.NDArray[np.intp], sample_weight: Array | None = None
) -> tuple[npt.NDArray[np.intp], Array]:
    """Order rows by class, then by a projection of their features on a fixed direction; also return the projection.

    The order depends on the content of the rows and not on their input order, so that sums and random draws are the
    same for shuffled data; equal rows are interchangeable. On the first direction, zeros and ones in different columns
    often have equal sums. A second direction separates such rows, and equal rows are ordered by weight.
    """
    n, p = features.shape
    key = projection(features, np.arange(n), np.modf(np.arange(1, p + 1) * 0.6180339887498949)[0])
    order = np.lexsort((key, codes))
    equal = (np.diff(key[order]) == 0) & (np.diff(codes[order]) == 0)
    if equal.any():
        tied = np.append(equal, False) | np.append(False, equal)
        rows = order[tied]
        keys = (projection(features, rows, uniforms(1, p)), key[rows], codes[rows])
        order[tied] = rows[np.lexsort(keys if sample_weight is None else (sample_weight[rows], *keys))]
    return order, key


def projection(features: Features, rows: npt.NDArray[np.intp], direction: Array) -> Array:
    """Project these rows: W_r·direction. A library's matrix product would round a row depending on its position."""
    if hasattr(features, "project"):  # computed where the rows are stored
        return features.project(rows, direction)
    found = np.empty(len(rows))
    for start in range(0, len(rows), RUN):
        some = slice(start, start + RUN)
        W = features[rows[some]]
        if sparse.issparse(W):
            found[some] = W @ direction  # entries are added one by one
        else:
            np.einsum("ij,j->i", np.asarray(W, dtype=np.float64), direction, out=found[some])
    return found


def check_counts(counts: Array, name: str = "weights", of: str = "rows") -> Array:
    """Refuse fractional weights in a sampled pass, where a weight of 2 stands for two rows."""
    if (counts != np.round(counts)).any():
        raise ValueError(
            f"a sampler takes whole numbers as {name} (a {name[:-1]} of 2 is two {of}), got "
            f"{counts[counts != np.round(counts)][0]}; 'em' and 'variational' take any."
        )
    return counts
