"""Tasks and the files that keep their results; a finished task is never run again.

A task is a function of JSON arguments, including its seed. The name of its file contains its name and a digest of
function and arguments, so that a change of settings makes another task. Files are written completely or not at all.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypedDict

from plackett import __version__
from plackett.output.files import write_whole
from plackett.output.progress import progress_bar

Result = dict[str, Any]  # return value of a task's function: JSON values by name
LIBRARIES = ("numpy", "scipy", "scikit-learn", "numba")


class Record(TypedDict):
    """Contents of the file of a finished task."""

    task: str
    function: str
    arguments: Result
    result: Result
    seconds: float
    made: Origin


class Origin(TypedDict):
    """Date, versions and machine of a run."""

    when: str
    versions: dict[str, str]
    machine: str


@dataclass(frozen=True)
class Job:
    """Task `function(**arguments)`, with a module-level function that returns a dict for JSON.

    Tasks are run in order of `turn` (the replication), so that an interrupted run has results of every kind and the
    remaining time is predictable.
    """

    name: str
    function: Callable[..., Result]
    arguments: Mapping[str, Any]
    turn: int = 0

    @property
    def file(self) -> str:
        """Name of the result file."""
        asked = json.dumps([self.path, dict(self.arguments)], sort_keys=True)
        return f"{self.name}-{hashlib.sha256(asked.encode()).hexdigest()[:8]}.json"

    @property
    def path(self) -> str:
        """Module and name of the function."""
        return f"{self.function.__module__}.{self.function.__name__}"


class Results:
    """Results of finished tasks, by task."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.read: dict[str, Record] = {}

    def record(self, task: Job) -> Record:
        """Return the contents of a task's file."""
        if task.file not in self.read:
            self.read[task.file] = json.loads((self.folder / task.file).read_text(encoding="utf-8"))
        return self.read[task.file]

    def __call__(self, task: Job) -> Result:
        """Return the value of the task's function."""
        return self.record(task)["result"]


def perform(task: Job, folder: Path) -> None:
    """Run a task with one BLAS thread, since tasks run concurrently, and write its result to a file."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    started = time.perf_counter()
    try:
        with threadpool_limits(1):
            result = task.function(**task.arguments)
    except Exception as error:
        raise RuntimeError(f"{task.name} failed: {type(error).__name__}: {error}") from error
    record: Record = {
        "task": task.name,
        "function": task.path,
        "arguments": dict(task.arguments),
        "result": result,
        "seconds": round(time.perf_counter() - started, 3),
        "made": {"when": datetime.now(UTC).isoformat(timespec="seconds"), "versions": versions(), "machine": machine()},
    }
    write_whole(folder / task.file, json.dumps(record, allow_nan=False))


def run(
    tasks: Iterable[Job],
    folder: Path,
    *,
    first: Iterable[Job] = (),
    jobs: int | None = None,
    force: bool = False,
    progress: bool = False,
) -> Results:
    """Run the tasks that have no file yet, several at a time.

    Parameters
    ----------
    tasks : tasks
        Requested tasks; duplicates are allowed.
    folder : path
        Folder of the result files.
    first : tasks
        Tasks that compile kernels, run before the others if there are any; their results are discarded.
    jobs : int, optional
        Processes; all cores by default.
    force : bool
        Repeat tasks that have a file.
    progress : bool
        Show a bar with the time left.
    """
    from joblib import Parallel, cpu_count, delayed  # type: ignore[import-untyped]

    distinct = {task.file: task for task in tasks}
    missing = [task for file, task in distinct.items() if force or not (folder / file).exists()]
    missing.sort(key=lambda task: task.turn)
    if missing:
        parallel = Parallel(n_jobs=min(jobs or cpu_count(), len(missing)), return_as="generator_unordered")
        for _ in parallel(delayed(task.function)(**task.arguments) for task in first):
            pass
        title = f"{len(missing)} of {len(distinct)} runs to do"
        with progress_bar(progress, title, len(missing)) as report:
            finished = parallel(delayed(perform)(task, folder) for task in missing)
            for done, _ in enumerate(finished, start=1):
                report(done)
    return Results(folder)


def versions() -> dict[str, str]:
    """Return versions of the libraries that compute."""
    found = {"plackett": __version__, "python": platform.python_version()}
    for library in LIBRARIES:
        try:
            found[library] = version(library)
        except PackageNotFoundError:
            found[library] = "unknown"
    return found


def machine() -> str:
    """Describe processor, number of cores and operating system."""
    cpu = platform.processor() or platform.machine()
    listed = Path("/proc/cpuinfo")
    if listed.exists():
        for line in listed.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                cpu = line.partition(":")[2].strip()
                break
    return f"{cpu}, {os.cpu_count()} cores, {platform.system()}"
