"""Section 4.3, colon cancer: 2,000 genes, 50 tissues for training and 12 for testing."""

from __future__ import annotations

from plackett.paper import held_out
from plackett.paper.document import PaperColumn, PaperSection, PaperTable, Row, written
from plackett.paper.held_out import MEASURES, Tasks, measured
from plackett.paper.methods import chosen
from plackett.paper.plan import Plan, chains
from plackett.paper.runs import Job, Results
from plackett.paper.values import COLON, COLON_SPEED, COLON_SPLIT, REPLICATIONS
from plackett.paper.verdicts import compare, paired, spread

TITLE = "Colon cancer"
DATASETS = ("colon",)
PAPERS = {"plain": "gibbs", "logit": "logit"}  # our method and the paper's
COLUMNS = (*PAPERS, "variational", "em", "learned", "largest", "l2", "l1", "forest")


def work(plan: Plan) -> Tasks:
    """Return runs of every method on every split; the sampler's moves are too slow for 8,002 weights."""
    settings = {
        **plan.settings,
        "sampler": plan.pick(
            {"draws": 1250, "tune": 1250, "chains": 2},
            {"draws": 100, "tune": 100, "chains": 2},
        ),
    }
    methods = [method for method in chosen(*COLUMNS) if not (plan.quick and method.key == "em")]
    return held_out.tasks("colon", COLON_SPLIT[0], plan.pick(10, 2), methods, settings)


def tasks(plan: Plan) -> list[Job]:
    """Return runs of every method on every split."""
    return list(work(plan).values())


def section(plan: Plan, results: Results) -> PaperSection:
    """Compare with the paper's two numbers, and with other methods."""
    group = work(plan)
    largest = measured(group, results, "largest", "error").mean()
    rows: list[Row] = []
    for method in chosen(*COLUMNS):
        errors = measured(group, results, method.key, "error")
        if not len(errors):
            continue
        row: Row = {"method": method.label, "ours": spread(errors)}
        if method.key in PAPERS:
            paper = COLON[PAPERS[method.key]]
            found = compare(errors, paper, REPLICATIONS, float(largest))
            row |= {"paper": paper, "z": found.z, "verdict": found.verdict}
        else:
            row["verdict"] = "not in the paper"
        for measure in ("log_loss", "brier"):
            row[measure] = spread(measured(group, results, method.key, measure))
        row["seconds"] = float(measured(group, results, method.key, "cpu_seconds").mean())
        rows.append(row)
    columns = [
        PaperColumn("method", "Method"),
        PaperColumn("paper", "Paper", ".2f"),
        PaperColumn("ours", "Error"),
        PaperColumn("z", "Difference (SE)", "+.1f"),
        PaperColumn("verdict", "Verdict"),
        PaperColumn("log_loss", MEASURES["log_loss"]),
        PaperColumn("brier", MEASURES["brier"]),
        PaperColumn("seconds", "Seconds a fit", ".1f"),
    ]
    by_key = {key: measured(group, results, key, "error") for key in (*PAPERS, "l2")}
    slower = (
        measured(group, results, "logit", "cpu_seconds").mean()
        / measured(group, results, "plain", "cpu_seconds").mean()
    )
    size = results.record(group["plain", 0])["arguments"]["settings"]
    gap, z = paired(by_key["plain"], by_key["l2"])
    outcome = (
        f"PL-Gibbs errs on {by_key['plain'].mean():.2f} (paper {COLON['gibbs'].mean:.2f}), Sparse Logit on "
        f"{by_key['logit'].mean():.2f} (paper {COLON['logit'].mean:.2f}), the largest class on {largest:.2f}."
    )
    blocks = (
        f"{plan.pick(10, 2)} random splits into {COLON_SPLIT[0]} tissues for training and {COLON_SPLIT[1]} "
        "for testing; logarithms of the intensities, standardised by the training part; 4,001 features. The number of "
        f"splits is not given in the paper and is taken to be {REPLICATIONS}. Sampled by {chains(size)}, "
        "PL-Gibbs by the paper's sampler, since our moves over 8,002 weights take too long.",
        PaperTable("colon", "Colon: error, log-loss and Brier score, mean (deviation) over splits.", columns, rows),
        f"In the paper both models do about as well as always answering “tumor”, which errs on {largest:.3f}. "
        f"Here PL-Gibbs less cross-validated logistic regression is {written(gap, '+.3f')} "
        f"({written(z, '+.1f')} standard errors, paired).",
        f"The paper reports its sparse logit to be about {COLON_SPEED:.0f} times slower than PL-Gibbs. Here an "
        f"iteration of the sparse logit costs {slower:.2g} times that of PL-Gibbs: with 50 rows its normal draws are "
        "taken in the space of the rows, not of the genes.",
    )
    return PaperSection("colon", TITLE, outcome, blocks)
