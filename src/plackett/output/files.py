"""Files that are written completely or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


def check_folder(path: str | os.PathLike[str]) -> None:
    """Raise, before the work begins, if the folder of a file does not allow writing it."""
    target = Path(os.path.realpath(path))
    if _is_device(target):
        return
    if not target.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {target.parent} for {target.name}; make it, or choose another.")
    if target.is_dir():
        raise IsADirectoryError(f"{os.fspath(path)} is a folder; name a file in it.")
    if not os.access(target.parent, os.W_OK):
        raise PermissionError(f"the folder {target.parent} cannot be written to.")


@contextlib.contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Yield a stream whose bytes replace `path` at the end of the block; after an error the old file remains.

    Permissions of an old file are preserved, and links followed. A device or pipe, such as ``/dev/null``, is written to
    directly.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from plackett.output.files import whole_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = Path(folder, "a.txt")
    ...     with whole_file(target) as stream:
    ...         _ = stream.write(b"all of it")
    ...     target.read_text()
    'all of it'
    """
    target = Path(os.path.realpath(path))
    if _is_device(target):
        with target.open("wb") as stream:
            yield stream
        return
    check_folder(target)
    temporary = target.with_name(f".plackett-{secrets.token_hex(8)}")
    try:
        with temporary.open("xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        if target.exists():
            shutil.copymode(target, temporary)
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file and its folders, so that the file is complete or absent."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as stream:
        stream.write(content.encode("utf-8") if isinstance(content, str) else content)


def _is_device(target: Path) -> bool:
    """True for a device or a pipe, which is written to directly."""
    return target.exists() and not (target.is_file() or target.is_dir())
