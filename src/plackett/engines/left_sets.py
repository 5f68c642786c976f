"""Rankings without covariates and without ties: one rate an item, and each distinct set of those still left, once.

A stage of a ranking is the choice of one item among those still left. Its likelihood is r_i / R_S, R_S the sum of the
rates of the set S, so that all stages at one set have one exponential time between them, Gam(c_S, R_S), c_S how often
the set was met, and the winners are counted beforehand:

    V = Σ_k n_k ln r_k − Σ_S c_S ln R_S,    s_k = Σ_{S∋k} z_S,    z_S = c_S / R_S expected, Gam(c_S, R_S) sampled.

A set is another one and one item more: R_S = R_{S∖i} + r_i, with the i that some ranking places there, and what waits
for S waits for S∖i, too. A pass therefore takes two numbers a set, however large it is. There are never more sets than
entries, and 12 items have at most 4,095 of them, however many voters. `LeftSets` is the reference, `CompiledLeftSets`
the fast one; sets are ordered by size and by what they hold, so that nothing depends on the order of the rankings.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plackett.compute.compiled import jit
from plackett.engines.base import SituationRows, check_counts
from plackett.engines.draws import begin, gamma, mixed, stream_of
from plackett.engines.situations import NumpySituations, Situations, part_of, prepare_situations
from plackett.model.race import Array, Stats, Weights, scaled
from plackett.responses.base import Outcomes, Response, Whole
from plackett.responses.ranking import Ranking

BITS = 64  # items up to which a set is a number with a bit for each; beyond, a digest of 64 bits
ONE = np.ones((1, 1))  # W, where nothing is known of a ranking
OTHERS = 0x2545F4914F6CDD1D  # xor-ed into the key of those that have ties


class Sets(NamedTuple):
    """Distinct sets, the smallest first; set 0 is empty."""

    item: Whole  # which one is in the set and not in the next smaller one
    smaller: Whole  # the place of that
    times: Array  # how often one was chosen from the set


class Stages(NamedTuple):
    """Of every entry of some rankings, the set that was left when it came, and whether it was chosen from that."""

    place: Whole
    chosen: npt.NDArray[np.bool_]
    situation: Whole


def sets_of(outcomes: Outcomes, item: Whole, n_items: int) -> tuple[Sets, Stages]:
    """The sets that are left at every stage, and where each entry met which; every bucket has one entry."""
    start, bucket_start, _, counts = outcomes
    entries = np.diff(start)
    situation = np.repeat(np.arange(len(counts)), entries)
    size = start[situation + 1] - np.arange(len(item))
    stage = np.arange(len(item)) - start[situation] < np.minimum(np.diff(bucket_start), entries - 1)[situation]
    numbers = np.arange(n_items, dtype=np.uint64)
    mark = np.uint64(1) << numbers if n_items <= BITS else mixed(numbers + np.uint64(1))
    climb = np.append(np.cumsum(mark[item][::-1])[::-1], np.uint64(0))  # modulo 2^64, as are differences
    digest = climb[:-1] - climb[start[situation + 1]]
    order = np.lexsort((item, digest, size))
    new = np.append(True, (np.diff(digest[order]) != 0) | (np.diff(size[order]) != 0))
    place = np.empty(len(item), dtype=np.int64)
    place[order] = np.cumsum(new)  # from 1 on
    first = order[new]
    following = np.where(size > 1, np.append(place[1:], 0), 0)
    times = np.where(stage, counts[situation], 0.0)
    sets = Sets(
        np.append(0, item[first]).astype(np.int64),
        np.append(0, following[first]),
        np.bincount(place, times, minlength=len(first) + 1).astype(np.float64),
    )
    return sets, Stages(place, stage, situation)


@jit
def _sums(sets, rates, left):
    """R_S of all sets, and Σ c_S ln R_S."""
    value = left[0] = 0.0
    for v in range(1, left.size):
        left[v] = left[sets.smaller[v]] + rates[sets.item[v]]
        if sets.times[v] > 0.0:
            value += sets.times[v] * math.log(left[v])
    return value


@jit
def _wait(sets, times, exposure):
    """Add to each item the times of the sets that hold it; what is in `times` is overwritten."""
    for v in range(times.size - 1, 0, -1):
        exposure[sets.item[v], 0] += times[v]
        times[sets.smaller[v]] += times[v]


@jit
def _expect(sets, rates, left, exposure):
    """Σ c_S ln R_S, and times c_S / R_S."""
    value = _sums(sets, rates, left)
    for v in range(1, left.size):
        left[v] = sets.times[v] / left[v]
    _wait(sets, left, exposure)
    return value


@jit
def _sample(sets, rates, key, left, exposure):
    """Σ c_S ln R_S, and times Gam(c_S, R_S)."""
    value, stream = _sums(sets, rates, left), np.empty(1, dtype=np.uint64)
    for v in range(1, left.size):
        if sets.times[v] > 0.0:
            begin(stream, key, v)
            left[v] = gamma(sets.times[v], stream) / left[v]
        else:
            left[v] = 0.0
    _wait(sets, left, exposure)
    return value


class LeftSets:
    """The readable reference, a set at a time."""

    absolute, n_features, features = False, 1, ONE

    def __init__(self, situations: NumpySituations):
        """From situations as an engine holds them, in canonical order."""
        outcomes, self.n_classes = situations.outcomes, situations.n_classes
        self.sets, (_, chosen, situation) = sets_of(outcomes, situations.group, situations.n_classes)
        times = np.where(chosen, outcomes.counts[situation], 0.0)
        self.wins: Array = np.bincount(situations.group, times, minlength=self.n_classes).astype(np.float64)
        self.n_rows, self.order, self.n_seen = situations.n_rows, situations.order, situations.n_seen

    @property
    def held(self) -> tuple[Any, ...]:
        """The sets and the wins."""
        return *self.sets, self.wins

    @property
    def work(self) -> int:
        """How many numbers a pass goes through."""
        return len(self.sets.item)

    def set_threads(self, n_threads: int) -> None:
        """A pass is too short to be shared out."""

    def _pass(self, rates: Array, key: int | None) -> tuple[float, Array]:
        """Σ c_S ln R_S, and the exposure."""
        item, smaller, count = self.sets
        left, exposure = np.zeros(len(item)), np.zeros((self.n_classes, 1))
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
        """Expected exposure; the wins are known."""
        return self._stats(weights, None)

    def sample(self, weights: Weights, key: int) -> Stats:
        """Sampled exposure, a function of the weights and the key alone."""
        check_counts(self.wins, "counts", "situations")
        return self._stats(weights, key)

    def value(self, weights: Weights) -> float:
        """The log-likelihood: Σ count · ln Pr(outcome)."""
        return self._stats(weights, None).value


class CompiledLeftSets(LeftSets):
    """The same passes compiled."""

    def _pass(self, rates: Array, key: int | None) -> tuple[float, Array]:
        left, exposure = np.empty(len(self.sets.item)), np.zeros((self.n_classes, 1))
        if key is None:
            return _expect(self.sets, rates, left, exposure), exposure
        return _sample(self.sets, rates, np.uint64(key), left, exposure), exposure


class Together:
    """Rows of two kinds, whose passes add; `order` is of both, by the numbers under which they came."""

    absolute, features = False, ONE

    def __init__(self, rows: LeftSets, others: SituationRows, order: Any = None):
        self.parts = rows, others
        self.n_rows, self.n_seen = rows.n_rows + others.n_rows, rows.n_seen + others.n_seen
        self.n_classes, self.n_features = rows.n_classes, rows.n_features
        self.order = order

    @property
    def held(self) -> tuple[Any, ...]:
        """The arrays of both."""
        return *self.parts[0].held, *self.parts[1].held

    @property
    def work(self) -> int:
        """How many numbers a pass goes through."""
        return self.parts[0].work + self.parts[1].work

    def set_threads(self, n_threads: int) -> None:
        """Share passes out to so many threads; the results stay the same."""
        self.parts[1].set_threads(n_threads)

    def expect(self, weights: Weights) -> Stats:
        """Expected wins and exposure."""
        rows, others = self.parts
        return rows.expect(weights) + others.expect(weights)

    def sample(self, weights: Weights, key: int) -> Stats:
        """Sampled wins and exposure, each part with random numbers of its own."""
        rows, others = self.parts
        return rows.sample(weights, key) + others.sample(weights, key ^ OTHERS)

    def value(self, weights: Weights) -> float:
        """The log-likelihood."""
        rows, others = self.parts
        return rows.value(weights) + others.value(weights)


def left_sets(situations: Situations, n_items: int, engine: str = "auto") -> LeftSets:
    """Rankings without covariates and without ties, by their distinct sets."""
    sets = LeftSets if engine == "numpy" else CompiledLeftSets
    return sets(NumpySituations(ONE, situations, Ranking(), n_items))


def prepare_plain(
    outcomes: Outcomes, item: Whole, response: Response, n_items: int, engine: str = "auto"
) -> SituationRows:
    """Rankings without covariates, ready for passes: by distinct sets, but for rankings with ties.

    With engine="dask" the sets stay here, as they are few and a pass over them is short; rankings with ties go to the
    workers.
    """
    if engine == "cupy":
        raise ValueError(
            "rankings without covariates are counted by the sets of those left, which a processor does at once: "
            "engine='cupy' has nothing to add. Use engine='auto'."
        )

    def held(some: Situations, meaning: Response) -> SituationRows:
        return prepare_situations(ONE, some, meaning, n_items, engine)

    whole = Situations(outcomes, item, np.zeros_like(item))
    if response.absolute:
        return held(whole, response)
    tied = np.logical_or.reduceat(np.append(outcomes.sizes > 1, False), outcomes.bucket_start[:-1])
    tied &= np.diff(outcomes.bucket_start) > 0
    if not tied.any():
        return left_sets(whole, n_items, engine)
    if tied.all():
        return held(whole, response)
    numbers = np.flatnonzero(~tied), np.flatnonzero(tied)
    plain, others = (part_of(whole, some) for some in numbers)
    rows, rest = left_sets(plain, n_items, engine), held(others, response)
    return Together(rows, rest, np.append(numbers[0][rows.order], numbers[1][rest.order]))
