"""A table in partitions: a Dask array or data frame X, labels and weights cut alike, and one look at each of them.

What is wrong with a partition is told by its number and the row in it. Sums are taken in the order of the partitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plackett.cluster.dask_private import same_rows
from plackett.cluster.held import made
from plackett.data.model_input import NUMBERS
from plackett.data.partitioned import is_dask
from plackett.data.validation import RESOLUTION, SHOWN, check_range, class_labels, plain
from plackett.model.race import Array

LABEL, WEIGHT = "label, of plackett", "weight, of plackett"  # columns beside those of X


class Moments(NamedTuple):
    """Of the rows of one label: their weight, mean and sum of squares about it, by column."""

    weight: float
    mean: npt.NDArray[Any]  # long doubles
    squares: npt.NDArray[Any]

    def __add__(self, other: Moments) -> Moments:  # type: ignore[override]
        weight = self.weight + other.weight
        step = other.mean - self.mean
        share = other.weight / weight
        return Moments(
            weight, self.mean + step * share, self.squares + other.squares + step * step * (self.weight * share)
        )

    def times(self, factor: float) -> Moments:
        """With every row counted so often."""
        return Moments(self.weight * factor, self.mean, self.squares * factor)

    def scale(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Mean and deviation of each column, infinite for a constant one, from its smallest and largest values."""
        mean: Array = self.mean.astype(np.float64)
        size = np.maximum(np.abs(low - mean), np.abs(high - mean))
        varies = size > RESOLUTION * np.maximum(np.abs(low), np.abs(high))
        return mean, np.where(varies, np.sqrt(self.squares / self.weight).astype(np.float64), np.inf)


class Look(NamedTuple):
    """What one partition holds; rows of weight zero are left out but for their number."""

    n_rows: int
    problem: str | None  # what is wrong with it, from its row on
    labels: npt.NDArray[Any]
    moments: list[Moments]  # of each label
    low: Array  # (d,)
    high: Array  # (d,)
    plain: bool  # whether all weights are 1
    fraction: tuple[int, float] | None  # the first row whose weight is no whole number, and that weight
    used: npt.NDArray[np.intp]  # rows of each label that have weight


@dataclass(frozen=True)
class Partitions:
    """X, y and the weights of the rows, in parts that Dask makes when they are asked for."""

    parts: list[tuple[Any, Any, Any]]
    n_columns: int
    names: list[Any] | None


def partitions(X: Any, y: Any, sample_weight: Any, client: Any) -> Partitions:
    """Cut y and the weights as X is."""
    names = None
    if hasattr(X, "columns"):
        names = list(X.columns)
        _check_columns(X)
        if of_one_frame(X, y):
            return _side_by_side(X, y, sample_weight, client)
        parts, sizes = X.to_delayed(), None
        n_columns = len(names)
    else:
        if X.ndim != 2:
            raise ValueError(f"X must be a table, got a Dask array with {X.ndim} dimensions instead.")
        X = X.rechunk({1: -1})
        n_columns = int(X.shape[1])
        parts, sizes = X.to_delayed().ravel().tolist(), [float(size) for size in X.chunks[0]]
        if any(np.isnan(size) for size in sizes):
            sizes = None
    labels, weights = (_cut(what, parts, sizes, name, client) for what, name in ((y, "y"), (sample_weight, "weights")))
    return Partitions(list(zip(parts, labels, weights, strict=True)), n_columns, names)


def of_one_frame(X: Any, series: Any) -> bool:
    """Whether a Dask series comes from the frame that X comes from, row by row."""
    return is_dask(series) and hasattr(series, "divisions") and same_rows(X, series)


def _side_by_side(X: Any, y: Any, sample_weight: Any, client: Any) -> Partitions:
    """Series as columns of the frame: Dask may cut those of one table differently where it reads few columns."""
    import dask

    names = list(X.columns)
    beside = {LABEL: y} | ({WEIGHT: sample_weight} if of_one_frame(X, sample_weight) else {})
    parts = X.assign(**beside).to_delayed()
    column = dask.delayed(column_of, pure=False)
    if WEIGHT in beside:
        weights = [column(part, WEIGHT) for part in parts]
    else:
        weights = _cut(sample_weight, parts, None, "weights", client)
    rows = [(column(part, names), column(part, LABEL)) for part in parts]
    return Partitions([(*row, weight) for row, weight in zip(rows, weights, strict=True)], len(names), names)


def column_of(part: Any, name: Any) -> Any:
    """A column of a frame, or some of them."""
    return part[name]


def _check_columns(X: Any) -> None:
    """Refuse, by name, columns that hold no numbers."""
    wrong = [(name, str(kind)) for name, kind in X.dtypes.items() if getattr(kind, "kind", "O") not in NUMBERS]
    if wrong:
        told = "; ".join(f"column {plain(name)} has the type {kind}" for name, kind in wrong[:SHOWN])
        raise ValueError(f"{told}. A Dask data frame must hold numbers: encode such columns, or leave them out.")


def _cut(what: Any, parts: Sequence[Any], sizes: list[float] | None, name: str, client: Any) -> list[Any]:
    """The parts of y or of the weights that belong to those of X."""
    if what is None:
        if name == "y":
            raise ValueError("requires y to be passed, but the target y is None")
        return [None] * len(parts)
    if not is_dask(what):
        import dask

        if sizes is None:
            sizes = client.gather(client.compute([dask.delayed(len)(part) for part in parts]))
        values, ends = np.asarray(what), np.cumsum(sizes).astype(int)
        if values.shape != (ends[-1],):
            raise ValueError(f"{name} must have one entry for each of the {ends[-1]} rows of X, got {values.shape}.")
        return np.split(values, ends[:-1])
    if not hasattr(what, "columns") and hasattr(what, "chunks") and sizes is not None:
        if what.ndim != 1 or not (np.isnan(what.shape[0]) or what.shape[0] == sum(sizes)):
            raise ValueError(f"{name} must have one entry for each of the {sum(sizes):.0f} rows of X.")
        if not np.isnan(what.shape[0]):
            what = what.rechunk((tuple(int(size) for size in sizes),))
    found = what.to_delayed()
    found = found.ravel().tolist() if hasattr(found, "ravel") else list(found)
    if len(found) != len(parts):
        raise ValueError(
            f"{name} has {len(found)} partitions and X has {len(parts)}: they must be cut alike. Take both from one "
            "Dask data frame, or give y.repartition the divisions of X."
        )
    return found


