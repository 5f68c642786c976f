"""Draws from the posterior of conditional logit: Hamiltonian walks where it is nearly standard normal.

With β = β̂ + L z, β̂ the mode of the posterior and L Lᵀ the inverse of its curvature there, the posterior of z is that of
a log-concave density with unit curvature at 0. Trajectories are longer where it is far from normal, as it is where the
data leave a direction open.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plackett.compute.pieces import cores
from plackett.inference import hmc
from plackett.inference.driver import Chain, Run, Source
from plackett.inference.gibbs import Gibbs
from plackett.inference.hmc import windows
from plackett.inference.limits import Clock
from plackett.inference.store import Portion
from plackett.linear.covariance import classical
from plackett.linear.likelihood import LinearSituations, gradient_of
from plackett.linear.newton import Maximum
from plackett.model.diagnostics import READ_ESS, READ_RHAT, Diagnostics, Report, diagnose, probed
from plackett.model.mixture import shares, table_of
from plackett.model.race import Array
from plackett.responses.base import Whole, in_order

LONGEST, FAR = 5, 25  # leapfrog steps of a trajectory, nearly and far from normal
PROBES, AWAY, NEARLY = 16, 2.0, 0.5  # directions that are looked along, how far, and what may be lost besides 2
DISPERSED = 2.0  # of the starts, in standard deviations of the posterior


class LinearWalker:
    """Advances chains (z, and its adaptation) and returns positions in β."""

    workers = cores()

    def __init__(self, packed: LinearSituations, best: Maximum, tune: int):
        self.packed, self.best, self.ends = packed, best, windows(tune)
        self.root = np.linalg.cholesky(classical(best))
        self.longest = LONGEST if self._is_nearly_normal() else FAR

    def density(self, z: Array, gradient: Array) -> float:
        """ln p(Y|β) + ln p(β) at β = β̂ + L z; its gradient in z is filled in."""
        beta = self.best.beta + self.root @ z
        value, slope = gradient_of(self.packed, beta)
        gradient[:] = self.root.T @ (slope - self.best.precision * beta)
        return value - 0.5 * self.best.precision * float(beta @ beta)

    def _is_nearly_normal(self) -> bool:
        """Whether the log-density falls by about 2 two standard deviations from the mode, in some directions."""
        towards = np.random.default_rng(0).standard_normal((PROBES // 2, len(self.root)))
        towards *= AWAY / np.linalg.norm(towards, axis=1, keepdims=True)
        slope = np.empty(len(self.root))
        lost = [self.density(np.zeros_like(slope), slope) - self.density(z, slope) for z in (*towards, *-towards)]
        return bool(np.abs(np.array(lost) - AWAY**2 / 2).max() < NEARLY)

    def advance(self, chain: Chain, tuning: bool, position: Array, value: Array) -> None:
        """Fill `position` (n, d) with β, and `value` (n,) with log-densities."""
        drawn = np.empty_like(position)
        hmc.walk_on(self.density, chain.state, chain.rng, self.ends, self.longest, tuning, drawn, value)
        for t, z in enumerate(drawn):  # a product of matrices rounds by how many draws a round has
            position[t] = self.best.beta + self.root @ z

    def adapt(self, chains: list[Any], states: Portion, done: float) -> None:
        """Each chain adapts its step and its mass by itself."""


class Probed(NamedTuple):
    """Entries of some situations, whose probabilities are diagnosed."""

    X: Array
    start: Whole

    @classmethod
    def of(cls, packed: LinearSituations) -> Probed:
        """Those of evenly spread situations."""
        some, start = probed(len(packed.stages)), packed.outcomes.start
        return cls(packed.X[in_order(some, start)], np.append(0, np.cumsum(np.diff(start)[some])))

    def probabilities(self, positions: Array) -> Array:
        """Pr(e first) (chain, draw, situation, entry)."""
        C, D, d = positions.shape
        found = shares(positions.reshape(-1, d) @ self.X.T, self.start)
        table = table_of(found, self.start, int(np.diff(self.start).max()))
        return np.moveaxis(table, 0, 1).reshape(C, D, *table.shape[::2])


class LinearRun(Run):
    """One run of the chains; one without a given length goes on until coefficients can be read."""

    def __init__(
        self,
        settings: Gibbs,
        packed: LinearSituations,
        best: Maximum,
        source: Source,
        open_ended: bool,
    ):
        self.some, d = Probed.of(packed), len(best.beta)
        runner = LinearWalker(packed, best, settings.tune)
        generators = [np.random.default_rng(seed) for seed in source.seed.spawn(settings.chains)]
        chains = [Chain(hmc.begin(DISPERSED * rng.standard_normal(d), 1.0), rng) for rng in generators]
        identity = packed.X, *packed.outcomes, best.precision, runner.longest
        shapes = {"position": (d,), "value": ()}
        super().__init__(settings, source, runner, chains, shapes, identity, Clock(settings.max_seconds), open_ended)

    def probe(self, draws: Portion) -> Array:
        """Probabilities of the entries of some situations."""
        return self.some.probabilities(draws["position"])

    def measure(self, report: Report | None) -> Diagnostics | None:
        """R-hat and ESS of coefficients and of probabilities."""
        draws = self.draws()
        return diagnose(report, coef=draws["position"][:, :, None], probability=self.probe(draws))

    def enough(self) -> bool:
        """Whether every effective sample size has reached the target, or 400, and the chains agree."""
        found, target = self.diagnose(), self.settings.target_ess or READ_ESS
        return found is not None and bool(found.smallest_ess >= target and found.worst_rhat <= READ_RHAT)
