"""A classifier fitted to rows in partitions: what its `fit` does, without ever seeing the rows.

The features are fitted from sums over partitions, the rows mapped and packed where they lie. A sampler needs the place
of every row among all: the projections that decide it come here, eight bytes a row, and the places go back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils.multiclass import check_classification_targets

from plackett.cluster.blocks import Recipe, coded, digest, make_block, projected, some_rows, span, take, with_places
from plackett.cluster.client import cluster, versions
from plackett.cluster.gpus import go_to_gpus
from plackett.cluster.held import Held, made
from plackett.cluster.observed import observe
from plackett.cluster.partitions import Looked, Moments, Partitions, look_at, looked, numbers_of, partitions
from plackett.data.validation import _weights_of_classes, all_alike, plain
from plackett.directions import LearnedDirections
from plackett.directions.learning import SHAPE
from plackett.engines.base import canonical_order
from plackett.engines.dask import ClusterRows, smallest_kind
from plackett.engines.device import MANY_ENTRIES
from plackett.features import ExpFeatures
from plackett.features.exp import Columns
from plackett.features.mapped import fit_features
from plackett.features.standardise import mean_and_scale
from plackett.inference import EM, Gibbs
from plackett.inference.base import Fit, Problem
from plackett.model.race import Array

EXACT = 1 << 24  # numbers of X up to which they come here for means and deviations equal to the last bit


class ClusterFeatures:
    """W of rows that lie on workers, in the order in which they came or in another; a few can be had here."""

    def __init__(self, held: Held, sizes: list[int], n_features: int, dtype: str, order: Any = None):
        self.held, self.sizes, self.order = held, sizes, order
        self.shape, self.dtype = (sum(sizes), n_features), np.dtype(dtype)

    def project(self, rows: npt.NDArray[np.intp], direction: Array) -> Array:
        """W·direction."""
        found: Array = np.concatenate(self.held.each(projected, direction))[rows]
        return found

    def __getitem__(self, rows: Any) -> npt.NDArray[np.floating]:
        places = np.arange(self.shape[0])[rows] if self.order is None else self.order[rows]
        starts = np.concatenate([[0], np.cumsum(self.sizes)])
        block = np.searchsorted(starts, places, side="right") - 1
        wanted = [places[block == b] - starts[b] for b in range(len(self.sizes))]
        found = np.empty((len(places), self.shape[1]), dtype=self.dtype)
        for b, values in enumerate(self.held.each(some_rows, own=wanted)):
            found[block == b] = values
        return found


@dataclass(frozen=True)
class Prepared:
    """Blocks on workers, and how they were made."""

    held: Held
    parts: list[tuple[Any, Any, Any]]  # what they were made of
    sizes: list[int]
    recipe: Recipe
    low: Array
    high: Array
    dtype: str

    @property
    def features(self) -> ClusterFeatures:
        """W, in the order in which the rows came."""
        return ClusterFeatures(self.held, self.sizes, len(self.low), self.dtype)

    def rows(self, order: Any = None) -> ClusterRows:
        """For passes."""
        n, p = sum(self.sizes), len(self.low)
        there = go_to_gpus(self.held.client, n * p >= MANY_ENTRIES)
        return ClusterRows(self.held, n, len(self.recipe.classes), p, there, order)


def fit_partitions(
    clf: Any, features: Any, inference: Any, shape: float | None, X: Any, y: Any, sample_weight: Any
) -> tuple[npt.NDArray[Any], Fit]:
    """The classes, and what the inference found."""
    with cluster() as client:
        table = partitions(X, y, sample_weight, client)
        _know_columns(clf, table)
        found = look_at(table, client)
        check_classification_targets(found.classes)
        if len(found.classes) < 2:
            raise ValueError(
                f"a classifier needs at least two classes, and y holds one class only: {plain(found.classes[0])}."
            )
        factors = _weights_of_classes(clf.class_weight, found.classes, found.weight)
        if isinstance(features, LearnedDirections):
            all_alike(np.array([found.low, found.high]), stacklevel=5)
            return found.classes, _learned(clf, client, table, found, features, inference, shape, factors)
        repeat = isinstance(inference, Gibbs) and _repeated(found, factors)
        data = prepare(client, table, found, features, factors, repeat)
        extra: dict[str, Any] = {"features_": data.recipe.features}
        if (
            all_alike(np.array([data.low, data.high]), stacklevel=5)
            and shape is None
            and not isinstance(inference, Gibbs)
        ):
            shape = 1.0  # as `PlackettLuceClassifier` has it
        if isinstance(inference, EM) and shape is None:
            from plackett.cluster.folds import cross_validated_losses

            shapes, losses = cross_validated_losses(inference, client, table, data, features, bool(clf.progress))
            shape = float(shapes[np.argmin(losses)])
            extra["cv_log_loss_"] = dict(zip(shapes.tolist(), losses.tolist(), strict=True))
        problem = _problem(clf, client, data, isinstance(inference, Gibbs))
        fit = inference.fit(problem, shape)
        return found.classes, replace(fit, extra=fit.extra | extra)


def _learned(
    clf: Any, client: Any, table: Partitions, found: Looked, features: LearnedDirections, inference: Any,
    shape: float | None, factors: Array,
) -> Fit:  # fmt: skip
    """Directions and weights together; with engine="auto" here, where there are no more rows than come here anyway."""
    from plackett.cluster.directions import make_cluster_task
    from plackett.directions.task import make_task

    recipe = Recipe(None, found.classes, factors, _plain(found, factors), False, versions())
    parts = [(*table.parts[number], recipe) for number in np.flatnonzero(found.used.sum(axis=1))]
    held = made(client, "rows", observe, parts, len(parts))
    task: Any = make_cluster_task(held, *clf._run_settings())
    if clf.engine == "auto" and task.all_here:
        task = make_task(task.here.rows, task.here.codes, task.here.weight, *clf._run_settings())
    return features.learn(inference, task, SHAPE if shape is None else shape)


def _plain(found: Looked, factors: Array) -> bool:
    return found.plain and bool((factors == 1).all())


def _know_columns(clf: Any, table: Partitions) -> None:
    clf.n_features_in_ = table.n_columns
    if hasattr(clf, "feature_names_in_"):
        del clf.feature_names_in_
    if table.names is not None and all(isinstance(name, str) for name in table.names):
        clf.feature_names_in_ = np.asarray(table.names, dtype=object)


def _repeated(found: Looked, factors: Array) -> bool:
    """Whether rows are few enough to be repeated by their weights; fractions are refused."""
    from plackett.classifier import FEW

    if found.fraction is not None:
        number, row, weight = found.fraction
        raise ValueError(
            f"Gibbs with fixed features takes whole numbers as sample_weight (2 is two rows), got {weight:g} in row "
            f"{row} of partition {number}. Use inference='variational' or inference='em' for other weights."
        )
    if (factors != np.round(factors)).any():
        raise ValueError(
            "Gibbs with fixed features takes whole numbers as class_weight (2 is two rows), got "
            f"{factors[factors != np.round(factors)][0]:g}. Use inference='variational' or inference='em' for others."
        )
    return float((found.weight * factors).sum()) <= FEW


def prepare(
    client: Any, table: Partitions, found: Looked, features: Any, factors: Array, repeat: bool = False
) -> Prepared:
    """Fit the map, and make blocks of the partitions that have rows."""
    recipe = Recipe(None, found.classes, factors, _plain(found, factors), repeat, versions())
    filled = np.flatnonzero(found.used.sum(axis=1))
    parts = [table.parts[number] for number in filled]
    recipe = recipe._replace(features=_fitted_map(client, table, found, features, recipe, parts))
    held = made(client, "block", make_block, [(*part, recipe) for part in parts], len(parts))
    spans = held.each(span)
    low, high = np.min([each.low for each in spans], axis=0), np.max([each.high for each in spans], axis=0)
    return Prepared(held, parts, [each.n_rows for each in spans], recipe, low, high, spans[0].dtype)


def _fitted_map(
    client: Any, table: Partitions, found: Looked, features: Any, recipe: Recipe, parts: list[tuple[Any, Any, Any]]
) -> Any:
    features = clone(features)
    if not isinstance(features, ExpFeatures):
        if features.__sklearn_tags__().requires_fit:
            raise ValueError(
                f"features={features!r} would have to be fitted to all rows, and those of a Dask collection are in "
                "many places. Use features='exp', a map that learns nothing, such as FunctionTransformer, or map X "
                "before."
            )
        first = take(*_first(client, parts), recipe)
        return fit_features(features, first.X, first.codes, None)
    n = int(found.used.sum())
    if n * table.n_columns <= EXACT and features.standardize:
        come = looked(client, "columns", columns_of, [(*part, recipe._replace(repeat=False)) for part in parts])
        mean, scale = mean_and_scale(*(np.concatenate(each) for each in zip(*come, strict=True)))
    else:
        mean, scale = from_moments(found, recipe.factors)
    return features.fit_columns(Columns(n, table.names, found.low, found.high, mean, scale))


def _first(client: Any, parts: list[tuple[Any, Any, Any]]) -> tuple[Any, Any, Any]:
    """The rows of the first partition."""
    part: tuple[Any, Any, Any] = looked(client, "first", _as_they_are, parts[:1])[0]
    return part


def _as_they_are(*part: Any) -> tuple[Any, ...]:
    return part


def columns_of(X: Any, y: Any, weight: Any, recipe: Recipe) -> tuple[Array, Array]:
    """The numbers of a partition, and the weights of its rows."""
    taken = take(X, y, weight, recipe)
    return numbers_of(taken.X), np.ones(len(taken.codes)) if taken.weight is None else taken.weight


def from_moments(found: Looked, factors: Array) -> tuple[Array, Array]:
    """Mean and deviation of each column, infinite for a constant one, from sums over partitions."""
    both = reduce(Moments.__add__, (m.times(f) for m, f in zip(found.moments, factors.tolist(), strict=True)))
    return both.scale(found.low, found.high)


def _problem(clf: Any, client: Any, data: Prepared, sampled: bool) -> Problem:
    """For an inference; a sampler has rows that know their places."""
    mirrors = getattr(data.recipe.features, "mirrors_", None)
    rows = data.rows()
    if sampled:
        codes, weights = (np.concatenate(each) for each in zip(*data.held.each(coded), strict=True))
        weight = None if data.recipe.plain or data.recipe.repeat else weights
        order, _ = canonical_order(data.features, codes, weight)
        place = np.empty(len(order), dtype=smallest_kind(len(order)))
        place[order] = np.arange(len(order))
        parts = zip(data.held.blocks, np.split(place, np.cumsum(data.sizes)[:-1]), strict=True)
        data = replace(data, held=made(client, "placed", with_places, parts, len(data.sizes)))
        rows = data.rows(order)
        features = ClusterFeatures(data.held, data.sizes, len(data.low), data.dtype, order)
        ordered = None if weight is None else weight[order]
        rows.describe(lambda: features, codes[order], ordered)
        rows.digests = tuple(data.held.each(digest))
    seed, progress, seeded = clf._run_settings()
    run = seed, progress, seeded, clf._tailed()
    return Problem(rows, float(clf.rate), *run, side_by_side=True, mirrors=mirrors)
