"""Passes on the GPU of Dask workers against those on the same GPU without Dask; run with make bench-gpu."""

import numpy as np
from distributed import Client, LocalCluster

from benchmarks.timing import median_seconds
from plackett.compute.pieces import cores
from plackett.data.observations import Observations
from plackett.engines.device import gpu
from plackett.engines.factory import make_engine
from plackett.model.race import Weights

ROWS, FEATURES, CLASSES = 4_000_000, 41, 4
SMALLEST = {"ROWS": 10_000}


def measure(rows, weights):
    """Milliseconds of passes."""
    passes = {"expected": lambda: rows.expect(weights), "sampled": lambda: rows.sample(weights, 1)}
    return {name: round(1e3 * median_seconds(function), 2) for name, function in passes.items()}


def main():
    gpu()
    n, rng = ROWS, np.random.default_rng(0)
    W = rng.random((n, FEATURES), dtype=np.float32)
    codes = rng.integers(CLASSES, size=n)
    weights = Weights.point(rng.normal(size=(CLASSES, FEATURES)))
    alone = measure(make_engine("cupy").rows(W, Observations.of_classes(codes, CLASSES)), weights)
    print(f"{n:,} rows, p = {FEATURES}, K = {CLASSES}, float32; without Dask {alone}")
    for workers in (1, 2):
        local = {"threads_per_worker": cores() // workers, "dashboard_address": "127.0.0.1:0"}
        with LocalCluster(n_workers=workers, **local) as far, Client(far, direct_to_workers=True):
            rows = make_engine("dask").rows(W, Observations.of_classes(codes, CLASSES))
            assert rows.on_gpus
            print(f"  {workers} workers, {len(rows.held.blocks)} blocks: {measure(rows, weights)}", flush=True)
