"""Undocumented parts of Dask that plackett uses, each with its reason.

`RELIED_ON` lists the names; tests/test_private_names.py looks for every one of them in the Dask that is installed.
pyproject.toml bounds the releases of Dask from above for their sake.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from plackett.optional import optional

if TYPE_CHECKING:
    from distributed import Client, Worker

RELIED_ON = (
    ("Worker", "handlers", "answer questions about blocks without a task of the scheduler"),
    ("Worker", "executors.actor", "answer long questions in the thread of actors, so that the loop stays free"),
    ("Worker", "active_threads", "name what runs in the profile of the dashboard"),
    ("Worker", "active_threads_lock", "name what runs in the profile of the dashboard"),
    ("Worker", "_instances", "find the worker of this process outside tasks, when a block arrives"),
    ("Worker", "state.nthreads", "know how many threads a worker has, from within a task"),
    ("Worker", "memory_manager.memory_limit", "put blocks in files before Dask ends the worker"),
    ("Worker", "monitor.get_process_memory", "put blocks in files before Dask ends the worker"),
    ("Worker", "local_directory", "put blocks in files of the folder that Dask gave the worker"),
    ("Client", "rpc", "ask a worker through the connections that the client has"),
    ("Client", "direct_to_workers", "know whether the client may reach workers"),
    ("Client", "scheduler.proxy", "ask a worker through the scheduler where the client cannot reach it"),
    ("Client", "loop.asyncio_loop", "put one question to all workers in one turn of the loop"),
    ("Scheduler", "unrunnable", "let blocks be made again after all workers were lost at once"),
    ("Scheduler", "set_restrictions", "let blocks be made again after all workers were lost at once"),
    ("Scheduler", "transitions", "let blocks be made again after all workers were lost at once"),
    ("TaskState", "loose_restrictions", "let blocks be made again after all workers were lost at once"),
    ("DataFrame", "expr", "know whether labels come from the same data frame as X"),
    ("DataFrame", "_meta", "know names and types of the columns without reading a row"),
    ("dask.dataframe.dask_expr._expr", "are_co_aligned", "know whether labels come from the same data frame as X"),
    ("distributed.protocol", "to_serialize", "send an error, or a large answer, as Dask sends data"),
)  # object, name, and use in plackett


def worker_here() -> Any:
    """Return the worker of this process, or None; `distributed.get_worker` works inside tasks only."""
    return next(iter(optional("distributed", "a block on a worker").Worker._instances), None)


def threads_of_worker(worker: Worker) -> int:
    """Return the number of threads that run the tasks of a worker."""
    return int(worker.state.nthreads)


def memory_used(worker: Worker) -> float:
    """Return the fraction of a worker's memory limit that its process uses; 0 without a limit."""
    limit = worker.memory_manager.memory_limit
    return worker.monitor.get_process_memory() / limit if limit else 0.0


def folder_of(worker: Worker) -> str:
    """Return the local folder of a worker."""
    return str(worker.local_directory)


def add_operation(worker: Worker, name: str, handler: Callable[..., Any]) -> None:
    """Let a worker answer messages of this name, as Dask's own shuffle does."""
    worker.handlers[name] = handler


def in_actor_thread(worker: Worker, function: Callable[..., Any], *arguments: object) -> asyncio.Future[Any]:
    """Run a function in the thread of actors; called on the worker's loop."""
    return asyncio.get_running_loop().run_in_executor(worker.executors["actor"], function, *arguments)


@contextmanager
def named_in_profile(worker: Worker, name: str) -> Iterator[None]:
    """Show what runs in this thread under a name in the dashboard's profile."""
    thread = threading.get_ident()
    with worker.active_threads_lock:
        worker.active_threads[thread] = name
    try:
        yield
    finally:
        with worker.active_threads_lock:
            del worker.active_threads[thread]


async def ask_worker(client: Client, address: str, operation: str, **message: object) -> Any:
    """Send a message to a worker and return its answer; through the scheduler if workers are not reachable."""
    if client.direct_to_workers:
        return await getattr(client.rpc(address), operation)(**message)
    return await client.scheduler.proxy(worker=address, msg={"op": operation, **message})


def loop_of(client: Client) -> asyncio.AbstractEventLoop:
    """Return the event loop of a client."""
    loop: asyncio.AbstractEventLoop = client.loop.asyncio_loop
    return loop


def as_data(value: object) -> Any:
    """Mark a part of a message for serialisation as data."""
    return optional("distributed.protocol", "a message to a worker").to_serialize(value)


def run_anywhere(dask_scheduler: Any) -> None:
    """Run tasks that wait for lost workers on other workers; runs on the scheduler.

    If all workers are lost at once, Dask assigns later workers only the tasks meant for them.
    """
    stuck = [task.key for task in dask_scheduler.unrunnable if task.loose_restrictions]
    dask_scheduler.set_restrictions(dict.fromkeys(stuck))
    dask_scheduler.transitions(dict.fromkeys(stuck, "processing"), f"plackett-{time.monotonic_ns()}")


def same_rows(frame: Any, series: Any) -> bool:
    """True if two Dask data frames or series derive from one data frame, row by row."""
    from dask.dataframe.dask_expr._expr import are_co_aligned

    return bool(are_co_aligned(frame.expr, series.expr))


def empty_frame(frame: Any) -> Any:
    """Return an empty pandas data frame with the columns of a Dask data frame."""
    return frame._meta
