"""What importing plackett costs over importing scikit-learn, and a first fit with an empty cache of kernels."""

import json
import os
import subprocess
import sys
import tempfile

from benchmarks.timing import apart

IMPORT = """
import time
import {first}
started = time.perf_counter()
import {second}
print(time.perf_counter() - started)
"""

FIT = """
import json, os, time, warnings
warnings.simplefilter("ignore")
started, before = time.perf_counter(), os.times()
import numpy as np
from plackett import *
from plackett.compute.numba_private import event
compiled = []
class Count(event.Listener):
    def on_start(self, event): compiled.append(event)
    def on_end(self, event): pass
event.register("numba:compile", Count())
{data}
{model}.fit(*data)
cpu = sum(os.times()[:4]) - sum(before[:4])
print(json.dumps([time.perf_counter() - started, cpu, len(compiled)]))
"""
IRIS = "from sklearn.datasets import load_iris; data = load_iris(return_X_y=True)"
WORTHS = (
    "orders = [['oak', 'elm', 'ash'], ['elm', 'oak'], ['fir', 'ash', 'oak'], ['ash', 'fir', 'oak']] * 4\n"
    "data = None, Rankings.from_orders(orders, unranked='absent')"
)
RANKINGS = (
    "rng = np.random.default_rng(0)\n"
    "X, ranks = rng.normal(size=(60, 3)), rng.permuted(np.tile([1, 2, 3, 4], (60, 1)), axis=1)\n"
    "data = X, Rankings.from_ranks(ranks, unranked='absent')"
)
CHOICES = "from plackett.datasets import load; modes = load('travelmode'); data = modes.choices, modes.y"
FITS = {
    "classifier, the default": (IRIS, "PlackettLuceClassifier(random_state=0)"),
    "classifier, EM": (IRIS, "PlackettLuceClassifier('em')"),
    "paper's sampler": (IRIS, "PlackettLuceClassifier(features='exp', random_state=0)"),
    "paper's EM": (IRIS, "PlackettLuceClassifier('em', features='exp')"),
    "paper's variational scheme": (IRIS, "PlackettLuceClassifier('variational', features='exp')"),
    "sparse logit": (IRIS, "SparseLogitClassifier(random_state=0)"),
    "ranker, worths alone": (WORTHS, "PlackettLuceRanker(random_state=0)"),
    "ranker, covariates": (RANKINGS, "PlackettLuceRanker(random_state=0)"),
    "chooser, the default": (CHOICES, "PlackettLuceChooser(random_state=0)"),
    "chooser, EM": (CHOICES, "PlackettLuceChooser('em')"),
}

TIMES = 7
SHOWN = tuple(FITS)
SMALLEST = {"TIMES": 1, "SHOWN": ("paper's EM",)}


def main():
    print(f"\nImport (median of {TIMES} fresh interpreters)")
    over, base = (
        sorted(apart(IMPORT.format(first=first, second=second)) for _ in range(TIMES))[TIMES // 2]
        for first, second in (("sklearn.linear_model", "plackett"), ("sys", "sklearn.linear_model"))
    )
    print(f"  scikit-learn {base:.2f} s, plackett on top {over:.2f} s (target ≤ 0.30)")
    print("\nFirst fit, import included: seconds (CPU seconds), functions compiled; the same with kernels in the cache")
    for name in SHOWN:
        with tempfile.TemporaryDirectory() as cache:
            cold, warm = (first_fit(*FITS[name], cache) for _ in range(2))
        told = "; ".join(f"{wall:5.1f} ({cpu:4.1f}), {count:3d}" for wall, cpu, count in (cold, warm))
        print(f"  {name:28}{told}")


def first_fit(data, model, cache):
    """Seconds, CPU seconds and functions compiled in the first process of a fit in a fresh interpreter."""
    code = FIT.replace("{data}", data).replace("{model}", model)
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
    return json.loads(done.stdout.splitlines()[-1])
