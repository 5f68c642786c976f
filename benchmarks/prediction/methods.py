"""Our classifiers and their rivals: a name and how to make one from the folds for tuning and a seed.

Every rival is tuned by log-loss on those folds; ours choose what they need by themselves, from the training part.
"""

import itertools

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.prediction.scores import log_loss
from plackett import PlackettLuceClassifier


def minus_log_loss(fitted, X, y):
    """A score for tuning that, unlike scikit-learn's, allows a fold without a rare class."""
    return -log_loss(fitted.predict_proba(X), np.searchsorted(fitted.classes_, y))


def logistic(folds, seed, **settings):
    common = dict(cv=folds, scoring=minus_log_loss, use_legacy_attributes=False, random_state=seed)
    return make_pipeline(StandardScaler(), LogisticRegressionCV(**common, **settings))


def logistic_l2(folds, seed):
    return logistic(folds, seed, l1_ratios=(0.0,), Cs=np.logspace(-4, 2, 13), max_iter=2000)


def logistic_l1(folds, seed):
    return logistic(folds, seed, l1_ratios=(1.0,), Cs=np.logspace(-2, 2, 9), solver="saga", tol=1e-3, max_iter=500)


class Forest(RandomForestClassifier):
    """A random forest with one more tree that gives every class the same probability: no vote is exactly zero."""

    def predict_proba(self, X):
        trees = len(self.estimators_)
        return (trees * super().predict_proba(X) + 1 / self.n_classes_) / (trees + 1)


class TunedForest(ClassifierMixin, BaseEstimator):
    """Leaf size and share of covariates chosen on the folds with 100 trees; then 300 trees."""

    def __init__(self, folds, seed):
        self.folds, self.seed = folds, seed

    def fit(self, X, y):
        grid = {"min_samples_leaf": (1, 5), "max_features": ("sqrt", 0.5)}
        forest = Forest(100, random_state=self.seed)
        search = GridSearchCV(forest, grid, cv=self.folds, scoring=minus_log_loss, refit=False).fit(X, y)
        self.best_params_ = search.best_params_
        self.forest_ = Forest(300, random_state=self.seed, **self.best_params_).fit(X, y)
        self.classes_ = self.forest_.classes_
        return self

    def predict_proba(self, X):
        return self.forest_.predict_proba(X)


class StoppedBoosting(ClassifierMixin, BaseEstimator):
    """Histogram boosting; size of trees and leaves by the folds' log-loss, each fit stopped early on its fold.

    The number of trees is the best for the folds together, and the last fit uses all rows.
    """

    def __init__(self, folds, seed):
        self.folds, self.seed = folds, seed

    def fit(self, X, y):
        grid = itertools.product((2, 5, 31), (3, 20))
        _, self.best_params_ = min((self._cross_validate(X, y, *sizes) for sizes in grid), key=lambda found: found[0])
        self.boosting_ = self._make(early_stopping=False, **self.best_params_).fit(X, y)
        self.classes_ = self.boosting_.classes_
        return self

    def predict_proba(self, X):
        return self.boosting_.predict_proba(X)

    def _make(self, **settings):
        return HistGradientBoostingClassifier(learning_rate=0.1, random_state=self.seed, **settings)

    def _cross_validate(self, X, y, max_leaf_nodes, min_samples_leaf):
        """The lowest mean log-loss of the folds over the number of trees, as far as no fold has stopped."""
        sizes = {"max_leaf_nodes": max_leaf_nodes, "min_samples_leaf": min_samples_leaf}
        curves = []
        for train, test in self.folds:
            fit = self._make(max_iter=500, early_stopping=True, n_iter_no_change=15, **sizes)
            curves.append(-fit.fit(X[train], y[train], X_val=X[test], y_val=y[test]).validation_score_)
        shortest = min(map(len, curves))
        mean = np.mean([curve[:shortest] for curve in curves], axis=0)
        return mean.min(), {**sizes, "max_iter": max(1, int(mean.argmin()))}


