"""Complete or top-k ranking: Plackett–Luce in stages, each a choice among the remaining entries.

Caron & Doucet (2012) augment it with one exponential per stage. A single remaining entry makes no stage.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from plackett.compute.compiled import jit
from plackett.model.draws import begin, gamma
from plackett.model.race import Array
from plackett.responses.base import Answer, Outcomes, Sizes, impossible, left_at

SMALL = 1e-100  # products below this are moved into the logarithm


@jit
def running_left(rates, low, high, left):
    """Write Σ of the rates from each position on into `left`, adding from the last entry backwards."""
    total = 0.0
    for e in range(high - 1, low - 1, -1):
        total += rates[e]
        left[e] = total


@jit
def forget(low, high, arrivals, at_risk):
    """Set arrivals and times of entries low ≤ e < high to zero."""
    for e in range(low, high):
        arrivals[e] = at_risk[e] = 0.0


@jit
def _stages(rates, low, high, placed, drawn, count, stream, arrivals, at_risk):
    """Write arrivals and times of one situation; return V. Times are drawn for all copies, or expected for one."""
    running_left(rates, low, high, at_risk)
    stages = min(placed, high - low - 1)
    value, product, time = 0.0, 1.0, 0.0  # one logarithm per product of stages saves time
    for e in range(low, low + stages):
        if rates[e] == 0.0:
            forget(low, high, arrivals, at_risk)
            return -np.inf
        ends = 1.0 / at_risk[e]
        share = rates[e] * ends
        if share < SMALL:
            value += math.log(rates[e]) - math.log(at_risk[e])
        else:
            product *= share
            if product < SMALL:
                value += math.log(product)
                product = 1.0
        time += (gamma(count, stream) if drawn else 1.0) * ends
        arrivals[e], at_risk[e] = count, time
    for e in range(low + stages, high):
        arrivals[e], at_risk[e] = 0.0, time
    return value + math.log(product)


@jit
def expect_block(outcomes, first, last, rates, arrivals, at_risk, values):
    """Expectations of situations first ≤ t < last."""
    base, stream = outcomes.start[first], np.empty(1, dtype=np.uint64)
    for t in range(first, last):
        low, high = outcomes.start[t] - base, outcomes.start[t + 1] - base
        placed = outcomes.bucket_start[t + 1] - outcomes.bucket_start[t]
        values[t] = _stages(rates, low, high, placed, False, 1.0, stream, arrivals, at_risk)


@jit
def sample_block(outcomes, number, first, last, rates, key, arrivals, at_risk, values):
    """Draws of situations first ≤ t < last, with the random numbers of number[t]."""
    base, stream = outcomes.start[first], np.empty(1, dtype=np.uint64)
    for t in range(first, last):
        begin(stream, key, number[t])
        low, high = outcomes.start[t] - base, outcomes.start[t + 1] - base
        placed = outcomes.bucket_start[t + 1] - outcomes.bucket_start[t]
        values[t] = _stages(rates, low, high, placed, True, outcomes.counts[t], stream, arrivals, at_risk)


class Ranking:
    """V = Σ_stages ln r_placed − ln Σ_left r. Each stage takes Exp(Σ_left r), or Gam(c, Σ_left r) for c copies."""

    absolute = False
    expect_block = staticmethod(expect_block)
    sample_block = staticmethod(sample_block)

    def check(self, outcomes: Outcomes) -> None:
        """Require buckets of one entry."""
        if (outcomes.sizes != 1).any():
            raise ValueError(
                f"a ranking places one entry at a time, got a bucket of {outcomes.sizes.max()}; say what a tie means: "
                "'unknown-order' or 'race'."
            )

    def expect(self, rates: npt.ArrayLike, sizes: Sizes) -> Answer:
        """The expected time of a stage is 1/Σ_left r."""
        return self._answer(np.asarray(rates, dtype=np.float64), len(sizes), 1, lambda: 1.0)

    def sample(self, rates: npt.ArrayLike, sizes: Sizes, count: int, stream: npt.NDArray[np.uint64]) -> Answer:
        """The total time of a stage over all copies is Gam(count, Σ_left r)."""
        return self._answer(np.asarray(rates, dtype=np.float64), len(sizes), count, lambda: gamma(count, stream))

    def _answer(self, rates: Array, placed: int, count: int, time: Callable[[], float]) -> Answer:
        stages = min(placed, len(rates) - 1)
        if (rates[:stages] == 0.0).any():
            return impossible(rates)
        left = left_at(rates)[:stages]
        arrivals = count * (np.arange(len(rates)) < stages).astype(np.float64)
        ends = np.cumsum([0.0, *(time() / total for total in left)])  # when each stage ends
        at_risk = ends[np.minimum(np.arange(len(rates)) + 1, stages)]
        return float(np.sum(np.log(rates[:stages]) - np.log(left))), arrivals, at_risk
