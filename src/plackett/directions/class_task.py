"""Learned directions of classes: distinct rows, with standardised covariates or covariates as normal scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from plackett.data.observations import Codes, Observations
from plackett.directions.neighbours import like_new
from plackett.directions.positions import directions_and_weights
from plackett.directions.prior import Prior
from plackett.directions.settings import LearnedDirections
from plackett.directions.starts import class_start
from plackett.directions.task import Numbers, Reader, Task
from plackett.engines.base import RUN, Gradient
from plackett.engines.cupy_directions import mean_votes_on_gpu
from plackett.engines.factory import make_engine
from plackett.features.normal_scores import knots_of, normal_scores
from plackett.features.standardise import Scaling, mean_and_scale
from plackett.inference.driver import Source
from plackett.inference.folds import Folds, as_folds, grouped_folds, splits
from plackett.model.mixture import Stacked, probabilities
from plackett.model.race import Array
from plackett.model.verdict import PROBED

ENOUGH = 5_000  # rows used to find a starting point on a GPU
MANY_COLUMNS = 2500  # with more covariates than this and fewer rows, principal axes replace them


@dataclass(frozen=True)
class ClassReader(Reader):
    """Rows of classes in lexicographic order by class; equal rows are merged, with the sum of their weights.

    Results therefore do not depend on the order of the rows, and a weight of 2 equals two rows, to the last bit.

    Attributes
    ----------
    rows : (n, d) array
        Covariates of all rows before standardisation.
    """

    rows: Array

    noun, fold_tolerance, mode_tolerance, mixes_on_gpu = "rows", 1e-6, 1e-10, True
    weakest, folds_if_wide = np.inf, 5
    error_by_unit = False  # even if rows are held out by groups
    em_compares_designs, em_skips_constant_rows = False, True

    @property
    def totals(self) -> bool:
        """False: totals are not separate coordinates."""
        return False

    def candidates(self, task: Task) -> list[Task]:
        """Return designs with covariates unchanged and as normal scores; only the former if they outnumber the rows."""
        return [task] if self.rows.shape[1] > task.n_rows else [task, self.with_scores(task)]

    def with_scores(self, task: Task) -> Task:
        """Return the same rows with covariates as normal scores."""
        knots = knots_of(self.rows, task.seen.weights)
        scaling = Scaling(*mean_and_scale(normal_scores(self.rows, knots), task.seen.weights), knots)
        return replace(task, Z=scaling.of(self.rows), design=scaling)

    def deciding(self, task: Task, most: int) -> Task:
        """Return at most `most` rows, with the class shares of all."""
        if task.n_rows <= most:
            return task
        some = self.some(task, most)
        return replace(task.part(some), reader=replace(self, rows=self.rows[some]))

    def n_units(self, task: Task) -> int:
        """Number of groups, or of rows without groups."""
        return task.n_rows if task.seen.units is None else len(np.unique(task.seen.units))

    def n_predicted(self, task: Task) -> int:
        """Number of classes: one probability for each."""
        return task.seen.n_groups

    def identity(self, task: Task) -> tuple[Any, ...]:
        """Return all that the posterior depends on, besides the prior."""
        return task.Z, task.seen.codes, task.seen.weights

    def prepared(self, task: Task, dtype: npt.DTypeLike) -> Gradient:
        """Pack the rows anew at each call, so that unused precisions do not occupy memory."""
        return make_engine(task.engine).gradient(task.Z, task.seen, dtype)

    def precision(self, task: Task) -> npt.DTypeLike:
        """Return float32: rounding a row's log-likelihood at 1e-6 changes the posterior by no more than that."""
        return np.float32

    def prior(
        self, task: Task, settings: LearnedDirections, shape: float, components: int | None = None, few: bool = False
    ) -> Prior:
        """Return the prior: each class owns components, fewer if there are few rows."""
        K = task.seen.n_groups
        return settings.prior(K, task.n_columns, shape, components or settings.owned(K, few))

    def starts(self, task: Task, prior: Prior, rngs: Sequence[np.random.Generator]) -> list[Array]:
        """Return starting positions from sub-classes of each class; on a GPU, from a subset of the rows (faster)."""
        if task.on_gpu and len(task.seen) > ENOUGH:
            task = task.part(np.linspace(0, len(task.seen) - 1, ENOUGH).astype(np.intp))
        return [class_start(task.Z, task.seen, prior, rng) for rng in rngs]

    def folds(self, task: Task, n_folds: int) -> Folds:
        """Return folds with equal shares of each class."""
        return as_folds(grouped_folds(task.Z, task.seen.class_codes, task.seen.units, n_folds))

    def splits(self, task: Task, cv: object) -> Folds:
        """Return this number of folds, or the folds of a splitter; groups are ignored."""
        return splits(cv, lambda: task.Z, task.Z, task.seen.class_codes)

    def training(self, task: Task, train: Any) -> tuple[Task, Numbers | None]:
        """Return the training part with classes renumbered: EM gives no weights to a class without rows."""
        part, present = task.part(train), self.present(task, train)
        codes = np.searchsorted(present, part.seen.class_codes)
        return replace(part, seen=replace(part.seen, codes=codes, n_groups=len(present))), present

    def present(self, task: Task, train: Any) -> Numbers:
        """Classes that have rows in the training part."""
        return np.unique(task.seen.class_codes[train])

    def predicted(self, task: Task, positions: Array, prior: Prior, some: Numbers) -> Array:
        """Return class probabilities (n, K)."""
        Z = task.Z[some]
        if task.on_gpu:
            return mean_votes_on_gpu(Z, *directions_and_weights(positions, prior, task.n_columns)[:2])
        draws = task.unpacked(positions[None], prior)
        runs = (Z[start : start + RUN] for start in range(0, len(Z), RUN))
        return np.concatenate([probabilities(draws, run).mean(axis=(0, 1)) for run in runs])

    def observed(self, task: Task) -> Numbers | None:
        """Return the class of each row."""
        return task.seen.class_codes

    def probed(self, task: Task, draws: Stacked, most: int) -> Array:
        """Return class probabilities of rows that resemble new ones."""
        n_rows = max(most // task.seen.n_groups, PROBED)
        return probabilities(draws, like_new(task.Z, n_rows, task.seen.units))


def make_class_task(
    X: Array,
    codes: Codes,
    weight: Array | None,
    source: Source,
    groups: Codes | None = None,
    engine: str = "auto",
) -> Task:
    """Merge equal rows (of one group) and standardise."""
    rows, labels, merged, kept = merge(X, codes, weight, groups)
    scaling = Scaling(*mean_and_scale(rows, merged))
    Z = scaling.of(rows)
    if Z.shape[1] > max(len(Z), MANY_COLUMNS):
        rotation = principal_axes(Z)
        scaling, Z = scaling._replace(rotation=rotation), Z @ rotation
    seen = Observations.of_classes(labels, int(labels.max()) + 1, merged, kept)
    return Task(seen, Z, ClassReader(rows), source, engine, design=scaling)


def training_rows(task: Task) -> tuple[Array, Array]:
    """Return covariates of classes before standardisation, and their weights."""
    assert isinstance(task.reader, ClassReader)
    return task.reader.rows, task.seen.weights


def merge(
    X: Array, codes: Codes, weight: Array | None, groups: Codes | None = None
) -> tuple[Array, Codes, Array, Codes | None]:
    """Return distinct rows, classes and groups in lexicographic order, and the weight of each."""
    counted = np.ones(len(X)) if weight is None else weight
    order = np.lexsort((X[:, 0], codes))
    first, second = codes[order], X[order, 0]
    if not ((first[1:] == first[:-1]) & (second[1:] == second[:-1])).any():  # no rows are equal
        labels, rows = first.astype(np.intp), X[order].astype(np.float64, copy=False)
        return rows, labels, counted[order].astype(np.float64), None if groups is None else groups[order]
    grouped: Array = np.zeros(len(X)) if groups is None else groups.astype(np.float64)
    found, place = distinct(np.column_stack([codes, X, grouped]))
    order = np.lexsort((counted, place))  # fractional weights are added in sorted order
    merged: Array = np.bincount(place[order], weights=counted[order]).astype(np.float64)
    kept = None if groups is None else found[:, -1].astype(np.intp)
    return found[:, 1:-1].astype(np.float64), found[:, 0].astype(np.intp), merged, kept


def distinct(table: Array) -> tuple[Array, Codes]:
    """Return the distinct rows in lexicographic order, and the index of each row among them: a fast `numpy.unique`."""
    order = np.lexsort(table.T[::-1])
    ordered = table[order]
    new = np.append(True, (ordered[1:] != ordered[:-1]).any(axis=1))
    place = np.empty(len(table), dtype=np.intp)
    place[order] = np.cumsum(new) - 1
    return ordered[new], place


def principal_axes(Z: Array) -> Array:
    """Return orthogonal columns (d, r) that span the rows, scaled so that z has a mean variance of 1.

    The likelihood depends on β through Zβ alone, and the prior of equal scales is the same on all axes, so that this
    changes nothing.
    """
    _, size, axes = np.linalg.svd(Z, full_matrices=False)
    if not size.any():  # identical rows: any axis is valid
        return np.eye(Z.shape[1], 1)
    kept = size > 1e-10 * size.max()
    length = np.sqrt(len(Z) * kept.sum() / (size**2).sum())
    rotation: Array = axes[kept].T * length
    return rotation
