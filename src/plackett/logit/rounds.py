"""Chains side by side, in short rounds, so that progress is seen and Ctrl-C heard without loss."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

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
    """Advance all chains to `total` sweeps, or until Ctrl-C; return the sweeps that every chain has done.

    Parameters
    ----------
    advance : callable
        ``advance(chain, first, last)`` does the sweeps first ≤ t < last of one chain, all before `tune` or all after.
    n_chains, tune, total, workers : int
        Chains, sweeps of tuning, all sweeps, and threads.
    report : callable
        Told the sweeps done after each round.
    """
    reached = [0] * n_chains

    def one(chain: int, last: int) -> None:
        advance(chain, reached[chain], last)
        reached[chain] = last

    size, tasks = 1, list[Future[None]]()
    with ThreadPoolExecutor(workers) as pool:
        try:
            while (done := min(reached)) < total:
                last = min(done + size, tune if done < tune else total)
                began = time.perf_counter()
                tasks = [pool.submit(one, chain, last) for chain in range(n_chains)]
                for task in tasks:
                    task.result()
                report(last)
                pace = ROUND_SECONDS / max(time.perf_counter() - began, 1e-6)
                size = int(np.clip(size * min(pace, 8.0), 1, LARGEST_ROUND))
        except KeyboardInterrupt:
            for task in tasks:
                if not task.cancel():
                    task.result()
    return min(reached)
