"""Compile kernels in two processes at once: the second leaves what it compiles in the cache, where the first loads it.

Numba holds a lock while it compiles, so threads would wait for each other. This process takes callees first, since it
needs their addresses; the second one takes callers first, and needs no address, since it calls nothing.
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

ENOUGH = 5  # kernels to compile from which on a second process gains: it takes a second to start
CODE = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from plackett.compute import compiled, side_by_side
side_by_side.second(compiled.APART, compiled.pretend_made)
"""


class Compilable(Protocol):
    """A kernel of one signature."""

    symbol: str
    module: str

    @property
    def cached(self) -> bool:
        """True if the cache on disk holds it."""

    def make(self) -> None:
        """Compile it, or load it from the cache."""

    def compile(self) -> None:
        """Compile it into the cache."""


def make_all(kernels: list[Compilable]) -> None:
    """Make kernels, callees before their callers, with the help of a second process where there are many to compile."""
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
    """True if there are two cores, and an interpreter that is not a program with Python inside."""
    return cores() > 1 and bool(sys.executable) and not getattr(sys, "frozen", False)


def _file(symbol: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in symbol)


def _claim(folder: Path, symbol: str) -> bool:
    """True for the process that asks first."""
    try:
        os.close(os.open(folder / _file(symbol), os.O_CREAT | os.O_EXCL))
    except OSError:  # the other process has it, or the folder is gone since the first is done
        return False
    return True


@contextlib.contextmanager
def _second_process(missing: list[Compilable], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that compiles the last of these first; it hears no Ctrl-C of a terminal, and ends with this block."""
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
        with contextlib.suppress(OSError):  # it ended at once: nothing is claimed, and all is compiled here
            process.stdin.write(json.dumps(work).encode())
            process.stdin.close()
        yield process
    finally:
        process.kill()
        process.wait()


def second(kernels: Mapping[str, Compilable], pretend_made: Callable[[], None]) -> None:
    """Main function of the second process: compile each kernel that the first has not begun.

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
