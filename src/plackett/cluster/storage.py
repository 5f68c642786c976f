"""Blocks beyond a worker's memory: their values lie in a file of the worker's local folder, mapped into memory.

The file has no name from the start, where the system allows that, and is gone with the block or the process. After a
question its pages are given back: Dask counts them as memory of the worker, and would end it.
"""

from __future__ import annotations

import mmap
import tempfile
from typing import Any

import numpy as np

from plackett.cluster.client import distributed
from plackett.engines.placed import PlacedRows

KEPT = 0.5  # of a worker's memory limit that may be in use before blocks go to files


class MappedBlock(PlacedRows):
    """A block whose values lie in a file; where it is sent to another worker they travel with it."""

    mapping: mmap.mmap | None = None

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        return state | {"mapping": None, "panels": self.panels._replace(values=np.array(self.panels.values))}

    def give_back(self) -> None:
        """Let go of the pages that a question has read."""
        if self.mapping is not None and hasattr(mmap, "MADV_DONTNEED"):
            self.mapping.madvise(mmap.MADV_DONTNEED)


def in_file(rows: PlacedRows, folder: str) -> MappedBlock:
    """The block with its values in a file of this folder."""
    values = rows.panels.values
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(memoryview(values).cast("B"))  # type: ignore[arg-type]
        file.flush()
        mapping = mmap.mmap(file.fileno(), values.nbytes)
    block = MappedBlock.__new__(MappedBlock)
    vars(block).update(vars(rows))
    block.mapping = mapping
    block.panels = rows.panels._replace(values=np.frombuffer(mapping, dtype=values.dtype).reshape(values.shape))
    return block


def settled(rows: PlacedRows) -> PlacedRows:
    """In memory, or in a file of the worker on which this runs where that has little memory left."""
    worker = distributed().get_worker()
    limit = worker.memory_manager.memory_limit
    if not limit or worker.monitor.get_process_memory() <= KEPT * limit:
        return rows
    return in_file(rows, worker.local_directory)


def give_back(block: Any) -> None:
    """After a question."""
    if isinstance(block, MappedBlock):
        block.give_back()
