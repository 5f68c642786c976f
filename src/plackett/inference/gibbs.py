"""The driver of the sampler: rounds, thinning, progress, interruption, checkpoints, and when to stop."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning

from plackett.diagnostics import Diagnostics, advice, diagnose
from plackett.inference.base import Fit, Problem, check_count, check_tolerance
from plackett.inference.checkpoint import CheckpointError, Journal, fingerprint, read
from plackett.inference.store import Portion, Store
from plackett.posterior import Draws
from plackett.priors import as_prior, tabulate
from plackett.progress import progress_bar

if TYPE_CHECKING:
    from plackett.inference.chains import Chain, Runner

ROUND_SECONDS = 0.2  # chains report back, and Ctrl-C is heard, about this often
MOVES = ("exchange", "none")
BEGINNINGS = 8  # of every chain in the first half of tuning
SEEN = 256  # states of tuning, of all chains, that are remembered for what is learned at its end


class Gibbs(BaseEstimator):
    """Draws from the posterior.

    Parameters
    ----------
    draws : int, optional
        Draws kept of each chain (with ``target_ess``: at least, and at most twice as many). None: 1,000, and 250 with
        learned directions, whose draws are less correlated.
    tune : int, optional
        Iterations discarded at the start of each chain; steps, schedule and laws are adapted in them only. The chains
        begin several times in the first half, so that the laws know more modes than a chain would find. None: 2,000,
        and 250 with learned directions.
    chains : int
        Chains, from dispersed starts, run in parallel.
    moves : {"exchange", "none"}
        "exchange": sweeps and exact moves between modes, which mix when a is learned. "none": exactly the paper's
        sampler, (11) to (13) with the scale Λ redrawn and Metropolis–Hastings on a.
    shape_prior : prior, log-density, "improper" or None
        p(a) for ``shape="learn"``; see `plackett.priors`. None: log-uniform on [1e-4, 1e2].
    target_ess : float, optional
        Go on until the bulk and tail effective sample size of every ln λ̄, of a and of predictive probabilities is
        this large and R-hat is at most 1.01; draws are thinned so that memory stays bounded.
    max_draws : int
        Iterations of each chain after tuning at which ``target_ess`` gives up.
    max_seconds : float, optional
        Stop after about this time with the draws there are. Tuning is finished first, and with learned directions the
        held-out rows come before it.
    checkpoint : path, optional
        Write draws and state to this file as they come. A fit that was killed goes on from it, and ends with the draws
        of one that was not. Data, prior and settings must be the same, and ``random_state`` if it is given; the target
        and the limits may change.
    move_budget : float
        Work of the moves in an iteration, as a multiple of a plain sweep's.

    Examples
    --------
    >>> from plackett import Gibbs
    >>> Gibbs(target_ess=400)
    Gibbs(target_ess=400)
    """

    def __init__(
        self,
        draws: int | None = None,
        tune: int | None = None,
        chains: int = 4,
        moves: str = "exchange",
        shape_prior: Any = None,
        target_ess: float | None = None,
        max_draws: int = 200_000,
        max_seconds: float | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        move_budget: float = 5.0,
    ):
        self.draws: Any = draws  # numbers after `completed`
        self.tune: Any = tune
        self.chains = chains
        self.moves = moves
        self.shape_prior = shape_prior
        self.target_ess = target_ess
        self.max_draws = max_draws
        self.max_seconds = max_seconds
        self.checkpoint = checkpoint
        self.move_budget = move_budget

    def completed(self, draws: int = 1000, tune: int = 2000) -> Gibbs:
        """The same settings, checked, with these numbers where none were given."""
        usual = {"draws": draws, "tune": tune}
        left_open = {name: number for name, number in usual.items() if getattr(self, name) is None}
        made = Gibbs(**(self.get_params(deep=False) | left_open))
        made._check()
        return made

    def fit(self, problem: Problem, shape: float | None) -> Fit:
        """Run the chains; shape None samples a."""
        run = Run(self, problem, shape)
        try:
            word = run.go()
        finally:
            run.close()
        if run.store.count == 0:
            raise KeyboardInterrupt("interrupted while tuning: there are no draws to keep")
        log_weights, shapes, values = run.store.filled()
        posterior = Draws(log_weights, shapes)
        found = run.diagnose()
        word = word or advice(found, run.store.count, self.target_ess)
        if word:
            warnings.warn(word, ConvergenceWarning, stacklevel=4)
        return Fit(
            posterior,
            shape=float(np.exp(np.log(shapes).mean())) if shape is None else shape,
            trace=values,
            n_iter=run.settings.tune + run.store.iterations,
            extra={"diagnostics_": found},
        )

    def _check(self) -> None:
        check_count("Gibbs(draws)", self.draws)
        check_count("Gibbs(tune)", self.tune, at_least=0)
        check_count("Gibbs(chains)", self.chains)
        check_count("Gibbs(max_draws)", self.max_draws)
        for name in ("target_ess", "max_seconds"):
            if getattr(self, name) is not None:
                check_tolerance(f"Gibbs({name})", getattr(self, name))
        check_tolerance("Gibbs(move_budget)", self.move_budget)
        if self.moves not in MOVES:
            raise ValueError(f"Gibbs(moves) must be one of {list(MOVES)}, got {self.moves!r} instead.")


class Run:
    """One run of the sampler, new or continued from a checkpoint."""

    def __init__(self, settings: Gibbs, problem: Problem, shape: float | None):
        from plackett.inference.chains import Chain, ExchangeSampler, PaperSampler, begin
        from plackett.inference.sweeps import Target

        settings = settings.completed()
        self.settings, self.problem, self.learned = settings, problem, shape is None
        prior = as_prior(settings.shape_prior)
        table = tabulate(prior)
        target = Target(float(problem.rate), self.learned, *table)
        begin_one = partial(begin, problem, shape, prior.lower, prior.upper)
        generators = [np.random.default_rng(seed) for seed in problem.seed.spawn(settings.chains)]
        self.runner: Runner = (
            PaperSampler(problem, target)
            if settings.moves == "none"
            else ExchangeSampler(problem, target, max(settings.move_budget, 1e-3), begin_one)
        )
        self.chains: list[Chain] = [Chain(begin_one(rng), rng) for rng in generators]
        size = (problem.rows.n_classes, problem.rows.n_features)
        capacity = settings.draws if settings.target_ess is None else 2 * settings.draws
        self.store = Store(settings.chains, capacity, size)
        self._begin_tuning(size)
        self.found: tuple[int, Diagnostics | None] = (-1, None)  # iterations at the last diagnosis, and what it found
        self.journal: Journal | None = None
        if settings.checkpoint is not None:
            names = ("draws", "tune", "chains", "moves", "move_budget")
            same = [getattr(settings, name) for name in names] + [settings.target_ess is None]
            seed = problem.seed.entropy if problem.seeded else None
            self._open(
                fingerprint(problem.features, problem.codes, problem.mirrors, problem.rate, shape, seed, *table, *same)
            )

    def _begin_tuning(self, size: tuple[int, int]) -> None:
        """A store for what the runner learns from: states evenly spaced over tuning."""
        settings = self.settings
        thin = max(settings.tune * settings.chains // SEEN, 1)
        self.seen = Store(settings.chains, -(-settings.tune // thin), size, thin)
        self.tuned = 0
        self.milestones = {settings.tune * i // (2 * BEGINNINGS) for i in range(1, BEGINNINGS + 1)} | {settings.tune}
        if settings.tune == 0:
            self.runner.adapt(self.chains, self.seen.filled(), 1.0)

    def _tuned(self, selected: Portion, n: int) -> None:
        """Take in so many iterations of tuning."""
        self.seen.add(selected, n)
        self.tuned += n

    def _adapt(self) -> None:
        """At a milestone of tuning, let the runner learn."""
        if self.tuned in self.milestones:
            self.runner.adapt(self.chains, self.seen.filled(), self.tuned / self.settings.tune)

    def go(self) -> str | None:
        """Tune, then draw until there is enough; a sentence if it ended early."""
        settings, store = self.settings, self.store
        began = time.perf_counter()
        goal = settings.draws if settings.target_ess is None else settings.max_draws
        with (
            ThreadPoolExecutor(min(settings.chains, self.runner.workers)) as pool,
            progress_bar(self.problem.progress, f"Gibbs, {settings.chains} chains", settings.tune + goal) as report,
        ):
            size = 1
            while True:
                if self.tuned < settings.tune:
                    n = min(size, min(m for m in self.milestones if m > self.tuned) - self.tuned)
                elif store.iterations >= goal or (self._at_a_check() and self.enough()):
                    return None
                else:
                    if store.room() == 0:
                        store.halve()
                    n = min(size, store.room(), goal - store.iterations, self._to_next_check())
                started = time.perf_counter()
                if not self._round(pool, n):
                    return f"interrupted: the {store.count} draws of each chain made so far were kept."
                report(self.tuned + store.iterations)
                now = time.perf_counter()
                size = int(np.clip(size * min(ROUND_SECONDS / max(now - started, 1e-6), 8.0), 1, 512))
                if settings.max_seconds is not None and now - began > settings.max_seconds and store.count:
                    if store.iterations < settings.draws or settings.target_ess is not None:
                        return advice(self.diagnose(), store.count, settings.target_ess, "max_seconds")
                    return None

    def _to_next_check(self) -> int:
        """Iterations until the draws are looked at again."""
        if self.settings.target_ess is None:
            return self.settings.draws
        return next(check for check in self._checks() if check > self.store.iterations) - self.store.iterations

    def _at_a_check(self) -> bool:
        if self.settings.target_ess is None or self.store.iterations < self.settings.draws:
            return False
        return self.store.iterations == next(check for check in self._checks() if check >= self.store.iterations)

    def _checks(self) -> Iterator[int]:
        """Iterations at which ESS is computed: after draws, then whenever there are a quarter more."""
        check = self.settings.draws
        while True:
            yield check
            check += -(-check // 4)

    def enough(self) -> bool:
        """Whether every effective sample size has reached the target, and the chains agree."""
        found = self.diagnose()
        target = self.settings.target_ess
        return found is not None and target is not None and found.smallest_ess >= target and found.worst_rhat <= 1.01

    def diagnose(self) -> Diagnostics | None:
        """R-hat and ESS of weights, shape and probabilities of the draws so far."""
        if self.found[0] != self.store.iterations:
            log_weights, shapes, _ = self.store.filled()
            self.found = (
                self.store.iterations,
                diagnose(Draws(log_weights, shapes), self.learned, self.problem.features),
            )
        return self.found[1]

    def _round(self, pool: ThreadPoolExecutor, n: int) -> bool:
        """So many iterations of every chain; False if interrupted, with whole rounds kept."""
        tuning = self.tuned < self.settings.tune
        C, (K, p) = len(self.chains), self.store.kept.log_weights.shape[2:]
        portion = Portion(np.empty((C, n, K, p)), np.empty((C, n)), np.empty((C, n)))
        tasks = [
            pool.submit(self.runner.advance, chain, tuning, *(array[c] for array in portion))
            for c, chain in enumerate(self.chains)
        ]
        interrupted = False
        for task in tasks:
            try:
                task.result()
            except KeyboardInterrupt:
                interrupted = True
                task.result()
        if tuning:
            selected = self.seen.select(portion)
            self._tuned(selected, n)
        else:
            selected = self.store.select(portion)
            self.store.add(selected, n)
        self._record(selected, n)
        if tuning:
            self._adapt()
        return not interrupted

    def _record(self, selected: Portion, n: int) -> None:
        if self.journal is None:
            return
        facts = {
            "iterations": n,
            "tuned": self.tuned,
            "thin": self.store.thin,
            "generators": [chain.rng.bit_generator.state for chain in self.chains],
        }
        arrays = {f"chain{c}_{i}": a for c, chain in enumerate(self.chains) for i, a in enumerate(_arrays(chain))}
        self.journal.write(facts, arrays | selected._asdict())

    def _open(self, digest: str) -> None:
        """Continue from the file if it holds this fit, or begin it."""
        path = Path(self.settings.checkpoint)  # type: ignore[arg-type]
        records, end = read(path) if path.exists() else ([], 0)
        if records and records[0][0].get("fingerprint") != digest:
            raise CheckpointError(
                f"{path} belongs to another fit: data, prior or settings differ. Give another path, or remove it."
            )
        self.journal = Journal(path, end)
        if not records:
            self.journal.write({"fingerprint": digest}, {})
        for facts, arrays in records[1:]:
            selected = Portion(*(arrays[name] for name in Portion._fields))
            for c, chain in enumerate(self.chains):
                chain.rng.bit_generator.state = facts["generators"][c]
                for i, array in enumerate(_arrays(chain)):
                    array[...] = arrays[f"chain{c}_{i}"]
            if facts["tuned"] > self.tuned:
                self._tuned(selected, facts["iterations"])
                self._adapt()
            else:
                while self.store.thin < facts["thin"]:
                    self.store.halve()
                self.store.add(selected, facts["iterations"])

    def close(self) -> None:
        """Close the checkpoint."""
        if self.journal is not None:
            self.journal.close()


def _arrays(chain: Chain) -> tuple[Any, ...]:
    """All that a chain is, apart from its generator."""
    return (*chain.state, chain.runs, chain.gains)
