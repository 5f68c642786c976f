"""Tables in Python: texts and dates are named, an encoder takes them, and a model that knows its table takes it."""

import datetime
import os
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from typer.testing import CliRunner

from plackett import (
    PlackettLuceClassifier,
    PlackettLuceRanker,
    Rankings,
    SparseLogitClassifier,
    TableEncoder,
    Variational,
    explain,
    load,
    win_probabilities,
)
from plackett.cli.commands import app
from plackett.data.columns import TableWarning
from plackett.data.table import Table
from plackett.features import ExpFeatures
from plackett.report import write_report

EM = PlackettLuceClassifier("em", shape=1, features="exp")


def people(n=90, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, size=n).astype(float)
    home = rng.choice(["farm", "town", "city"], size=n)
    y = np.where(age + 10 * (home == "farm") > 60, "bus", "car")
    age[5:9] = np.nan
    home = pd.Series(home).mask(np.arange(n) == 7)
    return pd.DataFrame({"age": age, "home": home, "code": rng.integers(1, 4, size=n)}), y


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
@pytest.mark.parametrize("make", [lambda: clone(EM), PlackettLuceClassifier, SparseLogitClassifier])
def test_dates_are_named_with_what_to_do(frame, make):
    y = np.arange(20) % 2
    day = [datetime.date(2024, 1, 3)] * 20
    with pytest.raises(ValueError, match="column 'day' holds dates or times such as 2024-01-03.* days since"):
        make().fit(frame({"age": np.arange(20.0), "day": day}), y)
    moments = pd.date_range("2024-01-03", periods=20, freq="h").to_numpy().astype("datetime64[ns]")
    with pytest.raises(ValueError, match="column 'at' holds dates or times such as 2024-01-03"):
        make().fit(frame({"at": moments}), y)


def test_missing_values_are_told_by_column_with_what_to_do():
    """In the words of the model that was called, and not with the advice to take another one; filled in by models."""
    X, y = people()
    X, R = X[["age", "code"]].astype(float), Rankings.from_orders([["u", "v"], ["v", "u"]] * 45)
    for model, seen in (
        (clone(EM), y),
        (SparseLogitClassifier(draws=5, tune=5), y),
        (PlackettLuceRanker("em"), R),
        (ExpFeatures(), y),
    ):
        takes_texts = not isinstance(model, ExpFeatures)
        who = type(model).__name__
        words = rf"column 'age' holds NaN in 4 of 90 rows, such as row 5\. {who} .*TableEncoder\(\), {who}\(\)\)"
        with pytest.raises(ValueError, match="column 0 holds NaN in 4 of 90 rows"):
            model.fit(X.to_numpy(), seen)
        with pytest.raises(ValueError, match=r"column 'age' holds infinity in 4 of 90 rows.*correct"):
            model.fit(X.fillna(-np.inf), seen)
        for table in (X, pl.from_pandas(X), X.astype("Float64"), X.astype(object).where(X.notna(), None)):
            if takes_texts:
                with pytest.warns(TableWarning, match="'age' is missing in 4 of 90 rows: filled in with the median"):
                    assert model.fit(table, seen).n_features_in_ == 3
                continue
            with pytest.raises(ValueError, match=words) as error:
                model.fit(table, seen)
            assert "HistGradientBoosting" not in str(error.value)
            with pytest.raises(ValueError, match=rf"column 't' holds texts such as 'x'\. {who} takes numbers"):
                model.fit(X.assign(t="x"), seen)
        make_pipeline(TableEncoder(), model).fit(X, seen)  # as advised
        filled = X.fillna(0.0)
        with pytest.raises(ValueError, match=words):
            getattr(model.fit(filled, seen), "predict" if hasattr(model, "predict") else "transform")(X)


