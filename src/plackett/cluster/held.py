"""Blocks held by workers, and questions to all of them.

A block is the result of a Dask task: if a worker is lost, Dask recomputes its blocks from their source on other
workers. A question does not become a task of the scheduler, which would take longer than a typical pass: it goes
directly to a `plackett.cluster.keeper.Keeper` on every worker. Keepers are disposable. If one does not answer, new
keepers are started where the blocks are then, and the question is repeated; its answer depends on the block alone.
"""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any

from plackett.cluster.client import PATIENCE, ClusterError, dask, distributed, scheduler_of, threads_of, versions
from plackett.cluster.dask_private import run_anywhere, threads_of_worker
from plackett.cluster.keeper import LOOK, Keeper, KeeperHandle, Question, ask_all, in_one_frame

if TYPE_CHECKING:
    from distributed import Client

ATTEMPTS = 20  # attempts in a row without an answer from another keeper


def threads_here() -> int:
    """Number of threads of the worker that runs this."""
    return threads_of_worker(distributed().get_worker())


def address_here() -> str:
    """Address of the worker that runs this."""
    return str(distributed().get_worker().address)


class Held:
    """Blocks as futures, in a fixed order; `each` puts a question to all of them."""

    def __init__(self, client: Client, blocks: Sequence[Any]):
        self.client, self.blocks = client, list(blocks)
        self.keepers: list[KeeperHandle] = []
        self._placing = threading.Lock()  # chains ask concurrently

    def each(self, question: Question, *arguments: Any, own: Sequence[Any] | None = None) -> list[Any]:
        """Return results of question(block, *arguments), in block order; `own` adds one argument per block."""
        found: dict[int, Any] = {}
        failed, for_all = 0, in_one_frame((question, arguments, None))
        while len(found) < len(self.blocks):
            with self._placing:
                if not self.keepers:
                    self._place_keepers()
                keepers = self.keepers
            asked = []
            for kept in keepers:
                if any(number not in found for number in kept.numbers) and kept.keeper.status == "finished":
                    each = None if own is None else [own[number] for number in kept.numbers]
                    asked.append((kept, for_all if own is None else in_one_frame((question, arguments, each))))
            before = len(found)
            for (kept, _), answer in zip(asked, ask_all(self.client, asked), strict=True):
                if answer is not None:
                    found.update(zip(kept.numbers, answer, strict=True))
            if keepers and len(found) < len(self.blocks):
                with self._placing:
                    self.keepers = [] if self.keepers is keepers else self.keepers
                failed = failed + 1 if len(found) == before else 0
                if failed == ATTEMPTS:
                    raise ClusterError(f"the workers of {scheduler_of(self.client)} were lost repeatedly.")
        return [found[number] for number in range(len(self.blocks))]

    def fetch(self) -> list[Any]:
        """Return the blocks themselves, which must be small."""
        self._wait()
        found: list[Any] = self._sure(self.client.gather, self.blocks)
        return found

    def _place_keepers(self) -> None:
        """Start a keeper on every worker that holds blocks."""
        self._wait()
        where = self._sure(self.client.who_has, self.blocks)
        groups: dict[str, list[int]] = {}
        for number, block in enumerate(self.blocks):
            holders = where.get(block.key, ())
            if not holders:
                return  # lost in the meantime; the caller tries again
            groups.setdefault(sorted(holders)[0], []).append(number)
        here, futures = versions(), []
        for worker, numbers in groups.items():
            name = f"plackett-keeper-{worker}-{time.monotonic_ns()}"
            keeper = self.client.submit(
                Keeper, name, [self.blocks[number] for number in numbers], here,
                key=name, actor=True, pure=False, workers=[worker], allow_other_workers=True,
            )  # fmt: skip
            futures.append(keeper)
        if not self._begun(futures, set(groups)):
            return
        where = self._sure(self.client.who_has, futures)
        if all(where.get(keeper.key) for keeper in futures):
            places = [where[keeper.key][0] for keeper in futures]
            self.keepers = [KeeperHandle(*each) for each in zip(groups.values(), places, futures, strict=True)]

    def _begun(self, keepers: list[Any], workers: set[str]) -> bool:
        """Wait for the keepers; False if a worker was lost, since its keeper may never start."""
        while True:
            try:
                self._sure(distributed().wait, keepers, timeout=LOOK)
            except TimeoutError:
                if workers <= set(self._sure(self.client.ncores)):
                    continue
                self._sure(self.client.cancel, keepers)
                return False
            errors = [keeper.exception() for keeper in keepers if keeper.status == "error"]
            for error in errors:
                if not isinstance(error, RuntimeError):  # raised by Dask for an actor whose worker is lost
                    raise error
            return not errors

    def _wait(self) -> None:
        """Wait for all blocks; raises if one cannot be computed, or if no worker is left for too long."""
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
                    raise ClusterError(
                        f"{scheduler_of(self.client)} has had no worker for {PATIENCE:.0f} seconds."
                    ) from None
                continue
            break
        for block in self.blocks:
            if block.status == "error":
                raise block.exception()

    def _sure(self, call: Callable[..., Any], *arguments: object, **named: object) -> Any:
        """Call the scheduler; raises `ClusterError` if it is lost."""
        try:
            return call(*arguments, **named)
        except TimeoutError:
            raise
        except (OSError, CancelledError, asyncio.CancelledError) as error:
            raise lost(self.client) from error


def later(function: Question, *arguments: Any) -> Any:
    """Return a delayed call, which Dask runs where its arguments are stored."""
    return dask().delayed(function, pure=False)(*arguments)


def made(client: Client, name: str, make: Question, arguments: Iterable[tuple[Any, ...]], count: int) -> Held:
    """Compute `count` blocks make(*arguments), distributed over the workers by their threads."""
    workers = shared_out(threads_of(client), count)
    token, blocks = uuid.uuid4().hex[:8], []
    with dask().config.set({"distributed.admin.large-graph-warning-threshold": "1TiB"}):  # the user's rows
        for number, each in enumerate(arguments):
            task = dask().delayed(make, pure=False)(*each, dask_key_name=f"plackett-{name}-{token}-{number}")
            blocks.append(client.compute(task, workers=[workers[number]], allow_other_workers=True))
    return Held(client, blocks)


def shared_out(threads: dict[str, int], count: int) -> list[str]:
    """Assign workers to blocks in turn, in proportion to their threads.

    Without this, an idle worker would steal blocks from others and keep them, and every pass would wait for it.
    """
    total = sum(threads.values())
    turns = [((i + 0.5) / n, worker) for worker, n in threads.items() for i in range(count * n // total + 1)]
    return [worker for _, worker in sorted(turns)[:count]]


def lost(client: Client) -> ClusterError:
    """Return the error for a lost scheduler."""
    return ClusterError(
        f"{scheduler_of(client)} was lost, and with it the rows. Start it again and fit again; chains with "
        "Gibbs(checkpoint=...) go on where they were, with the same draws."
    )
