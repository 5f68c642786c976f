"""What log-rates of items say of them: their worths, who is better, who comes in which place; and new rankings.

A posterior gives log-rates (draws, rows, items); nothing here asks which one it is. The worth of an item is its share
of the rates, r_k/Σ r, the probability that it comes first among all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import expit, softmax

from plackett.model.race import Array
from plackett.posterior.base import Table

SIMULATED = 40_000  # rankings of each row, where probabilities of places are simulated
OF = ("worth", "ranking")
UNDERFLOW = -745.0  # below ln of the smallest double; e to this power is not 0
LATEST = 700.0  # ln of a time of arrival, beyond which slots are not told apart


class Rates(NamedTuple):
    """Log-rates of all items in some rows, under what predicts.

    Attributes
    ----------
    logs : (S, n, K) array
        ln r; where ties tell nothing of the scale, up to a number for each row.
    weights : (S,) array
        Of the draws in predictions.
    n_draws : int
        How many are draws; a mode may follow them.
    slots : bool
        Whether ties are those of a race seen in slots of length 1.
    """

    logs: Array
    weights: Array
    n_draws: int
    slots: bool


def finite_logs(logs: Array) -> Array:
    """Log-rates with a number, below all others, where a rate underflowed: of items that never come before another.

    The worth of such an item is bounded by the prior alone, and may be as small as e^(−1000).
    """
    gone = np.isneginf(logs)
    return np.where(gone, min(UNDERFLOW, np.min(logs, where=~gone, initial=0.0)), logs) if gone.any() else logs


def log_worths(rates: Rates) -> Array:
    """ln r (S, n, K) with mean 0 over the items."""
    centred: Array = rates.logs - rates.logs.mean(axis=2, keepdims=True)
    return centred


def first_places(rates: Rates) -> Array:
    """r_k/Σ r (n, K), averaged over what predicts."""
    shares = softmax(rates.logs, axis=2)
    mean: Array = np.einsum("s,snk->nk", rates.weights, shares)
    return mean


def first_intervals(rates: Rates, prob: float) -> tuple[Array, Array]:
    """Equal-tailed intervals of r_k/Σ r, two arrays (n, K), which hold its average."""
    tail, mean = (1 - prob) / 2, first_places(rates)
    shares = softmax(rates.logs[: rates.n_draws], axis=2)
    lower, upper = np.quantile(shares, [tail, 1 - tail], axis=0)
    return np.minimum(lower, mean), np.maximum(upper, mean)


def order_of(rates: Rates) -> npt.NDArray[np.intp]:
    """Items (n, K) by their mean log-worth, the best first."""
    mean = np.einsum("s,snk->nk", rates.weights, log_worths(rates))
    return np.argsort(-mean, axis=1, kind="stable")


def ranks_of(numbers: Array) -> npt.NDArray[np.intp]:
    """Places along the last axis, the largest number first, from 0 on."""
    return np.argsort(np.argsort(-numbers, axis=-1, kind="stable"), axis=-1)


def worth_table(rates: Rates, prob: float, certain: bool) -> tuple[npt.NDArray[np.intp], Table]:
    """Items, the best first, and the columns of `worth`: averages over the rows, under every draw."""
    tail, K = (1 - prob) / 2, rates.logs.shape[2]
    logs = log_worths(rates).mean(axis=1)
    mean = rates.weights @ logs
    drawn = logs[: rates.n_draws]
    lower, upper = np.full((2, K), np.nan) if certain else np.quantile(drawn, [tail, 1 - tail], axis=0)
    ranks = ranks_of(drawn)
    order = np.argsort(-mean, kind="stable")
    columns: Table = {
        "worth": first_places(rates).mean(axis=0),
        "log_worth": mean,
        "lower": np.minimum(lower, mean),
        "upper": np.maximum(upper, mean),
        "first": (ranks == 0).mean(axis=0),
        "rank": 1.0 + ranks.mean(axis=0),
    }
    return order, {name: column[order] for name, column in columns.items()}


def better(rates: Rates, of: str) -> Array:
    """(n, K, K): the probability that an item has the larger worth, or comes before the other in a new ranking."""
    K = rates.logs.shape[2]
    found = np.empty((rates.logs.shape[1], K, K))
    for k in range(K):
        ahead = rates.logs[:, :, k, None] - rates.logs  # ln r_k − ln r_l
        if of == "worth":
            found[:, k] = ((ahead > 0) + 0.5 * (ahead == 0))[: rates.n_draws].mean(axis=0)
        else:
            chance = _in_an_earlier_slot(rates.logs, k) if rates.slots else expit(ahead)
            found[:, k] = np.einsum("s,snl->nl", rates.weights, chance)
        found[:, k, k] = np.nan
    return found


def _in_an_earlier_slot(logs: Array, k: int) -> Array:
    """(1 − e^{−r_k}) e^{−r_l} / (1 − e^{−r_k−r_l}): the first slot with an arrival has that of k alone."""
    own, others = np.exp(logs[:, :, k, None]), np.exp(logs)
    chance: Array = expit(logs[:, :, k, None] - logs)  # the limit where both rates underflow
    seen = np.expm1(-own - others)
    return np.divide(np.exp(-others) * np.expm1(-own), seen, out=chance, where=seen != 0)


def place_shares(rates: Rates, of: str, rng: np.random.Generator) -> tuple[Array, float]:
    """(n, K, K): the probability of each place, by worth or in a new ranking; and the largest standard error.

    In a new ranking it is simulated. Items that tie all have the place of the first of them.
    """
    n, K = rates.logs.shape[1:]
    found, error = np.empty((n, K, K)), 0.0
    for i in range(n):
        if of == "worth":
            places = ranks_of(rates.logs[: rates.n_draws, i])
        else:
            places = simulated_places(rates, i, SIMULATED, rng)
            error = 0.5 / np.sqrt(SIMULATED)
        for k in range(K):
            found[i, k] = np.bincount(places[:, k], minlength=K) / len(places)
    return found, error


def simulated_places(rates: Rates, row: int, n: int, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """Places (n, K), from 0 on, in new rankings of all items; those that tie share the first of theirs.

    Draws are taken in turn in proportion to their weights, and items arrive at exponential times.
    """
    climb = np.cumsum(rates.weights)
    which = np.searchsorted(climb / climb[-1], (np.arange(n) + rng.random()) / n)
    logs = rates.logs[np.minimum(which, len(climb) - 1), row]
    log_times = np.log(rng.standard_exponential(logs.shape)) - logs
    rng.shuffle(log_times, axis=0)
    if not rates.slots:
        return ranks_of(-log_times)
    slots = np.floor(np.exp(np.minimum(log_times, LATEST)))
    order = np.argsort(slots, axis=1)
    new = np.diff(np.take_along_axis(slots, order, axis=1), axis=1, prepend=-1.0) > 0
    places = np.empty_like(order)
    np.put_along_axis(places, order, np.maximum.accumulate(np.where(new, np.arange(slots.shape[1]), 0), axis=1), axis=1)
    return places
