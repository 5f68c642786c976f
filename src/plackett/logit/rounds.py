"""Chains side by side, in short rounds, so that progress is seen and Ctrl-C heard without loss."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from plackett.inference.limits import Interruption

ROUND_SECONDS = 0.2
LARGEST_ROUND = 512  # sweeps


def run_rounds(
    advance: Callable[[int, int, int], None],
    n_chains: int,
    tune: int,
    total: int,
    workers: int,
    report: Callable[[float], None],
) -> int:
    """Advance all chains to `total` sweeps, or until Ctrl-C after tuning; return the sweeps that every chain has done.

    Parameters
    ----------
    advance : callable
        ``advance(chain, first, last)`` does the sweeps first ≤ t < last of one chain, all before `tune` or all after.
    n_chains, tune, total, workers : int
        Chains, sweeps of tuning, all sweeps, and threads.
    report : callable
        Told the sweeps done after each round.
    """
    done, size = 0, 1
    pool = ThreadPoolExecutor(workers)
    try:
        with Interruption(lambda: done > tune) as interruption:
            while done < total and not interruption.came:
                last = min(done + size, tune if done < tune else total)
                began = time.perf_counter()
                for task in [pool.submit(advance, chain, done, last) for chain in range(n_chains)]:
                    task.result()
                done = last
                report(done)
                pace = ROUND_SECONDS / max(time.perf_counter() - began, 1e-6)
                size = int(np.clip(size * min(pace, 8.0), 1, LARGEST_ROUND))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # after Ctrl-C a round may be under way
    return done
