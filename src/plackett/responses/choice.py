"""Choice of one entry among those available. A class is the choice among all K classes in every row.

This is the paper's response, (9), (11) and (12) with Σ_k over the available entries. Engines have a fast path for
classes, which needs two rates per row; tests compare it with this module.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from plackett.compute.compiled import jit
from plackett.model.draws import begin, gamma
from plackett.responses.base import Answer, Outcomes, Sizes, impossible


@jit
def _total(rates, low, high):
    total = 0.0
    for e in range(low, high):
        total += rates[e]
    return total


@jit
def _answer(chosen, total, time, count, low, high, arrivals, at_risk):
    """Write arrivals of entry `low` and `time` at risk of all; return V. A single entry gives no information."""
    known = chosen > 0.0 and high - low > 1
    for e in range(low, high):
        arrivals[e], at_risk[e] = 0.0, time if known else 0.0
    if known:
        arrivals[low] = count
    return math.log(chosen) - math.log(total) if high - low > 1 else 0.0


@jit
def expect_block(outcomes, first, last, rates, arrivals, at_risk, values):
    """Expectations of situations first ≤ t < last."""
    base = outcomes.start[first]
    for t in range(first, last):
        low, high = outcomes.start[t] - base, outcomes.start[t + 1] - base
        total = _total(rates, low, high)
        values[t] = _answer(rates[low], total, 1.0 / total, 1.0, low, high, arrivals, at_risk)


@jit
def sample_block(outcomes, number, first, last, rates, key, arrivals, at_risk, values):
    """Draws of situations first ≤ t < last, with the random numbers of number[t]."""
    base, stream = outcomes.start[first], np.empty(1, dtype=np.uint64)
    for t in range(first, last):
        begin(stream, key, number[t])
        low, high, count = outcomes.start[t] - base, outcomes.start[t + 1] - base, outcomes.counts[t]
        total = _total(rates, low, high)
        time = gamma(count, stream) / total
        values[t] = _answer(rates[low], total, time, count, low, high, arrivals, at_risk)


class Choice:
    """V = ln r_y − ln Σ r. All entries wait for the first arrival, Exp(Σ r), or Gam(c, Σ r) for c copies."""

    absolute = False
    expect_block = staticmethod(expect_block)
    sample_block = staticmethod(sample_block)

    def check(self, outcomes: Outcomes) -> None:
        """Require one bucket of one entry in each situation."""
        if (np.diff(outcomes.bucket_start) != 1).any() or (outcomes.sizes != 1).any():
            raise ValueError("a choice has one bucket of one entry in every situation; take a ranking for more.")

    def expect(self, rates: npt.ArrayLike, sizes: Sizes) -> Answer:
        """The expected time at risk is 1/Σ r."""
        return self._answer(np.asarray(rates, dtype=np.float64), 1, 1.0)

    def sample(self, rates: npt.ArrayLike, sizes: Sizes, count: int, stream: npt.NDArray[np.uint64]) -> Answer:
        """The total time at risk of all copies is Gam(count, Σ r)."""
        return self._answer(np.asarray(rates, dtype=np.float64), count, gamma(count, stream))

    def _answer(self, rates: npt.NDArray[np.float64], count: int, time: float) -> Answer:
        if rates[0] == 0.0:
            return impossible(rates)
        known = float(len(rates) > 1)  # a single entry gives no information
        arrivals = known * count * (np.arange(len(rates)) == 0)
        at_risk = np.full(len(rates), known * time / rates.sum())
        return known * float(np.log(rates[0]) - np.log(rates.sum())), arrivals, at_risk
