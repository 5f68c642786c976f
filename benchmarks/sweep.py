"""One Gibbs sweep against one read of W, and against plain vectorised NumPy."""

from benchmarks.timing import apart

ROWS, FEATURES, CLASSES, ROUNDS = 1_000_000, 51, 5, 3
SMALLEST = {"ROWS": 2000, "ROUNDS": 1}

READ = """
import numpy as np
from benchmarks.timing import median_seconds
n, p, K = {size}
W, v = np.random.default_rng(0).random((n, p)), np.ones(p)
print(median_seconds(lambda: W @ v))
"""

SWEEP = """
import numpy as np
from benchmarks.timing import median_seconds
from plackett.data.observations import Observations
from plackett.engines.factory import make_engine
from plackett.inference.paper_sampler import sweeps_of_any_engine
from plackett.inference.sweeps import State, Target
from plackett.priors import LogUniform, tabulate
n, p, K = {size}
rng = np.random.default_rng(0)
W, y = rng.random((n, p), dtype=np.{dtype}), rng.integers(K, size=n)
rows = make_engine("numba").rows(W, Observations.of_classes(y, K))
del W
state = State(np.full((K, p), -np.log(K * p)), np.array([0.0, 0.5, 0.0, 0.0]))
target = Target(1.0, True, *tabulate(LogUniform()))
draws = {{"log_weights": np.empty((1, K, p)), "shape": np.empty(1), "value": np.empty(1)}}
print(median_seconds(lambda: sweeps_of_any_engine(rows, state, rng, target, False, draws)))
"""

PLAIN = """
import numpy as np
from benchmarks.timing import median_seconds
n, p, K = {size}
rng = np.random.default_rng(0)
W, y, lam = rng.random((n, p)), rng.integers(K, size=n), rng.gamma(0.5, size=(K, p))

def sweep():
    global lam
    climb = np.cumsum(W * lam[y], axis=1)
    C = (climb < rng.random((n, 1)) * climb[:, -1:]).sum(axis=1)
    Z = rng.exponential(size=n) / (W @ lam.sum(axis=0))
    wins = np.zeros((K, p))
    np.add.at(wins, (y, C), 1)
    lam = rng.gamma(0.5 + wins, 1 / (1 + Z @ W))

print(median_seconds(sweep, repeats=3, warm=1))
"""


def main():
    size = f"{ROWS}, {FEATURES}, {CLASSES}"
    print(f"One Gibbs sweep, n, p, K = {size}, all cores (medians; each line in its own process)")
    codes = [READ.format(size=size), *(SWEEP.format(size=size, dtype=kind) for kind in ("float64", "float32"))]
    rounds = [[apart(code) for code in codes] for _ in range(ROUNDS)]
    read, double, single = (sorted(column)[ROUNDS // 2] for column in zip(*rounds, strict=True))
    plain = apart(PLAIN.format(size=size))
    print(f"  one read, W @ v, float64   {1e3 * read:8.1f} ms")
    for name, seconds, limit in (("float64", double, 1.3), ("float32", single, 1.1)):
        print(f"  sweep, {name}             {1e3 * seconds:8.1f} ms = {seconds / read:.2f} reads (target ≤ {limit})")
    print(f"  plain NumPy sweep, float64 {1e3 * plain:8.1f} ms = {plain / read:.0f} reads")
    print(f"    = {plain / double:.0f} sweeps with float64, {plain / single:.0f} with float32 storage (target ≥ 40)")
