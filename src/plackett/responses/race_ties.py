"""Race observed in slots of length 1: entries that arrive in the same slot tie (geometric race, Henderson 2022).

A stage waits through G empty slots, G geometric, until at least one remaining entry arrives. The time scale is
identified: the rates determine how frequent ties are (two equal rates r tie with probability tanh(r/2)), so no common
factor can be removed. A bucket at the end shows that its entries tied; only a single remaining entry gives no
information.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from plackett.compute.compiled import jit
from plackett.model.draws import begin, exponential, mean_share, truncated
from plackett.model.race import Array
from plackett.responses.base import Answer, Outcomes, Sizes, impossible, left_at
from plackett.responses.ranking import forget, running_left


@jit
def empty_slots(total, stream):
    """Draw G with Pr(G ≥ g) = exp(−g Σ_left r): whole slots before the first arrival."""
    return math.floor(exponential(stream) / total)


@jit
def _stages(rates, low, high, sizes, drawn, count, stream, left, arrivals, at_risk):
    """Write arrivals and times of one situation; return V. Times are drawn for all copies, or expected for one."""
    running_left(rates, low, high, left)
    value, waited, first = 0.0, 0.0, low
    for size in sizes:
        end = first + size
        if first == high - 1:
            break
        some = -math.expm1(-left[first])
        value -= math.log(some) + (left[end] if end < high else 0.0)
        empty = 0.0
        if drawn:
            for _ in range(int(count)):
                empty += empty_slots(left[first], stream)
        else:
            empty = (1.0 - some) / some
        for i in range(first, end):
            if rates[i] == 0.0:
                forget(low, high, arrivals, at_risk)
                return -np.inf
            F = -math.expm1(-rates[i])
            value += math.log(F)
            inside = 0.0
            if drawn:
                for _ in range(int(count)):
                    inside += truncated(rates[i], 1.0, stream)
            else:
                inside = mean_share(rates[i], F)
            arrivals[i], at_risk[i] = count, waited + empty + inside
        waited += empty + count
        first = end
    for i in range(first, high):
        arrivals[i], at_risk[i] = 0.0, waited
    return value


@jit
def expect_block(outcomes, first, last, rates, arrivals, at_risk, values):
    """Expectations of situations first ≤ t < last."""
    base, stream, left = outcomes.start[first], np.empty(1, dtype=np.uint64), np.empty(rates.size)
    for t in range(first, last):
        low, high = outcomes.start[t] - base, outcomes.start[t + 1] - base
        sizes = outcomes.sizes[outcomes.bucket_start[t] : outcomes.bucket_start[t + 1]]
        values[t] = _stages(rates, low, high, sizes, False, 1.0, stream, left, arrivals, at_risk)


@jit
def sample_block(outcomes, number, first, last, rates, key, arrivals, at_risk, values):
    """Draws of situations first ≤ t < last, with the random numbers of number[t]."""
    base, stream, left = outcomes.start[first], np.empty(1, dtype=np.uint64), np.empty(rates.size)
    for t in range(first, last):
        begin(stream, key, number[t])
        low, high = outcomes.start[t] - base, outcomes.start[t + 1] - base
        sizes = outcomes.sizes[outcomes.bucket_start[t] : outcomes.bucket_start[t + 1]]
        values[t] = _stages(rates, low, high, sizes, True, outcomes.counts[t], stream, left, arrivals, at_risk)


class RaceTies:
    """V = Σ_stages Σ_S ln(1 − e^−r) − Σ_rest r − ln(1 − e^−Σ_left r); S waits G + u_i, the rest G + 1."""

    absolute = True
    expect_block = staticmethod(expect_block)
    sample_block = staticmethod(sample_block)

    def check(self, outcomes: Outcomes) -> None:
        """Accept any buckets."""

    def expect(self, rates: npt.ArrayLike, sizes: Sizes) -> Answer:
        """E[G] = 1/(exp(Σ_left r) − 1), and u_i is Exp(r_i) on (0, 1)."""
        return self._answer(
            np.asarray(rates, dtype=np.float64),
            sizes,
            1,
            lambda left: np.exp(-left) / -np.expm1(-left),
            lambda rate: mean_share(rate, -np.expm1(-rate)),
        )

    def sample(self, rates: npt.ArrayLike, sizes: Sizes, count: int, stream: npt.NDArray[np.uint64]) -> Answer:
        """Draw G and u_i given the outcome, copy by copy."""
        return self._answer(
            np.asarray(rates, dtype=np.float64),
            sizes,
            count,
            lambda left: sum(empty_slots(left, stream) for _ in range(count)),
            lambda rate: sum(truncated(rate, 1.0, stream) for _ in range(count)),
        )

    def _answer(
        self,
        rates: Array,
        sizes: Sizes,
        count: int,
        empty: Callable[[float], float],
        inside: Callable[[float], float],
    ) -> Answer:
        left = np.append(left_at(rates), 0.0)
        value, arrivals, at_risk = 0.0, np.zeros(len(rates)), np.zeros(len(rates))
        ends = np.cumsum(sizes)
        for first, end in zip(ends - sizes, ends, strict=True):
            bucket, rest = slice(first, end), slice(end, None)
            if (rates[bucket] == 0.0).any():
                return impossible(rates)
            if first == len(rates) - 1:
                break
            value += np.log(-np.expm1(-rates[bucket])).sum() - left[end] - np.log(-np.expm1(-left[first]))
            slots = empty(left[first])
            arrivals[bucket] = count
            at_risk[bucket] += slots + np.array([inside(rate) for rate in rates[bucket]])
            at_risk[rest] += slots + count
        return float(value), arrivals, at_risk
