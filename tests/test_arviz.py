"""The adapter, with whichever ArviZ is installed: 0.x gives InferenceData, 1.x a DataTree."""

import os
import pickle
import subprocess
import sys
import warnings
from copy import deepcopy

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics import log_loss

from plackett import Gibbs, PlackettLuceClassifier
from plackett.output.arviz import arviz_1
from plackett.posterior.directions import DirectionDraws

NAMES = np.array(["a", "b", "c"])


@pytest.fixture(scope="module")
def fitted():
    X, y = load_iris(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = PlackettLuceClassifier(Gibbs(draws=200, tune=200), random_state=0, features="exp")
        clf = model.fit(X, NAMES[y])
        return clf, X, y, clf.to_arviz(X, NAMES[y])


@pytest.fixture(scope="module")
def learned():
    X, y = load_iris(return_X_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = PlackettLuceClassifier(Gibbs(draws=100, tune=150), random_state=0)
        clf = model.fit(X, NAMES[y])
        return clf, X, NAMES[y], clf.to_arviz(X, NAMES[y])


def elpd(data):
    import arviz

    found = arviz.loo(data)
    return float(found.elpd if arviz_1() else found.elpd_loo)


def test_groups_dimensions_and_values(fitted):
    clf, X, y, data = fitted
    weight = data["posterior"]["weight"]
    assert weight.dims == ("chain", "draw", "class", "feature")
    assert list(weight.coords["class"].values) == ["a", "b", "c"]
    assert list(weight.coords["feature"].values) == list(clf.features_.get_feature_names_out())
    np.testing.assert_array_equal(weight.values, np.exp(clf.posterior_.log_weights))
    np.testing.assert_array_equal(data["posterior"]["shape"].values, clf.posterior_.shape)
    pointwise = data["log_likelihood"]["y"].values
    assert pointwise.shape == (4, 200, 150)
    np.testing.assert_allclose(pointwise.sum(axis=2), clf.trace_, rtol=1e-8)
    np.testing.assert_array_equal(data["sample_stats"]["lp"].values, clf.trace_)
    np.testing.assert_array_equal(data["observed_data"]["y"].values, y)


def test_raw_draws_are_exported_on_request_only(fitted, learned):
    clf, *_, data = fitted
    assert set(data["posterior"].data_vars) == {"weight", "shape", "probability"}
    raw = clf.to_arviz(raw=True)["posterior"]
    assert set(raw.data_vars) == {"weight", "log_weight", "shape"}
    np.testing.assert_array_equal(raw["log_weight"].values, clf.posterior_.log_weights)
    clf, X, y, data = learned
    assert set(data["posterior"].data_vars) == {"probability"}
    raw = clf.to_arviz(X[:2], y[:2], raw=True)["posterior"]
    assert set(raw.data_vars) == {"direction", "log_weight", "scale", "probability"}
    for name, held in (("direction", "directions"), ("log_weight", "log_weights"), ("scale", "scales")):
        np.testing.assert_array_equal(raw[name].values, getattr(clf.posterior_, held))
    assert raw["direction"].dims == ("chain", "draw", "component", "column")
    with pytest.raises(ValueError, match=r"nothing but predictions is identified.*to_arviz\(X, y\).*raw=True"):
        clf.to_arviz()


def test_a_shape_that_is_given_is_no_draw(fitted, quiet):
    clf = clone(fitted[0]).set_params(shape=0.5, inference__draws=20, inference__tune=20)
    assert "shape" not in clf.fit(fitted[1], fitted[2]).to_arviz()["posterior"]


def test_probabilities_are_of_rows_spread_over_the_data(fitted, learned):
    for clf, X, _, data in (fitted, learned):
        shown = data["posterior"]["probability"]
        assert shown.dims == ("chain", "draw", "at", "class")
        at = shown.coords["at"].values
        assert len(at) == 20 and at[0] == 0 and at[-1] == 149 and set(np.diff(at)) == {7, 8}
        near = np.abs(shown.values.mean(axis=(0, 1)) - clf.predict_proba(X[at])).max()
        assert near < (1e-9 if clf is fitted[0] else 0.1)
        some = clf.to_arviz(X[[3, 70, 149]])
        assert list(some["posterior"]["at"].values) == [0, 1, 2] and "log_likelihood" not in str(some)
        whole = clf.to_arviz(X[[3, 70, 149]], clf.predict(X[[3, 70, 149]]))
        np.testing.assert_array_equal(some["posterior"]["probability"], whole["posterior"]["probability"])


def test_predictive_draws_follow_the_probabilities_of_each_draw(fitted, learned):
    """Frequencies against mean probabilities, within five standard errors and, for rare classes, five draws."""
    for clf, X, y, data in (fitted, learned):
        drawn = data["posterior_predictive"]["y"].values
        shown = data["posterior"]["probability"]
        mine = drawn[..., shown.coords["at"].values]
        for k in range(3):
            p = shown.values[..., k]
            error = np.sqrt((p * (1 - p)).sum(axis=(0, 1))) / p[..., 0].size
            far = np.abs((mine == k).mean(axis=(0, 1)) - p.mean(axis=(0, 1)))
            assert (far <= 5 * error + 5 / p[..., 0].size).all()
        # a draw, and not the average, decides: where it is sure the class is certain
        sure = shown.values.max(axis=3) > 1 - 1e-9
        assert (mine[sure] == shown.values.argmax(axis=3)[sure]).all()
        again = clf.to_arviz(X, y if clf is learned[0] else NAMES[y])
        np.testing.assert_array_equal(again["posterior_predictive"]["y"].values, drawn)
        other = deepcopy(clf).set_params(random_state=1).to_arviz(X)["posterior_predictive"]["y"].values
        assert (other != drawn).any() and drawn.min() == 0 and drawn.max() == 2


def test_blocks_of_rows_change_nothing(learned, monkeypatch):
    clf, X, y, data = learned
    monkeypatch.setattr("plackett.posterior.directions.CHUNK", 400 * 12 * 7)
    pieces = clf.to_arviz(X, y)
    for group, name in (("log_likelihood", "y"), ("posterior", "probability"), ("posterior_predictive", "y")):
        np.testing.assert_allclose(pieces[group][name].values, data[group][name].values, rtol=1e-9)


def test_a_draw_of_learned_directions_takes_the_place_of_the_average(learned):
    """By the formula of the documentation, one row and draw at a time."""
    clf, X, y, _ = learned
    held, Z = clf.posterior_, clf.features_.standardised(X[[60, 120]])

    def predicted(directions, log_weights, z):
        gates = np.exp(directions @ z) @ np.exp(log_weights).T
        return gates / gates.sum()

    w, power = held.mode_weight, held.power
    assert 0.05 < w < 0.95 and power != 1
    found = clf.to_arviz(X[[60, 120]])["posterior"]["probability"].values
    for i, z in enumerate(Z):
        draws = np.array(
            [
                [predicted(b, lw, z) for b, lw in zip(*chain, strict=True)]
                for chain in zip(held.directions, held.log_weights, strict=True)
            ]
        )
        mode = predicted(held.mode_directions, held.mode_log_weights, z) * draws / draws.mean(axis=(0, 1))
        mixed = (w * mode / mode.sum(axis=2, keepdims=True) + (1 - w) * draws) ** power
        np.testing.assert_allclose(found[:, :, i], mixed / mixed.sum(axis=2, keepdims=True), atol=1e-8)


def test_without_mode_and_power_the_mean_is_the_prediction(learned):
    clf, X, y, _ = learned
    plain = deepcopy(clf)
    plain.posterior_ = DirectionDraws(clf.posterior_.directions, clf.posterior_.log_weights, clf.posterior_.scales)
    pooled = clf.features_.get_params() | {
        "directions": clf.features_.directions[:-1],
        "offsets": clf.features_.offsets[:-1],
    }
    plain.features_ = type(clf.features_)(**pooled).fit(X)
    own = np.exp(plain.to_arviz(X, y)["log_likelihood"]["y"].values).mean(axis=(0, 1))
    expected = plain.predict_proba(X)[np.arange(150), np.searchsorted(NAMES, y)]
    np.testing.assert_allclose(own, expected, rtol=1e-8)


def test_loo_of_learned_directions_is_that_of_new_rows():
    """Rows kept back from noisy data tell the log-loss of the prediction; on rows seen it is far lower."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1100, 8))
    y = (X[:, 0] + rng.logistic(size=1100) > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = PlackettLuceClassifier(Gibbs(draws=200, tune=200), random_state=0).fit(X[:100], y[:100])
        data = clf.to_arviz(X[:100], y[:100])
        found = -elpd(data) / 100
        stated = (data["log_likelihood"]["y"].values.max(axis=(0, 1)) < 0).all()
    assert clf.posterior_.mode_weight > 0.5 and stated
    seen = log_loss(y[:100], clf.predict_proba(X[:100]))
    loss = -np.log(clf.predict_proba(X)[np.arange(1100), y])
    new, error = loss[100:].mean(), loss.std() / np.sqrt(100)
    assert new - seen > 0.05
    assert abs(found - new) < 2 * error
    assert found - seen > 0.4 * (new - seen)


def test_arviz_can_use_it(fitted, learned, quiet):
    import arviz
    import matplotlib

    matplotlib.use("Agg")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for *_, data in (fitted, learned):
            summary = arviz.summary(data)
            assert "r_hat" in summary.columns and np.isfinite(elpd(data))
            probabilities = arviz.summary(data, var_names=["probability"])
            assert len(probabilities) == 60
            arviz.plot_trace(data, var_names=["probability"], coords={"at": [149]})
        assert (probabilities["r_hat"].astype(float) < 1.5).all() and len(summary) == 60


def test_without_likelihood_and_without_draws(fitted):
    clf, X, y, _ = fitted
    alone = str(clf.to_arviz())
    assert "posterior" in alone
    for group in ("log_likelihood", "observed_data", "posterior_predictive", "probability"):
        assert group not in alone
    with pytest.raises(ValueError, match="gibbs"):
        PlackettLuceClassifier("em", shape=1, features="exp").fit(X, y).to_arviz()


def test_rows_may_be_others_than_those_of_the_fit(fitted):
    clf, X, y, whole = fitted
    data = clf.to_arviz(X[[120, 3]], ["c", "a"])
    np.testing.assert_allclose(data["log_likelihood"]["y"].values, whole["log_likelihood"]["y"].values[..., [120, 3]])
    assert list(data["observed_data"]["y"].values) == [2, 0]
    expected = np.exp(data["log_likelihood"]["y"].values).mean(axis=(0, 1))
    np.testing.assert_allclose(clf.predict_proba(X[[120, 3]])[[0, 1], [2, 0]], expected, rtol=1e-10)


def test_rows_that_cannot_be_used_are_refused(fitted, monkeypatch):
    clf, X, y, _ = fitted
    with pytest.raises(ValueError, match="labels without their rows"):
        clf.to_arviz(y=NAMES[y])
    with pytest.raises(ValueError, match="does not know the class 'd'"):
        clf.to_arviz(X[:2], ["a", "d"])
    with pytest.raises(ValueError, match="inconsistent numbers"):
        clf.to_arviz(X, ["a"])
    monkeypatch.setattr("plackett.output.arviz.MOST", 800 * 10)
    with pytest.raises(ValueError, match="150 rows under 800 draws take .* GiB. Give 20 rows or fewer"):
        clf.to_arviz(X, NAMES[y])


def test_draws_are_thinned_where_rows_are_too_many_for_all_of_them(fitted, monkeypatch):
    clf, X, y, _ = fitted
    whole = clf.to_arviz(X, NAMES[y])
    monkeypatch.setattr("plackett.output.arviz.MOST", 800 * 100)
    with pytest.warns(UserWarning, match="one draw in 2 is exported. All are with 100 rows or fewer"):
        some = clf.to_arviz(X, NAMES[y])
    for group, name in (("posterior", "probability"), ("log_likelihood", "y"), ("sample_stats", "lp")):
        found, every = (np.asarray(data[group][name]) for data in (some, whole))
        np.testing.assert_allclose(found, every[:, ::2], rtol=1e-12)
    assert clf.trace_.shape == (4, 200)


def test_a_fitted_model_holds_no_rows(fitted):
    clf, X, _, _ = fitted
    assert X.tobytes()[:1000] not in pickle.dumps(clf)
    assert not [name for name in vars(clf) if name.startswith("_")]


@pytest.mark.long
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
