"""Dask client of a fit, or a temporary local cluster; checks that all workers compute alike."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import platform
import signal
from collections.abc import Iterator
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
import scipy

from plackett import __version__
from plackett.compute import compiled
from plackett.compute.pieces import cores
from plackett.engines.device import present
from plackett.optional import optional

if TYPE_CHECKING:
    from distributed import Client

PATIENCE = 300.0  # seconds without any worker
Versions = dict[str, str]


class ClusterError(ValueError):
    """Raised if a cluster cannot be used, or was lost."""


def dask() -> Any:
    """Return the module dask, or raise an error that says how to install it."""
    return optional("dask", "a Dask collection")


def distributed() -> Any:
    """Return the module distributed, or raise an error that says how to install it."""
    return optional("distributed", "engine='dask'")


def in_use() -> Any:
    """The current Dask client, or None."""
    try:
        return distributed().get_client()
    except ValueError:
        return None


@contextlib.contextmanager
def cluster() -> Iterator[Client]:
    """The current client, or the client of a local cluster that is closed on exit.

    A local cluster has one process per core, or one process if this machine has a GPU.
    """
    client = in_use()
    if client is not None:
        threads_of(client)
        check_workers(client)
        yield client
        return
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise ClusterError(
            "engine='dask' starts processes, which run this script again: put its code under "
            "if __name__ == '__main__':, or start a cluster yourself and create a distributed.Client with its address."
        )
    module = distributed()
    # An idle worker would steal blocks from one that is still starting, and keep them.
    with deaf_to_interrupts(), dask().config.set({"distributed.scheduler.work-stealing": False}):
        workers = module.LocalCluster(
            n_workers=1 if present() else cores(),
            threads_per_worker=cores() if present() else 1,
            dashboard_address="127.0.0.1:0",
            silence_logs=logging.CRITICAL,
        )
    try:
        with module.Client(workers, direct_to_workers=True) as client:
            yield client
    finally:
        workers.close()


@contextlib.contextmanager
def deaf_to_interrupts() -> Iterator[None]:
    """Block Ctrl-C in threads and processes started here; a terminal sends it to all processes of a group.

    The calling thread receives a pending interrupt on exit.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # its start unblocks the signal
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def cluster_for(engine: str) -> contextlib.AbstractContextManager[Any]:
    """Return a context with a cluster if the engine needs one."""
    return cluster() if engine == "dask" else contextlib.nullcontext()


def versions() -> Versions:
    """Versions that must agree on all machines for results to agree."""
    return {
        "plackett": __version__,
        "plackett's kernels": compiled.SOURCES[:12],
        "Python": ".".join(platform.python_version_tuple()[:2]),
        "NumPy": np.__version__,
        "SciPy": scipy.__version__,
        "Numba": numba.__version__,
    }


def check_versions(there: Versions, where: str) -> None:
    """Raise if a worker has another version of anything than this process."""
    for name, here in versions().items():
        if there.get(name) != here:
            raise ClusterError(
                f"the worker {where} has {name} {there.get(name)}, and here it is {here}: sums and draws could differ "
                "silently. Install the same versions on all machines."
            )


def threads_of(client: Client) -> dict[str, int]:
    """Number of threads of each worker; waits for the first one."""
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        raise ClusterError(f"{scheduler_of(client)} has had no worker for {PATIENCE:.0f} seconds.") from None
    found: dict[str, int] = client.ncores()
    return found


def check_workers(client: Client) -> None:
    """Raise for workers without plackett, or with other versions; ignores workers that were lost."""
    found: dict[str, Versions | Exception] = client.run(versions, on_error="return")
    for where, there in sorted(found.items()):
        match there:
            case ImportError():
                words = f"the workers of {scheduler_of(client)} lack plackett ({there}). Install it on all."
                raise ClusterError(words) from there
            case OSError():
                continue
            case Exception():
                raise there
            case _:
                check_versions(there, where)


def scheduler_of(client: Client) -> str:
    """Name the scheduler of a client and its address, for messages."""
    return f"the Dask scheduler {client.scheduler.address if client.scheduler else '(closed)'}"
