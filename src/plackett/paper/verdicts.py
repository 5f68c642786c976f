"""Comparison of our numbers with the paper's: difference in standard errors, and a verdict in words."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from plackett.model.race import Array
from plackett.paper.values import Spread

AGREES, BETTER, WORSE = "agrees", "better", "worse"
IMPOSSIBLE = "the paper's value cannot be an error rate"
BOUND = 2.0  # standard errors within which two numbers agree


@dataclass(frozen=True)
class Comparison:
    """Our mean and deviation, the difference from the paper's in standard errors, and a verdict."""

    ours: Spread
    n: int
    z: float
    verdict: str


def spread(values: npt.ArrayLike) -> Spread:
    """Return mean and standard deviation of replications."""
    values = np.asarray(values, dtype=float)
    return Spread(float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else 0.0)


def difference(ours: Spread, n: int, paper: Spread, n_paper: int) -> float:
    """(ours − paper) / √(sd²/n + sd_paper²/n_paper)."""
    error = math.sqrt(ours.sd**2 / n + paper.sd**2 / n_paper)
    gap = ours.mean - paper.mean
    if error == 0:
        return 0.0 if gap == 0 else math.copysign(math.inf, gap)
    return gap / error


def compare(values: Sequence[float] | Array, paper: Spread, n_paper: int, ceiling: float | None = None) -> Comparison:
    """Compare errors over replications with the paper's mean and deviation.

    Parameters
    ----------
    values : array
        Our error in each replication.
    paper : Spread
        Mean and deviation in the paper.
    n_paper : int
        Number of replications in the paper.
    ceiling : float, optional
        Error of always predicting the largest class. A value in the paper that exceeds it by more than `BOUND` of the
        paper's own standard errors is not taken for an error rate.
    """
    ours, n = spread(values), len(values)
    z = difference(ours, n, paper, n_paper)
    if ceiling is not None and paper.mean - BOUND * paper.sd / math.sqrt(n_paper) > ceiling:
        return Comparison(ours, n, z, IMPOSSIBLE)
    return Comparison(ours, n, z, AGREES if abs(z) <= BOUND else BETTER if z < 0 else WORSE)


def paired(ours: npt.ArrayLike, other: npt.ArrayLike) -> tuple[float, float]:
    """Return the mean of ours − other over the same splits, and its ratio to its standard error (0 if equal)."""
    gap = np.asarray(ours, dtype=float) - np.asarray(other, dtype=float)
    mean = float(gap.mean())
    error = float(gap.std(ddof=1) / math.sqrt(len(gap))) if len(gap) > 1 else 0.0
    if error == 0:
        return mean, 0.0 if mean == 0 else math.copysign(math.inf, mean)
    return mean, mean / error
