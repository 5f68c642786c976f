"""scikit-learn manners: its own checks, and what users do beyond them."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    KBinsDiscretizer,
    MinMaxScaler,
    OneHotEncoder,
    SplineTransformer,
    StandardScaler,
)
from sklearn.utils.estimator_checks import parametrize_with_checks

from plackett import EM, Gibbs, PlackettLuceClassifier, Variational
from plackett.directions import LearnedDirections
from plackett.features import ExpFeatures

ESTIMATORS = [
    PlackettLuceClassifier(EM(tol=1e-7), features="exp"),  # one check weights classes ten million to one: see below
    PlackettLuceClassifier("em", shape=0.5, features="exp"),
    PlackettLuceClassifier("variational", features="exp"),
    PlackettLuceClassifier(Gibbs(draws=200, tune=200, chains=2), features="exp"),
    PlackettLuceClassifier(Variational(), engine="numpy", shape=1.0, features="exp"),
    PlackettLuceClassifier(EM(cv=2), features=LearnedDirections(components=1)),
    PlackettLuceClassifier(Gibbs(draws=10, tune=10, chains=2), features=LearnedDirections(components=2, leapfrogs=4)),
    ExpFeatures(),
    ExpFeatures(scales=(0.5, 1), pair_sums=True, pair_differences=True),
]


def fractions_of_rows(estimator):
    """The one check that cannot pass: it gives classes weights of 1/10,000, which this sampler refuses in words."""
    refuses = isinstance(getattr(estimator, "inference", None), Gibbs) and estimator.features == "exp"
    return {"check_class_weight_classifiers": "draws who wins in every row"} if refuses else {}


# EM in check_class_weight_classifiers: rows that count 1/10,000 barely bend a log-likelihood of rows that count 1,000.
# Steps soon move no weight by 1e-8, but fall no further for thousands of iterations, and how many turns on rounding.
@pytest.mark.brief("'em'", "LearnedDirections", "ExpFeatures", "engine='numpy'")
@pytest.mark.filterwarnings(
    "ignore:.*(R-hat|effective sample size|trusted|draws a chain|L-BFGS|variational bound did not)"
)
@pytest.mark.filterwarnings("ignore:The least populated class")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=fractions_of_rows)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_default_classifier_learns_iris(iris, quiet):
    X, y = iris
    clf = PlackettLuceClassifier(random_state=0).fit(X, y)
    assert clf.score(X, y) > 0.95
    assert clf.relevance_.shape == (4,) and len(clf.trace_) == 4 and clf.diagnostics_.grade == "settled"
    lower, upper = clf.predict_interval(X)
    assert (lower <= clf.predict_proba(X)).all() and (clf.predict_proba(X) <= upper).all()


def test_the_papers_model_is_one_word_away(iris, quiet):
    X, y = iris
    clf = PlackettLuceClassifier(features="exp", random_state=0).fit(X, y)
    assert clf.score(X, y) > 0.8
    assert clf.weights_.shape == (3, 9)
    assert clf.weights_.sum() == pytest.approx(1)
    assert clf.trace_.shape == (4, 1000) and clf.n_iter_ == 3000


def test_grid_search_over_inference_and_shape(iris, quiet):
    X, y = iris
    grid = GridSearchCV(
        PlackettLuceClassifier(Gibbs(chains=2, tune=50), random_state=0, features="exp"),
        {"inference__draws": [20, 40], "shape": [0.1, 1.0]},
        cv=2,
        scoring="neg_log_loss",
    ).fit(X, y)
    assert set(grid.best_params_) == {"inference__draws", "shape"}
    assert grid.best_estimator_.trace_.shape == (2, grid.best_params_["inference__draws"])


def test_pipeline_clone_and_pickle(iris):
    X, y = iris
    model = make_pipeline(StandardScaler(), PlackettLuceClassifier("em", shape=0.9, features="exp")).fit(X, y)
    again = clone(model).fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), again.predict_proba(X))
    np.testing.assert_array_equal(model.predict_proba(X), pickle.loads(pickle.dumps(model)).predict_proba(X))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_data_frames_keep_their_names(iris, frame):
    X, y = iris
    names = ["sepal length", "sepal width", "petal length", "petal width"]
    table = frame(dict(zip(names, X.T, strict=True)))
    clf = PlackettLuceClassifier("em", shape=1.0, features="exp").fit(table, np.array(["a", "b", "c"])[y])
    assert list(clf.feature_names_in_) == names
    assert "exp(-petal width)" in clf.features_.get_feature_names_out()
    assert list(clf.classes_) == ["a", "b", "c"]
    bare = PlackettLuceClassifier("em", shape=1.0, features="exp").fit(X, y)
    np.testing.assert_allclose(clf.predict_proba(table), bare.predict_proba(X), atol=1e-12)
    with pytest.raises(ValueError, match="feature names"):
        clf.predict(frame(dict(zip("abcd", X.T, strict=True))))


def test_set_output_gives_named_frames(iris):
    out = ExpFeatures().set_output(transform="pandas").fit_transform(iris[0])
    assert list(out.columns[:2]) == ["exp(x0)", "exp(x1)"]


MAPS = {
    "splines": SplineTransformer(n_knots=4),
    "bins": KBinsDiscretizer(4, encode="onehot", strategy="uniform"),
    "pipeline": make_pipeline(MinMaxScaler(clip=True), SplineTransformer(n_knots=3)),
    "columns": make_column_transformer(
        (ExpFeatures(), [0, 1]),
        (KBinsDiscretizer(3, encode="onehot-dense", strategy="uniform"), [2, 3]),
    ),
}


@pytest.mark.brief("em", "variational", "gibbs-bins")
@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("inference", ["em", "variational", "gibbs"])
def test_any_non_negative_map_works(iris, quiet, name, inference):
    X, y = iris
    clf = PlackettLuceClassifier(inference, shape=0.5, features=MAPS[name], random_state=0).fit(X, y)
    assert clf.score(X, y) > 0.85
    np.testing.assert_allclose(clf.predict_proba(X).sum(axis=1), 1)


def test_text_columns_through_a_column_transformer():
    table = pd.DataFrame({"colour": ["red", "blue", "red", "green"] * 10, "size": np.arange(40.0)})
    y = np.where(table.colour == "red", "yes", "no")
    features = ColumnTransformer([("c", OneHotEncoder(), ["colour"]), ("s", ExpFeatures(), ["size"])])
    clf = PlackettLuceClassifier("em", shape=0.9, features=features).fit(table, y)
    assert clf.score(table, y) == 1.0
    assert "c__colour_red" in clf.features_.get_feature_names_out()


def test_learned_shape_takes_any_splitter(iris):
    X, y = iris
    splitter = StratifiedKFold(3, shuffle=True, random_state=1)
    clf = PlackettLuceClassifier(EM(shapes=(2.0, 0.9, 0.5), cv=splitter), features="exp").fit(X, y)
    assert list(clf.cv_log_loss_) == [2.0, 0.9, 0.5]
    assert clf.shape_ == min(clf.cv_log_loss_, key=clf.cv_log_loss_.get)
