"""One partition that stands for many: contiguous runs of ordered items, nearest to the posterior of partitions."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plackett.model.race import Array

TINY = float(np.finfo(np.float64).tiny)


def nearest_runs(together: Array) -> npt.NDArray[np.intp]:
    """Return the run, from 0, of each item in the partition into runs that is nearest in variation of information.

    `together` (K, K) has the probabilities that two items, in a given order, share a part. The distance to a partition
    drawn from the posterior is expected to be, up to a constant and Jensen's inequality (Wade & Ghahramani 2018),

        Σ_i [ln |c_i| − 2 ln Σ_{j in c_i} p_ij],   c_i the run of item i,

    a sum over runs, which dynamic programming minimises exactly over all 2^(K−1) partitions into runs.
    """
    K = len(together)
    best, cut = np.full(K + 1, np.inf), np.zeros(K + 1, dtype=np.intp)
    best[0] = 0.0
    for start in range(K):
        size = np.arange(1, K - start + 1)
        joint = np.log(np.maximum(np.cumsum(together[start:, start:], axis=1), TINY))  # (item, length of the run)
        cost = size * np.log(size) - 2.0 * np.triu(joint).sum(axis=0)
        total = best[start] + cost
        better = total < best[start + 1 :] - 1e-12
        best[start + 1 :] = np.where(better, total, best[start + 1 :])
        cut[start + 1 :] = np.where(better, start, cut[start + 1 :])
    found, end = np.zeros(K, dtype=np.intp), K
    while end > 0:
        found[cut[end] : end] = 1
        found[cut[end]] = -1
        end = cut[end]
    return np.cumsum(found == -1) - 1
