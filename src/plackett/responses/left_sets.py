"""Rankings without covariates or ties: one rate per item, and one visit to each distinct set of remaining items.

A stage of a ranking is the choice of one item among the remaining set S. Its likelihood is r_i / R_S with R_S = Σ_S r.
All c_S stages at the same set share one time Gam(c_S, R_S), and the winners are counted beforehand:

    V = Σ_k n_k ln r_k − Σ_S c_S ln R_S,    s_k = Σ_{S∋k} z_S,    z_S = c_S / R_S expected, Gam(c_S, R_S) sampled.

Each set extends a smaller one by one item: R_S = R_{S∖i} + r_i, with the i that some ranking places there, and the time
of S adds to that of S∖i. A pass therefore handles two numbers per set, whatever its size. There are never more sets
than entries; 12 items have at most 4,095 sets, however many voters. Sets are sorted by size and content, so that
results do not depend on the order of the rankings. `plackett.engines.plain_rankings` holds rankings in this form.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from plackett.compute.compiled import jit
from plackett.compute.totals import totals
from plackett.model.draws import begin, gamma, mixed
from plackett.model.race import Array
from plackett.responses.base import Outcomes, Whole

BITS = 64  # up to so many items a set is a bit mask; beyond, a digest of 64 bits


class Sets(NamedTuple):
    """Distinct sets of items, sorted by size; set 0 is empty."""

    item: Whole  # the item that the set adds to its smaller set
    smaller: Whole  # index of the smaller set
    times: Array  # number of choices made from the set


class Stages(NamedTuple):
    """For each entry of the rankings, the remaining set at its stage, and whether the entry was chosen from it."""

    place: Whole
    chosen: npt.NDArray[np.bool_]
    situation: Whole


def sets_of(outcomes: Outcomes, item: Whole, n_items: int) -> tuple[Sets, Stages]:
    """Return the remaining sets of all stages, and the set of each entry; every bucket must have one entry."""
    start, bucket_start, _, counts = outcomes
    entries = np.diff(start)
    situation = np.repeat(np.arange(len(counts)), entries)
    size = start[situation + 1] - np.arange(len(item))
    stage = np.arange(len(item)) - start[situation] < np.minimum(np.diff(bucket_start), entries - 1)[situation]
    numbers = np.arange(n_items, dtype=np.uint64)
    mark = np.uint64(1) << numbers if n_items <= BITS else mixed(numbers + np.uint64(1))
    climb = np.append(np.cumsum(mark[item][::-1])[::-1], np.uint64(0))  # sums and differences modulo 2^64
    digest = climb[:-1] - climb[start[situation + 1]]
    order = np.argsort(digest)
    new = np.append(True, np.diff(digest[order]) != 0)
    by_size = np.argsort(size[order[new]], kind="stable")  # of the sets, which are in order of their digests
    place = np.empty(len(item), dtype=np.int64)
    place[order] = (np.argsort(by_size) + 1)[np.cumsum(new) - 1]  # from 1 on
    least = np.minimum.reduceat((item * len(item) + np.arange(len(item)))[order], np.flatnonzero(new))
    first = least[by_size] % len(item)  # an entry of each set, of its smallest item that was chosen
    following = np.where(size > 1, np.append(place[1:], 0), 0)
    times = np.where(stage, counts[situation], 0.0)
    sets = Sets(
        np.append(0, item[first]).astype(np.int64),
        np.append(0, following[first]),
        totals(place, times, len(first) + 1),
    )
    return sets, Stages(place, stage, situation)


def pairs_of_sets(smaller: Whole, most: int) -> tuple[Whole, Whole] | None:
    """Return all pairs of a set and a smaller one that it extends, directly or not; None if there are more than `most`.

    Examples
    --------
    >>> pairs_of_sets(np.array([0, 0, 1, 2]), most=10)  # set 3 extends set 2, which extends set 1
    (array([2, 3, 3]), array([1, 2, 1]))
    """
    outer, inner = np.arange(len(smaller)), smaller
    found = [(outer[:0], inner[:0])]
    while len(outer):
        some = inner > 0
        outer, inner = outer[some], inner[some]
        found.append((outer, inner))
        most -= len(outer)
        if most < 0:
            return None
        inner = smaller[inner]
    outers, inners = (np.concatenate(each) for each in zip(*found, strict=True))
    return outers, inners


@jit
def _sums(sets, rates, left):
    """Write R_S of all sets into `left`; return Σ c_S ln R_S."""
    value = left[0] = 0.0
    for v in range(1, left.size):
        left[v] = left[sets.smaller[v]] + rates[sets.item[v]]
        if sets.times[v] > 0.0:
            value += sets.times[v] * math.log(left[v])
    return value


@jit
def _wait(sets, times, exposure):
    """Add to the exposure of each item the times of the sets that contain it; overwrites `times`."""
    for v in range(times.size - 1, 0, -1):
        exposure[sets.item[v], 0] += times[v]
        times[sets.smaller[v]] += times[v]


@jit
def expect_sets(sets, rates, left, exposure):
    """Add the expected times c_S / R_S to the exposure; return Σ c_S ln R_S."""
    value = _sums(sets, rates, left)
    for v in range(1, left.size):
        left[v] = sets.times[v] / left[v]
    _wait(sets, left, exposure)
    return value


@jit
def sample_sets(sets, rates, key, left, exposure):
    """Add sampled times Gam(c_S, R_S) to the exposure; return Σ c_S ln R_S."""
    value, stream = _sums(sets, rates, left), np.empty(1, dtype=np.uint64)
    for v in range(1, left.size):
        if sets.times[v] > 0.0:
            begin(stream, key, v)
            left[v] = gamma(sets.times[v], stream) / left[v]
        else:
            left[v] = 0.0
    _wait(sets, left, exposure)
    return value
