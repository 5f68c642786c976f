"""What if rows were set otherwise: which rows to average over, how far to move a number, and what follows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from plackett.model.race import Array
from plackett.posterior.base import Codes, around, positive

ROWS = 400  # rows or situations that averages are taken over, at the most


def spread_out(n: int) -> Codes:
    """At most `ROWS` of n places, evenly spread."""
    return np.linspace(0, n - 1, min(n, ROWS)).round().astype(np.intp)


def a_little(x: Array, part: float) -> float:
    """By how much a number is moved either way: a part of its standard deviation, or of its size if it never varies."""
    return (float(x.std()) or max(1.0, abs(float(x.flat[0])))) * part


class Average(NamedTuple):
    """Averages or sums over rows of what is predicted, (…, K), and of what single draws would predict, (S, …, K)."""

    point: Array
    draws: Array

    def plus(self, other: Average | None) -> Average:
        """The sum of both."""
        return self if other is None else Average(self.point + other.point, self.draws + other.draws)

    def minus(self, other: Average) -> Average:
        """The difference of both."""
        return Average(self.point - other.point, self.draws - other.draws)

    def over(self, point: Array | float, draws: Array | float | None = None) -> Average:
        """Ratios, NaN where there is nothing to divide by; draws are divided by the same unless told otherwise."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return Average(self.point / point, self.draws / (point if draws is None else draws))

    def judged(self, prob: float, certain: bool) -> tuple[Array, Array, Array]:
        """Bounds of an interval over the draws and the probability of being above 0; NaN if there is one estimate."""
        if certain:
            return (np.full_like(self.point, np.nan),) * 3
        return *around(self.point, self.draws, prob), positive(self.draws)
