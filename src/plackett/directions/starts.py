"""Starting points of chains and optimisations: sub-classes of each class, or the slope at β = 0 of situations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from sklearn.cluster import kmeans_plusplus

from plackett.data.observations import Observations, Situations
from plackett.directions.prior import Prior, inverse_weights, n_owners, parts, reflected, size
from plackett.engines.base import Gradient
from plackett.engines.exponential_choices import has_shared_weights
from plackett.engines.factory import make_engine
from plackett.model.race import Array, Weights

SCALES = 0.5  # σ_0 and σ_1
FOREIGN = -4.0  # ln λ for a group that does not own the component
JITTER = 0.3  # standard deviation of the noise in v
MISSING = 0.5  # weight of a class without rows
FARTHEST_WORTH = 3.0  # bound of |ln worth| of a group, relative to the average
WORTH_STEPS = 20  # iterations for the worths


def class_start(Z: Array, seen: Observations, prior: Prior, rng: np.random.Generator) -> Array:
    """Return a position with directions of classes along their means, components towards centres, and noise."""
    (K, M), d = prior.shape.shape, Z.shape[1]
    codes, weight = seen.class_codes, seen.weights
    q = np.zeros(size(prior, d))
    u, v, t, _, log_sigma = parts(q, K, M, d)
    total = np.maximum(np.bincount(codes, weights=weight, minlength=K), MISSING)
    means = np.zeros((K, d))
    np.add.at(means, codes, Z * (weight / total[codes])[:, None])
    log_sigma[:] = np.log(SCALES)
    u[:] = means / (SCALES * np.sqrt(d))
    v[:] = (centres(Z, seen, prior.owner, means, rng) - means[prior.owner]) / (2 * SCALES * np.sqrt(d))
    v += JITTER * rng.standard_normal(v.shape)
    log_weights = np.full((K, M), FOREIGN)
    share = total / (total.sum() * np.bincount(prior.owner))
    log_weights[prior.owner, np.arange(M)] = np.log(share)[prior.owner]
    t[:] = inverse_weights(log_weights, prior.shape)
    return q


def centres(
    Z: Array, seen: Observations, owner: npt.NDArray[np.int64], means: Array, rng: np.random.Generator
) -> Array:
    """Return (M, d) distant rows of each component's class, by k-means++; the class mean if rows are too few."""
    found = means[owner]
    for k in np.unique(seen.class_codes):
        mine = seen.class_codes == k
        some = np.flatnonzero(owner == k)[: mine.sum()]
        seed, weight = int(rng.integers(2**31)), seen.weights[mine]
        found[some] = kmeans_plusplus(Z[mine], len(some), sample_weight=weight, random_state=seed)[0]
    return found


def situation_starts(
    rows: Gradient, seen: Observations, n_columns: int, engine: str, prior: Prior, rngs: Sequence[np.random.Generator]
) -> list[Array]:
    """Return positions with directions along the slope at β = 0, worths of groups without covariates, and noise."""
    (K, M), d, owners = prior.shape.shape, n_columns, n_owners(prior)
    log_worth, wins = worths(seen, engine)
    owns = prior.owner == np.arange(K)[:, None] if owners == K else np.ones((K, M), dtype=bool)
    log_weights = np.where(owns, log_worth[:, None] - np.log(owns.sum(axis=1, keepdims=True)), FOREIGN)
    slope, of_owner = np.zeros((owners, d)), wins if owners == K else wins.sum(keepdims=True)
    np.add.at(slope, prior.owner, rows.gradient(np.zeros((M, d)), log_weights).directions)
    found = []
    for rng in rngs:
        q = np.zeros(size(prior, d))
        u, v, t, _, log_sigma = parts(q, K, M, d, owners)
        log_sigma[:] = np.log(SCALES)
        u[:] = slope / (np.maximum(of_owner, 1.0)[:, None] * SCALES * np.sqrt(d))
        v[:] = JITTER * rng.standard_normal(v.shape)
        t[:] = inverse_weights(log_weights, prior.shape)
        if prior.totals:
            q[-K:] = reflected(np.logaddexp.reduce(log_weights, axis=1))
        found.append(q)
    return found


def worths(seen: Observations, engine: str) -> tuple[Array, Array]:
    """Return ln of the worth of each group without covariates, within bounds, and its wins."""
    outcomes, group, row = seen.all_situations
    if has_shared_weights(seen.n_groups, seen.response):
        informative = np.diff(outcomes.start) > 1
        return np.zeros(1), np.array([outcomes.counts[informative].sum()])
    alike = replace(seen, situations=Situations(outcomes, group, np.zeros_like(row)))
    rows = make_engine(engine).rows(np.ones((1, 1)), alike)
    log_worth = np.zeros((seen.n_groups, 1))
    for _ in range(WORTH_STEPS):
        stats = rows.expect(Weights.point(log_worth))
        log_worth = np.log(stats.wins + 0.5) - np.log(stats.exposure + 0.5)
        if not seen.response.absolute:
            log_worth -= log_worth.mean()
        log_worth = np.clip(log_worth, -FARTHEST_WORTH, FARTHEST_WORTH)
    return log_worth[:, 0], stats.wins[:, 0]
