"""Hamiltonian chains over linear utilities, in coordinates in which the posterior is nearly standard normal.

A position is x = centre + L z, where L Lᵀ is the inverse of the curvature of the log-posterior at its mode; chains walk
in z. Knows neither likelihood nor prior.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plackett.compute.pieces import cores
from plackett.inference import hmc
from plackett.inference.driver import Chain, Run, Source
from plackett.inference.gibbs import Gibbs
from plackett.inference.limits import Clock
from plackett.inference.store import Portion
from plackett.model.diagnostics import READ_ESS, READ_RHAT
from plackett.model.race import Array

DISPERSED = 2.0  # of the starts, in standard deviations of the posterior


class WhitenedWalker:
    """Advance chains (z, and its adaptation) and return positions x.

    Parameters
    ----------
    centre : (D,) array
        x at z = 0.
    root : (D, D) array
        L.
    tune : int
        Iterations of tuning.
    longest : int
        Most leapfrog steps of a trajectory.
    """

    workers = cores()

    def __init__(self, centre: Array, root: Array, tune: int, longest: int):
        self.centre, self.root, self.ends, self.longest = centre, root, hmc.windows(tune), longest

    def density(self, z: Array, gradient: Array) -> float:
        """Return the log-posterior at z; write its gradient in z."""
        raise NotImplementedError

    def place(self, z: Array) -> Array:
        """Return the position in its stored form."""
        return self.centre + self.root @ z

    def advance(self, chain: Chain, tuning: bool, position: Array, value: Array) -> None:
        """Fill `position` (n, D) with positions, and `value` (n,) with log-densities."""
        drawn = np.empty_like(position)
        hmc.walk_on(self.density, chain.state, chain.rng, self.ends, self.longest, tuning, drawn, value)
        for t, z in enumerate(drawn):  # a product of matrices rounds by how many draws a round has
            position[t] = self.place(z)

    def adapt(self, chains: list[Any], states: Portion, done: float) -> None:
        """Do nothing: each chain adapts its own step and mass."""


class WhitenedRun(Run):
    """Run of the chains; without a given length it continues until coefficients can be interpreted."""

    def __init__(
        self, settings: Gibbs, walker: WhitenedWalker, identity: tuple[Any, ...], source: Source, open_ended: bool
    ):
        D = len(walker.centre)
        generators = [np.random.default_rng(seed) for seed in source.seed.spawn(settings.chains)]
        chains = [Chain(hmc.begin(DISPERSED * rng.standard_normal(D), 1.0), rng) for rng in generators]
        shapes, clock = {"position": (D,), "value": ()}, Clock(settings.max_seconds)
        identity = (*identity, walker.longest)
        super().__init__(settings, source, walker, chains, shapes, identity, clock, open_ended)

    def enough(self) -> bool:
        """True if every effective sample size has reached the target, or 400, and the chains agree."""
        found, target = self.diagnose(), self.settings.target_ess or READ_ESS
        return found is not None and bool(found.smallest_ess >= target and found.worst_rhat <= READ_RHAT)
