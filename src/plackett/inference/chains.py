"""Chains and what advances them: the paper's sweeps, or sweeps and moves. Nothing here decides when to stop."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import logsumexp

from plackett.compute.pieces import cores
from plackett.engines.numba import CompiledSituations, PanelRows
from plackett.inference.base import Problem
from plackett.inference.driver import Chain
from plackett.inference.moves.chain import make_chain
from plackett.inference.moves.memory import Laws, learn, nothing
from plackett.inference.moves.rows import lay_out
from plackett.inference.moves.schedule import NAMES, adapted_plan, first_plan, iterations
from plackett.inference.store import Portion
from plackett.inference.sweeps import State, Target, make_room, sweeps, sweeps_of_any_engine, sweeps_together
from plackett.model.race import Array
from plackett.model.weights import Gam, WeightPrior

LARGE = 1 << 22  # entries of W from which the cores share the rows of one chain instead of the chains
CANDIDATES, TEMPER = 50, 0.1  # of a start: prior draws, and the power of the likelihood


Begin = Callable[[np.random.Generator], State]


@dataclass
class WeightChain(Chain):
    """With what its moves have done in tuning."""

    runs: Array = field(default_factory=lambda: np.zeros(len(NAMES)))
    gains: Array = field(default_factory=lambda: np.zeros(len(NAMES)))
    values: Array | None = None  # of the parameters of the response, if it has any

    def arrays(self) -> dict[str, Array]:
        """State, tallies and parameters."""
        values = {} if self.values is None else {"parameters": self.values}
        return super().arrays() | {"runs": self.runs, "gains": self.gains} | values


def begin(problem: Problem, shape: float | None, lower: float, upper: float, rng: np.random.Generator) -> State:
    """A dispersed state: one of fifty prior draws, chosen by a tenth power of its likelihood."""
    rows, log_likelihood, found = problem.rows, problem.rows.trial(rng), []
    for _ in range(CANDIDATES):
        a = float(np.exp(rng.uniform(np.log(max(lower, 0.01)), np.log(min(upper, 1.0))))) if shape is None else shape
        prior: WeightPrior = Gam(float(np.clip(a, lower, upper))) if problem.tailed is None else problem.tailed
        log_weights = prior.draw(rng, (rows.n_groups, rows.n_features))
        log_mass = float(logsumexp(log_weights))
        log_weights -= log_mass
        if prior.scale_free:
            log_mass = log_mass - float(np.log(problem.rate)) if rows.absolute else 0.0
        found.append((a, log_mass, log_weights, log_likelihood(log_weights, log_mass)))
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
    """Equations (11) to (13), Metropolis–Hastings on a, and Λ redrawn; under a GIG weights and Λ are drawn from it.

    Where the rows know the scale, Λ is that of the weights drawn.
    """

    def __init__(self, problem: Problem, target: Target):
        self.rows, self.target, self.shape_steps = problem.rows, target, problem.shape_steps
        small = isinstance(self.rows, PanelRows) and self.rows.panels.values.size < LARGE
        self.panels: Any = self.rows.panels if small else None  # type: ignore[attr-defined]
        self.workers = cores() if small or problem.side_by_side else 1

    def advance(
        self, chain: WeightChain, tuning: bool, log_weights: Array, shape: Array, value: Array, **more: Array
    ) -> None:
        """Compiled throughout, or around the pass of any engine."""
        if self.panels is None:
            draws = {"log_weights": log_weights, "shape": shape, "value": value, **more}
            how = self.target, tuning, draws, self.shape_steps, chain.values
            sweeps_of_any_engine(self.rows, chain.state, chain.rng, *how)
        else:
            room = make_room(self.panels, self.rows.n_groups)
            sweeps(self.panels, chain.state, chain.rng, self.target, room, tuning, log_weights, shape, value)

    def adapt(self, chains: list[WeightChain], states: Portion, done: float) -> None:
        """The step of a is part of each chain's state."""


class SweepsTogether(PaperSampler):
    """The same sweeps of all chains side by side, where a reading of the rows serves several."""

    rows: Any

    def advance_together(self, chains: list[WeightChain], tuning: bool, **draws: Array) -> None:
        """Fill the arrays (chain, draw, …)."""
        states, generators = [chain.state for chain in chains], [chain.rng for chain in chains]
        sweeps_together(self.rows, states, generators, self.target, tuning, draws)


def paper_sampler(problem: Problem, target: Target) -> PaperSampler:
    """For the rows of any engine."""
    together = hasattr(problem.rows, "sample_together")
    return SweepsTogether(problem, target) if together else PaperSampler(problem, target)


class ExchangeSampler:
    """Sweeps and exact moves over rows of classes (`plackett.inference.moves`)."""

    def __init__(self, rows: PanelRows, problem: Problem, target: Target, budget: float, begin: Begin | None = None):
        K = rows.n_groups
        self.panels = rows.panels
        self.columns = lay_out(rows.features, rows.codes, K, problem.mirrors, rows.counts)
        self.target, self.budget, self.n_groups, self.begin = target, budget, K, begin
        self.plan = first_plan(self.columns, K)
        self.laws = nothing(rows.n_features)
        self.workers = cores()

    def advance(self, chain: WeightChain, tuning: bool, log_weights: Array, shape: Array, value: Array) -> None:
        """The caches are scratch: a chain is its state and its random numbers."""
        theta, numbers = chain.state
        cached = make_chain(theta, numbers, self.columns)
        room = make_room(self.panels, self.n_groups)
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
        self.laws = self.learned(log_weights, shapes)
        self.plan = self.planned(np.sum([c.runs for c in chains], axis=0), np.sum([c.gains for c in chains], axis=0))

    def learned(self, log_weights: Array, shapes: Array) -> Laws:
        """Laws for the leaps."""
        return learn(self.panels, log_weights, shapes, self.columns.mirror, self.target.learn)

    def planned(self, runs: Array, gains: Array) -> Array:
        """A plan from what the moves did."""
        return adapted_plan(self.columns, self.n_groups, self.laws, runs, gains, self.budget)


def has_moves(problem: Problem) -> bool:
    """Whether there are moves over such rows under such a prior."""
    return problem.prior(1.0).scale_free and problem.rows.moves() is not None


def exchange_sampler(problem: Problem, target: Target, budget: float, begin: Begin | None) -> ExchangeSampler:
    """Sweeps and moves for rows that have them."""
    rows = problem.rows.moves()
    if isinstance(rows, PanelRows):
        return ExchangeSampler(rows, problem, target, budget, begin)
    from plackett.inference.situation_moves.sampler import SituationExchange  # kernels, compiled where they are used

    assert isinstance(rows, CompiledSituations)
    return SituationExchange(rows, problem, target, budget, begin)
