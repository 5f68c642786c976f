"""Monte Carlo error of averaged probabilities, and how far to trust them.

The standard error of an average combines two estimates: one from the autocorrelation within chains, one from the
variance between the chains' averages. The second remains valid where chains sit in different modes, or mix so slowly
that halves of a chain resemble each other (compare nested R-hat: Margossian, Hoffman, Sountsov, Riou-Durand, Vehtari &
Gelman 2024). This module holds the thresholds of all grades.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri, stdtrit

from plackett.model.measures import within_chains
from plackett.model.race import Array

SETTLED, GOOD, BAD, UNKNOWN = "settled", "good enough to use", "not to be trusted", "unknown"
PROBED = 20  # rows whose R-hat is computed; errors use at least as many
PROBABILITIES = 400  # per draw, to estimate errors with learned directions, unless draws are many
FEWEST_DRAWS, FEWEST_CHAINS = 25, 2  # with fewer, there is no grade
FEWEST_INDEPENDENT = 10  # the same for independent draws
PRECISE = 0.005  # standard error, root mean square over rows and classes, of settled predictions
PART_OF_WIDTH = 0.25  # or this fraction of the posterior deviation, to which it adds 3 %,
PRECISE_IF_WIDE = 0.01  # up to this limit
PRECISE_95 = 0.05  # and error in 95 % of rows of settled predictions, which a mean over many classes does not show
USABLE, USABLE_95 = 0.025, 0.1  # standard error, and error in 95 % of rows, of predictions that are good enough
APART = 4.0  # variance between chains over what their autocorrelation explains, from which they disagree
GAIN = 0.003  # by which twice the draws must reduce the standard error, or an open-ended run stops,
GAIN_OF_WIDTH = 0.02  # or by this fraction of the posterior deviation,
GAIN_95 = 0.015  # and the error in 95 % of rows by this
STANDARD = (
    f"Predictions are {SETTLED} where the standard error of averaged probabilities, the root mean square over rows "
    f"spread over the data, is at most {PRECISE:g}, or a quarter of the posterior deviation and at most "
    f"{PRECISE_IF_WIDE:g}, and the error in 95 % of rows at most {PRECISE_95:g}. They are {BAD} where "
    f"the standard error is above {USABLE:g} and above a quarter of the posterior deviation, "
    f"or the error in 95 % of rows above {USABLE_95:g} and above half of that deviation; else they are {GOOD}. With "
    f"one chain, or fewer than {FEWEST_DRAWS} draws of each, nothing is known."
)


class Precision(NamedTuple):
    """Error of averaged probabilities.

    Attributes
    ----------
    error : float
        Standard error, root mean square over rows and classes.
    error_95 : float
        Bound of the error of the least certain class in 95 % of rows; wider if chains are few and disagree.
    width : float
        Posterior deviation of the probabilities, root mean square.
    largest : float
        Largest standard error.
    apart : float
        Variance of the average by the chains' averages, divided by that from autocorrelation within chains.
    """

    error: float = np.nan
    error_95: float = np.nan
    width: float = np.nan
    largest: float = np.nan
    apart: float = np.nan


def precision_of(probability: Array, returned: Array | None = None, averaged: int | None = None) -> Precision:
    """Error of the averages of probabilities (chain, draw, row, K); NaN if it cannot be judged.

    Parameters
    ----------
    probability : array
        Probabilities of the draws.
    returned : array, optional
        Contributions of the draws, whose average is the prediction. None: the probabilities themselves.
    averaged : int, optional
        Number of draws that predictions average over, if not all.
    """
    x = probability if returned is None else returned
    C, n, rows = x.shape[:3]
    if C < FEWEST_CHAINS or n < FEWEST_DRAWS or not np.isfinite(x).all():
        return Precision()
    x = x.reshape(C, n, -1)
    there = (x != 0).any(axis=(0, 1))  # unavailable alternatives have probability 0
    away = x.mean(axis=1) - x.mean(axis=(0, 1))
    between, within = (away**2).sum(axis=0) / (C * (C - 1)), within_chains(x)
    variance, freedom = combined(between, within, away)
    if averaged is not None and C * n > averaged:
        variance = np.maximum(variance, x.var(axis=(0, 1)) / averaged)
    wider = stdtrit(freedom, 0.975) / ndtri(0.975) if np.isfinite(freedom) else 1.0
    by_row = variance.reshape(rows, -1).max(axis=1)
    explained = within.sum()
    return Precision(
        float(np.sqrt(variance.sum() / max(there.sum(), 1))),
        float(wider * quantile_95(np.sqrt(by_row))),
        float(np.sqrt(probability.var(axis=(0, 1)).sum() / max(there.sum(), 1))),
        float(np.sqrt(variance.max())),
        float(between.sum() / explained) if explained > 0 else np.inf if between.any() else 0.0,
    )


def precision_of_independent(probability: Array) -> Precision:
    """Error of the averages of probabilities (draw, row, K) of independent draws; NaN for too few draws."""
    if len(probability) < FEWEST_INDEPENDENT or not np.isfinite(probability).all():
        return Precision()
    there = (probability != 0).any(axis=0)
    spread = probability.var(axis=0, ddof=1)
    variance, known = spread / len(probability), max(there.sum(), 1)
    return Precision(
        float(np.sqrt(variance.sum() / known)),
        quantile_95(np.sqrt(variance.max(axis=1))),
        float(np.sqrt(spread.sum() / known)),
        float(np.sqrt(variance.max())),
        0.0,
    )


def combined(between: Array, within: Array, away: Array) -> tuple[Array, float]:
    """Variance of each average, and the degrees of freedom of their sum.

    The sum is the larger of both estimates, since the autocorrelation misses modes that a chain does not visit. It is
    divided among the quantities by the mean of both, since each is noisy for few chains.

    Parameters
    ----------
    between, within : (Q,) arrays
        Estimates from the chains' averages and from autocorrelation.
    away : (chain, Q) array
        Deviations of the chains' averages from the overall average.
    """
    b, w = float(between.sum()), float(within.sum())
    total = max(b, w)
    shares = [part / part.sum() for part in (between, within) if part.any()]
    variance = total * np.mean(shares, axis=0) if shares else np.zeros_like(between)
    unexplained = max(b - w, 0.0)
    return variance, np.inf if unexplained == 0 else dimensions(away) * (len(away) - 1) * (total / unexplained) ** 2


def dimensions(away: Array) -> float:
    """Effective number of directions in which chains differ, (tr Σ)²/tr Σ², unbiased (Box 1954; Srivastava 2005)."""
    freedom = len(away) - 1
    gram = away @ away.T / freedom
    trace, squares = np.trace(gram), (gram**2).sum()
    if freedom == 1 or trace == 0:
        return 1.0
    of_squares = freedom**2 / ((freedom - 1) * (freedom + 2)) * max(squares - trace**2 / freedom, 0.0)
    of_trace = trace**2 - 2 * of_squares / freedom
    return float(np.clip(of_trace / of_squares, 1.0, away.shape[1])) if of_squares > 0 else float(away.shape[1])


def quantile_95(errors: Array) -> float:
    """Return the 95 % quantile of absolute deviations from normals with these standard errors."""
    some = errors[errors > 0]
    if len(some) == 0:
        return 0.0
    low, high = 0.0, 2.0 * float(some.max())
    for _ in range(50):
        middle = (low + high) / 2
        inside = (2 * ndtr(middle / some) - 1).sum() + len(errors) - len(some)
        low, high = (middle, high) if inside < 0.95 * len(errors) else (low, middle)
    return high


def grade(error: float, error_95: float = np.nan, width: float = np.nan) -> str:
    """Grade predictions; only the error itself must be known, other NaN are ignored."""
    if np.isnan(error):
        return UNKNOWN
    if not error_95 > PRECISE_95 and (error <= PRECISE or error <= min(PART_OF_WIDTH * width, PRECISE_IF_WIDE)):
        return SETTLED
    return BAD if missed(error, error_95, width) else GOOD


def missed(error: float, error_95: float, width: float) -> str:
    """Name the limit of "good enough" that is missed, or return an empty string.

    An error of a quarter of the posterior deviation, or half of it in 95 % of rows, is negligible beside it.
    """
    if error > np.fmax(USABLE, PART_OF_WIDTH * width):
        return f"±{beyond(error, USABLE)} (should be at most ±{USABLE:g})"
    if error_95 > np.fmax(USABLE_95, 2 * PART_OF_WIDTH * width):
        return f"up to ±{beyond(error_95, USABLE_95)} in 95 % of rows (should be at most ±{USABLE_95:g})"
    return ""


def gains_little(error: float, error_95: float = np.nan, width: float = np.nan) -> bool:
    """True if twice the draws, which reduce errors by a factor of √2, would make little difference."""
    part = 1 - np.sqrt(0.5)
    return bool(error * part <= np.fmax(GAIN, GAIN_OF_WIDTH * width) and not error_95 * part > GAIN_95)


def in_numbers(error: float, error_95: float = np.nan, width: float = np.nan) -> str:
    """Describe the error of averaged probabilities; for the worst grade, the limit that they miss."""
    if grade(error, error_95, width) == BAD:
        by = missed(error, error_95, width)
        return f"averaged probabilities may differ by {by} from what endless draws would give"
    more = [f"95 % of rows: ±{shown(error_95)}"] if np.isfinite(error_95) else []
    more += [f"posterior deviation: {shown(width)}"] if np.isfinite(width) else []
    brackets = f" ({'; '.join(more)})" if more else ""
    return f"averaged probabilities are within ±{shown(error)} of what endless draws would give{brackets}"


def shown(error: float) -> str:
    """Format with three decimals, at least 0.001."""
    return f"{max(error, 0.001):.3f}"


def beyond(value: float, limit: float, decimals: int = 3) -> str:
    """Format a number with enough decimals to distinguish it from the limit."""
    while decimals < 9 and value != limit and round(value, decimals) == round(limit, decimals):
        decimals += 1
    return f"{value:,.{decimals}f}"
