"""Fits of learned directions with the defaults: seconds on two real sets, and how they grow with the rows."""

import time
import warnings

import numpy as np

from benchmarks.prediction.methods import logistic_l2
from benchmarks.prediction.sets import make_split
from plackett import PlackettLuceClassifier

GOALS = {"segment": 10, "fishing": 4}  # seconds on two cores
ROWS = (1000, 2000, 4000, 8000)


def seconds(model, X, y):
    """Of a fit, compiled before."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.perf_counter()
        model.fit(X, y)
        return time.perf_counter() - began


def main():
    print("\nLearned directions with the defaults, seconds on all cores; logistic regression with its penalty tuned")
    small = make_split("segment", 0)
    seconds(PlackettLuceClassifier(random_state=0), small.X_train[:100], small.y_train[:100])
    for name, goal in GOALS.items():
        split = make_split(name, 0)
        ours = seconds(PlackettLuceClassifier(random_state=0), split.X_train, split.y_train)
        logit = seconds(logistic_l2(split.folds, 0), split.X_train, split.y_train)
        n, d = split.X_train.shape
        rival = f"{ours / logit:.0f} times as long as logistic regression, {logit:.2f} s"
        print(f"  {name:8} {n:5} × {d:2}: {ours:5.1f} s (goal {goal}), {rival}")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(max(ROWS), 10))
    y = np.argmax(2 * X[:, :4] + X[:, 4:8] ** 2 + rng.gumbel(size=(max(ROWS), 4)), axis=1)
    for n in ROWS:
        took = seconds(PlackettLuceClassifier(random_state=0), X[:n], y[:n])
        print(f"  {n:6,} rows × 10, 4 classes: {took:5.1f} s, {1e6 * took / n:6.0f} µs a row")
