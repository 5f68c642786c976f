"""EM of learned directions with Poisson M-steps: another way up the same likelihood.

Given the shares ρ_ij ∝ e^{x_i·β_j} λ_{y_i j} and z_i = 1/Σ_j e^{x_i·β_j} Λ_j, the expected complete log-likelihood
falls into M concave weighted Poisson regressions, Σ_i w_i [ρ_ij x_i·β_j − z_i e^{x_i·β_j} Λ_j], and λ is in closed
form.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from plackett.engines.numpy import NumpyDirections
from plackett.model.race import Array


def em_step(
    X: Array,
    codes: npt.NDArray[np.intp],
    weight: Array,
    beta: Array,
    log_weights: Array,
    precision: float,
    shape: float,
    rate: float = 1.0,
) -> tuple[Array, Array]:
    """One step of EM for β ~ N(0, 1/precision), λ ~ Gam(shape, rate) with its mode taken in ln λ.

    The M-step in λ given β is λ_kj = (wins_kj + a)/(exposure_j + b), with exposure_j = Σ_i w_i z_i e^{x_i·β_j}; that in
    β_j given Λ_j is one Newton step of a Poisson regression, halved until it gains.
    """
    rho, pi, _ = NumpyDirections(X, codes, weight).shares_and_gates(beta, log_weights)
    totals = logsumexp(log_weights, axis=0)
    exposure_of = weight[:, None] * pi / np.exp(X @ beta.T + totals)  # w_i z_i
    wins = np.zeros_like(log_weights)
    np.add.at(wins, codes, weight[:, None] * rho)
    exposure = (exposure_of * np.exp(X @ beta.T)).sum(axis=0)
    log_weights = np.log(wins + shape) - np.log(exposure + rate)
    totals = logsumexp(log_weights, axis=0)
    beta = beta.copy()
    for j in range(len(beta)):
        beta[j] = poisson_step(X, weight * rho[:, j], exposure_of[:, j], beta[j], totals[j], precision)
    return beta, log_weights


def poisson_step(X: Array, counts: Array, exposure: Array, beta: Array, offset: float, precision: float) -> Array:
    """A Newton step on Σ_i [c_i x_i·β − e_i e^{x_i·β + offset}] − ½ precision |β|²."""

    def objective(b: Array) -> float:
        return float(counts @ (X @ b) - exposure @ np.exp(X @ b + offset) - 0.5 * precision * b @ b)

    mean = exposure * np.exp(X @ beta + offset)
    slope = X.T @ (counts - mean) - precision * beta
    step = np.linalg.solve((X.T * mean) @ X + precision * np.eye(len(beta)), slope)
    before = objective(beta)
    while objective(beta + step) < before and np.abs(step).max() > 1e-12:
        step = step / 2
    return beta + step if objective(beta + step) >= before else beta


def em_objective(
    X: Array,
    codes: npt.NDArray[np.intp],
    weight: Array,
    beta: Array,
    log_weights: Array,
    precision: float,
    shape: float,
    rate: float = 1.0,
) -> float:
    """What EM climbs: log-likelihood, −½ precision |β|², and Gam(shape, rate) in ln λ."""
    value = NumpyDirections(X, codes, weight).gradient(beta, log_weights).value
    return float(value - 0.5 * precision * (beta**2).sum() + (shape * log_weights - rate * np.exp(log_weights)).sum())
