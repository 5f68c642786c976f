"""Coverage of the 90 % intervals of `predict_interval` for true probabilities, on simulated rows.

Three classes and four covariates that matter; truths of three kinds, drawn anew for every set:

- logit: p = softmax(c + Bx);
- mixture: a logit each in two hidden regions, p = g·softmax(c₁ + B₁x) + (1 − g)·softmax(c₂ + B₂x) with g a steep
  function of one direction: no choice of weights and directions gives it exactly;
- noise: the logit, with 20 columns beside it that do not matter.

The rows of one set err together, so that the sets are what the standard error counts.
"""

import warnings

import numpy as np
from scipy.special import expit, softmax
from sklearn.exceptions import ConvergenceWarning

from plackett import PlackettLuceClassifier

KINDS = ("logit", "mixture", "noise")
SETS = {100: 24, 400: 16, 2000: 12}  # of so many rows
CLASSES, COLUMNS, NOISE, TESTED = 3, 4, 20, 100
STEEP = 3.0  # the slope between the regions
SMALLEST = {"KINDS": ("mixture", "noise"), "SETS": {30: 2}, "TESTED": 5}
PROBABILITY, GOAL = 0.9, (0.85, 0.95)


def logit(rng, slope):
    """A function from rows to probabilities."""
    B, c = slope * rng.normal(size=(COLUMNS, CLASSES)), 0.5 * rng.normal(size=CLASSES)
    return lambda X: softmax(X[:, :COLUMNS] @ B + c, axis=1)


def mixture(rng):
    """Two logits, and which of them holds where."""
    one, other, between = logit(rng, np.sqrt(2)), logit(rng, np.sqrt(2)), rng.normal(size=COLUMNS)
    between *= STEEP / np.linalg.norm(between)

    def truth(X):
        share = expit(X @ between)[:, None]
        return share * one(X) + (1 - share) * other(X)

    return truth


def simulated(kind, n, number):
    """Rows and labels to learn from, and rows with their true probabilities."""
    rng = np.random.default_rng([n, number, KINDS.index(kind)])
    truth = mixture(rng) if kind == "mixture" else logit(rng, 1.0)
    columns = COLUMNS + NOISE * (kind == "noise")
    X, tested = rng.normal(size=(n, columns)), rng.normal(size=(TESTED, columns))
    y = (rng.random(n)[:, None] > truth(X).cumsum(axis=1)[:, :-1]).sum(axis=1)
    return X, y, tested, truth(tested)


def measured(kind, n, number):
    """Of one set: the share of true probabilities within their intervals, the mean width of these, warnings."""
    X, y, tested, true = simulated(kind, n, number)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        clf = PlackettLuceClassifier(random_state=number).fit(X, y)
    lower, upper = clf.predict_interval(tested, PROBABILITY)
    return np.mean((lower <= true) & (true <= upper)), np.mean(upper - lower), bool(caught)


def main():
    print(f"\nCoverage of {PROBABILITY:.0%} intervals for true probabilities (goal: {GOAL[0]:.0%} to {GOAL[1]:.0%})")
    for kind in KINDS:
        for n, many in SETS.items():
            found = np.array([measured(kind, n, number) for number in range(many)])
            coverage, width, warned = found.mean(axis=0)
            error = found[:, 0].std(ddof=1) / np.sqrt(many)
            about = f"{many} sets, mean width {width:.2f}, {warned:.0%} of fits warn"
            print(f"  {kind:8} {n:5,} rows: {coverage:5.1%} ± {error:.1%}  ({about})", flush=True)
