"""Beyond section 4.3: complete rankings of the ten kinds of sushi instead of first choices."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from plackett import datasets
from plackett.data.rankings import Rankings
from plackett.inference import EM, Gibbs
from plackett.paper.document import PaperColumn, PaperTable, Row
from plackett.paper.held_out import SEED, split
from plackett.paper.plan import Plan
from plackett.paper.runs import Job, Result, Results
from plackett.paper.values import SUSHI_SPLIT
from plackett.paper.verdicts import paired, spread
from plackett.ranker import PlackettLuceRanker

if TYPE_CHECKING:
    import pandas as pd


ORDERS = Path("sushi") / "sushi3a_orders.csv"
MODELS = {
    "first": "first choices, without covariates",
    "worths": "whole rankings, without covariates",
    "mode": "whole rankings, learned directions, mode",
    "learned": "whole rankings, learned directions",
}
REPLICATIONS = 3


def orders() -> Path:
    """Path of the file of rankings."""
    return Path(os.environ.get(datasets.FOLDER, "")) / ORDERS


def columns() -> pd.DataFrame:
    """Return covariates of the users: without prefectures, regions as indicators, time as a logarithm."""
    import pandas as pd

    X = datasets.load("sushi").X.drop(columns=["user_id", "pref15", "pref_now"], errors="ignore")
    X = pd.get_dummies(X.assign(time=np.log(X["time"])), columns=["region15", "region_now"], dtype=float)
    return X.to_numpy(dtype=np.float64)


def evaluate(model: str, train: int, replication: int, settings: Mapping[str, Any], seed: int) -> Result:
    """Fit to a training part; return ln Pr of the other rankings, and the number of wrong first choices."""
    import pandas as pd

    ranked = pd.read_csv(orders()).to_numpy()
    R = Rankings.from_orders(ranked.tolist(), unranked="absent", items=range(ranked.shape[1]))
    inside, outside = split(datasets.load("sushi").y, train, replication)
    X = columns() if model in ("mode", "learned") else np.empty((len(R), 0))
    seen = R[inside]
    if model == "first":
        seen = Rankings.from_orders(ranked[inside, :1].tolist(), unranked="last", items=R.items.tolist())
    inference = EM(cv=3) if model == "mode" else Gibbs(**settings)
    ranker = PlackettLuceRanker(inference, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = time.process_time()
        ranker.fit(X[inside], seen)
        seconds = time.process_time() - started
    first = ranker.predict_proba(X[outside]).argmax(axis=1)
    return {
        "log_likelihood": float(np.mean(ranker.log_likelihood(X[outside], R[outside]))),
        "wrong": int((first != ranked[outside, 0]).sum()),
        "cpu_seconds": round(seconds, 2),
    }


def tasks(plan: Plan) -> dict[tuple[str, int], Job]:
    """Return runs of every model on some splits; none without the file of rankings."""
    if not orders().is_file():
        return {}
    settings = plan.pick({}, {"draws": 15, "tune": 15, "chains": 1})
    return {
        (model, replication): Job(
            f"sushi-rankings-{model}-{replication:02d}",
            evaluate,
            {
                "model": model,
                "train": SUSHI_SPLIT[0],
                "replication": replication,
                "settings": settings,
                "seed": SEED + replication,
            },
            turn=replication,
        )
        for model in MODELS
        for replication in range(plan.pick(REPLICATIONS, 1))
        if not (plan.quick and model in ("mode", "learned"))
    }


def blocks(plan: Plan, results: Results) -> list[str | PaperTable]:
    """Return a paragraph and a table, or one sentence without results."""
    group = tasks(plan)
    if not group:
        return [f"The whole rankings are left out: there is no file {ORDERS} among the data sets."]
    found = {
        model: {m: np.array([results(job)[m] for (key, _), job in group.items() if key == model]) for m in MEASURED}
        for model in MODELS
        if any(key == model for key, _ in group)
    }
    rows: list[Row] = []
    for model, measured in found.items():
        gap, z = paired(measured["log_likelihood"], found["worths"]["log_likelihood"])
        rows.append(
            {
                "model": MODELS[model],
                **{m: spread(values) for m, values in measured.items()},
                "gap": None if model == "worths" else gap,
                "gap_z": None if model == "worths" else z,
            }
        )
    headings = [
        PaperColumn("model", "Fitted to"),
        PaperColumn("log_likelihood", "ln Pr of a held-out ranking"),
        PaperColumn("gap", "Against worths alone", "+.3f"),
        PaperColumn("gap_z", "That difference (SE, paired)", "+.1f"),
        PaperColumn("wrong", "Wrong first choices of 1,000", ".0f"),
        PaperColumn("cpu_seconds", "Seconds a fit", ".0f"),
    ]
    text = (
        "The paper uses the first choice of each user alone; the whole ranking of ten kinds says nine times as much. "
        f"{plan.pick(REPLICATIONS, 1)} of the same splits, whole rankings of the held-out users predicted. A guess has "
        f"ln Pr = −ln 10! = {-float(np.log(np.arange(1, 11)).sum()):.2f}. Users are known by gender, age group, time, "
        "regions and whether they moved."
    )
    return [text, PaperTable("sushi_rankings", "Sushi: whole rankings, mean (deviation) over splits.", headings, rows)]


MEASURED = ("log_likelihood", "wrong", "cpu_seconds")
