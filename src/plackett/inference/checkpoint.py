"""Checkpoints: an append-only file of records, each with its length and checksum.

A process that is killed while it writes leaves an incomplete last record, which is dropped on reading; any other
mismatch of a checksum is damage and raises an error. Records hold plain arrays and JSON, so that reading them cannot
run code. A chain that continues from a record makes the same draws, bit for bit, as one that was never stopped. The
file is locked while it is open, and the system unlocks it when the process ends.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import math
import os
import struct
import sys
import zipfile
import zlib
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from scipy import sparse

from plackett.model.features import runs

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

MAGIC = b"plackett-checkpoint-2\n"
LENGTH = struct.Struct("<QI")  # length and CRC-32 of the payload
HEADER = struct.Struct("<QII")  # LENGTH, and the CRC-32 of its twelve bytes


class CheckpointError(ValueError):
    """Raised if a checkpoint is damaged, in use or belongs to another fit."""


def fingerprint(*parts: object) -> str:
    """Return a digest of arrays and settings; only a fit with the same digest may continue a checkpoint."""
    digest = hashlib.sha256()
    for part in (each for whole in parts for each in _arrays(whole)):
        table = len(getattr(part, "shape", ())) > 0
        data = f"{part.dtype.str}{part.shape}".encode() if table else repr(part).encode()
        size = part.dtype.itemsize * math.prod(part.shape) if table else 0
        digest.update(struct.pack("<Q", len(data) + size) + data)
        for _, some in runs(part) if table else ():
            digest.update(np.ascontiguousarray(some).tobytes())
    return digest.hexdigest()


def _arrays(part: Any) -> tuple[Any, ...]:
    """Return the arrays of CSR rows, or any other part unchanged."""
    return (part.shape, part.data, part.indices, part.indptr) if sparse.issparse(part) else (part,)


def encode(facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> bytes:
    """Encode a record as a payload."""
    buffer = io.BytesIO()
    np.savez(buffer, facts=np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8), **arrays)  # type: ignore
    return buffer.getvalue()


def decode(payload: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Decode facts and arrays of a record."""
    with np.load(io.BytesIO(payload), allow_pickle=False) as archive:
        arrays = {name: archive[name] for name in archive.files}
    return json.loads(arrays.pop("facts").tobytes()), arrays


def seal(payload: bytes) -> bytes:
    """Return the header of a record."""
    head = LENGTH.pack(len(payload), zlib.crc32(payload))
    return head + struct.pack("<I", zlib.crc32(head))


def unseal(data: bytes, place: int) -> bytes | None:
    """Return the payload of the record at this byte, or None if the file ends within the record.

    The header has its own checksum: otherwise a damaged length would look like a truncated record, and all following
    records would be dropped silently.
    """
    if place + HEADER.size > len(data):
        return None
    length, checksum, of_header = HEADER.unpack_from(data, place)
    if zlib.crc32(data[place : place + LENGTH.size]) != of_header:
        raise ValueError("the checksum of its header does not fit")
    payload = data[place + HEADER.size : place + HEADER.size + length]
    if len(payload) < length:
        return None
    if zlib.crc32(payload) != checksum:
        raise ValueError("its checksum does not fit")
    return payload


Records = list[tuple[dict[str, Any], dict[str, np.ndarray]]]


def read(path: Path) -> tuple[Records, int]:
    """Return all complete records and the end of the last one; an incomplete last record is ignored."""
    data = path.read_bytes()
    if data[: len(MAGIC)] != MAGIC[: len(data)]:
        raise CheckpointError(
            f"{path} is not a plackett checkpoint, or one of another version; give another path, or remove it to start "
            "afresh."
        )
    records: Records = []
    place = min(len(MAGIC), len(data))
    while True:
        try:
            payload = unseal(data, place)
            if payload is None:
                return records, place
            records.append(decode(payload))
        except (ValueError, KeyError, EOFError, OSError, zipfile.BadZipFile, zlib.error) as error:
            raise CheckpointError(
                f"{path} is damaged: record {len(records) + 1}, at byte {place}, cannot be read ({error}). The "
                f"{len(records)} before it are intact: plackett.inference.checkpoint.salvage({str(path)!r}) "
                "truncates the file there, and the fit continues from them."
            ) from error
        place += HEADER.size + len(payload)


def salvage(path: str | os.PathLike[str]) -> int:
    """Truncate a damaged checkpoint before its first damaged record; return the number of records kept."""
    path = Path(path)
    data = path.read_bytes()
    if data[: len(MAGIC)] != MAGIC:
        raise CheckpointError(f"{path} is not a plackett checkpoint: nothing can be saved.")
    with locked(path) as stream:
        place, saved = len(MAGIC), 0
        with contextlib.suppress(ValueError):
            while (payload := unseal(data, place)) is not None:
                place, saved = place + HEADER.size + len(payload), saved + 1
        stream.truncate(place)
    return saved


def locked(path: Path) -> BinaryIO:
    """Open the file, or create it, with an exclusive lock until it is closed."""
    stream: BinaryIO = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+b")
    try:
        if sys.platform == "win32":
            stream.seek(1 << 62)  # beyond the end, since a locked byte cannot be read by others
            msvcrt.locking(stream.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        stream.close()
        raise CheckpointError(
            f"{path} is in use: another fit writes to it. Wait until that has ended, or give another path."
        ) from None
    return stream


class Journal:
    """Checkpoint file opened by one fit: `records` are those read from it, and more can be appended."""

    def __init__(self, path: Path):
        self.stream = locked(path)
        try:
            self.records, end = read(path)
        except CheckpointError:
            self.close()
            raise
        self.end: int | None = end  # end of the complete records; None after truncation

    def write(self, facts: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Append a record."""
        if self.end is not None:
            self.stream.seek(self.end if self.end >= len(MAGIC) else 0)
            self.stream.truncate()
            self.stream.write(b"" if self.end >= len(MAGIC) else MAGIC)
            self.end = None
        payload = encode(facts, arrays)
        self.stream.write(seal(payload) + payload)
        self.stream.flush()

    def close(self) -> None:
        """Close the file."""
        self.stream.close()
