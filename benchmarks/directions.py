"""Default fits of learned directions: seconds on two real sets, how they grow with the rows, and many rows."""

import time
import warnings

import numpy as np

from benchmarks.agreement import compared, fitted
from benchmarks.prediction.methods import logistic_l2
from benchmarks.prediction.sets import make_split
from plackett import PlackettLuceClassifier

GOALS = {"segment": 10, "fishing": 4}  # seconds on two cores
ROWS = (1000, 2000, 4000, 8000)
MANY = (100_000, 20)
SMALLEST = {"GOALS": {"lenses": 1}, "ROWS": (60, 120), "MANY": (200, 8), "WARM": ("lenses", 12)}
WARM = ("pima", 100)  # a set, and rows of it that compile the kernels


def seconds(model, X, y):
    """Of a fit, compiled before."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        began = time.perf_counter()
        model.fit(X, y)
        return time.perf_counter() - began


def simulated(n, d):
    """A logit with squares, of four classes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    return X, np.argmax(2 * X[:, :4] + X[:, 4:8] ** 2 + rng.gumbel(size=(n, 4)), axis=1)


def main():
    print("\nLearned directions with the defaults, seconds on all cores; logistic regression with its penalty tuned")
    warm, rows = WARM
    small = make_split(warm, 0)
    seconds(PlackettLuceClassifier(random_state=0), small.X_train[:rows], small.y_train[:rows])
    for name, goal in GOALS.items():
        try:
            split = make_split(name, 0)
        except OSError as error:
            print(f"left out: {error}")
            continue
        ours = seconds(PlackettLuceClassifier(random_state=0), split.X_train, split.y_train)
        logit = seconds(logistic_l2(split.folds, 0), split.X_train, split.y_train)
        n, d = split.X_train.shape
        rival = f"{ours / logit:.0f} times as long as logistic regression, {logit:.2f} s"
        print(f"  {name:8} {n:5} × {d:2}: {ours:5.1f} s (goal {goal}), {rival}")
    X, y = simulated(2 * max(ROWS), 10)
    for n in ROWS:
        took = seconds(PlackettLuceClassifier(random_state=0), X[:n], y[:n])
        print(f"  {n:6,} rows × 10, 4 classes: {took:5.1f} s, {1e6 * took / n:6.0f} µs a row")
    half = max(ROWS)
    difference, rhat, error, _, said = compared(X[:half], y[:half], None, X[half:])
    print(f"  {half:6,} rows × 10, other seed: root mean square difference {difference:.4f}, R-hat up to {rhat:.2f},")
    print(f"    Monte-Carlo error up to {error:.3f}; {said or 'no warning'}")
    clf, took, said = fitted(*simulated(*MANY), None, 0)
    found = clf.diagnostics_
    print(f"  {MANY[0]:,} rows × {MANY[1]}: {took:.0f} s, R-hat up to {found.prediction_rhat:.2f},", end="")
    print(f" {found.sentence}; {said or 'no warning'}")
