"""Seconds of a fit by rows, columns and classes: the table of docs/large.md."""

import os
import time
import warnings

import numpy as np

from plackett import PlackettLuceChooser, PlackettLuceClassifier, PlackettLuceRanker, datasets

INFERENCES = ("gibbs", "bootstrap", "em")
SHIPPED = ("wine", "german")
SIMULATED = ((2_000, 20, 4), (10_000, 20, 4), (50_000, 20, 4))
LARGE = 10_000  # rows from which chains are left out: minutes on a laptop
VOTES, SITUATIONS = "arena", "train"
SMALLEST = {"SHIPPED": ("lenses",), "SIMULATED": (), "INFERENCES": ("em",)}


def main():
    print("\nSeconds of a fit by the clock (and of the processors), kernels compiled; two threads")
    for name in SHIPPED:
        found = datasets.load(name)
        classes(name, found.X.to_numpy(dtype=float), found.y)
    for rows, columns, kinds in SIMULATED:
        classes("simulated", *simulated(rows, columns, kinds))
    votes = datasets.load(VOTES).y
    for inference in [name for name in INFERENCES if name != "bootstrap"]:
        model = PlackettLuceRanker(inference, ties="davidson", random_state=0)
        tell(f"{int(votes.counts.sum()):,} votes, {len(votes.items)} items", inference, model, None, votes)
    trips = datasets.load(SITUATIONS)
    for label, model in {
        "conditional logit": PlackettLuceChooser("em", features="linear"),
        **{name: PlackettLuceChooser(name, random_state=0) for name in INFERENCES},
    }.items():
        tell(f"{len(trips.choices):,} choices", label, model, trips.choices, trips.y, groups=trips.groups)


def classes(name, X, y):
    """The classifier by every inference."""
    size = f"{name}: {len(X):,} × {X.shape[1]}, {len(np.unique(y))} classes"
    for inference in INFERENCES:
        if inference != "gibbs" or len(X) <= LARGE:
            tell(size, inference, PlackettLuceClassifier(inference, random_state=0), X, y)


def tell(size, label, model, *data, **settings):
    """Fit some rows, which compiles what is needed, then all of them, and print the seconds of the second fit."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        some = np.arange(0, len(data[1]), max(1, len(data[1]) // 200))
        model.fit(*(part if part is None else part[some] for part in data))
        started, before = time.perf_counter(), sum(os.times()[:4])
        model.fit(*data, **settings)
    wall, used = time.perf_counter() - started, sum(os.times()[:4]) - before
    print(f"  {size:36} {label:18} {wall:7.2f} ({used:.2f})", flush=True)


def simulated(rows, columns, kinds):
    """Classes from a logit with products of columns."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, columns))
    score = X @ rng.normal(size=(columns, kinds)) / 2 + (X[:, :kinds] * X[:, kinds : 2 * kinds])
    return X, (score + rng.gumbel(size=(rows, kinds))).argmax(axis=1)
