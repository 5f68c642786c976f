"""Outcomes as flat arrays, and what a response offers. Knows neither features nor weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from plackett.model.race import Array

Whole = npt.NDArray[np.int64]
Sizes = Sequence[int] | Whole
Answer = tuple[float, Array, Array]  # V, arrivals n_e, time at risk s_e
NEAR_BOUNDS = 1e-9  # how far a value between 0 and 1 stays off these


class Outcomes(NamedTuple):
    """What was seen in each of T situations, the entries of each stored in order of its outcome.

    First come its buckets, the best first: a bucket is a set of entries that share a place, of one entry where nothing
    is tied. Then comes what is left: ranked after all of them, or simply not chosen.

    Attributes
    ----------
    start : (T + 1,) array
        The first entry of each situation; the last number is that of all entries.
    bucket_start : (T + 1,) array
        The first bucket of each situation.
    sizes : (buckets,) array
        How many entries each bucket has.
    counts : (T,) array
        How often the situation was seen with this outcome. Samples need whole numbers, expectations do not.
    """

    start: Whole
    bucket_start: Whole
    sizes: Whole
    counts: Array

    @classmethod
    def of(
        cls, entries: Sequence[int], sizes: Sequence[Sequence[int]], counts: Sequence[float] | None = None
    ) -> Outcomes:
        """Situations with so many entries each and buckets of these sizes.

        Examples
        --------
        >>> Outcomes.of([3, 4], [[1, 1], [2]]).start  # two places of three known; two of four tied for the first
        array([0, 3, 7])
        """
        return checked(
            cls(
                np.cumsum([0, *entries]),
                np.cumsum([0, *map(len, sizes)]),
                np.array([size for each in sizes for size in each], dtype=np.int64),
                np.ones(len(entries)) if counts is None else np.asarray(counts, dtype=np.float64),
            )
        )

    @classmethod
    def choices(cls, entries: npt.ArrayLike, counts: npt.ArrayLike | None = None) -> Outcomes:
        """One entry chosen out of so many in each situation; it is stored first."""
        n = np.asarray(entries, dtype=np.int64)
        ones = np.ones(len(n), dtype=np.int64)
        times = np.ones(len(n)) if counts is None else np.asarray(counts, dtype=np.float64)
        return checked(cls(np.append(0, np.cumsum(n)), np.arange(len(n) + 1), ones, times))


def checked(outcomes: Outcomes) -> Outcomes:
    """The same outcomes, once they are known to fit together."""
    start, bucket_start, sizes, counts = outcomes
    T = len(start) - 1
    if not (len(bucket_start) == T + 1 and len(counts) == T and start[0] == bucket_start[0] == 0):
        raise ValueError(
            f"start and bucket_start must begin with 0 and have one number more than counts, got {outcomes}."
        )
    if bucket_start[-1] != len(sizes) or (np.diff(bucket_start) < 0).any() or (sizes < 1).any():
        raise ValueError("bucket_start must rise from 0 to the number of buckets, and no bucket may be empty.")
    placed = np.diff(np.append(0, np.cumsum(sizes))[bucket_start])
    if (np.diff(start) < np.maximum(placed, 1)).any():
        t = int(np.argmax(np.diff(start) < np.maximum(placed, 1)))
        raise ValueError(f"situation {t} has {start[t + 1] - start[t]} entries, and {placed[t]} of them in buckets.")
    if not (np.isfinite(counts).all() and (counts >= 0).all()):
        raise ValueError(f"counts must be finite and not negative, got {counts[~(counts >= 0)][:3]}.")
    return outcomes


def places_of(outcomes: Outcomes) -> Whole:
    """The number of the bucket of each entry, rising through all situations; what is left is a bucket too."""
    new = np.zeros(outcomes.start[-1] + 1, dtype=np.int64)
    before = np.append(0, np.cumsum(outcomes.sizes))
    situation = np.repeat(np.arange(len(outcomes.counts)), np.diff(outcomes.bucket_start))
    first = outcomes.start[situation] + before[:-1] - before[outcomes.bucket_start[situation]]
    new[outcomes.start] = new[first] = new[first + outcomes.sizes] = 1
    return np.cumsum(new[:-1])


def in_order(of: npt.NDArray[np.integer], start: Whole) -> Whole:
    """The places from start[t] to start[t + 1] for each t of `of`, one after the other."""
    length = np.diff(start)[of]
    return np.repeat(start[of] - np.cumsum(length) + length, length) + np.arange(length.sum())


class Parameter(NamedTuple):
    """A parameter of a response: its name, its bounds and where to start.

    What is above a lower bound alone is Exp(1) a priori; between two bounds a parameter is uniform.
    """

    name: str
    lower: float
    start: float
    upper: float = np.inf

    def free(self, value: float) -> float:
        """The unconstrained coordinate: u = ln(value − lower), or ln(value − lower) − ln(upper − value)."""
        above = float(np.log(value - self.lower))
        return above if self.upper == np.inf else above - float(np.log(self.upper - value))

    def bound(self, free: float) -> float:
        """The value with this coordinate."""
        if self.upper == np.inf:
            return float(self.lower + np.exp(free))
        return float(self.lower + (self.upper - self.lower) * np.exp(-np.logaddexp(0.0, -free)))

    def log_prior(self, free: float) -> float:
        """Log-density of the coordinate."""
        if self.upper == np.inf:
            return float(free - np.exp(free))
        return -float(np.logaddexp(0.0, free) + np.logaddexp(0.0, -free))

    def draw(self, rng: np.random.Generator) -> float:
        """A value from the prior."""
        if self.upper == np.inf:
            return self.lower + rng.standard_exponential()
        return self.lower + (self.upper - self.lower) * rng.random()


class Response(Protocol):
    """Rates and outcome in; V, arrivals and time at risk out.

    `expect` and `sample` are the readable reference, one situation at a time. `expect_block` and `sample_block` are the
    same compiled, for situations first ≤ t < last: rates, arrivals and times at risk begin with the first entry of
    situation `first`, values with situation 0. Draws of situation t are those of the stream (key, number[t]): its place
    among all situations, of which these may be some.

    A factor common to the rates of a situation changes neither V nor n and divides s, unless `absolute` is true.
    A response may have `parameters` of its own, and then a method ``at(*values)`` that gives it with other values.
    """

    absolute: bool

    @property
    def expect_block(self) -> Callable[..., Any]:
        """Take (outcomes, first, last, rates, arrivals, at_risk, values)."""
        ...

    @property
    def sample_block(self) -> Callable[..., Any]:
        """Take (outcomes, number, first, last, rates, key, arrivals, at_risk, values)."""
        ...

    def check(self, outcomes: Outcomes) -> None:
        """Raise ValueError where the response has no such outcome."""
        ...

    def expect(self, rates: npt.ArrayLike, sizes: Sizes) -> Answer:
        """Expectations given the outcome, of one copy of the situation."""
        ...

    def sample(self, rates: npt.ArrayLike, sizes: Sizes, count: int, stream: npt.NDArray[np.uint64]) -> Answer:
        """Draws given the outcome, summed over `count` copies; V is that of one."""
        ...


def between_bounds(free: Array) -> Array:
    """Values between 0 and 1 with these unconstrained coordinates ln v − ln(1 − v), a little off the bounds."""
    values: Array = np.clip(expit(free), NEAR_BOUNDS, 1 - NEAR_BOUNDS)
    return values


def parameters_of(response: Response) -> tuple[Parameter, ...]:
    """The parameters of a response; most have none."""
    found: tuple[Parameter, ...] = getattr(response, "parameters", ())
    return found


def impossible(rates: Array) -> Answer:
    """The answer where an entry without a rate has arrived."""
    return -np.inf, np.zeros(len(rates)), np.zeros(len(rates))


def left_at(rates: Array) -> Array:
    """Σ of the rates from each place on."""
    return np.cumsum(rates[::-1])[::-1]
