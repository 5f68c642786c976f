"""Folds of rows, and the shape a of EM chosen by held-out log-loss along a warm-started path (section 3.5)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.model_selection import PredefinedSplit, StratifiedGroupKFold, check_cv

from plackett.data.observations import Observations
from plackett.data.rows import take_rows
from plackett.engines.base import Engine, Features, Rows, canonical_order
from plackett.features.mapped import fit_features, nonempty_rows, transform
from plackett.inference.em import EM
from plackett.model.race import Array
from plackett.output.progress import tracked
from plackett.output.scores import log_losses
from plackett.posterior.weights import mean_probabilities

Folds = list[tuple[Any, npt.NDArray[np.intp]]]  # what to train on, most often rows by number, and rows to test on
Fold = tuple[Rows, Callable[[Array], Iterable[tuple[Array, float]]]]  # training rows; losses and weights of others
MakeFold = Callable[[npt.NDArray[np.intp], npt.NDArray[np.intp]], Fold | None]  # None with fewer than two classes


def stratified_folds(W: Features, codes: npt.NDArray[np.intp], n_folds: int) -> npt.NDArray[np.intp]:
    """The fold of each row: within each class, distinct rows in canonical order are dealt out in turn.

    Equal rows share a fold, so that nothing leaks between folds and a weight of 2 means the same as two rows.
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
    """The fold of each row, with as many of each class in all; rows of one group are in one fold."""
    if groups is None:
        return stratified_folds(W, codes, n_folds)
    fold = np.zeros(len(codes), dtype=np.intp)
    n_folds = min(n_folds, len(np.unique(groups)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of classes with fewer rows than folds
        for f, (_, left) in enumerate(StratifiedGroupKFold(n_folds).split(fold, codes, groups)):
            fold[left] = f
    return fold


def as_folds(fold: npt.NDArray[np.intp]) -> Folds:
    """Rows to train on and to test on, from the fold of each row."""
    return [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(fold.max() + 1)]


def splits(cv: object, features: Callable[[], Features], X: object, codes: npt.NDArray[np.intp]) -> Folds:
    """Rows to train on and to test on: so many folds of distinct features, or what a splitter of scikit-learn says."""
    if isinstance(cv, (int, np.integer)):
        splitter = PredefinedSplit(stratified_folds(features(), codes, int(cv)))
    else:
        splitter = check_cv(cv, codes, classifier=True)
    return list(splitter.split(X, codes))


def path_of(em: EM) -> Array:
    """The shapes that are tried, in decreasing order."""
    shapes = np.array(sorted((float(a) for a in em.shapes), reverse=True))
    if not len(shapes) or not np.all((shapes > 0) & np.isfinite(shapes)):
        raise ValueError(f"EM(shapes) must be positive numbers, got {em.shapes!r} instead.")
    return shapes


def cross_validated_losses(
    em: EM,
    features: object,
    X: object,
    codes: npt.NDArray[np.intp],
    sample_weight: Array | None,
    engine: Engine,
    progress: bool = False,
) -> tuple[Array, Array]:
    """The shapes of the path, decreasing, and the log-loss of each over all held-out rows of a table in memory."""

    def mapped() -> Features:
        return transform(fit_features(clone(features), X, codes, sample_weight), X)

    n_classes = codes.max() + 1

    def make(train: npt.NDArray[np.intp], test: npt.NDArray[np.intp]) -> Fold | None:
        w_test = np.ones(len(test)) if sample_weight is None else sample_weight[test]
        X_train = take_rows(X, train)
        w_train = None if sample_weight is None else sample_weight[train]
        fold_features = fit_features(clone(features), X_train, codes[train], w_train)
        W_train, some = nonempty_rows(fold_features, X_train)
        w_train = None if w_train is None else w_train[some]
        present, fold_codes = np.unique(codes[train][some], return_inverse=True)
        if len(present) < 2:
            return None
        W_test = transform(fold_features, X, test, empty=True)

        def score(weights: Array) -> list[tuple[Array, float]]:
            return [(fold_losses(W_test, codes[test], w_test, present, n_classes, weights), w_test.sum())]

        return engine.rows(W_train, Observations.of_classes(fold_codes, len(present), w_train)), score

    return held_out_losses(em, splits(em.cv, mapped, X, codes), make, progress)


def fold_losses(
    W: Features,
    codes: npt.NDArray[np.intp],
    counts: Array,
    present: npt.NDArray[np.intp],
    n_classes: int,
    weights: Array,
) -> Array:
    """Weighted log-losses (S,) of held-out rows under weights (S, K, p) of the classes that are present in training."""
    loss = np.zeros(len(weights))
    for s, each in enumerate(weights):
        probability = np.zeros((len(codes), n_classes))
        probability[:, present] = mean_probabilities(W, each[None])
        loss[s] = counts @ log_losses(probability, codes)
    return loss


def held_out_losses(em: EM, folds: Folds, make: MakeFold, progress: bool) -> tuple[Array, Array]:
    """The shapes of the path, decreasing, and the log-loss of each over all held-out rows, wherever these lie."""
    shapes = path_of(em)
    loss, weight = np.zeros(len(shapes)), 0.0
    for train, test in tracked(folds, progress, "EM, cross-validation"):
        fold = make(train, test)
        if fold is None:
            continue
        rows, score = fold
        climbs = em.path(rows, shapes.tolist())
        for part_loss, part_weight in score(np.array([np.exp(climb.log_weights) for climb in climbs])):
            loss, weight = loss + part_loss, weight + part_weight
    if weight == 0:
        raise ValueError("no fold of EM(cv) has two classes to train on; give a number for shape, for example shape=1.")
    return shapes, loss / weight
