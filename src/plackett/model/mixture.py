"""Mixtures of exponential features: rates r_e = Σ_j exp(z_e·β_j) λ_gj as pure functions of β, ln λ and rows z.

Directions and posteriors both build on this module. It knows neither how draws are made nor how they are used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple, Self

import numpy as np
from scipy.special import logsumexp

from plackett.model.race import Array
from plackett.responses.base import Outcomes, Response, Whole

FAINT = -600.0  # smallest ln of a rate relative to the largest: a positive rate stays positive
POOLED = 400  # draws that predictions are averaged over
SHUT = -1e3  # ln λ of an absent component
SMALLEST = 1e-12  # lower bound of probabilities that divide others or are raised to a power


class Entries(NamedTuple):
    """Situations without their outcomes.

    Attributes
    ----------
    Z : (rows, d) array
        Covariates, standardised as those of the fit were, or features W.
    group : (entries,) array
        g(e): group whose weights an entry uses; −1 for an unknown person.
    row : (entries,) array
        Its row of Z.
    start : (T + 1,) array
        First entry of each situation; the last number is the number of entries.
    labels : (entries,) array, optional
        The item or alternative of each entry: its column in predictions. None: its place in the situation.
    n_labels : int
        A, columns of predictions; 0: as many as the largest situation has entries.
    logs : bool
        True if Z holds ln W.
    """

    Z: Array
    group: Whole
    row: Whole
    start: Whole
    labels: Whole | None = None
    n_labels: int = 0
    logs: bool = False

    @property
    def n_situations(self) -> int:
        """T."""
        return len(self.start) - 1

    @property
    def width(self) -> int:
        """A."""
        return self.n_labels or int(np.diff(self.start).max(initial=0))

    @property
    def situation(self) -> Whole:
        """Situation of each entry."""
        return np.repeat(np.arange(self.n_situations), np.diff(self.start))

    @property
    def column(self) -> Whole:
        """Column of each entry in predictions."""
        if self.labels is not None:
            return self.labels
        return np.arange(self.start[-1]) - np.repeat(self.start[:-1], np.diff(self.start))

    def part(self, first: int, last: int) -> Entries:
        """Return situations first ≤ t < last, with all rows."""
        low, high = self.start[first], self.start[last]
        labels = None if self.labels is None else self.labels[low:high]
        start, width = self.start[first : last + 1] - low, self.width
        return Entries(self.Z, self.group[low:high], self.row[low:high], start, labels, width, self.logs)

    def parts(self, size: int) -> Iterator[tuple[int, int]]:
        """Yield runs of situations with about `size` entries each."""
        first, T = 0, self.n_situations
        while first < T:
            last = max(first + 1, int(np.searchsorted(self.start, self.start[first] + size, side="right")) - 1)
            yield first, min(last, T)
            first = last

    def ordered(self, entry: Whole, start: Whole) -> Entries:
        """Select and reorder entries, for instance in the order of an outcome."""
        labels = None if self.labels is None else self.labels[entry]
        return self._replace(group=self.group[entry], row=self.row[entry], start=start, labels=labels)

    def wide(self, values: Array, missing: float = 0.0) -> Array:
        """Arrange numbers (…, entries) as (…, T, A), with `missing` where a situation lacks the entry."""
        T, A, column = self.n_situations, self.width, self.column
        if len(column) == T * A and (column.reshape(T, A) == np.arange(A)).all():
            return np.ascontiguousarray(values).reshape(*values.shape[:-1], T, A)
        found = np.full((*values.shape[:-1], T, A), missing)
        found[..., self.situation, column] = values
        return found


def log_rates(directions: Array, log_weights: Array, Z: Array, group: Whole, row: Whole | None = None) -> Array:
    """ln r_e = ln Σ_j exp(z_e·β_j) λ_gj of every entry, (S, entries), for β (S, M, d) and ln λ (S, K, M).

    Groups are (entries,), or (S, entries) if they differ between draws. Without `row`, entry e uses row e of Z.
    """
    used, row = np.unique(np.arange(len(Z)) if row is None else row, return_inverse=True)
    scores = directions @ Z[used].T  # (S, M, rows)
    total = logsumexp(log_weights, axis=1)  # (S, M)
    scores += total[..., None]
    peak = scores.max(axis=1)  # (S, rows)
    scores -= peak[:, None]
    np.exp(np.maximum(scores, FAINT, out=scores), out=scores)
    votes = np.exp(np.maximum(log_weights - total[:, None], FAINT))  # (S, K, M)
    if group.ndim == 1 and (len(used) < len(row) or votes.shape[1] == 1):  # some entries share rows, or all votes
        rates = np.matmul(votes, scores)[:, group, row]
    else:
        rates = np.einsum("sem,sme->se", votes[np.arange(len(votes))[:, None], group], scores[:, :, row])
    found: Array = np.log(rates) + peak[:, row]
    return found


def shares(log_rates: Array, start: Whole) -> Array:
    """Divide r_e by Σ r over its situation, for ln r (S, entries)."""
    length = np.diff(start)
    top = np.maximum.reduceat(log_rates, start[:-1], axis=1)
    rates: Array = np.exp(log_rates - np.repeat(top, length, axis=1))
    return rates / np.repeat(np.add.reduceat(rates, start[:-1], axis=1), length, axis=1)


def outcome_values(log_rates: Array, outcomes: Outcomes, response: Response, parameters: Array | None = None) -> Array:
    """ln Pr(outcome) of each situation, (S, T), for ln r (S, entries) and parameters (S, P) of the response."""
    length, T = np.diff(outcomes.start), len(outcomes.counts)
    if not response.absolute:
        top = np.maximum.reduceat(log_rates, outcomes.start[:-1], axis=1)
        log_rates = log_rates - np.repeat(top, length, axis=1)
    rates = np.exp(np.maximum(log_rates, FAINT))
    found, (arrivals, at_risk) = np.empty((len(rates), T)), np.empty((2, rates.shape[1]))
    for s in range(len(rates)):
        if parameters is not None:
            response = response.at(*parameters[s].tolist())  # type: ignore[attr-defined]
        response.expect_block(outcomes, 0, T, rates[s], arrivals, at_risk, found[s])
    return found


def part_of_outcomes(outcomes: Outcomes, first: int, last: int) -> Outcomes:
    """Return situations first ≤ t < last."""
    start, bucket_start = outcomes.start[first : last + 1], outcomes.bucket_start[first : last + 1]
    sizes = outcomes.sizes[bucket_start[0] : bucket_start[-1]]
    return Outcomes(start - start[0], bucket_start - bucket_start[0], sizes, outcomes.counts[first:last])


def table_of(shares: Array, start: Whole, width: int) -> Array:
    """Arrange numbers (S, entries) as (T, S, width), zero where a situation has fewer entries."""
    length = np.diff(start)
    found = np.zeros((len(length), len(shares), width))
    place = np.arange(start[-1]) - np.repeat(start[:-1], length)
    found[np.repeat(np.arange(len(length)), length), :, place] = shares.T
    return found


def normalised(log_weights: Array) -> Array:
    """Shift the last two axes so that logsumexp over them is 0."""
    shifted: Array = log_weights - logsumexp(log_weights, axis=(-2, -1), keepdims=True)
    return shifted


@dataclass(frozen=True)
class Stacked:
    """Draws of a Markov chain, with a mode, its weight and the power κ.

    Attributes
    ----------
    directions : (chain, draw, M, d) array
        β, for the columns that the directions see.
    log_weights : (chain, draw, K, M) array
        ln λ, normalised so that logsumexp over all is 0 unless rates are absolute (race ties).
    scales : (chain, draw, d) array
        s_f: scale of each column's coefficients, a priori of order 1.
    mode_directions, mode_log_weights : (M, d), (K, M) arrays, optional
        Mode that is stacked with the draws.
    mode_weight : float
        Weight of the mode in predictions.
    power : float
        κ, the exponent of the predicted probabilities.
    parameters : (chain, draw, P) array, optional
        Parameters of the response, if it has any.
    mode_parameters : (P,) array, optional
        Parameters of the mode.
    """

    drawn: ClassVar[tuple[str, ...]] = ("directions", "log_weights", "scales", "parameters")
    directions: Array = field(repr=False)
    log_weights: Array = field(repr=False)
    scales: Array = field(repr=False)
    mode_directions: Array | None = field(default=None, repr=False)
    mode_log_weights: Array | None = field(default=None, repr=False)
    mode_weight: float = 0.0
    power: float = 1.0
    parameters: Array | None = field(default=None, repr=False)
    mode_parameters: Array | None = field(default=None, repr=False)

    @property
    def _has_mode(self) -> bool:
        return self.mode_directions is not None

    def with_mode(self, mode: Stacked, weight: float, power: float) -> Self:
        """Stack the draws with a mode of this weight, and κ; components that the mode lacks get weight 0."""
        (M, d), K = self.directions.shape[2:], self.log_weights.shape[2]
        few = mode.directions.shape[2]
        directions, log_weights = np.zeros((M, d)), np.full((K, M), SHUT)
        directions[:few], log_weights[:, :few] = mode.directions[0, 0], mode.log_weights[0, 0]
        values = None if mode.parameters is None else mode.parameters[0, 0]
        found: Self = replace(
            self,
            mode_directions=directions,
            mode_log_weights=log_weights,
            mode_weight=weight,
            power=power,
            mode_parameters=values,
        )
        return found

    @property
    def _some(self) -> Whole:
        """Positions of the draws used for prediction."""
        n = self.log_weights.shape[0] * self.log_weights.shape[1]
        return np.linspace(0, n - 1, min(POOLED, n)).round().astype(np.intp)

    def _pooled_parameters(self) -> Array | None:
        """Parameters of the response (S, P) used for prediction."""
        if self.parameters is None:
            return None
        chain, draw = np.divmod(self._some, self.log_weights.shape[1])
        own = self.parameters[chain, draw]
        return own if self.mode_parameters is None else np.concatenate([own, self.mode_parameters[None]])

    def _pooled(self) -> tuple[Array, Array, Array]:
        """Directions (S, M, d), ln λ (S, K, M) and weights (S,) used for prediction: some draws, then the mode."""
        chain, draw = np.divmod(self._some, self.log_weights.shape[1])
        some = self._some
        directions, log_weights = self.directions[chain, draw], self.log_weights[chain, draw]
        weights = np.full(len(some), (1 - self.mode_weight) / len(some))
        if self.mode_directions is None or self.mode_log_weights is None:
            return directions, log_weights, weights
        return (
            np.concatenate([directions, self.mode_directions[None]]),
            np.concatenate([log_weights, self.mode_log_weights[None]]),
            np.append(weights, self.mode_weight),
        )


class Mode(Stacked):
    """Point estimate without uncertainty: one chain of one draw."""


def probabilities(draws: Stacked, Z: Array) -> Array:
    """Class probabilities (chain, draw, row, K) of a few standardised rows under every draw."""
    totals = logsumexp(draws.log_weights, axis=2)
    gates = draws.directions @ Z.T + totals[..., None]  # (chain, draw, M, row)
    gates = np.exp(gates - logsumexp(gates, axis=2, keepdims=True))
    votes = np.exp(draws.log_weights - totals[:, :, None])
    return np.swapaxes(gates, 2, 3) @ np.swapaxes(votes, 2, 3)


def sharpened(probability: Array, power: float, smallest: float = 0.0) -> Array:
    """Return p^κ/Σ p^κ over the last axis; p is bounded below by `smallest`, and 0 stays 0."""
    if power == 1.0 and smallest == 0.0:
        return probability
    p = np.maximum(probability, smallest)
    raised = (p / p.max(axis=-1, keepdims=True)) ** power
    found: Array = raised / raised.sum(axis=-1, keepdims=True)
    return found


def contributions(draws: Array, mode: Array, weight: float, power: float) -> Array:
    """Contribution of each draw to p ∝ (w·mode + (1 − w)·average)^κ, to first order, for draws (chain, draw, row, K).

    The average of the contributions over the draws is p.
    """
    average = draws.mean(axis=(0, 1))
    mixed = weight * mode + (1 - weight) * average
    found = sharpened(mixed, power)
    moved = (1 - weight) * (draws - average) / np.maximum(mixed, SMALLEST)
    moved -= (found * moved).sum(axis=-1, keepdims=True)
    shifted: Array = found + power * found * moved
    return shifted


def varied(mode: Array, draws: Array) -> Array:
    """Spread of a mode: mode_s ∝ mode·draw_s/average (rows, S, K), from its probabilities (rows, K) and the draws'.

    A mode has no draws of its own, so its log-odds are assumed to vary as those of the draws about their average.
    """
    average = np.maximum(draws.mean(axis=1, keepdims=True), SMALLEST)
    found = mode[:, None] * np.maximum(draws, SMALLEST) / average
    return found / found.sum(axis=-1, keepdims=True)


def standard_normals(n: int, d: int) -> Array:
    """Return fixed normal draws (n, d): antithetic, and with unit covariance if there are enough."""
    half = np.random.default_rng(0).standard_normal((n // 2, d))
    found = np.vstack([half, -half])
    if 0 < d < n // 4:
        found = found @ np.linalg.inv(np.linalg.cholesky(found.T @ found / n)).T
    return found