def mlp(folds, seed):
    """One hidden layer; size and weight decay by the folds. L-BFGS, which suits these sizes better than Adam."""
    net = make_pipeline(StandardScaler(), MLPClassifier(solver="lbfgs", max_iter=200, random_state=seed))
    grid = {"mlpclassifier__hidden_layer_sizes": [(10,), (50,)], "mlpclassifier__alpha": (0.1, 1.0, 10.0, 100.0)}
    return GridSearchCV(net, grid, cv=folds, scoring=minus_log_loss)


class CatBoost(ClassifierMixin, BaseEstimator):
    """CatBoost as it comes: its own number of trees, their depth and its learning rate."""

    def __init__(self, folds, seed):
        self.folds, self.seed = folds, seed

    def fit(self, X, y):
        self.boosting_ = make_catboost(self.seed).fit(X, y)
        self.classes_ = self.boosting_.classes_
        return self

    def predict_proba(self, X):
        return self.boosting_.predict_proba(X)


class TunedCatBoost(CatBoost):
    """CatBoost with the depth and the number of trees that the folds' log-loss prefers; the last fit uses all rows."""

    def fit(self, X, y):
        found = []
        for depth in (2, 4, 6):
            curves = [self._curve(depth, X, y, *fold) for fold in self.folds]
            mean = np.mean([curve[: min(map(len, curves))] for curve in curves], axis=0)
            found.append((mean.min(), {"depth": depth, "iterations": int(mean.argmin()) + 1}))
        self.best_params_ = min(found, key=lambda each: each[0])[1]
        self.boosting_ = make_catboost(self.seed, **self.best_params_).fit(X, y)
        self.classes_ = self.boosting_.classes_
        return self

    def _curve(self, depth, X, y, train, test):
        """The fold's log-loss by number of trees, until forty have brought nothing."""
        known = np.isin(y[test], y[train])
        fit = make_catboost(self.seed, depth=depth)
        fit.fit(X[train], y[train], eval_set=(X[test][known], y[test][known]), early_stopping_rounds=40)
        losses = fit.get_evals_result()["validation"]
        return losses.get("MultiClass", losses.get("Logloss"))


def make_catboost(seed, **settings):
    from catboost import CatBoostClassifier

    return CatBoostClassifier(random_seed=seed, thread_count=1, verbose=False, allow_writing_files=False, **settings)


class ScaledGaussianProcess(ClassifierMixin, BaseEstimator):
    """Laplace approximation, one class against the rest; amplitude and width by the marginal likelihood."""

    def __init__(self, folds, seed):
        self.folds, self.seed = folds, seed

    def fit(self, X, y):
        kernel = ConstantKernel(1.0, (1e-2, 1e4)) * RBF(np.sqrt(X.shape[1]), (1e-1, 1e4))
        process = GaussianProcessClassifier(kernel, random_state=self.seed)
        self.process_ = make_pipeline(StandardScaler(), process).fit(X, y)
        self.classes_ = self.process_.classes_
        return self

    def predict_proba(self, X):
        return self.process_.predict_proba(X)


RIVALS = {
    "logistic-l2": logistic_l2,
    "logistic-l1": logistic_l1,
    "forest": TunedForest,
    "boosting": StoppedBoosting,
    "catboost": CatBoost,
    "catboost-tuned": TunedCatBoost,
    "mlp": mlp,
    "gaussian-process": ScaledGaussianProcess,
}
OURS = {
    "learned": lambda folds, seed: PlackettLuceClassifier(features="learned", random_state=seed),
    "learned-em": lambda folds, seed: PlackettLuceClassifier(inference="em", features="learned", random_state=seed),
    "exp": lambda folds, seed: PlackettLuceClassifier(inference="variational", features="exp", random_state=seed),
}
METHODS = {**OURS, **RIVALS}
LARGEST = {"gaussian-process": 600}  # rows for training: the cost grows with their cube
WIDEST = {"catboost-tuned": 1000}  # columns: a thousand trees for each depth and fold take minutes
