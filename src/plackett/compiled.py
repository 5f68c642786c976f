"""The one place that compiles: Numba options, the cache beside the package, and word of a slow first start."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import numba

# Sums may be reordered and fused for vector units; infinities and NaN keep their meaning.
FAST = {"contract", "reassoc", "nsz", "arcp"}


def jit(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """`numba.njit` that releases the interpreter lock and caches where a cache can be written.

    A function with FAST sums that other kernels call takes ``forceinline=True``. Each cached kernel holds its own copy
    of what it calls; where copies are vectorised differently, one that was just compiled would round differently from
    one that was loaded, and a seed give other draws the first time.
    """
    if function is None:
        return lambda f: jit(f, **options)
    options = {"nogil": True, "error_model": "numpy", **options}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # neither the package's folder nor the user's cache folder can be written
        return numba.njit(**options)(function)


WORD = "plackett: compiling the kernels; this happens once, later runs load them from the cache\n"
_said = threading.Event()


def _say() -> None:
    if not _said.is_set():
        _said.set()
        sys.stderr.write(WORD)


def call(kernel: Any, *args: Any) -> Any:
    """Call a compiled function; where its first call takes over a second, a line on standard error says why."""
    if kernel.signatures:
        return kernel(*args)
    timer = threading.Timer(1.0, _say)
    timer.daemon = True
    timer.start()
    try:
        return kernel(*args)
    finally:
        timer.cancel()
