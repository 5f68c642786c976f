"""Which comparisons to make next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from plackett.data.labels import codes_of
from plackett.data.validation import plain
from plackett.inference.base import check_count
from plackett.optional import optional
from plackett.posterior.base import refuse
from plackett.posterior.information import pair_information, share_of_first
from plackett.responses import RESPONSES, Ranking, make_response
from plackett.responses.pair_laws import TIE, law_of

if TYPE_CHECKING:
    import pandas as pd

    from plackett.ranking import RankingModel

__all__ = ["next_pairs"]


def next_pairs(
    model: RankingModel, n: int = 10, *, among: Sequence[Any] | None = None, each: int | None = None
) -> pd.DataFrame:
    """Return the pairs of items whose comparison is expected to tell most, the most informative first.

    Parameters
    ----------
    model : PlackettLuceRanker
        A model without covariates and segments, fitted to rankings or pairs by an inference with draws.
    n : int
        Number of pairs.
    among : list of items, optional
        Items that can be compared; None: all.
    each : int, optional
        Maximum number of pairs of an item, so that pairs that are asked together differ. None: no limit.

    Returns
    -------
    DataFrame
        - ``first``, ``second``: the items, the one with the larger mean log-worth first;
        - ``gain``: the expected information in nats that one comparison gives about the worths, the mutual information
          H(mean p) − mean H(p) between its outcome and the draws, where p are the probabilities of its outcomes under
          a draw. A tie is an outcome of its own if the model's `ties` give it a probability;
        - ``share``: the expected share of the first item, its wins and half of the ties.

    Notes
    -----
    Gains are those of single comparisons. They do not add up: two comparisons of one pair, or of items that are
    compared with one another, tell less than the sum. Refit when answers come in. At most 400 draws are used, evenly
    spaced; with an order effect no item is shown first.

    Examples
    --------
    >>> from plackett import PlackettLuceRanker, Rankings, next_pairs
    >>> R = Rankings.from_pairs(["a", "b", "c", "d"], ["b", "c", "d", "a"], counts=[40, 40, 40, 1])
    >>> m = PlackettLuceRanker(random_state=0).fit(None, R)
    >>> next_pairs(m, 2).columns.tolist()
    ['first', 'second', 'gain', 'share']
    """
    check_is_fitted(model)
    check_count("n", n)
    if each is not None:
        check_count("each", each)
    if not hasattr(model, "items_"):
        raise ValueError(f"next_pairs is for a PlackettLuceRanker, got {type(model).__name__} instead.")
    if model.n_features_in_ or hasattr(model, "segments_"):
        raise ValueError("next_pairs is for worths without covariates and segments: fit(None, R) with segments=1.")
    refuse(model.posterior_.no_interval)
    items = np.arange(len(model.items_)) if among is None else _among(among, model.items_)
    members = model._spread_members()
    (pool,) = model._pools(None)
    log_rates = pool.log_rates[: pool.n_draws, 0]
    order = items[np.argsort(-(log_rates - log_rates.mean(axis=1, keepdims=True)).mean(axis=0)[items], kind="stable")]
    first, second = (order[places] for places in np.triu_indices(len(order), 1))
    law = law_of(make_response(model._ties) if model._ties in RESPONSES else Ranking())
    assert law is not None
    values = np.empty((len(log_rates), 0)) if members.of_response is None else members.of_response[: len(log_rates)]
    outcomes = 3 if law.arrivals[TIE].any() else 2  # ties of unknown order have no probability of their own
    gain, found = pair_information(log_rates, values, law, outcomes, first, second)
    best = _limited(np.argsort(-gain, kind="stable"), first, second, n, each)
    pandas = optional("pandas", "next_pairs")
    columns = {"first": model.items_[first[best]], "second": model.items_[second[best]]}
    return pandas.DataFrame(columns | {"gain": gain[best], "share": share_of_first(found)[best]})


def _among(among: Any, known: Any) -> Any:
    """Return the codes of different items, two or more."""
    codes = np.unique(codes_of(list(among), known, "item"))
    if len(codes) < 2:
        raise ValueError(f"among must have two or more different items, got {plain(list(among))} instead.")
    return codes


def _limited(order: Any, first: Any, second: Any, n: int, each: int | None) -> Any:
    """Return the first n pairs in this order, in which every item occurs at most `each` times."""
    if each is None:
        return order[:n]
    times = np.zeros(max(first.max(), second.max()) + 1, dtype=np.int64)
    found: list[int] = []
    for pair in order.tolist():
        if len(found) < n and times[first[pair]] < each and times[second[pair]] < each:
            times[[first[pair], second[pair]]] += 1
            found.append(pair)
    return np.array(found, dtype=np.intp)
