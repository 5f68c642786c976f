"""What an engine offers, and what rows of classes have in common on all engines."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse

from plackett.capabilities import NoMoves, Offers
from plackett.data.observations import Observations
from plackett.features.mapped import in_order
from plackett.model.draws import uniforms
from plackett.model.features import RUN, Features
from plackett.model.race import Array, Slopes, Stats, Weights
from plackett.responses.base import Parameter

PROBED = 2000  # rows that the likelihood of a start sees, or is worth
Places = npt.NDArray[np.unsignedinteger]
Trial = Callable[[Array, float], float]  # a log-likelihood of ln λ̄ and ln Λ
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
    """Observations as an engine holds them, ready for passes."""

    n_rows: int
    n_groups: int
    n_features: int
    n_seen: float  # rows or situations, each as often as it was observed
    parameters: tuple[Parameter, ...]  # of the response; most have none
    values_of_parameters: Array  # at which passes are taken
    absolute: bool  # whether the likelihood depends on the scale Λ of the weights, as for race ties
    order: Any  # canonical: order[i] is the number, as given, of the i-th row or situation

    @property
    def features(self) -> Features:
        """The rows of W in canonical order; for situations those that are used, in order of their first use."""
        ...

    @property
    def work(self) -> int:
        """How many numbers a pass reads."""
        ...

    def set_threads(self, n_threads: int) -> None:
        """Share passes among so many threads; the results stay the same."""
        ...

    def expect(self, weights: Weights) -> Stats:
        """Expected wins and exposure, E-step of (10) and (18)."""
        ...

    def sample(self, weights: Weights, key: int) -> Stats:
        """Sampled wins and exposure, (11) and (12); a function of the weights and the key alone."""
        ...

    def value(self, weights: Weights) -> float:
        """The log-likelihood."""
        ...

    def trial(self, rng: np.random.Generator) -> Trial:
        """A log-likelihood of ln λ̄ and ln Λ to choose starts by, of about 2,000 rows at most."""
        ...

    def identity(self, mirrors: Any) -> tuple[Any, ...]:
        """What must be the same for a checkpoint to be continued; `mirrors` are those of the feature map."""
        ...

    def at(self, values: Array) -> Self:
        """The same rows with these values of the parameters of the response."""
        ...

    def moves(self) -> object | None:
        """What the sampler's exact moves need of these rows; None where there are none over such rows."""
        ...

    def walk(self) -> Likelihood | None:
        """The likelihood of worths and parameters, for a Hamiltonian walk; None where sweeps are used."""
        ...


class Likelihood(Protocol):
    """V of x = ln λ, one weight an item, and of the unconstrained parameters f of the response, with derivatives."""

    n_groups: int
    n_seen: float
    absolute: bool
    parameters: tuple[Parameter, ...]

    def slopes(self, log_weights: Array, free: Array) -> tuple[float, Array, Array]:
        """V, ∂V/∂x (K,) and ∂V/∂f (P,)."""
        ...

    def curvature(self, log_weights: Array, free: Array) -> Array:
        """−∂²V (K + P, K + P)."""
        ...


class Unparametrised:
    """Rows whose response has no parameters."""

    parameters: tuple[Parameter, ...] = ()
    values_of_parameters: Array = np.empty(0)

    def at(self, values: Array) -> Self:
        """The same rows."""
        return self

    def walk(self) -> Likelihood | None:
        """Plain sweeps, or exact moves, mix."""
        return None


class ClassRows(Unparametrised):
    """What rows of classes know besides their passes: features, classes and weights, in canonical order."""

    absolute = False
    codes: npt.NDArray[np.intp]
    counts: Array | None  # None if all are 1
    features_of: Callable[[], Features]

    def describe(self, features_of: Callable[[], Features], codes: npt.NDArray[np.intp], counts: Array | None) -> Self:
        """Keep what was observed, in canonical order; features are made when they are first asked for."""
        self.features_of, self.codes, self.counts = features_of, codes, counts
        return self

    def describe_in_order(self, W: Features, seen: Observations, order: npt.NDArray[np.intp]) -> Self:
        """The same from observations as they came."""
        counts = None if seen.counts is None else seen.counts[order]
        return self.describe(partial(in_order, W, order), seen.class_codes[order], counts)

    @cached_property
    def features(self) -> Features:
        """The rows of W."""
        return self.features_of()

    def trial(self, rng: np.random.Generator) -> Trial:
        """The log-likelihood of some rows, which does not depend on Λ."""
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
        """Features, classes, mirrors and weights."""
        weight = () if self.counts is None else (self.counts,)
        return self.features, self.codes, mirrors, *weight

    def moves(self) -> object | None:
        """There are moves over dense rows of the compiled engine alone."""
        return None


