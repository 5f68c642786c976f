import importlib.util
import subprocess
import sys
import warnings
from dataclasses import replace
from types import SimpleNamespace

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import FunctionTransformer

from plackett import Gibbs, PlackettLuceClassifier, SparseLogitClassifier, Variational, explain, win_probabilities
from plackett.data.columns import TableWarning
from plackett.data.table import Table
from plackett.features.gates import Gates
from plackett.posterior.directions import DirectionPoint
from plackett.posterior.weights import Point
from plackett.simulate import race

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True, as_frame=True)


@pytest.fixture(scope="module")
def em(iris):
    return PlackettLuceClassifier("em", shape=0.9, features="exp").fit(*iris)


@pytest.fixture(scope="module")
def variational(iris):
    return PlackettLuceClassifier(Variational(draws=100), random_state=0, features="exp").fit(*iris)


@pytest.fixture(params=["em", "variational", "gibbs"])
def fitted(request, iris):
    if request.param != "gibbs":
        return request.getfixturevalue(request.param)
    inference = Gibbs(draws=50, tune=50, chains=2, moves="none")
    clf = PlackettLuceClassifier(inference, shape=0.1, random_state=0, features="exp")
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        return clf.fit(*iris)


def test_wins_of_a_team_add_up_to_its_probability(fitted, iris):
    X = iris[0]
    wins = win_probabilities(fitted, X)
    assert wins.shape == (150, 3, 9)
    np.testing.assert_allclose(wins.sum(axis=2), fitted.predict_proba(X), rtol=1e-12)


def test_wins_are_how_often_each_competitor_wins_the_race(iris):
    em = PlackettLuceClassifier("em", shape=1.5, features="exp").fit(*iris)
    n, row = 100_000, iris[0].iloc[[70]]
    wins = win_probabilities(em, row)[0]
    with np.errstate(divide="ignore"):
        result = race(np.repeat(em.features_.transform(row), n, axis=0), np.log(em.weights_), rng=1)
    counts = np.zeros_like(wins)
    np.add.at(counts, (result.winner, result.competitor), 1)
    assert (wins > 0.01).sum() >= 4
    error = np.sqrt(wins * (1 - wins) / n)
    assert (np.abs(counts / n - wins) <= 5 * error).all()


def test_explanation_is_sorted_and_whole(variational, iris):
    X = iris[0]
    why = explain(variational, X.iloc[70], prob=0.8)
    assert list(why.columns) == ["class", "feature", "probability", "lower", "upper"]
    assert len(why) == 27 and why["probability"].is_monotonic_decreasing
    assert why["probability"].sum() == pytest.approx(1, abs=1e-12)
    wins = win_probabilities(variational, X.iloc[[70]])[0]
    names = list(variational.features_.get_feature_names_out())
    for line in why.itertuples():
        assert line.probability == wins[line[1], names.index(line.feature)]
    draws, W = variational.posterior_.flat_draws(), variational.features_.transform(X.iloc[[70]])[0]
    best = why.iloc[0]
    k, j = best["class"], names.index(best["feature"])
    share = W[j] * draws[:, k, j] / (draws @ W).sum(axis=1)
    np.testing.assert_allclose([best["lower"], best["upper"]], np.quantile(share, [0.1, 0.9]), rtol=1e-12)


def test_em_explains_without_intervals(em, iris):
    assert list(explain(em, iris[0].iloc[0]).columns) == ["class", "feature", "probability"]


def test_a_row_in_any_form(em, iris):
    row = iris[0].iloc[70]
    expected = explain(em, row)
    for form in (row.to_dict(), iris[0].iloc[[70]]):
        pd.testing.assert_frame_equal(explain(em, form), expected)
    unnamed = PlackettLuceClassifier("em", shape=0.9, features="exp").fit(iris[0].to_numpy(), iris[1])
    for form in (row.to_numpy(), row.to_numpy()[None, :]):
        np.testing.assert_array_equal(explain(unnamed, form)["probability"], expected["probability"])


def test_a_row_that_no_weight_answers_to():
    X, y = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.array(["a", "b", "b"])
    clf = PlackettLuceClassifier("em", shape=1.0, features=FunctionTransformer()).fit(X, y)
    clf.posterior_ = Point(np.array([[0.25, 0.0], [0.75, 0.0]]))
    wins = win_probabilities(clf, [[0.0, 1.0]])
    np.testing.assert_array_equal(wins[0], [[0.25, 0.0], [0.75, 0.0]])
    np.testing.assert_array_equal(wins.sum(axis=2), clf.predict_proba([[0.0, 1.0]]))


