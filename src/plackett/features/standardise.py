"""Columns of mean 0 and variance 1, for values of any size and independent of the order of the rows."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from plackett.compute.pieces import over_columns
from plackett.data.validation import LARGEST, RESOLUTION
from plackett.features.normal_scores import normal_scores, values_at
from plackett.model.race import Array

FARTHEST = 1e100  # standard deviations from the mean at which a covariate is clipped


def mean_and_scale(X: Array, weight: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of each column, infinite for a constant one.

    Sums are taken in an order of the values, so that results do not depend on the order of the rows.
    """
    total = weight.sum()

    def of_column(column: Array) -> tuple[float, float]:
        x, share = _ordered(column, weight / total)
        mean, largest = (x * share).sum(), max(-x[0], x[-1])
        x -= mean
        size = max(-x[0], x[-1])
        if size <= RESOLUTION * largest:
            return mean, np.inf
        x /= size
        x, share = _ordered(np.square(x, out=x), share, kind="stable")  # falls, then rises: easy for merge sort
        return mean, size * np.sqrt((x * share).sum())

    mean, scale = np.array(over_columns(of_column, X)).reshape(-1, 2).T.copy()
    return mean, scale


def _ordered(x: Array, share: Array, kind: Literal["quicksort", "stable"] = "quicksort") -> tuple[Array, Array]:
    """Return sorted values, and the share of each."""
    if np.ptp(share) == 0:
        return np.sort(x, kind=kind), share
    order = np.lexsort((share, x))
    return x[order], share[order]


def standardise(
    X: Array, mean: Array, scale: Array, rotation: Array | None = None, knots: Array | None = None
) -> Array:
    """Return (x − mean)/scale, clipped so that no score overflows, on the axes of the rotation; x first as scores."""
    X = X if knots is None else normal_scores(X, knots)
    Z: Array = np.clip(X, -LARGEST, LARGEST)
    Z -= mean
    with np.errstate(over="ignore"):
        Z /= scale
    np.clip(Z, -FARTHEST, FARTHEST, out=Z)
    return Z if rotation is None else Z @ rotation


class Scaling(NamedTuple):
    """z = (x − mean)/scale · rotation, with x replaced by normal scores if there are knots."""

    mean: Array
    scale: Array
    knots: Array | None = None
    rotation: Array | None = None  # (d, r): principal axes

    def of(self, rows: Array) -> Array:
        """Return z."""
        return standardise(rows, self.mean, self.scale, self.rotation, self.knots)


def average_row(mean: Array, knots: Array | None) -> tuple[Array, str]:
    """Return the row where z = 0, and its description."""
    if knots is None:
        return mean, "the mean of every column"
    return values_at(mean, knots), "the value of every column whose normal score is the average, about its median"
