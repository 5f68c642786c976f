"""Likelihood of worths with slopes and curvature, from passes over any rows without covariates. Knows no prior."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from plackett.model.race import Array, Stats, Weights
from plackett.responses.base import Parameter

STEP = 1e-5  # step of finite differences of slopes
HIGHEST = 600.0  # log-weights whose exponential does not overflow


class Expecting(Protocol):
    """Rows with one weight per item."""

    n_groups: int
    n_seen: float
    absolute: bool

    @property
    def work(self) -> int:
        """Count of numbers read by a pass."""
        ...

    def expect(self, weights: Weights) -> Stats:
        """Return expected wins and exposure."""
        ...


class ByPasses:
    """V(ln λ) of rows whose response has no parameters. Its slope n − λ s follows from one pass."""

    parameters: tuple[Parameter, ...] = ()

    def __init__(self, rows: Expecting):
        self.rows = rows
        self.n_groups, self.n_seen, self.absolute = rows.n_groups, rows.n_seen, rows.absolute

    @property
    def work_of_curvature(self) -> int:
        """Count of numbers read for a curvature."""
        return 2 * self.n_groups * self.rows.work

    def slopes(self, log_weights: Array, free: Array) -> tuple[float, Array, Array]:
        """Return V and its slopes from one pass; there are no parameters."""
        above = 0.0 if self.absolute else max(float(log_weights.max()) - HIGHEST, 0.0)  # cancels, but may overflow
        x = log_weights - above
        stats = self.rows.expect(Weights.point(x[:, None]))
        return stats.value, stats.wins[:, 0] - stats.exposure[:, 0] * np.exp(x), free

    def curvature(self, log_weights: Array, free: Array) -> Array:
        """Return −∂²V (K, K) from differences of the slopes."""
        columns = []
        for k in range(self.n_groups):
            moved = STEP * (np.arange(self.n_groups) == k)
            up, down = (self.slopes(log_weights + sign * moved, free)[1] for sign in (1, -1))
            columns.append((down - up) / (2.0 * STEP))
        found = np.array(columns)
        return (found + found.T) / 2.0

    def curvature_of_parameters(self, log_weights: Array, free: Array) -> Array:
        """Return no numbers: there are no parameters."""
        return np.empty((0, 0))
