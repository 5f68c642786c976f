"""Rankings without covariates of which equal ones are merged and their counts added."""

from __future__ import annotations

import math

import numpy as np

from plackett.compute.totals import totals, totals_by_number
from plackett.data.observations import Observations, Situations
from plackett.data.rankings import Rankings
from plackett.engines.situations import digests
from plackett.responses.base import Outcomes, Whole, of_pairs
from plackett.responses.pair_laws import is_ordered


def without_covariates(seen: Observations) -> Observations:
    """Return the same situations, with all entries on row 0 of W."""
    outcomes, group, row = seen.all_situations
    return Observations.of_situations(Situations(outcomes, group, np.zeros_like(row)), seen.response, seen.n_groups)


def merge_equal(seen: Observations) -> Observations:
    """Merge equal rankings; pairs with attributes, and others than pairs with an order effect, are left as they are."""
    (outcomes, item, row), K, ordered = seen.all_situations, seen.n_groups, is_ordered(seen.response)
    if seen.differences is not None or (ordered and not of_pairs(outcomes)):
        return seen
    found = _merged(outcomes, item, row.reshape(-1, 2) @ (2, 1) if ordered else None, K)
    return Observations.of_situations(found, seen.response, K)


def merged_rankings(R: Rankings) -> Rankings:
    """Return distinct rankings with the sums of their counts, whatever was shown first."""
    found = _merged(R.outcomes, R.item, None, len(R.items))
    return Rankings(R.items, found.group, found.outcomes, R.unranked)


def distinct_rankings(R: Rankings, ordered: bool) -> tuple[Whole, Whole]:
    """Return numbers of distinct rankings, and which of these each equals; `ordered`: who was shown first matters."""
    if of_pairs(R.outcomes):
        shown = (R.first == R.item[::2]) * 2 + (R.first == R.item[1::2]) if ordered and R.first is not None else None
        key, _ = _keys_of_pairs(R.outcomes, R.item, shown, len(R.items))
    else:
        key = digests(np.ones((1, 1)), Situations(R.outcomes, R.item, np.zeros_like(R.item)))[0].view(np.int64)
    _, first, which = np.unique(key, return_index=True, return_inverse=True)
    return first, which.ravel()


def _merged(outcomes: Outcomes, item: Whole, shown: Whole | None, K: int) -> Situations:
    """Merge equal pairs by their number, and other rankings by their digest."""
    if not of_pairs(outcomes):
        return _merged_by_digest(Situations(outcomes, item, np.zeros_like(item)))
    key, shape = _keys_of_pairs(outcomes, item, shown, K)
    distinct, times = totals_by_number(key, outcomes.counts, math.prod(shape))
    first, second, order, tied = np.unravel_index(distinct, shape)
    group, row = (np.column_stack(both).ravel() for both in ((first, second), (order == 2, order == 1)))
    return Situations(Outcomes.pairs(tied > 0, times), group, row.astype(np.int64))


def _keys_of_pairs(
    outcomes: Outcomes, item: Whole, shown: Whole | None, K: int
) -> tuple[Whole, tuple[int, int, int, int]]:
    """Number the kinds of pairs; `shown` is 2 where the first of both entries was shown first, 1 where the second was.

    Also returns the shape of a table that has these numbers: items, who was shown first, and whether they tied.
    """
    key = item[::2] * K
    key += item[1::2]
    if shown is not None:
        key = 3 * key + shown
    key *= 2
    key += outcomes.sizes
    key -= 1
    return key, (K, K, 1 if shown is None else 3, 2)


def _merged_by_digest(situations: Situations) -> Situations:
    whole, _, _ = digests(np.ones((1, 1)), situations)
    _, first, which = np.unique(whole, return_index=True, return_inverse=True)
    found, counts = situations.part(first), totals(which, situations.outcomes.counts, len(first))
    return found._replace(outcomes=found.outcomes._replace(counts=counts))
