"""What may end a run early: its time is up, or Ctrl-C."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from typing import Any

HELD_OUT, BEGUN, TUNED = 0.4, 0.55, 0.7  # shares of a limit of time by which folds, climbs to starts and tuning end


class TimeIsUp(Exception):
    """The share of the time limit that a part of a fit may take is over."""


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

    def past(self, share: float) -> bool:
        """Whether there is a limit and this share of it is over."""
        return self.max_seconds is not None and self.elapsed >= share * self.max_seconds

    def left_of(self, share: float) -> float | None:
        """Seconds that are left of this share of the limit, if there is one."""
        return None if self.max_seconds is None else max(share * self.max_seconds - self.elapsed, 0.0)

    @staticmethod
    def timed(work: Callable[[], object]) -> float:
        """Seconds that some work takes, the shorter of two times."""
        found = []
        for _ in range(2):
            began = time.perf_counter()
            work()
            found.append(time.perf_counter() - began)
        return min(found)

    def insist(self, share: float) -> None:
        """Raise `TimeIsUp` where this share of the limit is over."""
        if self.past(share):
            raise TimeIsUp


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