def test_errors_say_what_to_do(em, iris):
    X, y = iris
    with pytest.raises(ValueError, match=r"expected one row, got shape \(2, 4\)"):
        explain(em, X.iloc[:2])
    with pytest.raises(ValueError, match="prob must be"):
        explain(em, X.iloc[0], prob=90)
    logit = SparseLogitClassifier(draws=5, tune=5, chains=1, random_state=0)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        logit.fit(X, y)
    with pytest.raises(ValueError, match="coef_"):
        win_probabilities(logit, X)


# Contributions of columns: learned directions and the logit


def log_odds(clf, row, label):
    """Under predict_proba; the others are added up, since 1 - p has few digits where p is nearly 1."""
    p, own = clf.predict_proba(row)[0], clf.classes_ == label
    return float(np.log(p[own][0]) - np.log(p[~own].sum()))


def check_sums(clf, X):
    for i in range(len(X)):
        row = X.iloc[[i]]
        why = explain(clf, row)
        assert list(why.columns) == ["feature", "value", "contribution", "lower", "upper"]
        assert why.attrs["class"] == clf.predict(row)[0]
        assert why["contribution"].abs().is_monotonic_decreasing
        total = why.attrs["reference"] + why["contribution"].sum()
        assert total == pytest.approx(log_odds(clf, row, why.attrs["class"]), abs=1e-8)
        assert why.attrs["prediction"] == pytest.approx(total, abs=1e-8)
        if clf.posterior_.no_interval is None:
            assert (why["lower"] <= why["contribution"]).all() and (why["contribution"] <= why["upper"]).all()
        else:
            assert why[["lower", "upper"]].isna().all(axis=None)
    return why


SHORT = Gibbs(draws=60, tune=60, chains=2)


@pytest.fixture(scope="module")
def learned(iris):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return PlackettLuceClassifier(SHORT, random_state=0).fit(*iris)


@pytest.fixture(scope="module")
def logit(iris):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SparseLogitClassifier(draws=100, tune=100, chains=2, random_state=0).fit(*iris)


def stacked(clf, weight, power):
    """The same draws beside a mode and to a power, as held-out rows may choose."""
    draws = clf.posterior_
    mode = DirectionPoint(draws.directions[:1, :1] * 1.7, draws.log_weights[:1, :1], draws.scales[:1, :1])
    other = clone(clf)
    vars(other).update({name: value for name, value in vars(clf).items() if name.endswith("_")})
    other.posterior_ = replace(draws, mode_directions=None, mode_log_weights=None).with_mode(mode, weight, power)
    old = clf.features_
    other.features_ = other.posterior_.gates(
        SimpleNamespace(mean=old.mean, scale=old.scale, rotation=None, knots=None), np.zeros((2, 4))
    )
    return other


def test_contributions_add_up_to_the_prediction(learned, logit, iris):
    for clf in (learned, logit, stacked(learned, 0.4, 1.8), stacked(learned, 0.0, 0.6)):
        check_sums(clf, iris[0][::6])
    check_sums(PlackettLuceClassifier("em").fit(*iris), iris[0][::6])
    assert explain(learned, iris[0].iloc[0]).attrs["reference_row"] == pytest.approx(iris[0].mean().to_dict())


def test_contributions_of_normal_scores_add_up(quiet):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(200, 2))
    y = (Z.sum(axis=1) + 0.3 * rng.normal(size=200) > 0) * 1
    X = pd.DataFrame(np.exp(3 * Z), columns=["a", "b"])
    clf = PlackettLuceClassifier(SHORT, random_state=0).fit(X[:160], y[:160])
    assert clf.features_.knots is not None
    check_sums(clf, X[::8])
    why = explain(clf, X.iloc[0])
    assert "normal score" in why.attrs["reference_is"]
    assert why.attrs["reference_row"] == pytest.approx(X[:160].median().to_dict(), rel=0.1)
    reference = pd.DataFrame([why.attrs["reference_row"]])
    assert why.attrs["reference"] == pytest.approx(log_odds(clf, reference, why.attrs["class"]), abs=1e-8)


