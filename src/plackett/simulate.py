"""Simulation of the model: the race of section 2, rankings, choices and the prior (7), for tests and teaching."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import Bunch

from plackett.data.choice_sets import ChoiceSets
from plackett.data.rankings import Rankings
from plackett.model.mixture import normalised
from plackett.model.race import Array
from plackett.model.weights import Gam

__all__ = ["choices", "prior_predictive", "prior_weights", "race", "rankings"]


def prior_weights(n_classes: int, n_features: int, shape: float, rate: float = 1.0, *, rng: Any = None) -> Array:
    """Draw ln λ (K, p) with λ_kj ~ Gam(a, b), equation (7); logarithms because small shapes underflow.

    Examples
    --------
    >>> from plackett.simulate import prior_weights
    >>> prior_weights(3, 5, shape=0.01, rng=0).shape
    (3, 5)
    """
    rng = np.random.default_rng(rng)
    return Gam(shape, rate).draw(rng, (n_classes, n_features))


def race(features: npt.NDArray[np.floating], log_weights: Array, *, rng: Any = None) -> Bunch:
    """Run the race of every row: V_ikj ~ Exp(W_ij λ_kj), and the group of the first arrival wins.

    Parameters
    ----------
    features : (n, p) array
        W.
    log_weights : (K, p) array
        ln λ.
    rng : seed or Generator, optional
        Random numbers.

    Returns
    -------
    Bunch
        ``winner`` Y (n,), the winning group; ``competitor`` C (n,), its first competitor; ``log_time`` ln Z (n,), the
        logarithm of the arrival time.

    Examples
    --------
    >>> import numpy as np
    >>> from plackett.simulate import race
    >>> result = race(np.ones((4, 2)), np.zeros((3, 2)), rng=1)
    >>> result.winner.shape, result.competitor.max() < 2
    ((4,), np.True_)
    """
    rng = np.random.default_rng(rng)
    features = np.asarray(features, dtype=np.float64)
    n, p = features.shape
    K = len(log_weights)
    with np.errstate(divide="ignore"):
        log_rate = np.log(features)[:, None, :] + log_weights
        log_time = (np.log(rng.standard_exponential((n, K, p))) - log_rate).reshape(n, K * p)
    first = np.argmin(log_time, axis=1)
    return Bunch(winner=first // p, competitor=first % p, log_time=log_time[np.arange(n), first])


def prior_predictive(
    features: npt.NDArray[np.floating], n_classes: int, shape: float, rate: float = 1.0, *, rng: Any = None
) -> Bunch:
    """Draw weights from the prior and one race per row: ``log_weights`` (normalised) and ``winner``."""
    rng = np.random.default_rng(rng)
    log_weights = prior_weights(n_classes, np.shape(features)[1], shape, rate, rng=rng)
    return Bunch(log_weights=normalised(log_weights), winner=race(features, log_weights, rng=rng).winner)


def rankings(
    log_rates: npt.ArrayLike, *, items: Iterable[Any] | None = None, top: int | None = None, rng: Any = None
) -> Rankings:
    """Draw one ranking per row: items in the order of their arrivals T_k ~ Exp(r_k).

    Parameters
    ----------
    log_rates : (n, K) array
        ln r of every item in every ranking.
    items : sequence, optional
        Labels of the items; by default 0, 1, ….
    top : int, optional
        Number of observed arrivals; the other items come after them, ``unranked="last"``.
    rng : seed or Generator, optional
        Random numbers.

    Returns
    -------
    Rankings

    Examples
    --------
    >>> import numpy as np
    >>> from plackett.simulate import rankings
    >>> rankings(np.tile([2.0, 1.0, 0.0], (5, 1)), items=["a", "b", "c"], top=1, rng=0)
    Rankings(5 rows, 3 items, unranked='last')
    """
    rng = np.random.default_rng(rng)
    logs = np.asarray(log_rates, dtype=np.float64)
    if logs.ndim != 2 or not np.isfinite(logs).all():
        raise ValueError(f"log_rates must be a table of numbers, rankings × items, got shape {logs.shape}.")
    n, K = logs.shape
    if top is not None and not 1 <= top <= K:
        raise ValueError(f"top must be between 1 and the number of items, {K}, got {top!r} instead.")
    order = np.argsort(np.log(rng.standard_exponential((n, K))) - logs, axis=1)
    ranks = np.empty((n, K))
    np.put_along_axis(ranks, order, np.arange(1.0, K + 1)[None], axis=1)
    if top is not None:
        ranks[ranks > top] = 0.0
    return Rankings.from_ranks(ranks, unranked="last", items=items)


def choices(X: ChoiceSets, log_rates: npt.ArrayLike, *, rng: Any = None) -> npt.NDArray[Any]:
    """Draw the first arrival of each situation, T_e ~ Exp(r_e) for every available alternative.

    Parameters
    ----------
    X : ChoiceSets
        Choice situations.
    log_rates : (entries,) array
        ln r of each entry, in the order of ``X.values``.
    rng : seed or Generator, optional
        Random numbers.

    Returns
    -------
    (n,) array
        Labels.

    Examples
    --------
    >>> import pandas as pd
    >>> from plackett import ChoiceSets
    >>> from plackett.simulate import choices
    >>> frame = pd.DataFrame({"cost_bus": [2, 3], "cost_car": [90, 4]})
    >>> X = ChoiceSets.from_wide(frame, alternatives=["bus", "car"], attributes=["cost"])
    >>> choices(X, -X.values[:, 0], rng=0)[0]
    np.str_('bus')
    """
    rng = np.random.default_rng(rng)
    logs = np.asarray(log_rates, dtype=np.float64)
    if logs.shape != (len(X.alternative),) or not np.isfinite(logs).all():
        raise ValueError(f"log_rates must be a number for each of the {len(X.alternative)} entries of X.")
    arrival = np.log(rng.standard_exponential(len(logs))) - logs
    first = np.lexsort((arrival, X.situation))[X.start[:-1]]
    labels: npt.NDArray[Any] = X.alternatives[X.alternative[first]]
    return labels
