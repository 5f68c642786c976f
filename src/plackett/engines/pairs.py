"""Pairs without covariates, as distinct pairs with counts of wins, losses and ties; cost does not grow with votes.

A pass goes through arrays over the distinct pairs; `plackett.responses.pair_laws` has the mathematics. With x = ln λ
and the parameters φ of the law the log-likelihood is Σ count · V(x_i, x_j, φ), and its slopes and curvature in x and φ
are sums of those of the pairs. Knows no prior.
"""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np

from plackett.data.observations import Observations
from plackett.engines.base import SituationRows, check_counts
from plackett.model.race import Array, Stats, Weights
from plackett.responses.base import Parameter, Response, Whole, checked, parameters_of
from plackett.responses.order_effect import SHOWN_FIRST, OrderEffect
from plackett.responses.pair_laws import FIRST, SECOND, TIE, Chances, PairLaw, law_of

ONE = np.ones((1, 1))  # W of pairs without covariates
LOWEST = -690.0  # log-weights further below the largest are raised to this distance
STEP = 1e-5  # of finite differences of slopes


def all_pairs(seen: Observations) -> bool:
    """True if these are pairs under a law of pairs that is better served by distinct pairs than by situations."""
    outcomes = seen.all_situations.outcomes
    counted = bool(parameters_of(seen.response)) or seen.response.absolute
    return counted and law_of(seen.response) is not None and bool((np.diff(outcomes.start) <= 2).all())


