"""What importing plackett costs over importing scikit-learn."""

from benchmarks.timing import apart

IMPORT = """
import time
import {first}
started = time.perf_counter()
import {second}
print(time.perf_counter() - started)
"""


def main():
    print("\nImport (median of seven fresh interpreters)")
    over = sorted(apart(IMPORT.format(first="sklearn.linear_model", second="plackett")) for _ in range(7))[3]
    base = sorted(apart(IMPORT.format(first="sys", second="sklearn.linear_model")) for _ in range(7))[3]
    print(f"  scikit-learn {base:.2f} s, plackett on top {over:.2f} s (target ≤ 0.30)")
