"""A pass on a local Dask cluster against the compiled engine on the same cores, which take turns in one process.

The cluster has a process a core with one thread, the compiled engine a thread a core. A pass over hardly any rows tells
what a question to all workers costs by itself. Gradients of learned directions are asked for by one chain, and by four
side by side, whose questions go together.
"""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

import plackett.engines.dask as far
from plackett.cluster import directions
from plackett.cluster.client import cluster
from plackett.compute.pieces import cores
from plackett.data.observations import Observations
from plackett.engines.factory import make_engine
from plackett.inference.driver import Source
from plackett.model.race import Weights

FEATURES, CLASSES = 41, 4
BLOCKS = {1_000_000: (64, 8, 2), 10_000_000: (16, 2)}  # of so many rows
GRADIENT_ROWS, COLUMNS, COMPONENTS, CHAINS = 200_000, 20, 16, 4
WORKERS = (1, 2, 4)
TURNS = 9
SCALED = (4_000_000, 8)  # rows and blocks with which workers are added
SMALLEST = {"BLOCKS": {4000: (2,)}, "GRADIENT_ROWS": 500, "WORKERS": (1,), "TURNS": 1, "SCALED": (4000, 2)}


def problem(rows):
    rng = np.random.default_rng(0)
    W = rng.random((rows, FEATURES), dtype=np.float32)
    W /= W.max(axis=1, keepdims=True)
    return W, rng.integers(CLASSES, size=rows), np.log(rng.gamma(0.5, size=(CLASSES, FEATURES)))


def seconds(tasks):
    """The median and the smallest time of each task by the clock."""
    times = {name: [] for name in tasks}
    for turn in range(TURNS + 2):
        for name, task in tasks.items():
            started = time.perf_counter()
            task()
            if turn > 1:
                times[name].append(time.perf_counter() - started)
    return {name: (np.median(each), min(each)) for name, each in times.items()}


def compare(n, blocks):
    """A pass over n rows, cut into so many blocks."""
    W, codes, log_weights = problem(n)
    weights = Weights.point(log_weights)
    near = make_engine("numba").rows(W, Observations.of_classes(codes, CLASSES))
    with cluster():
        tasks = {"compiled": lambda: near.expect(weights)}
        few = make_engine("dask").rows(W[:1000], Observations.of_classes(codes[:1000], CLASSES))
        tasks["dask, 1,000 rows"] = lambda: few.expect(weights)
        for count in blocks:
            far.ENTRIES = n * FEATURES / count
            rows = make_engine("dask").rows(W, Observations.of_classes(codes, CLASSES))
            tasks[f"dask, {count} blocks of {n // count:,}"] = lambda rows=rows: rows.expect(weights)
        found = seconds(tasks)
    tell(f"an expected pass, n = {n:,}, p = {FEATURES}, K = {CLASSES}, float32", found)


def tell(what, found):
    """A table of the times, and how they compare with the first."""
    first = next(iter(found.values()))[0]
    print(f"\nDask: {what}")
    print(f"{'':32}{'median':>12}{'best':>12}{'passes/s':>10}{'against':>10}")
    for name, (median, best) in found.items():
        print(
            f"{name:32}{1e3 * median:9.1f} ms{1e3 * best:9.1f} ms{1 / median:10.1f}{median / first:10.2f}", flush=True
        )


def compare_gradients(n):
    """A gradient of learned directions, and four of chains side by side."""
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(n, COLUMNS)), rng.integers(CLASSES, size=n)
    place = rng.normal(size=(COMPONENTS, COLUMNS)), rng.normal(size=(CLASSES, COMPONENTS))
    with cluster(), ThreadPoolExecutor(CHAINS) as pool:
        for kind in (np.float32, np.float64):
            tasks = {}
            near = make_engine("numba").gradient(X, Observations.of_classes(codes, codes.max() + 1, np.ones(n)), kind)
            tasks["compiled"] = lambda near=near: near.gradient(*place)
            for count in (2, 8):
                directions.ENTRIES = n * COLUMNS / count
                rows = directions.send_classes(X, codes, None, Source(np.random.SeedSequence(0))).prepared(kind)
                tasks[f"dask, {count} blocks"] = lambda rows=rows: rows.gradient(*place)
                tasks[f"dask, {count} blocks, {CHAINS} chains"] = lambda rows=rows: list(
                    pool.map(lambda _: rows.gradient(*place), range(CHAINS))
                )
            found = seconds(tasks)
            each = {name: np.array(took) / (CHAINS if "chains" in name else 1) for name, took in found.items()}
            what = f"{COLUMNS} columns, {COMPONENTS} components, K = {CLASSES}, {kind.__name__}"
            tell(f"a gradient, n = {n:,}, {what}", each)


def scaling(n, blocks):
    """A pass with 1, 2 and 4 workers of one thread against a forecast: a question, and what so many threads take here.

    Where one core takes all that the memory gives, two are no faster; workers beyond the cores share them.
    """
    import distributed

    W, codes, log_weights = problem(n)
    weights = Weights.point(log_weights)
    near = make_engine("numba").rows(W, Observations.of_classes(codes, CLASSES))
    print(f"\nDask: an expected pass by workers of one thread, n = {n:,} in {blocks} blocks, {cores()} cores")
    print(f"{'workers':>8}{'a question':>14}{'threads here':>14}{'a pass':>12}{'forecast':>12}{'against':>10}")
    for workers in WORKERS:
        near.set_threads(min(workers, cores()))
        with (
            distributed.LocalCluster(workers, threads_per_worker=1, dashboard_address=None) as local,
            distributed.Client(local, direct_to_workers=True),
        ):
            far.ENTRIES = 1000 * FEATURES / blocks
            few = make_engine("dask").rows(W[:1000], Observations.of_classes(codes[:1000], CLASSES))
            far.ENTRIES = n * FEATURES / blocks
            rows = make_engine("dask").rows(W, Observations.of_classes(codes, CLASSES))
            tasks = {"question": few, "here": near, "pass": rows}
            found = seconds({name: lambda each=each: each.expect(weights) for name, each in tasks.items()})
        question, here, whole = (1e3 * found[name][0] for name in tasks)
        forecast = question + here
        told = f"{question:11.1f} ms{here:11.1f} ms{whole:9.1f} ms{forecast:9.1f} ms{whole / forecast:10.2f}"
        print(f"{workers:8}{told}", flush=True)


def main():
    for n, blocks in BLOCKS.items():
        compare(n, blocks)
    compare_gradients(GRADIENT_ROWS)
    scaling(*SCALED)
