"""One BLAS thread inside fits: their matrix products are small, and BLAS threads would compete with those of chains."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from functools import cache

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

_limited = threading.Lock()


@cache
def _libraries() -> ThreadpoolController:
    import scipy.linalg  # noqa: F401  # has a BLAS of its own, which must be loaded to be found

    return ThreadpoolController()


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread. Among concurrent fits the first sets the limit and removes it.

    Examples
    --------
    >>> from threadpoolctl import threadpool_info
    >>> from plackett.compute.blas import one_blas_thread
    >>> with one_blas_thread():
    ...     {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}
    {1}
    """
    if not _limited.acquire(blocking=False):
        yield
        return
    try:
        with _libraries().limit(limits=1, user_api="blas"):
            yield
    finally:
        _limited.release()
