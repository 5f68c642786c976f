"""Timing in a process of its own, so that the waiting threads of one library do not disturb the other."""

import subprocess
import sys
import time

import numpy as np


def median_seconds(function, repeats=15, warm=3):
    for _ in range(warm):
        function()
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        function()
        times.append(time.perf_counter() - started)
    return float(np.median(times))


def apart(code):
    """The number that a piece of code prints last, run in a fresh interpreter."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"a piece of the benchmark ended with {done.returncode}:\n{done.stderr}")
    return float(done.stdout.split()[-1])
