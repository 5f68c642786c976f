"""Driver of samplers: rounds, thinning, progress, interruption, checkpoints and stopping."""

from __future__ import annotations

import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from plackett.inference.checkpoint import CheckpointError, Journal, fingerprint
from plackett.inference.limits import TUNED, Clock, Interruption
from plackett.inference.store import Portion, Shapes, Store, empty, part, room_for
from plackett.model.diagnostics import LIMIT, NO_GAIN, READ_RHAT, Report, advice, diagnose
from plackett.model.race import Array
from plackett.model.verdict import FEWEST_CHAINS, GOOD, SETTLED, gains_little
from plackett.output.progress import progress_bar

ROUND_SECONDS = 0.2  # approximate interval of progress reports and checks for Ctrl-C
BEGINNINGS = 8  # restarts of every chain in the first half of tuning
REMEMBERED = 256  # states of tuning, over all chains, stored for adaptation
MANY = 1 << 22  # draws × quantities whose diagnosis takes seconds
STATES = 1 << 20  # bytes per second that states of the chains, without draws, may add to a checkpoint
INTERRUPTED, OUT_OF_TIME = "interrupted", "max_seconds"  # ends that come before the run is complete


class Source(NamedTuple):
    """Settings of an estimator that any run of chains reads."""

    seed: np.random.SeedSequence
    progress: bool = False
    seeded: bool = True  # True if the user chose the seed


@dataclass
class Chain:
    """State of a chain, a NamedTuple of arrays, and its random generator."""

    state: Any
    rng: np.random.Generator

    def arrays(self) -> dict[str, Array]:
        """Return everything that a checkpoint stores, except the generator."""
        arrays: dict[str, Array] = self.state._asdict()
        return arrays


class Runner(Protocol):
    """Algorithm that advances chains.

    If it has ``advance_together(chains, tuning, **draws)``, with arrays (chain, draw, …), this receives all chains at
    once.
    """

    workers: int  # number of chains that may run at the same time

    @property
    def advance(self) -> Callable[..., None]:
        """Function ``advance(chain, tuning, **draws)``, which fills the declared arrays (draw, …)."""
        ...

    def adapt(self, chains: list[Any], states: Portion, done: float) -> None:
        """Adapt to the states of tuning so far; `done` is the fraction of tuning completed, the last time 1."""
        ...


