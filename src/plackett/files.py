"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A stream whose bytes take the place of `path` at the end of the block; after an error the old file is there.

    Permissions of an old file are kept, and links followed. A device or pipe, such as ``/dev/null``, is written to
    directly.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from plackett.files import whole_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     target = Path(folder, "a.txt")
    ...     with whole_file(target) as stream:
    ...         _ = stream.write(b"all of it")
    ...     target.read_text()
    'all of it'
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        with target.open("wb") as stream:
            yield stream
        return
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
