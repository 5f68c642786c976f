"""Chains and what advances them: the paper's sweeps, or sweeps and moves. Nothing here decides when to stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import logsumexp

from plackett.engines.numba import PanelRows, cores
from plackett.inference.base import Problem
from plackett.inference.driver import Chain
from plackett.inference.moves.chain import make_chain
from plackett.inference.moves.memory import learn, nothing
from plackett.inference.moves.rows import lay_out
from plackett.inference.moves.schedule import NAMES, adapted_plan, first_plan, iterations
from plackett.inference.store import Portion
from plackett.inference.sweeps import State, Target, make_room, sweeps, sweeps_of_any_engine, sweeps_together
from plackett.model.race import Array
from plackett.model.weights import Gam, WeightPrior

LARGE = 1 << 22  # entries of W from which the cores share the rows of one chain instead of the chains
CANDIDATES, TEMPER = 50, 0.1  # of a start: prior draws, and the power of the likelihood
PROBED = 2000  # rows that it sees


Begin = Callable[[np.random.Generator], State]


@dataclass
class WeightChain(Chain):
    """With what its moves have done in tuning."""

    runs: Array = field(default_factory=lambda: np.zeros(len(NAMES)))
    gains: Array = field(default_factory=lambda: np.zeros(len(NAMES)))

    def arrays(self) -> dict[str, Array]:
        """State and tallies."""
        return super().arrays() | {"runs": self.runs, "gains": self.gains}


def begin(problem: Problem, shape: float | None, lower: float, upper: float, rng: np.random.Generator) -> State:
    """A dispersed state: one of fifty prior draws, chosen by a tenth power of its likelihood."""
    K = problem.rows.n_classes
    n = len(problem.codes)
    some = rng.choice(n, PROBED, replace=False) if n > PROBED else np.arange(n)
    W, codes = problem.features[some], problem.codes[some]
    weight = np.ones(len(some)) if problem.sample_weight is None else problem.sample_weight[some]
    weight = weight * min(1.0, PROBED / weight.sum())
    found = []
    for _ in range(CANDIDATES):
        a = float(np.exp(rng.uniform(np.log(max(lower, 0.01)), np.log(min(upper, 1.0))))) if shape is None else shape
        prior: WeightPrior = Gam(float(np.clip(a, lower, upper))) if problem.tailed is None else problem.tailed
        log_weights = prior.draw(rng, (K, W.shape[1]))
        log_mass = logsumexp(log_weights)
        log_weights -= log_mass
        scores = W @ np.exp(log_weights).T
        own = scores[np.arange(len(codes)), codes] / scores.sum(axis=1)
        mass = 0.0 if prior.scale_free else float(log_mass)
        found.append((a, mass, log_weights, float((weight * np.log(np.maximum(own, 1e-300))).sum())))
    power = TEMPER * np.array([f[-1] for f in found])
    a, mass, log_weights, _ = found[rng.choice(CANDIDATES, p=np.exp(power - logsumexp(power)))]
    return State(np.ascontiguousarray(log_weights), np.array([mass, a, 0.0, 0.0]))


def start(
    problem: Problem, seed: np.random.SeedSequence, shape: float | None, lower: float, upper: float
) -> WeightChain:
    """A chain at a dispersed state."""
    rng = np.random.default_rng(seed)
    return WeightChain(begin(problem, shape, lower, upper, rng), rng)


class PaperSampler:
    """Equations (11) to (13), Metropolis–Hastings on a, and Λ redrawn; under a GIG weights and Λ are drawn from it."""

    def __init__(self, problem: Problem, target: Target):
        self.rows, self.target = problem.rows, target
        small = isinstance(self.rows, PanelRows) and self.rows.panels.values.size < LARGE
        self.panels: Any = self.rows.panels if small else None  # type: ignore[attr-defined]
        self.workers = cores() if small else 1

    def advance(self, chain: WeightChain, tuning: bool, log_weights: Array, shape: Array, value: Array) -> None:
        """Compiled throughout, or around the pass of any engine."""
        if self.panels is None:
            sweeps_of_any_engine(self.rows, chain.state, chain.rng, self.target, tuning, log_weights, shape, value)
        else:
            room = make_room(self.panels, self.rows.n_classes)
            sweeps(self.panels, chain.state, chain.rng, self.target, room, tuning, log_weights, shape, value)

    def adapt(self, chains: list[WeightChain], states: Portion, done: float) -> None:
        """The step of a is part of each chain's state."""


class SweepsTogether(PaperSampler):
    """The same sweeps of all chains side by side, where a reading of the rows serves several."""

    rows: Any

    def advance_together(
        self, chains: list[WeightChain], tuning: bool, log_weights: Array, shape: Array, value: Array
    ) -> None:
        """Fill the arrays (chain, draw, …)."""
        states, generators = [chain.state for chain in chains], [chain.rng for chain in chains]
        sweeps_together(self.rows, states, generators, self.target, tuning, log_weights, shape, value)


def paper_sampler(problem: Problem, target: Target) -> PaperSampler:
    """For the rows of any engine."""
    together = hasattr(problem.rows, "sample_together")
    return SweepsTogether(problem, target) if together else PaperSampler(problem, target)


class ExchangeSampler:
    """Sweeps and exact moves (`plackett.inference.moves`)."""

    def __init__(self, problem: Problem, target: Target, budget: float, begin: Begin | None = None):
        assert isinstance(problem.rows, PanelRows)
        K = problem.rows.n_classes
        self.panels = problem.rows.panels
        self.columns = lay_out(problem.features, problem.codes, K, problem.mirrors, problem.sample_weight)
        self.target, self.budget, self.n_classes, self.begin = target, budget, K, begin
        self.plan = first_plan(self.columns, K)
        self.laws = nothing(problem.features.shape[1])
        self.workers = cores()

    def advance(self, chain: WeightChain, tuning: bool, log_weights: Array, shape: Array, value: Array) -> None:
        """The caches are scratch: a chain is its state and its random numbers."""
        theta, numbers = chain.state
        cached = make_chain(theta, numbers, self.columns)
        room = make_room(self.panels, self.n_classes)
        iterations(self.panels, self.columns, cached, chain.rng, self.target, self.plan, self.laws,
            room, chain.runs, chain.gains, tuning, log_weights, shape, value,
        )  # fmt: skip

    def adapt(self, chains: list[WeightChain], states: Portion, done: float) -> None:
        """In the first half, begin again, so that more modes are found than a chain would find.

        Then laws for the leaps from these states, and one plan for all chains from what their moves did.
        """
        if done < 0.5:
            if self.begin is not None:
                for chain in chains:
                    for array, new in zip(chain.state, self.begin(chain.rng), strict=True):
                        array[...] = new
            return
        later = states["shape"].shape[1] // (2 if done == 1.0 else 4)
        log_weights, shapes = states["log_weights"][:, later:], states["shape"][:, later:]
        self.laws = learn(self.panels, log_weights, shapes, self.columns.mirror, self.target.learn)
        runs, gains = np.sum([c.runs for c in chains], axis=0), np.sum([c.gains for c in chains], axis=0)
        self.plan = adapted_plan(self.columns, self.n_classes, self.laws, runs, gains, self.budget)
