import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.preprocessing import FunctionTransformer

from plackett import Gibbs, PlackettLuceClassifier, SparseLogitClassifier, Variational
from plackett.explain import explain, win_probabilities
from plackett.posterior.weights import Point
from plackett.simulate import race


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
    with pytest.warns(UserWarning, match="R-hat|effective|mixed"):
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
    with pytest.warns(UserWarning):
        logit.fit(X, y)
    with pytest.raises(ValueError, match="coef_"):
        explain(logit, X.iloc[0])
