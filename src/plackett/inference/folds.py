"""Folds of rows and situations, and the shape a of EM chosen by held-out log-loss along a path (section 3.5)."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import PredefinedSplit, StratifiedGroupKFold, check_cv

from plackett.data.validation import is_whole
from plackett.engines.base import Features, Rows, canonical_order
from plackett.inference.em import EM
from plackett.model.draws import mixed
from plackett.model.race import Array, Weights
from plackett.output.progress import tracked
from plackett.output.scores import log_losses
from plackett.posterior.weights import mean_probabilities

Folds = list[tuple[Any, npt.NDArray[np.intp]]]  # training rows (usually row numbers) and test rows


class Fold(NamedTuple):
    """Training rows, and the log-losses of the held-out data."""

    rows: Rows
    losses: Callable[[Sequence[Array]], Iterable[tuple[Array, float]]]  # ln λ of each shape → sums and their weights
    others: Rows | None = None  # held-out situations, if the response may have parameters


MakeFold = Callable[[npt.NDArray[np.intp], npt.NDArray[np.intp]], Fold | None]  # None with fewer than two classes


def stratified_folds(W: Features, codes: npt.NDArray[np.intp], n_folds: int) -> npt.NDArray[np.intp]:
    """Return the fold of each row: within each class, distinct rows in canonical order are assigned in turn.

    Equal rows share a fold, so that nothing leaks between folds and a weight of 2 is equivalent to two rows.
    """
    order, key = canonical_order(W, codes)
    key, codes = key[order], codes[order]
    distinct = np.append(True, (np.diff(codes) != 0) | (np.diff(key) > 1e-9 * np.abs(key[1:])))
    fold = np.empty(len(order), dtype=np.intp)
    fold[order] = (np.cumsum(distinct) - 1) % n_folds
    if n_folds < 2 or len(np.unique(fold)) < 2:
        raise ValueError(
            f"shape='learn' with EM cross-validates, and needs two folds of distinct rows or more: EM(cv={n_folds}), "
            f"{distinct.sum()} distinct rows. Give a number, for example shape=1."
        )
    return fold


def grouped_folds(
    W: Features, codes: npt.NDArray[np.intp], groups: npt.NDArray[np.intp] | None, n_folds: int
) -> npt.NDArray[np.intp]:
    """Return the fold of each row, balanced by class; rows of one group share a fold."""
    if groups is None:
        return stratified_folds(W, codes, n_folds)
    fold = np.zeros(len(codes), dtype=np.intp)
    n_folds = min(n_folds, len(np.unique(groups)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about classes with fewer rows than folds
        for f, (_, left) in enumerate(StratifiedGroupKFold(n_folds).split(fold, codes, groups)):
            fold[left] = f
    return fold


def as_folds(fold: npt.NDArray[np.intp]) -> Folds:
    """Return training and test rows from the fold of each row."""
    return [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(fold.max() + 1)]


def splits(cv: object, features: Callable[[], Features], X: object, codes: npt.NDArray[np.intp]) -> Folds:
    """Return training and test rows from a number of folds of distinct features, or from a scikit-learn splitter."""
    if is_whole(cv):
        splitter = PredefinedSplit(stratified_folds(features(), codes, int(cv)))
    else:
        splitter = check_cv(cv, codes, classifier=True)
    return list(splitter.split(X, codes))


def situation_splits(cv: Any, order: npt.NDArray[np.intp], units: npt.NDArray[np.intp] | None) -> Folds:
    """Return training and test situations; `order` is canonical, so that the input order has no effect.

    Situations of one unit are held out together.
    """
    n = len(order)
    if not is_whole(cv):
        return list(check_cv(cv).split(np.zeros(n), groups=units))
    unit = np.empty(n, dtype=np.intp)
    unit[order] = np.arange(n)
    if units is not None:
        turn = np.argsort(np.argsort(mixed(np.arange(units.max() + 1, dtype=np.uint64))))
        unit = turn[units]
    if min(int(cv), unit.max() + 1) < 2:
        raise ValueError(
            f"shape='learn' with EM cross-validates, and needs two folds or more: EM(cv={cv}), {unit.max() + 1} units "
            "to divide. Give a number, for example shape=1."
        )
    fold = unit % int(cv)
    return [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in np.unique(fold)]


def path_of(em: EM) -> Array:
    """Return the shapes to try, in decreasing order."""
    shapes = np.array(sorted((float(a) for a in em.shapes), reverse=True))
    if not len(shapes) or not np.all((shapes > 0) & np.isfinite(shapes)):
        raise ValueError(f"EM(shapes) must be positive numbers, got {em.shapes!r} instead.")
    return shapes


def fold_losses(
    W: Features,
    codes: npt.NDArray[np.intp],
    counts: Array,
    present: npt.NDArray[np.intp],
    n_classes: int,
    log_weights: Sequence[Array],
) -> Array:
    """Weighted log-losses (S,) of held-out rows under S arrays ln λ (K, p) of the classes present."""
    loss = np.zeros(len(log_weights))
    for s, each in enumerate(log_weights):
        probability = np.zeros((len(codes), n_classes))
        probability[:, present] = mean_probabilities(W, np.exp(each)[None])
        loss[s] = counts @ log_losses(probability, codes)
    return loss


def situation_fold(rows: Rows, others: Rows) -> Fold:
    """Return training situations, and −ln Pr of all held-out outcomes."""

    def losses(log_weights: Sequence[Array]) -> list[tuple[Array, float]]:
        return [(-np.array([others.value(Weights.point(each)) for each in log_weights]), others.n_seen)]

    return Fold(rows, losses, others)


def held_out_shape(
    em: EM, shapes: Array, folds: Folds, make: MakeFold, rate: float, progress: bool
) -> tuple[float, dict[float, float]]:
    """Return the shape with the lowest held-out log-loss and the mean log-loss of each shape, for data anywhere.

    The rows of a fold are released before the next fold is made.
    """
    loss, weight = np.zeros(len(shapes)), 0.0
    for train, test in tracked(folds, progress, "EM, cross-validation"):
        for part_loss, part_weight in losses_of_fold(em, shapes, make(train, test), rate):
            loss, weight = loss + part_loss, weight + part_weight
        gc.collect()  # a climb and its ascent form a reference cycle that holds the rows
    if weight == 0:
        raise ValueError("no fold of EM(cv) has two classes to train on; give a number for shape, for example shape=1.")
    loss /= weight
    return float(shapes[np.argmin(loss)]), dict(zip(shapes.tolist(), loss.tolist(), strict=True))


def losses_of_fold(em: EM, shapes: Array, fold: Fold | None, rate: float) -> list[tuple[Array, float]]:
    """Log-losses of each shape, summed over held-out parts, and the weight of each part."""
    if fold is None:
        return []
    climbs = em.path(fold.rows, shapes.tolist(), rate=rate if fold.rows.absolute else 1.0)
    if fold.rows.parameters and fold.others is not None:
        there = [(fold.others.at(climb.rows.values_of_parameters), climb.log_weights) for climb in climbs]
        return [(-np.array([rows.value(Weights.point(each)) for rows, each in there]), fold.others.n_seen)]
    return list(fold.losses([climb.log_weights for climb in climbs]))
