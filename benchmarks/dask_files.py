"""More rows than memory: a variational fit of Parquet files on a local Dask cluster that may use less than they take.

Packed as float32 the rows take 6.6 GB, and two workers may use 3 GB together. A pass is set against reading as many
bytes of files, in two processes at once, of which as much is in the system's cache.
"""

import os
import resource
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from plackett import PlackettLuceClassifier, Variational
from plackett.engines.dask import ClusterRows
from plackett.features import ExpFeatures

ROWS, COLUMNS, CLASSES, FILES = 40_000_000, 20, 4, 160
MEMORY, WORKERS = 3_000_000_000, 2
CHUNK = 1 << 22  # bytes in a reading
SMALLEST = {"ROWS": 2000, "FILES": 2, "CHUNK": 1 << 10}


def write_rows(folder, rows, files):
    """A logit with a few covariates that matter, in files of equal size."""
    import pandas as pd

    names = [f"x{j}" for j in range(COLUMNS)]
    for number in range(files):
        rng = np.random.default_rng(number)
        X = rng.standard_normal((rows // files, COLUMNS), dtype=np.float32)
        scores = np.column_stack([np.zeros(len(X)), X[:, 0], X[:, 1] - 0.5, 0.7 * (X[:, 2] - X[:, 0])])
        kind = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1).astype(np.int8)
        pd.DataFrame(X, columns=names).assign(kind=kind).to_parquet(folder / f"{number:03d}.parquet")


def write_bytes(path, size):
    """A file of so many bytes."""
    piece = np.random.default_rng(0).bytes(CHUNK)
    with open(path, "wb") as file:
        for _ in range(size // CHUNK):
            file.write(piece)


def read_bytes(path):
    """From the first to the last."""
    room = bytearray(CHUNK)
    with open(path, "rb", buffering=0) as file:
        while file.readinto(room):
            pass


def peak():
    """The most memory that this process has had."""
    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def fit(folder):
    """The classifier, the seconds of all passes, and the most memory of each worker."""
    import dask.dataframe as dd
    import distributed

    seconds, expect = [], ClusterRows.expect

    def timed(rows, weights):
        started = time.perf_counter()
        stats = expect(rows, weights)
        seconds.append(time.perf_counter() - started)
        if len(seconds) % 10 == 0:
            print(f"{len(seconds)} passes, {np.median(seconds[-10:]):.2f} s each", flush=True)
        return stats

    ClusterRows.expect = timed
    limit = MEMORY // WORKERS
    with (
        distributed.LocalCluster(WORKERS, threads_per_worker=1, memory_limit=limit, dashboard_address=None) as local,
        distributed.Client(local, direct_to_workers=True) as client,
    ):
        processes = client.run(os.getpid)
        frame = dd.read_parquet(folder, split_row_groups=False, aggregate_files=False)
        features = ExpFeatures(dtype="float32")
        clf = PlackettLuceClassifier(Variational(), features=features, shape=1.0, engine="dask", random_state=0)
        started = time.perf_counter()
        clf.fit(frame.drop(columns="kind"), frame["kind"])
        whole = time.perf_counter() - started
        assert client.run(os.getpid) == processes, "a worker was lost"
        return clf, whole, seconds, list(client.run(peak).values())


def main():
    rows, files = ROWS, FILES
    bytes_of_w = 4 * rows * (2 * COLUMNS + 1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "rows").mkdir()
        write_rows(folder / "rows", rows, files)
        clf, whole, passes, memory = fit(folder / "rows")
        paths = [folder / f"{number}" for number in range(WORKERS)]
        with ProcessPoolExecutor(WORKERS) as pool:
            list(pool.map(write_bytes, paths, [bytes_of_w // WORKERS] * WORKERS))
            times = []
            for _ in range(4):
                started = time.perf_counter()
                list(pool.map(read_bytes, paths))
                times.append(time.perf_counter() - started)
    reading, one = np.median(times[1:]), np.median(passes)
    done = "converged" if clf.n_iter_ < clf.inference.max_iter else "did not converge"
    most = ", ".join(f"{each / 1e9:.2f} GB" for each in memory)
    print(f"\nDask: {rows:,} rows of {COLUMNS} covariates in {files} files; W as float32 {bytes_of_w / 1e9:.1f} GB")
    print(f"variational fit: {whole:.0f} s, {len(passes)} passes, {done}")
    print(f"most memory of the workers: {most}; their limit {MEMORY / WORKERS / 1e9:.2f} GB each")
    print(f"a pass {one:.2f} s, reading as many bytes {reading:.2f} s, ratio {one / reading:.2f}")
