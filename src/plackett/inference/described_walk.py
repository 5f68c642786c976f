"""Described items: λ_k ~ Gam(a, a e^{−z_k·γ}), and Hamiltonian Monte Carlo on (ln λ, parameters of the response, γ).

With y = ln λ − zγ the residuals e^y are independent Gam(a, a), so that their proportions have the Dirichlet law of
worths without covariates. Rankings do not know the scale of λ, and z has mean 0 over the items: the scale is integrated
out, and the mean of y gets an independent normal law, as for worths without covariates. The coefficients γ of
standardised columns have independent normal laws. Knows no row: the likelihood comes with its slopes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh, solve_triangular

from plackett.engines.base import Likelihood
from plackett.inference.base import Problem
from plackett.inference.sweeps import State, Target
from plackett.inference.worth_mode import Density, Known, WorthPrior
from plackett.inference.worth_walk import MatrixMetric, Metric, WorthWalk, roughly_diagonal, whitening
from plackett.model.race import Array

SPREAD = 3.0  # standard deviation of γ, per standard deviation of its column over the items
DENSE = 300  # coordinates up to which curvature is a matrix; it takes two passes per item


class DescribedDensity(Density):
    """ln p(x, f, γ | data, a) up to a constant, for x = ln λ, parameters f of the response and z (K, d)."""

    dense = DENSE

    def __init__(self, likelihood: Likelihood, prior: WorthPrior, z: Array, informed: bool = True):
        super().__init__(likelihood, prior, informed)
        self.z = z

    def residuals(self, q: Array) -> Array:
        """Return y = x − zγ."""
        return np.asarray(q[: self.K] - self.z @ q[self.K + self.P :])

    def of_data(self, q: Array) -> Known:
        """Return V and its slopes."""
        return self.likelihood.slopes(q[: self.K], q[self.K : self.K + self.P])

    def joined(self, q: Array, known: Known) -> tuple[float, Array]:
        """Return the log-density at q and its gradient, given the likelihood there."""
        x, gamma = q[: self.K], q[self.K + self.P :]
        of_worths, of_residuals = self.prior.slopes(self.residuals(q))
        value, slope = self.of_response(q[self.K : self.K + self.P], known)
        slope[: len(x)] += of_residuals
        value += of_worths - 0.5 * float(gamma @ gamma) / SPREAD**2
        return value, np.append(slope, -of_residuals @ self.z - gamma / SPREAD**2)

    def curvature(self, q: Array) -> Array:
        """Return minus the matrix of second derivatives."""
        known, d = self.K + self.P, self.z.shape[1]
        found = np.zeros((known + d, known + d))
        found[:known, :known] = self.of_response_curved(q[: self.K], q[self.K : known])
        found += self.of_residuals(self.prior.curvature(self.residuals(q)))
        found[known:, known:] += np.eye(d) / SPREAD**2
        return found

    def of_residuals(self, curvature: Array) -> Array:
        """Return a curvature in y (K, K) as one in (x, f, γ)."""
        to_y = np.hstack([np.eye(self.K), np.zeros((self.K, self.P)), -self.z])
        return np.asarray(to_y.T @ curvature @ to_y)

    def start(self) -> Array:
        """Return equal worths, initial values of the parameters, and no effects."""
        return np.append(super().start(), np.zeros(self.z.shape[1]))


@dataclass(frozen=True)
class ShapedMetric:
    """Curvatures C(a₀) and G = dC/da: coordinates that follow a without a new factor.

    With A Aᵀ = C(a₀)⁻¹ and Aᵀ G A = U diag(g) Uᵀ the curvature at a is A⁻ᵀ U (1 + (a − a₀) g) Uᵀ A⁻¹.
    """

    basis: Array
    inverse: Array
    growth: Array
    shape: float

    @classmethod
    def of(cls, curvature: Array, by_shape: Array, shape: float) -> ShapedMetric:
        """Factorise the curvature at this shape and its derivative."""
        whitened, inverse = whitening(curvature)
        growth, turned = eigh(whitened.T @ by_shape @ whitened)
        return cls(whitened @ turned, turned.T @ inverse, np.clip(growth, 0.0, 1.0 / shape), shape)

    def at(self, shape: float) -> MatrixMetric:
        """Return the coordinates at another shape."""
        root = np.sqrt(np.maximum(1.0 + (shape - self.shape) * self.growth, 1e-12))
        return MatrixMetric(self.basis / root, root[:, None] * self.inverse)


@dataclass(frozen=True)
class ArrowMetric:
    """Coordinates in which the curvature is diagonal but for its last rows and columns, those of f and γ.

    `data` is the diagonal of the likelihood's curvature in x, `shares` K times the shares of the residuals, and
    `others` the curvature of f.
    """

    data: Array
    shares: Array
    others: Array
    z: Array

    def at(self, shape: float) -> Factored:
        """Return the factor at a shape."""
        prior, K, P = shape * self.shares, len(self.data), len(self.others)
        root = np.sqrt(self.data + prior)
        border = -(prior / root)[:, None] * self.z
        of_gamma = (self.z.T * prior) @ self.z + np.eye(self.z.shape[1]) / SPREAD**2 - border.T @ border
        corner: Array = np.linalg.cholesky(of_gamma).astype(np.float64)
        return Factored(np.append(root, np.sqrt(self.others)), border, corner, K, P)


@dataclass(frozen=True)
class Factored:
    """Lower factor L of a curvature L Lᵀ: a diagonal `root`, a border (K, d) and a corner (d, d)."""

    root: Array
    border: Array
    corner: Array
    K: int
    P: int

    def outward(self, z: Array) -> Array:
        """Return L⁻ᵀ z."""
        known = self.K + self.P
        gamma = solve_triangular(self.corner, z[known:], lower=True, trans="T")
        x = z[:known].copy()
        x[: self.K] -= self.border @ gamma
        return np.append(x / self.root, gamma)

    def inward(self, slope: Array) -> Array:
        """Return L⁻¹ applied to a slope."""
        known = self.K + self.P
        x = slope[:known] / self.root
        gamma = slope[known:] - x[: self.K] @ self.border
        return np.append(x, solve_triangular(self.corner, gamma, lower=True))

    def place(self, displacement: Array) -> Array:
        """Return Lᵀ (q − mode)."""
        known, gamma = self.K + self.P, displacement[self.K + self.P :]
        x = displacement[:known] * self.root
        x[: self.K] += self.border @ gamma
        return np.append(x, self.corner.T @ gamma)


class DescribedWalk(WorthWalk):
    """Trajectories on (ln λ, parameters, γ), and the shape given the residuals."""

    coordinates: ShapedMetric | ArrowMetric

    def __init__(self, likelihood: Likelihood, problem: Problem, target: Target, shape: float | None, z: Array):
        self.z = z
        super().__init__(likelihood, problem, target, shape)

    def _density(self, shape: float) -> DescribedDensity:
        return DescribedDensity(self.likelihood, WorthPrior(shape, 1.0, 0.0, True), self.z)

    def _settle(self, shape: float, start: Array | None = None) -> None:
        """Climb to the mode at this shape, and find the coordinates of trajectories at any shape."""
        density = self._density(shape)
        self.mode = density.mode(start)
        K, P = density.K, density.P
        shares = np.exp(density.residuals(self.mode))
        shares *= K / shares.sum()
        if len(self.mode) > DENSE:
            found = roughly_diagonal(density, self.mode)
            data = np.maximum(found[:K] - shape * shares, 1e-3 * shape * shares)
            self.coordinates = ArrowMetric(data, shares, np.maximum(found[K : K + P], 1e-3), self.z)
        else:
            by_shape = density.of_residuals(np.diag(shares) - np.outer(shares, shares) / K)
            self.coordinates = ShapedMetric.of(density.curvature(self.mode), by_shape, shape)
        self.metric = self.coordinates.at(shape)

    def metric_at(self, shape: float) -> Metric:
        """Return the coordinates at this shape."""
        return self.coordinates.at(shape) if self.target.learn else self.metric

    def _explained(self, q: Array) -> Array:
        """Return zγ."""
        return np.asarray(self.z @ q[len(q) - self.z.shape[1] :])

    def _redraw(self, rng: np.random.Generator, state: State, q: Array, tuning: bool, steps: int) -> None:
        """Draw the shape given the residuals, whose proportions take the place of those of the worths."""
        y = q[: len(self.z)] - self._explained(q)
        super()._redraw(rng, State((y - np.logaddexp.reduce(y))[:, None], state.numbers), q, tuning, steps)
