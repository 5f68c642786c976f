"""Blocks beyond a worker's memory: their values lie in a file of the worker's local folder, mapped into memory.

The file has no name from the start, where the system allows that, and is gone with the block or the process. After a
pass its pages are given back: Dask counts them as memory of the worker, and would end it.
"""

from __future__ import annotations

import mmap
import tempfile
from typing import Any

import numpy as np
import numpy.typing as npt

from plackett.cluster.client import distributed
from plackett.engines.placed import PlacedRows

Numbers = npt.NDArray[np.floating]
KEPT = 0.5  # of a worker's memory limit that may be in use before blocks go to files


class MappedBlock(PlacedRows):
    """A block whose values lie in a file; where it is sent to another worker they travel with it."""

    mapping: mmap.mmap | None = None

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        return state | {"mapping": None, "panels": self.panels._replace(values=np.array(self.panels.values))}

    def give_back(self) -> None:
        """Let go of the pages that a pass has read."""
        if self.mapping is not None:
            let_go(self.mapping)


def let_go(mapping: mmap.mmap) -> None:
    """Of the pages that were read."""
    if hasattr(mmap, "MADV_DONTNEED"):
        mapping.madvise(mmap.MADV_DONTNEED)


def written(values: Numbers, folder: str) -> tuple[Numbers, mmap.mmap]:
    """The same numbers in a file of this folder, and its mapping."""
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(memoryview(values).cast("B"))  # type: ignore[arg-type]
        file.flush()
        mapping = mmap.mmap(file.fileno(), values.nbytes)
    return np.frombuffer(mapping, dtype=values.dtype).reshape(values.shape), mapping


def in_file(rows: PlacedRows, folder: str) -> MappedBlock:
    """The block with its values in a file of this folder."""
    block = MappedBlock.__new__(MappedBlock)
    vars(block).update(vars(rows))
    values, block.mapping = written(rows.panels.values, folder)
    block.panels = rows.panels._replace(values=values)
    return block


def folder_for_files() -> str | None:
    """Of the worker on which this runs, where that has little memory left."""
    worker = distributed().get_worker()
    limit = worker.memory_manager.memory_limit
    if not limit or worker.monitor.get_process_memory() <= KEPT * limit:
        return None
    return str(worker.local_directory)


def settled(rows: PlacedRows) -> PlacedRows:
    """In memory, or in a file of the worker on which this runs where that has little memory left."""
    folder = folder_for_files()
    return rows if folder is None else in_file(rows, folder)


def give_back(rows: PlacedRows) -> None:
    """After a pass."""
    if isinstance(rows, MappedBlock):
        rows.give_back()
