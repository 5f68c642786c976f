"""Bytes of a model file: a zip of a JSON manifest and NumPy arrays, unpacked within limits. Knows no model.

No member is unpacked beyond its declared size, and an array is unpacked once however often it is requested.
"""

from __future__ import annotations

import io
import json
import math
import os
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

MANIFEST = "manifest.json"
PLAIN = "biufU"  # kinds of arrays with plain values
SMALL, DENSEST = 1 << 26, 100  # bytes that any file may unpack to; beyond, a multiple of its own size
TEXTS = 1 << 22  # the same for the manifest alone
NODES = 1 << 16  # values that any manifest may have; beyond, at most the bytes of the file
HEADER, PIECE = 1 << 14, 1 << 20  # maximum bytes of an array's header, and bytes unpacked at a time


class ModelFileError(ValueError):
    """Raised if a model cannot be written, or a file is not a valid model file."""


def pack(stream: BinaryIO, manifest: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> None:
    """Write a manifest and arrays by name."""
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(MANIFEST, json.dumps(manifest))
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.asarray(array, order="C"), allow_pickle=False)
            archive.writestr(f"{name}.npy", buffer.getvalue())


@contextmanager
def readable(what: str) -> Iterator[None]:
    """Name the damaged part in errors; zip, JSON and NumPy raise any kind of error for foreign bytes."""
    try:
        yield
    except ModelFileError:
        raise
    except Exception as error:
        raise ModelFileError(f"{what} is damaged, or none at all") from error


class Archive:
    """Members of a file opened for reading."""

    def __init__(self, stream: BinaryIO):
        self.size = stream.seek(0, os.SEEK_END)
        with readable("the zip archive"):
            self.archive = zipfile.ZipFile(stream)
            members = self.archive.infolist()
        self.members = {member.filename: member for member in members}
        self.arrays: dict[str, npt.NDArray[Any]] = {}
        unpacked = sum(member.file_size for member in members)
        if unpacked > max(SMALL, DENSEST * self.size):
            raise ModelFileError(f"its {self.size} bytes would unpack to {unpacked}, more than any model does")
        if len(self.members) < len(members):
            raise ModelFileError("it holds a part twice")

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *_: Any) -> None:
        self.archive.close()

    def manifest(self) -> Any:
        """Return the JSON part."""
        with self._open(MANIFEST) as stream:
            size = self.members[MANIFEST].file_size
            if size > max(TEXTS, DENSEST * self.size):
                raise ModelFileError(f"its manifest would unpack to {size} bytes, more than any model's does")
            content = _rest(stream, bytearray(), size)
            nodes = sum(map(content.count, b"[{,:"))
            if nodes > max(NODES, self.size):
                raise ModelFileError(f"its manifest has some {nodes} values, more than any model's has")
            return json.loads(content)

    def array(self, name: str) -> npt.NDArray[Any]:
        """Return an array of plain values by name."""
        if name not in self.arrays:
            self.arrays[name] = self._unpacked(f"{name}.npy")
        return self.arrays[name]

    def check_used(self) -> None:
        """Raise for members that were never requested."""
        unused = self.members.keys() - {MANIFEST} - {f"{name}.npy" for name in self.arrays}
        if unused:
            raise ModelFileError(f"it holds {min(unused)!r}, which is no part of the model")

    def _unpacked(self, name: str) -> npt.NDArray[Any]:
        """Return an array, after checking its declared size before anything is unpacked."""
        with self._open(name) as stream:
            first = io.BytesIO(stream.read(HEADER))
            header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
            shape, fortran, dtype = header[np.lib.format.read_magic(first)](first)
            size, declared = math.prod(shape) * dtype.itemsize, self.members[name].file_size - first.tell()
            if dtype.kind not in PLAIN or size != declared or min(shape, default=0) < 0:
                raise ModelFileError(f"its part {name!r} is no plain array of shape {shape} and type {dtype}")
            data = _rest(stream, bytearray(first.read()), size)
            values: npt.NDArray[Any] = np.ndarray(shape, dtype, data, order="F" if fortran else "C")
            largest = {"b": ("u1", 1), "U": (f"{dtype.byteorder}u4", 0x10FFFF)}  # NumPy relies on these limits
            if dtype.kind in largest and values.size:
                kind, most = largest[dtype.kind]
                if np.frombuffer(data, kind).max() > most:
                    raise ModelFileError(f"its part {name!r} holds bytes that are no {dtype}")
            return values if dtype.isnative else values.astype(dtype.newbyteorder("="))

    @contextmanager
    def _open(self, name: str) -> Iterator[Any]:
        """Open a member for reading."""
        member = self.members.get(name)
        if member is None:
            raise ModelFileError(f"it has no part {name!r}")
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ModelFileError(f"its part {name!r} is packed in a way that model files are not")
        with readable(f"its part {name!r}"), self.archive.open(member) as stream:
            yield stream


def _rest(stream: Any, data: bytearray, size: int) -> bytearray:
    """Read the data up to this size in pieces, so that memory use is bounded by the bytes present."""
    while len(data) < size:
        piece = stream.read(min(PIECE, size - len(data)))
        if not piece:
            raise ModelFileError(f"a part of it ends after {len(data)} of {size} bytes")
        data += piece
    return data
