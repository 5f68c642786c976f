"""A pass over CSR features against the two sparse products it needs, in one process; they take turns.

What runs on one thread is measured in time of the processor, so that others on the machine matter less; two threads
are measured by the clock, and so are the products that they are held against.
"""

import time

import numpy as np
from scipy import sparse

from plackett.data.observations import Observations
from plackett.engines.factory import make_engine
from plackett.model.race import Weights

ROWS, COLUMNS, ENTRIES, CLASSES = 100_000, 100_000, 100, 20  # entries of a row
TURNS = 15
SMALLEST = {"ROWS": 1000, "COLUMNS": 500, "ENTRIES": 10, "CLASSES": 3, "TURNS": 1}


def problem(rng):
    columns, start = rng.integers(COLUMNS, size=ROWS * ENTRIES), np.arange(0, ROWS * ENTRIES + 1, ENTRIES)
    W = sparse.csr_array((rng.random(ROWS * ENTRIES), columns, start), shape=(ROWS, COLUMNS))
    W.sum_duplicates()
    return W, rng.integers(CLASSES, size=ROWS), np.log(rng.gamma(0.5, size=(CLASSES, COLUMNS)))


def seconds(tasks):
    """The median times of each task: of the processor, for this thread, and by the clock."""
    times = {name: [] for name in tasks}
    for turn in range(TURNS + 2):
        for name, task in tasks.items():
            started = time.thread_time(), time.perf_counter()
            task()
            if turn > 1:
                times[name].append((time.thread_time() - started[0], time.perf_counter() - started[1]))
    return {name: np.median(each, axis=0) for name, each in times.items()}


def main():
    rng = np.random.default_rng(0)
    W, codes, log_weights = problem(rng)
    rows, weights = make_engine("numba").rows(W, Observations.of_classes(codes, CLASSES)), Weights.point(log_weights)
    v, z = rng.random(COLUMNS), rng.random(ROWS)

    def on(threads, work):
        def task():
            rows.set_threads(threads)
            work()

        return task

    found = seconds(
        {
            "W @ v": lambda: W @ v,
            "W.T @ z": lambda: W.T @ z,
            "expected pass, one thread": on(1, lambda: rows.expect(weights)),
            "sampled pass, one thread": on(1, lambda: rows.sample(weights, 1)),
            "expected pass, two threads": on(2, lambda: rows.expect(weights)),
            "sampled pass, two threads": on(2, lambda: rows.sample(weights, 1)),
        }
    )
    products = found["W @ v"] + found["W.T @ z"]
    print(f"A pass over sparse features, n = p = {ROWS:,}, {W.nnz:,} entries, K = {CLASSES} (medians of {TURNS} turns)")
    for name, each in found.items():
        clock = int("two threads" in name)
        told = "" if "pass" not in name else f" = {each[clock] / products[clock]:.2f} × both products (target ≤ 2.5)"
        print(f"  {name:<27}{1e3 * each[clock]:8.1f} ms{told}")
