"""Blocks larger than a worker's memory: their arrays are in a memory-mapped file of its local folder.

The file has no name, if the system allows that, and disappears with the block or the process. Its pages are released
after each question: Dask counts them as memory of the worker, and would terminate it.
"""

from __future__ import annotations

import mmap
import pickle
import tempfile
from itertools import accumulate
from typing import Any, Self, TypeVar

from plackett.cluster.dask_private import folder_of, memory_used, worker_here

KEPT = 0.4  # fraction of a worker's memory limit in use from which blocks go to files
HERE = ("mapping", "gpu_copy")  # attributes that are not sent to other workers
LINE = 64  # bytes; alignment of arrays in a file


class Block:
    """Arrays in memory or in a file.

    After Dask has moved a block to another worker, or spilled and restored it, the block is placed anew.
    """

    mapping: mmap.mmap | None = None
    gpu_copy: tuple[Any, Any] | None = None  # kind of the copy on the worker's GPU, and the copy

    def give_back(self) -> None:
        """Release the pages of the file that a question has read."""
        if self.mapping is not None and hasattr(mmap, "MADV_DONTNEED"):
            self.mapping.madvise(mmap.MADV_DONTNEED)

    def alike(self) -> Self:
        """Return another block with the same arrays."""
        block = made_of(type(self), self.__getstate__())
        block.mapping = self.mapping
        return block

    def in_file(self, folder: str) -> Self:
        """Return the block with its arrays in a file of this folder."""
        arrays: list[pickle.PickleBuffer] = []
        rest = pickle.dumps(self.__getstate__(), protocol=5, buffer_callback=arrays.append)
        pieces = [array.raw() for array in arrays]
        *starts, end = [0, *accumulate(-(-piece.nbytes // LINE) * LINE for piece in pieces)]
        with tempfile.TemporaryFile(dir=folder) as file:
            for start, piece in zip(starts, pieces, strict=True):
                file.seek(start)
                file.write(piece)
            file.truncate(max(end, LINE))
            mapping = mmap.mmap(file.fileno(), 0)
        all_bytes = memoryview(mapping)
        views = [all_bytes[start : start + piece.nbytes] for start, piece in zip(starts, pieces, strict=True)]
        block = made_of(type(self), pickle.loads(rest, buffers=views))
        block.mapping = mapping
        return block

    def settled(self) -> Self:
        """Return the block, in a file if the worker has little memory left."""
        worker = worker_here()
        if worker is None or memory_used(worker) <= KEPT:
            return self
        return self.in_file(folder_of(worker))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in HERE}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)

    def __reduce__(self) -> Any:
        return restored, (type(self), pickle.dumps(self.__getstate__()))  # arrays of a message are read-only


Kind = TypeVar("Kind", bound=Block)


def made_of(kind: type[Kind], state: dict[str, Any]) -> Kind:
    """Make a block of this kind with this state."""
    block = kind.__new__(kind)
    block.__setstate__(state)
    return block


def restored(kind: type[Block], state: bytes) -> Block:
    """Restore a block that was sent here."""
    return made_of(kind, pickle.loads(state)).settled()
