"""Chains of weights and their dispersed starting points. The module neither advances nor stops chains."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from scipy.special import logsumexp

from plackett.inference.base import Problem
from plackett.inference.driver import Chain
from plackett.inference.moves.schedule import NAMES
from plackett.inference.sweeps import State
from plackett.model.race import Array
from plackett.model.weights import Gam, WeightPrior

CANDIDATES, TEMPER = 50, 0.1  # for a starting point: prior draws, and the power of the likelihood


Begin = Callable[[np.random.Generator], State]


@dataclass
class WeightChain(Chain):
    """Chain of weights, with statistics of its moves during tuning."""

    runs: Array = field(default_factory=lambda: np.zeros(len(NAMES)))
    gains: Array = field(default_factory=lambda: np.zeros(len(NAMES)))
    values: Array | None = None  # parameters of the response, if any

    def arrays(self) -> dict[str, Array]:
        """State, move statistics and parameters."""
        values = {} if self.values is None else {"parameters": self.values}
        return super().arrays() | {"runs": self.runs, "gains": self.gains} | values


def begin(problem: Problem, shape: float | None, lower: float, upper: float, rng: np.random.Generator) -> State:
    """Draw a dispersed starting state: one of fifty prior draws, chosen with a tenth power of its likelihood."""
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
