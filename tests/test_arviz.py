"""The adapter, with whichever ArviZ is installed: 0.x gives InferenceData, 1.x a DataTree."""

import os
import pickle
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
        return clf, X, y, clf.to_arviz(X, np.array(["a", "b", "c"])[y])


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
    alone = str(clf.to_arviz())
    assert "posterior" in alone and "log_likelihood" not in alone and "observed_data" not in alone
    with pytest.raises(ValueError, match="gibbs"):
        PlackettLuceClassifier("em", shape=1, features="exp").fit(X, y).to_arviz()


def test_rows_may_be_others_than_those_of_the_fit(fitted):
    clf, X, y, whole = fitted
    data = clf.to_arviz(X[[120, 3]], ["c", "a"])
    np.testing.assert_allclose(data["log_likelihood"]["y"].values, whole["log_likelihood"]["y"].values[..., [120, 3]])
    assert list(data["observed_data"]["y"].values) == ["c", "a"]
    expected = np.exp(data["log_likelihood"]["y"].values).mean(axis=(0, 1))
    np.testing.assert_allclose(clf.predict_proba(X[[120, 3]])[[0, 1], [2, 0]], expected, rtol=1e-10)


def test_rows_that_cannot_be_used_are_refused(fitted, monkeypatch):
    clf, X, y, _ = fitted
    with pytest.raises(ValueError, match="together.*or neither"):
        clf.to_arviz(X)
    with pytest.raises(ValueError, match="does not know the class 'd'"):
        clf.to_arviz(X[:2], ["a", "d"])
    with pytest.raises(ValueError, match="inconsistent numbers"):
        clf.to_arviz(X, ["a"])
    monkeypatch.setattr("plackett.output.arviz.MOST", 800 * 100)
    with pytest.raises(ValueError, match="150 rows under 800 draws takes .* GiB. Give 100 rows or fewer"):
        clf.to_arviz(X, np.array(["a", "b", "c"])[y])


def test_a_fitted_model_holds_no_rows(fitted):
    clf, X, _, _ = fitted
    assert X.tobytes()[:1000] not in pickle.dumps(clf)
    assert not [name for name in vars(clf) if name.startswith("_")]


def test_nothing_is_said_on_the_first_day_where_warnings_are_errors(fitted, tmp_path):
    """ArviZ 0.23 announces its refactoring once a day, by a stamp in the home folder."""
    fitted[0].save(tmp_path / "m.plk")
    code = """
import matplotlib
matplotlib.use("Agg")
from plackett import load, plots
clf = load("m.plk")
clf.to_arviz(), plots.trace(clf), plots.rank(clf)
"""
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}
    said = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert said.returncode == 0, said.stderr
    assert "refactor" not in said.stderr
