"""Division of rows among cores in pieces that fit in cache; matrix products of a piece use one thread."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from plackett.compute.blas import one_blas_thread
from plackett.model.race import Array

MANY_ROWS = 10_000  # number of rows from which columns are divided among threads
LIMITS = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "LOKY_MAX_CPU_COUNT")  # environment variables that limit threads
ROWS, COLUMNS = 256, 256  # of a tile of a matrix product: half a megabyte


def over_rows(work: Callable[[Any], Array], blocks: Iterable[Any], many: bool) -> Array:
    """Apply work to pieces of the rows of blocks and concatenate the results; use all cores for many rows.

    Blocks are arrays or CSR rows.
    """

    def pieces(block: Any) -> Iterable[Any]:
        return (block[start : start + ROWS].astype(np.float64, copy=False) for start in range(0, block.shape[0], ROWS))

    if not many:
        return np.concatenate([work(piece) for block in blocks for piece in pieces(block)])
    found: list[Array] = []
    with one_blas_thread(), ThreadPoolExecutor(cores()) as pool:
        for block in blocks:
            found += pool.map(work, pieces(block))
    return np.concatenate(found)


def over_columns(work: Callable[..., Any], X: Array, *more: Iterable[Any]) -> list[Any]:
    """Apply work to each column and its arguments, on all cores for many rows."""
    if len(X) < MANY_ROWS:
        return list(map(work, X.T, *more))
    with ThreadPoolExecutor(cores()) as pool:
        return list(pool.map(work, X.T, *more))


def cores() -> int:
    """Return the number of cores for this process; joblib's limits of its workers count, to avoid oversubscription.

    Examples
    --------
    >>> import os
    >>> from plackett.compute.pieces import cores
    >>> 1 <= cores() <= os.cpu_count()
    True
    """
    present = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limits = [os.environ.get(name, "") for name in LIMITS]
    return max(min([present, *(int(limit) for limit in limits if limit.isdigit())]), 1)
