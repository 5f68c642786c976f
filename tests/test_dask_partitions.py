"""Dask arrays and data frames: the answers of the table in one piece, and errors that name partition and row."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler

from clusters import NEAR, SETTLED, assert_same_answer, assert_same_summary, quiet
from plackett import EM, Gibbs, PlackettLuceClassifier
from plackett.cluster import maps

rng = np.random.default_rng(1)
X = np.column_stack([rng.normal(size=(400, 2)) * [1, 100] + [0, 7], rng.integers(0, 2, size=(400, 2))])
Y = np.array(["a", "b", "c"])[(X[:, 0] + rng.normal(size=400) > 0).astype(int) + (X[:, 2] + X[:, 3] > 1)]
NAMES = ["height", "weight", "smokes", "drinks"]
FRAME = pd.DataFrame(X, columns=NAMES)
COUNTS = rng.choice([0.0, 1.0, 3.0], size=400)
MANY = rng.choice([0.0, 1.0, 700.0], size=400)
SHORT = Gibbs(draws=15, tune=10, chains=2, moves="none")


def fitted(inference, X, y, sample_weight=None, **settings):
    clf = PlackettLuceClassifier(inference, random_state=0, **({"features": "exp"} | settings))
    return quiet(clf, X, y, sample_weight=sample_weight)


@pytest.mark.brief(1)
@pytest.mark.parametrize("inference", [EM(), SETTLED, SHORT])
def test_a_frame_in_partitions_gives_the_answer_of_the_frame(client, inference):
    shape = {"shape": 0.5} if isinstance(inference, EM) else {}
    whole = fitted(inference, FRAME, Y, **shape)
    frame = dd.from_pandas(FRAME.assign(y=Y), npartitions=5)
    parts = fitted(inference, frame[NAMES], frame["y"], **shape)
    assert_same_answer(whole, parts, NEAR if inference is SETTLED else 1e-10)
    assert list(parts.feature_names_in_) == NAMES
    assert_same_summary(parts.summary(), whole.summary())
    lazy = parts.predict_proba(frame[NAMES])
    assert isinstance(lazy, da.Array)
    np.testing.assert_allclose(lazy.compute(), whole.predict_proba(FRAME), rtol=1e-7)
    assert parts.predict(frame[NAMES]).compute().tolist() == whole.predict(FRAME).tolist()
    with pytest.raises(ValueError, match="X is a Dask collection"):
        parts.predict_interval(frame[NAMES])


@pytest.mark.parametrize("weight", [COUNTS, MANY], ids=["few", "many"])
def test_weights_of_rows(client, weight):
    chunks = (100, 1, 150, 149)
    far = da.from_array(X, chunks=(chunks, (2, 2)))
    for inference in (SHORT, SETTLED):
        settings = {} if inference is SHORT else {"class_weight": "balanced"}
        whole = fitted(inference, X, Y, weight, **settings)
        y = Y if inference is SHORT else da.from_array(Y, chunks=200)
        parts = fitted(inference, far, y, da.from_array(weight, chunks=(chunks,)), **settings)
        assert_same_answer(whole, parts, NEAR if inference is SETTLED else 1e-10)


@pytest.mark.long
def test_the_shape_of_em_is_learned(client):
    em = EM(shapes=(1.0, 0.5), cv=3)
    whole = fitted(em, X, Y, COUNTS)
    parts = fitted(em, da.from_array(X, chunks=(130, 4)), Y, COUNTS)
    assert_same_answer(whole, parts)
    np.testing.assert_allclose(list(parts.cv_log_loss_.values()), list(whole.cv_log_loss_.values()), rtol=1e-10)


def test_means_and_deviations_by_partition(client, monkeypatch):
    monkeypatch.setattr(maps, "EXACT", 0)
    table = np.column_stack([X, np.full(400, 3.0), 1e200 * X[:, 0], 1e-200 * X[:, 1]])
    far = da.from_array(table, chunks=(90, 7))
    whole, parts = (fitted("variational", each, Y, COUNTS, shape=0.5) for each in (table, far))
    np.testing.assert_allclose(parts.features_.mean_, whole.features_.mean_, rtol=1e-13)
    np.testing.assert_allclose(parts.features_.scale_, whole.features_.scale_, rtol=1e-13)
    assert_same_answer(whole, parts)


def test_maps_that_learn_nothing_and_others(client):
    table, far = np.abs(X), da.from_array(np.abs(X), chunks=(90, 4))
    plain = {"features": FunctionTransformer(), "shape": 0.5}
    assert_same_answer(fitted("variational", table, Y, **plain), fitted("variational", far, Y, **plain))
    with pytest.raises(ValueError, match="must be fitted to all rows"):
        fitted("variational", far, Y, features=MinMaxScaler())


def wrong(column, row, value):
    table = X.copy()
    table[row, column] = value
    return da.from_array(table, chunks=(100, 4))


@pytest.mark.parametrize(
    ("table", "y", "weight", "words"),
    [
        (wrong(2, 257, np.nan), Y, None, "partition 2 of the data: row 57, column 2 is not finite: nan"),
        (wrong(0, 0, 0.0), np.where(np.arange(400) == 399, None, Y), None, "partition 3 .*no label .* None in row 99"),
        (wrong(0, 0, 0.0), Y, np.where(np.arange(400) == 100, -1, 1), "partition 1 .*: row 0 has a weight that is neg"),
        (wrong(0, 0, 0.0), Y[:-1], None, "one entry for each of the 400 rows"),
        (wrong(0, 0, 0.0), np.full(400, "a"), None, "one class only: 'a'"),
        (wrong(0, 0, 0.0), Y, np.where(Y == "b", 0, 1), "class 'b' has total weight 0"),
    ],
)
def test_what_is_wrong_is_told_by_partition_and_row(client, table, y, weight, words):
    with pytest.raises(ValueError, match=words):
        fitted("variational", table, y, weight)


def test_columns_and_cuts_that_do_not_fit(client):
    frame = dd.from_pandas(FRAME.assign(town="x", y=Y), npartitions=3)
    with pytest.raises(ValueError, match="column 'town' has the type"):
        fitted("variational", frame[[*NAMES, "town"]], frame["y"])
    with pytest.raises(ValueError, match="y has 2 partitions and X has 3"):
        fitted("variational", frame[NAMES], dd.from_pandas(pd.Series(Y), npartitions=2))
    with pytest.raises(ValueError, match="partition 0 of the data: X has 134 rows, and y has the shape"):
        fitted("variational", frame[NAMES], dd.from_pandas(pd.Series(Y[:-30]), npartitions=3))
    with pytest.raises(ValueError, match="engine='numba' does not take"):
        fitted("variational", frame[NAMES], frame["y"], engine="numba")
    with pytest.raises(ValueError, match="in row 0 of partition 1"):
        fitted(SHORT, da.from_array(X, chunks=(100, 4)), Y, np.where(np.arange(400) == 100, 0.5, 1))
