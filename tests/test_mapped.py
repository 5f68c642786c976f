"""Features made where they are asked for: the same rows of W, however many are asked for and in whatever order."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler

from conftest import class_rows
from plackett import EM, Gibbs, PlackettLuceClassifier, Variational
from plackett.engines import base
from plackett.engines.base import canonical_order
from plackett.features import mapped
from plackett.features.mapped import MappedRows, transform
from plackett.inference.checkpoint import fingerprint
from plackett.inference.moves.rows import lay_out

X = np.random.default_rng(0).random((300, 4)) + 0.1
CODES = np.random.default_rng(1).integers(0, 3, 300)
LABELS = np.where(X[:, 0] > X[:, 1], CODES % 2, 2)
KINDS = [np.asarray, np.asfortranarray, np.ndarray.tolist, sparse.csr_array, pd.DataFrame, pl.DataFrame]


@pytest.fixture
def small_runs(monkeypatch):
    """W in runs of 64 rows, none of it kept."""
    monkeypatch.setattr(base, "RUN", 64)
    monkeypatch.setattr(mapped, "RUN", 64)
    monkeypatch.setattr(mapped, "WHOLE", 0)


def as_array(W):
    return W.toarray() if sparse.issparse(W) else W


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_any_table(kind):
    table = kind(X)
    features = MaxAbsScaler().fit(table)
    W = X / X.max(axis=0)
    W /= W.max(axis=1, keepdims=True)
    made = MappedRows(features, table)
    assert made.shape == W.shape and made.dtype == W.dtype
    shuffled = np.random.default_rng(2).permutation(300)
    for rows in (slice(None), slice(5, 9), slice(290, 400), slice(None, None, -1), np.array([4, 1, 4]), shuffled):
        np.testing.assert_allclose(as_array(made[rows]), W[rows])
    places = np.array([7, 7, 2])
    np.testing.assert_allclose(as_array(MappedRows(features, table, places)[1:]), W[[7, 2]])


def test_a_small_table_is_mapped_in_one_call():
    calls = []
    features = FunctionTransformer(lambda x: calls.append(len(x)) or x).fit(X)
    assert isinstance(transform(features, X), np.ndarray)
    assert calls == [300]


def test_errors_name_the_row_of_the_table(small_runs):
    bad = X.copy()
    bad[217, 2] = -1
    made = transform(MaxAbsScaler().fit(X), bad)
    with pytest.raises(ValueError, match="row 217, column 2"):
        canonical_order(made, CODES)
    bad[217] = 0
    with pytest.raises(ValueError, match="row 217 of the features is zero"):
        made[np.array([3, 217])]


@pytest.mark.parametrize("engine", ["numpy", "numba"])
def test_engines_moves_and_fingerprints_do_not_see_the_runs(engine, small_runs):
    features = MaxAbsScaler().fit(X)
    W = MappedRows(features, X)[:]
    made = transform(features, X)
    assert isinstance(made, MappedRows)
    weight = np.random.default_rng(3).random(300)
    one, two = (class_rows(engine, each, CODES, 3, weight) for each in (W, made))
    if engine == "numba":
        for a, b in zip(one.panels, two.panels, strict=True):
            np.testing.assert_array_equal(a, b)
    else:
        np.testing.assert_array_equal(one.features, two.features)
        np.testing.assert_array_equal(one.sample_weight, two.sample_weight)
    for a, b in zip(lay_out(W, CODES, 3, None), lay_out(made, CODES, 3, None), strict=True):
        np.testing.assert_array_equal(a, b)
    assert fingerprint(W) == fingerprint(made) != fingerprint(W[::-1])


@pytest.mark.parametrize(
    "inference",
    [
        Gibbs(draws=20, tune=20, chains=2),
        Gibbs(draws=20, tune=20, chains=2, moves="none"),
        Variational(tol=1e-3, draws=50),
        EM(tol=1e-4, shapes=(1.0, 0.5), cv=2),
    ],
)
@pytest.mark.parametrize("weighted", [False, True])
def test_fits_and_predictions_do_not_see_the_runs(inference, weighted, monkeypatch, quiet):
    weight = np.random.default_rng(4).integers(0, 3, 300) if weighted else None
    model = PlackettLuceClassifier(inference, features="exp", random_state=0)
    whole = model.fit(X, LABELS, sample_weight=weight)
    weights, probability = whole.weights_, whole.predict_proba(X)
    for module in (base, mapped):
        monkeypatch.setattr(module, "RUN", 64)
    monkeypatch.setattr(mapped, "WHOLE", 0)
    parts = model.fit(X, LABELS, sample_weight=weight)
    np.testing.assert_array_equal(parts.weights_, weights)
    np.testing.assert_allclose(parts.predict_proba(X), probability, rtol=1e-12)
    if isinstance(inference, Gibbs):
        weight = np.ones(300) if weight is None else weight
        pointwise = parts.to_arviz(X, LABELS).log_likelihood["y"]
        np.testing.assert_allclose(pointwise.values @ weight, parts.trace_, rtol=1e-8)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_order_of_the_rows_is_that_of_their_content(dtype):
    """Also with zeros and ones, where sums over different columns are often equal."""
    rng = np.random.default_rng(5)
    W = rng.integers(0, 2, (5001, 6)).astype(dtype)
    W[:, 0] = 1
    codes = rng.integers(0, 2, 5001)
    shuffle = rng.permutation(5001)
    order, key = canonical_order(W, codes)
    again, same = canonical_order(W[shuffle], codes[shuffle])
    np.testing.assert_array_equal(key[shuffle], same)
    np.testing.assert_array_equal(codes[order], codes[shuffle][again])
    np.testing.assert_array_equal(W[order], W[shuffle][again])
