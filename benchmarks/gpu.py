"""Passes on a GPU against its copy bandwidth, and the gradient of learned directions; run with make bench-gpu."""

import time
from functools import partial

import numpy as np

from plackett.data.observations import Observations, Situations
from plackett.directions import LearnedDirections
from plackett.directions.flights import Trajectories
from plackett.engines.cupy_directions import bring_covariates
from plackett.engines.device import gpu
from plackett.engines.factory import make_engine
from plackett.engines.tiles import EXPECT, LANES, SAMPLE, CupyRows
from plackett.inference.em import EM
from plackett.model.race import Weights
from plackett.responses import Outcomes, make_response

SMALLEST = {}  # it needs a GPU, where the sizes matter


def milliseconds(function, repeats=7, runs=10):
    """The median over repeats of so many runs, one after the other, by the clock of the GPU."""
    cp = gpu()
    function()
    times = []
    for _ in range(repeats):
        start, end = cp.cuda.Event(), cp.cuda.Event()
        start.record()
        for _ in range(runs):
            function()
        end.record()
        end.synchronize()
        times.append(cp.cuda.get_elapsed_time(start, end) / runs)
    return float(np.median(times))


def copy_bandwidth():
    """Bytes a second of a copy, read and written."""
    cp = gpu()
    a = cp.random.random(1 << 29)
    b = cp.empty_like(a)
    return 2 * a.nbytes / milliseconds(lambda: cp.copyto(b, a)) * 1e3


def synthetic(n, p, n_classes, dtype=np.float32):
    """Random rows, made on the GPU."""
    cp = gpu()
    cp.random.seed(0)
    n_tiles = n // LANES
    counts = np.full(n_classes, n_tiles // n_classes)
    counts[: n_tiles % n_classes] += 1
    tiles = cp.random.uniform(0.1, 2.0, size=(n_tiles, p, LANES), dtype=dtype)
    for k, end in enumerate(np.cumsum(counts).tolist()):
        tiles[end - counts[k] : end, k::n_classes] *= 1.5  # so that classes differ
    return CupyRows(tiles, counts * LANES, None, np.arange(0))


def sweeps(copy):
    rng = np.random.default_rng(0)
    for n, p, K in ((10_000_000, 101, 10), (10_000_000, 51, 5), (20_000_000, 21, 3)):
        rows = synthetic(n, p, K)
        for mode, name, C in ((EXPECT, "expected", 1), *((SAMPLE, "sampled", C) for C in (1, 2, 4))):
            own, keys = rng.random((C, K, p)), np.arange(C, dtype=np.uint64)
            t = milliseconds(partial(rows.launch, mode, own, own.sum(axis=1), keys))
            rate = rows.tiles.nbytes / t * 1e3
            print(f"  {name}, n = {n:,}, p = {p}, K = {K}, {C} chains: {t:6.3f} ms, {rate / copy:4.0%} of copy")
        rows = None
        gpu().get_default_memory_pool().free_all_blocks()


def gradients():
    rng = np.random.default_rng(0)
    for n, d, K, M in ((1_000_000, 20, 4, 16), (1_000_000, 50, 10, 40)):
        X, codes = rng.standard_normal((n, d), dtype=np.float32), rng.integers(K, size=n)
        rows = bring_covariates(X, Observations.of_classes(codes, K), np.dtype(np.float32))
        for C in (1, 4):
            room = rows.room(C, K, M)
            room.beta[:], room.votes[:], room.log_total[:] = (gpu().random.random(a.shape) for a in room[:3])
            t = milliseconds(partial(rows.run, room))
            print(f"  gradient, n = {n:,}, d = {d}, K = {K}, {M} components, {C} chains: {t:6.3f} ms")


def situations():
    """Against the processor: choices of five among ten kinds, with rows of their own, and rankings of ten items."""
    rng = np.random.default_rng(0)
    for name, T, size, p in (("choice", 1_000_000, 5, 20), ("ranking", 500_000, 10, 20)):
        entries = np.full(T, size)
        outcomes = Outcomes(*(np.arange(0, n * T + 1, n) for n in (size, 1 if name == "choice" else size)),
                            np.ones(T if name == "choice" else T * size, dtype=int), np.ones(T))  # fmt: skip
        group = np.argsort(rng.random((T, 10)), axis=1)[:, :size].ravel()
        row = np.arange(T * size) if name == "choice" else np.repeat(np.arange(T), entries)
        W = rng.uniform(0.1, 2.0, size=(row[-1] + 1, p)).astype(np.float32)
        seen = Observations.of_situations(Situations(outcomes, group, row), make_response(name), 10)
        weights, beta = Weights.point(rng.normal(size=(10, p))), rng.normal(size=(12, p)) / 5
        log_weights = rng.normal(size=(10, 12))
        passes = {
            "expected": lambda rows, w=weights: rows.expect(w),
            "sampled": lambda rows, w=weights: rows.sample(w, 1),
            "gradient": lambda rows, b=beta, w=log_weights: rows.gradient(b, w),
        }
        for engine in ("numba", "cupy"):
            rows = make_engine(engine).rows(W, seen)
            for what, function in passes.items():
                function(rows)
                started = time.perf_counter()
                for _ in range(5):
                    function(rows)
                t = (time.perf_counter() - started) / 5e-3
                print(f"  {what}, {T:,} of {name}, {size} entries each, p = {p}, {engine}: {t:.2f} ms", flush=True)
        for C in (1, 4):
            t = leap(rows, C)
            print(f"  leap, {T:,} of {name}, {size} entries each, p = {p}, 10 components, {C} chains: {t:.2f} ms")


def leap(rows, n_chains, n=20):
    """Milliseconds of a leap of so many chains over situations of ten groups, each of which owns a component."""
    prior = LearnedDirections().prior(10, rows.n_columns, 0.02, 1)._replace(totals=True)
    trajectories = Trajectories(rows, prior, n_chains)
    q = np.random.default_rng(0).normal(size=(n_chains, trajectories.D)) / 5
    value, gradient = trajectories.look(q)
    rest = np.ones_like(q), np.full(n_chains, 1e-9), value - 1000.0, n
    return milliseconds(lambda: trajectories.fly(q, q, gradient, *rest), repeats=3, runs=2) / n


def climb(copy):
    rows = synthetic(10_000_000, 51, 5)
    started = time.perf_counter()
    found = EM().path(rows, [1.1], coarse=EM().tol)[0]
    taken = time.perf_counter() - started
    passes = found.passes / taken
    limit = copy / rows.tiles.nbytes
    print(f"  EM, n = 10,000,000, p = 51: {taken:.2f} s, {found.passes} passes, {passes:.0f} a second "
          f"({passes / limit:.0%} of what copying allows)")  # fmt: skip


def main():
    name = gpu().cuda.runtime.getDeviceProperties(0)["name"].decode()
    copy = copy_bandwidth()
    print(f"{name}: copy {copy / 1e12:.2f} TB/s")
    sweeps(copy)
    gradients()
    climb(copy)
    situations()
