"""Posteriors of weights: a point, laws or draws; and probabilities computed from them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import logsumexp, ndtri

from plackett.features.mapped import transform
from plackett.model.diagnostics import agreement
from plackett.model.features import Features
from plackett.model.mixture import POOLED, Entries, normalised, standard_normals
from plackett.model.race import Array
from plackett.model.weights import GIG, WeightPrior
from plackett.posterior.averaging import mean_shares
from plackett.posterior.base import (
    NO_CHAINS,
    Codes,
    Estimates,
    Explanation,
    FittedModel,
    Quantities,
    RacePosterior,
    Table,
    Variables,
    averaged,
)
from plackett.posterior.pool import Members
from plackett.posterior.reasons import by_winner
from plackett.responses.base import Parameter

__all__ = ["Draws", "GIGs", "Gammas", "Point"]

ACTIVE = 0.1  # fraction of the mean weight 1/(Kp) above which a weight is active
READING = """\
A weight is how strongly a feature speaks for a class, given the others; all weights together sum to 1. exp(x) is \
large where the standardised column x is high, exp(-x) where it is low, and 1 is the same in every row. Active is the \
probability that a weight matters at all."""
ONE_ESTIMATE = (
    "EM gives one estimate and no uncertainty, so there is no interval. Use inference='gibbs' or "
    "inference='variational'."
)
CHUNK = 1 << 18  # probabilities per batch
MANY = 1 << 24  # number of probabilities from which compiled code averages them


@dataclass(frozen=True)
class WeightMembers(Members):
    """Draws of the weights of fixed features: r_e = Λ Σ_j W_ej λ̄_gj.

    Attributes
    ----------
    weights : (S, K, p) array
        λ̄.
    log_mass : (S,) array, optional
        ln Λ, if ties identify it.
    shifts : (S, c) array, optional
        Effects of columns of Z after the p columns of W on ln r: who was shown first, and attributes.
    """

    parameters = ("weights", "log_mass", "shifts")
    weights: Array
    log_mass: Array | None = None
    shifts: Array | None = None

    @property
    def n_groups(self) -> int:
        """Number of groups K."""
        return self.weights.shape[1]

    @property
    def work(self) -> int:
        """Number of rates computed per row of Z: of all groups, or of one where rows differ in their shifts alone."""
        return 1 if self.shifts is not None else self.n_groups

    def log_rates(self, entries: Entries) -> Array:
        """Return ln r_e (S, entries); −inf if all weights of its features are zero."""
        p = self.weights.shape[2]
        if self.shifts is not None and entries.Z.shape[1] > p:
            alike = entries._replace(Z=entries.Z[:1, :p], row=np.zeros_like(entries.row))  # without covariates W is 1
            return np.asarray(self.log_rates(alike) + self.shifts @ entries.Z[entries.row, p:].T)
        used, row = np.unique(entries.row, return_inverse=True)
        W, group, log_scale = entries.Z[used], self.group_of(entries), None
        if entries.logs:
            top = W.max(axis=1)
            log_scale = np.where(np.isfinite(top), top, 0.0)
            W = np.exp(W - log_scale[:, None])
        if len(used) < len(row) and group.ndim == 1:  # some entries share rows
            rates = np.matmul(self.weights, W.T)[:, group, row]
        elif self.n_groups == 1:
            rates = (self.weights[:, 0] @ W.T)[:, row]
        else:
            rates, W = np.empty((len(self.weights), len(row))), W[row]
            for s, each in enumerate(self.weights):
                rates[s] = np.einsum("ej,ej->e", W, each[group if group.ndim == 1 else group[s]])
        with np.errstate(divide="ignore"):
            found: Array = np.log(rates)
        if log_scale is not None:
            found += log_scale[row]
        return found if self.log_mass is None else found + self.log_mass[:, None]


class WeightModel(FittedModel, Protocol):
    """What posteriors of weights read of a model."""

    weights_: Array

    def _feature_names(self) -> npt.NDArray[np.object_]:
        """Names of the features."""

    def _counted(self, K: int, p: int) -> str:
        """Describe the number of weights."""

    def _prior_in_words(self) -> str:
        """Describe the prior of the weights."""

    def _parameter_names(self) -> tuple[str, ...]:
        """Names of the parameters of the response."""

    def _ties_in_words(self) -> str:
        """Describe how the law of ties was chosen."""


class WeightPosterior(RacePosterior[WeightModel]):
    """Normalised weights λ̄ of fixed features, as draws that represent the distribution.

    `log_mass` holds ln Λ of the same draws if ties identify it.
    """

    no_contributions = "fixed features explain a row as a race, whose winners are named: plots.race draws it."
    unit = "weights are normalised: they sum to 1"
    log_mass: Array | None
    parameters: Array | None = None

    @abstractmethod
    def flat_draws(self) -> Array:
        """Return draws (S, K, p), each of which sums to 1."""

    def members(self, every: bool = False) -> WeightMembers:
        """Return all draws, with equal shares."""
        weights = self.flat_draws()
        log_mass = None if self.log_mass is None else self.log_mass.reshape(-1)
        values = None if self.parameters is None else self.parameters.reshape(len(weights), -1)
        return WeightMembers(np.full(len(weights), 1.0 / len(weights)), weights, log_mass, of_response=values)

    def shifted_members(self, ordered: bool, coefficients: int) -> WeightMembers:
        """Return the members if the last parameters are an order effect and so many coefficients of attributes."""
        found = self.members()
        assert found.of_response is not None
        n = found.of_response.shape[1] - ordered - coefficients
        shifts = found.of_response[:, n:].copy()
        shifts[:, :ordered] = np.log(shifts[:, :ordered])
        return replace(found, of_response=found.of_response[:, :n] if n else None, shifts=shifts)

    def rows(self, features: Any, X: Any) -> Features:
        """Return W, after checking the number of columns."""
        W, p = transform(features, X, empty=True), self.shape_of_estimate[1]
        if W.shape[1] != p:
            raise ValueError(f"the feature map gave {W.shape[1]} columns, expected {p} as in fit.")
        return W

    def probabilities(self, rows: Features) -> Iterator[Array]:
        """Yield class probabilities (2), (rows, S, K), of runs of rows under every draw."""
        return chunks(rows, self.flat_draws())

    def predict(self, rows: Features) -> Array:
        """Class probabilities (n, K), averaged over the draws."""
        return mean_probabilities(rows, self.flat_draws())

    def wins(self, row: Any) -> tuple[Codes, Array]:
        """Return the competing features of one row (1, p) and their Pr(C=j, Y=k | x) under every draw, by (3) and (9).

        For a sparse row these are the non-zero features, unless some draw has no active weight among them.
        """
        draws = self.flat_draws()
        if sparse.issparse(row):
            rates = row.data * draws[:, :, row.indices]
            if rates.any(axis=(1, 2)).all():
                return row.indices, rates / rates.sum(axis=(1, 2), keepdims=True)
            row = row.toarray()
        rates = row[0] * draws
        answered = rates.any(axis=(1, 2), keepdims=True)
        rates = np.where(answered, rates, draws)  # a row whose features all have weight 0 is treated as W = 1
        return np.arange(draws.shape[2]), rates / rates.sum(axis=(1, 2), keepdims=True)

    def size(self, model: WeightModel) -> str:
        """Describe classes or items, features and prior."""
        values = [] if self.parameters is None else self.parameters.reshape(-1, self.parameters.shape[-1]).mean(axis=0)
        learned = [f", {name} {value:.3g}" for name, value in zip(model._parameter_names(), values, strict=True)]
        counted = f"{model._counted(*self.shape_of_estimate)}, {model._prior_in_words()}"
        return f"{counted}{''.join(learned)}{model._ties_in_words()}"

    def estimates(self, model: WeightModel) -> Estimates:
        """Return medians of the weights, and the probability that each is active."""
        draws, mean = self.flat_draws(), model.weights_
        found = getattr(model, "diagnostics_", None)
        measured = None if found is None else (np.minimum(found.ess_bulk, found.ess_tail), found.rhat)
        active: Array = (draws > ACTIVE / mean.size).mean(axis=0, dtype=np.float64)
        return _estimates(model, "median", np.median(draws, axis=0), draws, active, measured)

    def explain(self, model: WeightModel, row: object, prob: float) -> Explanation:
        """Return competitors by their probability of winning the race, the most probable first."""
        competing, shares = self.wins(model._rows(row)[:])
        (K, p), (of, labels) = shares.shape[1:], model._labels()
        names: Table = {of: np.repeat(labels, p), "feature": np.tile(model._feature_names()[competing], K)}
        return by_winner(names, shares, prob, self.no_interval is not None)


def _estimates(
    model: WeightModel, statistic: str, centre: Array, draws: Array | None, active: Array, measured: Any
) -> Estimates:
    mean, decimals = model.weights_, 2 + int(np.log10(model.weights_.size))
    what = "weights", "weight", READING, model._feature_names()
    return Estimates(*what, statistic, centre, mean, draws, active, measured, decimals)


@dataclass(frozen=True)
class Point(WeightPosterior):
    """Point estimate of λ̄ (maximum a posteriori), with ln Λ () if the scale is identified.

    Worths without covariates have a `covariance` (K + P, K + P) of ln λ and the unconstrained parameters of the
    response, the inverse information, unless the likelihood is flat or too long to differentiate.
    """

    weights: Array
    log_mass: Array | None = None
    parameters: Array | None = None  # parameters of the response, if any
    covariance: Array | None = field(default=None, repr=False)
    no_chains = NO_CHAINS

    @property
    def no_interval(self) -> str | None:  # type: ignore[override]
        """Why there is no interval, if there is none."""
        return ONE_ESTIMATE if self.covariance is None else None

    def flat_draws(self) -> Array:
        """The point itself."""
        return self.weights[None]

    def free_parameters(self, laws: Sequence[Parameter]) -> Array:
        """Return the unconstrained coordinates (P,) of the parameters."""
        values = np.empty(0) if self.parameters is None else self.parameters
        return np.array([law.free(value) for law, value in zip(laws, values, strict=True)])

    def spread_members(self, laws: Sequence[Parameter]) -> WeightMembers:
        """Members that show what is known: normal draws about the estimate, and last the estimate, which predicts."""
        best = self.members()
        if self.covariance is None:
            return best
        values, vectors = np.linalg.eigh(self.covariance)
        steps = standard_normals(POOLED, len(values)) @ (vectors * np.sqrt(np.maximum(values, 0.0))).T
        log_weights = np.log(self.weights[:, 0]) + steps[:, : len(self.weights)]
        log_total = logsumexp(log_weights, axis=1)
        log_mass, of_response = None, None
        if best.log_mass is not None:
            log_mass = np.append(best.log_mass + log_total, best.log_mass)
        if best.of_response is not None:
            free = self.free_parameters(laws) + steps[:, len(self.weights) :]
            drawn = [[law.bound(u) for u in column] for law, column in zip(laws, free.T, strict=True)]
            of_response = np.vstack([np.array(drawn).T, best.of_response])
        weights = np.concatenate([np.exp(log_weights - log_total[:, None])[..., None], best.weights])
        share = np.append(np.zeros(len(steps)), 1.0)
        return WeightMembers(share, weights, log_mass, modes=1, of_response=of_response)

    def deviations(self, anchor: int | None = None) -> Array:
        """Return standard deviations (K,) of log-worths relative to their mean, or to one of them."""
        assert self.covariance is not None
        K = len(self.weights)
        contrast = np.eye(K) - (1 / K if anchor is None else (np.arange(K) == anchor).astype(np.float64))
        found: Array = np.sqrt(np.maximum(np.einsum("ij,ij->i", contrast @ self.covariance[:K, :K], contrast), 0.0))
        return found

    def bounds_of_parameters(self, laws: Sequence[Parameter], prob: float) -> Table:
        """Return the parameters with the bounds of their intervals."""
        free, K = self.free_parameters(laws), len(self.weights)
        found = np.full((2, len(free)), np.nan)
        if self.covariance is not None:
            far = ndtri(0.5 + prob / 2) * np.sqrt(np.diag(self.covariance)[K:])
            ends = free - far, free + far
            found = np.array([[law.bound(u) for law, u in zip(laws, end, strict=True)] for end in ends])
        values = np.empty(0) if self.parameters is None else self.parameters
        return {"mean": values, "lower": found[0], "upper": found[1]}

    def estimates(self, model: WeightModel) -> Estimates:
        """Return the mode."""
        mode = self.weights
        return _estimates(model, "mode", mode, None, (mode > 0).astype(np.float64), None)

    def verdict(self, model: WeightModel) -> tuple[bool | None, str]:
        """Describe the number of non-zero weights."""
        active = int((self.weights > 0).sum())
        known = "one estimate, with intervals from the information there"
        known = "one estimate without uncertainty" if self.covariance is None else known
        return None, f"{active} of {self.weights.size} weights are not zero; {known}"


class SampledWeights(WeightPosterior):
    """Draws of ln λ̄ in `log_weights` (…, K, p)."""

    log_weights: Array

    @property
    def weights(self) -> Array:  # type: ignore[override]
        """Mean of the normalised weights over the draws."""
        return self.flat_draws().mean(axis=0)

    @property
    def shape_of_estimate(self) -> tuple[int, int]:
        """(K, p)."""
        K, p = self.log_weights.shape[-2:]
        return K, p

    def flat_draws(self) -> Array:
        """(S, K, p)."""
        return np.exp(self.log_weights).reshape(-1, *self.log_weights.shape[-2:])


class Approximation(SampledWeights):
    """Independent laws q(λ_kj), with draws of λ̄ that are made once."""

    no_chains = NO_CHAINS

    def verdict(self, model: WeightModel) -> tuple[bool | None, str]:
        """Describe the final bound."""
        return None, f"bound {model.trace_[-1]:.1f} after {model.n_iter_} passes; intervals are narrow"


@dataclass(frozen=True)
class Gammas(Approximation):
    """Independent q(λ_kj) = Gam(shape_kj, rate_kj) of (19), with draws of λ̄ made once."""

    shape: Array
    rate: Array
    log_weights: Array = field(repr=False)  # (S, K, p)
    log_mass: Array | None = field(default=None, repr=False)  # (S,) ln Λ, if the scale is identified


@dataclass(frozen=True)
class GIGs(Approximation):
    """Independent q(λ_kj) = GIG(shape_kj, tail, rate_kj), with draws of λ̄ made once."""

    shape: Array
    tail: float
    rate: Array
    log_weights: Array = field(repr=False)  # (S, K, p)
    log_mass: Array | None = field(default=None, repr=False)  # (S,) ln Λ, if the scale is identified


def approximation(q: WeightPrior, n_draws: int, rng: np.random.Generator, absolute: bool = False) -> Gammas | GIGs:
    """Return the variational posterior with draws; if absolute, of ln Λ as well."""
    log_weights = q.draw(rng, (n_draws, *q.shape.shape))
    log_mass = logsumexp(log_weights, axis=(-2, -1)) if absolute else None
    if isinstance(q, GIG):
        return GIGs(q.shape, q.tail, q.rate, normalised(log_weights), log_mass)
    return Gammas(q.shape, q.rate, normalised(log_weights), log_mass)


@dataclass(frozen=True)
class Draws(SampledWeights):
    """Draws of a Markov chain.

    Attributes
    ----------
    log_weights : (chain, draw, K, p) array
        ln λ̄, normalised so that logsumexp over class and feature is 0.
    shape : (chain, draw) array
        The shape a.
    log_mass : (chain, draw) array or None
        ln Λ, if the scale of the weights is identified.
    parameters : (chain, draw, P) array or None
        Parameters of the response, if it has any.
    """

    drawn: ClassVar[tuple[str, ...]] = ("log_weights", "shape", "log_mass", "parameters")
    log_weights: Array = field(repr=False)
    shape: Array = field(repr=False)
    log_mass: Array | None = field(default=None, repr=False)
    parameters: Array | None = field(default=None, repr=False)

    @property
    def median(self) -> Array:
        """Posterior median of each λ̄_kj; it does not sum to 1."""
        return np.median(self.flat_draws(), axis=0)

    def verdict(self, model: WeightModel) -> tuple[bool | None, str]:
        """Return whether the chains agree on predictions."""
        return agreement(model.diagnostics_)

    def variables(self, model: WeightModel, raw: bool) -> Variables:
        """Return normalised weights, and the shape if it is learned; if raw, logarithms of weights as well."""
        values = {"weight": np.exp(self.log_weights)} | ({"log_weight": self.log_weights} if raw else {})
        of, labels = model._labels()
        dims = {name: [of, "feature"] for name in values}
        if np.ptp(self.shape) > 0:
            values["shape"] = self.shape
        if self.log_mass is not None:
            values["log_mass"] = self.log_mass
        if self.parameters is not None:
            values |= dict(zip(model._parameter_names(), np.moveaxis(self.parameters, -1, 0), strict=True))
        return Variables(values, dims, {of: labels, "feature": model._feature_names()})

    def quantities(self, model: WeightModel) -> Quantities:
        """Return the shape, the log-likelihood, the worst-mixing probability and every weight."""
        scalars = {"shape": ("ln a", np.log(self.shape)), "log-likelihood": ("log-likelihood", model.trace_)}
        found, table = model.diagnostics_, ("ln weight of ", self.log_weights, model._feature_names())
        if found is None:
            return Quantities(scalars, *table)
        scalars |= found.scalars(model._predicted())
        return Quantities(scalars, *table, np.minimum(found.ess_bulk, found.ess_tail), found.shape_ess_bulk)


def chunks(features: Features, weights: Array) -> Iterator[Array]:
    """Yield probabilities (2) of runs of rows under every draw, arrays (rows, S, K)."""
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
    """Probabilities (S, K) of a row whose features all have weight 0, treated as W = 1."""
    sums = weights.sum(axis=2)
    shares: Array = sums / sums.sum(axis=1, keepdims=True)
    return shares


def mean_probabilities(features: Features, weights: Array) -> Array:
    """Return predictions averaged over draws (section 4.2), (n, K)."""
    if features.shape[0] * weights.shape[0] * weights.shape[1] < MANY:
        return averaged(chunks(features, weights))
    return mean_shares(features, weights, without_answer(weights))