class Run(ABC):
    """One run of chains, new or continued from a checkpoint.

    `settings` (`Gibbs`, or a classifier) have draws, tune, chains, target_ess, max_draws and checkpoint; `source` is a
    `Source` or has its fields. `shapes` maps the name of each array of a draw to its shape, and `identity` is all that
    must be unchanged for a checkpoint to continue, besides the seed and common settings. The clock may have been
    started before the chains. A run continues to its target if it has one; an open-ended run continues until its
    predictions settle, or are good enough and more draws would gain little.
    """

    name = "Gibbs"  # title of the progress bar
    averaged: int | None = None  # number of draws that predictions average over, if not all

    def __init__(
        self,
        settings: Any,
        source: Any,
        runner: Runner,
        chains: list[Any],
        shapes: Shapes,
        identity: Any,
        clock: Clock,
        open_ended: bool = False,
    ):
        self.settings, self.source, self.runner, self.clock = settings, source, runner, clock
        self.chains, self.shapes = chains, shapes
        self.goes_on = open_ended or settings.target_ess is not None
        self.goal = settings.max_draws if self.goes_on else settings.draws  # iterations after tuning
        one = empty(shapes, 1, 1)
        for array in one.values():
            array.fill(0.0)
        numbers = sum(array.size for array in one.values()) + self.probe(one).size
        self.store = Store(
            settings.chains, room_for((1 + self.goes_on) * settings.draws, settings.chains, numbers), shapes
        )
        self.notes: list[str] = []  # what the time limit has cut short
        self.ended = ""  # why an open-ended run ended before its predictions settled
        self.going = False  # True during rounds, which show their own progress bar
        self._begin_tuning()
        self.found: tuple[int, Any] = (-1, None)  # iterations at the last diagnosis, and its result
        self.journal: Journal | None = None
        self.unwritten: list[tuple[Portion, int]] = []  # draws since the last record, and their iterations
        self.due = 0.0  # earliest time of the next record
        if settings.checkpoint is not None:
            same = source.seed.entropy if source.seeded else None, settings.tune, settings.chains
            self._open(Path(settings.checkpoint), fingerprint(*same, *identity))

    @abstractmethod
    def probe(self, draws: Portion) -> Array:
        """Return the probabilities (chain, draw, observation, …) of some observations that convergence is judged by."""

    @abstractmethod
    def measure(self, report: Report | None) -> Any:
        """Diagnose the draws so far; the result has `smallest_ess` and `worst_rhat`, or is None for too few draws."""

    def diagnose(self) -> Any:
        """Return cached diagnostics of the draws so far; shows a progress bar if they take long."""
        if self.found[0] != self.store.iterations:
            if self.going:
                found = self.measure(None)
            else:
                show = self.source.progress and sum(kept.size for kept in self.draws().values()) > MANY
                with progress_bar(show, "diagnosing, per cent", 100) as report:
                    found = self.measure(lambda done: report(100 * done))
            self.found = (self.store.iterations, found)
        found = self.found[1]
        return replace(found, ended=self.ended) if found is not None and self.ended else found

    def returned(self, probability: Array) -> Array:
        """Return the contribution of each draw to the predictions of the fit."""
        return probability

    def measure_predictions(self) -> Any:
        """Diagnose predictions alone, repeatedly while an open-ended run continues."""
        return diagnose(returned=self.returned, averaged=self.averaged, probability=self.probe(self.draws()))

    def remedies(self) -> str:
        """Suggest remedies besides a longer run."""
        return ""

    def advice(self, end: str | None) -> str | None:
        """Return advice for a run that ended normally or at a limit; None if it is good enough."""
        limit = "max_draws" if end is None and self.ended == LIMIT else end
        words = advice(self.diagnose(), self.settings, limit, self.remedies())
        if words is None or limit is None:
            return words
        ended = f"{type(self.settings).__name__}({limit}={getattr(self.settings, limit)})"
        thinned = f" (1 of every {self.store.thin} is kept)" if self.store.thin > 1 else ""
        return f"{ended} stopped the run after {self.store.iterations:,} iterations per chain{thinned}: {words}"

    def run(self, stacklevel: int) -> Portion:
        """Run and return the draws; warn, at the caller's `stacklevel`, if they are incomplete or not good enough."""
        try:
            end = self.go()
        finally:
            self.close()
        said = self.kept() if end == INTERRUPTED else self.advice(end)
        message = ". ".join([*self.limited(), *([] if said is None else [said])])
        if message:
            warnings.warn(message, ConvergenceWarning, stacklevel=stacklevel + 1)
        return self.draws()

    def limited(self) -> list[str]:
        """Say what the time limit has cut short."""
        limit = self.settings.max_seconds  # None if the continued run has no limit
        name = f"{type(self.settings).__name__}{'' if limit is None else f'(max_seconds={limit:g})'}"
        return [f"{name}: {'; '.join(self.notes)}"] if self.notes else []

    def _begin_tuning(self) -> None:
        """Allocate a store for states evenly spaced over tuning."""
        settings = self.settings
        thin = max(settings.tune * settings.chains // REMEMBERED, 1)
        self.remembered = Store(settings.chains, -(-settings.tune // thin), self.shapes, thin)
        self.tuned = 0
        self.milestones = {settings.tune * i // (2 * BEGINNINGS) for i in range(1, BEGINNINGS + 1)} | {settings.tune}
        if settings.tune == 0:
            self.runner.adapt(self.chains, self.remembered.filled(), 1.0)

    def _tuned(self, selected: Portion, n: int) -> None:
        """Store states of n iterations of tuning."""
        self.remembered.add(selected, n)
        self.tuned += n

    def _adapt(self) -> None:
        """Adapt the runner at a milestone of tuning."""
        if self.tuned in self.milestones:
            self.runner.adapt(self.chains, self.remembered.filled(), self.tuned / self.settings.tune)

    def _end_tuning(self) -> None:
        """End tuning when its share of the time is over, with the adaptation so far."""
        self._write()
        self.notes.append(f"there was time for {self.tuned:,} of {self.settings.tune:,} iterations of tuning")
        self.settings = clone(self.settings).set_params(tune=self.tuned)
        self.runner.adapt(self.chains, self.remembered.filled(), 1.0)

    def go(self) -> str | None:
        """Tune, then draw until the run is complete; return what ended it early, or None."""
        settings, total = self.settings, self.settings.tune + self.goal
        pool = ThreadPoolExecutor(min(settings.chains, self.runner.workers))
        self.going = True
        try:
            with (
                progress_bar(self.source.progress, f"{self.name}, {settings.chains} chains", total) as report,
                Interruption(lambda: self.store.count > 0) as interruption,
            ):
                end = self._rounds(pool, report, interruption)
                self._write()
                return end
        finally:
            self.going = False
            pool.shutdown(wait=False, cancel_futures=True)  # after Ctrl-C a round may still be running

    def _rounds(
        self, pool: ThreadPoolExecutor, report: Callable[[float], None], interruption: Interruption
    ) -> str | None:
        store, clock, size = self.store, self.clock, 0
        while True:
            if self.tuned < self.settings.tune and clock.past(TUNED):
                self._end_tuning()
            if self.tuned < self.settings.tune:
                n = min(m for m in self.milestones if m > self.tuned) - self.tuned
            elif self._at_a_check() and self.enough():
                return None
            elif store.iterations >= self.goal:
                self.ended = LIMIT if self.goes_on else ""
                return None
            elif interruption.came:
                return INTERRUPTED
            elif clock.up and store.count:
                return OUT_OF_TIME
            else:
                if store.room() == 0:
                    store.halve()
                n = min(store.room(), self.goal - store.iterations, self._to_next_check())
            if size == 0:
                self._load_kernels()
                clock.start()
                size = 1
            started = time.perf_counter()
            n = min(n, size)
            self._round(pool, n)
            report(self.tuned + store.iterations)
            pace = ROUND_SECONDS / max(time.perf_counter() - started, 1e-6)
            size = int(np.clip(n * min(pace, 8.0), 1, 512))

    def draws(self) -> Portion:
        """Return the stored draws."""
        return self.store.filled()

    def kept(self) -> str:
        """Message after an interruption."""
        thinned = f" (one in {self.store.thin} of {self.store.iterations:,})" if self.store.thin > 1 else ""
        return f"interrupted: the {self.store.count} draws of each chain made so far were kept{thinned}."

    def _to_next_check(self) -> int:
        """Iterations until the next check of convergence."""
        if not self.goes_on:
            return self.settings.draws
        return next(check for check in self._checks() if check > self.store.iterations) - self.store.iterations

    def _at_a_check(self) -> bool:
        if not self.goes_on or self.store.iterations < self.settings.draws:
            return False
        return self.store.iterations == next(check for check in self._checks() if check >= self.store.iterations)

    def _checks(self) -> Iterator[int]:
        """Yield iterations at which ESS is computed: after `draws`, then after each increase by a quarter."""
        check = self.settings.draws
        while True:
            yield check
            check += -(-check // 4)

    def enough(self) -> bool:
        """True if every ESS has reached the target and the chains agree, or if predictions are settled.

        An open-ended run also ends if predictions are good enough and more draws would gain little, and for a single
        chain, which cannot be compared.
        """
        target = self.settings.target_ess
        if target is None and len(self.chains) < FEWEST_CHAINS:
            return True
        found = self.measure_predictions() if target is None else self.diagnose()
        if found is None:
            return False
        if target is not None:
            return bool(found.smallest_ess >= target and found.worst_rhat <= READ_RHAT)
        if found.grade == GOOD and gains_little(found.error, found.error_95, found.width):
            self.ended = NO_GAIN
        return bool(found.grade == SETTLED or self.ended)

    def _load_kernels(self) -> None:
        """Compile kernels by zero iterations in this thread, where Ctrl-C is noticed."""
        nothing = empty(self.shapes, 1, 0)
        self.runner.advance(self.chains[0], False, **{name: array[0] for name, array in nothing.items()})

    def _round(self, pool: ThreadPoolExecutor, n: int) -> None:
        """Run n iterations of every chain."""
        tuning = self.tuned < self.settings.tune
        portion = empty(self.shapes, len(self.chains), n)
        together = getattr(self.runner, "advance_together", None)
        if together is not None:
            tasks = [pool.submit(together, self.chains, tuning, **portion)]
        else:
            tasks = [
                pool.submit(self.runner.advance, chain, tuning, **{name: array[c] for name, array in portion.items()})
                for c, chain in enumerate(self.chains)
            ]
        for task in tasks:
            task.result()
        store = self.remembered if tuning else self.store
        selected = store.select(portion)
        if tuning:
            self._tuned(selected, n)
        else:
            self.store.add(selected, n)
        if self.journal is not None:
            self.unwritten.append((selected, n))
            if time.perf_counter() >= self.due or (self.tuned in self.milestones if tuning else store.room() == 0):
                self._write()
        if tuning:
            self._adapt()

    def _write(self) -> None:
        """Write the draws since the last record and the states of the chains; larger states are written less often."""
        if self.journal is None or not self.unwritten:
            return
        facts = {
            "iterations": sum(n for _, n in self.unwritten),
            "tuned": self.tuned,
            "thin": self.store.thin,
            "generators": [chain.rng.bit_generator.state for chain in self.chains],
        }
        arrays = {f"chain{c}_{name}": a for c, chain in enumerate(self.chains) for name, a in chain.arrays().items()}
        self.due = time.perf_counter() + sum(a.nbytes for a in arrays.values()) // STATES
        draws = {name: np.concatenate([part[name] for part, _ in self.unwritten], axis=1) for name in self.shapes}
        self.unwritten.clear()
        self.journal.write(facts, arrays | draws)

    def _open(self, path: Path, digest: str) -> None:
        """Continue from the file if it belongs to this fit, or start it."""
        self.journal = Journal(path)
        try:
            self._continue(path, self.journal, digest)
        except BaseException:
            self.close()
            raise

    def _continue(self, path: Path, journal: Journal, digest: str) -> None:
        """Replay the rounds of the file as if the chains had produced them."""
        if not journal.records:
            journal.write({"fingerprint": digest}, {})
        elif journal.records[0][0].get("fingerprint") != digest:
            raise CheckpointError(
                f"{path} belongs to another fit: data, prior or settings differ. Give another path, or remove it."
            )
        for facts, arrays in journal.records[1:]:
            held = {name: arrays[name] for name in self.shapes}
            for c, chain in enumerate(self.chains):
                chain.rng.bit_generator.state = facts["generators"][c]
                for name, array in chain.arrays().items():
                    array[...] = arrays[f"chain{c}_{name}"]
            if facts["tuned"] > self.tuned:
                self._tuned(held, facts["iterations"])
                self._adapt()
            else:
                if self.tuned < self.settings.tune:
                    self._end_tuning()
                self._take(path, held, facts["iterations"], facts["thin"])
        journal.records.clear()

    def _take(self, path: Path, portion: Portion, n: int, thin: int) -> None:
        """Take draws of a stored round, thinned by `thin`, up to the length of this run."""
        store, left = self.store, min(n, self.goal - self.store.iterations)
        while left:
            if store.room() == 0:
                store.halve()
            if store.thin < thin:
                name = type(self.settings).__name__
                raise CheckpointError(
                    f"{path} holds one draw in {thin} only, from a longer run whose draws were thinned, "
                    f"and {name}(draws={self.settings.draws}) needs more of them. Ask for fewer, or give another path."
                )
            n = min(left, store.room())
            first = -((-store.iterations % thin - n) // thin)  # draws of the portion in these iterations
            store.add(store.select(part(portion, slice(first)), thin), n)
            portion, left = part(portion, slice(first, None)), left - n

    def close(self) -> None:
        """Close the checkpoint."""
        if self.journal is not None:
            self.journal.close()
