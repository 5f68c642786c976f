"""Hamiltonian Monte Carlo on worths and the parameters of a response, for rows with slopes of the likelihood.

Coordinates z of q = (ln λ, unconstrained parameters) are made alike in all directions by the curvature at the mode, so
that the posterior is nearly a standard normal law. A trajectory of that law is a rotation of (z, momentum), which needs
no likelihood. Steps are rotations between two kicks by the slope of ln p(z) + z²/2, the remainder (Shahbaba et al.
2014): where data are many, one step of a quarter turn, and one pass, makes a nearly independent draw. The shape a is
drawn given λ as by plain sweeps, and with standardised log-worths held; while tuning, the mode and its curvature follow
the shapes that were drawn.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from scipy.linalg import LinAlgError, cholesky, solve_triangular
from scipy.special import digamma, gammaln, polygamma

from plackett.compute.pieces import cores
from plackett.engines.base import Likelihood
from plackett.inference import known_scale
from plackett.inference.base import Problem
from plackett.inference.chains import WeightChain
from plackett.inference.store import Portion
from plackett.inference.sweeps import LOG_MASS, SHAPE, State, Target, log_prior, redraw_shape
from plackett.inference.sweeps import LOG_STEP as LOG_STEP_OF_SHAPE
from plackett.inference.worth_mode import DENSE, Density, Known, WorthPrior
from plackett.model.race import Array

LATE = 0.4  # of tuning, from where on coordinates follow the shapes drawn
PROBES = 20  # of a diagonal
ACCEPTANCE, LENGTH, SPREAD = 0.9, np.pi / 2, 0.3  # aimed at; of a trajectory, and its relative spread
LONGEST = 40  # steps of a trajectory
LONGEST_STEP = np.log(LENGTH * (1.0 + SPREAD))  # ln of the whole of the longest trajectory
DISPERSED, FREEDOM = 1.5, 4  # starts: deviations of Student's t about the mode
SELDOM = 0.05  # smallest probability of a stretch
LOG_STEP, STEPS, LOG_STRETCH = range(3)  # of WalkChain.step
SAMPLER = "rotations"  # a checkpoint of another sampler is refused
TOO_FAR = 1000.0  # a loss of log-density after which a trajectory is given up


@dataclass
class WalkChain(WeightChain):
    """Chain with its position q = (ln λ, unconstrained parameters) and the step of its trajectories."""

    place: Array = field(default_factory=lambda: np.empty(0))
    step: Array = field(default_factory=lambda: np.zeros(3))

    def arrays(self) -> dict[str, Array]:
        """Arrays of the weight chain, with position and step."""
        return super().arrays() | {"place": self.place, "step": self.step}


class Metric(Protocol):
    """Coordinates z of a position q = mode + A z, in which the curvature is about 1."""

    def outward(self, z: Array) -> Array:
        """Return A z, which is q − mode."""
        ...

    def inward(self, slope: Array) -> Array:
        """Return the slope in z from the slope in q."""
        ...

    def place(self, displacement: Array) -> Array:
        """Return z from q − mode."""
        ...


class MatrixMetric(NamedTuple):
    """A and its inverse as matrices, or their diagonals."""

    scale: Array
    inverse: Array

    def outward(self, z: Array) -> Array:
        """Return A z."""
        return np.asarray(self.scale * z if self.scale.ndim == 1 else self.scale @ z)

    def inward(self, slope: Array) -> Array:
        """Return the slope in z."""
        return np.asarray(self.scale * slope if self.scale.ndim == 1 else slope @ self.scale)

    def place(self, displacement: Array) -> Array:
        """Return A⁻¹ (q − mode)."""
        return np.asarray(self.inverse * displacement if self.inverse.ndim == 1 else self.inverse @ displacement)


class WorthWalk:
    """Trajectories on (ln λ, parameters), and the shape given λ."""

    mode: Array
    metric: Metric

    def __init__(self, likelihood: Likelihood, problem: Problem, target: Target, shape: float | None):
        self.likelihood, self.target, self.shape_steps = likelihood, target, problem.shape_steps
        self.scale_free = not likelihood.absolute and target.tail == 0.0
        self.workers = cores() if problem.side_by_side else 1
        self._settle(1.0 if shape is None else shape)

    def _density(self, shape: float) -> Density:
        prior = WorthPrior(shape, self.target.rate, self.target.tail, self.scale_free)
        return Density(self.likelihood, prior)

    def _settle(self, shape: float, start: Array | None = None) -> None:
        """Climb to the mode at this shape, and find coordinates z with q = mode + A z in which its curvature is 1."""
        density = self._density(shape)
        self.mode = density.mode(start)
        if len(self.mode) > DENSE:
            root = np.sqrt(roughly_diagonal(density, self.mode))
            self.metric = MatrixMetric(1.0 / root, root)
            return
        self.metric = MatrixMetric(*whitening(density.curvature(self.mode)))

    def metric_at(self, shape: float) -> Metric:
        """Return the coordinates of trajectories at this shape."""
        return self.metric

    def begin(self, start: State, rng: np.random.Generator) -> WalkChain:
        """Start a chain about the mode, overdispersed; its shape comes from a dispersed start."""
        z = rng.standard_t(FREEDOM, len(self.mode)) * DISPERSED
        q = self.mode + self.metric.outward(z)
        chain = WalkChain(start, rng, place=np.empty(len(q)))
        if self.likelihood.parameters:
            chain.values = np.empty(len(self.likelihood.parameters))
        chain.step[LOG_STEP] = np.log(LENGTH)
        self._put(chain, q)
        return chain

    def _put(self, chain: WalkChain, q: Array) -> None:
        """Set the state of a chain from q."""
        K, chain.place[:] = self.likelihood.n_groups, q
        mass = float(np.logaddexp.reduce(q[:K]))
        chain.state.log_weights[:, 0] = q[:K] - mass
        if not self.scale_free:
            chain.state.numbers[LOG_MASS] = mass
        if chain.values is not None:
            chain.values[:] = [each.bound(u) for each, u in zip(self.likelihood.parameters, q[K:], strict=False)]

    def _explained(self, q: Array) -> Array:
        """Return the part of ln λ that covariates of the items explain."""
        return np.zeros(self.likelihood.n_groups)

    @np.errstate(over="ignore", invalid="ignore", divide="ignore")  # of trajectories that are given up
    def advance(self, chain: WalkChain, tuning: bool, **draws: Array) -> None:
        """Record the state, move along a trajectory and draw the shape, until the arrays are full."""
        state, q = chain.state, chain.place.copy()
        known = self._density(1.0).of_data(q)
        for t in range(len(draws["shape"])):
            draws["log_weights"][t], draws["shape"][t] = state.log_weights, state.numbers[SHAPE]
            draws["value"][t] = known[0]
            if "log_mass" in draws:
                draws["log_mass"][t] = state.numbers[LOG_MASS]
            if chain.values is not None:
                draws["parameters"][t] = chain.values
            if "gamma" in draws:
                draws["gamma"][t] = q[len(q) - draws["gamma"].shape[1] :]
            q, known = self._trajectory(chain, self._density(float(state.numbers[SHAPE])), q, known, tuning)
            self._put(chain, q)
            if self.target.learn:
                self._redraw(chain.rng, state, q, tuning, self.shape_steps)
                if chain.rng.random() < self._often(chain):
                    q, known = self._stretch(chain, q, known, tuning)
        if self.target.learn and not len(draws["shape"]):  # compile
            at = State(state.log_weights.copy(), state.numbers.copy())
            self._redraw(np.random.default_rng(0), at, q, False, 0)

    def _often(self, chain: WalkChain) -> float:
        """Return the probability of a stretch: small where ln a given the worths makes much longer steps."""
        return float(np.clip(np.exp(chain.step[LOG_STRETCH] - chain.state.numbers[LOG_STEP_OF_SHAPE]), SELDOM, 1.0))

    def _redraw(self, rng: np.random.Generator, state: State, q: Array, tuning: bool, steps: int) -> None:
        """Draw the shape given the worths."""
        again = redraw_shape if self.scale_free else known_scale.redraw_shape
        again(rng, state, self.target, tuning, steps)

    def _trajectory(
        self, chain: WalkChain, density: Density, q: Array, known: Known, tuning: bool
    ) -> tuple[Array, Known]:
        """Rotate between kicks by the remainder, in whitened coordinates, and do the Metropolis test."""
        rng = chain.rng
        metric = self.metric_at(float(chain.state.numbers[SHAPE]))
        length = LENGTH * (1.0 + SPREAD * (2.0 * rng.random() - 1.0))
        longest = float(np.exp(chain.step[LOG_STEP]))
        steps = min(int(np.ceil(length / longest)), LONGEST)
        step = min(length / steps, longest)
        cosine, sine = np.cos(step), np.sin(step)
        momentum = rng.standard_normal(len(q))
        value, slope = density.joined(q, known)
        energy = 0.5 * float(momentum @ momentum) - value
        z = metric.place(q - self.mode)
        new, there, found, remainder = q, known, value, metric.inward(slope) + z
        for _ in range(steps):
            momentum = momentum + 0.5 * step * remainder
            z, momentum = cosine * z + sine * momentum, cosine * momentum - sine * z
            new = self.mode + metric.outward(z)
            there = density.of_data(new)
            found, slope = density.joined(new, there)
            if not (np.isfinite(found) and np.isfinite(slope).all()) or energy + found < -TOO_FAR:
                found = -np.inf
                break
            remainder = metric.inward(slope) + z
            momentum = momentum + 0.5 * step * remainder
        accepted = float(np.exp(min(0.0, energy - 0.5 * float(momentum @ momentum) + found)))
        if tuning:
            chain.step[STEPS] += 1.0
            log_step = chain.step[LOG_STEP] + (accepted - ACCEPTANCE) / (chain.step[STEPS] + 5.0) ** 0.6
            chain.step[LOG_STEP] = min(log_step, LONGEST_STEP)
        return (new, there) if rng.random() < accepted else (q, known)

    def _stretch(self, chain: WalkChain, q: Array, known: Known, tuning: bool) -> tuple[Array, Known]:
        """Move ln a with standardised log-worths fixed, which mixes if the data say little about them.

        Under the prior ln λ has the deviation ψ'(a)^½, so that x − centre is multiplied by the ratio s of two of them,
        with s^(K−1) in the Metropolis ratio, or s^K where the scale is known and the centre is ψ(a) − ln b.
        """
        rng, numbers, K = chain.rng, chain.state.numbers, self.likelihood.n_groups
        old = float(np.log(numbers[SHAPE]))
        new = old + float(np.exp(chain.step[LOG_STRETCH])) * rng.standard_normal()
        log_ratio, moved, there = log_prior(self.target, new) - log_prior(self.target, old), q, known
        if log_ratio > -np.inf:
            a, b = np.exp(old), np.exp(new)
            s = float(np.sqrt(polygamma(1, b) / polygamma(1, a)))
            explained = self._explained(q)
            x = q[:K] - explained
            if self.scale_free:
                centre = target = x.mean()
            else:
                centre, target = digamma(a) - np.log(self.target.rate), digamma(b) - np.log(self.target.rate)
            new_x = target + s * (x - centre)
            moved = np.append(explained + new_x, q[K:])
            there = self._density(b).of_data(moved)
            log_ratio += there[0] - known[0] + (K - self.scale_free) * np.log(s)
            log_ratio += self._law_of_worths(new_x, b) - self._law_of_worths(x, a)
            log_ratio = log_ratio if np.isfinite(there[1]).all() else -np.inf
        accepted = bool(np.log(rng.random()) < log_ratio)  # False if the likelihood is not finite
        if tuning:
            chain.step[LOG_STRETCH] += (float(accepted) - 0.4) / np.sqrt(chain.step[STEPS] + 1.0)
        if not accepted:
            return q, known
        numbers[SHAPE] = np.exp(new)
        self._put(chain, moved)
        return moved, there

    def _law_of_worths(self, x: Array, shape: float) -> float:
        """Return ln p(x|a) with the terms of a, for the Dirichlet or the Gamma law."""
        K, value = len(x), self._density(shape).prior.slopes(x)[0]
        if self.scale_free:
            return float(value + gammaln(K * shape) - K * gammaln(shape))
        return float(value + K * (shape * np.log(self.target.rate) - gammaln(shape)))

    def adapt(self, chains: list[WalkChain], states: Portion, done: float) -> None:
        """After about half of tuning, update the mode and its curvature to the shapes drawn recently."""
        if self.target.learn and LATE <= done < 1.0 and states["shape"].size:
            lately = states["shape"][:, states["shape"].shape[1] // 2 :]
            self._settle(float(np.exp(np.log(lately).mean())), self.mode)


def whitening(curvature: Array) -> tuple[Array, Array]:
    """Return A and A⁻¹, with A Aᵀ the inverse of a curvature; a ridge is added if it is not positive definite."""
    unit, ridge = np.eye(len(curvature)), 0.0
    while True:
        try:
            factor = cholesky(curvature + ridge * unit, lower=True)
            whitened = solve_triangular(factor, unit, lower=True).T
            return np.ascontiguousarray(whitened), np.ascontiguousarray(factor.T)
        except LinAlgError:
            ridge = max(10.0 * ridge, 1e-8 * np.abs(np.diag(curvature)).max())


def roughly_diagonal(density: Density, q: Array) -> Array:
    """Estimate the diagonal of the curvature of many items by Hutchinson's method, from differences of slopes."""
    rng, step, found = np.random.default_rng(0), 1e-4, np.zeros(len(q))
    for _ in range(PROBES):
        signs = rng.choice([-1.0, 1.0], len(q))
        up, down = (density.slopes(q + h * signs)[1] for h in (step, -step))
        found += signs * (down - up) / (2.0 * step * PROBES)
    return np.asarray(np.maximum(found, density.prior.shape))
