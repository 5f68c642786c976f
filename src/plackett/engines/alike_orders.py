"""Likelihood of worths from many rankings whose buckets have the same sizes, such as best–worst tasks of one size.

All rankings of a kind are computed at once, in arrays (entry, ranking). The mathematics is that of
`plackett.responses.bucket_orders`, in another unit: let the bucket S with rates r come before a rest of rate q, and let
A ⊆ S be what has not arrived. With c_i = q + r_i and w(A) = 1/(q + r(A)) the probability that A comes before the rest
is g(A) Π_{i∈A} r_i/c_i,

    g(A) = w(A) Σ_{i∈A} c_i g(A∖i),    1 ≤ g(A) ≤ |A|!,

and A is visited with probability b(A) g(A), b(S) = 1/g(S), b(A∖i) += b(A) w(A) c_i, for a mean time w(A). Knows no
prior.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import numpy as np

from plackett.engines.by_passes import ByPasses
from plackett.engines.situations import TINY, NumpySituations
from plackett.model.race import Array
from plackett.responses.base import Whole

LARGEST = 5  # largest bucket for which arrays are faster than a compiled pass
FEWEST = 256  # rankings per kind, on average, from which on they are
NUMBERS = 1 << 15  # in an array for each subset, over all subsets


class Alike(NamedTuple):
    """Rankings with buckets of the same sizes and as many entries: items (entry, ranking) and counts."""

    sizes: tuple[int, ...]
    items: Whole
    counts: Array


class AlikeOrders(ByPasses):
    """V(ln λ) of rankings with ties of unknown order, of few kinds."""

    def __init__(self, rows: NumpySituations, kinds: list[Alike]):
        super().__init__(rows)
        self.kinds = [part for kind in kinds for part in _parts(kind)]

    def slopes(self, log_weights: Array, free: Array) -> tuple[float, Array, Array]:
        """Return V and its slopes; there are no parameters."""
        rates = np.maximum(np.exp(log_weights - log_weights.max()), TINY)
        value, slope = 0.0, np.zeros(self.n_groups)
        for sizes, items, counts in self.kinds:
            logs, slopes = _log_chances(rates[items], sizes)
            value += float(counts @ logs)
            slope += np.bincount(items.ravel(), (counts * slopes).ravel(), self.n_groups)
        return value, slope, free


def likelihood_of_orders(rows: NumpySituations) -> ByPasses:
    """Return the likelihood of rankings with ties of unknown order, the faster one if they are of few kinds."""
    kinds = kinds_of(rows)
    few = rows.n_rows >= FEWEST * len(kinds) and max(max(kind.sizes, default=1) for kind in kinds) <= LARGEST
    return AlikeOrders(rows, kinds) if few else ByPasses(rows)


def kinds_of(rows: NumpySituations) -> list[Alike]:
    """Group the rankings by the sizes of their buckets and the number of their entries."""
    (start, bucket_start, sizes, counts), found = rows.outcomes, defaultdict[tuple[int, ...], list[int]](list)
    listed, bounds, lengths = sizes.tolist(), bucket_start.tolist(), np.diff(start).tolist()
    for t, length in enumerate(lengths):
        found[(length, *listed[bounds[t] : bounds[t + 1]])].append(t)
    kinds = []
    for (length, *buckets), which in found.items():
        items = rows.group[start[which] + np.arange(length)[:, None]]
        kinds.append(Alike(tuple(buckets), items, counts[which]))
    return kinds


def _parts(kind: Alike) -> list[Alike]:
    """Cut a kind into parts whose arrays stay in the cache."""
    n, step = len(kind.counts), max(NUMBERS >> max(kind.sizes, default=1), 1)
    cuts = [slice(first, first + step) for first in range(0, n, step)]
    return [Alike(kind.sizes, np.ascontiguousarray(kind.items[:, cut]), kind.counts[cut]) for cut in cuts]


def _log_chances(rates: Array, sizes: tuple[int, ...]) -> tuple[Array, Array]:
    """Return ln Pr of each ranking, and its slopes in ln r (entry, ranking)."""
    left = np.cumsum(rates[::-1], axis=0)[::-1]
    value, waited = np.zeros((2, rates.shape[1]))
    arrivals, times, first = np.zeros((len(rates), 1)), np.empty_like(rates), 0
    for size in sizes:
        end = first + size
        if end == len(rates):
            break
        if size == 1:
            own, last = np.log(rates[first] / left[first]), 1.0 / left[first]
            times[first] = waited + last
        else:
            own, within, last = _bucket(rates[first:end], left[end])
            times[first:end] = waited + within
        arrivals[first:end] = 1.0
        value, waited, first = value + own, waited + last, end
    times[first:] = waited
    return value, arrivals - rates * times


def _bucket(rates: Array, q: Array) -> tuple[Array, Array, Array]:
    """Return V, E[T_i] and E[M] of a bucket (entry, ranking) before a rest of rate q."""
    m, each = len(rates), q + rates
    members = [[i for i in range(m) if some >> i & 1] for some in range(1 << m)]
    total, wait, g, b = {0: q}, dict[int, Array](), {0: np.ones_like(q)}, dict[int, Array]()
    for some, (*others, i) in enumerate(members[1:], start=1):
        total[some] = total[some ^ 1 << i] + rates[i]
        wait[some] = 1.0 / total[some]
        g[some] = each[i] * g[some ^ 1 << i]
        for other in others:
            g[some] += each[other] * g[some ^ 1 << other]
        g[some] *= wait[some]
    times, last, whole = np.zeros_like(rates), np.zeros_like(q), len(members) - 1
    b[whole] = 1.0 / g[whole]
    for some in range(whole, 0, -1):
        flow = b[some] * wait[some]
        time = flow * g[some]
        last += time
        for i in members[some]:
            times[i] += time
            if (earlier := some ^ 1 << i) in b:
                b[earlier] += flow * each[i]
            else:
                b[earlier] = flow * each[i]
    return np.log(rates / each).sum(axis=0) + np.log(g[whole]), times, last
