"""Table 1: loaded data sets compared with the paper's numbers."""

from __future__ import annotations

from plackett import datasets
from plackett.paper.document import PaperColumn, PaperSection, PaperTable, listed
from plackett.paper.plan import NAMES, Plan
from plackett.paper.runs import Job, Results
from plackett.paper.values import TABLE1
from plackett.paper.verdicts import AGREES

TITLE = "Table 1: the data"
DATASETS = tuple(TABLE1)


def describe(dataset: str) -> dict[str, object]:
    """Return covariates d, categories K, rows n, the size of each class, and the source."""
    bunch = datasets.load(dataset)
    n, d = bunch.X.shape
    counts = {str(label): int(count) for label, count in bunch.counts.items()}
    return {"d": d, "K": len(counts), "n": n, "counts": counts, "source": bunch.source}


def tasks(plan: Plan) -> list[Job]:
    """Return one task per data set."""
    return [Job(f"table1-{name}", describe, {"dataset": name}) for name in plan.sets(*DATASETS)]


def section(plan: Plan, results: Results) -> PaperSection:
    """Show the table, and whether every number agrees."""
    rows = []
    for name, task in zip(plan.sets(*DATASETS), tasks(plan), strict=True):
        found = results(task)
        ours = (found["d"], found["K"], found["n"])
        rows.append(
            {
                "name": NAMES[name],
                "paper": ", ".join(f"{value:,}" for value in TABLE1[name]),
                "d": ours[0],
                "K": ours[1],
                "n": ours[2],
                "largest": 1 - max(found["counts"].values()) / found["n"],
                "verdict": AGREES if ours == TABLE1[name] else "differs",
                "source": found["source"],
            }
        )
    columns = [
        PaperColumn("name", "Data set"),
        PaperColumn("paper", "Paper: d, K, n"),
        PaperColumn("d", "d"),
        PaperColumn("K", "K"),
        PaperColumn("n", "n"),
        PaperColumn("largest", "Error of always answering the largest class"),
        PaperColumn("verdict", "Verdict"),
        PaperColumn("source", "Source"),
    ]
    differing = [row["name"] for row in rows if row["verdict"] != AGREES]
    outcome = (
        f"{listed(differing)} differ from the paper's description."
        if differing
        else f"All {len(rows)} data sets have the covariates, categories and rows that the paper gives."
    )
    blocks = (
        PaperTable("table1", "Covariates d, categories K and data points n.", columns, rows),
        "The paper speaks of five data sets and lists six.",
    )
    return PaperSection("table1", TITLE, outcome, blocks)