@pytest.mark.parametrize("wide", [50, 2500], ids=["principal axes", "covariates"])
def test_contributions_of_more_columns_than_rows(quiet, monkeypatch, wide):
    monkeypatch.setattr("plackett.directions.class_task.MANY_COLUMNS", wide)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 80)), np.arange(30) % 2
    X[:, 0] += 3 * y
    X[:, 5] = 1.0
    X = pd.DataFrame(X).add_prefix("x")
    clf = PlackettLuceClassifier(SHORT, random_state=0).fit(X, y)
    assert (clf.features_.rotation is not None) == (wide == 50)
    why = check_sums(clf, X[::5])
    assert float(why["contribution"][why["feature"] == "x5"].iloc[0]) == 0


def test_a_row_far_outside_adds_up(learned, logit, iris):
    rows = pd.concat([iris[0][:3] * 1e3, iris[0][:1] * -1e9])
    check_sums(learned, rows)
    check_sums(logit, iris[0][:3] * 3)


def test_contributions_are_integrals_of_slopes(learned, iris):
    """Against finite differences of predict_proba at many places of the line."""
    row = iris[0].iloc[120].to_numpy()
    clf = stacked(learned, 0.3, 1.4)
    why = explain(clf, iris[0].iloc[120]).set_index("feature")
    start, label = iris[0].mean().to_numpy(), why.attrs["class"]
    places = (np.arange(400) + 0.5) / 400
    for f, name in enumerate(iris[0].columns):
        step = 1e-5 * np.eye(4)[f]
        line = start + places[:, None] * (row - start)
        odds = []
        for side in (1, -1):
            p = clf.predict_proba(pd.DataFrame(line + side * step, columns=iris[0].columns))
            own = clf.classes_ == label
            odds.append(np.log(p[:, own][:, 0]) - np.log(p[:, ~own].sum(axis=1)))
        expected = (row - start)[f] * np.mean(odds[0] - odds[1]) / 2e-5
        assert why["contribution"][name] == pytest.approx(expected, abs=2e-4)


def test_intervals_are_those_of_what_single_draws_would_predict(learned, iris):
    """One of the draws alone, without the mode, gives the contributions under it: a mode has no uncertainty to show."""
    clf, row, alone = stacked(learned, 0.3, 1.4), iris[0].iloc[[120]], []
    draws, old = clf.posterior_, clf.features_
    why = explain(clf, row, prob=0.8)
    for s in range(120):
        one, (c, d) = clone(clf), divmod(s, 60)
        vars(one).update({name: value for name, value in vars(clf).items() if name.endswith("_")})
        pick = np.s_[c : c + 1, d : d + 1]
        alone_with = {"directions": draws.directions[pick], "log_weights": draws.log_weights[pick]}
        no_mode = {"mode_directions": None, "mode_log_weights": None, "mode_weight": 0.0}
        one.posterior_ = replace(draws, **alone_with, **no_mode)
        one.features_ = Gates(old.directions[[s]], old.offsets[[s]], old.mean, old.scale).fit(row.to_numpy())
        assert one.predict(row)[0] == why.attrs["class"]
        alone.append(explain(one, row).set_index("feature")["contribution"][why["feature"]])
    lower, upper = np.quantile(alone, [0.1, 0.9], axis=0)
    np.testing.assert_allclose(why["lower"], np.minimum(lower, why["contribution"]), atol=0.02)
    np.testing.assert_allclose(why["upper"], np.maximum(upper, why["contribution"]), atol=0.02)
    assert (upper - lower > 0.1).all()


def test_contributions_of_a_logit_with_two_classes_are_its_coefficients(iris):
    X, y = iris[0][50:], np.where(iris[1][50:] == 1, "a", "b")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = SparseLogitClassifier(draws=50, tune=50, chains=1, random_state=0).fit(X, y)
    coef = clf.posterior_.coef.reshape(-1, 2, 4)
    for i in (3, 70):
        why = explain(clf, X.iloc[i], prob=0.8).set_index("feature").loc[X.columns]
        sign = 1 if why.attrs["class"] == "a" else -1
        under_draws = sign * coef[:, 0] * (X.iloc[i] - X.mean()).to_numpy()
        lower, upper = np.quantile(under_draws, [0.1, 0.9], axis=0)
        np.testing.assert_allclose(why["lower"], np.minimum(lower, why["contribution"]), atol=1e-9)
        np.testing.assert_allclose(why["upper"], np.maximum(upper, why["contribution"]), atol=1e-9)
    clf.posterior_ = replace(clf.posterior_, coef=clf.posterior_.coef[:, :1], intercept=clf.posterior_.intercept[:, :1])
    why = explain(clf, X.iloc[3]).set_index("feature").loc[X.columns]
    expected = coef[0, 0] * (X.iloc[3] - X.mean()) * (1 if why.attrs["class"] == "a" else -1)
    np.testing.assert_allclose(why["contribution"], expected, atol=1e-9)


