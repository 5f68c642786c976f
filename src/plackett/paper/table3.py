"""Table 3: time, effective sample size, and time per effective draw, of PL-Gibbs and the sparse logit."""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np

from plackett.model.measures import plain_ess
from plackett.model.race import Array
from plackett.paper.document import PaperColumn, PaperSection, PaperTable, Row, listed
from plackett.paper.held_out import SEED, split, table
from plackett.paper.methods import gibbs, sparse_logit
from plackett.paper.plan import NAMES, Plan
from plackett.paper.runs import Job, Results
from plackett.paper.values import REPLICATIONS, SETS, TABLE3, Efficiency, Spread
from plackett.paper.verdicts import AGREES, BETTER, BOUND, WORSE, difference, spread

TITLE = "Table 3: efficiency"
DATASETS = SETS
SAMPLERS = {
    "logit-none": ("logit", "Sparse Logit"),
    "logit-all": (None, "Sparse Logit, our moves"),
    "gibbs-none": ("gibbs", "PL-Gibbs"),
    "gibbs-exchange": (None, "PL-Gibbs, our moves"),
}  # repeated row of the paper, and its name here
TRAIN = 0.5
COLUMNS = (
    PaperColumn("name", "Data set"),
    PaperColumn("method", "Method"),
    PaperColumn("paper_seconds", "Paper: time (s)", ".1f"),
    PaperColumn("paper_ess", "Paper: ESS", ",.0f"),
    PaperColumn("paper_cost", "Paper: time/ESS"),
    PaperColumn("seconds", "Ours: time (s)", ".2f"),
    PaperColumn("ess", "Ours: ESS", ",.0f"),
    PaperColumn("z", "ESS, difference (SE)", "+.1f"),
    PaperColumn("cost", "Ours: time/ESS", ".5f"),
    PaperColumn("faster", "Paper's time/ESS over ours", ",.0f"),
    PaperColumn("speed", "Relative speed", ".1f"),
    PaperColumn("verdict", "Verdict"),
)
SPEEDS = (
    PaperColumn("name", "Data set"),
    PaperColumn("paper", "Paper", ".2f"),
    PaperColumn("plain", "Ours, the paper's samplers", ".2f"),
    PaperColumn("moved", "Ours, with our moves (the faster logit)", ".2f"),
    PaperColumn("verdict", "Verdict: which model is ahead"),
)


def measure(dataset: str, replication: int, sampler: str, tune: int, draws: int, seed: int) -> dict[str, float]:
    """Run one chain on half of the data; return processor seconds of the fit, and the smallest ESS of its draws.

    The ESS uses the initial monotone sequence, over the coefficients of the logit, or over ln λ̄ and also λ̄.
    """
    X, y = table(dataset)
    inside, _ = split(y, TRAIN, replication)
    make, moves = sampler.split("-")
    build = {"logit": sparse_logit, "gibbs": gibbs}[make]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        build(y, seed, draws=5, tune=5, chains=1, moves=moves).fit(X[inside], y[inside])  # loads the kernels
        started = time.process_time()
        fit: Any = build(y, seed, draws=draws, tune=tune, chains=1, moves=moves).fit(X[inside], y[inside])
        seconds = time.process_time() - started
    if make == "logit":
        return {"seconds": seconds, "ess": smallest_ess(fit.posterior_.coef[0, :, :-1])}
    log_weights = fit.posterior_.log_weights[0]
    return {"seconds": seconds, "ess": smallest_ess(log_weights), "ess_weights": smallest_ess(np.exp(log_weights))}


def smallest_ess(draws: Array) -> float:
    """Return the smallest effective sample size of one chain (draw, …) by the initial monotone sequence estimator."""
    return float(plain_ess(draws.reshape(len(draws), -1).T[:, None]).min())


def tasks(plan: Plan) -> list[Job]:
    """Return runs of every sampler on every split."""
    return [task for group in work(plan).values() for task in group]


def work(plan: Plan) -> dict[tuple[str, str], list[Job]]:
    """Return tasks by data set and sampler, one per replication."""
    size = plan.pick({"tune": 5000, "draws": 5000}, {"tune": 500, "draws": 500})
    return {
        (name, sampler): [
            Job(
                f"table3-{name}-{sampler}-{replication:02d}",
                measure,
                {"dataset": name, "replication": replication, "sampler": sampler, "seed": SEED + replication, **size},
                turn=replication,
            )
            for replication in range(plan.replications)
        ]
        for name in plan.sets(*DATASETS)
        for sampler in SAMPLERS
    }


