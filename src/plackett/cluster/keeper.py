"""A keeper on every worker answers questions about the blocks there, without tasks of the scheduler.

Keepers are Dask actors, but calling an actor takes one turn of the client's event loop and several frames per worker,
together longer than a pass over a small block. Here a question to all keepers is one coroutine on the client's loop,
over Dask's own connections to its workers, with a message of one frame in each direction. A worker answers questions
that were fast before directly on its event loop: waking another thread takes half a millisecond after a pass, when the
caches are cold.
"""

from __future__ import annotations

import asyncio
import pickle
import time
import weakref
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any, NamedTuple

from plackett.cluster.client import Versions, check_versions, distributed
from plackett.cluster.dask_private import add_operation, as_data, ask_worker, in_actor_thread, loop_of, named_in_profile
from plackett.cluster.storage import Block

if TYPE_CHECKING:
    from distributed import Client

OPERATION = "plackett_ask"  # name of the message to a worker
LOOK = 1.0  # seconds between checks that the cluster is still there
LARGE = 1 << 20  # bytes from which Dask may split and compress a message
BRIEF = 0.02  # seconds for which a worker's event loop may be blocked
Question = Callable[..., Any]
Asked = tuple[Question, tuple[Any, ...], list[Any] | None]  # arguments for all blocks, and one for each


class Keeper:
    """Answer questions about the blocks of one worker."""

    def __init__(self, name: str, blocks: list[Block], here: Versions):
        worker = distributed().get_worker()
        check_versions(here, worker.address)
        self.name, self.blocks, self.worker = name, blocks, worker
        self.took: dict[Question, float] = {}  # seconds that the last answer took
        self.under_way = 0  # questions in the thread of actors
        _keepers[name] = self
        add_operation(worker, OPERATION, answer)

    def ask(self, asked: Asked) -> Any:
        """Return results of a question for every block, pickled; errors are returned as answers."""
        started = time.perf_counter()
        try:
            with named_in_profile(self.worker, self.name):
                return in_one_frame(self.find(*asked))
        except Exception as error:
            return as_answer(error)
        finally:
            self.took[asked[0]] = time.perf_counter() - started

    def find(self, question: Question, arguments: tuple[Any, ...], own: list[Any] | None) -> list[Any]:
        """Return results of a question for every block."""
        each = [()] * len(self.blocks) if own is None else [(one,) for one in own]
        found = []
        for block, one in zip(self.blocks, each, strict=True):
            found.append(question(block, *arguments, *one))
            block.give_back()
        return found


_keepers: weakref.WeakValueDictionary[str, Keeper] = weakref.WeakValueDictionary()  # of this process, by name


async def answer(keeper: str, asked: bytes) -> Any:
    """Return the answer of a keeper of this worker, or None if it is gone.

    Slow questions run in the thread of actors, which leaves the event loop free.
    """
    kept = _keepers.get(keeper)
    if kept is None:
        return None
    try:
        question: Asked = pickle.loads(asked)
    except Exception as error:
        return as_answer(error)
    if not kept.under_way and kept.took.get(question[0], BRIEF) < BRIEF:
        return kept.ask(question)
    kept.under_way += 1
    try:
        return await in_actor_thread(kept.worker, kept.ask, question)
    except RuntimeError:  # the executor of a closing worker refuses calls
        return None
    finally:
        kept.under_way -= 1


def as_answer(error: Exception) -> dict[str, Any]:
    """Return an error as an answer, which the client raises."""
    return {"error": as_data(error)}


def in_one_frame(message: object) -> Any:
    """Pickle a message into one frame; Dask would send every array in a separate frame."""
    pickled = pickle.dumps(message)
    return pickled if len(pickled) < LARGE else as_data(pickled)


class KeeperHandle(NamedTuple):
    """Address of a keeper, numbers of its blocks, and its future, which has the status."""

    numbers: list[int]
    address: str
    keeper: Any

    async def ask(self, client: Client, asked: object) -> Any:
        """Return the answer of this keeper."""
        return await ask_worker(client, self.address, OPERATION, keeper=self.keeper.key, asked=asked)


def ask_all(client: Client, asked: list[tuple[KeeperHandle, Any]]) -> list[list[Any] | None]:
    """Return answers of the keepers, each for its blocks; None for a lost keeper."""

    async def ask_each() -> list[Any]:
        there = (kept.ask(client, message) for kept, message in asked)
        return await asyncio.gather(*there, return_exceptions=True)

    answers = asyncio.run_coroutine_threadsafe(ask_each(), loop_of(client))
    try:
        while True:
            try:
                return [read(each) for each in answers.result(LOOK)]
            except TimeoutError:
                if client.status != "running":  # the scheduler is lost; Dask would retry for minutes
                    return [None] * len(asked)
    except CancelledError:  # the client was closed
        return [None] * len(asked)
    finally:
        answers.cancel()  # after Ctrl-C


def read(answer: Any) -> list[Any] | None:
    """Return the results in an answer, or None if the worker is lost; raises errors of the question."""
    if answer is None or isinstance(answer, OSError | asyncio.CancelledError):
        return None
    if isinstance(answer, BaseException):
        raise answer
    if isinstance(answer, dict):
        raise answer["error"]
    found: list[Any] = pickle.loads(answer)
    return found
