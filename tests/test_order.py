"""Nothing that a fit leaves behind depends on how the rows came, also where only some rows are looked at."""

import numpy as np
import pytest

from plackett import Gibbs, PlackettLuceClassifier, SparseLogitClassifier
from plackett.directions import LearnedDirections

SHORT = {"draws": 8, "tune": 8, "chains": 2}
MODELS = {
    "learned": PlackettLuceClassifier(
        Gibbs(**SHORT), features=LearnedDirections(components=2, leapfrogs=4), random_state=0
    ),
    "exchange": PlackettLuceClassifier(Gibbs(**SHORT), features="exp", random_state=0),
    "plain": PlackettLuceClassifier(Gibbs(**SHORT, moves="none"), features="exp", random_state=0),
    "variational": PlackettLuceClassifier("variational", features="exp", random_state=0),
    "mode": PlackettLuceClassifier("em", shape=1.0, features="exp"),
    "logit": SparseLogitClassifier(**SHORT, random_state=0),
}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(size=(5000, 2)), rng.integers(3, size=5000)])
    return X, (X[:, 0] + X[:, 1] ** 2 + rng.normal(size=5000) > 1) + 1 * (X[:, 2] == 2)


def left_behind(clf, X):
    """Probabilities, what is read of the fit, and its diagnostics, of those that the model has."""
    found = [clf.predict_proba(X[:50])]
    if hasattr(clf, "relevance_"):
        found += [clf.relevance_, clf.readable_draw_.draw, clf.readable_draw_.share]
    diagnostics = getattr(clf, "diagnostics_", None)
    return found + ([] if diagnostics is None else [diagnostics.worst_rhat, diagnostics.smallest_ess])


@pytest.mark.parametrize("name", MODELS)
def test_five_thousand_rows_in_another_order(name, rows, quiet):
    X, y = rows
    order = np.random.default_rng(1).permutation(len(y))
    first = left_behind(MODELS[name].fit(X, y), X)
    second = left_behind(MODELS[name].fit(X[order], y[order]), X)
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)
