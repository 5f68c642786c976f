"""Draws from the posterior of nested logit: Hamiltonian walks of β and u = ln α − ln(1 − α), together.

Dissimilarities are uniform between 0 and 1 a priori, coefficients as in conditional logit. With (β, u) = centre + L z
and L Lᵀ the inverse of the curvature at the maximum the posterior of z is nearly standard normal.
"""

from __future__ import annotations

import numpy as np
from scipy.special import logit, softmax

from plackett.inference.driver import Source
from plackett.inference.gibbs import Gibbs
from plackett.inference.store import Portion
from plackett.linear.nested import NestedMaximum, NestedSituations, nested_gradient
from plackett.linear.whitened import WhitenedRun, WhitenedWalker
from plackett.model.diagnostics import Diagnostics, Report, diagnose, probed
from plackett.model.mixture import Entries
from plackett.model.race import Array
from plackett.responses.base import NEAR_BOUNDS, between_bounds, in_order
from plackett.responses.nests import nested_utilities

LONGEST = 7  # leapfrog steps of a trajectory
INSIDE = 0.02  # distance from its bounds of a dissimilarity at the centre
WIDEST = 3.0  # standard deviation of a coordinate that the curvature is believed to have at the most


class NestedWalker(WhitenedWalker):
    """Advance chains of (β, u), and return positions in β and α."""

    def __init__(self, packed: NestedSituations, best: NestedMaximum, tune: int):
        self.packed, self.precision = packed, best.precision
        self.d = d = packed.linear.X.shape[1]
        alpha = np.clip(best.position[d:], INSIDE, 1 - INSIDE)
        rate = alpha * (1 - alpha)
        scale = np.append(np.ones(d), rate)
        curvature = scale[:, None] * best.information * scale + np.diag(np.append(np.zeros(d), 2 * rate))
        values, vectors = np.linalg.eigh(curvature)
        root = vectors / np.sqrt(np.maximum(values, WIDEST**-2))
        super().__init__(np.append(best.position[:d], logit(alpha)), root, tune, LONGEST)

    def place(self, z: Array) -> Array:
        """Return β and α."""
        x = super().place(z)
        return np.append(x[: self.d], between_bounds(x[self.d :]))

    def density(self, z: Array, gradient: Array) -> float:
        """Return ln p(Y|β, α) + ln p(β) + ln p(u) at centre + L z; write its gradient in z."""
        x = self.place(z)
        beta, alpha = x[: self.d], x[self.d :]
        value, slope = nested_gradient(self.packed, x)
        slope[: self.d] -= self.precision * beta
        slope[self.d :] = slope[self.d :] * alpha * (1 - alpha) + 1 - 2 * alpha
        gradient[:] = self.root.T @ slope
        return value - 0.5 * self.precision * float(beta @ beta) + float(np.log(alpha).sum() + np.log1p(-alpha).sum())


class NestedRun(WhitenedRun):
    """Run of chains of nested logit."""

    def __init__(
        self, settings: Gibbs, packed: NestedSituations, best: NestedMaximum, source: Source, open_ended: bool
    ):
        outcomes, some = packed.linear.outcomes, probed(len(packed.linear.stages))
        entries = in_order(some, outcomes.start)
        self.d, self.nest = packed.linear.X.shape[1], packed.nest[entries]
        start = np.append(0, np.cumsum(np.diff(outcomes.start)[some]))
        self.entries = Entries(packed.linear.X[entries], np.zeros_like(entries), np.arange(len(entries)), start)
        identity = packed.linear.X, *outcomes, packed.nest, best.precision
        super().__init__(settings, NestedWalker(packed, best, settings.tune), identity, source, open_ended)

    def probe(self, draws: Portion) -> Array:
        """Return probabilities of the entries of some situations, (chain, draw, situation, entry)."""
        (C, D), positions = draws["position"].shape[:2], draws["position"].reshape(-1, draws["position"].shape[2])
        log_rates = positions[:, : self.d] @ self.entries.Z.T
        nest = self.entries.wide(self.nest.astype(np.float64), missing=-1.0)
        wide = self.entries.wide(log_rates, missing=-np.inf)
        alpha = np.maximum(positions[:, self.d :], NEAR_BOUNDS)  # a run asks once for what is all 0
        found = softmax(nested_utilities(wide, nest, alpha), axis=2)
        return found.reshape(C, D, *found.shape[1:])

    def measure(self, report: Report | None) -> Diagnostics | None:
        """Return R-hat and ESS of coefficients, of dissimilarities and of probabilities."""
        draws = self.draws()
        position = draws["position"]
        coef, alpha = position[:, :, None, : self.d], position[:, :, self.d :]
        return diagnose(report, coef=coef, parameters=alpha, probability=self.probe(draws))
