"""Gibbs draws of tiers: a pass, the partition and the worths of its tiers given that pass, then a, α and parameters.

The likelihood does not depend on the scale of the worths, so that after each pass a and Λ are drawn as for separate
worths (section 3.5 of the paper), with one weight for each tier.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from plackett.compute.memory import check_draws_fit
from plackett.compute.pieces import cores
from plackett.engines.base import Rows
from plackett.inference.base import Fit, Problem
from plackett.inference.chains import begin
from plackett.inference.driver import Chain, Run
from plackett.inference.gibbs import Gibbs
from plackett.inference.limits import Clock
from plackett.inference.parameters import dispersed, draw_parameters
from plackett.inference.store import Portion
from plackett.inference.sweeps import LOG_MASS, SHAPE, State, Target, redraw_shape
from plackett.model.diagnostics import Diagnostics, Report, diagnose_tiers, probed_probabilities
from plackett.model.race import Array, Weights
from plackett.posterior.tiered_worths import TieredDraws
from plackett.priors import as_prior, tabulate
from plackett.tiers.partition import Given, Labels, draw_worths, move, sums_for
from plackett.tiers.tiers import Tiers

PASSES = 2  # passes of an iteration, after which parameters of the response are drawn once
SCANS, ATTEMPTS = 1, 10  # scans of the items, and splits or merges, after each pass


class TierState(NamedTuple):
    """State of a chain: tiers of items from 0, ln λ̄ of items, numbers as in `sweeps.State`, α, and parameters φ.

    The worths of the tiers, not of the items, sum to 1.
    """

    tier: Labels  # (K,)
    log_worths: Array  # (K,)
    numbers: Array
    concentration: Array  # (1,)
    values: Array  # (P,)


class TierSampler:
    """Advances chains."""

    def __init__(self, rows: Rows, target: Target, tiers: Tiers, shape_steps: int, workers: int):
        self.rows, self.target, self.tiers, self.shape_steps = rows, target, tiers, shape_steps
        self.workers = workers

    def advance(
        self,
        chain: Chain,
        tuning: bool,
        log_weights: Array,
        shape: Array,
        concentration: Array,
        value: Array,
        parameters: Array | None = None,
    ) -> None:
        """Record the state and iterate, until the arrays are full."""
        state: TierState = chain.state
        for t in range(len(value)):
            log_weights[t, :, 0] = state.log_worths - logsumexp(state.log_worths)
            shape[t], concentration[t] = state.numbers[SHAPE], state.concentration[0]
            if parameters is not None:
                parameters[t] = state.values
            rows = self.rows.at(state.values)
            value[t] = self._sweep(chain, rows, tuning)
            for _ in range(1, PASSES):
                self._sweep(chain, rows, tuning)
            if parameters is not None:
                draw_parameters(chain.rng, rows, Weights.point(state.log_worths[:, None].copy()), state.values)

    def _sweep(self, chain: Chain, rows: Rows, tuning: bool) -> float:
        """Draw tiers and their worths given a pass, then a and α; return the log-likelihood before."""
        state, rng = chain.state, chain.rng
        K = len(state.tier)
        sums, items = sums_for(K), np.empty(K, dtype=np.int64)
        stats = rows.sample(Weights.point(state.log_worths[:, None].copy()), int(rng.integers(0, 1 << 62)))
        log_rate = float(np.log(self.target.rate) + state.numbers[LOG_MASS])
        held = np.ascontiguousarray(stats.wins[:, 0]), np.ascontiguousarray(stats.exposure[:, 0])
        given = Given(*held, float(state.numbers[SHAPE]), log_rate, float(state.concentration[0]))
        move(rng, state.tier, given, sums, items, SCANS, ATTEMPTS)
        H = draw_worths(rng, state.tier, given, sums, sums.scratch)
        of_tiers = sums.scratch[:H] - logsumexp(sums.scratch[:H])
        state.log_worths[:] = of_tiers[state.tier]
        self._draw_prior(chain, of_tiers, tuning)
        return stats.value

    def _draw_prior(self, chain: Chain, of_tiers: Array, tuning: bool) -> None:
        """Draw a and Λ given the worths of the tiers, and α given their number."""
        state: TierState = chain.state
        steps = self.shape_steps if self.target.learn else 0
        redraw_shape(chain.rng, State(of_tiers[:, None].copy(), state.numbers), self.target, tuning, steps)
        if self.tiers.concentration == "learn":
            a, b = self.tiers.prior
            known = float(state.concentration[0])
            state.concentration[0] = draw_concentration(chain.rng, known, len(of_tiers), len(state.tier), a, b)

    def adapt(self, chains: list[Chain], states: Portion, done: float) -> None:
        """Do nothing: the step of a is part of each chain's state."""