def section(plan: Plan, results: Results) -> PaperSection:
    """Compare with the paper, and say which model is faster on each set."""
    groups = work(plan)
    found = {key: summary([results(task) for task in group]) for key, group in groups.items()}
    rows, speeds = [], []
    for name in plan.sets(*DATASETS):
        slowest = max(found[name, sampler]["cost"] for sampler in SAMPLERS)
        for sampler, (key, label) in SAMPLERS.items():
            paper = TABLE3[name][key] if key else None
            rows.append(row(name, label, paper, found[name, sampler], slowest, plan.quick))
        speeds.append(relative_speed(name, found))
    same = [speed["name"] for speed in speeds if speed["verdict"] == AGREES]
    other = [speed["name"] for speed in speeds if speed["verdict"] != AGREES]
    outcome = f"Per effective draw the same model is ahead as in the paper on {listed(same) or 'no set'}"
    outcome += f", the other on {listed(other)}." if other else "."
    blocks = (
        f"One chain of {plan.pick('5,000 + 5,000', '500 + 500')} iterations on a random half of the data, "
        f"{len(groups[next(iter(groups))])} replications, for the paper's two samplers and for both with our moves: "
        "mean processor seconds of the whole fit, and mean of the smallest effective sample size of the kept draws by "
        "the initial monotone sequence estimator, over the coefficients of the logit or over ln λ̄. Below about 50 that "
        "estimate is itself a guess. Time/ESS is the ratio of the means; relative speed is the time/ESS of the slowest "
        "sampler of the set divided by the sampler's own. The paper gives no deviations: differences in standard "
        "errors take its ESS to spread as ours does. Its times come from another machine and from Matlab, so that "
        "only ratios of times compare."
        + (" This quick run keeps a tenth of the paper's draws, so its ESS is not compared." if plan.quick else ""),
        PaperTable("table3", "Time and effective sample size.", COLUMNS, rows),
        PaperTable(
            "table3_speed", "Speed of PL-Gibbs per effective draw relative to the sparse logit.", SPEEDS, speeds
        ),
        "The smallest ESS over λ̄ itself instead of ln λ̄, PL-Gibbs with the paper's sampler and with our moves: "
        + ", ".join(
            f"{NAMES[name]} {found[name, 'gibbs-none']['ess_weights']:,.0f} and "
            f"{found[name, 'gibbs-exchange']['ess_weights']:,.0f}"
            for name in plan.sets(*DATASETS)
        )
        + ". The paper does not say which of the two it took, nor which share of the data was fitted.",
    )
    return PaperSection("table3", TITLE, outcome, blocks)


def summary(runs: list[dict[str, float]]) -> Row:
    """Return means over replications and time per effective draw."""
    seconds, ess = (spread([run[key] for run in runs]) for key in ("seconds", "ess"))
    weights = [run["ess_weights"] for run in runs if "ess_weights" in run]
    return {
        "seconds": seconds,
        "ess": ess,
        "n": len(runs),
        "cost": seconds.mean / ess.mean,
        "ess_weights": float(np.mean(weights)) if weights else None,
    }


def row(name: str, label: str, paper: Efficiency | None, ours: Row, slowest: float, quick: bool) -> Row:
    """Return one row, with the paper's numbers if it has any."""
    found = {
        "name": NAMES[name],
        "method": label,
        "seconds": ours["seconds"].mean,
        "ess": ours["ess"].mean,
        "ess_sd": ours["ess"].sd,
        "cost": ours["cost"],
        "speed": slowest / ours["cost"],
        "verdict": "not in the paper",
    }
    if paper is None:
        return found
    z = difference(ours["ess"], ours["n"], Spread(paper.ess, ours["ess"].sd), REPLICATIONS)
    word = AGREES if abs(z) <= BOUND else BETTER if z > 0 else WORSE
    return found | {
        "paper_seconds": paper.seconds,
        "paper_ess": paper.ess,
        "paper_cost": paper.seconds_per_draw,
        "z": None if quick else z,
        "faster": paper.seconds_per_draw / ours["cost"],
        "verdict": "fewer draws" if quick else f"ESS {word}",
    }


def relative_speed(name: str, found: dict[tuple[str, str], Row]) -> Row:
    """Return the ratio of times per effective draw of sparse logit and PL-Gibbs, in the paper and here."""
    paper = TABLE3[name]["logit"].seconds_per_draw / TABLE3[name]["gibbs"].seconds_per_draw
    plain = found[name, "logit-none"]["cost"] / found[name, "gibbs-none"]["cost"]
    moved = min(found[name, s]["cost"] for s in ("logit-none", "logit-all")) / found[name, "gibbs-exchange"]["cost"]
    return {
        "name": NAMES[name],
        "paper": paper,
        "plain": plain,
        "moved": moved,
        "verdict": AGREES if (paper > 1) == (plain > 1) else "the other model is ahead",
    }
