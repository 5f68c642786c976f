"""A progress bar with the time left, shown when asked for; long work can be interrupted without loss."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator


@contextlib.contextmanager
def progress_bar(show: bool, description: str, total: float) -> Iterator[Callable[[float], None]]:
    """Yield a function that takes the work done so far."""
    if not show:
        yield lambda done: None
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns) as bar:
        task = bar.add_task(description, total=total)
        yield lambda done: bar.update(task, completed=done)
