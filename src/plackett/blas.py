"""One BLAS thread inside fits: their products are small, and threads of BLAS beside threads of chains wait in turn."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from functools import cache

from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]

_lock = threading.Lock()
_held: list[contextlib.ExitStack] = []  # by the fits that are under way: what gives the threads back


@cache
def _libraries() -> ThreadpoolController:
    import scipy.linalg  # noqa: F401  # has a BLAS of its own, which must be loaded to be found

    return ThreadpoolController()


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread; of several fits at a time, the last to end gives the threads back.

    Examples
    --------
    >>> from threadpoolctl import threadpool_info
    >>> from plackett.blas import one_blas_thread
    >>> with one_blas_thread():
    ...     {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}
    {1}
    """
    with _lock:
        held = _held[0] if _held else contextlib.ExitStack()
        if not _held:
            held.enter_context(_libraries().limit(limits=1, user_api="blas"))
        _held.append(held)
    try:
        yield
    finally:
        with _lock:
            if len(_held) == 1:
                held.close()
            _held.remove(held)
