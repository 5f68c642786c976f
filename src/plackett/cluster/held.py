"""Blocks that the workers hold, and questions to all of them.

A block is the result of a Dask task: where a worker is lost, Dask makes its blocks again, from their source, on others.
A question does not go through the scheduler's tasks, which would take longer than many a pass: on every worker a
`Keeper` knows the blocks there, and is asked directly. Keepers are disposable. When one does not answer, new ones are
made where the blocks are by then, and the question, whose answer is a function of the block alone, is put again.
"""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError
from typing import Any

from plackett.cluster.client import (
    PATIENCE,
    ClusterError,
    Versions,
    check_versions,
    distributed,
    threads_of,
    told,
    versions,
)
from plackett.cluster.storage import Block

ATTEMPTS = 20  # in a row at which not one keeper more has answered
LOOK = 1.0  # seconds between looks whether the cluster is still there
Question = Callable[..., Any]


class Keeper:
    """Knows the blocks of one worker."""

    def __init__(self, blocks: list[Block], here: Versions):
        check_versions(here, address_here())
        self.blocks = blocks

    def ask(self, asked: bytes, each: list[Any] | None) -> bytes:
        """What a pickled (question, arguments) gives for every block, in one piece; `each` has more, block by block.

        Dask would send every array in a frame of its own, which takes longer than a pass over a small block.
        """
        question, arguments = pickle.loads(asked)
        own = [()] * len(self.blocks) if each is None else [(one,) for one in each]
        found = []
        for block, one in zip(self.blocks, own, strict=True):
            found.append(question(block, *arguments, *one))
            block.give_back()
        return pickle.dumps(found)


def threads_here() -> int:
    """Threads of the worker on which this runs."""
    return int(distributed().get_worker().state.nthreads)


def address_here() -> str:
    """Address of the worker on which this runs."""
    return str(distributed().get_worker().address)


