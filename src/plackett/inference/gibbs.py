"""Posterior draws of the weights: settings, and the parts of a run of this sampler."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator

from plackett.capabilities import Ignored
from plackett.compute.memory import check_draws_fit
from plackett.engines.numba import CompiledSituations, PanelRows
from plackett.inference.base import Fit, Problem, check_run, check_tolerance, open_ended
from plackett.inference.chains import Begin, WeightChain, begin
from plackett.inference.driver import Run, Runner
from plackett.inference.limits import Clock
from plackett.inference.moves.exchange import ExchangeSampler
from plackett.inference.paper_sampler import paper_sampler
from plackett.inference.parameters import dispersed
from plackett.inference.situation_moves.sampler import SituationExchange
from plackett.inference.store import Portion, room_for
from plackett.inference.sweeps import Target
from plackett.inference.worth_walk import SAMPLER, WorthWalk
from plackett.model.diagnostics import Diagnostics, Report, diagnose_weights, probed_probabilities
from plackett.model.mixture import POOLED
from plackett.model.race import Array
from plackett.posterior.weights import Draws
from plackett.priors import as_prior, tabulate

MOVES = ("auto", "exchange", "walk", "none")
USUAL = {"draws": 1000, "tune": 2000, "max_draws": 10_000}  # defaults with fixed features
WALK = {"draws": 500, "tune": 150, "max_draws": 10_000}  # of a walk on worths: nearly independent draws
EXCHANGES = {PanelRows: ExchangeSampler, CompiledSituations: SituationExchange}  # samplers with moves, by kind of rows
NO_WALK = (
    "Gibbs(moves='walk') is for pairs with ties='race', 'photo-finish' or 'davidson' or an order effect, and for "
    "rankings with ties of unknown order, without covariates and in memory. Use Gibbs(moves='auto')."
)
TARGET_LIMIT = 200_000  # iterations after which a target is abandoned


class Gibbs(BaseEstimator):
    """Gibbs sampler: draws from the posterior.

    Parameters
    ----------
    draws : int, optional
        Draws kept per chain (with ``target_ess``: at least this many, at most twice as many). None: the chains run
        until predictions are settled, or good enough while more draws would gain little, or to ``max_draws``; see
        ``diagnostics_.sentence``. They make at least 1,000 draws, 500 of a walk on worths, and with learned directions
        150, and keep at most twice as many: longer chains are thinned by 2, 4 and so on. Up to 10,000 draws are always
        kept on request; beyond that chains are thinned in the same way to 262,144 draws in all or 16.8 million
        numbers, which bounds the memory and time of later computations. ``repr`` shows how many iterations the draws
        were thinned from.
    tune : int, optional
        Iterations discarded at the start of each chain; only they adapt steps, schedule and proposal laws. The chains
        restart several times in the first half, so that the laws cover more modes than one chain would find. None:
        2,000, or 150 for a walk on worths and with learned directions.
    chains : int
        Number of chains, which start dispersed and run in parallel.
    moves : {"auto", "exchange", "none"}
        "exchange": sweeps and exact moves between modes, which mix when a is learned. "none": exactly the paper's
        sampler, (11) to (13) with the scale Λ redrawn and Metropolis–Hastings on a. "auto": "exchange", and "none" with
        ``engine="numpy"`` or ``"cupy"``, since the moves are compiled for the processor, with sparse features and
        ``engine="dask"``, since they need whole columns, with a `GIG` prior and ``ties="race"``, since they require
        that the proportions of the weights are independent of their scale, and for rankings without covariates, where
        plain sweeps mix. "walk": Hamiltonian trajectories on all worths and the parameters
        of a response, without covariates; "auto" takes it for pairs whose ties are part of the likelihood or with an
        order effect, for ties of unknown order, and for described items.
    shape_prior : prior, log-density, "improper" or None
        p(a) for ``shape="learn"``; see `plackett.priors`. None: log-uniform on [1e-4, 1e2].
    target_ess : float, optional
        Run until the bulk and tail effective sample size of every ln λ̄, of a and of predictive probabilities is this
        large and R-hat is at most 1.01, the usual standard for interpreting single weights; draws are thinned so that
        memory stays bounded.
    max_draws : int, optional
        Maximum number of iterations per chain after tuning. None: 200,000 with ``target_ess``, else 10,000, and with
        learned directions 1,000, or 500 if covariates outnumber rows.
    max_seconds : float, optional
        Stop after about this time with the draws made so far; raises if there are none. The limit includes tuning and,
        with learned directions, held-out fits; it excludes compilation, which happens once.
    checkpoint : path, optional
        Write draws and states to this file during the run. A killed fit continues from it and ends with the draws of an
        uninterrupted one. Data, prior and settings must be the same, and ``random_state`` if it is given; draws, target
        and limits may change, so that a run can be extended. Only one fit at a time may use the file.
    move_budget : float
        Work of the moves per iteration, as a multiple of a plain sweep.

    Examples
    --------
    >>> from plackett import Gibbs
    >>> Gibbs(target_ess=400)
    Gibbs(target_ess=400)
    """

    samples: Literal[True] = True
    maximises: Literal[False] = False
    shape_settings = ("shape_prior",)
    fixed_only = Ignored(
        ("moves", "shape_prior", "move_budget"),
        "it is a setting of the sampler for fixed features, and this is features='learned'.",
    )
    no_directions = no_fixed = None
    groups_rows = True

    def __init__(
        self,
        draws: int | None = None,
        tune: int | None = None,
        chains: int = 4,
        moves: str = "auto",
        shape_prior: Any = None,
        target_ess: float | None = None,
        max_draws: int | None = None,
        max_seconds: float | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        move_budget: float = 5.0,
    ):
        self.draws: Any = draws  # a number after `completed`
        self.tune: Any = tune
        self.chains = chains
        self.moves = moves
        self.shape_prior = shape_prior
        self.target_ess = target_ess
        self.max_draws: Any = max_draws
        self.max_seconds = max_seconds
        self.checkpoint = checkpoint
        self.move_budget = move_budget

    def completed(self, **usual: object) -> Gibbs:
        """Return checked settings, with defaults for those left open; a target raises max_draws."""
        if self.target_ess is not None:
            usual = usual | {"max_draws": TARGET_LIMIT}
        left_open = {name: value for name, value in usual.items() if getattr(self, name) in (None, "auto")}
        made = Gibbs(**(self.get_params(deep=False) | left_open))
        made._check()
        return made

    def fit(self, problem: Problem, shape: float | None) -> Fit:
        """Run the chains; shape None samples a."""
        run = WeightRun(self, problem, shape)
        draws = run.run(stacklevel=4)
        shapes = draws["shape"]
        return Fit(
            run.posterior(),
            shape=float(np.exp(np.log(shapes).mean())) if shape is None else shape,
            trace=draws["value"],
            n_iter=run.settings.tune + run.store.iterations,
            extra={"diagnostics_": run.diagnose(), "inference_": run.settings},
        )

    def _check(self) -> None:
        check_run(self, "Gibbs({})")
        check_tolerance("Gibbs(move_budget)", self.move_budget)
        if self.moves not in MOVES:
            raise ValueError(f"Gibbs(moves) must be one of {list(MOVES)}, got {self.moves!r} instead.")


def has_moves(problem: Problem) -> bool:
    """True if exact moves exist for these rows under this prior."""
    return problem.prior(1.0).scale_free and problem.rows.moves() is not None


def exchange_sampler(problem: Problem, target: Target, budget: float, begin: Begin | None) -> ExchangeSampler:
    """Sampler that combines sweeps with exact moves, for rows that have them."""
    rows = problem.rows.moves()
    kind: Callable[..., ExchangeSampler] = EXCHANGES[type(rows)]
    return kind(rows, problem, target, budget, begin)


class WeightRun(Run):
    """Run of the sampler of weights; shape None samples a."""

    def __init__(self, settings: Gibbs, problem: Problem, shape: float | None):
        goes_on = open_ended(settings)
        likelihood = problem.rows.walk()
        moves = "walk" if likelihood is not None else "exchange" if has_moves(problem) else "none"
        walks = moves == "walk" and settings.moves in ("auto", "walk")
        settings = settings.completed(**(WALK if walks else USUAL), moves=moves)
        size = (problem.rows.n_groups, problem.rows.n_features)
        asked_for = settings.draws * (2 if goes_on or settings.target_ess is not None else 1)
        kept = settings.chains * room_for(asked_for, settings.chains, size[0] * size[1])
        asked = f"Gibbs(draws={settings.draws}, chains={settings.chains})"
        check_draws_fit(kept, size, f"Ask for fewer than {asked}.")
        self.problem, self.learned = problem, shape is None
        self.averaged = None if problem.probe is None else POOLED  # number of draws that choosers predict with
        prior = as_prior(settings.shape_prior)
        table = tabulate(prior)
        tailed = problem.tailed
        rate, tail = (problem.rate, 0.0) if tailed is None else (tailed.rate, tailed.tail)
        target = Target(float(rate), self.learned, *table, float(tail))
        begin_one = partial(begin, problem, shape, prior.lower, prior.upper)
        generators = [np.random.default_rng(seed) for seed in problem.seed.spawn(settings.chains)]
        parameters = problem.rows.parameters
        runner: Runner
        chains: list[WeightChain]
        if settings.moves == "walk":
            if likelihood is None:
                raise ValueError(NO_WALK)
            runner = walk = WorthWalk(likelihood, problem, target, shape)
            chains = [walk.begin(begin_one(rng), rng) for rng in generators]
        else:
            runner = (
                paper_sampler(problem, target)
                if settings.moves == "none"
                else exchange_sampler(problem, target, max(settings.move_budget, 1e-3), begin_one)
            )
            values = [dispersed(parameters, rng) if parameters else None for rng in generators]
            chains = [WeightChain(begin_one(g), g, values=v) for g, v in zip(generators, values, strict=True)]
        shapes: dict[str, tuple[int, ...]] = {"log_weights": size, "shape": (), "value": ()}
        if problem.rows.absolute:
            shapes["log_mass"] = ()
        if parameters:
            shapes["parameters"] = (len(parameters),)
        observed = problem.rows.identity(problem.mirrors)
        identity = (*observed, problem.rate, shape, *table, settings.moves, settings.move_budget)
        identity += () if tailed is None else (repr(tailed),)
        identity += (SAMPLER,) if settings.moves == "walk" else ()
        super().__init__(settings, problem, runner, chains, shapes, identity, Clock(settings.max_seconds), goes_on)

    def probe(self, draws: Portion) -> Array:
        """Return probabilities of the groups in some rows, or of alternatives in some situations."""
        probe = self.problem.probe or partial(probed_probabilities, features=self.problem.rows.features)
        return probe(as_posterior(draws))

    def measure(self, report: Report | None) -> Diagnostics | None:
        """Diagnose weights, shape and probabilities of the draws so far."""
        return diagnose_weights(self.posterior(), self.learned, self.probe(self.draws()), report, self.averaged)

    def posterior(self) -> Draws:
        """Return the draws so far."""
        return as_posterior(self.draws())


def as_posterior(draws: Portion) -> Draws:
    """Build `Draws` from arrays by name."""
    return Draws(draws["log_weights"], draws["shape"], draws.get("log_mass"), draws.get("parameters"))
