"""Rankings without covariates, as distinct sets of remaining items, except for rankings with ties.

`LeftSets` is the reference, `CompiledLeftSets` the fast version; `plackett.responses.left_sets` has the mathematics.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from plackett.compute.totals import totals
from plackett.data.observations import Observations, Situations
from plackett.engines.base import Likelihood, Rows, SituationRows, check_counts
from plackett.engines.by_passes import ByPasses
from plackett.engines.merged import merge_equal, without_covariates
from plackett.engines.pairs import PairRows, all_pairs
from plackett.engines.situations import canonical, checked_situations
from plackett.model.draws import gamma, stream_of
from plackett.model.features import Features
from plackett.model.race import Array, Stats, Weights, scaled
from plackett.responses.base import Whole, of_pairs, parameters_of
from plackett.responses.left_sets import expect_sets, pairs_of_sets, sample_sets, sets_of
from plackett.responses.ranking import Ranking

ONE = np.ones((1, 1))  # W of rankings without covariates
LOWEST = -300.0  # log-rates below the largest count as this far below, so that squares do not underflow
DENSE = 32  # pairs of a set and one within it, for each set, up to which a curvature is quicker than steps of EM
OTHERS = 0x2545F4914F6CDD1D  # xor-ed into the key of rankings with ties


class LeftSets(SituationRows):
    """Readable reference, one set at a time."""

    absolute, n_features, features = False, 1, ONE

    def __init__(self, seen: Observations, given: Situations):
        """Build from what was seen, `given` with equal rankings merged or not."""
        n_groups, (outcomes, item, _) = seen.n_groups, seen.all_situations
        self.sets, (_, chosen, situation) = sets_of(outcomes, item, n_groups)
        self.wins = totals(item, np.where(chosen, outcomes.counts[situation], 0.0), n_groups)
        self.n_groups, self.n_rows, self.n_seen = n_groups, len(given.outcomes.counts), float(outcomes.counts.sum())
        self.given = given

    @cached_property
    def order(self) -> Any:
        """Canonical order of the rankings."""
        return canonical(ONE, self.given)[1]

    @property
    def held(self) -> tuple[Any, ...]:
        """Sets and wins."""
        return *self.sets, self.wins

    @property
    def work(self) -> int:
        """Count of numbers read by a pass."""
        return len(self.sets.item)

    def set_threads(self, n_threads: int) -> None:
        """Do nothing: a pass is too short to be shared."""

    def likelihood(self) -> Likelihood | None:
        """Return the likelihood of worths, with its exact curvature where the sets are small."""
        pairs = pairs_of_sets(self.sets.smaller, DENSE * self.work)
        return ByPasses(self) if pairs is None else SetLikelihood(self, pairs)

    def _pass(self, rates: Array, key: int | None) -> tuple[float, Array]:
        """Return Σ c_S ln R_S, and the exposure."""
        item, smaller, count = self.sets
        left, exposure = np.zeros(len(item)), np.zeros((self.n_groups, 1))
        for v in range(1, len(item)):
            left[v] = left[smaller[v]] + rates[item[v]]
        times = np.zeros(len(item))
        for v in np.flatnonzero(count).tolist():
            times[v] = (count[v] if key is None else gamma(count[v], stream_of(key, v))) / left[v]
        for v in range(len(item) - 1, 0, -1):
            exposure[item[v], 0] += times[v]
            times[smaller[v]] += times[v]
        return float(count[1:] @ np.log(left[1:])), exposure

    def _stats(self, weights: Weights, key: int | None) -> Stats:
        rates, scale = scaled(weights.log_rival.T)
        logs, exposure = self._pass(rates[0], key)
        won = self.wins > 0
        value = float(self.wins[won] @ weights.log_own[won, 0]) - logs - self.wins.sum() * scale[0]
        return Stats(self.wins[:, None].copy(), np.exp(-scale[0]) * exposure, value)

    def expect(self, weights: Weights) -> Stats:
        """Return expected exposure, and the wins, which are known."""
        return self._stats(weights, None)

    def sample(self, weights: Weights, key: int) -> Stats:
        """Return sampled exposure, as a function of weights and key alone, and the wins."""
        check_counts(self.wins, "counts", "situations")
        return self._stats(weights, key)

    def value(self, weights: Weights) -> float:
        """Return the log-likelihood Σ count · ln Pr(outcome)."""
        return self._stats(weights, None).value


class CompiledLeftSets(LeftSets):
    """Compiled version of `LeftSets`."""

    def _pass(self, rates: Array, key: int | None) -> tuple[float, Array]:
        left, exposure = np.empty(len(self.sets.item)), np.zeros((self.n_groups, 1))
        if key is None:
            return expect_sets(self.sets, rates, left, exposure), exposure
        return sample_sets(self.sets, rates, np.uint64(key), left, exposure), exposure


class SetLikelihood(ByPasses):
    """V(ln λ) of distinct sets, with −∂²V = diag(A·1) − A, where A_ij = r_i r_j Σ_{S∋i,j} c_S/R_S² for i ≠ j.

    `outer` and `inner` are all pairs of a set and a smaller one within it, of which each adds an item of its own.
    """

    def __init__(self, rows: LeftSets, pairs: tuple[Whole, Whole]):
        super().__init__(rows)
        self.sets, (self.outer, self.inner) = rows.sets, pairs

    @property
    def work_of_curvature(self) -> int:
        """Count of numbers read for a curvature."""
        return len(self.sets.item) + len(self.outer)

    def curvature(self, log_weights: Array, free: Array) -> Array:
        """Return −∂²V (K, K)."""
        item, n, K = self.sets.item, len(self.sets.item), self.n_groups
        rates = np.exp(np.maximum(log_weights - log_weights.max(), LOWEST))
        left = rates[item] + np.bincount(self.outer, rates[item[self.inner]], n)
        weight = self.sets.times / left**2
        within = weight + np.bincount(self.inner, weight[self.outer], n)  # of all sets that contain this one
        pairs = np.bincount(item[self.outer] * K + item[self.inner], within[self.outer], K * K).reshape(K, K)
        found: Array = (pairs + pairs.T).astype(np.float64, copy=False)
        found *= -rates
        found *= rates[:, None]
        np.fill_diagonal(found, -found.sum(axis=1))
        return found


class CombinedRows(SituationRows):
    """Rows of two kinds, whose passes add; `order` covers both, by input position."""

    absolute, features = False, ONE

    def __init__(self, rows: LeftSets, others: Rows, order: Any = None):
        self.parts = rows, others
        self.n_rows, self.n_seen = rows.n_rows + others.n_rows, rows.n_seen + others.n_seen
        self.n_groups, self.n_features = rows.n_groups, rows.n_features
        self.order = order

    def identity(self, mirrors: object) -> tuple[Any, ...]:
        """Return the data of both parts, and mirrors."""
        return *self.parts[0].held, *self.parts[1].identity(mirrors)

    def walk(self) -> Likelihood | None:
        """Return the likelihood of both parts, or None if the rankings with ties have none."""
        return None if self.parts[1].walk() is None else ByPasses(self)

    @property
    def work(self) -> int:
        """Count of numbers read by a pass."""
        return self.parts[0].work + self.parts[1].work

    def set_threads(self, n_threads: int) -> None:
        """Share passes among so many threads; results do not change."""
        self.parts[1].set_threads(n_threads)

    def expect(self, weights: Weights) -> Stats:
        """Return expected wins and exposure."""
        rows, others = self.parts
        return rows.expect(weights) + others.expect(weights)

    def sample(self, weights: Weights, key: int) -> Stats:
        """Return sampled wins and exposure; each part has its own random numbers."""
        rows, others = self.parts
        return rows.sample(weights, key) + others.sample(weights, key ^ OTHERS)

    def value(self, weights: Weights) -> float:
        """Return the log-likelihood."""
        rows, others = self.parts
        return rows.value(weights) + others.value(weights)


def left_sets(seen: Observations, kind: type[LeftSets]) -> LeftSets:
    """Reduce rankings without covariates or ties to their distinct sets."""
    untied = Observations.of_situations(without_covariates(seen).all_situations, Ranking(), seen.n_groups)
    given = checked_situations(ONE, untied)
    many = len(seen) > seen.n_groups**2  # to sort them would take longer than to count them
    return kind(merge_equal(untied) if many and of_pairs(given.outcomes) else untied, given)


def plain_rows(seen: Observations, sets: type[LeftSets], tied_rows: Callable[[Features, Observations], Rows]) -> Rows:
    """Return rows for rankings without covariates: distinct sets, with `tied_rows` for rankings with ties."""
    if all_pairs(seen):
        return PairRows(seen)
    seen = without_covariates(seen)
    if seen.response.absolute or parameters_of(seen.response):
        return tied_rows(ONE, seen)
    outcomes = seen.all_situations.outcomes
    tied = np.logical_or.reduceat(np.append(outcomes.sizes > 1, False), outcomes.bucket_start[:-1])
    tied &= np.diff(outcomes.bucket_start) > 0
    if not tied.any():
        return left_sets(seen, sets)
    if tied.all():
        return tied_rows(ONE, seen)
    numbers = np.flatnonzero(~tied), np.flatnonzero(tied)
    plain, others = (seen.part(some) for some in numbers)
    rows, rest = left_sets(plain, sets), tied_rows(ONE, others)
    return CombinedRows(rows, rest, np.append(numbers[0][rows.order], numbers[1][rest.order]))
