"""Bad input gets a clear error: what was expected, what came, what to do."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import FunctionTransformer

from plackett import (
    EM,
    ChoiceSets,
    Gibbs,
    PlackettLuceChooser,
    PlackettLuceClassifier,
    PlackettLuceRanker,
    Rankings,
    SparseLogitClassifier,
    Variational,
)
from plackett.features import ExpFeatures
from plackett.priors import Gamma, LogUniform

X = np.random.default_rng(0).normal(size=(30, 2))
y = np.arange(30) % 3
INFERENCES = ["em", "variational", "gibbs"]
FIXED = {"features": "exp", "shape": 1.0, "random_state": 0}


@pytest.mark.parametrize("inference", INFERENCES)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_and_infinite(inference, bad):
    broken = X.copy()
    broken[3, 1] = bad
    with pytest.raises(ValueError, match="NaN|infinity"):
        PlackettLuceClassifier(inference, features="exp").fit(broken, y)
    clf = PlackettLuceClassifier("em", shape=1, features="exp").fit(X, y)
    with pytest.raises(ValueError, match="NaN|infinity"):
        clf.predict(broken)


@pytest.mark.parametrize("inference", INFERENCES)
@pytest.mark.parametrize(
    "change, message",
    [
        ({"y": np.zeros(30)}, "at least two classes.*one class only"),
        ({"X": X[:1], "y": y[:1]}, "two classes|n_samples"),
        ({"X": X[:0], "y": y[:0]}, "0 sample"),
        ({"y": y[:20]}, "inconsistent numbers of samples"),
        ({"y": np.linspace(0, 1, 30)}, "Unknown label type|continuous"),
        ({"sample_weight": np.where(y == 1, 0, 1)}, "class .*1.* has total weight 0"),
        ({"sample_weight": -np.ones(30)}, "non-negative"),
        ({"sample_weight": np.ones(5)}, "sample_weight"),
    ],
)
def test_bad_data(inference, change, message):
    arguments = {"X": X, "y": y, **change}
    with pytest.raises(ValueError, match=message):
        PlackettLuceClassifier(inference, features="exp").fit(**arguments)


@pytest.mark.parametrize("name", ["shape", "rate"])
@pytest.mark.parametrize("value", [0, -1.0, np.nan, np.inf, "many", None, True])
def test_bad_shape_and_rate(name, value):
    with pytest.raises(ValueError, match=rf"{name} must be a positive number.* got .* instead"):
        PlackettLuceClassifier("em", **{name: value}).fit(X, y)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"inference": "mcmc"}, "inference must be one of .*'gibbs'.* got 'mcmc'"),
        ({"inference": 3}, "inference must be"),
        ({"features": "cubic"}, "features must be one of .*'exp'.* got 'cubic'"),
        ({"features": 5}, "features must have fit and transform"),
        ({"engine": "gpu"}, "engine must be 'auto' or one of"),
        ({"inference": Gibbs(draws=0)}, r"Gibbs\(draws\) must be a whole number"),
        ({"inference": Gibbs(chains=1.5)}, r"Gibbs\(chains\) must be a whole number"),
        ({"inference": Gibbs(moves="jump")}, r"Gibbs\(moves\) must be"),
        ({"inference": Gibbs(shape_prior="flat"), "shape": "learn"}, "shape_prior must be"),
        ({"inference": EM(tol=-1)}, r"EM\(tol\)"),
        ({"inference": EM(shapes=()), "shape": "learn"}, r"EM\(shapes\)"),
        ({"inference": EM(cv=1), "shape": "learn"}, "two folds"),
        ({"inference": Variational(max_iter=0)}, r"Variational\(max_iter\)"),
        ({"features": ExpFeatures(scales=-1)}, "scales must be positive"),
        ({"features": ExpFeatures(dtype="int8")}, "dtype must be"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        PlackettLuceClassifier(**{**FIXED, **settings}).fit(X, y)


def test_fractional_weights_are_refused_by_gibbs_with_fixed_features_only():
    weight = np.full(30, 0.5)
    words = (
        r"Gibbs with fixed features takes whole numbers.*0\.5 in row 0: it makes one draw .*'variational'.*'learned'"
    )
    with pytest.raises(ValueError, match=words):
        PlackettLuceClassifier("gibbs", shape=1, features="exp").fit(X, y, sample_weight=weight)
    for inference in ("em", "variational"):
        PlackettLuceClassifier(inference, **FIXED).fit(X, y, sample_weight=weight)
    PlackettLuceClassifier("em").fit(X, y, sample_weight=weight)


@pytest.mark.parametrize(
    "change, words",
    [
        ({"y": np.zeros(30, dtype=int)}, "one class only: 0 in 30 rows"),
        ({"sample_weight": np.where(y == 1, 0, 1)}, "class 1 has total weight 0"),
    ],
)
def test_labels_are_written_plainly(change, words):
    with pytest.raises(ValueError, match=words):
        PlackettLuceClassifier("em").fit(**{"X": X, "y": y, **change})


R = Rankings.from_orders([["u", "v"], ["v", "u"]] * 15)
MODELS = {
    "learned": (PlackettLuceClassifier(), y),
    "exp": (PlackettLuceClassifier("em", **FIXED), y),
    "logit": (SparseLogitClassifier(), y),
    "rankings": (PlackettLuceRanker(), R),
    "rankings, exp": (PlackettLuceRanker("em", **FIXED), R),
    "choices": (PlackettLuceChooser(), None),
    "choices, exp": (PlackettLuceChooser("em", **FIXED), None),
}
RANGES = {
    "no resolution": (X[:, 1] + 1e15, r"no resolution: column 'pay' from 9999999999999\d\d\..*subtract a constant"),
    "too large": (
        X[:, 1] / np.abs(X[:, 1]).max() * 1.7e308,
        r"beyond 1e\+300.*column 'pay' .*divide by a constant",
    ),
    "too small": (X[:, 1] * 1e-310, "too close together to be scaled: column 'pay' .*multiply by a constant"),
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("case", RANGES)
def test_columns_that_double_precision_cannot_scale_are_named(model, case):
    """Of a person who ranks, of an alternative and of a person who chooses alike."""
    column, words = RANGES[case]
    fitted, seen = MODELS[model]
    table = pd.DataFrame({"age": X[:, 0], "pay": column})
    if seen is not None:
        with pytest.raises(ValueError, match=words):
            clone(fitted).fit(table, seen)
        return
    for names, person in ((["age", "pay"], ()), (["age"], ["pay"])):
        of_person = {"pay": np.repeat(column[:15], 2)} if person else {}
        long = table.assign(**of_person, t=np.arange(30) // 2, a=["u", "v"] * 15)
        sets = ChoiceSets.from_long(long, situation="t", alternative="a", attributes=names, person=person)
        with pytest.raises(ValueError, match=words):
            clone(fitted).fit(sets, ["u", "v", "v"] * 5)


def test_rounding_is_no_variation_and_rows_as_large_as_can_be_are_predicted():
    table = np.column_stack([X, np.where(y == 1, 0.3, 0.1 + 0.2)])
    for model in (PlackettLuceClassifier("em"), PlackettLuceClassifier("em", **FIXED)):
        clf = model.fit(table, y)
        assert np.isfinite(clf.predict_proba(np.array([[1.7e308] * 3, [-1.7e308] * 3]))).all()


DAYS = ["2024-01-03", "2024-05-17", "2024-01-03"] * 10


@pytest.mark.parametrize(
    "labels, words",
    [
        ([None, "a", "b"] * 10, r"no label in 10 of 30 rows, such as None in row 0\..*leave such rows out"),
        (pd.Series(["a", "b", None] * 10, dtype="string"), "no label in 10 of 30 rows, such as <NA> in row 2"),
        (np.where(y == 1, np.nan, y), "no label in 10 of 30 rows, such as nan in row 1"),
        (["a", 1, "b"] * 10, "both texts, such as 'a' in row 0, and numbers, such as 1 in row 1.*one kind: make all"),
        (pd.Series(["a", 1.5, "b"] * 10), "both texts, such as 'a' in row 0, and numbers, such as 1.5 in row 1"),
        ([(1, 2), (3, 4), (1, 2)] * 10, r"other values in 30 of 30 rows, such as \(1, 2\) in row 0.*a whole number"),
        (pd.Series([(1, 2), (3,), (1, 2)] * 10), r"such as \(1, 2\) in row 0"),
        ([datetime.date.fromisoformat(day) for day in DAYS], "dates or times .*2024, 1, 3.*texts.*the year"),
        (np.array(DAYS, dtype="datetime64[ns]"), "dates or times .*2024, 1, 3"),
        (np.array([b"a", b"b", b"a"] * 10), "bytes .*decode"),
        (np.array([1j, 2, 3] * 10), "complex numbers in 30 of 30 rows, such as 1j in row 0.*texts"),
        (np.linspace(0, 1, 30), r"not whole in 28 of 30 rows, such as 0\.03.* in row 1.*continuous"),
        (np.eye(3)[y], r"one label a row, got an array of shape \(30, 3\)"),
        ("abc", r"one label a row, got an array of shape \(\)"),
    ],
)
@pytest.mark.parametrize("model", [PlackettLuceClassifier, SparseLogitClassifier])
def test_what_is_no_label_is_told_with_what_to_do(model, labels, words):
    with pytest.raises(ValueError, match=words):
        model().fit(X, labels)


@pytest.mark.parametrize(
    "labels",
    [
        pd.Series(y, dtype="Int64"),
        pd.Series(np.array(["a", "b", "c"])[y], dtype="category"),
        pl.Series(np.array(["a", "b", "c"])[y]),
        y.astype(object),
        y.astype(float),
        (y > 0).tolist(),
    ],
)
def test_labels_however_they_are_stored(labels):
    clf = PlackettLuceClassifier("em", **FIXED).fit(X, labels)
    assert set(clf.predict(X).tolist()) <= set(labels.to_list() if hasattr(labels, "to_list") else list(labels))
    assert len(clf.classes_) == len(set(labels))


@pytest.mark.parametrize(
    "settings",
    [
        {"shape": np.float64(-1)},
        {"rate": np.float32(-1)},
        {"inference": EM(max_iter=np.float64(0.5))},
        {"inference": EM(tol=np.float64(-1))},
        {"features": ExpFeatures(scales=[np.float64(-1)])},
        {"inference": Gibbs(draws=np.int64(-1))},
    ],
)
def test_numbers_are_written_plainly(settings):
    with pytest.raises(ValueError, match=r"got \[?-?[0-9.]+\]? instead"):
        PlackettLuceClassifier(**{**FIXED, **settings}).fit(X, y)


def test_negative_features_name_row_and_column():
    with pytest.raises(ValueError, match=r"row 1, column 0 .*negative: -2"):
        PlackettLuceClassifier("em", features=FunctionTransformer(), shape=1).fit([[1.0, 1.0], [-2.0, 1.0]], [0, 1])


def test_zero_row_of_features():
    with pytest.raises(ValueError, match="row 1 of the features is zero in every column"):
        PlackettLuceClassifier("em", features=FunctionTransformer(), shape=1).fit([[1.0, 1.0], [0.0, 0.0]], [0, 1])


def test_infinite_features():
    with np.errstate(over="ignore"), pytest.raises(ValueError, match=r"row 0, column 1 .*not finite"):
        PlackettLuceClassifier("em", features=FunctionTransformer(np.exp), shape=1).fit([[1.0, 1e4], [1, 1]], [0, 1])


def test_other_columns_at_predict():
    clf = PlackettLuceClassifier("em", shape=1, features="exp").fit(X, y)
    with pytest.raises(ValueError, match="3 features.*expecting 2"):
        clf.predict(np.ones((4, 3)))


def test_em_has_no_interval():
    clf = PlackettLuceClassifier("em", shape=1, features="exp").fit(X, y)
    with pytest.raises(ValueError, match="no interval.*gibbs"):
        clf.predict_interval(X)
    with pytest.raises(ValueError, match="prob must be"):
        PlackettLuceClassifier("variational", **FIXED).fit(X, y).predict_interval(X, prob=1.5)


@pytest.mark.brief("em", "variational")
@pytest.mark.parametrize("inference", INFERENCES)
def test_extreme_but_legal_data(inference, quiet):
    """Huge values, a constant column, few rows: results stay finite."""
    wild = np.column_stack([X * 1e6, np.full(30, 7.0), 1e-9 * X[:, 0]])
    wild[0, 0] = 1e12
    for features in ("exp", ExpFeatures(standardize=False)):
        for shape in (1e-3, 1.0):
            clf = PlackettLuceClassifier(inference, shape=shape, features=features, random_state=0).fit(wild, y)
            p = clf.predict_proba(np.vstack([wild, 1e300 * np.ones(4), -1e300 * np.ones(4)]))
            assert np.isfinite(p).all()
            np.testing.assert_allclose(p.sum(axis=1), 1)
    two = PlackettLuceClassifier(inference, shape=1.0, random_state=0, features="exp").fit(X[:2], ["a", "b"])
    assert two.predict_proba(X).shape == (30, 2)


@pytest.mark.parametrize("lower, upper", [(0, 1), (2, 1), (-1, 1), (1, np.inf)])
def test_bad_priors(lower, upper):
    with pytest.raises(ValueError, match="0 < lower < upper"):
        LogUniform(lower, upper)


def test_bad_gamma_prior():
    with pytest.raises(ValueError, match="shape > 0 and rate > 0"):
        Gamma(-1, 1)


def test_log_density_that_is_not_a_number():
    with pytest.raises(ValueError, match="finite or"):
        PlackettLuceClassifier(Gibbs(shape_prior=lambda a: np.nan), features="exp").fit(X, y)


@pytest.mark.brief(8)
@pytest.mark.parametrize(
    "model",
    [
        PlackettLuceClassifier(Gibbs(draws=200, tune=100), random_state=0),
        PlackettLuceClassifier(Gibbs(draws=1000, tune=500), shape=0.05, features="exp", random_state=0),
        PlackettLuceClassifier(Gibbs(draws=200, tune=200), features="exp", random_state=0),
        PlackettLuceClassifier("variational", features="exp", random_state=0),
        PlackettLuceClassifier("em"),
        PlackettLuceClassifier("em", features="exp"),
        PlackettLuceClassifier("em", features=ExpFeatures(standardize=False)),
        SparseLogitClassifier(draws=300, tune=300, random_state=0),
    ],
    ids=repr,
)
@pytest.mark.parametrize("counts", [(80, 40), (60, 40, 20)], ids=["two", "three"])
@pytest.mark.parametrize("value", [1.0, 0.1])
def test_constant_columns_predict_the_shares(quiet, model, counts, value):
    alike, labels = np.full((120, 4), value), np.repeat(np.arange(len(counts)), counts)
    with pytest.warns(UserWarning, match=r"all rows are alike: none of the \d columns varies") as caught:
        model.fit(alike, labels)
    assert len([w for w in caught if w.category is not ConvergenceWarning]) == 1
    assert caught[0].filename == __file__
    prediction = model.predict_proba(np.vstack([alike[:1], 5 + alike[:1]]))
    np.testing.assert_allclose(prediction, np.tile(np.array(counts) / 120, (2, 1)), atol=0.05)
