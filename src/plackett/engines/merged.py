"""Rankings without covariates of which equal ones are merged and their counts added."""

from __future__ import annotations

import math

import numpy as np

from plackett.data.observations import Observations, Situations
from plackett.data.totals import totals_by_number
from plackett.engines.situations import digests
from plackett.responses.base import Outcomes, of_pairs
from plackett.responses.pair_laws import is_ordered


def without_covariates(seen: Observations) -> Observations:
    """Return the same situations, with all entries on row 0 of W."""
    outcomes, group, row = seen.all_situations
    return Observations.of_situations(Situations(outcomes, group, np.zeros_like(row)), seen.response, seen.n_groups)


def merge_equal(seen: Observations) -> Observations:
    """Merge equal rankings, except for pairs with attributes; those with an order effect have rows 0 and 1 of W."""
    if seen.differences is not None:
        return seen
    if not is_ordered(seen.response):
        seen = without_covariates(seen)
    situations = seen.all_situations
    found = _merge_pairs(situations, seen.n_groups) if of_pairs(situations.outcomes) else _merge_by_digest(situations)
    return Observations.of_situations(found, seen.response, seen.n_groups)


def _merge_pairs(situations: Situations, K: int) -> Situations:
    (_, _, sizes, counts), group, row = situations
    shape = K, K, 2, 2, 2
    key = np.ravel_multi_index((*group.reshape(-1, 2).T, *row.reshape(-1, 2).T, sizes - 1), shape)
    distinct, times = totals_by_number(key, counts, math.prod(shape))
    first, second, *rows, tied = np.unravel_index(distinct, shape)
    group, row = (np.column_stack(both).ravel() for both in ((first, second), rows))
    return Situations(Outcomes.pairs(tied > 0, times), group, row)


def _merge_by_digest(situations: Situations) -> Situations:
    whole, _, _ = digests(np.ones((1, 1)), situations)
    _, first, which = np.unique(whole, return_index=True, return_inverse=True)
    found, (_, counts) = situations.part(first), totals_by_number(which, situations.outcomes.counts, len(first))
    return found._replace(outcomes=found.outcomes._replace(counts=counts))
