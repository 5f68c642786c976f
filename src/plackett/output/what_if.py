"""Changes of rows for effects: rows to average over, steps of numbers, and averages."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from plackett.model.race import Array
from plackett.posterior.base import Codes, around, positive

ROWS = 400  # maximum number of rows or situations to average over


def spread_out(n: int) -> Codes:
    """Return at most `ROWS` of n positions, evenly spaced."""
    return np.linspace(0, n - 1, min(n, ROWS)).round().astype(np.intp)


def a_little(x: Array, part: float) -> float:
    """Return the step of a number in either direction: a part of its standard deviation, or of its size if constant."""
    return (float(x.std()) or max(1.0, abs(float(x.flat[0])))) * part


class Average(NamedTuple):
    """Averages or sums over rows of predictions, (…, K), and of those of single draws, (S, …, K)."""

    point: Array
    draws: Array

    def plus(self, other: Average | None) -> Average:
        """Return the sum of both."""
        return self if other is None else Average(self.point + other.point, self.draws + other.draws)

    def minus(self, other: Average) -> Average:
        """Return the difference of both."""
        return Average(self.point - other.point, self.draws - other.draws)

    def over(self, point: Array | float, draws: Array | float | None = None) -> Average:
        """Return ratios, NaN for a divisor of 0; `draws` replaces the divisor of the draws."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return Average(self.point / point, self.draws / (point if draws is None else draws))

    def judged(self, prob: float, certain: bool) -> tuple[Array, Array, Array]:
        """Return interval bounds over the draws and the probability of being above 0; NaN for a point estimate."""
        if certain:
            return (np.full_like(self.point, np.nan),) * 3
        return *around(self.point, self.draws, prob), positive(self.draws)
