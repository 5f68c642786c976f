"""Progress bar with the remaining time, in a terminal or a notebook; long work can be interrupted without loss."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from plackett.output.html import text

Item = TypeVar("Item")
PATIENCE = 5.0  # seconds


@contextlib.contextmanager
def progress_bar(show: bool, description: str, total: float) -> Iterator[Callable[[float], None]]:
    """Yield a function that takes the work done so far; the bar appears on standard error, or in a notebook's cell.

    In a terminal, work that takes longer than PATIENCE shows its bar even without `show`.
    """
    if not show and sys.stderr.isatty() and not in_notebook():
        with _late_bar(description, total) as report:
            yield report
    elif not show:
        yield lambda done: None
    elif in_notebook():
        yield _notebook_bar(description, total)
    else:
        with _terminal_bar(description, total, time.perf_counter()) as report:
            yield report


def tracked(items: Sequence[Item], show: bool, description: str) -> Iterator[Item]:
    """Yield the items, with a bar that advances after each."""
    with progress_bar(show, description, len(items)) as report:
        for done, item in enumerate(items, start=1):
            yield item
            report(done)


@contextlib.contextmanager
def _late_bar(description: str, total: float) -> Iterator[Callable[[float], None]]:
    """Yield a bar that appears after a while, whether or not any work is done."""
    began, shown, lock = time.perf_counter(), contextlib.ExitStack(), threading.Lock()
    bars: list[Callable[[float], None]] = []
    latest = 0.0

    def show() -> None:
        with lock:
            if not bars and latest < total:
                bars.append(shown.enter_context(_terminal_bar(description, total, began)))

    def report(done: float) -> None:
        nonlocal latest
        latest = done
        if time.perf_counter() - began > PATIENCE:
            show()
        for bar in bars:
            bar(done)

    timer = threading.Timer(PATIENCE, show)
    timer.daemon = True
    timer.start()
    try:
        yield report
    finally:
        timer.cancel()
        latest = total
        with lock:
            shown.close()


@contextlib.contextmanager
def _terminal_bar(description: str, total: float, began: float) -> Iterator[Callable[[float], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
    from rich.table import Column
    from rich.text import Text

    class Times(ProgressColumn):
        """Time since the start, and rich's estimate of the remaining time."""

        def render(self, task: Task) -> Text:
            return Text(_times(time.perf_counter() - began, task.time_remaining))

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        Times(Column(no_wrap=True)),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(description, total=total)
        yield lambda done: bar.update(task, completed=done)


def in_notebook() -> bool:
    """True in a Jupyter kernel; one without IPython loaded is not recognised."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def _notebook_bar(description: str, total: float) -> Callable[[float], None]:
    """Return a function that updates an HTML element in place, without widgets."""
    from IPython.display import HTML, display

    began = time.perf_counter()

    def bar(done: float) -> HTML:
        elapsed = time.perf_counter() - began
        times = _times(elapsed, elapsed * (total - done) / done if done else None)
        words = f"{text(description)}: {done:.0f}/{total:.0f}, {times}"
        return HTML(f'<label>{words} <progress value="{done:.0f}" max="{total:.0f}"></progress></label>')

    handle = display(bar(0), display_id=True)
    return lambda done: handle.update(bar(done))


def _times(elapsed: float, left: float | None) -> str:
    """Format both times; the remaining time is None as long as nothing is done."""
    return f"{_clock(elapsed)} elapsed" + ("" if left is None else f", {_clock(left)} left")


def _clock(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"
