"""Choosing the shape a for EM by cross-validated log-loss along a warm-started path (section 3.5)."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.model_selection import check_cv
from sklearn.utils import _safe_indexing

from plackett.engines import Engine
from plackett.features import check_features
from plackett.inference.em import EM
from plackett.model.race import Array
from plackett.posterior import mean_probabilities


def fit_features(features: Any, X: Any, y: Any, sample_weight: Array | None) -> Any:
    """Fit a feature map, handing on the weights of the rows where it takes them."""
    from sklearn.utils.validation import has_fit_parameter

    if sample_weight is not None and has_fit_parameter(features, "sample_weight"):
        return features.fit(X, y, sample_weight=sample_weight)
    return features.fit(X, y)


def feature_names(features: Any) -> Any:
    """Names of a fitted map's output, or None where it has none."""
    try:
        return features.get_feature_names_out()
    except (AttributeError, ValueError):
        return None


def transform(features: Any, X: Any) -> npt.NDArray[np.floating]:
    """Checked features of new rows."""
    return check_features(features.transform(X), feature_names(features))


def cross_validated_losses(
    em: EM, features: Any, X: Any, codes: npt.NDArray[np.intp], sample_weight: Array | None, engine: Engine
) -> tuple[Array, Array]:
    """The shapes of the path, decreasing, and the log-loss of each over all held-out rows."""
    shapes = np.array(sorted((float(a) for a in em.shapes), reverse=True))
    if not len(shapes) or not np.all((shapes > 0) & np.isfinite(shapes)):
        raise ValueError(f"EM(shapes) must be positive numbers, got {em.shapes!r} instead.")
    counts = np.bincount(codes)
    cv = em.cv
    if isinstance(cv, (int, np.integer)):
        cv = int(min(cv, max(2, counts[counts > 0].min())))
        if counts.max() < cv:
            raise ValueError(
                f"shape='learn' with EM cross-validates, and {len(codes)} rows with at most {counts.max()} in a class "
                "are too few for that. Give a number, for example shape=1."
            )
    splitter = check_cv(cv, codes, classifier=True)
    loss, weight = np.zeros(len(shapes)), 0.0
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
        folds = list(splitter.split(X, codes))
    for train, test in folds:
        w_train = None if sample_weight is None else sample_weight[train]
        w_test = np.ones(len(test)) if sample_weight is None else sample_weight[test]
        X_train = _safe_indexing(X, train)
        fold_features = fit_features(clone(features), X_train, codes[train], w_train)
        present, fold_codes = np.unique(codes[train], return_inverse=True)
        if len(present) < 2:
            continue
        rows = engine.prepare(transform(fold_features, X_train), fold_codes, w_train, len(present))
        W_test = transform(fold_features, _safe_indexing(X, test))
        for s, climb in enumerate(em.path(rows, shapes.tolist())):
            probability = np.zeros((len(test), len(counts)))
            probability[:, present] = mean_probabilities(W_test, np.exp(climb.log_weights)[None])
            own = np.clip(probability[np.arange(len(test)), codes[test]], 1e-15, 1.0)
            loss[s] -= w_test @ np.log(own)
        weight += w_test.sum()
    if weight == 0:
        raise ValueError("no fold of EM(cv) has two classes to train on; give a number for shape, for example shape=1.")
    return shapes, loss / weight
