"""Pairs with ties by a third entrant of rate ν√(r_i r_j): the pair ties if it arrives first (Davidson 1970).

i is first with probability r_i/(r_i + r_j + ν√(r_i r_j)). ν > 0 is a parameter of the response; ν → 0 is the race
without ties. There is no complete likelihood with Gamma times. The time at risk comes from a bound that touches V
(Hunter 2004), so that EM climbs and r s = n − ∂V/∂ln r holds; a tie counts as half an arrival of each item. The
response cannot be sampled.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from plackett.compute.compiled import jit
from plackett.model.race import Array
from plackett.responses.base import Answer, Outcomes, Parameter, Sizes, impossible
from plackett.responses.ranking import forget


@jit
def expect_block(nu, outcomes, first, last, rates, arrivals, at_risk, values):
    """Expectations of situations first ≤ t < last."""
    base = outcomes.start[first]
    for t in range(first, last):
        low, high = outcomes.start[t] - base, outcomes.start[t + 1] - base
        forget(low, high, arrivals, at_risk)
        values[t] = 0.0
        if high - low < 2:
            continue
        tied = outcomes.sizes[outcomes.bucket_start[t]] == 2
        if rates[low] == 0.0 or (tied and rates[low + 1] == 0.0):
            values[t] = -np.inf
            continue
        tie = nu * math.sqrt(rates[low]) * math.sqrt(rates[low + 1])
        total = rates[low] + rates[low + 1] + tie
        values[t] = math.log(tie if tied else rates[low]) - math.log(total)
        arrivals[low] = 0.5 if tied else 1.0
        arrivals[low + 1] = 0.5 if tied else 0.0
        for i in range(low, high):
            at_risk[i] = (1.0 + (tie / rates[i] / 2.0 if rates[i] > 0.0 else 0.0)) / total


@dataclass(frozen=True)
class DavidsonTies:
    """V = ln of the share of the winner, or of ν√(r_i r_j) for a tie, in r_i + r_j + ν√(r_i r_j)."""

    nu: float = 0.5
    absolute = False
    parameters = (Parameter("nu", lower=0.0, start=0.5),)

    def at(self, nu: float) -> DavidsonTies:
        """Return the response with this ν."""
        return DavidsonTies(nu)

    @property
    def expect_block(self) -> Callable[..., None]:
        """Compiled expectations for this ν."""
        return partial(expect_block, self.nu)

    @property
    def sample_block(self) -> NoReturn:
        """Raise ValueError: there is no complete likelihood."""
        raise ValueError("Davidson's ties are not conjugate and cannot be drawn.")

    def check(self, outcomes: Outcomes) -> None:
        """Require pairs."""
        entries = np.diff(outcomes.start)
        if (entries > 2).any() or (np.diff(outcomes.bucket_start) < 1).any():
            raise ValueError(
                f"ties='davidson' is for pairs, and one of these rankings has {entries.max()} items. Use "
                "ties='unknown-order' or ties='race' for longer rankings."
            )

    def expect(self, rates: npt.ArrayLike, sizes: Sizes) -> Answer:
        """Each item waits 1 + (ν/2)√(r_other/r_own) times the common time 1/(r_i + r_j + ν√(r_i r_j))."""
        r: Array = np.asarray(rates, dtype=np.float64)
        if len(r) < 2:
            return 0.0, np.zeros(len(r)), np.zeros(len(r))
        if (r[: sizes[0]] == 0.0).any():
            return impossible(r)
        tie = self.nu * float(np.prod(np.sqrt(r)))
        total = r.sum() + tie
        arrivals = np.array([0.5, 0.5] if sizes[0] == 2 else [1.0, 0.0])
        value = math.log(tie if sizes[0] == 2 else r[0]) - math.log(total)
        half = np.divide(tie, 2.0 * r, out=np.zeros(2), where=r > 0.0)
        return float(value), arrivals, (1.0 + half) / total

    def sample(self, rates: npt.ArrayLike, sizes: Sizes, count: int, stream: npt.NDArray[np.uint64]) -> NoReturn:
        """Raise ValueError: there is no complete likelihood."""
        raise ValueError("Davidson's ties are not conjugate and cannot be drawn.")
