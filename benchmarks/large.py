"""Many rows: predictions against the matrix product they need, and the memory of a fit against its covariates."""

from benchmarks.timing import apart

FIT = """
import numpy as np
from benchmarks.timing import median_seconds
from plackett import Gibbs, PlackettLuceClassifier, Variational
rng = np.random.default_rng(0)
X = rng.normal(size=({n}, 20))
y = (X[:, 0] + rng.logistic(size=len(X)) > 0).astype(int) + (X[:, 1] > 1)
"""

PREDICT = """
import warnings
warnings.simplefilter("ignore")
clf = PlackettLuceClassifier({inference}, features="{features}", random_state=0).fit(X[:{rows}], y[:{rows}])
"""

WEIGHTS = """
weights = clf.posterior_.flat_draws()
A, B = clf.features_.transform(X), weights.reshape(-1, weights.shape[2]).T.copy()
"""

GATES = """
gates = clf.features_
A, B = gates.standardised(X), gates.directions.reshape(-1, gates.directions.shape[2]).T.copy()
"""

PRODUCT = """
out = np.empty((1024, B.shape[1]))
def product():
    for start in range(0, len(A), 1024):
        np.matmul(A[start : start + 1024], B, out=out[: len(A) - start])
print(median_seconds(product, repeats=3, warm=1))
"""

TIMED = "print(median_seconds(lambda: clf.predict_proba(X), repeats=3, warm=1))"

MEMORY = """
from pathlib import Path
def peak():
    return 1024 * int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
model = PlackettLuceClassifier(Variational(tol=1e-2), features="exp")
model.fit(X[:6000], y[:6000])
before = peak() - X.nbytes
model.fit(X, y)
print((peak() - before) / X.nbytes)
"""

ROWS, FIT_ROWS, ROUNDS = 100_000, 1_000_000, 3
SMALLEST = {"ROWS": 3000, "FIT_ROWS": 10_000, "ROUNDS": 1}
CASES = (
    ("exp, variational", "exp", "Variational(tol=1e-4)", 20_000, WEIGHTS, "(target ≤ 1.5)"),
    ("exp, Gibbs, 4,000 draws", "exp", "Gibbs(tune=20, moves='none')", 2_000, WEIGHTS, "(target ≤ 1.5)"),
    ("learned directions", "learned", "Gibbs(100, tune=50)", 500, GATES, "with its exponentials"),
)


def main():
    print(f"\nPrediction of {ROWS:,} × 20 rows, three classes (medians of {ROUNDS} processes, in turn)")
    for name, features, inference, rows, factors, word in CASES:
        start = FIT.format(n=ROWS) + PREDICT.format(inference=inference, features=features, rows=rows)
        rounds = [(apart(start + factors + PRODUCT), apart(start + TIMED)) for _ in range(ROUNDS)]
        product, predict = (sorted(column)[ROUNDS // 2] for column in zip(*rounds, strict=True))
        print(f"  {name:24} {predict:6.2f} s = {predict / product:.2f} matrix products {word}")
    print(
        f"  memory of a fit of {FIT_ROWS:,} × 20 rows, exp, variational: {apart(FIT.format(n=FIT_ROWS) + MEMORY):.2f} X"
        " with X (target ≤ 4)"
    )
