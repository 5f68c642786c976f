"""What learned directions over situations leave behind: draws of (β, λ), and what they say of new situations.

Entry e of a situation has the rate r_e = Σ_j exp(z_e·β_j) λ_gj. No row of the data that were fitted is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from plackett.engines.situations import FAINT
from plackett.model.race import Array
from plackett.posterior.base import Explanation, Posterior, Quantities, Variables
from plackett.posterior.contributions import Mixture, contributions
from plackett.posterior.diagnostics import agreement
from plackett.posterior.reasons import reasons
from plackett.posterior.stacked import NAMELESS, ModeAlone, Stacked, sharpened
from plackett.responses.base import Outcomes, Response, Whole

CHUNK = 1 << 21  # numbers exp(z·β) held at a time


class Entries(NamedTuple):
    """Situations without their outcomes.

    Attributes
    ----------
    Z : (rows, d) array
        Covariates, standardised as those of the fit were.
    group : (entries,) array
        g(e): whose weights an entry uses.
    row : (entries,) array
        Its row of Z.
    start : (T + 1,) array
        The first entry of each situation; the last number is that of all entries.
    """

    Z: Array
    group: Whole
    row: Whole
    start: Whole

    def part(self, first: int, last: int) -> Entries:
        """Situations first ≤ t < last, with all rows."""
        low, high = self.start[first], self.start[last]
        return Entries(self.Z, self.group[low:high], self.row[low:high], self.start[first : last + 1] - low)

    def parts(self, size: int) -> Iterator[tuple[int, int]]:
        """Runs of situations of about so many entries."""
        first, T = 0, len(self.start) - 1
        while first < T:
            last = max(first + 1, int(np.searchsorted(self.start, self.start[first] + size, side="right")) - 1)
            yield first, min(last, T)
            first = last


def log_rates(directions: Array, log_weights: Array, Z: Array, group: Whole, row: Whole | None = None) -> Array:
    """ln r_e = ln Σ_j exp(z_e·β_j) λ_gj of every entry, (S, entries), for β (S, M, d) and ln λ (S, K, M).

    Groups are (entries,), or (S, entries) where they differ between the draws; each entry has a row of Z of its own
    unless it is said which.
    """
    used, row = np.unique(np.arange(len(Z)) if row is None else row, return_inverse=True)
    scores = directions @ Z[used].T  # (S, M, rows)
    total = logsumexp(log_weights, axis=1)  # (S, M)
    scores += total[..., None]
    peak = scores.max(axis=1)  # (S, rows)
    scores -= peak[:, None]
    np.exp(np.maximum(scores, FAINT, out=scores), out=scores)
    votes = np.exp(np.maximum(log_weights - total[:, None], FAINT))  # (S, K, M)
    if len(used) < len(row) and group.ndim == 1:  # some entries share rows
        rates = np.matmul(votes, scores)[:, group, row]
    else:
        rates = np.einsum("sem,sme->se", votes[np.arange(len(votes))[:, None], group], scores[:, :, row])
    found: Array = np.log(rates) + peak[:, row]
    return found


def shares(log_rates: Array, start: Whole) -> Array:
    """r_e/Σ r over the situation of each entry, for ln r (S, entries)."""
    length = np.diff(start)
    top = np.maximum.reduceat(log_rates, start[:-1], axis=1)
    rates: Array = np.exp(log_rates - np.repeat(top, length, axis=1))
    return rates / np.repeat(np.add.reduceat(rates, start[:-1], axis=1), length, axis=1)


def outcome_values(log_rates: Array, outcomes: Outcomes, response: Response) -> Array:
    """ln Pr(outcome) of each situation, (S, T), for ln r (S, entries)."""
    length, T = np.diff(outcomes.start), len(outcomes.counts)
    if not response.absolute:
        top = np.maximum.reduceat(log_rates, outcomes.start[:-1], axis=1)
        log_rates = log_rates - np.repeat(top, length, axis=1)
    rates = np.exp(np.maximum(log_rates, FAINT))
    found, (arrivals, at_risk) = np.empty((len(rates), T)), np.empty((2, rates.shape[1]))
    for s in range(len(rates)):
        response.expect_block(outcomes, 0, T, rates[s], arrivals, at_risk, found[s])
    return found


def part_of_outcomes(outcomes: Outcomes, first: int, last: int) -> Outcomes:
    """Situations first ≤ t < last."""
    start, bucket_start = outcomes.start[first : last + 1], outcomes.bucket_start[first : last + 1]
    sizes = outcomes.sizes[bucket_start[0] : bucket_start[-1]]
    return Outcomes(start - start[0], bucket_start - bucket_start[0], sizes, outcomes.counts[first:last])


def table_of(shares: Array, start: Whole, width: int) -> Array:
    """Numbers (S, entries) as (T, S, width), zero where a situation has fewer entries."""
    length = np.diff(start)
    found = np.zeros((len(length), len(shares), width))
    place = np.arange(start[-1]) - np.repeat(start[:-1], length)
    found[np.repeat(np.arange(len(length)), length), :, place] = shares.T
    return found


@dataclass(frozen=True)
class SituationDraws(Stacked, Posterior):
    """Draws of a Markov chain: directions along the columns of the design, and ln λ of groups, whose weights differ."""

    model_name = "Plackett–Luce regression"
    no_estimates = f"{NAMELESS}, so there are no weights to compare."
    no_race = f"{NAMELESS}, so none can be said to win."

    @property
    def shape_of_estimate(self) -> tuple[int, int]:
        """(K, M)."""
        K, M = self.log_weights.shape[2:]
        return K, M

    @property
    def draw_weights(self) -> Array:
        """(S,): the weight in predictions of each of the draws that predict, and at last of the mode."""
        return self._pooled()[2]

    @property
    def n_draws(self) -> int:
        """How many of what predicts are draws; what follows them is the mode."""
        return len(self.draw_weights) - self._has_mode

    def log_rates(self, entries: Entries) -> Array:
        """ln r_e (S, entries) under what predicts: some draws and at last the mode, if there is one.

        Only differences within a situation count, unless rates are absolute.
        """
        directions, log_weights, _ = self._pooled()
        return log_rates(directions, log_weights, *entries[:3])

    def _blocks(self, entries: Entries) -> Iterator[tuple[int, int, Array]]:
        """Runs of situations, and ln r (S, entries) of each."""
        directions, log_weights, _ = self._pooled()
        step = max(1, CHUNK // (len(directions) * directions.shape[1]))
        for first, last in entries.parts(step):
            yield first, last, log_rates(directions, log_weights, *entries.part(first, last)[:3])

    def probabilities(self, rows: Entries) -> Iterator[Array]:
        """Pr(e comes first) (situations, S, entries) of runs of situations under draws; the mode is none of them.

        A situation with fewer entries than the largest has zeros at the end.
        """
        width, draws = int(np.diff(rows.start).max()), slice(len(self.draw_weights) - self._has_mode)
        for first, last, log_r in self._blocks(rows):
            start = rows.start[first : last + 1] - rows.start[first]
            yield table_of(shares(log_r[draws], start), start, width)

    def predict(self, rows: Entries) -> Array:
        """Pr(e comes first) (T, largest number of entries): the average of draws and mode, to the power κ."""
        width, weights = int(np.diff(rows.start).max()), self.draw_weights
        found = []
        for first, last, log_r in self._blocks(rows):
            start = rows.start[first : last + 1] - rows.start[first]
            found.append(table_of(weights[None] @ shares(log_r, start), start, width)[:, 0])
        return sharpened(np.concatenate(found), self.power)

    def interval(self, rows: Entries, prob: float) -> tuple[Array, Array]:
        """Around the prediction as well, which may lean on a mode that is no draw."""
        (lower, upper), probability = super().interval(rows, prob), self.predict(rows)
        return np.minimum(lower, probability), np.maximum(upper, probability)

    def values(self, entries: Entries, outcomes: Outcomes, response: Response) -> Array:
        """ln Pr(outcome) (S, T) under what predicts: some draws and at last the mode, if there is one."""
        blocks = self._blocks(entries)
        parts = [outcome_values(log_r, part_of_outcomes(outcomes, *at), response) for *at, log_r in blocks]
        return np.concatenate(parts, axis=1)

    def chain_log_rates(self, entries: Entries) -> Array:
        """ln r_e (chain, draw, entries) under every draw."""
        C, D, K, M = self.log_weights.shape
        found = log_rates(self.directions.reshape(C * D, M, -1), self.log_weights.reshape(C * D, K, M), *entries[:3])
        return found.reshape(C, D, -1)

    def chain_values(self, entries: Entries, outcomes: Outcomes, response: Response) -> Array:
        """ln Pr(outcome) (chain, draw, T) under every draw: the pointwise log-likelihood."""
        C, D, K, M = self.log_weights.shape
        directions, log_weights = self.directions.reshape(C * D, M, -1), self.log_weights.reshape(C * D, K, M)
        parts = []
        for first, last in entries.parts(max(1, CHUNK // (C * D * M))):
            log_r = log_rates(directions, log_weights, *entries.part(first, last)[:3])
            parts.append(outcome_values(log_r, part_of_outcomes(outcomes, first, last), response))
        return np.concatenate(parts, axis=1).reshape(C, D, -1)

    def log_scores(self, entries: Entries, outcomes: Outcomes, response: Response) -> Array:
        """ln of the predicted probability of each outcome, (T,): a mixture over draws and mode.

        Of choices (κ ≠ 1) that of `predict`.
        """
        if self.power != 1.0:
            return np.log(self.predict(entries)[:, 0])
        found: Array = logsumexp(self.values(entries, outcomes, response), axis=0, b=self.draw_weights[:, None])
        return found

    def size(self, model: Any) -> str:
        """Groups and components."""
        K, M = self.log_weights.shape[2:]
        return f"{M} learned directions of {self.directions.shape[-1]} columns, weights of {K}"

    def verdict(self, model: Any) -> tuple[bool | None, str]:
        """Whether the chains agree on predictions."""
        return agreement(model.diagnostics_)

    def explain(self, model: Any, row: Any, prob: float) -> Explanation:
        """What persons' columns contribute to the log-odds of the item that is most probably first.

        Pr(k first) = Σ_j softmax_j(z·β_j + ln Λ_j) λ_kj/Λ_j; the reference is z = 0.
        """
        x = model._checked_rows(row, reset=False)
        (z,), (directions, log_weights, share) = model.features_.of(x), self._pooled()
        log_totals = logsumexp(log_weights, axis=1)  # ln Λ_j, (S, M)
        votes = np.exp(log_weights - log_totals[:, None]).transpose(0, 2, 1)
        line = Mixture(log_totals, directions @ z, votes, share, self._has_mode, self.power)
        k = int(np.argmax(line.mixed(line.probabilities(np.array([1.0]))[1])[0]))
        found = contributions(line, k, directions, lambda slopes: z * slopes)
        return reasons(model, found, k, x[0], model.features_.reference(), prob)

    def variables(self, model: Any, raw: bool) -> Variables:
        """Nothing but predictions is identified; what was drawn is for the columns of the design."""
        if not raw:
            return Variables({}, {}, {})
        values = {"direction": self.directions, "log_weight": self.log_weights, "scale": self.scales}
        dims = {"direction": ["component", "column"], "log_weight": ["group", "component"], "scale": ["column"]}
        (K, M), d = self.log_weights.shape[2:], self.directions.shape[-1]
        coords: dict[str, npt.NDArray[Any]] = {"component": np.arange(M), "column": np.arange(d), "group": np.arange(K)}
        return Variables(values, dims, coords)

    def quantities(self, model: Any) -> Quantities:
        """The log-posterior alone: nothing else has an identity."""
        return Quantities({"log-likelihood": ("log-posterior", model.trace_)})


class SituationPoint(ModeAlone, SituationDraws):
    """The mode alone."""
