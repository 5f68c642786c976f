"""Where chains and climbs start: sub-classes of each class, found by k-means++."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from sklearn.cluster import kmeans_plusplus

from plackett.directions.prior import Prior, inverse_weights, parts, size
from plackett.model.race import Array

if TYPE_CHECKING:
    from plackett.directions.task import Task

SCALES = 0.5  # σ_0 and σ_1 at the start
FOREIGN = -4.0  # ln λ of a class that does not own the component
MISSING = 0.5  # rows that a class without any is taken to have
JITTER = 0.3  # deviation of what is added to v


def centres(task: Task, owner: npt.NDArray[np.int64], means: Array, rng: np.random.Generator) -> Array:
    """(M, d): rows of each component's class far from each other; the class's mean where they run out."""
    found = means[owner]
    for k in np.unique(task.codes):
        mine = task.codes == k
        some = np.flatnonzero(owner == k)[: mine.sum()]
        seed, weight = int(rng.integers(2**31)), task.weight[mine]
        found[some] = kmeans_plusplus(task.Z[mine], len(some), sample_weight=weight, random_state=seed)[0]
    return found


def start(task: Task, prior: Prior, rng: np.random.Generator) -> Array:
    """A position: class directions along the means, components leaning towards their centres, and some noise."""
    (K, M), d = prior.shape.shape, task.Z.shape[1]
    q = np.zeros(size(prior, d))
    u, v, t, _, log_sigma = parts(q, K, M, d)
    total = np.maximum(np.bincount(task.codes, weights=task.weight, minlength=K), MISSING)
    means = np.zeros((K, d))
    np.add.at(means, task.codes, task.Z * (task.weight / total[task.codes])[:, None])
    log_sigma[:] = np.log(SCALES)
    u[:] = means / (SCALES * np.sqrt(d))
    v[:] = (centres(task, prior.owner, means, rng) - means[prior.owner]) / (2 * SCALES * np.sqrt(d))
    v += JITTER * rng.standard_normal(v.shape)
    log_weights = np.full((K, M), FOREIGN)
    share = total / (total.sum() * np.bincount(prior.owner))
    log_weights[prior.owner, np.arange(M)] = np.log(share)[prior.owner]
    t[:] = inverse_weights(log_weights, prior.shape)
    return q
