"""The likelihood of worths with slopes and curvature, by passes of any rows without covariates. Knows no prior."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from plackett.model.race import Array, Stats, Weights
from plackett.responses.base import Parameter

STEP = 1e-5  # of finite differences of slopes


class Expecting(Protocol):
    """Rows of one weight an item."""

    n_groups: int
    n_seen: float
    absolute: bool

    def expect(self, weights: Weights) -> Stats:
        """Expected wins and exposure."""
        ...


class ByPasses:
    """V(ln λ) of rows whose response has no parameters: its slope is n − λ s, and a pass gives both."""

    parameters: tuple[Parameter, ...] = ()

    def __init__(self, rows: Expecting):
        self.rows = rows
        self.n_groups, self.n_seen, self.absolute = rows.n_groups, rows.n_seen, rows.absolute

    def slopes(self, log_weights: Array, free: Array) -> tuple[float, Array, Array]:
        """One pass; there are no parameters."""
        stats = self.rows.expect(Weights.point(log_weights[:, None]))
        return stats.value, stats.wins[:, 0] - stats.exposure[:, 0] * np.exp(log_weights), free

    def curvature(self, log_weights: Array, free: Array) -> Array:
        """−∂²V (K, K), by differences of the slopes."""
        columns = []
        for k in range(self.n_groups):
            moved = STEP * (np.arange(self.n_groups) == k)
            up, down = (self.slopes(log_weights + sign * moved, free)[1] for sign in (1, -1))
            columns.append((down - up) / (2.0 * STEP))
        found = np.array(columns)
        return (found + found.T) / 2.0
