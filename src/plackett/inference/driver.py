"""The driver of a sampler: rounds, thinning, progress, interruption, checkpoints, and when to stop."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from plackett.inference.checkpoint import CheckpointError, Journal, fingerprint, read
from plackett.inference.store import Portion, Store
from plackett.model.race import Array
from plackett.progress import progress_bar

if TYPE_CHECKING:
    from plackett.inference.gibbs import Gibbs

ROUND_SECONDS = 0.2  # chains report back, and Ctrl-C is heard, about this often
BEGINNINGS = 8  # of every chain in the first half of tuning
SEEN = 256  # states of tuning, of all chains, that are remembered for what is learned at its end
INTERRUPTED, OUT_OF_TIME = "interrupted", "max_seconds"  # ends that come before there is enough


class Runner(Protocol):
    """Something that advances chains."""

    workers: int  # chains that may run at a time

    def advance(self, chain: Any, tuning: bool, draws: Array, shapes: Array, values: Array) -> None:
        """Fill the arrays with draws."""
        ...

    def adapt(self, chains: list[Any], seen: Portion, done: float) -> None:
        """Learn from tuning so far, of which this part is done; when all is, everything stays as it is."""
        ...


class Run(ABC):
    """One run of chains, new or continued from a checkpoint.

    `source` has the seed, whether the user chose it, and whether to show progress. `size` is that of a draw, and
    `identity` all that must be the same for a checkpoint to be continued, besides the seed and common settings.
    """

    def __init__(
        self, settings: Gibbs, source: Any, runner: Runner, chains: list[Any], size: tuple[int, int], identity: Any
    ):
        self.settings, self.source, self.runner = settings, source, runner
        self.chains: list[Any] = chains
        capacity = settings.draws if settings.target_ess is None else 2 * settings.draws
        self.store = Store(settings.chains, capacity, size)
        self._begin_tuning(size)
        self.found: tuple[int, Any] = (-1, None)  # iterations at the last diagnosis, and what it found
        self.journal: Journal | None = None
        if settings.checkpoint is not None:
            same = settings.draws, settings.tune, settings.chains, settings.target_ess is None
            self._open(fingerprint(source.seed.entropy if source.seeded else None, *identity, *same))

    @abstractmethod
    def measure(self) -> Any:
        """R-hat and ESS of the draws so far, with `smallest_ess` and `worst_rhat`; None if they are too few."""

    def diagnose(self) -> Any:
        """The same, computed once."""
        if self.found[0] != self.store.iterations:
            self.found = (self.store.iterations, self.measure())
        return self.found[1]

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
        """Tune, then draw until there is enough; what ended it early, if anything did."""
        settings, store = self.settings, self.store
        began = time.perf_counter()
        goal = settings.draws if settings.target_ess is None else settings.max_draws
        with (
            ThreadPoolExecutor(min(settings.chains, self.runner.workers)) as pool,
            progress_bar(self.source.progress, f"Gibbs, {settings.chains} chains", settings.tune + goal) as report,
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
                    return INTERRUPTED
                report(self.tuned + store.iterations)
                now = time.perf_counter()
                size = int(np.clip(size * min(ROUND_SECONDS / max(now - started, 1e-6), 8.0), 1, 512))
                if settings.max_seconds is not None and now - began > settings.max_seconds and store.count:
                    few = store.iterations < settings.draws or settings.target_ess is not None
                    return OUT_OF_TIME if few else None

    def draws(self) -> Portion:
        """What was kept; an interrupted run has to have got that far."""
        if self.store.count == 0:
            raise KeyboardInterrupt("interrupted while tuning: there are no draws to keep")
        return self.store.filled()

    def kept(self) -> str:
        """What to say after an interruption."""
        return f"interrupted: the {self.store.count} draws of each chain made so far were kept."

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


def _arrays(chain: Any) -> tuple[Any, ...]:
    """All that a chain is, apart from its generator."""
    return (*chain.state, chain.runs, chain.gains)
