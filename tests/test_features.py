"""The paper's features and their names, mirrors and numerical guards."""

import numpy as np
import pytest

from plackett import PlackettLuceClassifier
from plackett.features import ExpFeatures, exp

X = np.random.default_rng(0).normal(3.0, 2.0, size=(50, 3))


def test_features_are_the_formula_up_to_a_factor_of_each_row():
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    W = ExpFeatures().fit_transform(X)
    plain = np.column_stack([np.exp(Z), np.exp(-Z), np.ones(50)])
    np.testing.assert_allclose(W / W[:, [-1]], plain, rtol=1e-12)
    np.testing.assert_allclose(W.max(axis=1), 1)


def test_all_kinds_of_terms_and_their_names():
    features = ExpFeatures(scales=(1, 0.5), pair_sums=True, pair_differences=True).fit(X)
    names = list(features.get_feature_names_out(["a", "b", "c"]))
    assert names[:6] == ["exp(a)", "exp(b)", "exp(c)", "exp(-a)", "exp(-b)", "exp(-c)"]
    for name in (
        "exp(a + b)",
        "exp(-(a + b))",
        "exp(a - c)",
        "exp(c - a)",
        "exp(0.5·a)",
        "exp(-0.5·b)",
        "exp(0.5·(b + c))",
        "exp(-0.5·(a + b))",
        "1",
    ):
        assert name in names
    assert len(names) == len(set(names)) == 2 * (6 + 6 + 6) + 1
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    W = features.transform(X)
    W = W / W[:, [-1]]
    np.testing.assert_allclose(W[:, names.index("exp(-0.5·(a + b))")], np.exp(-0.5 * (Z[:, 0] + Z[:, 1])), rtol=1e-12)
    np.testing.assert_allclose(W[:, names.index("exp(c - a)")], np.exp(Z[:, 2] - Z[:, 0]), rtol=1e-12)


def test_mirrors_are_inverse():
    features = ExpFeatures(scales=(1, 2), pair_sums=True, pair_differences=True).fit(X)
    W = np.log(features.transform(X))
    W -= W[:, [-1]]
    mirror = features.mirrors_
    np.testing.assert_array_equal(mirror[mirror], np.arange(len(mirror)))
    np.testing.assert_allclose(W[:, mirror], -W, atol=1e-12)


def test_no_offset_no_standardisation():
    W = ExpFeatures(offset=False, standardize=False).fit_transform(np.array([[1.0, 2.0]]))
    np.testing.assert_allclose(W, np.exp([[1 - 2, 0, -1 - 2, -2 - 2]]))


def test_constant_column_and_huge_values():
    data = np.column_stack([np.full(5, 1e6), [1.0, 2, 3, 4, 1e9]])
    features = ExpFeatures().fit(data)
    W = features.transform(data)
    assert np.isfinite(W).all() and (W > 0).all()
    np.testing.assert_allclose(W[:, 0], W[:, 4])  # the constant column says nothing
    far = features.transform([[1e300, -1e300]])
    assert np.isfinite(far).all() and far.max() == 1


def test_weights_are_repeated_rows():
    weight = np.random.default_rng(1).integers(1, 4, size=50)
    a, b = ExpFeatures().fit(X, sample_weight=weight), ExpFeatures().fit(np.repeat(X, weight, axis=0))
    np.testing.assert_allclose(a.mean_, b.mean_)
    np.testing.assert_allclose(a.scale_, b.scale_)


def test_single_precision():
    W = ExpFeatures(dtype="float32").fit_transform(1e3 * X)
    assert W.dtype == np.float32 and (W > 0).all()
    np.testing.assert_allclose(ExpFeatures(dtype="float32").fit_transform(X), ExpFeatures().fit_transform(X), rtol=1e-6)


def test_large_data_are_stored_in_single_precision(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    monkeypatch.setattr(exp, "LARGE", 300 * 9)
    large, smaller = ExpFeatures().fit(X), ExpFeatures().fit(X[:-1])
    assert (large.dtype_, large.transform(X).dtype) == ("float32", np.float32)
    assert (smaller.dtype_, smaller.transform(X).dtype) == ("float64", np.float64)
    assert ExpFeatures(dtype="float64").fit(X).dtype_ == "float64"
    assert ExpFeatures(dtype="float32").fit(X[:5]).dtype_ == "float32"


@pytest.mark.parametrize("settings", [{}, {"scales": (0.1, 2.0)}, {"pair_sums": True}, {"pair_differences": True}])
def test_what_single_precision_cannot_hold_stays_double(settings, monkeypatch):
    """The bound on the span of a row is one, and rows beyond it are given in full."""
    monkeypatch.setattr(exp, "LARGE", 1)
    X = np.random.default_rng(0).normal(size=(300, 4))
    for factor in np.linspace(1, 40, 60):
        features = ExpFeatures(standardize=False, **settings).fit(factor * X)
        full = ExpFeatures(standardize=False, dtype="float64", **settings).fit(factor * X).transform(factor * X)
        span = -np.log(full.min())
        assert features._span(factor * X) >= span * (1 - 1e-12)
        assert features.dtype_ == "float64" or span <= 40
        np.testing.assert_allclose(features.transform(factor * X), full, rtol=1e-6)
    near = ExpFeatures(standardize=False, **settings).fit(X)
    assert near.dtype_ == "float32"
    np.testing.assert_array_equal(near.transform(40 * X), full)


@pytest.mark.parametrize("inference", ["em", "variational"])
@pytest.mark.parametrize("shape", [0.5, 1.0])
def test_predictions_agree_whatever_the_storage(inference, shape):
    rng = np.random.default_rng(1)
    X = rng.standard_t(6, size=(5000, 6))
    y = (np.clip(X, -4, 4) @ rng.normal(size=(6, 3)) + rng.gumbel(size=(5000, 3))).argmax(axis=1)
    found = [
        PlackettLuceClassifier(inference, shape=shape, features=ExpFeatures(dtype=dtype), random_state=0)
        .fit(X, y)
        .predict_proba(X)
        for dtype in ("float64", "float32")
    ]
    assert 0 < np.abs(found[0] - found[1]).max() < 1e-5


@pytest.mark.parametrize("scales", [0, [1, -1], [], np.nan])
def test_bad_scales(scales):
    with pytest.raises(ValueError, match="scales must be positive"):
        ExpFeatures(scales=scales).fit(X)