def test_texts_are_named_at_predict_and_numbers_however_stored_are_taken():
    X, y = pd.DataFrame({"a": np.arange(20.0), "b": [0.0, 1.0] * 10}), np.arange(20) % 2
    clf = clone(EM).fit(X, y)
    with pytest.raises(ValueError, match="column 'b' holds texts such as 'u'"):
        clf.predict(X.assign(b="u"))
    for same in (X.astype(object), X.astype("category"), X.astype(str), X.assign(b=X["b"] == 1), X.astype("Float64")):
        np.testing.assert_array_equal(clf.predict_proba(same), clf.predict_proba(X))


def test_a_pipeline_with_the_encoder_is_the_command_line(tmp_path):
    X, y = people()
    X.assign(mode=y).to_csv(tmp_path / "t.csv", index=False)
    fit = ["fit", "t.csv", "--target", "mode", "--inference", "em", "--shape", "1", "--features", "exp"]
    paths = {name: str(tmp_path / name) for name in ("t.csv", "m")}
    result = CliRunner().invoke(app, [paths.get(word, word) for word in [*fit, "--categorical", "code", "--out", "m"]])
    assert result.exit_code == 0, result.output
    known = load(tmp_path / "m")
    with pytest.warns(TableWarning, match=r"column .* is missing in \d of 90 rows: filled in with"):
        expected = known.predict_proba(known.table_.covariates(X))
    pipe = make_pipeline(TableEncoder(categorical=["code"]), clone(EM)).fit(X, y)
    np.testing.assert_array_equal(pipe.predict_proba(X), expected)
    np.testing.assert_array_equal(pipe.predict_proba(pl.from_pandas(X)), expected)
    np.testing.assert_array_equal(clone(pipe).fit(pl.from_pandas(X), y).predict_proba(X), expected)
    assert list(pipe[0].get_feature_names_out()) == list(known.feature_names_in_)


@pytest.mark.parametrize(
    "settings, change, words",
    [
        (
            {},
            {"id": [f"p{i}" for i in range(90)]},
            r"'id' holds 90 different .*drop=\['id'\].*categorical=\['id'\]",
        ),
        ({}, {"day": pd.date_range("2024-01-03", periods=90)}, r"'day' holds dates such as 2024-01-03.*drop=\['day'\]"),
        ({"missing": "error"}, {}, r"'age' is missing in 4 of 90 rows.*missing='impute'"),
        ({"missing": "ignore"}, {}, "missing must be one of .*got 'ignore'"),
        ({"drop": "age"}, {}, "drop must be a list of columns, got 'age'"),
        ({"drop": ["agee"]}, {}, "no column 'agee'; did you mean age"),
    ],
)
def test_the_encoder_refuses_in_the_words_of_python(settings, change, words):
    X, y = people()
    with pytest.raises(ValueError, match=words):
        TableEncoder(**settings).fit_transform(X.assign(**change), y)


def test_the_encoder_takes_named_columns_once():
    with pytest.raises(ValueError, match="expected a data frame with named columns, got ndarray"):
        TableEncoder().fit(np.ones((3, 2)))
    with pytest.raises(ValueError, match="two columns are called 'a'"):
        TableEncoder().fit(pd.DataFrame(np.eye(3), columns=["a", "a", "b"]))


@pytest.fixture(scope="module", params=["learned", "exp"])
def known(request, tmp_path_factory):
    """A model of the command line, and its table."""
    folder = tmp_path_factory.mktemp("known")
    X, y = people()
    X.assign(mode=y, planet="Earth").to_csv(folder / "t.csv", index=False)
    inference = ["--draws", "8", "--tune", "8", "--chains", "2"] if request.param == "learned" else ["--shape", "1"]
    kind = ["--features", request.param, "--inference", "gibbs" if request.param == "learned" else "variational"]
    fit = ["fit", str(folder / "t.csv"), "--target", "mode", *inference, *kind, "--out", str(folder / "m")]
    result = CliRunner().invoke(app, fit)
    assert result.exit_code == 0, result.output
    return load(folder / "m"), pd.read_csv(folder / "t.csv")