def people(n=60):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": rng.normal(40, 10, n).round(),
            "home": np.array(["town", "farm", "coast"])[rng.integers(0, 3, n)],
            "owns": np.array(["no", "yes"])[rng.integers(0, 2, n)],
        }
    )
    y = np.where((frame["home"] == "town") ^ (rng.uniform(size=n) < 0.2), "bus", "car")
    return frame, y


def test_indicators_of_a_text_column_are_one_line(quiet):
    frame, y = people()
    gaps = frame.assign(home=frame["home"].where(frame.index % 9 != 0))
    table = Table.learn(gaps.assign(y=y), "y")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TableWarning)
        X = table.covariates(gaps)
        clf = PlackettLuceClassifier(SHORT, random_state=0).fit(X, y)
        clf.table_ = table
        check_lines = {i: explain(clf, gaps.iloc[i]).set_index("feature") for i in (0, 1, 5)}
    assert {"home=town", "home=farm", "home=coast", "home is missing", "owns=yes"} <= set(X)
    plain = clone(clf)
    vars(plain).update({name: value for name, value in vars(clf).items() if name.endswith("_") and name != "table_"})
    for i, why in check_lines.items():
        assert set(why.index) == {"age", "home", "owns"}
        assert why["value"]["home"] == ("missing" if i == 0 else frame["home"][i])
        assert why["value"]["owns"] == frame["owns"][i] and why["value"]["age"] == frame["age"][i]
        total = why.attrs["reference"] + why["contribution"].sum()
        assert total == pytest.approx(log_odds(clf, X.iloc[[i]], why.attrs["class"]), abs=1e-8)
        by_name = explain(plain, X.iloc[i]).set_index("feature")  # without the table, names tell what belongs together
        assert set(by_name.index) == {"age", "home", "home is missing", "owns=yes"}
        assert by_name["value"]["home"] == ("other" if i == 0 else frame["home"][i])
        assert by_name["contribution"]["owns=yes"] == pytest.approx(why["contribution"]["owns"])
        together = by_name["contribution"][["home", "home is missing"]].sum()
        assert together == pytest.approx(why["contribution"]["home"])


@pytest.mark.parametrize("width", [3.2, 3.5, 4.4])
def test_a_narrow_picture_of_contributions_is_whole(learned, iris, width):
    """Nothing reaches beyond the picture, and bars have room."""
    from plackett import plots

    figure, ax = plt.subplots(figsize=(width, 3.5), layout="constrained")
    plots.contributions(learned, iris[0].iloc[0], ax=ax)
    figure.canvas.draw()
    box = figure.get_tightbbox()
    assert box.x0 >= 0 and box.x1 <= width and box.y0 >= 0 and box.y1 <= 3.5
    assert ax.get_position().width * width > 1.2


def test_contributions_are_drawn(learned, em, iris):
    from matplotlib.colors import to_hex

    from plackett import plots
    from plackett.plots.style import REST, colour

    row = iris[0].iloc[120]
    why = explain(learned, row)
    ax = plots.contributions(learned, row)
    widths = np.array([bar.get_width() for bar in ax.patches])
    np.testing.assert_allclose(widths, why["contribution"])
    np.testing.assert_allclose(ax.patches[0].get_x(), why.attrs["reference"])
    np.testing.assert_allclose(ax.patches[-1].get_x() + widths[-1], why.attrs["prediction"])
    shades = [to_hex(bar.get_facecolor()).upper() for bar in ax.patches]
    assert shades == [(colour(why.attrs["class"]) if width > 0 else REST).upper() for width in widths]
    assert ax.get_yticklabels()[0].get_text().endswith(f"= {why['value'][0]:g}")
    few = plots.contributions(learned, row, n=2)
    assert [text.get_text() for text in few.get_yticklabels()][-1] == "2 others"
    np.testing.assert_allclose(few.patches[-1].get_width(), why["contribution"][2:].sum())
    with pytest.raises(ValueError, match=r"plots\.race"):
        plots.contributions(em, row)


def test_explain_is_the_function_whatever_was_imported_before():
    """A module of the same name would take its place once anything imports that module."""
    code = "import plackett, plackett.plots, plackett.report; assert callable(plackett.explain)"
    subprocess.run([sys.executable, "-c", code], check=True)
    assert importlib.util.find_spec("plackett.explain") is None
