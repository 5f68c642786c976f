"""What importing plackett costs over importing scikit-learn."""

from benchmarks.timing import apart

IMPORT = """
import time
import {first}
started = time.perf_counter()
import {second}
print(time.perf_counter() - started)
"""

TIMES = 7
SMALLEST = {"TIMES": 1}


def main():
    print(f"\nImport (median of {TIMES} fresh interpreters)")
    over, base = (
        sorted(apart(IMPORT.format(first=first, second=second)) for _ in range(TIMES))[TIMES // 2]
        for first, second in (("sklearn.linear_model", "plackett"), ("sys", "sklearn.linear_model"))
    )
    print(f"  scikit-learn {base:.2f} s, plackett on top {over:.2f} s (target ≤ 0.30)")
