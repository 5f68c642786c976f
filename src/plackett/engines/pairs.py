"""Pairs without covariates, as distinct pairs with counts of wins, losses and ties; cost does not grow with votes.

Comparisons with attributes are distinct if their pairs or their attributes are.

A pass goes through arrays over the distinct pairs; `plackett.responses.pair_laws` has the mathematics. With x = ln λ
and the parameters φ of the law the log-likelihood is Σ count · V(x_i, x_j, φ), and its slopes and curvature in x and φ
are sums of those of the pairs. Knows no prior.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from plackett.data.comparisons import turned
from plackett.data.observations import Observations
from plackett.engines.base import SituationRows, check_counts
from plackett.engines.merged import merge_equal
from plackett.model.race import Array, Stats, Weights
from plackett.responses.base import Parameter, Response, checked, parameters_of
from plackett.responses.order_effect import SHOWN_FIRST
from plackett.responses.pair_laws import FIRST, SECOND, TIE, PairLaw, Summed, is_ordered, law_of

ONE = np.ones((1, 1))  # W of pairs without covariates
LOWEST = -690.0  # log-weights further below the largest are raised to this distance
ALL, BLOCK = slice(None), 1 << 14  # all pairs; number of pairs whose arrays stay in the cache
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
    runs : array
        Where runs of the same two items begin.
    differences : (pairs, d) array
        Attributes of the first item minus those of the second, divided by the units of their coefficients.
    counts : (3, pairs) array
        How often the first item won, the second won, and the two tied.
    """

    n_features, features = 1, ONE

    def __init__(self, seen: Observations):
        seen.response.check(checked(seen.all_situations.outcomes))
        self.ordered = is_ordered(seen.response)
        self.n_groups = seen.n_groups
        self._set_law(seen.response)
        self.given, self.n_rows, self.n_seen = seen, len(seen), float(seen.weights.sum())
        self._count(merge_equal(seen))

    def _set_law(self, response: Response) -> None:
        law = law_of(response)
        assert law is not None
        self.law: PairLaw = law
        self.absolute = response.absolute
        self.parameters: tuple[Parameter, ...] = parameters_of(response)
        self.values_of_parameters: Array = np.array([each.start for each in self.parameters])

    @cached_property
    def order(self) -> Any:
        """Canonical order of the comparisons."""
        return _oriented(self.given, self.ordered).order(self.given)

    def _count(self, seen: Observations) -> None:
        these = _oriented(seen, self.ordered)
        among = these.order(seen)[: these.pair.sum()]
        columns = *these.differences.T, these.key
        new = np.any([np.diff(column[among], prepend=np.nan) != 0.0 for column in columns], axis=0)
        which, distinct = np.cumsum(new) - 1, among[new]
        size, counts = len(distinct), seen.all_situations.outcomes.counts
        times: Array = np.bincount(these.outcome[among] * size + which, counts[among], 3 * size).astype(np.float64)
        self.counts = times.reshape(3, size)
        key = these.key[distinct]
        self.first, self.second, self.shown = np.unravel_index(key, (self.n_groups, self.n_groups, 2))
        self.runs = np.flatnonzero(np.diff(key // 2, prepend=-1))
        units = np.array([each.unit for each in self.parameters[len(self.parameters) - len(columns) + 1 :]])
        self.differences: Array = these.differences[distinct] / units

    @property
    def held(self) -> tuple[Any, ...]:
        """Pairs, counts and the name of their law."""
        more = (self.differences, [each.unit for each in self.parameters]) if self.differences.size else ()
        return self.first, self.second, self.shown, self.counts, type(self.law).__name__, *more

    @property
    def work(self) -> int:
        """Count of numbers read by a pass."""
        return self.counts.size + self.differences.size

    @property
    def work_of_curvature(self) -> int:
        """Count of numbers read for a curvature."""
        return 2 * (2 + len(self.law.parameters)) * self.work

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

    def _log_rates(self, log_weights: Array, values: Array, some: slice = ALL) -> tuple[Array, Array, Array]:
        """Return ln r of both items of some pairs, and the parameters of the law alone."""
        n = len(self.law.parameters)
        u, v = log_weights[self.first[some]], log_weights[self.second[some]]
        if self.ordered:
            u = u + self.shown[some] * np.log(values[n])
        if self.differences.size:
            units = [each.unit for each in self.parameters[n + self.ordered :]]
            half = self.differences[some] @ (values[n + self.ordered :] * units / 2.0)
            u, v = u + half, v - half
        return u, v, values[:n]

    def _by_item(self, of_first: Array, of_second: Array) -> Array:
        """Return the sums of numbers of both items of each pair (K,)."""
        found = np.zeros(self.n_groups)
        if len(self.runs):
            for item, numbers in ((self.first, of_first), (self.second, of_second)):
                found += np.bincount(item[self.runs], np.add.reduceat(numbers, self.runs), self.n_groups)
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
        return Stats(wins[:, None], waited[:, None], value + self._gain(weights, wins))

    def _gain(self, weights: Weights, wins: Array) -> float:
        """Return what the own weights of arrivals add to the value of rival weights."""
        if weights.log_own is weights.log_rival:
            return 0.0
        won = wins > 0
        return float(wins[won] @ (weights.log_own - weights.log_rival)[won, 0])

    def _rival(self, weights: Weights) -> Array:
        """Return ln λ, bounded below."""
        x = weights.log_rival[:, 0]
        return np.maximum(x, x.max() + LOWEST)

    def _total(self, value: Array) -> float:
        return float(np.einsum("op,op->", self.counts, value))

    def expect(self, weights: Weights) -> Stats:
        """Return expected wins and exposure."""
        found = self.law.chances(*self._log_rates(self._rival(weights), self.values_of_parameters))
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
        blocks = self._blocks(self._rival(weights), self.values_of_parameters)
        return sum(found.value for _, found in blocks) + self._gain(weights, self._arrivals())

    def walk(self) -> PairRows:
        """Return self: a Hamiltonian walk uses the pairs directly."""
        return self

    def slopes(self, log_weights: Array, free: Array) -> tuple[float, Array, Array]:
        """Return the log-likelihood, and its slopes in ln λ (K,) and in the unconstrained parameters (P,)."""
        values, n = self._bound(free), len(self.law.parameters)
        total, of_free, (of_first, of_second) = 0.0, np.zeros(len(free)), np.empty((2, len(self.first)))
        for some, found in self._blocks(log_weights, values):
            total += found.value
            of_first[some], of_second[some] = found.first, found.second
            of_free[:n] += found.slopes.sum(axis=1)
            if self.ordered:
                of_free[n] += found.first @ self.shown[some]
            if self.differences.size:
                of_free[n + self.ordered :] += (found.first - found.second) @ self.differences[some] / 2.0
        return total, self._by_item(of_first, of_second), of_free

    def _blocks(self, log_weights: Array, values: Array) -> Iterator[tuple[slice, Summed]]:
        """Yield places of pairs, with their log-likelihood and its slopes."""
        for start in range(0, len(self.first), BLOCK):
            some = slice(start, start + BLOCK)
            yield some, self.law.summed(*self._log_rates(log_weights, values, some), self.counts[:, some])

    def _bound(self, free: Array) -> Array:
        return np.array([each.bound(u) for each, u in zip(self.parameters, free, strict=True)])

    @property
    def effects(self) -> Array:
        """What multiplies η's logarithm and the standardised coefficients in the log-odds, (pairs, parameters)."""
        one, two = self._shifts()
        found: Array = one - two
        return found

    def _shifts(self) -> tuple[Array, Array]:
        """Return the slopes of both log-rates in the coordinates of η and the coefficients, (pairs, parameters)."""
        half = self.differences / 2.0
        if not self.ordered:
            return half, -half
        shown = self.shown[:, None]
        return np.hstack([shown, half]), np.hstack([np.zeros_like(shown), -half])

    def curvature(self, log_weights: Array, free: Array) -> Array:
        """Return −∂²V (K + P, K + P) in ln λ and unconstrained parameters, by differences of the pairs' slopes."""
        K, P = self.n_groups, len(free)
        by_item, of_parameters = self._second(log_weights, free)
        found = np.zeros((K + P, K + P))
        for row, item in enumerate((self.first, self.second)):
            for column, other in enumerate((self.first, self.second)):
                np.add.at(found, (item, other), by_item[row][column])
            for p, each in enumerate(of_parameters[row]):
                found[K + p, :K] += np.bincount(item, each, K)
        found[:K, K:] = found[K:, :K].T
        found[K:, K:] = of_parameters[2]
        return found

    def curvature_of_parameters(self, log_weights: Array, free: Array) -> Array:
        """Return −∂²V (P, P) in the unconstrained parameters alone."""
        found: Array = self._second(log_weights, free)[1][2]
        return found

    def _second(self, log_weights: Array, free: Array) -> tuple[Any, Any]:
        """Return −∂²V of each pair in both log-rates, and (P, pairs) in each of them and a parameter; summed (P, P)."""
        n = len(self.law.parameters)
        u, v, values = self._log_rates(log_weights, self._bound(free))
        of_law = [self._differences_of_slopes(which, u, v, values, free) for which in range(2 + n)]
        (uu, uv, u_law), (vu, vv, v_law) = of_law[:2]
        one, two = self._shifts()
        u_free = np.vstack([u_law, (uu * one.T + uv * two.T)])
        v_free = np.vstack([v_law, (vu * one.T + vv * two.T)])
        within = np.empty((len(free), len(free)))
        within[:n, :n] = [each[2].sum(axis=1) for each in of_law[2:]] if n else 0.0
        within[n:] = one.T @ u_free.T + two.T @ v_free.T
        within[:n, n:] = within[n:, :n].T
        return ((uu, uv), (vu, vv)), (u_free, v_free, within)

    def _differences_of_slopes(self, which: int, u: Array, v: Array, values: Array, free: Array) -> tuple[Array, ...]:
        """Return minus the slopes' derivatives in the first or second log-rate, or in a parameter of the law."""
        moved = []
        for h in (-STEP, STEP):
            if which >= 2:
                values = values.copy()
                values[which - 2] = self.law.parameters[which - 2].bound(free[which - 2] + h)
            at = u + h * (which == 0), v + h * (which == 1), values
            found = self.law.summed(*at, self.counts)
            moved.append((found.first, found.second, found.slopes))
        return tuple((low - high) / (2.0 * STEP) for low, high in zip(*moved, strict=True))


class Oriented(NamedTuple):
    """Comparisons, each with the first item and the second as `PairRows` has them."""

    pair: npt.NDArray[np.bool_]  # False for an item without a rival
    key: npt.NDArray[np.integer]  # of both items, and whether one was shown first
    outcome: npt.NDArray[np.integer]
    differences: Array

    def order(self, seen: Observations) -> npt.NDArray[np.intp]:
        """Return an order by content, with the pairs first."""
        return np.lexsort((seen.weights, self.outcome, *self.differences.T, self.key, ~self.pair))


def _oriented(seen: Observations, ordered: bool) -> Oriented:
    (start, bucket_start, sizes, _), item, row = seen.all_situations
    pair = (np.diff(start) == 2) & (np.diff(bucket_start) > 0)
    low = np.minimum(start[:-1], len(item) - 1)
    high = np.where(pair, low + 1, low)
    tied = np.append(sizes, 0)[np.minimum(bucket_start[:-1], len(sizes))] == 2
    shown = (row[high] == SHOWN_FIRST).astype(np.int64) - (row[low] == SHOWN_FIRST) if ordered else 0 * low
    turn = np.where(shown == 0, item[high] < item[low], shown > 0)  # whether `high` is the first item
    first, second = np.where(turn, item[high], item[low]), np.where(turn, item[low], item[high])
    key = (first * seen.n_groups + second) * 2 + (shown != 0)
    outcome = np.where(tied, TIE, np.where(turn, SECOND, FIRST))
    differences = np.zeros((len(pair), 0)) if seen.differences is None else turned(seen.differences, turn)
    return Oriented(pair, key, outcome, differences)
