"""Rows shared out to the cores in pieces that stay in cache; the matrix products of a piece keep to one thread."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import numpy.typing as npt

from plackett.compute.blas import one_blas_thread
from plackett.model.race import Array

ROWS, COLUMNS = 256, 256  # of a tile of a matrix product: half a megabyte


def over_rows(work: Callable[[Array], Array], blocks: Iterable[npt.NDArray[np.floating]], many: bool) -> Array:
    """The results of work for pieces of the rows of blocks, one below the other; on all cores if there are many."""

    def pieces(block: npt.NDArray[np.floating]) -> Iterable[Array]:
        return (np.asarray(block[start : start + ROWS], dtype=np.float64) for start in range(0, len(block), ROWS))

    if not many:
        return np.concatenate([work(piece) for block in blocks for piece in pieces(block)])
    found: list[Array] = []
    with one_blas_thread(), ThreadPoolExecutor(cores()) as pool:
        for block in blocks:
            found += pool.map(work, pieces(block))
    return np.concatenate(found)


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
