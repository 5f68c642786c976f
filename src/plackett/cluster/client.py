"""Which cluster: the Dask client that is in use, or a local cluster for the time of a fit; and who may take part."""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import platform
import signal
from collections.abc import Iterator
from multiprocessing import resource_tracker
from typing import Any

import numba
import numpy as np
import scipy

from plackett.compute.pieces import cores
from plackett.engines.device import present
from plackett.optional import optional

PATIENCE = 300.0  # seconds without any worker
Versions = dict[str, str]


class ClusterError(ValueError):
    """A cluster cannot be used, or was lost."""


def dask() -> Any:
    """The module dask, or an error that says how to get it."""
    return optional("dask", "a Dask collection")


def distributed() -> Any:
    """The module distributed, or an error that says how to get it."""
    return optional("distributed", "engine='dask'")


def in_use() -> Any:
    """The Dask client in use, or None."""
    try:
        return distributed().get_client()
    except ValueError:
        return None


@contextlib.contextmanager
def cluster() -> Iterator[Any]:
    """The client in use; where there is none, that of a local cluster, which ends with this.

    It has a process a core, or one for the GPU that is here.
    """
    client = in_use()
    if client is not None:
        threads_of(client)
        check_workers(client)
        yield client
        return
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise ClusterError(
            "engine='dask' starts processes, which read this script again: put what it does under "
            "if __name__ == '__main__':, or start a cluster by yourself and make a distributed.Client of its address."
        )
    module = distributed()
    # A worker that has nothing to do would take blocks of one that is still starting, and keep them.
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
    """Threads and processes begun here never hear Ctrl-C, which a terminal sends to all: it is for who began them.

    It is heard here afterwards.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # which unblocks the signal where it is begun
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def cluster_for(engine: str) -> contextlib.AbstractContextManager[Any]:
    """A cluster for the time of a fit, where the engine is one that needs it."""
    return cluster() if engine == "dask" else contextlib.nullcontext()


def versions() -> Versions:
    """What must be the same on all machines for answers to be the same."""
    import plackett
    from plackett.compute import compiled

    return {
        "plackett": plackett.__version__,
        "plackett's kernels": compiled.SOURCES[:12],
        "Python": ".".join(platform.python_version_tuple()[:2]),
        "NumPy": np.__version__,
        "SciPy": scipy.__version__,
        "Numba": numba.__version__,
    }


def check_versions(there: Versions, where: str) -> None:
    """Refuse a worker on which something has another version than here."""
    for name, here in versions().items():
        if there.get(name) != here:
            raise ClusterError(
                f"the worker {where} has {name} {there.get(name)}, and here it is {here}: sums and draws could differ "
                "without a word. Install the same versions on all machines."
            )


def threads_of(client: Any) -> dict[str, int]:
    """Of each worker, once there is one."""
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        raise ClusterError(f"{told(client)} has had no worker for {PATIENCE:.0f} seconds.") from None
    found: dict[str, int] = client.ncores()
    return found


def check_workers(client: Any) -> None:
    """Refuse workers without plackett, or with other versions of what computes; one that was lost is let go."""
    found: dict[str, Versions | Exception] = client.run(versions, on_error="return")
    for where, there in sorted(found.items()):
        if isinstance(there, ImportError):
            raise ClusterError(f"the workers of {told(client)} lack plackett ({there}). Install it on all.") from there
        if isinstance(there, OSError):
            continue
        if isinstance(there, Exception):
            raise there
        check_versions(there, where)


def told(client: Any) -> str:
    """The scheduler of a client, by its address."""
    return f"the Dask scheduler {client.scheduler.address if client.scheduler else '(closed)'}"