def draw_concentration(rng: np.random.Generator, known: float, H: int, K: int, shape: float, rate: float) -> float:
    """Draw α given H tiers of K items, with the prior Gam(shape, rate) (Escobar & West 1995)."""
    left = rate - np.log(rng.beta(known + 1.0, K))
    odds = (shape + H - 1.0) / (K * left)
    order = shape + H - (rng.random() * (1.0 + odds) >= odds)
    return max(float(rng.gamma(order)) / float(left), float(np.finfo(float).tiny))


class TierRun(Run):
    """Run of the sampler of tiers; shape None samples a."""

    def __init__(self, settings: Gibbs, tiers: Tiers, problem: Problem, shape: float | None):
        rows = problem.rows
        size, P = (rows.n_groups, 1), len(rows.parameters)
        asked = f"Gibbs(draws={settings.draws}, chains={settings.chains})"
        check_draws_fit(settings.chains * settings.draws, size, f"Ask for fewer than {asked}.")
        self.problem, self.learned, self.tiers = problem, shape is None, tiers
        prior = as_prior(settings.shape_prior)
        table = tabulate(prior)
        target = Target(float(problem.rate), self.learned, *table)
        begin_one = partial(begin, problem, shape, prior.lower, prior.upper)
        chains = []
        for c, seed in enumerate(problem.seed.spawn(settings.chains)):
            rng = np.random.default_rng(seed)
            start = begin_one(rng)
            chains.append(Chain(dispersed_tiers(start, tiers, rows, alone=c % 2 == 0, rng=rng), rng))
        shapes: dict[str, tuple[int, ...]] = {"log_weights": size, "shape": (), "concentration": (), "value": ()}
        if P:
            shapes["parameters"] = (P,)
        of_tiers = "tiers", tiers.concentration, *map(float, tiers.prior)
        identity = (*rows.identity(None), problem.rate, shape, *table, *of_tiers)
        runner = TierSampler(rows, target, tiers, problem.shape_steps, cores() if problem.side_by_side else 1)
        goes_on = settings.target_ess is not None
        super().__init__(
            settings, problem, runner, chains, shapes, identity, Clock(settings.max_seconds), open_ended=goes_on
        )

    def probe(self, draws: Portion) -> Array:
        """Return the probabilities of the items to be first."""
        return probed_probabilities(as_posterior(draws), self.problem.rows.features)

    def measure(self, report: Report | None) -> Diagnostics | None:
        """Diagnose worths, numbers of tiers, α, shape and probabilities of the draws so far."""
        draws = self.draws()
        fixed = self.tiers.concentration != "learn"
        return diagnose_tiers(as_posterior(draws), self.learned, not fixed, self.probe(draws), report)


def dispersed_tiers(start: State, tiers: Tiers, rows: Rows, alone: bool, rng: np.random.Generator) -> TierState:
    """Return a starting state: every item alone at a dispersed worth, or all items in one tier."""
    K = len(start.log_weights)
    tier = np.arange(K) if alone else np.zeros(K, dtype=np.int64)
    logs = start.log_weights[:, 0].copy() if alone else np.zeros(K)
    learn = tiers.concentration == "learn"
    a, b = tiers.prior
    concentration = max(rng.gamma(a) / b, 1e-6) if learn else float(tiers.concentration)
    values = dispersed(rows.parameters, rng) if rows.parameters else np.empty(0)
    return TierState(tier.astype(np.int64), logs, start.numbers, np.array([concentration]), values)


def as_posterior(draws: Portion) -> TieredDraws:
    """Build the posterior from arrays by name."""
    held = draws["log_weights"], draws["shape"], None, draws.get("parameters")
    return TieredDraws(*held, concentration=draws["concentration"])


def draw_tiers(settings: Gibbs, tiers: Tiers, problem: Problem, shape: float | None) -> Fit:
    """Run the chains."""
    run = TierRun(settings, tiers, problem, shape)
    draws = run.run(stacklevel=4)
    return Fit(
        as_posterior(draws),
        shape=float(np.exp(np.log(draws["shape"]).mean())) if shape is None else shape,
        trace=draws["value"],
        n_iter=run.settings.tune + run.store.iterations,
        extra={"diagnostics_": run.diagnose(), "inference_": run.settings},
    )
