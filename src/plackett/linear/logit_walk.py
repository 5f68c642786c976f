"""Draws from the posterior of conditional logit: Hamiltonian walks where it is nearly standard normal.

With β = β̂ + L z, β̂ the mode of the posterior and L Lᵀ the inverse of its curvature there, the posterior of z is that of
a log-concave density with unit curvature at 0. Trajectories are longer where it is far from normal, as it is where the
data leave a direction open.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from plackett.inference.driver import Source
from plackett.inference.gibbs import Gibbs
from plackett.inference.store import Portion
from plackett.linear.covariance import classical
from plackett.linear.likelihood import LinearSituations, gradient_of
from plackett.linear.newton import Maximum
from plackett.linear.whitened import WhitenedRun, WhitenedWalker
from plackett.model.diagnostics import Diagnostics, Report, diagnose, probed
from plackett.model.mixture import shares, table_of
from plackett.model.race import Array
from plackett.responses.base import Whole, in_order

LONGEST, FAR = 5, 25  # leapfrog steps of a trajectory, nearly and far from normal
PROBES, AWAY, NEARLY = 16, 2.0, 0.5  # directions that are looked along, how far, and what may be lost besides 2


class LinearWalker(WhitenedWalker):
    """Advance chains of conditional logit."""

    def __init__(self, packed: LinearSituations, best: Maximum, tune: int):
        self.packed, self.precision = packed, best.precision
        root = np.asarray(np.linalg.cholesky(classical(best)), dtype=np.float64)
        super().__init__(best.beta, root, tune, LONGEST)
        self.longest = LONGEST if self._is_nearly_normal() else FAR

    def density(self, z: Array, gradient: Array) -> float:
        """Return ln p(Y|β) + ln p(β) at β = β̂ + L z; write its gradient in z."""
        beta = self.place(z)
        value, slope = gradient_of(self.packed, beta)
        gradient[:] = self.root.T @ (slope - self.precision * beta)
        return value - 0.5 * self.precision * float(beta @ beta)

    def _is_nearly_normal(self) -> bool:
        """True if the log-density falls by about 2 two standard deviations from the mode, in some random directions."""
        towards = np.random.default_rng(0).standard_normal((PROBES // 2, len(self.root)))
        towards *= AWAY / np.linalg.norm(towards, axis=1, keepdims=True)
        slope = np.empty(len(self.root))
        lost = [self.density(np.zeros_like(slope), slope) - self.density(z, slope) for z in (*towards, *-towards)]
        return bool(np.abs(np.array(lost) - AWAY**2 / 2).max() < NEARLY)


class Probed(NamedTuple):
    """Entries of some situations, whose probabilities are diagnosed."""

    X: Array
    start: Whole

    @classmethod
    def of(cls, packed: LinearSituations) -> Probed:
        """Select evenly spaced situations."""
        some, start = probed(len(packed.stages)), packed.outcomes.start
        return cls(packed.X[in_order(some, start)], np.append(0, np.cumsum(np.diff(start)[some])))

    def probabilities(self, positions: Array) -> Array:
        """Return Pr(e first) (chain, draw, situation, entry)."""
        C, D, d = positions.shape
        found = shares(positions.reshape(-1, d) @ self.X.T, self.start)
        table = table_of(found, self.start, int(np.diff(self.start).max()))
        return np.moveaxis(table, 0, 1).reshape(C, D, *table.shape[::2])


class LinearRun(WhitenedRun):
    """Run of chains of conditional logit."""

    def __init__(self, settings: Gibbs, packed: LinearSituations, best: Maximum, source: Source, open_ended: bool):
        self.some = Probed.of(packed)
        walker, identity = LinearWalker(packed, best, settings.tune), (packed.X, *packed.outcomes, best.precision)
        super().__init__(settings, walker, identity, source, open_ended)

    def probe(self, draws: Portion) -> Array:
        """Return probabilities of the entries of some situations."""
        return self.some.probabilities(draws["position"])

    def measure(self, report: Report | None) -> Diagnostics | None:
        """Return R-hat and ESS of coefficients and of probabilities."""
        draws = self.draws()
        return diagnose(report, coef=draws["position"][:, :, None], probability=self.probe(draws))
