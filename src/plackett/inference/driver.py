"""The driver of a sampler: rounds, thinning, progress, interruption, checkpoints, and when to stop."""

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

ROUND_SECONDS = 0.2  # chains report back, and Ctrl-C is heard, about this often
BEGINNINGS = 8  # of every chain in the first half of tuning
REMEMBERED = 256  # states of tuning, of all chains, that are kept for what is learned at its end
MANY = 1 << 22  # numbers that take seconds to diagnose
STATES = 1 << 20  # bytes of a second that a checkpoint may grow by states of the chains, besides their draws
INTERRUPTED, OUT_OF_TIME = "interrupted", "max_seconds"  # ends that come before there is enough


class Source(NamedTuple):
    """What a classifier says of any run of chains."""

    seed: np.random.SeedSequence
    progress: bool = False
    seeded: bool = True  # whether the user chose the seed


@dataclass
class Chain:
    """Where a chain stands, a NamedTuple of arrays, and its random numbers."""

    state: Any
    rng: np.random.Generator

    def arrays(self) -> dict[str, Array]:
        """All that it is, apart from its generator: what a checkpoint keeps."""
        arrays: dict[str, Array] = self.state._asdict()
        return arrays


class Runner(Protocol):
    """Something that advances chains.

    One that has ``advance_together(chains, tuning, **draws)``, with arrays (chain, draw, …), is given all of them at
    once.
    """

    workers: int  # chains that may run at a time

    @property
    def advance(self) -> Callable[..., None]:
        """``advance(chain, tuning, **draws)`` fills the arrays (draw, …) that the run declares by name."""
        ...

    def adapt(self, chains: list[Any], states: Portion, done: float) -> None:
        """Learn from states of tuning so far, of which this part is done; when all is, everything stays as it is."""
        ...


