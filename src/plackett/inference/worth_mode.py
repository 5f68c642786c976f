"""Mode of worths and its curvature by Newton's method: the starting point of a Hamiltonian walk, and the result of EM.

The likelihood is V(x, f) of x = ln λ and the unconstrained parameters f of a response.
The law of x given the shape a is one of three, here up to a constant:

    λ̄ ~ Dirichlet(a):  a Σ x − K a ln Σ e^x, the scale integrated out;
    Gam(a, b), where the likelihood knows the scale:  a Σ x − b Σ e^x;
    GIG:  a Σ x − b Σ e^x − t Σ e^−x.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, lapack
from scipy.optimize import minimize

from plackett.engines.base import Likelihood
from plackett.model.race import Array

DENSE = 1500  # coordinates up to which curvature is a matrix
NEWTON, HALVINGS = 60, 40  # steps, and halvings of one
Known = tuple[float, Array, Array]  # V, ∂V/∂x, ∂V/∂f
CLOSE = 1e-12  # length of a step that is left out
PRECISE = 1e-12  # share of the value by which rounding may let it fall
HIGHEST = 700.0  # ln of what a double can hold
FLAT = 1e-9  # of the largest eigenvalue, what counts as none
QUICK = 1 << 28  # numbers to read for a curvature: more would take longer than EM


class WorthPrior(NamedTuple):
    """Law of x given the shape a, as log-density with slopes; and of unconstrained parameters."""

    shape: float
    rate: float
    tail: float
    scale_free: bool

    def slopes(self, x: Array) -> tuple[float, Array]:
        """Return ln p(x|a) and its slopes. If scale-free, the sum of x/√K gets an independent normal law."""
        if self.scale_free:
            top = x.max()
            rates = np.exp(x - top)
            total, drift = rates.sum(), x.sum() / len(x)
            value = self.shape * (x.sum() - len(x) * (top + np.log(total))) - 0.5 * drift * drift * len(x)
            return float(value), self.shape * (1.0 - len(x) * rates / total) - drift
        rates = self.rate * np.exp(np.minimum(x, HIGHEST))
        inverse = self.tail * np.exp(np.minimum(-x, HIGHEST)) if self.tail > 0.0 else np.zeros_like(x)
        return float((self.shape * x - rates - inverse).sum()), self.shape - rates + inverse

    def curvature(self, x: Array) -> Array:
        """Return −∂² ln p(x|a) (K, K)."""
        K = len(x)
        if self.scale_free:
            found = np.full((K, K), 1.0 / K)
            if self.shape != 0.0:
                share = np.exp(x - x.max())
                share /= share.sum()
                found += self.shape * K * (np.diag(share) - np.outer(share, share))
            return found
        rates = self.rate * np.exp(np.minimum(x, HIGHEST))
        return np.diag(rates + (self.tail * np.exp(np.minimum(-x, HIGHEST)) if self.tail > 0.0 else 0.0))


class Density:
    """ln p(x, f | data, a) up to a constant; without `informed`, parameters have no prior, as in maximum likelihood."""

    dense = DENSE

    def __init__(self, likelihood: Likelihood, prior: WorthPrior, informed: bool = True):
        self.likelihood, self.prior, self.informed = likelihood, prior, informed
        self.K, self.P = likelihood.n_groups, len(likelihood.parameters)

    def of_data(self, q: Array) -> Known:
        """Return V and its slopes at q = (x, f)."""
        return self.likelihood.slopes(q[: self.K], q[self.K :])

    def joined(self, q: Array, known: Known) -> tuple[float, Array]:
        """Return the log-density at q and its gradient, given the likelihood there."""
        value, slope = self.of_response(q[self.K :], known)
        prior, of_x = self.prior.slopes(q[: self.K])
        slope[: self.K] += of_x
        return value + prior, slope

    def of_response(self, free: Array, known: Known) -> tuple[float, Array]:
        """Return V and the log-prior of parameters f, with their slopes in (x, f), given the likelihood there."""
        value, of_x, of_free = known
        if self.informed:
            given = list(zip(self.likelihood.parameters, free, strict=True))
            value += sum(each.log_prior(u) for each, u in given)
            of_free = of_free + [each.prior_slope(u) for each, u in given]
        return value, np.append(of_x, of_free)

    def slopes(self, q: Array) -> tuple[float, Array]:
        """Return the log-density at q and its gradient."""
        return self.joined(q, self.of_data(q))

    def curvature(self, q: Array) -> Array:
        """Return minus the matrix of second derivatives."""
        found = self.of_response_curved(q[: self.K], q[self.K :])
        found[: self.K, : self.K] += self.prior.curvature(q[: self.K])
        return found

    def of_response_curved(self, x: Array, free: Array) -> Array:
        """Return minus the second derivatives of V and of the log-prior of parameters."""
        found = self.likelihood.curvature(x, free)
        if self.informed:
            each = zip(self.likelihood.parameters, free, strict=True)
            found[self.K :, self.K :] += np.diag([one.prior_curvature(u) for one, u in each])
        return found

    def start(self) -> Array:
        """Return equal worths, and initial values of the parameters."""
        free = [each.free(each.start) for each in self.likelihood.parameters]
        return np.append(np.zeros(self.K), free)

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")  # of steps that are halved
    def mode(self, start: Array | None = None, tol: float = CLOSE, steps: int = NEWTON) -> Array:
        """Return the mode, by Newton's method with step halving, or by L-BFGS for many items.

        Newton's method ends after so many steps, or where the square of one is less than `tol`, as the next would be
        about that long.
        """
        q = self.start() if start is None else start
        if len(q) > self.dense:
            return _by_gradients(self.slopes, q)
        value, slope = self.slopes(q)
        for _ in range(steps):
            step = ascent_step(self.curvature(q), slope)
            longest = np.abs(step).max()
            new, found, gradient = q, value, slope
            for _ in range(HALVINGS):
                new = q + step
                found, gradient = self.slopes(new)
                if np.isfinite(found) and found >= value - PRECISE * abs(value):
                    break
                step = step / 2.0
            if found < value - PRECISE * abs(value):
                break
            q, value, slope = new, found, gradient
            if longest**2 < tol:
                break
        return q


def ascent_step(curvature: Array, slope: Array) -> Array:
    """Return Newton's step, with a ridge if the curvature is not positive definite."""
    _, step, failed = lapack.dposv(curvature, slope, lower=1)
    if not failed:
        return np.asarray(step)
    ridge = 1e-8 * (np.abs(np.diag(curvature)).max() + 1e-300)
    while True:
        try:
            found: Array = cho_solve(cho_factor(curvature + ridge * np.eye(len(slope)), lower=True), slope)
            return found
        except LinAlgError:
            ridge *= 10.0


