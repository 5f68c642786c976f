"""Convergence measures of chains, as functions of arrays.

Rank-normalised split R-hat, bulk and tail effective sample size (Vehtari, Gelman, Simpson, Carpenter & Bürkner 2021),
for many quantities at once. The numbers equal ArviZ's, without its import time of seconds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import ndtri
from scipy.stats import rankdata

from plackett.model.race import Array

AT_A_TIME = 1 << 20  # numbers


def split(x: Array) -> Array:
    """Split each chain in half: (…, chain, draw) to (…, 2·chain, draw // 2)."""
    half = x.shape[-1] // 2
    return np.concatenate([x[..., :half], x[..., -half:]], axis=-2)


def z_scores(x: Array) -> Array:
    """Normal scores of the ranks over all chains of each quantity."""
    flat = x.reshape(*x.shape[:-2], -1)
    n = flat.shape[-1]
    order = np.argsort(flat, axis=-1)
    ranks = np.empty(flat.shape)
    np.put_along_axis(ranks, order, np.arange(1.0, n + 1), axis=-1)
    ordered = np.take_along_axis(flat, order, axis=-1)
    tied = (ordered[..., 1:] == ordered[..., :-1]).any(axis=-1)
    if tied.any():
        ranks[tied] = rankdata(flat[tied], axis=-1)
    scores: Array = ndtri((ranks - 0.375) / (n + 0.25)).reshape(x.shape)
    return scores


def plain_rhat(x: Array) -> Array:
    """Root of the ratio of total to within-chain variance."""
    n = x.shape[-1]
    within = x.var(axis=-1, ddof=1).mean(axis=-1)
    between = x.mean(axis=-1).var(axis=-1, ddof=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio: Array = np.sqrt((n - 1) / n + between / within)
    return ratio


def rhat_and_bulk_ess(x: Array) -> tuple[Array, Array]:
    """Rank-normalised split R-hat, the larger of bulk and folded (NaN for a constant), and the bulk ESS."""
    x = split(x)
    scores = z_scores(x)
    folded = np.abs(x - np.median(x, axis=(-2, -1), keepdims=True))
    return np.fmax(plain_rhat(scores), plain_rhat(z_scores(folded))), plain_ess(scores)


def plain_ess(x: Array, compare: bool = True) -> Array:
    """Effective sample size by Geyer's initial monotone sequence over all chains of each quantity.

    If `compare`, differences between chains reduce the size; otherwise each chain is taken to have the right mean.
    """
    n_chains, n = x.shape[-2:]
    centred = x - x.mean(axis=-1, keepdims=True)
    size = next_fast_len(2 * n, real=True)
    spectrum = rfft(centred, size, axis=-1)
    autocovariance = irfft(np.abs(spectrum) ** 2, size, axis=-1)[..., :n].mean(axis=-2) / n
    within = autocovariance[..., :1] * n / (n - 1)
    between = x.mean(axis=-1).var(axis=-1, ddof=1)[..., None] if n_chains > 1 and compare else 0.0
    total = autocovariance[..., :1] + between
    with np.errstate(divide="ignore", invalid="ignore"):
        rho = 1 - (within - autocovariance) / total
    rho[..., 0] = 1.0
    n_pairs = max((n - 1) // 2, 1)
    pairs = rho[..., : 2 * n_pairs].reshape(*rho.shape[:-1], n_pairs, 2).sum(axis=-1)
    positive = np.logical_and.accumulate(pairs > 0, axis=-1)
    stop = np.minimum(positive.sum(axis=-1, keepdims=True), n_pairs - 1)
    monotone = np.where(np.arange(n_pairs) < stop, np.minimum.accumulate(pairs, axis=-1), 0.0)
    first_left_out = np.take_along_axis(rho, 2 * stop, axis=-1)[..., 0]
    tau = -1 + 2 * monotone.sum(axis=-1) + np.maximum(first_left_out, 0.0)
    ess: Array = n_chains * n / np.maximum(tau, 1 / np.log10(n_chains * n))
    constant = np.ptp(x, axis=(-2, -1)) < np.finfo(float).resolution
    return np.where(constant, float(n_chains * n), ess)


def tail_ess(x: Array) -> Array:
    """Smaller of the effective sample sizes of the 5 % and 95 % quantiles."""
    low, high = np.quantile(x, [0.05, 0.95], axis=(-2, -1))[..., None, None]
    return np.minimum(plain_ess(split((x <= low) * 1.0)), plain_ess(split((x <= high) * 1.0)))


def measures(x: Array, report: Callable[[float], None] = lambda n: None) -> tuple[Array, Array, Array]:
    """R-hat, bulk ESS and tail ESS of an array (chain, draw, …), computed in batches of quantities.

    `report` is called with the count of numbers processed.
    """
    quantities = np.moveaxis(x.reshape(*x.shape[:2], -1), 2, 0)
    step = max(1, AT_A_TIME // (x.shape[0] * x.shape[1]))
    found = []
    for start in range(0, len(quantities), step):
        part = quantities[start : start + step]
        found.append((*rhat_and_bulk_ess(part), tail_ess(part)))
        report(start * x.shape[0] * x.shape[1] + part.size)
    rhats, bulks, tails = (np.concatenate(column).reshape(x.shape[2:]) for column in zip(*found, strict=True))
    return rhats, bulks, tails


def within_chains(x: Array) -> Array:
    """Variance of the average (…) of an array (chain, draw, …), from the autocorrelation within its chains."""
    quantities = np.moveaxis(x.reshape(*x.shape[:2], -1), 2, 0)
    step = max(1, AT_A_TIME // (x.shape[0] * x.shape[1]))
    found = []
    for start in range(0, len(quantities), step):
        part = quantities[start : start + step]
        with np.errstate(invalid="ignore"):
            found.append(part.var(axis=-1, ddof=1).mean(axis=-1) / plain_ess(part, compare=False))
    return np.nan_to_num(np.concatenate(found)).reshape(x.shape[2:])
