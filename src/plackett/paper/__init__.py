"""Reproduction of section 4 of the paper: one module per table and figure, and a page that compares the numbers.

`reproduce` collects the tasks of the parts, runs those that have no result file yet, and writes their sections.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from plackett.optional import optional
from plackett.paper import (
    colon,
    figure2,
    figure3,
    figure4,
    limit,
    page,
    readings,
    sushi,
    table1,
    table2,
    table3,
)
from plackett.paper.document import PaperSection, listed
from plackett.paper.held_out import SEED, evaluate, table
from plackett.paper.plan import Plan
from plackett.paper.runs import Job, Record, Results, run


class PaperPart(Protocol):
    """Module of this package: one table, figure or data set of the paper."""

    @property
    def DATASETS(self) -> Sequence[str]:
        """Data sets that the part uses."""

    def tasks(self, plan: Plan) -> list[Job]:
        """Return the runs that the part needs."""

    def section(self, plan: Plan, results: Results) -> PaperSection:
        """Return the section of the page from the results of the runs."""


PARTS: dict[str, PaperPart] = {
    "table1": table1,
    "table2": table2,
    "readings": readings,
    "figure2": figure2,
    "table3": table3,
    "figure3": figure3,
    "figure4": figure4,
    "colon": colon,
    "sushi": sushi,
    "limit": limit,
}
TITLE = "Plackett–Luce regression, reproduced"


def reproduce(
    parts: Sequence[str] | None = None,
    *,
    datasets: Sequence[str] | None = None,
    quick: bool = False,
    out: str | os.PathLike[str] = "reproduction",
    jobs: int | None = None,
    force: bool = False,
    progress: bool = True,
) -> Path:
    """Run the paper's experiments and write a page that shows our numbers beside the paper's.

    Finished replications are stored in ``out/runs``: an interrupted run is resumed, and a second one only rewrites the
    page. Colon and sushi need the folder that the environment variable ``PLACKETT_DATA`` names; a missing set is
    skipped, with a warning and a note on the page.

    Parameters
    ----------
    parts : sequence of str, optional
        Names in `PARTS`; all by default.
    datasets : sequence of str, optional
        Restrict the parts to these data sets; parts without any of them are skipped.
    quick : bool
        Few replications and draws, for a preview in minutes.
    out : path
        The folder to write to.
    jobs : int, optional
        Processes; by default one for each core.
    force : bool
        Repeat runs whose results are already in ``out/runs``.
    progress : bool
        Show a progress bar with the time left.

    Returns
    -------
    Path
        The page, ``out/index.html``.
    """
    for library in ("pandas", "matplotlib"):
        optional(library, "the reproduction")
    named = _checked("part", parts, PARTS)
    modules = {name: PARTS[name] for name in named}
    usable = list(dict.fromkeys(name for module in modules.values() for name in module.DATASETS))
    wanted = _checked("data set", datasets, usable)
    plan = Plan(quick, tuple(wanted), missing=_not_at_hand(wanted))
    modules = {name: module for name, module in modules.items() if plan.sets(*module.DATASETS)}
    if not modules:
        raise ValueError("; ".join(plan.missing.values()) + ". None of the parts asked for can be run without data.")
    for reason in plan.missing.values():
        warnings.warn(f"left out for want of data: {reason}", UserWarning, stacklevel=2)
    folder = Path(out)
    tasks = [task for module in modules.values() for task in module.tasks(plan)]
    first = _compilation() if set(modules) - {"table1"} else []
    results = run(tasks, folder / "runs", first=first, jobs=jobs, force=force, progress=progress)
    sections = [module.section(plan, results) for module in modules.values()]
    records = [results.record(task) for task in tasks]
    return page.write(folder, TITLE, _introduction(plan, named), sections, _facts(plan, records))


def _checked(what: str, names: Sequence[str] | None, known: Iterable[str]) -> list[str]:
    """Return the requested names in their known order; all if none is given."""
    if not names:
        return list(known)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"{what} must be one of {', '.join(known)}, got {', '.join(unknown)} instead.")
    return [name for name in known if name in names]


def _not_at_hand(names: Iterable[str]) -> dict[str, str]:
    """Return data sets that are not available, with the reason."""
    missing = {}
    for name in names:
        try:
            table(name)
        except OSError as error:
            missing[name] = str(error)
    return missing


def _compilation() -> list[Job]:
    """Return tasks that compile all kernels in parallel, before anything is timed."""
    size = {"draws": 5, "tune": 5, "chains": 1}
    common = {"dataset": "iris", "train": 0.5, "replication": 0, "settings": size, "seed": 0}
    return [Job(method, evaluate, {**common, "method": method}) for method in ("gibbs", "logit", "plain")]


def _introduction(plan: Plan, parts: Sequence[str]) -> list[str]:
    found = [
        "Section 4 of C. Archambeau and F. Caron, “Plackett–Luce regression: A new Bayesian model for polychotomous "
        "data” (UAI 2012), run again with the package plackett: the paper's numbers beside ours, the difference in "
        "standard errors, and a verdict in words. What came out worse is shown as worse."
    ]
    if plan.quick:
        found.append(
            "This is a quick run, with few replications and draws, so numbers are rough and standard errors are "
            "themselves poorly known. “plackett reproduce” without --quick runs it all."
        )
    if len(parts) < len(PARTS):
        found.append(f"Parts that were asked for: {', '.join(parts)}.")
    if plan.missing:
        found += [f"Left out for want of data: {reason}" for reason in plan.missing.values()]
    return found


def _facts(plan: Plan, records: Sequence[Record]) -> dict[str, str]:
    """Return dates, versions, machines and seeds of the runs."""
    made = [record["made"] for record in records]
    days = sorted({entry["when"][:10] for entry in made})
    versions = {", ".join(f"{name} {number}" for name, number in entry["versions"].items()): None for entry in made}
    seconds = sum(record["seconds"] for record in records)
    seeds = sorted({record["arguments"]["seed"] for record in records if "seed" in record["arguments"]})
    return {
        "Command": "plackett reproduce" + (" --quick" if plan.quick else ""),
        "Runs": f"{len(records):,}, made on {listed(days)}, {seconds / 60:.1f} minutes in all, side by side",
        "Versions": "; ".join(versions),
        "Machine": "; ".join(dict.fromkeys(entry["machine"] for entry in made)),
        "Seeds": f"replication r is split and sampled with seed {SEED} + r"
        + (f"; used: {', '.join(map(str, seeds))}" if seeds else ""),
    }