def _by_gradients(slopes: Callable[[Array], tuple[float, Array]], q: Array) -> Array:
    def negative(q: Array) -> tuple[float, Array]:
        value, slope = slopes(q)
        return -value, -slope

    found = minimize(negative, q, jac=True, method="L-BFGS-B", options={"maxiter": 5000, "maxcor": 30, "ftol": 1e-15})
    return np.asarray(found.x)


def covariance_of(information: Array) -> Array | None:
    """Return the inverse; None if a direction has no information."""
    factor, flat = lapack.dpotrf(information, lower=1)
    if flat:
        return None
    lower, _ = lapack.dpotri(factor, lower=1)
    found: Array = np.tril(lower) + np.tril(lower, -1).T
    if np.linalg.norm(information) * np.linalg.norm(found) > 1.0 / FLAT:  # is at least the condition number
        values = np.linalg.eigvalsh(information)
        if values[0] <= FLAT * values[-1]:
            return None
    return found


def covariance_at(
    likelihood: Likelihood, shape: float, rate: float, log_weights: Array, values: Array | None
) -> Array | None:
    """Return the inverse information of ln λ (K,) and the free parameters at EM's estimate; None if it is flat."""
    prior = WorthPrior(shape - 1.0, rate, 0.0, not likelihood.absolute)
    laws = () if values is None else zip(likelihood.parameters, values, strict=True)
    free = np.array([law.free(value) for law, value in laws])
    if not (np.isfinite(log_weights).all() and np.isfinite(free).all()):
        return None
    return covariance_of(Density(likelihood, prior, informed=False).curvature(np.append(log_weights, free)))
