"""The adapter, with whichever ArviZ is installed: 0.x gives InferenceData, 1.x a DataTree."""

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_iris

from plackett import Gibbs, PlackettLuceClassifier


@pytest.fixture(scope="module")
def fitted():
    X, y = load_iris(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = PlackettLuceClassifier(Gibbs(draws=200, tune=200), random_state=0, features="exp").fit(
            X, np.array(["a", "b", "c"])[y]
        )
        return clf, X, y, clf.to_arviz()


def test_groups_dimensions_and_values(fitted):
    clf, X, y, data = fitted
    log_weight = data["posterior"]["log_weight"]
    assert log_weight.dims == ("chain", "draw", "class", "feature")
    assert list(log_weight.coords["class"].values) == ["a", "b", "c"]
    assert list(log_weight.coords["feature"].values) == list(clf.features_.get_feature_names_out())
    np.testing.assert_array_equal(log_weight.values, clf.posterior_.log_weights)
    np.testing.assert_array_equal(data["posterior"]["shape"].values, clf.posterior_.shape)
    pointwise = data["log_likelihood"]["y"].values
    assert pointwise.shape == (4, 200, 150)
    np.testing.assert_allclose(pointwise.sum(axis=2), clf.trace_, rtol=1e-8)
    np.testing.assert_array_equal(data["sample_stats"]["lp"].values, clf.trace_)


def test_arviz_can_use_it(fitted):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import arviz

        summary = arviz.summary(fitted[3], var_names=["shape"])
        assert "r_hat" in summary.columns
        assert np.isfinite(
            arviz.loo(fitted[3]).elpd if hasattr(arviz.loo(fitted[3]), "elpd") else arviz.loo(fitted[3]).elpd_loo
        )


def test_without_likelihood_and_without_draws(fitted):
    clf, X, y, _ = fitted
    assert "log_likelihood" not in str(clf.to_arviz(log_likelihood=False))
    with pytest.raises(ValueError, match="gibbs"):
        PlackettLuceClassifier("em", shape=1, features="exp").fit(X, y).to_arviz()


def test_nothing_is_said_on_the_first_day_where_warnings_are_errors(fitted, tmp_path):
    """ArviZ 0.23 announces its refactoring once a day, by a stamp in the home folder."""
    fitted[0].save(tmp_path / "m.plk")
    code = """
import matplotlib
matplotlib.use("Agg")
from plackett import load, plots
clf = load("m.plk")
clf.to_arviz(log_likelihood=False), plots.trace(clf), plots.rank(clf)
"""
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    said = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert said.returncode == 0, said.stderr
    assert "refactor" not in said.stderr
