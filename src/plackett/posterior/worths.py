"""Results from log-rates of items: worths, comparisons, places, and new rankings.

A posterior provides log-rates (draws, rows, items), and this module does not depend on its type. The worth of an item
is its share of the rates, r_k/Σ r, the probability that it comes first among all.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.special import expit

from plackett.model.race import Array
from plackett.posterior.base import Codes, Table, around
from plackett.posterior.pool import CHUNK, Members, Pool, all_entries
from plackett.responses.pair_laws import FIRST, PairLaw

SIMULATED = 40_000  # number of simulated rankings per row, for probabilities of places
OF = ("worth", "ranking")
UNDERFLOW = -745.0  # about ln of the smallest double; its exponential is not 0
LATEST = 700.0  # ln of an arrival time beyond which slots are not distinguished


def item_pools(members: Members, Z: Array) -> Iterator[Pool]:
    """Yield pools of all items in runs of rows; log-rates keep the members' memory layout."""
    S, K = len(members.share), members.n_groups
    step = max(1, CHUNK // (S * K))
    for rows in (Z[start : start + step] for start in range(0, len(Z), step)):
        entries = all_entries(rows, K)
        log_rates = finite_logs(members.log_rates(entries).reshape(S, -1, K))
        available = np.ones((len(rows), K), dtype=bool)
        how = members.modes, members.power, members.points
        yield Pool(log_rates, available, members.share, *how, within=members.within(entries))


def averaged(pool: Pool, numbers: Array) -> Array:
    """Numbers (S, n, K) averaged over the members."""
    mean: Array = np.einsum("s,snk->nk", pool.share, numbers)
    return mean


def finite_logs(logs: Array) -> Array:
    """Replace log-rates of −inf (underflow) by a finite number below all others, for items that never precede another.

    Only the prior bounds the worth of such an item, which may be as small as e^(−1000).
    """
    gone = np.isneginf(logs)
    return np.where(gone, min(UNDERFLOW, np.min(logs, where=~gone, initial=0.0)), logs) if gone.any() else logs


def log_worths(pool: Pool, known: int | None = None) -> Array:
    """ln r (S, n, K) with mean 0 over the items, or over so many first ones."""
    centred: Array = pool.log_rates - pool.log_rates[:, :, :known].mean(axis=2, keepdims=True)
    return centred


def first_places(pool: Pool) -> Array:
    """Return r_k/Σ r (n, K), averaged over the members."""
    return averaged(pool, pool.shares())


def first_intervals(pool: Pool, prob: float) -> tuple[Array, Array]:
    """Return equal-tailed intervals of r_k/Σ r, two arrays (n, K), which contain its average."""
    return around(first_places(pool), pool.of_draws(pool.shares()), prob)


def order_of(pool: Pool) -> Codes:
    """Order items (n, K) by their mean log-worth, the best first."""
    return np.argsort(-averaged(pool, log_worths(pool)), axis=1, kind="stable")


def ranks_of(numbers: Array) -> Codes:
    """Return ranks along the last axis, 0 for the largest number; equal numbers share the first of their ranks."""
    order = np.argsort(-numbers, axis=-1, kind="stable")
    new = np.diff(np.take_along_axis(numbers, order, axis=-1), axis=-1, prepend=np.inf) < 0
    ranks = np.empty_like(order)
    first = np.maximum.accumulate(np.where(new, np.arange(order.shape[-1]), 0), axis=-1)
    np.put_along_axis(ranks, order, first, axis=-1)
    return ranks


def worth_table(
    pool: Pool,
    prob: float,
    certain: bool,
    unit: float = 1.0,
    anchor: tuple[int, float] | None = None,
    known: int | None = None,
) -> tuple[Codes, Table]:
    """Return the items, best first, and the columns of `worth`: averages over the rows, under every draw.

    `unit` is the size of one natural logarithm in the reported units; `anchor` is an item and its log-worth, otherwise
    log-worths have mean 0, over the first `known` items if these are fewer. A single estimate (`certain`) does not
    provide the uncertainty of a place.
    """
    logs = log_worths(pool, known).mean(axis=1)
    order = np.argsort(-(pool.share @ logs), kind="stable")
    ranks, tail = ranks_of(logs[: pool.n_draws]), (1.0 - prob) / 2.0
    if anchor is not None:
        logs = logs - logs[:, anchor[0], None] + anchor[1]
    mean, drawn = pool.share @ logs, logs[: pool.n_draws]
    lower, upper, first, rank, rank_lower, rank_upper = np.full((6, len(mean)), np.nan)
    if not certain:
        lower, upper = around(mean, drawn, prob)
        first, rank = (ranks == 0).mean(axis=0), 1.0 + ranks.mean(axis=0)
        rank_lower, rank_upper = 1.0 + np.quantile(ranks, [tail, 1.0 - tail], axis=0, method="inverted_cdf")
    columns: Table = {
        "worth": first_places(pool).mean(axis=0),
        "log_worth": unit * mean,
        "lower": unit * lower,
        "upper": unit * upper,
        "first": first,
        "rank": rank,
        "rank_lower": rank_lower,
        "rank_upper": rank_upper,
    }
    return order, {name: column[order] for name, column in columns.items()}


def better(pool: Pool, of: str, slots: bool) -> Array:
    """Return (n, K, K): probability that an item has the larger worth, or comes before the other in a new ranking.

    With `slots`, ties are those of a race observed in slots of length 1.
    """
    K = pool.log_rates.shape[2]
    found = np.empty((pool.log_rates.shape[1], K, K))
    for k in range(K):
        ahead = pool.log_rates[:, :, k, None] - pool.log_rates  # ln r_k − ln r_l
        if of == "worth":
            found[:, k] = ((ahead > 0) + 0.5 * (ahead == 0))[: pool.n_draws].mean(axis=0)
        else:
            chance = _in_an_earlier_slot(pool.log_rates, k) if slots else expit(ahead)
            found[:, k] = averaged(pool, chance)
        found[:, k, k] = np.nan
    return found


def before(pool: Pool, law: PairLaw, parameters: Array) -> Array:
    """Return (n, K, K): probability that an item comes before another by a law of pairs with parameters (S, P)."""
    logs = pool.log_rates
    found, values = np.empty((*logs.shape[1:], logs.shape[2])), parameters.T[:, :, None, None]
    for k in range(len(found[0])):
        found[:, k] = pool.mixed(np.exp(law.chances(logs[:, :, k, None], logs, values).value[FIRST]))
        found[:, k, k] = np.nan
    return found


def _in_an_earlier_slot(logs: Array, k: int) -> Array:
    """Return (1 − e^{−r_k}) e^{−r_l} / (1 − e^{−r_k−r_l}): the first slot with an arrival contains k alone."""
    own, others = np.exp(logs[:, :, k, None]), np.exp(logs)
    chance: Array = expit(logs[:, :, k, None] - logs)  # limit for rates that underflow
    seen = np.expm1(-own - others)
    return np.divide(np.exp(-others) * np.expm1(-own), seen, out=chance, where=seen != 0)


def place_shares(pool: Pool, of: str, slots: bool, rng: np.random.Generator) -> tuple[Array, float]:
    """Return (n, K, K): probability of each place, by worth or in a new ranking; and the largest standard error.

    Places in a new ranking are simulated. Tied items all have the place of the first of them.
    """
    n, K = pool.log_rates.shape[1:]
    found, error = np.empty((n, K, K)), 0.0
    for i in range(n):
        if of == "worth":
            places = ranks_of(pool.log_rates[: pool.n_draws, i])
        else:
            places = simulated_places(pool, i, SIMULATED, slots, rng)
            error = 0.5 / np.sqrt(SIMULATED)
        for k in range(K):
            found[i, k] = np.bincount(places[:, k], minlength=K) / len(places)
    return found, error


def simulated_places(pool: Pool, row: int, n: int, slots: bool, rng: np.random.Generator) -> Codes:
    """Simulate places (n, K), from 0 on, in new rankings of all items; tied items share their first place.

    Draws are used in proportion to their weights, and items arrive at exponential times.
    """
    climb = np.cumsum(pool.share)
    which = np.searchsorted(climb / climb[-1], (np.arange(n) + rng.random()) / n)
    logs = pool.log_rates[np.minimum(which, len(climb) - 1), row]
    log_times = np.log(rng.standard_exponential(logs.shape)) - logs
    rng.shuffle(log_times, axis=0)
    if not slots:
        return ranks_of(-log_times)
    return ranks_of(-np.floor(np.exp(np.minimum(log_times, LATEST))))
