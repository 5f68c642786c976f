"""The paper's sampler of weights: plain sweeps, fully compiled or around the pass of any engine."""

from __future__ import annotations

from typing import Any

import numpy as np

from plackett.compute.pieces import cores
from plackett.engines.numba import PanelRows
from plackett.inference import known_scale
from plackett.inference.base import Problem
from plackett.inference.chains import WeightChain
from plackett.inference.parameters import draw_parameters
from plackett.inference.store import Portion
from plackett.inference.sweeps import LOG_MASS, SHAPE, State, Target, make_room, redraw_shape, sweeps, update
from plackett.model.race import Array, Weights

LARGE = 1 << 22  # entries of W from which threads share the rows of one chain instead of the chains


def sweeps_of_any_engine(
    rows: Any,
    state: State,
    rng: np.random.Generator,
    target: Target,
    adapt: bool,
    draws: dict[str, Array],
    shape_steps: int = 1,
    values: Array | None = None,
) -> None:
    """Run sweeps around the pass of any engine, which may use all cores for the rows; a may take more steps.

    `values` are the parameters of the response, if any; they are drawn after the weights.
    """
    after, again = (known_scale.update, known_scale.redraw_shape) if rows.absolute else (update, redraw_shape)
    for t in range(len(draws["shape"])):
        key = int(rng.integers(0, 1 << 62))
        log_mass = state.numbers[LOG_MASS]
        draws["log_weights"][t], draws["shape"][t] = state.log_weights, state.numbers[SHAPE]
        if rows.absolute:
            draws["log_mass"][t] = log_mass
        log_weights = state.log_weights + log_mass if rows.absolute else state.log_weights
        if values is not None:
            draws["parameters"][t] = values
        stats = (rows if values is None else rows.at(values)).sample(Weights.point(log_weights), key)
        draws["value"][t] = stats.value
        after(rng, state, stats.wins, np.ascontiguousarray(stats.exposure), target, adapt)
        if target.learn and shape_steps > 1:
            again(rng, state, target, adapt, shape_steps - 1)
        if values is not None:
            draw_parameters(rng, rows, Weights.point(state.log_weights + state.numbers[LOG_MASS]), values)


def sweeps_together(
    rows: Any,
    states: list[State],
    generators: list[np.random.Generator],
    target: Target,
    adapt: bool,
    draws: dict[str, Array],
) -> None:
    """Run sweeps of several chains around one pass; each chain's draws are those it would make alone."""
    for t in range(draws["shape"].shape[1]):
        keys = [int(rng.integers(0, 1 << 62)) for rng in generators]
        found = rows.sample_together([Weights.point(state.log_weights) for state in states], keys)
        for c, (state, rng, stats) in enumerate(zip(states, generators, found, strict=True)):
            draws["log_weights"][c, t], draws["shape"][c, t] = state.log_weights, state.numbers[SHAPE]
            draws["value"][c, t] = stats.value
            update(rng, state, stats.wins, np.ascontiguousarray(stats.exposure), target, adapt)


class PaperSampler:
    """Equations (11) to (13), Metropolis–Hastings on a, and Λ redrawn; under a GIG prior weights and Λ are GIG draws.

    If the response identifies the scale, Λ is the sum of the drawn weights.
    """

    def __init__(self, problem: Problem, target: Target):
        self.rows, self.target, self.shape_steps = problem.rows, target, problem.shape_steps
        small = isinstance(self.rows, PanelRows) and self.rows.panels.values.size < LARGE
        self.panels: Any = self.rows.panels if small else None  # type: ignore[attr-defined]
        self.workers = cores() if small or problem.side_by_side else 1

    def advance(
        self, chain: WeightChain, tuning: bool, log_weights: Array, shape: Array, value: Array, **more: Array
    ) -> None:
        """Advance a chain, fully compiled or around the pass of any engine."""
        if self.panels is None:
            draws = {"log_weights": log_weights, "shape": shape, "value": value, **more}
            how = self.target, tuning, draws, self.shape_steps, chain.values
            sweeps_of_any_engine(self.rows, chain.state, chain.rng, *how)
        else:
            room = make_room(self.panels, self.rows.n_groups)
            sweeps(self.panels, chain.state, chain.rng, self.target, room, tuning, log_weights, shape, value)

    def adapt(self, chains: list[WeightChain], states: Portion, done: float) -> None:
        """Do nothing: the step of a is part of each chain's state."""


class SweepsTogether(PaperSampler):
    """Sweeps of all chains in step, when one pass over the rows serves several."""

    rows: Any

    def advance_together(self, chains: list[WeightChain], tuning: bool, **draws: Array) -> None:
        """Fill the arrays (chain, draw, …)."""
        states, generators = [chain.state for chain in chains], [chain.rng for chain in chains]
        sweeps_together(self.rows, states, generators, self.target, tuning, draws)


def paper_sampler(problem: Problem, target: Target) -> PaperSampler:
    """Return the sampler for the rows of any engine."""
    together = hasattr(problem.rows, "sample_together")
    return SweepsTogether(problem, target) if together else PaperSampler(problem, target)
