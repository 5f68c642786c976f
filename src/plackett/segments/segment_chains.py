"""Gibbs draws of segments: labels, shares, and parameters given labels; what a chain is, and one run of the driver.

Labels of segments mean nothing: chains are judged by predictions, and draws are brought to a common order afterwards.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from plackett.compute.pieces import cores
from plackett.inference.driver import Chain, Run, Source
from plackett.inference.gibbs import Gibbs
from plackett.inference.limits import Clock
from plackett.inference.store import Portion
from plackett.model.diagnostics import Diagnostics, Report, diagnose
from plackett.model.race import Array
from plackett.segments.chances import Chances
from plackett.segments.em import Climbed, memberships
from plackett.segments.movers import Memory, Mover, start_shares
from plackett.segments.persons import Codes, Persons

KEPT, NUMBERS = 400, 1 << 23  # draws with memberships of persons, and numbers of these, at the most
NEVER = -1e12  # agreement of a segment that ignores columns with one that does not


class SegmentState(NamedTuple):
    """Where a chain stands, and what its parameters' moves remember."""

    parameters: Array  # (C, D)
    log_shares: Array  # (C,)
    position: Array
    variance: Array
    numbers: Array

    @property
    def memory(self) -> Memory:
        """What the mover remembers."""
        return self.position, self.variance, self.numbers


class SegmentSampler:
    """Advances chains."""

    workers = cores()

    def __init__(self, persons: Persons, mover: Mover, best: Climbed, concentration: float):
        self.persons, self.mover, self.concentration = persons, mover, concentration
        self.reference, self.counts = best.member, persons.counts.astype(np.int64)

    def advance(
        self,
        chain: Chain,
        tuning: bool,
        parameters: Array,
        log_shares: Array,
        agreement: Array,
        shape: Array,
        value: Array,
    ) -> None:
        """Fill draws of parameters, shares and shape, their agreement with the reference, and log-posteriors."""
        state: SegmentState = chain.state
        member, _ = memberships(self.persons.values(state.parameters), state.log_shares)
        for t in range(len(value)):
            taken = self._labels(member, chain.rng)
            drawn = np.log(chain.rng.dirichlet(self.concentration + taken.sum(axis=0)))
            state.log_shares[:] = np.maximum(drawn, -700.0)
            self.mover.move(state.parameters, taken, state.memory, chain.rng, tuning)
            member, total = memberships(self.persons.values(state.parameters), state.log_shares)
            parameters[t], log_shares[t] = state.parameters, state.log_shares
            agreement[t] = self.reference.T @ (member * self.counts[:, None])
            shape[t] = self.mover.shape(state.memory)
            prior = self.mover.log_prior(state.parameters, state.memory)
            prior += (self.concentration - 1.0) * float(state.log_shares.sum())
            value[t] = float(self.counts @ total) + prior

    def _labels(self, member: Array, rng: np.random.Generator) -> Array:
        """How many of each person's copies belong to each segment, (N, C)."""
        if (self.counts == 1).all():
            below = np.cumsum(member, axis=1)[:, :-1] < rng.random((len(member), 1))
            return np.asarray(below.sum(axis=1)[:, None] == np.arange(member.shape[1]), dtype=np.float64)
        return rng.multinomial(self.counts, member / member.sum(axis=1, keepdims=True)).astype(np.float64)

    def adapt(self, chains: list[Chain], states: Portion, done: float) -> None:
        """Each chain adapts its moves by itself."""


class SegmentRun(Run):
    """One run of chains over segments."""

    def __init__(
        self,
        settings: Gibbs,
        source: Source,
        sampler: SegmentSampler,
        best: Climbed,
        chances: Chances,
        identity: tuple[object, ...],
        open_ended: bool,
    ):
        self.chances, (C, D) = chances, best.place.parameters.shape
        chains = []
        for seed in source.seed.spawn(settings.chains):
            rng = np.random.default_rng(seed)
            parameters, memory = sampler.mover.begin(rng)
            chains.append(Chain(SegmentState(parameters, start_shares(best.place.log_shares, rng), *memory), rng))
        shapes = {"parameters": (C, D), "log_shares": (C,), "agreement": (C, C), "shape": (), "value": ()}
        identity = (*identity, sampler.concentration)
        super().__init__(settings, source, sampler, chains, shapes, identity, Clock(settings.max_seconds), open_ended)

    def probe(self, draws: Portion) -> Array:
        """Probabilities that do not depend on labels, (chain, draw, observation, …)."""
        C, D = draws["parameters"].shape[2:]
        found = self.chances(draws["parameters"].reshape(-1, C, D), np.exp(draws["log_shares"].reshape(-1, C)))
        return found.reshape(*draws["value"].shape, *found.shape[1:])

    def measure(self, report: Report | None) -> Diagnostics | None:
        """R-hat and ESS of predictions alone: segments have no identity across chains."""
        return diagnose(report, probability=self.probe(self.draws()))


def in_common_order(draws: Portion, last_apart: bool) -> tuple[Array, Array, Codes]:
    """Parameters and shares with segments in a common order, and which segment of the reference is which.

    Segments of each draw are matched with those of the reference by the persons that they have in common (equivalence
    classes representatives, Papastamoulis & Iliopoulos 2010), and then ordered by their mean shares, the largest first.
    `last_apart`: the last segment of every draw ignores some columns, and is matched with itself.
    """
    agreement, (chains, n, C) = draws["agreement"].copy(), draws["log_shares"].shape
    if last_apart:
        agreement[..., -1, :-1] = agreement[..., :-1, -1] = NEVER
    which = np.empty((chains, n, C), dtype=np.intp)
    for place in np.ndindex(chains, n):
        which[place] = linear_sum_assignment(agreement[place], maximize=True)[1]
    shares = np.take_along_axis(np.exp(draws["log_shares"]), which, axis=2)
    order = np.argsort(-shares.mean(axis=(0, 1)), kind="stable")
    which = which[..., order]
    return np.take_along_axis(draws["parameters"], which[..., None], axis=2), shares[..., order], order


def kept_memberships(persons: Persons, parameters: Array, shares: Array) -> tuple[Array, int]:
    """Membership probabilities (chain, kept, N, C) under every so many draws, and how many."""
    (chains, n, C), N = shares.shape, len(persons.counts)
    most = int(np.clip(NUMBERS // max(N * C, 1), 2 * chains, KEPT)) // chains
    every = -(-n // most)
    found = np.array(
        [
            [memberships(persons.values(parameters[c, t]), np.log(shares[c, t]))[0] for t in range(0, n, every)]
            for c in range(chains)
        ]
    )
    return found.astype(np.float32), every
