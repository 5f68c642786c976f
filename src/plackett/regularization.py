"""Regularisation paths: the weights as a function of the shape a (section 4.1, Figure 2)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import Bunch

from plackett.classifier import PlackettLuceClassifier
from plackett.cluster.client import cluster_for
from plackett.compute.blas import one_blas_thread
from plackett.data.observations import Observations
from plackett.data.validation import plain, row_weights
from plackett.engines.factory import make_engine
from plackett.model.race import Array

STATISTICS = ("mode", "mean", "median")


def regularization_path(
    X: Any,
    y: Any,
    shapes: Sequence[float] = tuple(np.geomspace(2, 0.05, 20).round(6).tolist()),
    inference: Any = "em",
    statistic: str | None = None,
    **settings: Any,
) -> Bunch:
    """Weights at decreasing values of the shape a.

    Parameters
    ----------
    X, y : arrays
        The data.
    shapes : sequence of float
        Values of a, used in decreasing order.
    inference : {"em", "variational", "gibbs"} or EM, Variational or Gibbs
        Inference at each point of the path; EM is warm-started along it.
    statistic : {"mode", "mean", "median"}, optional
        Summary of each weight. EM has the mode only; the default of the others is "mean".
    **settings
        Further parameters of `PlackettLuceClassifier`; features default to `"exp"`.

    Returns
    -------
    Bunch
        ``shapes`` (S,), ``weights`` (S, K, p), ``classes`` (K,), ``feature_names`` (p,), ``statistic``.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from plackett import regularization_path
    >>> path = regularization_path(*load_iris(return_X_y=True), shapes=[1, 0.5, 0.1])
    >>> active = (path.weights > 0).sum(axis=(1, 2))
    >>> bool(active[0] >= active[1] >= active[2] >= 3)
    True
    """
    if "shape" in settings:
        raise ValueError(f"a path has many shapes: give shapes=[...], got shape={settings['shape']!r} instead.")
    clf = PlackettLuceClassifier(inference=inference, **({"features": "exp"} | settings))
    if clf._learned():
        raise ValueError("a path follows the weights of fixed features; learned directions change with the shape.")
    used = clf._make_inference()
    em = used.maximises
    statistic = statistic or ("mode" if em else "mean")
    if statistic not in STATISTICS or em != (statistic == "mode"):
        allowed = "'mode'" if em else "'mean' or 'median'"
        raise ValueError(f"statistic must be {allowed} with inference={inference!r}, got {statistic!r} instead.")
    order = sorted((float(a) for a in shapes), reverse=True)
    if not order or not order[-1] > 0:
        raise ValueError(f"shapes must be positive numbers, got {plain(shapes)} instead.")
    clf.set_params(shape=order[0]).fit(X, y)
    if used.maximises:
        features, codes = clf._observed(X, y)
        weight = row_weights(None, codes, clf.classes_, clf.class_weight)
        with one_blas_thread(), cluster_for(clf.engine):
            seen = Observations.of_classes(codes, len(clf.classes_), weight)
            rows = make_engine(clf.engine).rows(features, seen)
            found = [np.exp(climb.log_weights) for climb in used.path(rows, order, coarse=0.0)]
    else:
        found = [_summary(clone(clf).set_params(shape=a).fit(X, y), statistic) for a in order]
    return Bunch(
        shapes=np.array(order),
        weights=np.stack(found),
        classes=clf.classes_,
        feature_names=clf._feature_names(),
        statistic=statistic,
    )


def _summary(clf: PlackettLuceClassifier, statistic: str) -> Array:
    if statistic == "mean":
        return clf.weights_
    return clf.posterior_.estimates(clf).centre
