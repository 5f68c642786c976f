"""What may end a run early: its time is up, or Ctrl-C."""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable
from typing import Any


class Clock:
    """The seconds of a run, counted from its first `start`: compiling comes before, since it happens once."""

    def __init__(self, max_seconds: float | None = None, owner: str = "Gibbs"):
        self.max_seconds, self.owner = max_seconds, owner  # whose setting it is
        self.began: float | None = None

    def start(self) -> None:
        """Begin to count, unless that was done."""
        if self.began is None:
            self.began = time.perf_counter()

    @property
    def elapsed(self) -> float:
        """Seconds so far."""
        return 0.0 if self.began is None else time.perf_counter() - self.began

    @property
    def left(self) -> float | None:
        """Seconds that are left, if there is a limit."""
        return None if self.max_seconds is None else max(self.max_seconds - self.elapsed, 0.0)

    @property
    def up(self) -> bool:
        """Whether there is a limit and it is reached."""
        return self.left == 0.0

    def check(self, where: str, done: float) -> None:
        """Refuse to go on where the time is up before there is a draw; `done` is the share of this work so far."""
        if not self.up:
            return
        needed = math.ceil(2 * self.elapsed / done) if done else None
        example = "" if needed is None else f", for example {self.owner}(max_seconds={needed})"
        raise ValueError(
            f"{self.owner}(max_seconds={self.max_seconds:g}) was over {where}, before there was a draw to keep. Give "
            f"it more time{example}, or shorten the tuning: {self.owner}(tune=...)."
        )


class Interruption:
    """Ctrl-C, noted where there is something to keep and raised where there is not; a second one is always raised.

    Only the main thread hears signals; in others nothing changes.
    """

    def __init__(self, worth_keeping: Callable[[], bool]):
        self.worth_keeping, self.came = worth_keeping, False
        self._before: Any = None

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread() and callable(signal.getsignal(signal.SIGINT)):
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _note(self, number: int, frame: object) -> None:
        if self.came or not self.worth_keeping():
            self._before(number, frame)
        else:
            self.came = True
