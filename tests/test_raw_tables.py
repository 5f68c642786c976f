"""Models that take data frames with texts and missing values, and pipelines with `TableEncoder`."""

import warnings
from io import StringIO

import matplotlib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from commands import mistake, plackett
from plackett import (
    ChoiceSets,
    PlackettLuceChooser,
    PlackettLuceClassifier,
    PlackettLuceRanker,
    Rankings,
    SparseLogitClassifier,
    TableEncoder,
    effects,
    explain,
    load,
    plots,
    win_probabilities,
)
from plackett.data.columns import TableError, TableWarning
from plackett.report import write_report

matplotlib.use("Agg")
import matplotlib.pyplot as plt

SHORT = {"draws": 20, "tune": 20, "chains": 2, "random_state": 0}


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def people(n=120, seed=0):
    rng = np.random.default_rng(seed)
    age = rng.integers(18, 90, size=n).astype(float)
    home = rng.choice(["farm", "town", "city"], size=n)
    y = np.where(age + 30 * (home == "farm") + rng.normal(0, 10, n) > 60, "bus", "car")
    age[5:9] = np.nan
    owns = rng.random(n) < 0.5
    return pd.DataFrame({"age": age, "home": home, "owns": owns}), pd.Series(y, name="mode")


@pytest.fixture(scope="module")
def fitted():
    X, y = people()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        clf = PlackettLuceClassifier("em").fit(X, y)
    return X, y, clf, [str(each.message) for each in caught if each.category is TableWarning]


@pytest.fixture(scope="module")
def pipe():
    return make_pipeline(TableEncoder(), PlackettLuceClassifier("em")).fit(*people())