class PairRows(SituationRows):
    """Distinct pairs with counts.

    Attributes
    ----------
    first, second : (pairs,) arrays
        The items; the first is the one shown first, if any was, else the one with the smaller code.
    shown : (pairs,) array
        1 if the first item was shown first, else 0.
    counts : (3, pairs) array
        How often the first item won, the second won, and the two tied.
    """

    n_features, features = 1, ONE

    def __init__(self, seen: Observations):
        seen.response.check(checked(seen.all_situations.outcomes))
        self.ordered = isinstance(seen.response, OrderEffect)
        self.n_groups = seen.n_groups
        self._set_law(seen.response)
        self._count(seen)
        self._index = np.append(self.first, self.second)

    def _set_law(self, response: Response) -> None:
        law = law_of(response)
        assert law is not None
        self.law: PairLaw = law
        self.absolute = response.absolute
        self.parameters: tuple[Parameter, ...] = parameters_of(response)
        self.values_of_parameters: Array = np.array([each.start for each in self.parameters])

    def _count(self, seen: Observations) -> None:
        (start, bucket_start, sizes, counts), item, row = seen.all_situations
        self.n_rows, self.n_seen = len(counts), float(counts.sum())
        pair = (np.diff(start) == 2) & (np.diff(bucket_start) > 0)
        low = np.minimum(start[:-1], len(item) - 1)
        high = np.where(pair, low + 1, low)
        tied = np.append(sizes, 0)[np.minimum(bucket_start[:-1], len(sizes))] == 2
        shown = (row[high] == SHOWN_FIRST).astype(np.int64) - (row[low] == SHOWN_FIRST) if self.ordered else 0 * low
        turned = np.where(shown == 0, item[high] < item[low], shown > 0)  # whether `high` is the first item
        first, second = np.where(turned, item[high], item[low]), np.where(turned, item[low], item[high])
        outcome = np.where(tied, TIE, np.where(turned, SECOND, FIRST))
        key = (first * self.n_groups + second) * 2 + (shown != 0)
        self.order = np.lexsort((counts, outcome, key, pair))
        distinct, which = np.unique(key[pair], return_inverse=True)
        size = len(distinct)
        times: Array = np.bincount(outcome[pair] * size + which, counts[pair], 3 * size).astype(np.float64)
        self.counts = times.reshape(3, size)
        self.shown: Whole = distinct % 2
        self.first, self.second = np.divmod(distinct // 2, self.n_groups)

    @property
    def held(self) -> tuple[Any, ...]:
        """Pairs, counts and the name of their law."""
        return self.first, self.second, self.shown, self.counts, type(self.law).__name__

    @property
    def work(self) -> int:
        """Count of numbers read by a pass."""
        return self.counts.size

    def set_threads(self, n_threads: int) -> None:
        """Do nothing: a pass is too short to be shared."""

    def at(self, values: Array) -> Self:
        """Return the same pairs with other parameter values."""
        found = copy.copy(self)
        found.values_of_parameters = np.array(values, dtype=np.float64)
        return found

    def under(self, response: Response) -> Self:
        """Return the same pairs under another law, with an order effect only if they have one."""
        found = copy.copy(self)
        found._set_law(response)
        return found

    def counted(self, counts: Array) -> Self:
        """Return the same pairs with other counts (3, pairs)."""
        found = copy.copy(self)
        found.counts, found.n_seen = counts, float(counts.sum())
        return found

    def _log_rates(self, log_weights: Array, values: Array) -> tuple[Array, Array, Array]:
        """Return ln r of both items of each pair, and the parameters of the law without η."""
        u, v = log_weights[self.first], log_weights[self.second]
        if not self.ordered:
            return u, v, values
        return u + self.shown * np.log(values[-1]), v, values[:-1]

    def _chances(self, log_weights: Array, values: Array) -> Chances:
        return self.law.chances(*self._log_rates(log_weights, values))

    def _by_item(self, of_first: Array, of_second: Array) -> Array:
        found: Array = np.bincount(self._index, np.append(of_first, of_second), self.n_groups).astype(np.float64)
        return found

    def _arrivals(self) -> Array:
        """Arrivals n (K,)."""
        return self._by_item(*(self.law.arrivals.T @ self.counts))

    def _stats(self, weights: Weights, first: Array, second: Array, value: float) -> Stats:
        """Return wins and exposure from r s of both items of each pair."""
        x = weights.log_rival[:, 0]
        top = 0.0 if self.absolute else max(float(x.max()), -np.finfo(np.float64).max)
        waited = self._by_item(first, second) * np.exp(-np.maximum(x - top, LOWEST) - top)
        wins = self._arrivals()
        if weights.log_own is not weights.log_rival:
            won = wins > 0
            value += float(wins[won] @ (weights.log_own - weights.log_rival)[won, 0])
        return Stats(wins[:, None], waited[:, None], value)

    def _rival(self, weights: Weights) -> Array:
        """Return ln λ, bounded below."""
        x = weights.log_rival[:, 0]
        return np.maximum(x, x.max() + LOWEST)

    def _total(self, value: Array) -> float:
        return float(np.einsum("op,op->", self.counts, value))

    def expect(self, weights: Weights) -> Stats:
        """Return expected wins and exposure."""
        found = self._chances(self._rival(weights), self.values_of_parameters)
        of_first, of_second = (np.einsum("op,op->p", self.counts, each) for each in (found.first, found.second))
        return self._stats(weights, of_first, of_second, self._total(found.value))

    def sample(self, weights: Weights, key: int) -> Stats:
        """Return sampled wins and exposure, as a function of weights and key alone."""
        check_counts(self.counts.ravel(), "counts", "situations")
        rates = self._log_rates(self._rival(weights), self.values_of_parameters)
        drawn = self.law.draw(np.random.default_rng(key), *rates, self.counts)
        return self._stats(weights, *drawn, self.value(weights))

    def value(self, weights: Weights) -> float:
        """Return the log-likelihood."""
        return self.expect(weights).value

    def walk(self) -> PairRows:
        """Return self: a Hamiltonian walk uses the pairs directly."""
        return self

    def slopes(self, log_weights: Array, free: Array) -> tuple[float, Array, Array]:
        """Return the log-likelihood, and its slopes in ln λ (K,) and in the unconstrained parameters (P,)."""
        found = self._chances(log_weights, self._bound(free))
        of_first, of_second, of_free = self._by_pair(found)
        return self._total(found.value), self._by_item(of_first, of_second), of_free.sum(axis=1)

    def _bound(self, free: Array) -> Array:
        return np.array([each.bound(u) for each, u in zip(self.parameters, free, strict=True)])

    def _by_pair(self, found: Chances) -> tuple[Array, Array, Array]:
        """Return the slopes of each pair in both log-rates, and in the unconstrained parameters (P, pairs)."""
        of_first, of_second = (
            np.einsum("op,op->p", self.counts, arrivals[:, None] - each)
            for arrivals, each in zip(self.law.arrivals.T, (found.first, found.second), strict=True)
        )
        of_free = np.einsum("op,fop->fp", self.counts, found.slopes)
        return of_first, of_second, np.vstack([of_free, self.shown * of_first]) if self.ordered else of_free

    def curvature(self, log_weights: Array, free: Array) -> Array:
        """Return −∂²V (K + P, K + P) in ln λ and unconstrained parameters, by differences of the pairs' slopes."""
        K, P = self.n_groups, len(free)
        u, v, _ = self._log_rates(log_weights, self._bound(free))
        found = np.zeros((K + P, K + P))
        for which in range(2 + P):
            up, down = (self._slopes_after(h, which, u, v, free) for h in (STEP, -STEP))
            of_first, of_second, of_free = (  # the negative of second derivatives
                (low - high) / (2.0 * STEP) for low, high in zip(down, up, strict=True)
            )
            if which < 2:
                column = (self.first, self.second)[which]
                np.add.at(found, (self.first, column), of_first)
                np.add.at(found, (self.second, column), of_second)
                for p in range(P):
                    np.add.at(found[K + p], column, of_free[p])
            else:
                found[K:, K + which - 2] = of_free.sum(axis=1)
        found[:K, K:] = found[K:, :K].T
        return found

    def _slopes_after(self, h: float, which: int, u: Array, v: Array, free: Array) -> tuple[Array, Array, Array]:
        """Return slopes by pair after a step h in the first or second log-rate, or in a parameter."""
        moved, n = free.copy(), len(self.law.parameters)
        if which >= 2:
            moved[which - 2] += h
        to_first: Any = h if which == 0 else h * self.shown if which == 2 + n else 0.0
        values = self._bound(moved)[:n]
        return self._by_pair(self.law.chances(u + to_first, v + (h if which == 1 else 0.0), values))
