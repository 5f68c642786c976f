"""Draws of the parameters of segments, given how many of each person's copies belong to each.

Coefficients take a Hamiltonian trajectory in coordinates in which their law at the maximum is standard normal; worths
are drawn from their Gamma laws, given exponential times, and the shape of these laws by slices. What a chain remembers
between iterations is an `hmc.Walk`, or the logarithm of the shape.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.special import gammaln, logsumexp

from plackett.inference import hmc
from plackett.linear.likelihood import gradient_of
from plackett.linear.newton import solved
from plackett.model.mixture import FAINT
from plackett.model.race import Array
from plackett.priors import ShapePrior
from plackett.segments.choices import ChoicesOfPersons
from plackett.segments.em import Climbed
from plackett.segments.rankings import RankingsOfPersons

LONGEST = 5  # leapfrog steps of a trajectory
DISPERSED = 2.0  # of the starts of coefficients, in standard deviations
SPREAD = 0.5  # of the starts of log-worths
WIDTH, STEPS = 1.0, 8  # of a slice of ln a, and how often it may be stepped out
Memory = tuple[Array, Array, Array]


class Mover(Protocol):
    """Advances the parameters of one chain."""

    def begin(self, rng: np.random.Generator) -> tuple[Array, Memory]:
        """Dispersed parameters (C, D), and what the chain remembers."""
        ...

    def move(self, parameters: Array, taken: Array, memory: Memory, rng: np.random.Generator, tuning: bool) -> None:
        """Draw parameters and memory anew in place, given numbers (N, C) of copies of persons in each segment."""
        ...

    def shape(self, memory: Memory) -> float:
        """The shape of the prior, where there is one."""
        ...

    def log_prior(self, parameters: Array, memory: Memory) -> float:
        """Logarithm of the prior density of parameters and shape, up to a constant."""
        ...


class ChoiceMover:
    """Hamiltonian trajectories of all free coefficients together."""

    def __init__(self, persons: ChoicesOfPersons, best: Climbed, tune: int):
        self.persons, self.layout, self.ends = persons, persons.layout(len(best.place.parameters)), hmc.windows(tune)
        self.centre = self.layout.flat(best.place.parameters)
        curvature = persons.curvature(best.place.parameters, best.member)[1]
        inverse = solved(curvature, np.eye(self.layout.size))
        self.root = np.asarray(np.linalg.cholesky((inverse + inverse.T) / 2))

    def begin(self, rng: np.random.Generator) -> tuple[Array, Memory]:
        """Normal about the maximum."""
        walk = hmc.begin(DISPERSED * rng.standard_normal(self.layout.size), 1.0)
        return self._wide(walk.position), (walk.position, walk.variance, walk.numbers)

    def _wide(self, z: Array) -> Array:
        return self.layout.wide(self.centre + self.root @ z)

    def move(self, parameters: Array, taken: Array, memory: Memory, rng: np.random.Generator, tuning: bool) -> None:
        """One trajectory."""
        persons, precision, C = self.persons, self.persons.precision, len(parameters)
        packed = [persons.weighted(taken[:, c]) for c in range(C)]

        def density(z: Array, gradient: Array) -> float:
            free = self.centre + self.root @ z
            slope, value = -precision * free, -0.5 * precision * float(free @ free)
            for c, beta in enumerate(self.layout.wide(free)):
                of_segment, of_columns = gradient_of(packed[c], beta)
                value, slope = value + of_segment, slope + self.layout.gathered(c, of_columns)
            gradient[:] = self.root.T @ slope
            return value

        drawn, value = np.empty((1, len(self.centre))), np.empty(1)
        hmc.walk_on(density, hmc.Walk(*memory), rng, self.ends, LONGEST, tuning, drawn, value)
        parameters[:] = self._wide(drawn[0])

    def shape(self, memory: Memory) -> float:
        """There is none."""
        return 1.0

    def log_prior(self, parameters: Array, memory: Memory) -> float:
        """Normal."""
        return self.persons.log_prior(parameters)


class WorthMover:
    """Conjugate draws of worths, λ_ck ~ Gam(a, 1) a priori, and slices of ln a.

    `prior` is that of the shape; None: the shape is known, and that of the persons.
    """

    def __init__(self, persons: RankingsOfPersons, best: Climbed, prior: ShapePrior | None):
        self.persons, self.best, self.prior = persons, best.place.parameters, prior

    def begin(self, rng: np.random.Generator) -> tuple[Array, Memory]:
        """About the maximum."""
        a = self.persons.shape
        if self.prior is not None:
            a = float(np.exp(rng.uniform(np.log(max(self.prior.lower, 0.3)), np.log(min(self.prior.upper, 3.0)))))
            a = float(np.clip(a, self.prior.lower, self.prior.upper))
        parameters = self.best + SPREAD * rng.standard_normal(self.best.shape)
        return self.persons.normalised(parameters), (np.array([np.log(a)]), np.empty(0), np.empty(0))

    def shape(self, memory: Memory) -> float:
        """a."""
        return float(np.exp(memory[0][0]))

    def move(self, parameters: Array, taken: Array, memory: Memory, rng: np.random.Generator, tuning: bool) -> None:
        """Times given worths, worths given times, and the shape given worths."""
        persons, a, K = self.persons, self.shape(memory), self.persons.n_items
        for c in range(len(parameters)):
            log_mass = log_gamma(rng, np.array(a * K))  # the scale, which the rankings do not know
            wins, exposure = self._drawn(parameters[c], taken[:, c], rng)
            with np.errstate(divide="ignore"):
                waited = np.log(exposure) - log_mass
            parameters[c] = log_gamma(rng, a + wins) - np.logaddexp(0.0, waited)
        parameters[:] = persons.normalised(parameters)
        if self.prior is not None:
            memory[0][0] = self._slice(float(memory[0][0]), parameters, rng)

    def _drawn(self, log_worths: Array, taken: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """Wins and exposure (K,) of one segment, at a scale of 1."""
        persons, top = self.persons, log_worths.max()
        counts = persons.outcomes.counts * np.repeat(taken, np.diff(persons.owned))
        outcomes, T = persons.outcomes._replace(counts=counts), len(counts)
        rates = np.exp(np.maximum(log_worths - top, FAINT))[persons.item]
        arrivals, at_risk, values = np.empty_like(rates), np.empty_like(rates), np.empty(T)
        key = rng.integers(1 << 63, dtype=np.uint64)
        persons.response.sample_block(outcomes, np.arange(T), 0, T, rates, key, arrivals, at_risk, values)
        there = np.repeat(counts > 0, np.diff(outcomes.start))
        summed = [np.bincount(persons.item[there], x[there], persons.n_items) for x in (arrivals, at_risk)]
        return np.asarray(summed[0], dtype=np.float64), np.asarray(summed[1] * np.exp(-top))

    def log_prior(self, parameters: Array, memory: Memory) -> float:
        """λ̄_c ~ Dirichlet(a), and the prior of a."""
        return self._log_prior_at(float(memory[0][0]), parameters)

    def _log_prior_at(self, log_shape: float, parameters: Array) -> float:
        (C, K), a = parameters.shape, np.exp(log_shape)
        value = float(C * (gammaln(K * a) - K * gammaln(a)) + (a - 1.0) * parameters.sum())
        if self.prior is None:
            return value
        if not self.prior.lower <= a <= self.prior.upper:
            return -np.inf
        return value + float(self.prior.log_density(np.asarray(a))) + log_shape

    def _slice(self, x: float, parameters: Array, rng: np.random.Generator) -> float:
        """A draw of ln a, stepping out and shrinking (Neal 2003)."""
        level = self._log_prior_at(x, parameters) - rng.standard_exponential()
        low = x - WIDTH * rng.random()
        high, first = low + WIDTH, int(rng.integers(STEPS))
        for _ in range(first):
            if self._log_prior_at(low, parameters) <= level:
                break
            low -= WIDTH
        for _ in range(STEPS - 1 - first):
            if self._log_prior_at(high, parameters) <= level:
                break
            high += WIDTH
        while True:
            new = low + (high - low) * rng.random()
            if self._log_prior_at(new, parameters) > level:
                return new
            low, high = (new, high) if new < x else (low, new)


def log_gamma(rng: np.random.Generator, shape: Array) -> Array:
    """Logarithms of Gam(shape, 1), also where these underflow."""
    small = np.log(rng.random(np.shape(shape))) / shape
    return np.asarray(np.log(rng.standard_gamma(shape + 1.0)) + small)


def start_shares(log_shares: Array, rng: np.random.Generator) -> Array:
    """Shares near those of the maximum."""
    moved = log_shares + SPREAD * rng.standard_normal(len(log_shares))
    return np.asarray(moved - logsumexp(moved))