class SituationRows(Unparametrised):
    """What rows of situations derive from their passes."""

    n_seen: float
    held: Any  # the arrays that say what was observed
    value: Callable[..., float]

    def trial(self, rng: np.random.Generator) -> Trial:
        """The log-likelihood of all situations, to the power that makes them worth 2,000."""
        power = min(1.0, PROBED / self.n_seen)
        return lambda log_weights, log_mass: power * self.value(Weights.point(log_weights + log_mass))

    def identity(self, mirrors: object) -> tuple[Any, ...]:
        """Features and outcomes, in canonical order, and mirrors."""
        return *self.held, mirrors

    def moves(self) -> object | None:
        """There are moves over situations of the compiled engine alone."""
        return None


class Gradient(Protocol):
    """Covariates as an engine holds them, whose features exp(x·β) are computed during a pass."""

    def gradient(self, beta: Array, log_weights: Array) -> Slopes:
        """ln p(Y|β, λ) and its gradient, for β (M, d) and ln λ (K, M)."""
        ...

    def packed_for(self, n_components: int, dtype: npt.DTypeLike) -> tuple[Any, ...] | None:
        """The arrays that a compiled chain reads; None if threads should share the rows, or there is no such chain."""
        ...


class ParametricSlopes(Protocol):
    """The log-likelihood and its gradient, also in the parameters of the response."""

    value: float
    directions: Array
    log_weights: Array
    parameters: Array


class ParametricGradient(Protocol):
    """The same where the response has parameters."""

    def at(self, values: Array) -> Self:
        """The same observations with these values of the parameters."""
        ...

    def gradient(self, beta: Array, log_weights: Array) -> ParametricSlopes:
        """As that of `Gradient`, and the gradient in the parameters."""
        ...


class Engine(Protocol):
    """Makes rows of features and observations, and gradients of covariates and observations."""

    offers: Offers

    def rows(self, W: Features | None, seen: Observations, places: Any = None) -> Rows:
        """Sort, pack and keep the rows.

        Parameters
        ----------
        W : (rows, p) or None
            Not negative. A factor common to all entries of a situation changes nothing except for race ties.
            None for rankings without covariates, which are counted by their distinct sets of items left.
        seen : Observations
            Classes or situations.
        places : array or pair of arrays, optional
            Where these are a part of all observations: the place of each row among all rows, or the places of each
            situation and of its first entry. Random numbers belong to them.
        """
        ...

    def gradient(self, Z: Array, seen: Observations, dtype: npt.DTypeLike) -> Gradient:
        """Pack and keep covariates in the order given within a class; `dtype` is the precision that suffices."""
        ...


def canonical_order(
    features: Features, codes: npt.NDArray[np.intp], sample_weight: Array | None = None
) -> tuple[npt.NDArray[np.intp], Array]:
    """Rows by class, then by a projection of their features on a fixed direction; and that projection.

    The order depends on what the rows hold and not on how they came, so that sums and random draws are
    the same for shuffled data; equal rows are interchangeable. On the first direction, zeros and ones in different
    columns often have equal sums: a second one tells such rows apart, and rows that are equal go by their weights.
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
    """W_r·direction of these rows; a library's matrix product would round a row by its place."""
    if hasattr(features, "project"):  # where the rows are, if that is elsewhere
        return features.project(rows, direction)
    found = np.empty(len(rows))
    for start in range(0, len(rows), RUN):
        some = slice(start, start + RUN)
        W = features[rows[some]]
        if sparse.issparse(W):
            found[some] = W @ direction  # an entry after the other
        else:
            np.einsum("ij,j->i", np.asarray(W, dtype=np.float64), direction, out=found[some])
    return found


def check_counts(counts: Array, name: str = "weights", of: str = "rows") -> Array:
    """Refuse fractions in a sampled pass, where a weight of 2 is two rows."""
    if (counts != np.round(counts)).any():
        raise ValueError(
            f"a sampler takes whole numbers as {name} (a {name[:-1]} of 2 is two {of}), got "
            f"{counts[counts != np.round(counts)][0]}; 'em' and 'variational' take any."
        )
    return counts