class Held:
    """Blocks as futures, in a fixed order; `each` asks all of them."""

    def __init__(self, client: Any, blocks: Sequence[Any]):
        self.client, self.blocks = client, list(blocks)
        self.keepers: list[tuple[list[int], Any]] = []
        self._placing = threading.Lock()  # chains ask side by side

    def each(self, question: Question, *arguments: Any, own: Sequence[Any] | None = None) -> list[Any]:
        """What question(block, *arguments) gives, in the order of the blocks; `own` has one more argument for each."""
        found: dict[int, Any] = {}
        failed, in_one_piece = 0, pickle.dumps((question, arguments))
        while len(found) < len(self.blocks):
            with self._placing:
                if not self.keepers:
                    self._place_keepers()
                keepers = self.keepers
            before, asked = len(found), []
            for numbers, keeper in keepers:
                if any(number not in found for number in numbers):
                    each = None if own is None else [own[number] for number in numbers]
                    asked.append((numbers, self._ask(keeper, in_one_piece, each)))
            lost = False
            for numbers, answer in asked:
                try:
                    found.update(zip(numbers, pickle.loads(answer.result()), strict=True))
                except (OSError, CancelledError, asyncio.CancelledError, _Gone):
                    lost = True
            if lost:
                with self._placing:
                    self.keepers = [] if self.keepers is keepers else self.keepers
                failed = failed + 1 if len(found) == before else 0
                if failed == ATTEMPTS:
                    raise ClusterError(f"the workers of {told(self.client)} were lost again and again.")
        return [found[number] for number in range(len(self.blocks))]

    def fetch(self) -> list[Any]:
        """The blocks themselves, where they are small."""
        self._wait()
        found: list[Any] = self._sure(self.client.gather, self.blocks)
        return found

    def _ask(self, keeper: Any, *question: Any) -> Any:
        try:
            return keeper.ask(*question)
        except RuntimeError:  # Dask's word for a worker that is gone
            return _Gone()

    def _place_keepers(self) -> None:
        """A keeper on every worker that has blocks."""
        self._wait()
        where = self._sure(self.client.who_has, self.blocks)
        groups: dict[str, list[int]] = {}
        for number, block in enumerate(self.blocks):
            holders = where.get(block.key, ())
            if not holders:
                return  # lost since; the caller tries again
            groups.setdefault(sorted(holders)[0], []).append(number)
        here = versions()
        futures = [
            self.client.submit(
                Keeper, [self.blocks[number] for number in numbers], here, actor=True, workers=[worker],
                allow_other_workers=True, pure=False, key=f"plackett-keeper-{worker}-{time.monotonic_ns()}",
            )
            for worker, numbers in groups.items()
        ]  # fmt: skip
        if self._begun(futures, set(groups)):
            with contextlib.suppress(RuntimeError):  # Dask's word for a worker that is gone
                self.keepers = list(zip(groups.values(), self._sure(self.client.gather, futures), strict=True))

    def _begun(self, keepers: list[Any], workers: set[str]) -> bool:
        """Whether all keepers are there; one whose worker was lost meanwhile may never be."""
        while True:
            try:
                self._sure(distributed().wait, keepers, timeout=LOOK)
            except TimeoutError:
                if workers <= set(self._sure(self.client.ncores)):
                    continue
                self._sure(self.client.cancel, keepers)
                return False
            return True

    def _wait(self) -> None:
        """Until all blocks are there; an error where one cannot be made, or nobody is left to make it."""
        module = distributed()
        last = time.monotonic()
        while True:
            try:
                self._sure(module.wait, self.blocks, timeout=LOOK)
            except TimeoutError:
                if self._sure(self.client.ncores):
                    last = time.monotonic()
                    self._sure(self.client.run_on_scheduler, run_anywhere)
                elif time.monotonic() - last > PATIENCE:
                    raise ClusterError(f"{told(self.client)} has had no worker for {PATIENCE:.0f} seconds.") from None
                continue
            break
        for block in self.blocks:
            if block.status == "error":
                raise block.exception()

    def _sure(self, call: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        """Ask the scheduler, or say that it was lost."""
        try:
            return call(*arguments, **named)
        except TimeoutError:
            raise
        except (OSError, CancelledError, asyncio.CancelledError) as error:
            raise lost(self.client) from error


def made(client: Any, name: str, make: Question, arguments: Iterable[tuple[Any, ...]], count: int) -> Held:
    """Blocks make(*arguments), so many, on the workers in turn: of equal blocks each has its share."""
    import dask

    threads = threads_of(client)
    turns = [worker for worker in sorted(threads) for _ in range(threads[worker])]
    token, blocks = uuid.uuid4().hex[:8], []
    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TiB"}):  # rows of a user's array
        for number, each in enumerate(arguments):
            task = dask.delayed(make, pure=False)(*each, dask_key_name=f"plackett-{name}-{token}-{number}")
            worker = turns[number * len(turns) // count]
            blocks.append(client.compute(task, workers=[worker], allow_other_workers=True))
    return Held(client, blocks)


def run_anywhere(dask_scheduler: Any) -> None:
    """Let tasks begin for which other workers would do.

    Where all workers are lost at once, Dask gives those that come later only what was meant for them.
    """
    stuck = [task.key for task in dask_scheduler.unrunnable if task.loose_restrictions]
    dask_scheduler.set_restrictions(dict.fromkeys(stuck))
    dask_scheduler.transitions(dict.fromkeys(stuck, "processing"), f"plackett-{time.monotonic_ns()}")


class _Gone(Exception):
    """Stands for the answer of a keeper whose worker is gone."""

    def result(self) -> Any:
        raise self


def lost(client: Any) -> ClusterError:
    """The scheduler is gone."""
    return ClusterError(
        f"{told(client)} was lost, and with it the rows. Start it again and fit again; chains with "
        "Gibbs(checkpoint=...) go on where they were, with the same draws."
    )
