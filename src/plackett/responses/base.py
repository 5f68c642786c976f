"""Outcomes as flat arrays, and the protocol of a response. This module knows neither features nor weights."""

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
SPREAD = 10.0  # deviation of the prior of a parameter without bounds, per unit
NEAR_BOUNDS = 1e-9  # smallest distance of a value in (0, 1) from its bounds


class Outcomes(NamedTuple):
    """Outcomes of T situations. The entries of each situation are stored in the order of its outcome.

    The buckets come first, in order. A bucket is a set of entries that share a place; without ties it holds one entry.
    The unranked entries follow: they come after all buckets, or were not chosen.

    Attributes
    ----------
    start : (T + 1,) array
        First entry of each situation; the last number is the number of entries.
    bucket_start : (T + 1,) array
        The first bucket of each situation.
    sizes : (buckets,) array
        Number of entries of each bucket.
    counts : (T,) array
        Number of observations of this outcome. Samples need whole numbers, expectations do not.
    """

    start: Whole
    bucket_start: Whole
    sizes: Whole
    counts: Array

    @classmethod
    def of(
        cls, entries: Sequence[int], sizes: Sequence[Sequence[int]], counts: Sequence[float] | None = None
    ) -> Outcomes:
        """Build outcomes from the number of entries and the bucket sizes of each situation.

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
        """Build choices of one entry each, which is stored first, from the numbers of entries."""
        n = np.asarray(entries, dtype=np.int64)
        ones = np.ones(len(n), dtype=np.int64)
        times = np.ones(len(n)) if counts is None else np.asarray(counts, dtype=np.float64)
        return checked(cls(np.append(0, np.cumsum(n)), np.arange(len(n) + 1), ones, times))

    @classmethod
    def pairs(cls, tied: npt.NDArray[np.bool_], counts: Array) -> Outcomes:
        """Build pairs, each won by the entry stored first unless it is tied."""
        n = len(tied)
        return cls(np.arange(0, 2 * n + 1, 2), np.arange(n + 1), np.where(tied, 2, 1), counts)


def checked(outcomes: Outcomes) -> Outcomes:
    """Return the outcomes unchanged; raise ValueError if their arrays are inconsistent."""
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


def of_pairs(outcomes: Outcomes) -> bool:
    """True if each situation has two entries, with one bucket: the first entry of both, or both."""
    return bool((np.diff(outcomes.start) == 2).all() and (np.diff(outcomes.bucket_start) == 1).all())


def places_of(outcomes: Outcomes) -> Whole:
    """Return the bucket number of each entry, counted through all situations; unranked entries form a bucket too."""
    new = np.zeros(outcomes.start[-1] + 1, dtype=np.int64)
    before = np.append(0, np.cumsum(outcomes.sizes))
    situation = np.repeat(np.arange(len(outcomes.counts)), np.diff(outcomes.bucket_start))
    first = outcomes.start[situation] + before[:-1] - before[outcomes.bucket_start[situation]]
    new[outcomes.start] = new[first] = new[first + outcomes.sizes] = 1
    return np.cumsum(new[:-1])


def in_order(of: npt.NDArray[np.integer], start: Whole) -> Whole:
    """Concatenate the ranges start[t] … start[t + 1] − 1 for each t of `of`."""
    length = np.diff(start)[of]
    return np.repeat(start[of] - np.cumsum(length) + length, length) + np.arange(length.sum())


class Parameter(NamedTuple):
    """Parameter of a response: its name, bounds and starting value.

    Its prior is Exp(1) above a lower bound, and uniform between two bounds. Without bounds it is normal with mean 0 and
    deviation `SPREAD` per `unit`: the parameter times the unit is its unconstrained coordinate.
    """

    name: str
    lower: float
    start: float
    upper: float = np.inf
    unit: float = 1.0

    @property
    def bounded(self) -> bool:
        """True if there is a lower bound."""
        return self.lower > -np.inf

    def free(self, value: float) -> float:
        """The unconstrained coordinate: u = ln(value − lower), or ln(value − lower) − ln(upper − value)."""
        if not self.bounded:
            return value * self.unit
        above = float(np.log(value - self.lower))
        return above if self.upper == np.inf else above - float(np.log(self.upper - value))

    def bound(self, free: float) -> float:
        """Return the value at this unconstrained coordinate."""
        if not self.bounded:
            return float(free / self.unit)
        if self.upper == np.inf:
            return float(self.lower + np.exp(free))
        return float(self.lower + (self.upper - self.lower) * np.exp(-np.logaddexp(0.0, -free)))

    def log_prior(self, free: float) -> float:
        """Log-density of the prior in the unconstrained coordinate."""
        if not self.bounded:
            return -0.5 * float(free / SPREAD) ** 2
        if self.upper == np.inf:
            return float(free - np.exp(free))
        return -float(np.logaddexp(0.0, free) + np.logaddexp(0.0, -free))

    def prior_slope(self, free: float) -> float:
        """Slope of `log_prior`, of a parameter with one bound or none."""
        return float(1.0 - np.exp(free)) if self.bounded else -free / SPREAD**2

    def prior_curvature(self, free: float) -> float:
        """Minus the second derivative of `log_prior`, of a parameter with one bound or none."""
        return float(np.exp(free)) if self.bounded else SPREAD**-2

    def draw(self, rng: np.random.Generator) -> float:
        """Draw a value from the prior."""
        if not self.bounded:
            return self.bound(SPREAD * rng.standard_normal())
        if self.upper == np.inf:
            return self.lower + rng.standard_exponential()
        return self.lower + (self.upper - self.lower) * rng.random()


class Response(Protocol):
    """Map rates and an outcome to V, arrivals and times at risk.

    `expect` and `sample` are the readable reference, one situation at a time. `expect_block` and `sample_block` are
    their compiled forms for situations first ≤ t < last. Rates, arrivals and times at risk begin with the first entry
    of situation `first`, values with situation 0. Draws of situation t use the stream (key, number[t]), where number[t]
    is its position among all situations.

    A factor common to the rates of a situation changes neither V nor n and divides s, unless `absolute` is true.
    A response with `parameters` of its own has a method ``at(*values)``, which returns it with other values.
    """

    absolute: bool

    @property
    def expect_block(self) -> Callable[..., Any]:
        """Kernel with arguments (outcomes, first, last, rates, arrivals, at_risk, values)."""
        ...

    @property
    def sample_block(self) -> Callable[..., Any]:
        """Kernel with arguments (outcomes, number, first, last, rates, key, arrivals, at_risk, values)."""
        ...

    def check(self, outcomes: Outcomes) -> None:
        """Raise ValueError if the response does not allow one of these outcomes."""
        ...

    def expect(self, rates: npt.ArrayLike, sizes: Sizes) -> Answer:
        """Expected V, arrivals and times at risk of one copy of the situation, given the outcome."""
        ...

    def sample(self, rates: npt.ArrayLike, sizes: Sizes, count: int, stream: npt.NDArray[np.uint64]) -> Answer:
        """Draw arrivals and times given the outcome, summed over `count` copies; V is the value of one copy."""
        ...


def between_bounds(free: Array) -> Array:
    """Values in (0, 1) at the unconstrained coordinates ln v − ln(1 − v), clipped slightly inside the bounds."""
    values: Array = np.clip(expit(free), NEAR_BOUNDS, 1 - NEAR_BOUNDS)
    return values


def parameters_of(response: Response) -> tuple[Parameter, ...]:
    """Return the parameters of a response, an empty tuple for most."""
    found: tuple[Parameter, ...] = getattr(response, "parameters", ())
    return found


def impossible(rates: Array) -> Answer:
    """Return the answer for an arrival of an entry with rate 0: V = −∞."""
    return -np.inf, np.zeros(len(rates)), np.zeros(len(rates))


def left_at(rates: Array) -> Array:
    """Sum of the rates from each position to the end."""
    return np.cumsum(rates[::-1])[::-1]
