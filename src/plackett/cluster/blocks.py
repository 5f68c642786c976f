"""Blocks of rows and of situations on workers, their positions in the canonical order of all, and passes over them.

The data that determine the order (projections or digests, a few bytes per row) come to the client, and the positions go
back.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plackett.cluster.client import Versions, check_versions, versions
from plackett.cluster.gpus import go_to_gpus
from plackett.cluster.held import Held, address_here, made, threads_here
from plackett.cluster.parts import Codes, Part
from plackett.engines.base import Features, Places, canonical_order, projection
from plackett.engines.dask import ClusterRows, ClusterSituations, smallest_kind
from plackett.engines.device import MANY_ENTRIES
from plackett.engines.placed import PlacedRows, PlacedSituations, place_rows, place_situations
from plackett.engines.situations import digests, order_of
from plackett.model.race import Array
from plackett.responses.base import Whole

if TYPE_CHECKING:
    from distributed import Client


def make_blocks(client: Client, make: Callable[..., Any], parts: Sequence[Any], recipe: object) -> Held:
    """Make blocks make(part, recipe, versions of the client) on the workers, one for each part."""
    here = versions()
    return made(client, "block", make, ((part, recipe, here) for part in parts), len(parts))


def block_of(part: Part, recipe: object, here: Versions) -> PlacedRows | PlacedSituations:
    """Map and pack the rows or situations of one part."""
    check_versions(here, address_here())
    W, seen = part.observe(recipe)
    if seen.situations is None:
        return place_rows(W, seen, threads_here()).settled()
    return place_situations(W, seen, threads_here()).settled()


@dataclass(frozen=True)
class RemoteFeatures:
    """Features W of rows on workers, in input order or another; some of them can be fetched."""

    held: Held
    sizes: Sequence[int]
    n_features: int
    dtype: np.dtype[Any]
    order: Codes | None
    question: Callable[[Any, Codes], npt.NDArray[np.floating]]  # returns W of some rows of a block

    @property
    def shape(self) -> tuple[int, int]:
        """(n, p)."""
        return sum(self.sizes), self.n_features

    def __getitem__(self, rows: Any) -> npt.NDArray[np.floating]:
        places = np.arange(self.shape[0])[rows] if self.order is None else self.order[rows]
        starts = np.append(0, np.cumsum(self.sizes))
        block = np.searchsorted(starts, places, side="right") - 1
        wanted = [places[block == b] - starts[b] for b in range(len(self.sizes))]
        found = np.empty((len(places), self.n_features), dtype=self.dtype)
        for b, values in enumerate(self.held.each(self.question, own=wanted)):
            found[block == b] = values
        return found


class ClassFeatures(RemoteFeatures):
    """Features W of rows with one class each, which can be projected on the workers."""

    def project(self, rows: Codes, direction: Array) -> Array:
        """Return W·direction."""
        found: Array = np.concatenate(self.held.each(projected, direction))[rows]
        return found


@dataclass(frozen=True)
class ClassBlocks:
    """Blocks of rows on workers, in input order or in the canonical order of all."""

    held: Held
    sizes: list[int]
    n_classes: int
    low: Array  # (p,) minima of the columns of W
    high: Array
    dtype: np.dtype[Any]
    weighted: bool
    order: Codes | None = None

    @property
    def features(self) -> ClassFeatures:
        """Features W in this order."""
        return ClassFeatures(self.held, self.sizes, len(self.low), self.dtype, self.order, some_rows)

    @property
    def rows(self) -> ClusterRows:
        """Rows for passes."""
        n, p = sum(self.sizes), len(self.low)
        there = go_to_gpus(self.held.client, n * p >= MANY_ENTRIES)
        return ClusterRows(self.held, n, self.n_classes, p, there, self.order)

    def placed(self) -> ClusterRows:
        """Return rows for sampled passes, with their positions in the canonical order of all."""
        codes, weights = (np.concatenate(each) for each in zip(*self.held.each(coded), strict=True))
        weight = weights if self.weighted else None
        order, _ = canonical_order(self.features, codes, weight)
        place = np.empty(len(order), dtype=smallest_kind(len(order)))
        place[order] = np.arange(len(order))
        parts = zip(self.held.blocks, np.split(place, np.cumsum(self.sizes)[:-1]), strict=True)
        held = made(self.held.client, "placed", with_places, parts, len(self.sizes))
        blocks = replace(self, held=held, order=order)
        rows, features = blocks.rows, blocks.features
        rows.describe(lambda: features, codes[order], None if weight is None else weight[order])
        rows.digests = tuple(held.each(digest))
        return rows


def hold_classes(client: Client, parts: Sequence[Any], recipe: Any) -> ClassBlocks:
    """Hold rows of all parts as blocks on workers."""
    held = make_blocks(client, block_of, parts, recipe)
    spans = held.each(span)
    low, high = np.min([each.low for each in spans], axis=0), np.max([each.high for each in spans], axis=0)
    sizes, weighted = [each.n_rows for each in spans], not (recipe.plain or recipe.repeat)
    return ClassBlocks(held, sizes, len(recipe.classes), low, high, np.dtype(spans[0].dtype), weighted)


def with_places(rows: PlacedRows, places: Places) -> PlacedRows:
    """Return the block with the positions of its rows among all."""
    placed = rows.alike()
    placed.put(places)
    return placed


class Span(NamedTuple):
    """Number of rows, type, minima and maxima of the features of a block."""

    n_rows: int
    dtype: str
    low: npt.NDArray[np.floating]
    high: npt.NDArray[np.floating]


def span(rows: PlacedRows) -> Span:
    """Return the minimum and maximum of each feature of a block."""
    W = rows.unpacked_features(np.arange(rows.n_rows))
    ends = (W.min(axis=0), W.max(axis=0)) if len(W) else (W[:0], W[:0])
    return Span(rows.n_rows, W.dtype.name, *ends)


def projected(rows: PlacedRows, direction: Array) -> Array:
    """Return W·direction of all rows of a block, in input order."""
    return projection(rows.unpacked_features(np.arange(rows.n_rows)), np.arange(rows.n_rows), direction)


def coded(rows: PlacedRows) -> tuple[Codes, Array]:
    """Return class and weight of all rows of a block, in input order."""
    codes, weight, _ = rows.unpacked()
    return codes, weight


def some_rows(rows: PlacedRows, places: Codes) -> npt.NDArray[np.floating]:
    """Return W of some rows of a block."""
    return rows.unpacked_features(places)


def digest(rows: PlacedRows) -> str:
    """Return a digest of all data of a block."""
    found = hashlib.sha256()
    for part in (rows.panels.values, rows.panels.fill, rows.panels.block_class, rows.panels.weight, rows.place):
        found.update(np.ascontiguousarray(part))  # type: ignore[arg-type]
    return found.hexdigest()


def marks(rows: PlacedSituations) -> tuple[npt.NDArray[np.uint64], Array, Whole]:
    """Return digest, count and number of entries of each situation of a block, in input order."""
    found = digests(rows.features, rows.situations)[0], rows.outcomes.counts, np.diff(rows.outcomes.start)
    back = np.argsort(rows.order)
    return found[0][back], found[1][back], found[2][back]


def with_numbers(rows: PlacedSituations, number: Whole, first_entry: Whole) -> PlacedSituations:
    """Return the block with the positions of its situations and entries among all."""
    placed = rows.alike()
    placed.put((number, first_entry))
    return placed


def row_of_each(rows: PlacedSituations, which: Codes) -> npt.NDArray[np.floating]:
    """Return W of some situations of a block, in input order, if each has one row."""
    return rows.features[np.argsort(rows.order)[which]]


def size_of(rows: PlacedSituations) -> tuple[int, int, float, int]:
    """Return numbers of situations and entries, total count, and number of features of a block."""
    return rows.n_rows, len(rows.group), rows.n_seen, rows.n_features


def hold_situations(
    held: Held, n_groups: int, absolute: bool, sampled: bool, features: Features | None = None
) -> ClusterSituations:
    """Return blocks of situations as rows for an inference; for a sampler, with their positions among all.

    `features` are the rows of W whose predictions are diagnosed; None: one row per situation.
    """
    sizes = held.each(size_of)
    each, p = [size[0] for size in sizes], sizes[0][3]
    order = None
    if sampled:
        whole, counts, entries = (np.concatenate(part) for part in zip(*held.each(marks), strict=True))
        order = order_of(whole, counts)
        number, first = np.empty(len(order), dtype=np.int64), np.empty(len(order), dtype=np.int64)
        number[order] = np.arange(len(order))
        first[order] = np.cumsum(entries[order]) - entries[order]
        ends = np.cumsum(each)[:-1]
        parts = zip(held.blocks, np.split(number, ends), np.split(first, ends), strict=True)
        held = made(held.client, "placed", with_numbers, parts, len(each))
    if features is None:
        features = RemoteFeatures(held, each, p, np.dtype(np.float64), order, row_of_each)
    numbers = sum(each), sum(size[1] for size in sizes), sum(size[2] for size in sizes)
    return ClusterSituations(held, lambda: features, order, numbers, n_groups, p, absolute)
