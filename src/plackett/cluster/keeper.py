"""A keeper on every worker: it knows the blocks there, and is asked directly, not through tasks of the scheduler.

Keepers live as Dask's actors do, but a call of an actor costs a turn of the client's loop and several frames for each
worker, which together take longer than a pass over a small block. Here a question to all keepers is one coroutine on
the client's loop, through the connections that Dask has to its workers, with a message of one frame there and back. A
worker answers at once, on its loop, what took it little time before: waking another thread takes half a millisecond
after a pass, when nothing is in the caches.
"""

from __future__ import annotations

import asyncio
import pickle
import time
import weakref
from collections.abc import Callable
from concurrent.futures import CancelledError
from typing import Any, NamedTuple

from plackett.cluster.client import Versions, check_versions, distributed
from plackett.cluster.dask_private import add_operation, as_data, ask_worker, in_actor_thread, loop_of, named_in_profile
from plackett.cluster.storage import Block

OPERATION = "plackett_ask"  # of a worker
LOOK = 1.0  # seconds between looks whether the cluster is still there
LARGE = 1 << 20  # bytes; Dask may send more in pieces, and compressed
BRIEF = 0.02  # seconds for which nobody minds that the loop of a worker hears nothing
Question = Callable[..., Any]
Asked = tuple[Question, tuple[Any, ...], list[Any] | None]  # with what, and with what more of each block


class Keeper:
    """Knows the blocks of one worker."""

    def __init__(self, name: str, blocks: list[Block], here: Versions):
        worker = distributed().get_worker()
        check_versions(here, worker.address)
        self.name, self.blocks, self.worker = name, blocks, worker
        self.took: dict[Question, float] = {}  # seconds, when it was last asked
        self.under_way = 0  # questions that are not answered on the loop
        _keepers[name] = self
        add_operation(worker, OPERATION, answer)

    def ask(self, asked: Asked) -> Any:
        """What a question gives for every block, pickled; an error of a question is an answer as well."""
        started = time.perf_counter()
        try:
            with named_in_profile(self.worker, self.name):
                return in_one_frame(self.find(*asked))
        except Exception as error:
            return as_answer(error)
        finally:
            self.took[asked[0]] = time.perf_counter() - started

    def find(self, question: Question, arguments: tuple[Any, ...], own: list[Any] | None) -> list[Any]:
        """What a question gives for every block."""
        each = [()] * len(self.blocks) if own is None else [(one,) for one in own]
        found = []
        for block, one in zip(self.blocks, each, strict=True):
            found.append(question(block, *arguments, *one))
            block.give_back()
        return found


_keepers: weakref.WeakValueDictionary[str, Keeper] = weakref.WeakValueDictionary()  # of this process, by name


async def answer(keeper: str, asked: bytes) -> Any:
    """What a keeper of this worker says; None where it is gone.

    What may take long is answered from the thread of actors: the loop stays free.
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
    except RuntimeError:  # the executor of a worker that closes takes no more
        return None
    finally:
        kept.under_way -= 1


def as_answer(error: Exception) -> dict[str, Any]:
    """Which the client raises."""
    return {"error": as_data(error)}


def in_one_frame(message: Any) -> Any:
    """Pickled: Dask would send every array in a frame of its own."""
    pickled = pickle.dumps(message)
    return pickled if len(pickled) < LARGE else as_data(pickled)


class Kept(NamedTuple):
    """Where a keeper is, by the numbers of its blocks; the future says whether it still is."""

    numbers: list[int]
    address: str
    keeper: Any

    async def ask(self, client: Any, asked: Any) -> Any:
        """Its answer."""
        return await ask_worker(client, self.address, OPERATION, keeper=self.keeper.key, asked=asked)


def ask_all(client: Any, asked: list[tuple[Kept, Any]]) -> list[list[Any] | None]:
    """What the keepers found, each for its blocks; None from one that is lost."""

    async def ask_each() -> list[Any]:
        there = (kept.ask(client, message) for kept, message in asked)
        return await asyncio.gather(*there, return_exceptions=True)

    answers = asyncio.run_coroutine_threadsafe(ask_each(), loop_of(client))
    try:
        while True:
            try:
                return [read(each) for each in answers.result(LOOK)]
            except TimeoutError:
                if client.status != "running":  # the scheduler is lost; Dask would try to reach it for minutes
                    return [None] * len(asked)
    except CancelledError:  # the client was closed
        return [None] * len(asked)
    finally:
        answers.cancel()  # where Ctrl-C came first


def read(answer: Any) -> list[Any] | None:
    """What was found, or None where a worker is lost; errors of questions are raised here."""
    if answer is None or isinstance(answer, OSError | asyncio.CancelledError):
        return None
    if isinstance(answer, BaseException):
        raise answer
    if isinstance(answer, dict):
        raise answer["error"]
    found: list[Any] = pickle.loads(answer)
    return found
