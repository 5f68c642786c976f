"""Pairs with ties: arrival times within a factor θ of each other look equal (Rao & Kupper 1967).

A winner is ahead by more than the factor: i is first with probability r_i/(r_i + θ r_j). A tie has the probability of
two wins times θ² − 1, one of i against θ·j and one of j against θ·i, so that weights stay conjugate. θ > 1 is a
parameter of the response; θ → 1 is the race without ties.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from plackett.compute.compiled import jit
from plackett.model.draws import begin, gamma
from plackett.model.race import Array
from plackett.responses.base import Answer, Outcomes, Parameter, Sizes, impossible
from plackett.responses.ranking import forget


@jit
def _pair(theta, rates, low, high, tied, drawn, count, stream, arrivals, at_risk):
    """Write arrivals and times of one pair; return V. Times are drawn for all copies, or expected for one."""
    forget(low, high, arrivals, at_risk)
    if high - low < 2:
        return 0.0
    value = math.log(theta * theta - 1.0) if tied else 0.0
    for winner in range(low, low + (2 if tied else 1)):
        loser = 2 * low + 1 - winner
        if rates[winner] == 0.0:
            forget(low, high, arrivals, at_risk)
            return -np.inf
        total = rates[winner] + theta * rates[loser]
        time = (gamma(count, stream) if drawn else 1.0) / total
        value += math.log(rates[winner]) - math.log(total)
        arrivals[winner] += count
        at_risk[winner] += time
        at_risk[loser] += theta * time
    return value


@jit
def expect_block(theta, outcomes, first, last, rates, arrivals, at_risk, values):
    """Expectations of situations first ≤ t < last."""
    base, stream = outcomes.start[first], np.empty(1, dtype=np.uint64)
    for t in range(first, last):
        low, high = outcomes.start[t] - base, outcomes.start[t + 1] - base
        tied = outcomes.sizes[outcomes.bucket_start[t]] == 2
        values[t] = _pair(theta, rates, low, high, tied, False, 1.0, stream, arrivals, at_risk)


@jit
def sample_block(theta, outcomes, number, first, last, rates, key, arrivals, at_risk, values):
    """Draws of situations first ≤ t < last, with the random numbers of number[t]."""
    base, stream = outcomes.start[first], np.empty(1, dtype=np.uint64)
    for t in range(first, last):
        begin(stream, key, number[t])
        low, high = outcomes.start[t] - base, outcomes.start[t + 1] - base
        tied = outcomes.sizes[outcomes.bucket_start[t]] == 2
        values[t] = _pair(theta, rates, low, high, tied, True, outcomes.counts[t], stream, arrivals, at_risk)


@dataclass(frozen=True)
class PhotoFinish:
    """V = ln r_winner − ln(r_winner + θ r_loser) for a win; a tie adds both wins and ln(θ² − 1)."""

    theta: float = 1.5
    absolute = False
    parameters = (Parameter("theta", lower=1.0, start=1.5),)

    def at(self, theta: float) -> PhotoFinish:
        """Return the response with this θ."""
        return PhotoFinish(theta)

    @property
    def expect_block(self) -> Callable[..., None]:
        """Compiled expectations for this θ."""
        return partial(expect_block, self.theta)

    @property
    def sample_block(self) -> Callable[..., None]:
        """Compiled draws for this θ."""
        return partial(sample_block, self.theta)

    def check(self, outcomes: Outcomes) -> None:
        """Require pairs."""
        entries = np.diff(outcomes.start)
        if (entries > 2).any() or (np.diff(outcomes.bucket_start) < 1).any():
            raise ValueError(
                f"ties='photo-finish' is for pairs, and one of these rankings has {entries.max()} items. Use "
                "ties='unknown-order' or ties='race' for longer rankings."
            )

    def expect(self, rates: npt.ArrayLike, sizes: Sizes) -> Answer:
        """The expected time of a win is 1/(r_winner + θ r_loser)."""
        return self._answer(np.asarray(rates, dtype=np.float64), sizes, 1, lambda: 1.0)

    def sample(self, rates: npt.ArrayLike, sizes: Sizes, count: int, stream: npt.NDArray[np.uint64]) -> Answer:
        """The total time of a win over all copies is Gam(count, r_winner + θ r_loser)."""
        return self._answer(np.asarray(rates, dtype=np.float64), sizes, count, lambda: gamma(count, stream))

    def _answer(self, rates: Array, sizes: Sizes, count: int, time: Callable[[], float]) -> Answer:
        value, arrivals, at_risk = 0.0, np.zeros(len(rates)), np.zeros(len(rates))
        if len(rates) < 2:
            return value, arrivals, at_risk
        handicap = np.array([[1.0, self.theta], [self.theta, 1.0]])  # factor of each entry's rate, by the winner
        wins = slice(sizes[0])
        if (rates[wins] == 0.0).any():
            return impossible(rates)
        if sizes[0] == 2:
            value = math.log(self.theta**2 - 1.0)
        arrivals[wins] = count
        for winner, handicaps in enumerate(handicap[wins]):
            total = handicaps @ rates
            value += math.log(rates[winner]) - math.log(total)
            at_risk += time() / total * handicaps
        return value, arrivals, at_risk