def numbers_of(X: Any) -> Array:
    """The numbers of a part of X."""
    return np.asarray(X, dtype=np.float64)


def look(X: Any, y: Any, weight: Any) -> Look:
    """What a partition holds, and what is wrong with it; nothing is raised, so that the first can be told."""
    labels = np.asarray(y)
    none: Array = np.empty(0)

    def wrong(problem: str) -> Look:
        return Look(len(labels), problem, labels[:0], [], none, none, True, None, np.empty(0, dtype=np.intp))

    try:
        values = numbers_of(X)
    except (TypeError, ValueError) as error:
        return wrong(f"X cannot be read as numbers: {error}")
    if labels.shape != (len(values),):
        return wrong(f"X has {len(values)} rows, and y has the shape {labels.shape}.")
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        i, j = bad[0].tolist()
        names = getattr(X, "columns", None)
        name = f"column {j}" if names is None else f"column {plain(names[j])}"
        return wrong(f"row {i}, {name} is not finite: {values[i, j]}.")
    try:
        labels = class_labels(labels)
    except ValueError as error:
        return wrong(str(error))
    counts: Array = np.ones(len(values)) if weight is None else np.asarray(weight, dtype=np.float64)
    if counts.shape != (len(values),):
        return wrong(f"X has {len(values)} rows, and the weights have the shape {counts.shape}.")
    amiss = ~(np.isfinite(counts) & (counts >= 0))
    if amiss.any():
        i = int(np.argmax(amiss))
        return wrong(f"row {i} has a weight that is negative or not finite: {counts[i]}.")
    broken = np.flatnonzero(counts != np.round(counts))
    fraction = (int(broken[0]), float(counts[broken[0]])) if len(broken) else None
    found = np.unique(labels)
    code = np.searchsorted(found, labels)
    moments = [moments_of(values[mine], counts[mine]) for mine in (code == k for k in range(len(found)))]
    some = values[counts > 0]
    low, high = (some.min(axis=0), some.max(axis=0)) if len(some) else (none, none)
    used = np.bincount(code, counts > 0, len(found)).astype(np.intp)
    return Look(len(values), None, found, moments, low, high, bool((counts == 1).all()), fraction, used)


def moments_of(values: Array, weight: Array) -> Moments:
    """Of rows and their weights."""
    total = weight.sum()
    if total == 0:
        nothing = np.zeros(values.shape[1], dtype=np.longdouble)
        return Moments(0.0, nothing, nothing)
    mean = np.einsum("i,ij->j", weight / total, values.astype(np.longdouble))
    return Moments(float(total), mean, np.einsum("i,ij,ij->j", weight, values - mean, values - mean))


@dataclass(frozen=True)
class Looked:
    """What all partitions hold together."""

    sizes: list[int]
    classes: npt.NDArray[Any]
    moments: list[Moments]  # of each class
    used: npt.NDArray[np.intp]  # (partition, class): rows that have weight
    low: Array
    high: Array
    plain: bool
    fraction: tuple[int, int, float] | None  # partition, row and weight of the first that is no whole number

    @property
    def weight(self) -> Array:
        """(K,): weight of the rows of each class."""
        return np.array([moments.weight for moments in self.moments])


def look_at(table: Partitions, client: Any) -> Looked:
    """Look at all partitions where they are; what is wrong with the first that is wrong is the error."""
    looks = looked(client, "look", look, table.parts)
    for number, each in enumerate(looks):
        if each.problem is not None:
            raise ValueError(f"partition {number} of the data: {each.problem}")
    filled = [each for each in looks if len(each.low)]
    if not filled:
        raise ValueError("no partition of the data has a row that has weight.")
    low, high = np.min([each.low for each in filled], axis=0), np.max([each.high for each in filled], axis=0)
    check_range(low, high, table.names or range(len(low)))
    classes = np.unique(np.concatenate([each.labels for each in looks if len(each.labels)]))
    moments: list[list[Moments]] = [[] for _ in classes]
    used = np.zeros((len(looks), len(classes)), dtype=np.intp)
    for number, each in enumerate(looks):
        places = np.searchsorted(classes, each.labels)
        used[number, places] = each.used
        for k, one in zip(places.tolist(), each.moments, strict=True):
            if one.weight > 0:
                moments[k].append(one)
    for k, mine in enumerate(moments):
        if not mine:
            raise ValueError(
                f"class {plain(classes[k])} has total weight 0 in sample_weight; leave its rows out of X and y, or "
                "give them weight."
            )
    fraction = next(((i, *each.fraction) for i, each in enumerate(looks) if each.fraction is not None), None)
    return Looked(
        [each.n_rows for each in looks],
        classes,
        [reduce(Moments.__add__, mine) for mine in moments],
        used,
        low,
        high,
        all(each.plain for each in looks),
        fraction,
    )


def looked(client: Any, name: str, question: Any, parts: Sequence[tuple[Any, ...]]) -> list[Any]:
    """The results of question(*part) for all parts, which are small, in their order."""
    return made(client, name, question, parts, len(parts)).fetch()