def test_a_table_is_fitted_as_by_the_encoder_and_told_once(fitted, pipe):
    X, _, clf, told = fitted
    assert told == [
        "column 'age' is missing in 4 of 120 rows: filled in with the median "
        f"{X['age'].median():g}; a new column 'age is missing' marks these rows."
    ]
    assert [column.name for column in clf.columns_] == ["age", "home", "owns"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # nothing is told again
        np.testing.assert_allclose(clf.predict_proba(X), pipe.predict_proba(X), rtol=1e-9)
        again = clf.predict_proba(pl.from_pandas(X)[["home", "owns", "age"]])  # in any order
    np.testing.assert_array_equal(again, clf.predict_proba(X))
    with warnings.catch_warnings(action="ignore", category=TableWarning):  # a half has no missing ages
        scores = cross_val_score(clone(clf), X, people()[1], cv=2)
    assert scores.min() > 0.6 and not hasattr(clone(clf), "columns_")


def test_explanations_effects_and_plots_speak_of_the_table(fitted, pipe):
    X, y, clf, _ = fitted
    for model in (clf, pipe):
        why = explain(model, X.iloc[0])
        held = dict(zip(why["feature"], why["value"], strict=True))
        assert held == {"age": X["age"][0], "age is missing": 0.0, "home": X["home"][0], "owns": float(X["owns"][0])}
        found = effects(model, X)
        assert {"age", "home: farm vs town"} <= set(found["feature"].str.replace("city", "town"))
        for function, arguments in (
            (plots.effect, (X, "home")),
            (plots.contributions, (X.iloc[0],)),
            (plots.probabilities, (X.iloc[[0]],)),
            (plots.relevance, ()),
            (plots.roc, (X, y)),
            (plots.calibration, (X, y)),
            (plots.decision_boundary, (X, y)),
        ):
            function(model, *arguments).figure.canvas.draw()
    pd.testing.assert_frame_equal(effects(pipe, X), pipe[-1].effects(pipe[:-1].transform(X)), check_exact=False)


def test_other_pipelines_are_explained_by_their_columns():
    X, y = people()
    X = X[["age"]].fillna(50.0).assign(other=np.arange(120) % 7)
    pipe = make_pipeline(StandardScaler(), PlackettLuceClassifier("variational", features="exp", random_state=0))
    pipe.fit(X, y)
    wins = win_probabilities(pipe, X)
    np.testing.assert_allclose(wins.sum(axis=2), pipe.predict_proba(X), rtol=1e-9)
    why = explain(pipe, X.iloc[0])
    assert why["probability"].sum() == pytest.approx(1)
    assert plots.race(pipe, X.iloc[0]).get_xlabel() and plots.weights(pipe).get_xlabel()


@pytest.mark.parametrize("piped", [False, True])
def test_reports_and_model_files_take_the_table(fitted, pipe, piped, tmp_path):
    X, y, clf, _ = fitted
    model = pipe if piped else clf
    with warnings.catch_warnings():
        warnings.simplefilter("error", TableWarning)
        write_report(model, X[:80], y[:80], tmp_path / "r.html", test=(X[80:], y[80:]))
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Predicting mode from 3 columns" in page and "home: farm vs" in page
    assert "covariates are made of 3 columns" in page
    if not piped:
        clf.save(tmp_path / "m.plk")
        same = load(tmp_path / "m.plk")
        np.testing.assert_array_equal(same.predict_proba(X), clf.predict_proba(X))
        pd.testing.assert_frame_equal(explain(same, X.iloc[3]), explain(clf, X.iloc[3]))


@pytest.mark.filterwarnings("ignore")
def test_the_logit_and_the_ranker_take_tables_too(tmp_path):
    X, y = people()
    logit = SparseLogitClassifier(**SHORT).fit(X, y)
    R = Rankings.from_orders([["bus", "car"] if label == "bus" else ["car", "bus"] for label in y])
    ranker = PlackettLuceRanker("em").fit(X, R)
    for model, name in ((logit, "l.plk"), (ranker, "r.plk")):
        assert [column.name for column in model.columns_] == ["age", "home", "owns"]
        assert set(explain(model, X.iloc[7])["feature"]) >= {"age", "home", "owns"}
        model.save(tmp_path / name)
        np.testing.assert_array_equal(load(tmp_path / name).predict(X), model.predict(X))


def test_a_fit_to_numbers_forgets_the_table():
    X, y = people()
    with warnings.catch_warnings(action="ignore"):
        clf = PlackettLuceClassifier("em", features="exp", shape=1).fit(X, y)
    assert hasattr(clf, "columns_")
    clf.fit(X[["age"]].fillna(0.0).assign(b=1.0), y)
    assert not hasattr(clf, "columns_") and list(clf.feature_names_in_) == ["age", "b"]


def test_categories_are_levels_and_objects_may_be_numbers():
    X, y = people()
    X = pd.DataFrame(
        {"code": pd.Categorical(np.arange(120) % 3), "age": X["age"].astype(object).where(X["age"] > 0, None)}
    )
    with warnings.catch_warnings(action="ignore"):
        clf = PlackettLuceClassifier("em", features="exp", shape=1).fit(X, y)
    assert list(clf.feature_names_in_) == ["code=0", "code=1", "code=2", "age", "age is missing"]


def test_what_cannot_be_encoded_is_refused_in_words():
    X, y = people()
    with pytest.raises(TableError, match=r"like an identifier.*make_pipeline\(plackett.TableEncoder\(\), Plackett"):
        PlackettLuceClassifier("em").fit(X.assign(id=[f"p{i}" for i in range(120)]), y)
    with pytest.raises(ValueError, match="column 'day' holds dates or times such as"):
        PlackettLuceClassifier("em").fit(X.assign(day=pd.Timestamp("2024-01-03")), y)
    with pytest.raises(ValueError, match="column 0 holds NaN in 4 of 120 rows"):
        PlackettLuceClassifier("em").fit(X[["age"]].to_numpy(), y)
    with warnings.catch_warnings(action="ignore"):
        clf = PlackettLuceClassifier("em", features="exp", shape=1).fit(X, y)
    with pytest.raises(TableError, match="there is no column 'home'; did you mean"):
        clf.predict(X.rename(columns={"home": "homes"}))
    with pytest.warns(TableWarning, match="column 'owns' is missing in 1 of 120 rows"):
        clf.predict(X.assign(owns=X["owns"].astype(object).where(X.index > 0, None)))


@pytest.mark.parametrize("how", ["long", "wide"])
def test_persons_who_choose_may_be_described_by_texts(how):
    rng = np.random.default_rng(0)
    wide = pd.DataFrame({f"cost_{a}": rng.integers(1, 5, 90) for a in ("bus", "car")})
    wide["home"] = rng.choice(["farm", "town"], 90)
    wide["y"] = np.where((wide["home"] == "farm") == (rng.random(90) < 0.8), "car", "bus")
    if how == "wide":
        sets = ChoiceSets.from_wide(wide, alternatives=["bus", "car"], attributes=["cost"], person=["home"])
    else:
        parts = [wide.assign(t=wide.index, by=a, cost=wide[f"cost_{a}"]) for a in ("bus", "car")]
        columns = {"situation": "t", "alternative": "by", "attributes": ["cost"], "person": ["home"]}
        sets = ChoiceSets.from_long(pd.concat(parts), **columns)
    model = PlackettLuceChooser("em", features="linear").fit(sets, wide["y"])
    assert any("home=town" in name for name in model.summary()["column"])
    why = explain(model, sets[0])
    assert why.loc[why["of"] == "person", "value"].tolist() == [wide["home"][0]]


def test_the_command_line_predicts_by_a_model_that_was_saved_in_python(fitted, tmp_path):
    X, _, clf, _ = fitted
    clf.save(tmp_path / "m.plk")
    X.to_csv(tmp_path / "people.csv", index=False)
    done = plackett("predict", tmp_path / "m.plk", tmp_path / "people.csv")
    assert done.exit_code == 0, done.output
    table = pd.read_csv(StringIO(done.stdout))
    np.testing.assert_allclose(table[["p_bus", "p_car"]], clf.predict_proba(X), rtol=1e-5)
    line = mistake("report", tmp_path / "m.plk", tmp_path / "people.csv", "--out", tmp_path / "r.html")
    assert "does not know the table of its fit" in line


def test_three_levels_of_a_text_are_two_columns_in_conditional_logit():
    rng = np.random.default_rng(0)
    wide = pd.DataFrame({f"cost_{a}": rng.integers(1, 5, 90) for a in ("bus", "car")})
    wide["home"] = rng.choice(["farm", "town", "city"], 90)
    y = np.where((wide["home"] == "farm") == (rng.random(90) < 0.8), "car", "bus")
    sets = ChoiceSets.from_wide(wide, alternatives=["bus", "car"], attributes=["cost"], person=["home"])
    model = PlackettLuceChooser("em", features="linear").fit(sets, y)
    dummies = wide.join(pd.get_dummies(wide["home"], dtype=float).drop(columns="city")).drop(columns="home")
    own = ChoiceSets.from_wide(dummies, alternatives=["bus", "car"], attributes=["cost"], person=["farm", "town"])
    by_hand = PlackettLuceChooser("em", features="linear").fit(own, y)
    np.testing.assert_allclose(model.coefficients()["coefficient"], by_hand.coefficients()["coefficient"], rtol=1e-9)
