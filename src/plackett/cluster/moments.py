"""Weighted means and sums of squares of columns, which add over partitions."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from plackett.data.validation import RESOLUTION
from plackett.model.race import Array

LongArray = npt.NDArray[np.floating]  # long doubles


class Moments(NamedTuple):
    """Total weight of rows, with the mean of each column and its sum of squares about the mean."""

    weight: float
    mean: LongArray
    squares: LongArray

    def __add__(self, other: Moments) -> Moments:  # type: ignore[override]
        weight = self.weight + other.weight
        step = other.mean - self.mean
        share = other.weight / weight
        return Moments(
            weight, self.mean + step * share, self.squares + other.squares + step * step * (self.weight * share)
        )

    def times(self, factor: float) -> Moments:
        """Return the moments of the same rows with their weights multiplied."""
        return Moments(self.weight * factor, self.mean, self.squares * factor)

    def scale(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Return mean and standard deviation of each column, infinite for a column with equal extremes."""
        mean: Array = self.mean.astype(np.float64)
        size = np.maximum(np.abs(low - mean), np.abs(high - mean))
        varies = size > RESOLUTION * np.maximum(np.abs(low), np.abs(high))
        return mean, np.where(varies, np.sqrt(self.squares / self.weight).astype(np.float64), np.inf)

    def scale_to_rounding(self) -> tuple[Array, Array]:
        """Return mean and standard deviation of each column, infinite for one that is constant up to rounding."""
        mean: Array = self.mean.astype(np.float64)
        deviation = np.sqrt(self.squares / self.weight).astype(np.float64)
        return mean, np.where(deviation > 1e-12 * np.abs(mean), deviation, np.inf)


def moments_of(values: Array, weight: Array) -> Moments:
    """Return moments of rows with these weights."""
    total = weight.sum()
    if total == 0:
        nothing = np.zeros(values.shape[1], dtype=np.longdouble)
        return Moments(0.0, nothing, nothing)
    mean = np.einsum("i,ij->j", weight / total, values.astype(np.longdouble))
    return Moments(float(total), mean, np.einsum("i,ij,ij->j", weight, values - mean, values - mean))
