"""Probabilities of many rankings under many draws, where the rates of the items are the same in all rankings."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from plackett.engines.left_sets import sets_of
from plackett.model.mixture import FAINT
from plackett.model.race import Array
from plackett.responses.base import Outcomes, Whole


def ranking_values(log_rates: Array, outcomes: Outcomes, item: Whole) -> Array:
    """ln Pr (S, T) of rankings without ties, by the sets of those left (`engines.left_sets`); rates are (S, K)."""
    S, K = log_rates.shape
    sets, (place, chosen, situation) = sets_of(outcomes, item, K)
    log_rates = np.maximum(log_rates - log_rates.max(axis=1, keepdims=True), FAINT)
    rates, left = np.ascontiguousarray(np.exp(log_rates).T), np.zeros((len(sets.item), S))
    for v in range(1, len(left)):
        np.add(left[sets.smaller[v]], rates[sets.item[v]], out=left[v])
    np.log(left[1:], out=left[1:])
    T, ones, met = len(outcomes.counts), np.ones(int(chosen.sum())), situation[chosen]
    came = sparse.csr_array((ones, (met, item[chosen])), shape=(T, K))
    among = sparse.csr_array((ones, (met, place[chosen])), shape=(T, len(left)))
    found: Array = (came @ log_rates.T - among @ left).T
    return found
