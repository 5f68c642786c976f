"""Network of who was placed above whom, and its strongly connected components (Hunter 2004, assumption 1)."""

from __future__ import annotations

import graphlib

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from plackett.compute.totals import totals_by_number
from plackett.responses.base import Outcomes, Whole, of_pairs, places_of


def components(outcomes: Outcomes, item: Whole, n_items: int) -> list[npt.NDArray[np.intp]]:
    """Return the items of each component; one whose items were placed above those of another comes first."""
    network = above(outcomes, item, n_items)
    n, part = connected_components(network, connection="strong")
    if n == 1:
        return [np.arange(n_items)]
    first = np.full(n, n_items)
    np.minimum.at(first, part, np.arange(n_items))
    sources: dict[int, set[int]] = {int(c): set() for c in np.argsort(first)}
    upper, lower = network.nonzero()
    for i, j in np.unique(np.column_stack([part[upper], part[lower]]), axis=0).tolist():
        if i != j:
            sources[j].add(i)
    return [np.flatnonzero(part == c) for c in graphlib.TopologicalSorter(sources).static_order()]


def above(outcomes: Outcomes, item: Whole, n_items: int) -> sparse.csr_array:
    """Return counts (K, K) of rows with item i in the bucket directly above item j; paths imply the other relations."""
    if of_pairs(outcomes) and (outcomes.sizes == 1).all():
        return _arrows(item[::2], item[1::2], n_items)
    place = places_of(outcomes) - 1
    size = np.bincount(place)
    head = np.cumsum(size) - size
    within = np.ones(len(size) + 1, dtype=bool)  # the bucket has another above it in its row; none follows the last
    within[np.append(place[outcomes.start[:-1]], -1)] = False
    single = within[:-1] & (size == 1) & (np.append(0, size[:-1]) == 1)
    found = _arrows(item[head[single] - 1], item[head[single]], n_items)
    several = np.append(within[:-1] & ~single, False)
    if not several.any():
        return found
    number = np.cumsum(several) - 1
    upper, lower = (np.flatnonzero(several[place + ahead]) for ahead in (1, 0))
    shape = int(several.sum()), n_items
    tables = (
        sparse.csr_array((np.ones(len(some)), (number[place[some] + ahead], item[some])), shape=shape)
        for some, ahead in ((upper, 1), (lower, 0))
    )
    return sparse.csr_array(found + next(tables).T @ next(tables))


def _arrows(upper: Whole, lower: Whole, n_items: int) -> sparse.csr_array:
    """Return counts (K, K) of pairs."""
    pairs, times = totals_by_number(upper * n_items + lower, np.ones(len(upper)), n_items**2)
    row, column = np.divmod(pairs, n_items)  # in the order of rows
    starts = np.append(0, np.cumsum(np.bincount(row, minlength=n_items)))
    return sparse.csr_array((times, column, starts), shape=(n_items, n_items))
