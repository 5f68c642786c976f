"""Task behind Table 2, Figure 3, colon and sushi: split, fit, predict held-out rows, score."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from plackett import datasets
from plackett.data.labels import Codes, Labels
from plackett.model.race import Array
from plackett.output.scores import scores
from plackett.paper.methods import METHODS, Method
from plackett.paper.runs import Job, Result, Results

SEED = 2012
MEASURES = {"error": "Error", "log_loss": "Log-loss", "brier": "Brier score"}
NOMINAL = {"sushi": ("pref15", "region15", "pref_now", "region_now")}


@lru_cache(maxsize=4)
def table(name: str) -> tuple[Array, Labels]:
    """Return covariates as numbers, and labels; colon's intensities as logarithms, sushi's nominal columns one-hot."""
    import pandas as pd

    bunch = datasets.load(name)
    X = pd.get_dummies(bunch.X, columns=list(NOMINAL.get(name, ())), dtype=float).to_numpy(dtype=np.float64)
    return (np.log(X) if name == "colon" else X), np.asarray(bunch.y)


def split(y: Labels, train: float | int, replication: int) -> tuple[Codes, Codes]:
    """Split into training rows (a share or a number) and the others, stratified by class."""
    from sklearn.model_selection import train_test_split

    inside, outside = train_test_split(np.arange(len(y)), train_size=train, stratify=y, random_state=SEED + replication)
    return inside, outside


def evaluate(
    dataset: str, train: float | int, replication: int, method: str, settings: Mapping[str, int], seed: int
) -> Result:
    """Fit to a training part and return scores on the rest.

    For two classes the result includes the held-out probabilities of the second, with the truth, for ROC curves. For
    samplers it includes the worst R-hat and the smallest effective sample size.
    """
    X, y = table(dataset)
    inside, outside = split(y, train, replication)
    classifier = METHODS[method].make(y[inside], seed, **settings)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about mixing: R-hat and ESS are stored below
        started = time.process_time()
        classifier.fit(X[inside], y[inside])
        seconds = time.process_time() - started
    probability = classifier.predict_proba(X[outside])
    found: Result = scores(probability, y[outside], classifier.classes_)._asdict()
    found |= {"n_train": len(inside), "n_test": len(outside), "cpu_seconds": round(seconds, 4)}
    if len(classifier.classes_) == 2:
        found["probability"] = np.round(probability[:, 1], 6).tolist()
        found["second"] = (y[outside] == classifier.classes_[1]).astype(int).tolist()
    diagnostics = getattr(classifier, "diagnostics_", None)
    if diagnostics is not None and np.isfinite(diagnostics.worst_rhat):
        found |= {"rhat": float(diagnostics.worst_rhat), "ess": float(diagnostics.smallest_ess)}
    return found


Tasks = dict[tuple[str, int], Job]  # tasks by method and replication


def tasks(
    dataset: str,
    train: float | int,
    replications: int,
    methods: Sequence[Method],
    settings: Mapping[str, Mapping[str, int]],
) -> Tasks:
    """Return a task for every method and replication; settings depend on the kind of the method."""
    n = len(table(dataset)[1])
    return {
        (method.key, replication): Job(
            f"{dataset}-{train}-{method.key}-{replication:02d}",
            evaluate,
            {
                "dataset": dataset,
                "train": train,
                "replication": replication,
                "method": method.key,
                "settings": dict(settings.get(method.kind, {})),
                "seed": SEED + replication,
            },
            turn=replication,
        )
        for method in methods
        if method.largest is None or n <= method.largest
        for replication in range(replications)
    }


def measured(tasks: Tasks, results: Results, method: str, measure: str) -> Array:
    """Return one measure of a method over the replications, (replication,); empty if the method was not run."""
    return np.array([results(task).get(measure, np.nan) for (key, _), task in tasks.items() if key == method])
