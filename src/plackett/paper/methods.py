"""Compared classifiers: the paper's, ours, and common alternatives. One entry each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin

from plackett.classifier import PlackettLuceClassifier
from plackett.data.labels import Labels
from plackett.features import ExpFeatures
from plackett.inference import Gibbs
from plackett.logit import SparseLogitClassifier
from plackett.race_model import FEATURES


@dataclass(frozen=True)
class Method:
    """Name for files, name for readers, and constructor of a classifier.

    `make(y, seed, **settings)` receives the training labels, and the settings of its `kind`: draws, tune and chains of
    a "sampler", trees of a "forest", none otherwise.
    """

    key: str
    label: str
    make: Callable[..., ClassifierMixin]
    kind: str = ""
    largest: int | None = None  # number of rows up to which it is affordable
    available: Callable[[], bool] = lambda: True


def gibbs(
    y: Labels,
    seed: int,
    draws: int,
    tune: int,
    chains: int,
    moves: str = "exchange",
    **settings: Any,
) -> PlackettLuceClassifier:
    """Make PL-Gibbs; further settings go to the classifier."""
    sampler = Gibbs(draws=draws, tune=tune, chains=chains, moves=moves)
    return PlackettLuceClassifier(sampler, random_state=seed, **({"features": "exp"} | settings))


def sparse_logit(y: Labels, seed: int, draws: int, tune: int, chains: int, moves: str = "all") -> SparseLogitClassifier:
    """Make the sparse logit with Holmes and Held's sampler."""
    return SparseLogitClassifier("holmes-held", draws=draws, tune=tune, chains=chains, moves=moves, random_state=seed)


def logistic(y: Labels, seed: int, l1_ratio: float) -> ClassifierMixin:
    """Make logistic regression with a penalty chosen by cross-validated log-loss."""
    from sklearn.linear_model import LogisticRegressionCV
    from sklearn.model_selection import StratifiedKFold
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    counts = np.unique(y, return_counts=True)[1]
    sparse_solver = "liblinear" if len(counts) == 2 else "saga"
    classifier = LogisticRegressionCV(
        l1_ratios=(l1_ratio,),
        solver=sparse_solver if l1_ratio else "lbfgs",
        cv=StratifiedKFold(int(np.clip(counts.min(), 2, 5)), shuffle=True, random_state=seed),
        scoring="neg_log_loss",
        max_iter=1000,
        random_state=seed,
        use_legacy_attributes=False,
    )
    return make_pipeline(StandardScaler(), classifier)


def largest_class(y: Labels, seed: int) -> ClassifierMixin:
    """Make a classifier that predicts the most frequent training class, with the training shares as probabilities."""
    from sklearn.dummy import DummyClassifier

    return DummyClassifier(strategy="prior")


def forest(y: Labels, seed: int, trees: int) -> ClassifierMixin:
    """Make a random forest with scikit-learn's defaults."""
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(trees, random_state=seed)


def gaussian_process(y: Labels, seed: int) -> ClassifierMixin:
    """Make a Gaussian process with one amplitude and one length scale, both fitted."""
    from sklearn.gaussian_process import GaussianProcessClassifier
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    kernel = ConstantKernel(4.0, (1e-2, 1e4)) * RBF(4.0, (1e-1, 1e3))
    return make_pipeline(StandardScaler(), GaussianProcessClassifier(kernel, random_state=seed))


def varied(**settings: Any) -> Callable[..., ClassifierMixin]:
    """Return a constructor of PL-Gibbs with other settings."""
    return lambda y, seed, **size: gibbs(y, seed, **size, **settings)


METHODS = {
    method.key: method
    for method in (
        Method("logit", "Sparse Logit", sparse_logit, "sampler"),
        Method("gibbs", "PL-Gibbs", gibbs, "sampler"),
        Method("variational", "PL-Var", lambda y, seed: PlackettLuceClassifier("variational", features="exp")),
        Method("em", "PL-EM", lambda y, seed: PlackettLuceClassifier("em", features="exp")),
        Method(
            "learned",
            "PL learned",
            lambda y, seed: PlackettLuceClassifier(features="learned", random_state=seed),
            available=lambda: "learned" in FEATURES,
        ),
        Method("largest", "Largest class", largest_class),
        Method("l2", "Logistic L2", lambda y, seed: logistic(y, seed, 0.0)),
        Method("l1", "Logistic L1", lambda y, seed: logistic(y, seed, 1.0)),
        Method("forest", "Random forest", forest, "forest"),
        Method("gp", "Gaussian process", gaussian_process, largest=800),
        Method("plain", "PL-Gibbs, the paper's sampler", varied(moves="none"), "sampler"),
        Method("tenth", "PL-Gibbs, a = 0.1", varied(shape=0.1), "sampler"),
        Method("one", "PL-Gibbs, a = 1", varied(shape=1.0), "sampler"),
        Method("narrow", "PL-Gibbs, exp(±x/2)", varied(features=ExpFeatures(scales=0.5)), "sampler"),
        Method("wide", "PL-Gibbs, exp(±2x)", varied(features=ExpFeatures(scales=2.0)), "sampler"),
        Method("raw", "PL-Gibbs, not standardised", varied(features=ExpFeatures(standardize=False)), "sampler"),
        Method("pairs", "PL-Gibbs, pair sums", varied(features=ExpFeatures(pair_sums=True)), "sampler"),
    )
}
TODAY = ("largest", "l2", "l1", "forest", "gp")


def chosen(*keys: str) -> list[Method]:
    """Return the named methods that exist in this version."""
    return [METHODS[key] for key in keys if METHODS[key].available()]
