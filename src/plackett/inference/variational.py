"""Variational inference (section 3.4): q(λ_kj) of the prior's family by (18) and (19), a by type-II maximum likelihood.

With the Gamma prior q is Gam(A, B); with the generalised inverse Gaussian q is generalised inverse Gaussian.
"""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
from scipy.optimize import brentq
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from plackett.capabilities import Ignored
from plackett.compute.memory import check_draws_fit
from plackett.inference.ascent import Ascent
from plackett.inference.base import Fit, Problem, check_count, check_tolerance
from plackett.model.race import Array, Weights
from plackett.model.weights import Gam, WeightPrior
from plackett.posterior.weights import approximation
from plackett.priors import ShapePrior, as_prior

STARTS = (1.0, 0.02)  # starting values of a, if it is learned
COARSE = 1e-4  # tolerance of the first fit of a start


def best_shape(wins: Array, exposure: Array, rate: float, prior: ShapePrior, start: float) -> float:
    """Type-II maximum likelihood of a (section 3.5), with q(λ) optimal for each a.

    Given q(C) and q(Z), the bound plus ln p(a) is, up to a constant, ln p(a) + Σ_kj ln of the integral of λ^n e^{−λs}
    under Gam(a, b). The search goes uphill in ln a in doubling steps until the slope changes sign, and finds the root
    in that bracket.
    """
    of_evidence = Gam(start, rate).shape_slope(wins, exposure)
    low, high = np.log(prior.lower), np.log(prior.upper)

    def slope(log_shape: float) -> float:
        a = np.exp(log_shape)
        near = np.clip(log_shape + np.array([-1e-5, 1e-5]), low, high)
        prior_slope = np.diff(prior.log_density(np.exp(near)))[0] / np.diff(near)[0]
        return float(a * of_evidence(a) + prior_slope)

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


class Bound:
    """The bound (14) as a function of a point: the coordinates of q and, with a prior for it, ln a."""

    def __init__(self, problem: Problem, shape: float, shape_prior: ShapePrior | None = None):
        self.problem, self.rows, self.shape, self.shape_prior = problem, problem.rows, shape, shape_prior
        self.size = (self.rows.n_groups, self.rows.n_features)

    def start(self) -> Array:
        """Return (18) and (19) from equal weights."""
        stats = self.rows.expect(Weights.point(np.zeros(self.size)))
        return self.pack(self.problem.prior(self.shape).given(stats.wins, stats.exposure), self.shape)

    def pack(self, q: WeightPrior, a: float) -> Array:
        """Return a point from q and a."""
        point = self.problem.prior(a).coordinates(q)
        return point if self.shape_prior is None else np.append(point, np.log(a))

    def unpack(self, x: Array) -> tuple[WeightPrior, float]:
        """Return q and a from a point."""
        if self.shape_prior is None:
            return self.problem.prior(self.shape).law_at(x, self.size), self.shape
        a = float(np.exp(x[-1]))
        return self.problem.prior(a).law_at(x[:-1], self.size), a

    def within(self, x: Array) -> Array:
        """Clip an extrapolated a to its prior's interval."""
        if self.shape_prior is not None:
            x[-1] = np.clip(x[-1], np.log(self.shape_prior.lower), np.log(self.shape_prior.upper))
        return x

    def step(self, x: Array) -> tuple[float, Array]:
        """Return the bound at x, plus ln p(a) if a is learned, and the next point by (18) and (19)."""
        q, a = self.unpack(x)
        stats = self.rows.expect(q.weights())
        value = stats.value - q.divergence(self.problem.prior(a))
        if self.shape_prior is not None:
            value += float(self.shape_prior.log_density(np.array(a)))
            a = best_shape(stats.wins, stats.exposure, self.problem.rate, self.shape_prior, a)
        prior = self.problem.prior(a)
        image = prior.given(stats.wins, stats.exposure)
        return value, self.pack(image if self.rows.absolute else image.rescaled(prior), a)

    def movement(self, ascent: Ascent) -> float:
        """Largest change of a normalised mean ⟨λ⟩/Σ⟨λ⟩, of ln a or of an identified scale in the next step."""
        (q, a), (q_next, a_next) = self.unpack(ascent.point), self.unpack(ascent.image)
        mean, mean_next = q.mean(), q_next.mean()
        change = float(np.abs(mean / mean.sum() - mean_next / mean_next.sum()).max())
        if self.rows.absolute or not q.scale_free:
            change = max(change, abs(float(np.log(mean_next.sum() / mean.sum()))))
        return max(change, abs(float(np.log(a / a_next))))


class Variational(BaseEstimator):
    """Mean-field approximation of the posterior: fast, and deterministic except for the draws from q.

    Parameters
    ----------
    tol : float
        Stop when an iteration changes no normalised mean weight, nor ln a, by more than this.
    max_iter : int
        Maximum number of iterations.
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

    samples: Literal[False] = False
    maximises: Literal[False] = False
    shape_settings = ("shape_prior",)
    fixed_only = Ignored((), "")
    no_directions = (
        "there is no variational approximation for learned directions: their posterior has many modes. Use "
        "features='exp' for the paper's model, or inference='gibbs' or inference='em'."
    )
    no_fixed = None
    groups_rows = False

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
        """Maximise the bound; shape None learns a.

        The bound can have two maxima in a, and equal weights lead to the one with large a. Therefore the fit starts
        from two values, each first held fixed.
        """
        check_tolerance("Variational(tol)", self.tol)
        check_count("Variational(max_iter)", self.max_iter)
        check_count("Variational(draws)", self.draws)
        size = problem.rows.n_groups, problem.rows.n_features
        check_draws_fit(self.draws, size, f"Ask for fewer than Variational(draws={self.draws}).")
        if shape is not None:
            bound = Bound(problem, shape)
            climb = self._climb(bound, bound.start(), self.tol)
            n_passes = climb.n_passes
        else:
            prior = as_prior(self.shape_prior)
            climbs = []
            for a in np.clip(STARTS, prior.lower, prior.upper).tolist():
                fixed, bound = Bound(problem, a), Bound(problem, a, prior)
                first = self._climb(fixed, fixed.start(), COARSE)
                climbs += [first, self._climb(bound, bound.pack(*fixed.unpack(first.point)), self.tol)]
            climb = max(climbs[1::2], key=lambda each: each.value)
            n_passes = sum(each.n_passes for each in climbs)
        if bound.movement(climb) > self.tol:
            warnings.warn(
                f"the variational bound did not converge in {self.max_iter} iterations: the last moved a weight "
                f"or ln a by more than tol={self.tol:g}. Raise Variational(max_iter=...) or Variational(tol=...).",
                ConvergenceWarning,
                stacklevel=4,
            )
        q, a = bound.unpack(climb.point)
        posterior = approximation(q, self.draws, np.random.default_rng(problem.seed), problem.rows.absolute)
        return Fit(posterior, a, np.array(climb.trace), n_iter=n_passes)

    def _climb(self, bound: Bound, start: Array, tol: float) -> Ascent:
        ascent = Ascent(bound.step, start, bound.within, self.accelerate)
        for _ in range(self.max_iter):
            if bound.movement(ascent) <= tol:
                break
            ascent.advance()
        return ascent
