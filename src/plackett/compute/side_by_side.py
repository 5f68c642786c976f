"""Compilation of kernels in two processes: the second writes to the cache, from which the first loads.

Numba holds a lock while it compiles, so that threads would wait for each other. This process compiles callees first,
since it needs their addresses; the second compiles callers first, and needs no address, since it never calls them.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Protocol

from plackett.compute.pieces import cores

ENOUGH = 5  # missing kernels that justify a second process, which takes a second to start
CODE = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from plackett.compute import compiled, side_by_side
side_by_side.second(compiled.APART, compiled.pretend_made)
"""


class Compilable(Protocol):
    """Kernel of one signature."""

    symbol: str
    module: str

    @property
    def cached(self) -> bool:
        """True if the cache on disk contains it."""

    def make(self) -> None:
        """Compile it, or load it from the cache."""

    def compile(self) -> None:
        """Compile it into the cache."""


def make_all(kernels: list[Compilable]) -> None:
    """Make kernels, callees before their callers, with a second process if many are missing."""
    missing = [kernel for kernel in kernels if not kernel.cached] if len(kernels) >= ENOUGH and _can_start() else []
    if len(missing) < ENOUGH:
        for kernel in kernels:
            kernel.make()
        return
    with tempfile.TemporaryDirectory(prefix="plackett-") as folder, _second_process(missing, Path(folder)) as process:
        for kernel in kernels:
            if not _claim(Path(folder), kernel.symbol):
                done = Path(folder, _file(kernel.symbol) + ".done")
                while not done.exists() and process.poll() is None:
                    time.sleep(0.005)
            kernel.make()


def _can_start() -> bool:
    """True if there are two cores, and an ordinary Python interpreter (not embedded or frozen)."""
    return cores() > 1 and bool(sys.executable) and not getattr(sys, "frozen", False)


def _file(symbol: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in symbol)


def _claim(folder: Path, symbol: str) -> bool:
    """True for the process that claims the kernel first."""
    try:
        os.close(os.open(folder / _file(symbol), os.O_CREAT | os.O_EXCL))
    except OSError:  # claimed by the other process, or the folder is gone because the first is done
        return False
    return True


@contextlib.contextmanager
def _second_process(missing: list[Compilable], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process that compiles these kernels in reverse order, ignores Ctrl-C, and ends with this block."""
    process = subprocess.Popen(
        [sys.executable, "-c", CODE, json.dumps(sys.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        assert process.stdin is not None
        work = {"folder": str(folder), "kernels": [(kernel.module, kernel.symbol) for kernel in reversed(missing)]}
        with contextlib.suppress(OSError):  # it ended at once: this process compiles everything
            process.stdin.write(json.dumps(work).encode())
            process.stdin.close()
        yield process
    finally:
        process.kill()
        process.wait()


def second(kernels: Mapping[str, Compilable], pretend_made: Callable[[], None]) -> None:
    """Compile each kernel that the first process has not begun; main function of the second process.

    `kernels` holds all kernels by symbol once their modules are imported.
    """
    work = json.loads(sys.stdin.buffer.read())
    folder = Path(work["folder"])
    for module, _ in work["kernels"]:
        import_module(module)
    pretend_made()
    for _, symbol in work["kernels"]:
        if _claim(folder, symbol):
            kernels[symbol].compile()
            (folder / (_file(symbol) + ".done")).touch()
