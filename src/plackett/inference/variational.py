"""Variational inference (section 3.4): q(λ_kj) = Gam(A_kj, B_kj) by (18) and (19), a by type-II maximum likelihood."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln, logsumexp, psi
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from plackett.inference.ascent import Ascent
from plackett.inference.base import Fit, Problem, check_count, check_tolerance
from plackett.model.race import Array, Weights
from plackett.posterior import Gammas
from plackett.priors import ShapePrior, as_prior


def expected_weights(A: Array, B: Array) -> Weights:
    """U = exp⟨ln λ⟩ and V = ⟨λ⟩ under Gam(A, B), as logarithms (18)."""
    return Weights(psi(A) - np.log(B), logsumexp(np.log(A) - np.log(B), axis=0))


def divergence(A: Array, B: Array, shape: float, rate: float) -> float:
    """KL(q‖prior) of q = Π Gam(A, B) from the prior (7)."""
    terms = (A - shape) * psi(A) - gammaln(A) + gammaln(shape) + shape * (np.log(B) - np.log(rate)) + A * (rate / B - 1)
    return float(terms.sum())


def best_shape(wins: Array, exposure: Array, rate: float, prior: ShapePrior, start: float) -> float:
    """Type-II maximum likelihood of a (section 3.5), with q(λ) optimal for each a.

    Given q(C) and q(Z), the bound plus ln p(a) is, up to a constant, ln p(a) + Σ_kj ln of the integral of
    λ^n e^{−λs} under Gam(a, b). From the start, go uphill in ln a in doubling steps until the slope changes sign,
    and find its root in that bracket.
    """
    rates = np.broadcast_to(np.log(rate) - np.log(rate + exposure), wins.shape).sum()
    low, high = np.log(prior.lower), np.log(prior.upper)

    def slope(log_shape: float) -> float:
        a = np.exp(log_shape)
        near = np.clip(log_shape + np.array([-1e-5, 1e-5]), low, high)
        prior_slope = np.diff(prior.log_density(np.exp(near)))[0] / np.diff(near)[0]
        return float(a * (rates + psi(a + wins).sum() - wins.size * psi(a)) + prior_slope)

    here, reach = float(np.clip(np.log(start), low, high)), 0.25
    up = np.sign(slope(here))
    while up:
        there = float(np.clip(here + up * reach, low, high))
        if there == here:
            break
        if up * slope(there) < 0:
            here = brentq(slope, *sorted((here, there)), xtol=1e-13)
            break
        here, reach = there, 2 * reach
    return float(np.exp(here))


def rescaled(A: Array, B: Array, shape: float, rate: float) -> Array:
    """The rates at the best common scale: ⟨Λ⟩ = Kpa/b. The likelihood does not depend on it."""
    factor = rate * float((A / B).sum()) / (A.size * shape)
    rates: Array = B * factor
    return rates


class Variational(BaseEstimator):
    """Mean-field approximation of the posterior: fast, deterministic up to the draws it leaves.

    Parameters
    ----------
    tol : float
        Stop when an iteration moves no normalised mean weight, nor ln a, by more than this.
    max_iter : int
        Iterations at the most.
    accelerate : bool
        Extrapolate (Anderson), safeguarded so that the bound never falls. False gives the plain updates.
    draws : int
        Draws from q used for predictions and intervals.
    shape_prior : prior, log-density or None
        p(a) for ``shape="learn"``; see `plackett.priors`. None: log-uniform on [1e-4, 1e2].

    Examples
    --------
    >>> from plackett import Variational
    >>> Variational(draws=500)
    Variational(draws=500)
    """

    def __init__(
        self,
        tol: float = 1e-8,
        max_iter: int = 5000,
        accelerate: bool = True,
        draws: int = 1000,
        shape_prior: Any = None,
    ):
        self.tol = tol
        self.max_iter = max_iter
        self.accelerate = accelerate
        self.draws = draws
        self.shape_prior = shape_prior

    def fit(self, problem: Problem, shape: float | None) -> Fit:
        """Climb the bound; shape None learns a."""
        check_tolerance("Variational(tol)", self.tol)
        check_count("Variational(max_iter)", self.max_iter)
        check_count("Variational(draws)", self.draws)
        rows, rate = problem.rows, problem.rate
        K, p = rows.n_classes, rows.n_features
        prior = as_prior(self.shape_prior) if shape is None else None

        def unpack(x: Array) -> tuple[Array, Array, float]:
            A, B = np.exp(x[: K * p]).reshape(K, p), np.exp(x[K * p : K * p + p])[None, :]
            if prior is None:
                assert shape is not None
                return A, B, shape
            return A, B, float(np.exp(x[-1]))

        def within(x: Array) -> Array:
            """Keep an extrapolated a inside its prior's interval."""
            if prior is not None:
                x[-1] = np.clip(x[-1], np.log(prior.lower), np.log(prior.upper))
            return x

        def pack(A: Array, B: Array, a: float) -> Array:
            tail = [] if prior is None else [np.log(a)]
            return np.concatenate([np.log(A).ravel(), np.log(B).ravel(), tail])

        def shares(x: Array) -> Array:
            """The normalised means ⟨λ⟩/Σ⟨λ⟩, and ln a if it is learned."""
            A, B, a = unpack(x)
            return np.append(A / B / (A / B).sum(), np.log(a))

        def step(x: Array) -> tuple[float, Array]:
            A, B, a = unpack(x)
            stats = rows.expect(expected_weights(A, B))
            bound = stats.value - divergence(A, np.broadcast_to(B, A.shape), a, rate)
            if prior is not None:
                bound += float(prior.log_density(np.array(a)))
                a = best_shape(stats.wins, stats.exposure, rate, prior, a)
            A, B = a + stats.wins, rate + stats.exposure
            return bound, pack(A, rescaled(A, B, a, rate), a)

        a = 1.0 if shape is None else shape
        if prior is not None:
            a = float(np.clip(a, prior.lower, prior.upper))
        start = rows.expect(Weights.point(np.zeros((K, p)) + np.log(a / rate)))
        ascent = Ascent(step, pack(a + start.wins, rate + start.exposure, a), within, self.accelerate)
        trace = [ascent.value]
        for _ in range(self.max_iter):
            if np.abs(shares(ascent.image) - shares(ascent.point)).max() <= self.tol:
                break
            ascent.advance()
            trace.append(ascent.value)
        else:
            warnings.warn(
                f"the variational bound did not converge in {self.max_iter} iterations: the last moved a weight "
                f"or ln a by more than tol={self.tol:g}. Raise Variational(max_iter=...) or Variational(tol=...).",
                ConvergenceWarning,
                stacklevel=4,
            )
        A, B, a = unpack(ascent.point)
        B = np.broadcast_to(B, A.shape)
        posterior = Gammas.sampled(A, B, self.draws, np.random.default_rng(problem.seed))
        return Fit(posterior, a, np.array(trace), n_iter=ascent.n_passes)