class Run(ABC):
    """One run of chains, new or continued from a checkpoint.

    `settings` (`Gibbs`, or a classifier) have draws, tune, chains, target_ess, max_draws and checkpoint; `source` is a
    `Source` or has its fields. `shapes` are those of the arrays that make one draw, by name, and `identity` is all that
    must be the same for a checkpoint to be continued, besides the seed and common settings. The clock may have been
    started by what came before the chains. A run goes on to its target if it has one, or if it is open-ended until its
    predictions are settled, or good enough and more draws would gain little.
    """

    name = "Gibbs"  # what the progress bar calls it
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
        self.notes: list[str] = []  # what the limit of time has left out
        self.ended = ""  # why an open-ended run ended before its predictions had settled
        self.going = False  # whether rounds are under way, with a bar of their own
        self._begin_tuning()
        self.found: tuple[int, Any] = (-1, None)  # iterations at the last diagnosis, and what it found
        self.journal: Journal | None = None
        self.unwritten: list[tuple[Portion, int]] = []  # draws since the last record, and their iterations
        self.due = 0.0  # when the next record may be written
        if settings.checkpoint is not None:
            same = source.seed.entropy if source.seeded else None, settings.tune, settings.chains
            self._open(Path(settings.checkpoint), fingerprint(*same, *identity))

    @abstractmethod
    def probe(self, draws: Portion) -> Array:
        """Probabilities (chain, draw, observation, …) of some observations, by which convergence is judged."""

    @abstractmethod
    def measure(self, report: Report | None) -> Any:
        """R-hat and ESS of the draws so far, with `smallest_ess` and `worst_rhat`; None if they are too few."""

    def diagnose(self) -> Any:
        """The same, computed once; with a bar where it takes long."""
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
        """Contribution of each draw to the predictions that the fit returns."""
        return probability

    def measure_predictions(self) -> Any:
        """Diagnostics of predictions alone, computed again and again while an open-ended run goes on."""
        return diagnose(returned=self.returned, averaged=self.averaged, probability=self.probe(self.draws()))

    def remedies(self) -> str:
        """What may help besides a longer run."""
        return ""

    def advice(self, end: str | None) -> str | None:
        """What to say to the user of a run that went to its end or to a limit; None where it is good enough."""
        limit = "max_draws" if end is None and self.ended == LIMIT else end
        words = advice(self.diagnose(), self.settings, limit, self.remedies())
        if words is None or limit is None:
            return words
        ended = f"{type(self.settings).__name__}({limit}={getattr(self.settings, limit)})"
        thinned = f" (1 of every {self.store.thin} is kept)" if self.store.thin > 1 else ""
        return f"{ended} stopped the run after {self.store.iterations:,} iterations per chain{thinned}: {words}"

    def run(self, stacklevel: int) -> Portion:
        """The draws, with a warning, of the caller's `stacklevel`, where they are not all, or not good enough."""
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
        """What the limit of time has left out, in a sentence."""
        limit = self.settings.max_seconds  # None where the run of a checkpoint is continued without
        name = f"{type(self.settings).__name__}{'' if limit is None else f'(max_seconds={limit:g})'}"
        return [f"{name}: {'; '.join(self.notes)}"] if self.notes else []

    def _begin_tuning(self) -> None:
        """A store for what the runner learns from: states evenly spaced over tuning."""
        settings = self.settings
        thin = max(settings.tune * settings.chains // REMEMBERED, 1)
        self.remembered = Store(settings.chains, -(-settings.tune // thin), self.shapes, thin)
        self.tuned = 0
        self.milestones = {settings.tune * i // (2 * BEGINNINGS) for i in range(1, BEGINNINGS + 1)} | {settings.tune}
        if settings.tune == 0:
            self.runner.adapt(self.chains, self.remembered.filled(), 1.0)

    def _tuned(self, selected: Portion, n: int) -> None:
        """Take in so many iterations of tuning."""
        self.remembered.add(selected, n)
        self.tuned += n

    def _adapt(self) -> None:
        """At a milestone of tuning, let the runner learn."""
        if self.tuned in self.milestones:
            self.runner.adapt(self.chains, self.remembered.filled(), self.tuned / self.settings.tune)

    def _end_tuning(self) -> None:
        """End tuning where its share of the time is over; what has been learned so far stands."""
        self._write()
        self.notes.append(f"there was time for {self.tuned:,} of {self.settings.tune:,} iterations of tuning")
        self.settings = clone(self.settings).set_params(tune=self.tuned)
        self.runner.adapt(self.chains, self.remembered.filled(), 1.0)

    def go(self) -> str | None:
        """Tune, then draw until there is enough; what ended it early, if anything did."""
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
            pool.shutdown(wait=False, cancel_futures=True)  # after Ctrl-C a round may be under way

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
        """What was kept."""
        return self.store.filled()

    def kept(self) -> str:
        """What to say after an interruption."""
        thinned = f" (one in {self.store.thin} of {self.store.iterations:,})" if self.store.thin > 1 else ""
        return f"interrupted: the {self.store.count} draws of each chain made so far were kept{thinned}."

    def _to_next_check(self) -> int:
        """Iterations until the draws are looked at again."""
        if not self.goes_on:
            return self.settings.draws
        return next(check for check in self._checks() if check > self.store.iterations) - self.store.iterations

    def _at_a_check(self) -> bool:
        if not self.goes_on or self.store.iterations < self.settings.draws:
            return False
        return self.store.iterations == next(check for check in self._checks() if check >= self.store.iterations)

    def _checks(self) -> Iterator[int]:
        """Iterations at which ESS is computed: after draws, then whenever there are a quarter more."""
        check = self.settings.draws
        while True:
            yield check
            check += -(-check // 4)

    def enough(self) -> bool:
        """Whether every effective sample size has reached the target and the chains agree, or predictions are settled.

        An open-ended run also ends where predictions are good enough and more draws would gain little, and where a
        single chain has none to be compared with.
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
        """No iteration at all, in this thread: where it has to compile, Ctrl-C is heard."""
        nothing = empty(self.shapes, 1, 0)
        self.runner.advance(self.chains[0], False, **{name: array[0] for name, array in nothing.items()})

    def _round(self, pool: ThreadPoolExecutor, n: int) -> None:
        """So many iterations of every chain."""
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
        """A record of the draws since the last one and of where the chains stand: the larger that is, the rarer."""
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
        """Continue from the file if it holds this fit, or begin it."""
        self.journal = Journal(path)
        try:
            self._continue(path, self.journal, digest)
        except BaseException:
            self.close()
            raise

    def _continue(self, path: Path, journal: Journal, digest: str) -> None:
        """Go through the rounds of the file as if they came from the chains."""
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
        """Draws of a round, of which every so many were kept, as far as this run would go."""
        store, left = self.store, min(n, self.goal - self.store.iterations)
        while left:
            if store.room() == 0:
                store.halve()
            if store.thin < thin:
                name = type(self.settings).__name__
                raise CheckpointError(
                    f"{path} holds one draw in {thin} only, from a run that went on and kept fewer draws, "
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
