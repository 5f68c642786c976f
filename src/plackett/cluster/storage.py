"""What a worker holds, beyond its memory: the arrays of a block lie in a file of its local folder, mapped into memory.

The file has no name from the start, where the system allows that, and is gone with the block or the process. After a
question its pages are given back: Dask counts them as memory of the worker, and would end it.
"""

from __future__ import annotations

import mmap
import pickle
import tempfile
from itertools import accumulate
from typing import Any, Self, TypeVar

from plackett.cluster.dask_private import folder_of, memory_used, worker_here

KEPT = 0.4  # of a worker's memory limit that may be in use before blocks go to files
HERE = ("mapping", "gpu_copy")  # what does not travel
LINE = 64  # bytes; an array begins at a multiple of it


class Block:
    """Arrays, in memory or in a file.

    Where Dask sends a block to another worker, or puts it aside and takes it back, it settles anew.
    """

    mapping: mmap.mmap | None = None
    gpu_copy: tuple[Any, Any] | None = None  # which copy of it lies on the worker's GPU, and the copy

    def give_back(self) -> None:
        """Let go of the pages that a question has read."""
        if self.mapping is not None and hasattr(mmap, "MADV_DONTNEED"):
            self.mapping.madvise(mmap.MADV_DONTNEED)

    def alike(self) -> Self:
        """Another block with the same arrays."""
        block = made_of(type(self), self.__getstate__())
        block.mapping = self.mapping
        return block

    def in_file(self, folder: str) -> Self:
        """The same with its arrays in a file of this folder."""
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
        """In memory, or in a file where the worker on which this runs has little memory left."""
        worker = worker_here()
        if worker is None or memory_used(worker) <= KEPT:
            return self
        return self.in_file(folder_of(worker))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in HERE}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)

    def __reduce__(self) -> Any:
        return restored, (type(self), pickle.dumps(self.__getstate__()))  # a message's arrays are not to be written


Kind = TypeVar("Kind", bound=Block)


def made_of(kind: type[Kind], state: dict[str, Any]) -> Kind:
    """A block of this kind."""
    block = kind.__new__(kind)
    block.__setstate__(state)
    return block


def restored(kind: type[Block], state: bytes) -> Block:
    """A block that has travelled."""
    return made_of(kind, pickle.loads(state)).settled()