@pytest.mark.filterwarnings("ignore:.*is missing in:plackett.data.columns.TableWarning")
def test_a_model_that_knows_its_table_takes_it(known):
    clf, frame = known
    X = clf.table_.covariates(frame)
    assert {"age is missing", "home=town"} <= set(X)
    expected = clf.predict_proba(X)
    for table in (frame, frame[frame.columns[::-1]], pl.from_pandas(frame), frame.convert_dtypes()):
        np.testing.assert_array_equal(clf.predict_proba(table), expected)
        np.testing.assert_array_equal(clf.predict(table), clf.predict(X))
        np.testing.assert_array_equal(clf.predict_interval(table), clf.predict_interval(X))
    for i in (0, 6, 7):
        for row in (frame.iloc[i], frame.iloc[[i]], frame.iloc[i].to_dict()):
            pd.testing.assert_frame_equal(explain(clf, row), explain(clf, X.iloc[i]))
    if clf.features == "exp":
        np.testing.assert_array_equal(win_probabilities(clf, frame), win_probabilities(clf, X))
    with pytest.raises(ValueError, match="no column 'age'"):
        clf.predict(frame.drop(columns="age"))


def test_a_table_of_numbers_may_have_gaps_when_it_is_predicted(tmp_path):
    X, y = frame_of_numbers()
    clf = clone(EM).fit(X, y)
    clf.table_ = Table.learn(X.assign(y=y), "y")
    filled = X.assign(a=X["a"].where(X["a"] > 0, X["a"].median()))
    with pytest.warns(TableWarning, match="column 'a' is missing"):
        np.testing.assert_array_equal(
            clf.predict_proba(X.where(X["a"] > 0)["a"].to_frame().assign(b=X["b"])), clf.predict_proba(filled)
        )


def test_a_model_that_is_fitted_again_forgets_its_table(tmp_path, known):
    clf, frame = clone(known[0]), frame_of_numbers()
    clf.table_ = known[0].table_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few draws
        clf.fit(*frame)
    assert not hasattr(clf, "table_")
    assert clf.predict(frame[0]).shape == (40,)


def frame_of_numbers():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"])
    return X, np.where(X["a"] > 0, "x", "y")


# Reports


def test_a_polars_frame_has_a_report_without_warnings(tmp_path):
    X, y = frame_of_numbers()
    clf = PlackettLuceClassifier(Variational(draws=50), random_state=0, features="exp").fit(pl.from_pandas(X), y)
    write_report(clf, X, pd.Series(y, name="kind"), tmp_path / "pandas.html")
    write_report(clf, pl.from_pandas(X), pl.Series("kind", y), tmp_path / "polars.html")
    assert (tmp_path / "pandas.html").read_text() == (tmp_path / "polars.html").read_text()


def test_a_report_takes_the_table_that_the_model_knows(known, tmp_path):
    clf, frame = known
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TableWarning)
        write_report(clf, frame.drop(columns="mode"), frame["mode"], tmp_path / "r.html")
    assert not [word for word in caught if word.category is TableWarning]  # the fit said how values are filled in
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "farm" in page and "Not used by the model: &#x27;planet&#x27;." in page


def test_a_folder_that_is_not_there_is_said_before_the_work(tmp_path, monkeypatch):
    X, y = frame_of_numbers()
    clf = clone(EM).fit(X, y)
    monkeypatch.setattr(type(clf), "predict_proba", lambda *_: pytest.fail("worked"))
    with pytest.raises(FileNotFoundError, match=r"^there is no folder \S+/none for x.html"):
        write_report(clf, X, y, tmp_path / "none" / "x.html")
    with pytest.raises(FileNotFoundError, match=r"^there is no folder \S+/none for x.plk"):
        clf.save(tmp_path / "none" / "x.plk")
    for write in (lambda: write_report(clf, X, y, tmp_path), lambda: clf.save(tmp_path)):
        with pytest.raises(IsADirectoryError, match="is a folder; name a file in it"):
            write()
    assert os.listdir(tmp_path) == []
