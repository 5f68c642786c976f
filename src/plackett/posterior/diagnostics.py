"""Do the chains agree, and how many independent draws are they worth?

Rank-normalised split R-hat, bulk and tail effective sample size (Vehtari, Gelman, Simpson, Carpenter & Bürkner
2021), for all weights at once: the same numbers as ArviZ, without the seconds that importing it takes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import ndtri
from scipy.stats import rankdata

from plackett.engines import Features
from plackett.model.race import Array
from plackett.posterior.weights import Draws, chunks

PROBED = 20  # rows whose probabilities are diagnosed


def split(x: Array) -> Array:
    """Each chain cut in half: (…, chain, draw) to (…, 2·chain, draw // 2)."""
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


def plain_ess(x: Array) -> Array:
    """Effective sample size by Geyer's initial monotone sequence over all chains of each quantity."""
    n_chains, n = x.shape[-2:]
    centred = x - x.mean(axis=-1, keepdims=True)
    size = next_fast_len(2 * n, real=True)
    spectrum = rfft(centred, size, axis=-1)
    autocovariance = irfft(np.abs(spectrum) ** 2, size, axis=-1)[..., :n].mean(axis=-2) / n
    within = autocovariance[..., :1] * n / (n - 1)
    between = x.mean(axis=-1).var(axis=-1, ddof=1)[..., None] if n_chains > 1 else 0.0
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
    """The smaller of the effective sample sizes of the 5 % and 95 % quantiles."""
    low, high = np.quantile(x, [0.05, 0.95], axis=(-2, -1))[..., None, None]
    return np.minimum(plain_ess(split((x <= low) * 1.0)), plain_ess(split((x <= high) * 1.0)))


@dataclass(frozen=True)
class Diagnostics:
    """R-hat, bulk and tail ESS of every ln λ̄_kj (K, p), of ln a (NaN if fixed) and of probabilities of some rows."""

    rhat: Array
    ess_bulk: Array
    ess_tail: Array
    shape_rhat: float
    shape_ess_bulk: float
    shape_ess_tail: float
    probability_rhat: Array
    probability_ess_bulk: Array
    probability_ess_tail: Array

    def __repr__(self) -> str:
        return (
            f"Diagnostics of {self.rhat.size} weights, the shape and {self.probability_rhat.size} probabilities:\n"
            f"  worst R-hat {self.worst_rhat:.2f}, smallest effective sample size {self.smallest_ess:,.0f}"
        )

    @property
    def worst_rhat(self) -> float:
        """The largest R-hat; NaN (a constant) does not count."""
        return _extreme(np.nanmax, self.rhat, self.shape_rhat, self.probability_rhat)

    @property
    def smallest_ess(self) -> float:
        """The smallest bulk or tail ESS."""
        weights = (self.ess_bulk, self.ess_tail, self.shape_ess_bulk, self.shape_ess_tail)
        return _extreme(np.nanmin, *weights, self.probability_ess_bulk, self.probability_ess_tail)


def _extreme(function: Callable[..., Any], *values: Array | float) -> float:
    return float(function(np.concatenate([np.ravel(v) for v in values])))


def measures(x: Array) -> tuple[Array, Array, Array]:
    """R-hat, bulk ESS and tail ESS of an array (chain, draw, …), a manageable number of quantities at a time."""
    quantities = np.moveaxis(x.reshape(*x.shape[:2], -1), 2, 0)
    step = max(1, (1 << 22) // (x.shape[0] * x.shape[1]))
    parts = [quantities[start : start + step] for start in range(0, len(quantities), step)]
    found = [(*rhat_and_bulk_ess(part), tail_ess(part)) for part in parts]
    rhats, bulks, tails = (np.concatenate(column).reshape(x.shape[2:]) for column in zip(*found, strict=True))
    return rhats, bulks, tails


def diagnose(draws: Draws, learned: bool, features: Features) -> Diagnostics | None:
    """Diagnostics of a run, or None if it is too short for any (fewer than 4 draws a chain)."""
    C, D = draws.shape.shape
    if D < 4:
        return None
    a = (np.nan, np.nan, np.nan)
    if learned:
        a = tuple(float(m) for m in measures(np.log(draws.shape)))  # type: ignore[assignment]
    n = features.shape[0]
    some = features[np.linspace(0, n - 1, min(PROBED, n)).astype(int)]
    probabilities = np.concatenate(list(chunks(some, draws.flat_draws())))  # (row, chain·draw, class)
    probabilities = np.moveaxis(probabilities.reshape(some.shape[0], C, D, -1), 0, 2)
    return Diagnostics(*measures(draws.log_weights), *a, *measures(probabilities))


class Verdict(Protocol):
    """What decides whether a run was good enough."""

    @property
    def worst_rhat(self) -> float:
        """The largest R-hat."""
        ...

    @property
    def smallest_ess(self) -> float:
        """The smallest effective sample size."""
        ...


def shortcomings(found: Verdict, wanted: float = 400) -> str | None:
    """What is wrong with a run, and by how much; None where nothing is."""
    problems = []
    if found.worst_rhat > 1.01:
        problems.append(f"the chains have not mixed (R-hat up to {found.worst_rhat:.2f}, should be at most 1.01)")
    if found.smallest_ess < wanted:
        problems.append(
            f"the smallest effective sample size is {found.smallest_ess:.0f} (should be at least {wanted:g})"
        )
    return " and ".join(problems) or None


def advice(found: Diagnostics | None, settings: Any, end: str | None) -> str | None:
    """A sentence for the user when the run is not good enough: what is wrong, by how much, and what to do.

    Parameters
    ----------
    found : Diagnostics or None
        None where there are too few draws to tell.
    settings : Gibbs
        Those of the run, complete.
    end : str or None
        The limit that ended the run before there was enough, if one did.
    """
    if found is None:
        return f"fewer than 4 draws a chain are too few to check convergence. Try {more(settings, end, 1000)}."
    wrong = shortcomings(found, 400 if settings.target_ess is None else settings.target_ess)
    if wrong is None:
        return None
    goes_on = ", or Gibbs(target_ess=400), which goes on until they are good enough"
    return (
        f"{wrong}. Weights and intervals may be off; average predictions are usually less affected. "
        f"Try {more(settings, end)}{goes_on if settings.target_ess is None and end is None else ''}."
    )


def more(settings: Any, end: str | None, at_least: int = 0) -> str:
    """Four times what the run was given of that which ended it: time, iterations up to a target, or draws."""
    name = end or ("draws" if settings.target_ess is None else "max_draws")
    value = 4 * getattr(settings, name)
    return f"Gibbs({name}={f'{value:g}' if name == 'max_seconds' else max(value, at_least)})"
