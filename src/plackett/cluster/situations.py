"""Blocks of situations that lie on workers: their places among all, and what is asked of all of them together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from plackett.cluster.held import Held, made
from plackett.engines.dask import ClusterSituations
from plackett.engines.placed import PlacedSituations
from plackett.engines.situations import digests, order_of
from plackett.model.features import Features
from plackett.model.race import Array
from plackett.responses.base import Whole


def told(rows: PlacedSituations) -> tuple[npt.NDArray[np.uint64], Array, Whole]:
    """Digest, count and number of entries of each situation, in the order in which they came."""
    found = digests(rows.features, rows.situations)[0], rows.outcomes.counts, np.diff(rows.outcomes.start)
    back = np.argsort(rows.order)
    return found[0][back], found[1][back], found[2][back]


def with_numbers(rows: PlacedSituations, number: Whole, first_entry: Whole) -> PlacedSituations:
    """The same block, whose situations and entries know their places among all."""
    placed = rows.alike()
    placed.put((number, first_entry))
    return placed


def some_rows(rows: PlacedSituations, which: npt.NDArray[np.intp]) -> npt.NDArray[np.floating]:
    """W of some situations, in the order in which they came, where each has one row."""
    return rows.features[np.argsort(rows.order)[which]]


def size_of(rows: PlacedSituations) -> tuple[int, int, float, int]:
    """Situations, entries, how often they were seen in all, and features."""
    return rows.n_rows, len(rows.group), rows.n_seen, rows.n_features


@dataclass(frozen=True)
class OneRowEach:
    """W of situations that have one row each and lie on workers; a few can be had here."""

    held: Held
    sizes: Sequence[int]
    n_features: int
    order: Any

    @property
    def shape(self) -> tuple[int, int]:
        """(T, p)."""
        return sum(self.sizes), self.n_features

    @property
    def dtype(self) -> np.dtype[Any]:
        """As rows come here."""
        return np.dtype(np.float64)

    def __getitem__(self, rows: Any) -> Array:
        places = np.arange(self.shape[0])[rows] if self.order is None else self.order[rows]
        starts = np.append(0, np.cumsum(self.sizes))
        block = np.searchsorted(starts, places, side="right") - 1
        wanted = [places[block == b] - starts[b] for b in range(len(self.sizes))]
        found = np.empty((len(places), self.n_features))
        for b, values in enumerate(self.held.each(some_rows, own=wanted)):
            found[block == b] = values
        return found


def together(
    client: Any, held: Held, n_groups: int, absolute: bool, sampled: bool, rows_of: Callable[..., Features]
) -> ClusterSituations:
    """Blocks as rows for an inference; for a sampler situations learn their places among all.

    The digests that decide it come here, with counts and sizes, and the places go back. What rows_of(held, sizes, p,
    order) gives are rows of W whose predictions are diagnosed.
    """
    sizes = held.each(size_of)
    each, p = [size[0] for size in sizes], sizes[0][3]
    order = None
    if sampled:
        whole, counts, entries = (np.concatenate(part) for part in zip(*held.each(told), strict=True))
        order = order_of(whole, counts)
        number, first = np.empty(len(order), dtype=np.int64), np.empty(len(order), dtype=np.int64)
        number[order] = np.arange(len(order))
        first[order] = np.cumsum(entries[order]) - entries[order]
        ends = np.cumsum(each)[:-1]
        parts = zip(held.blocks, np.split(number, ends), np.split(first, ends), strict=True)
        held = made(client, "placed", with_numbers, parts, len(each))
    numbers = sum(each), sum(size[1] for size in sizes), sum(size[2] for size in sizes)
    return ClusterSituations(held, lambda: rows_of(held, each, p, order), order, numbers, n_groups, p, absolute)
