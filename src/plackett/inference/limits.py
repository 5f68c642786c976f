"""Early ends of a run: time limits and Ctrl-C."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from typing import Any

HELD_OUT, BEGUN, TUNED = 0.4, 0.55, 0.7  # fractions of the time limit at which folds, starting modes and tuning end


class TimeIsUp(Exception):
    """Raised when a part of a fit has used its share of the time limit."""


class Clock:
    """Elapsed time since the first `start`; compilation comes before, since it happens once."""

    def __init__(self, max_seconds: float | None = None, owner: str = "Gibbs"):
        self.max_seconds, self.owner = max_seconds, owner  # `owner`: class with this setting
        self.began: float | None = None

    def start(self) -> None:
        """Start the clock on the first call."""
        if self.began is None:
            self.began = time.perf_counter()

    @property
    def elapsed(self) -> float:
        """Seconds so far."""
        return 0.0 if self.began is None else time.perf_counter() - self.began

    @property
    def left(self) -> float | None:
        """Remaining seconds, or None without a limit."""
        return None if self.max_seconds is None else max(self.max_seconds - self.elapsed, 0.0)

    @property
    def up(self) -> bool:
        """True if there is a limit and it is reached."""
        return self.left == 0.0

    def past(self, share: float) -> bool:
        """True if there is a limit and this share of it is over."""
        return self.max_seconds is not None and self.elapsed >= share * self.max_seconds

    def left_of(self, share: float) -> float | None:
        """Remaining seconds of this share of the limit, or None without a limit."""
        return None if self.max_seconds is None else max(share * self.max_seconds - self.elapsed, 0.0)

    @staticmethod
    def timed(work: Callable[[], object]) -> float:
        """Return the seconds that some work takes, the shorter of two runs."""
        found = []
        for _ in range(2):
            began = time.perf_counter()
            work()
            found.append(time.perf_counter() - began)
        return min(found)

    def insist(self, share: float) -> None:
        """Raise `TimeIsUp` if this share of the limit is over."""
        if self.past(share):
            raise TimeIsUp


class Interruption:
    """Defer Ctrl-C while there are results to keep, and raise it otherwise; a second Ctrl-C is always raised.

    Only the main thread receives signals; in other threads this has no effect.
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
