"""From a partition of X and y to a block of packed rows, and the questions that such blocks answer, on a worker."""

from __future__ import annotations

import hashlib
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plackett.cluster.client import Versions, check_versions
from plackett.cluster.held import address_here, threads_here
from plackett.data.observations import Observations
from plackett.engines.base import Places, projection
from plackett.engines.placed import PlacedRows, place_rows
from plackett.features.mapped import transform
from plackett.model.race import Array

Codes = npt.NDArray[np.intp]


class Recipe(NamedTuple):
    """What a worker needs to know to make a block of a partition."""

    features: Any  # the fitted map
    classes: npt.NDArray[Any]
    factors: Array  # (K,) by which the weights of the rows of each class are multiplied
    plain: bool  # whether all weights are 1 in the end
    repeat: bool  # whether a row of weight 2 becomes two
    versions: Versions


class Taken(NamedTuple):
    """Rows of a partition that count."""

    X: Any
    codes: Codes
    weight: Array | None


def take(X: Any, y: Any, weight: Any, recipe: Recipe) -> Taken:
    """The rows that have weight, as often as they are to stand there."""
    codes = np.searchsorted(recipe.classes, np.asarray(y)).astype(np.intp)
    counts: Array = np.ones(len(codes)) if weight is None else np.asarray(weight, dtype=np.float64)
    counts = counts * recipe.factors[codes]
    if recipe.plain:
        return Taken(X, codes, None)
    if recipe.repeat:
        places = np.repeat(np.arange(len(codes)), counts.astype(np.intp))
        return Taken(rows_of(X, places), codes[places], None)
    places = np.flatnonzero(counts)
    return Taken(rows_of(X, places), codes[places], counts[places])


def rows_of(X: Any, places: Codes) -> Any:
    """Rows of an array or data frame, by their place."""
    return X.iloc[places] if hasattr(X, "iloc") else X[places]


def make_block(X: Any, y: Any, weight: Any, recipe: Recipe) -> PlacedRows:
    """Map and pack the rows of a partition."""
    check_versions(recipe.versions, address_here())
    taken = take(X, y, weight, recipe)
    W = transform(recipe.features, taken.X)
    seen = Observations.of_classes(taken.codes, len(recipe.classes), taken.weight)
    return place_rows(W, seen, threads_here()).settled()


def with_places(rows: PlacedRows, places: Places) -> PlacedRows:
    """The same block, whose rows know their places among all."""
    placed = rows.alike()
    placed.put(places)
    return placed


class Span(NamedTuple):
    """What W of a block looks like from outside."""

    n_rows: int
    dtype: str
    low: npt.NDArray[np.floating]
    high: npt.NDArray[np.floating]


def span(rows: PlacedRows) -> Span:
    """Smallest and largest values of each feature."""
    W = rows.unpacked_features(np.arange(rows.n_rows))
    ends = (W.min(axis=0), W.max(axis=0)) if len(W) else (W[:0], W[:0])
    return Span(rows.n_rows, W.dtype.name, *ends)


def projected(rows: PlacedRows, direction: Array) -> Array:
    """W·direction of all rows, in the order in which they came."""
    return projection(rows.unpacked_features(np.arange(rows.n_rows)), np.arange(rows.n_rows), direction)


def coded(rows: PlacedRows) -> tuple[Codes, Array]:
    """Class and weight of all rows, in the order in which they came."""
    codes, weight, _ = rows.unpacked()
    return codes, weight


def some_rows(rows: PlacedRows, places: Codes) -> npt.NDArray[np.floating]:
    """W of a few rows."""
    return rows.unpacked_features(places)


def digest(rows: PlacedRows) -> str:
    """Of all that a block holds."""
    found = hashlib.sha256()
    for part in (rows.panels.values, rows.panels.fill, rows.panels.block_class, rows.panels.weight, rows.place):
        found.update(np.ascontiguousarray(part))  # type: ignore[arg-type]
    return found.hexdigest()
