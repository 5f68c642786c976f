"""The driver of the Gibbs sampler: chains, chunks, progress, interruption, diagnosis."""

from __future__ import annotations

import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from plackett.diagnostics import advice, diagnose
from plackett.inference.base import Fit, Problem, check_count
from plackett.model.race import Array
from plackett.posterior import Draws, normalised
from plackett.priors import as_prior, tabulate
from plackett.progress import progress_bar

ROUND_SECONDS = 0.2  # chains report back, and Ctrl-C is heard, about this often
LARGE = 1 << 22  # entries of W from which the cores share the rows of one chain instead of the chains


@dataclass
class Chain:
    """One chain: its state, its random numbers and its room for draws."""

    state: Any
    rng: np.random.Generator
    draws: Array
    shapes: Array
    values: Array


class Gibbs(BaseEstimator):
    """Draws from the posterior.

    Parameters
    ----------
    draws : int
        Draws kept of each chain.
    tune : int
        Sweeps discarded at the start of each chain; the step of a is adapted in them only.
    chains : int
        Chains, from dispersed starts, run in parallel.
    moves : {"none"}
        "none": exactly the paper's sampler, (11) to (13) with the scale Λ redrawn and Metropolis–Hastings on a.
    shape_prior : prior, log-density, "improper" or None
        p(a) for ``shape="learn"``; see `plackett.priors`. None: log-uniform on [1e-4, 1e2].

    Examples
    --------
    >>> from plackett import Gibbs
    >>> Gibbs(draws=2000)
    Gibbs(draws=2000)
    """

    def __init__(
        self,
        draws: int = 1000,
        tune: int = 1000,
        chains: int = 4,
        moves: str = "none",
        shape_prior: Any = None,
    ):
        self.draws = draws
        self.tune = tune
        self.chains = chains
        self.moves = moves
        self.shape_prior = shape_prior

    def fit(self, problem: Problem, shape: float | None) -> Fit:
        """Run the chains; shape None samples a."""
        check_count("Gibbs(draws)", self.draws)
        check_count("Gibbs(tune)", self.tune, at_least=0)
        check_count("Gibbs(chains)", self.chains)
        if self.moves != "none":
            raise ValueError(f"Gibbs(moves) must be 'none', got {self.moves!r} instead.")
        prior = as_prior(self.shape_prior)
        chains = [
            self._start(seed, shape, prior.lower, prior.upper, problem) for seed in problem.seed.spawn(self.chains)
        ]
        from plackett.inference.sweeps import Target

        target = Target(float(problem.rate), shape is None, *tabulate(prior))
        done = self._run(chains, problem, target)
        kept = done - self.tune
        if kept < self.draws:
            if kept <= 0:
                raise KeyboardInterrupt("interrupted while tuning: there are no draws to keep")
            warnings.warn(
                f"interrupted: the first {kept} of {self.draws} draws of each chain were kept.",
                UserWarning,
                stacklevel=4,
            )
        posterior = Draws(np.stack([c.draws[:kept] for c in chains]), np.stack([c.shapes[:kept] for c in chains]))
        found = diagnose(posterior, learned=shape is None)
        word = advice(found, kept)
        if word:
            warnings.warn(word, ConvergenceWarning, stacklevel=4)
        return Fit(
            posterior,
            shape=float(np.exp(np.log(posterior.shape).mean())) if shape is None else shape,
            trace=np.stack([c.values[:kept] for c in chains]),
            n_iter=done,
            extra={"diagnostics_": found},
        )

    def _start(
        self, seed: np.random.SeedSequence, shape: float | None, lower: float, upper: float, problem: Problem
    ) -> Chain:
        """A dispersed start: a far out within its prior, weights from a flat draw."""
        from plackett.inference.sweeps import State

        rng = np.random.default_rng(seed)
        K, p = problem.rows.n_classes, problem.rows.n_features
        a = np.exp(rng.uniform(np.log(0.02), np.log(2.0)))
        a = float(np.clip(a, lower, upper)) if shape is None else shape
        log_weights = normalised(np.log(rng.standard_gamma(1.0, (K, p))))
        return Chain(
            State(np.ascontiguousarray(log_weights), np.array([0.0, a, 0.0, 0.0])),
            rng,
            np.empty((self.draws, K, p)),
            np.empty(self.draws),
            np.empty(self.draws),
        )

    def _run(self, chains: list[Chain], problem: Problem, target: Any) -> int:
        """Advance all chains in rounds; return the sweeps that every chain has done."""
        from plackett.compiled import call
        from plackett.engines.numba import PanelRows, cores
        from plackett.inference.sweeps import sweeps, sweeps_of_any_engine

        rows = problem.rows
        panels = rows.panels if isinstance(rows, PanelRows) and rows.panels.values.size < LARGE else None

        def advance(chain: Chain, first: int, last: int) -> None:
            """Sweeps first ≤ t < last, all of the tuning or all of the draws."""
            adapt = last <= self.tune
            if adapt:
                size = last - first
                out = (np.empty((size, rows.n_classes, rows.n_features)), np.empty(size), np.empty(size))
            else:
                span = slice(first - self.tune, last - self.tune)
                out = (chain.draws[span], chain.shapes[span], chain.values[span])
            if panels is not None:
                call(sweeps, panels, chain.state, chain.rng, target, adapt, *out)
            else:
                sweeps_of_any_engine(rows, chain.state, chain.rng, target, adapt, *out)

        total, done, size = self.tune + self.draws, 0, 1
        workers = min(len(chains), cores()) if panels is not None else 1
        with (
            ThreadPoolExecutor(workers) as pool,
            progress_bar(problem.progress, f"Gibbs, {len(chains)} chains", total) as report,
        ):
            try:
                while done < total:
                    last = min(done + size, self.tune if done < self.tune else total)
                    began = time.perf_counter()
                    tasks = [pool.submit(advance, chain, done, last) for chain in chains]
                    for task in tasks:
                        task.result()
                    done = last
                    report(done)
                    pace = ROUND_SECONDS / max(time.perf_counter() - began, 1e-6)
                    size = int(np.clip(size * min(pace, 8.0), 1, 512))
            except KeyboardInterrupt:
                for task in tasks:
                    if not task.cancel():
                        task.result()
                if all(task.done() and not task.cancelled() for task in tasks):
                    done = last
        return done
