"""Network of who was placed above whom, and its strongly connected components (Hunter 2004, assumption 1)."""

from __future__ import annotations

import graphlib

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from plackett.responses.base import Outcomes, Whole, places_of


def components(outcomes: Outcomes, item: Whole, n_items: int) -> list[npt.NDArray[np.intp]]:
    """Return the items of each component; one whose items were placed above those of another comes first."""
    network = above(outcomes, item, n_items)
    n, part = connected_components(network, connection="strong")
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
    place, length = places_of(outcomes), np.diff(outcomes.start)
    row = np.repeat(np.arange(len(length)), length)
    begins = np.append(True, np.diff(row) > 0)[: len(row)]
    highest = place == np.repeat(place[begins], length)
    shape = (int(place[-1]) + 2 if len(place) else 1, n_items)
    ones = np.ones(len(place))
    upper = sparse.csr_array((ones, (place + 1, item)), shape=shape)
    lower = sparse.csr_array((ones[~highest], (place[~highest], item[~highest])), shape=shape)
    return sparse.csr_array(upper.T @ lower)
