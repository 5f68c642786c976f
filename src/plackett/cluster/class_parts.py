"""Partitions of rows with one class each: reading, looks, and conversion to features and codes on a worker.

Sums are taken in the order of the partitions.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plackett.cluster.cutting import cut, local_only, split
from plackett.cluster.moments import Moments, moments_of
from plackett.cluster.parts import Codes, ask, optional_rows, raise_first, rows_of
from plackett.data.model_input import NUMBERS
from plackett.data.observations import Observations
from plackett.data.validation import SHOWN, check_range, class_labels, plain
from plackett.features.mapped import transform
from plackett.model.features import Features
from plackett.model.race import Array

if TYPE_CHECKING:
    from distributed import Client


class ClassLook(NamedTuple):
    """Summary of one partition; rows of weight zero count for `n_rows` alone."""

    n_rows: int
    problem: str | None = None  # problem, with its row
    labels: npt.NDArray[Any] = np.empty(0)
    moments: tuple[Moments, ...] = ()  # moments of each label
    low: Array = np.empty(0)  # (d,)
    high: Array = np.empty(0)  # (d,)
    plain: bool = True  # True if all weights are 1
    fraction: tuple[int, float] | None = None  # first row with a fractional weight, and the weight
    used: Codes = np.empty(0, dtype=np.intp)  # number of rows of each label with positive weight


class ClassRecipe(NamedTuple):
    """How a partition becomes features and codes."""

    features: Any  # the fitted map
    classes: npt.NDArray[Any]
    factors: Array  # (K,) factors of the weights of each class
    plain: bool  # True if all final weights are 1
    repeat: bool = False  # True if a row of weight 2 becomes two rows


class Counted(NamedTuple):
    """Rows of a partition with positive weight."""

    X: Any
    codes: Codes
    weight: Array | None

    @property
    def numbers(self) -> Array:
        """X as an array."""
        return as_numbers(self.X)


@dataclass(frozen=True)
class ClassPart:
    """Rows, their labels and their weights (None where all are 1)."""

    X: Any
    y: Any
    weight: Any

    def look(self) -> ClassLook:
        """Return labels, weights and moments of the rows, or a problem."""
        labels = np.asarray(self.y)
        n = len(labels)
        try:
            values = as_numbers(self.X)
        except (TypeError, ValueError) as error:
            return ClassLook(n, f"X cannot be read as numbers: {error}")
        if labels.shape != (len(values),):
            return ClassLook(n, f"X has {len(values)} rows, and y has the shape {labels.shape}.")
        bad = np.argwhere(~np.isfinite(values))
        if len(bad):
            i, j = bad[0].tolist()
            names = getattr(self.X, "columns", None)
            name = f"column {j}" if names is None else f"column {plain(names[j])}"
            return ClassLook(n, f"row {i}, {name} is not finite: {values[i, j]}.")
        try:
            labels = class_labels(labels)
        except ValueError as error:
            return ClassLook(n, str(error))
        counts: Array = np.ones(n) if self.weight is None else np.asarray(self.weight, dtype=np.float64)
        if counts.shape != (n,):
            return ClassLook(n, f"X has {n} rows, and the weights have the shape {counts.shape}.")
        wrong = wrong_weight(counts)
        if wrong is not None:
            return ClassLook(n, wrong)
        found = np.unique(labels)
        code = np.searchsorted(found, labels)
        moments = tuple(moments_of(values[mine], counts[mine]) for mine in (code == k for k in range(len(found))))
        some = values[counts > 0]
        low, high = (some.min(axis=0), some.max(axis=0)) if len(some) else (np.empty(0), np.empty(0))
        used = np.bincount(code, counts > 0, len(found)).astype(np.intp)
        ones = bool((counts == 1).all())
        return ClassLook(n, None, found, moments, low, high, ones, first_fraction(counts), used)

    def counted(self, recipe: ClassRecipe) -> Counted:
        """Return rows with positive weight, repeated by their weights if the recipe says so."""
        codes = np.searchsorted(recipe.classes, np.asarray(self.y)).astype(np.intp)
        counts: Array = np.ones(len(codes)) if self.weight is None else np.asarray(self.weight, dtype=np.float64)
        counts = counts * recipe.factors[codes]
        if recipe.plain:
            return Counted(self.X, codes, None)
        if recipe.repeat:
            places = np.repeat(np.arange(len(codes)), counts.astype(np.intp))
            return Counted(rows_of(self.X, places), codes[places], None)
        places = np.flatnonzero(counts)
        return Counted(rows_of(self.X, places), codes[places], counts[places])

    def observe(self, recipe: ClassRecipe) -> tuple[Features, Observations]:
        """Return features and classes of the rows with positive weight."""
        X, codes, weight = self.counted(recipe)
        return transform(recipe.features, X), Observations.of_classes(codes, len(recipe.classes), weight)

    def take(self, numbers: Codes) -> ClassPart:
        """Select rows by their number among those with positive weight."""
        places = np.arange(len(self.X)) if self.weight is None else np.flatnonzero(np.asarray(self.weight))
        some = places[numbers]
        return ClassPart(rows_of(self.X, some), np.asarray(self.y)[some], optional_rows(self.weight, some))

    def covariates(self) -> ClassPart:
        """Return the rows whose columns a map is fitted to."""
        return self


def as_numbers(X: object) -> Array:
    """Return a part of X as an array of doubles."""
    return np.asarray(X, dtype=np.float64)


def wrong_weight(counts: Array) -> str | None:
    """Describe the first weight that is negative or not finite, or return None."""
    bad = np.flatnonzero(~(np.isfinite(counts) & (counts >= 0)))
    return f"row {bad[0]} has a weight that is negative or not finite: {counts[bad[0]]}." if len(bad) else None


def first_fraction(counts: Array) -> tuple[int, float] | None:
    """Return the first count that is not a whole number, with its row."""
    broken = np.flatnonzero(counts != np.round(counts))
    return (int(broken[0]), float(counts[broken[0]])) if len(broken) else None


@dataclass(frozen=True)
class ClassTable:
    """Partitions of rows with positive weight, with the results of a look."""

    client: Client
    parts: list[Any]  # `ClassPart` or other parts with covariates
    names: list[Any] | None  # names of the columns of X
    classes: npt.NDArray[Any]
    moments: list[Moments]  # moments of each class
    n_rows: int  # number of rows with positive weight
    low: Array
    high: Array
    plain: bool  # True if all weights are 1
    fraction: tuple[int, int, float] | None  # partition, row and weight of the first fractional one

    @property
    def n_columns(self) -> int:
        """Number of columns of X."""
        return len(self.low)

    @property
    def weight(self) -> Array:
        """Total weight of the rows of each class, (K,)."""
        return np.array([moments.weight for moments in self.moments])

    def repeats(self, factors: Array, most: int) -> bool:
        """True if rows are few enough to be repeated by their weights; raises for fractional weights."""
        if self.fraction is not None:
            number, row, weight = self.fraction
            raise ValueError(
                f"Gibbs with fixed features takes whole numbers as sample_weight (2 is two rows), got {weight:g} in "
                f"row {row} of partition {number}. Use inference='variational' or inference='em' for other weights."
            )
        broken = factors[factors != np.round(factors)]
        if len(broken):
            raise ValueError(
                f"Gibbs with fixed features takes whole numbers as class_weight (2 is two rows), got {broken[0]:g}. "
                "Use inference='variational' or inference='em' for others."
            )
        return float((self.weight * factors).sum()) <= most

    def recipe(self, factors: Array | None = None, repeat: bool = False) -> ClassRecipe:
        """Return the recipe for class weights multiplied by factors; without a map."""
        factors = np.ones(len(self.classes)) if factors is None else factors
        return ClassRecipe(None, self.classes, factors, self.plain and bool((factors == 1).all()), repeat)


def read_classes(client: Client, X: Any, y: Any, sample_weight: Any) -> ClassTable:
    """Partition labels and weights like X, and look at all partitions."""
    names = None
    if hasattr(X, "columns"):
        names = list(X.columns)
        _check_columns(X)
    elif X.ndim != 2:
        raise ValueError(f"X must be a table, got a Dask array with {X.ndim} dimensions instead.")
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    given = {"y": y, "sample_weight": sample_weight}
    pieces, beside, sizes = cut(X, "X has", given)
    for key, what in local_only(given).items():
        sizes = ask(client, "sizes", len, pieces) if sizes is None else sizes
        beside[key] = split(what, sizes, key, "rows of X")
    parts = [ClassPart(*each) for each in zip(pieces, beside["y"], beside["sample_weight"], strict=True)]
    return look_at_rows(client, parts, names)


def _check_columns(X: Any) -> None:
    """Raise for columns that hold no numbers, by name."""
    wrong = [(name, str(kind)) for name, kind in X.dtypes.items() if getattr(kind, "kind", "O") not in NUMBERS]
    if wrong:
        told = "; ".join(f"column {plain(name)} has the type {kind}" for name, kind in wrong[:SHOWN])
        raise ValueError(f"{told}. A Dask data frame must hold numbers: encode such columns, or leave them out.")


def look_of_covariates(part: Any) -> ClassLook:
    """Look at the covariates of one part."""
    look: ClassLook = part.covariates().look()
    return look


def look_at_rows(client: Client, parts: list[Any], names: list[Any] | None) -> ClassTable:
    """Look at all partitions of rows, or of other data with covariates; raises the first problem."""
    looks = ask(client, "look", look_of_covariates, parts)
    raise_first(looks)
    filled = [each for each in looks if len(each.low)]
    if not filled:
        raise ValueError("no partition of the data has a row with positive weight.")
    low, high = np.min([each.low for each in filled], axis=0), np.max([each.high for each in filled], axis=0)
    check_range(low, high, names or range(len(low)))
    classes = np.unique(np.concatenate([each.labels for each in looks if len(each.labels)]))
    moments: list[list[Moments]] = [[] for _ in classes]
    for each in looks:
        for k, one in zip(np.searchsorted(classes, each.labels).tolist(), each.moments, strict=True):
            if one.weight > 0:
                moments[k].append(one)
    for k, mine in enumerate(moments):
        if not mine:
            raise ValueError(
                f"class {plain(classes[k])} has total weight 0 in sample_weight; leave its rows out of X and y, or "
                "give them weight."
            )
    return ClassTable(
        client,
        [part for part, each in zip(parts, looks, strict=True) if each.used.any()],
        names,
        classes,
        [reduce(Moments.__add__, mine) for mine in moments],
        sum(int(each.used.sum()) for each in looks),
        low,
        high,
        all(each.plain for each in looks),
        next(((i, *each.fraction) for i, each in enumerate(looks) if each.fraction is not None), None),
    )
