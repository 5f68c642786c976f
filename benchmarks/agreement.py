"""Two fits of the default that differ in their seed alone: root mean square difference of what they predict.

Half of the rows, or persons, for training and the other half to predict: six sets that the project has looked at, and
three that it has not: heating (one of five systems from costs and the household), train (one of two tickets from what
they offer), beans (the best of three varieties from where and when they were grown).
"""

import os
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupShuffleSplit

from benchmarks.prediction.sets import make_split
from plackett import PlackettLuceClassifier

KNOWN = ("wine", "heart", "glass", "pima", "german", "segment")
SEEDS, GOAL = (1, 2), 0.015


def heating(table):
    """Costs and household, and the system chosen."""
    return pd.get_dummies(table.drop(columns=["idcase", "depvar"]), columns=["region"]), table["depvar"], None


def train(table):
    """What two tickets offer, which was chosen, and by whom."""
    return table.drop(columns=["id", "choiceid", "choice"]), table["choice"], table["id"]


def beans(table):
    """Where and when, and the best variety."""
    where = table[["season", "year", "maxTN", "lon", "lat"]]
    return pd.get_dummies(where, columns=["season"]), table["rank1"], None


NEW = {"heating": heating, "train": train, "beans": beans}

SMALLEST = {"KNOWN": ("lenses",), "NEW": {}}


def halves(name):
    """Covariates, labels and persons to learn from, and covariates to predict."""
    if name in KNOWN:
        split = make_split(name, 0)
        return split.X_train, split.y_train, split.groups, split.X_test
    X, y, person = NEW[name](pd.read_csv(Path(os.environ["PLACKETT_DATA"]) / f"{name}.csv"))
    X, y = X.to_numpy(dtype=float), y.to_numpy()
    group = np.arange(len(y)) if person is None else person.to_numpy()
    one, other = next(GroupShuffleSplit(1, train_size=0.5, random_state=0).split(X, y, group))
    return X[one], y[one], None if person is None else group[one], X[other]


def fitted(X, y, groups, seed):
    """A default fit, its seconds and what it warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        began = time.perf_counter()
        clf = PlackettLuceClassifier(random_state=seed).fit(X, y, groups=groups)
        return clf, time.perf_counter() - began, [str(found.message) for found in caught]


def compared(X, y, groups, tested):
    """Root mean square difference of two fits' predictions, and what they say of themselves."""
    (one, took, said), (other, more, also) = (fitted(X, y, groups, seed) for seed in SEEDS)
    difference = np.sqrt(np.mean((one.predict_proba(tested) - other.predict_proba(tested)) ** 2))
    found = [clf.diagnostics_ for clf in (one, other)]
    rhat, error = (max(getattr(d, name) for d in found) for name in ("prediction_rhat", "largest_error"))
    return difference, rhat, error, (took + more) / 2, said + also


def main():
    print(f"\nRoot mean square difference of predictions of two default fits (goal: at most {GOAL}, or a warning)")
    for name in (*KNOWN, *NEW):
        X, y, groups, tested = halves(name)
        difference, rhat, error, seconds, said = compared(X, y, groups, tested)
        size = f"{len(X):5,} × {X.shape[1]:2}, {len(np.unique(y)):2} classes"
        numbers = f"R-hat up to {rhat:.2f}, Monte-Carlo error up to {error:.3f}, {seconds:5.1f} s a fit"
        print(f"  {name:8} {size}: {difference:.4f}  ({numbers}, {len(said)} of 2 warn)", flush=True)
        for message in said:
            print(f"    {message}")
