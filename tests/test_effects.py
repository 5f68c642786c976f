"""Average marginal effects, partial dependence and the relevance of columns."""

import warnings

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.special import expit, softmax
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, OneHotEncoder

from plackett import Gibbs, PlackettLuceClassifier, SparseLogitClassifier, Variational, load, plots
from plackett.data.columns import TableWarning
from plackett.data.table import Table
from plackett.output.effects import average_effects

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


COLUMNS = ["class", "feature", "effect", "lower", "upper", "positive", "effect_per_sd"]
SHORT = Gibbs(draws=60, tune=60, chains=2)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(1)
    X = pd.DataFrame({"up": rng.normal(5, 2, 300), "none": rng.normal(size=300), "on": rng.integers(0, 2, 300)})
    score = 0.7 * (X["up"] - 5) + 1.5 * X["on"] - 0.8
    return X, np.where(rng.uniform(size=300) < expit(score), "yes", "no")


@pytest.fixture(scope="module")
def logit(frame):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SparseLogitClassifier(draws=200, tune=200, chains=2, random_state=0).fit(*frame)


@pytest.fixture(scope="module")
def learned(frame):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return PlackettLuceClassifier(SHORT, random_state=0).fit(*frame)


def by_feature(table, label):
    return table[table["class"] == label].set_index("feature")


def test_effects_of_a_logit_are_those_of_its_formula(frame, logit):
    """Pr(yes) = 1/(1 + e^score): its slope is the mean of p (1 - p) coef, its difference that of two probabilities."""
    X, _ = frame
    coef, intercept = logit.posterior_.coef.reshape(-1, 2, 3)[:, 0], logit.posterior_.intercept.reshape(-1, 2)[:, 0]
    score = X.to_numpy() @ coef.T + intercept
    p = expit(-score)  # of "yes", the last class, under every draw
    found = average_effects(logit, X)
    assert found.features == ["up", "none", "on"] and found.average.draws.shape == (400, 3, 2)
    for f in (0, 1):
        slopes = -(p * (1 - p)).mean(axis=0) * coef[:, f]
        np.testing.assert_allclose(found.average.draws[:, f, 1], slopes, rtol=1e-3, atol=1e-7)
        np.testing.assert_allclose(found.average.point[f, 1], slopes.mean(), rtol=1e-3, atol=1e-7)
    off, on = (expit(-(score + (value - X["on"].to_numpy())[:, None] * coef[:, 2])) for value in (0, 1))
    np.testing.assert_allclose(found.average.draws[:, 2, 1], (on - off).mean(axis=0), atol=1e-12)
    table = by_feature(logit.effects(X, prob=0.8), "yes").loc[found.features]
    lower, upper = np.quantile(found.average.draws[:, :, 1], [0.1, 0.9], axis=0)
    for column, numbers in (("effect", found.average.point[:, 1]), ("lower", lower), ("upper", upper)):
        np.testing.assert_allclose(table[column], numbers, rtol=0.006, atol=6e-4)
    np.testing.assert_allclose(table["positive"], (found.average.draws[:, :, 1] > 0).mean(axis=0), atol=6e-4)


def test_the_table_can_be_read(frame, logit, learned):
    X, y = frame
    variational = PlackettLuceClassifier(Variational(draws=100), features="exp", random_state=0).fit(X, y)
    for clf in (logit, learned, variational):
        table = clf.effects(X)
        assert list(table) == COLUMNS and table["class"].tolist() == ["no"] * 3 + ["yes"] * 3
        assert (table["lower"] <= table["effect"]).all() and (table["effect"] <= table["upper"]).all()
        yes = by_feature(table, "yes")
        assert yes["positive"][["up", "on"]].min() > 0.98 and yes["lower"][["up", "on"]].min() > 0
        if clf is not variational:  # its intervals are narrow
            assert yes["lower"]["none"] < 0 < yes["upper"]["none"] and 0.02 < yes["positive"]["none"] < 0.98
        np.testing.assert_allclose(by_feature(table, "no")["effect"], -yes["effect"], atol=1e-12)
        assert max(map(len, table[COLUMNS[2:6]].to_string(index=False).splitlines())) <= 40
        per_sd = yes["effect"] * pd.Series({"up": X["up"].std(ddof=0), "none": X["none"].std(ddof=0), "on": 1.0})
        np.testing.assert_allclose(yes["effect_per_sd"], per_sd[yes.index], rtol=0.02, atol=1e-4)
        assert yes["effect_per_sd"].abs().is_monotonic_decreasing
        wide = clf.effects(X, prob=0.99)
        assert (wide["lower"] <= table["lower"]).all() and (wide["upper"] >= table["upper"]).all()
    with pytest.raises(ValueError, match="prob must be"):
        logit.effects(X, prob=5)


def test_the_mode_has_effects_without_intervals(frame):
    X, y = frame
    for features in ("learned", "exp"):
        table = PlackettLuceClassifier("em", shape=0.9, features=features).fit(X, y).effects(X)
        assert list(table) == COLUMNS and table[["lower", "upper", "positive"]].isna().all(axis=None)
        assert by_feature(table, "yes")["effect"]["up"] > 0.05


def test_effects_are_of_the_predictions_that_are_made(frame, learned):
    """Finite differences of predict_proba, and of a shift of several columns at once, whatever is stacked."""
    X, _ = frame
    found = average_effects(learned, X)
    for f, h in ((0, 1e-4), (1, 1e-4)):
        up, down = (X.assign(**{X.columns[f]: X.iloc[:, f] + sign * h}) for sign in (1, -1))
        slope = (learned.predict_proba(up) - learned.predict_proba(down)).mean(axis=0) / (2 * h)
        np.testing.assert_allclose(found.average.point[f], slope, rtol=2e-3, atol=1e-5)
    off, on = (learned.predict_proba(X.assign(on=value)).mean(axis=0) for value in (0, 1))
    np.testing.assert_allclose(found.average.point[2], on - off, atol=1e-12)
    np.testing.assert_array_equal(average_effects(learned, X.to_numpy()).average.point, found.average.point)


def test_effects_cover_those_that_made_the_labels():
    """Over twelve simulated tables, 90 % intervals hold the true average slopes, up to chance and the prior's pull."""
    held = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X, beta = rng.normal(size=(250, 2)), np.array([[1.2, -0.6], [0.0, 0.8], [0.0, 0.0]])
        p = softmax(X @ beta.T, axis=1)
        y = (p.cumsum(axis=1) < rng.uniform(size=(250, 1))).sum(axis=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            clf = SparseLogitClassifier(draws=150, tune=150, chains=2, random_state=seed).fit(X, y)
        true = np.stack([(p * (beta[:, f] - (p @ beta[:, f])[:, None])).mean(axis=0) for f in (0, 1)])
        found = average_effects(clf, X)
        lower, upper = np.quantile(found.average.draws, [0.05, 0.95], axis=0)
        held.append((lower <= true) & (true <= upper))
    assert 0.78 <= np.mean(held) <= 0.98  # of 72, of which 24 add up to others: a deviation of .05


def test_normal_scores_have_slopes_over_half_a_deviation(quiet):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(300, 2))
    y = (rng.uniform(size=300) < expit(3 * (Z[:, 0] + Z[:, 1]))) * 1
    X = np.exp(3 * Z)
    clf = PlackettLuceClassifier(SHORT, random_state=0).fit(X, y)
    assert clf.features_.knots is not None
    found, h = average_effects(clf, X), X[:, 0].std() / 4
    shift = np.array([h, 0.0])
    expected = (clf.predict_proba(X + shift) - clf.predict_proba(X - shift)).mean(axis=0) / (2 * h)
    np.testing.assert_allclose(found.average.point[0], expected, rtol=1e-9)


@pytest.fixture(scope="module")
def people():
    """A table with texts and gaps, encoded, and a model that knows it."""
    rng = np.random.default_rng(0)
    n = 120
    home = np.array(["town", "farm", "coast"])[rng.choice(3, n, p=[0.2, 0.5, 0.3])]
    frame = pd.DataFrame(
        {"age": rng.normal(40, 10, n), "home": home, "owns": np.where(rng.uniform(size=n) < 0.4, "no", "yes")}
    )
    y = np.where(rng.uniform(size=n) < np.where(home == "town", 0.85, 0.2), "bus", "car")
    frame.loc[::10, "home"] = None
    table = Table.learn(frame.assign(y=y), "y")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        X = table.covariates(frame)
        clf = PlackettLuceClassifier(SHORT, random_state=0).fit(X, y)
        clf.table_ = table
    return frame, X, y, clf


@pytest.mark.filterwarnings("ignore:.*is missing in:plackett.data.columns.TableWarning")
def test_levels_of_a_text_column_are_compared_with_the_most_frequent(people):
    frame, X, y, clf = people
    table = clf.effects(frame)
    lines = ["age", "home: coast vs farm", "home: town vs farm", "home: missing vs farm", "owns: no vs yes"]
    found = by_feature(table, "bus").index.tolist()
    assert sorted(found) == sorted(lines) and found[:3] == lines[1:4]  # levels stay together, and move most
    assert by_feature(table, "bus")["effect"]["home: town vs farm"] > 0.3
    found = average_effects(clf, frame)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TableWarning)
        at = {level: clf.predict_proba(frame.assign(home=level)) for level in ("farm", "town")}
        at |= {"missing": clf.predict_proba(frame.assign(home=None))}
        no, yes = (clf.predict_proba(frame.assign(owns=level)) for level in ("no", "yes"))
    kept = X.assign(**{"home is missing": 0.0, "home=farm": 1.0, "home=town": 0.0, "home=coast": 0.0})
    np.testing.assert_allclose(at["farm"], clf.predict_proba(kept), atol=1e-12)
    np.testing.assert_allclose(found.average.point[2], (at["town"] - at["farm"]).mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(found.average.point[3], (at["missing"] - at["farm"]).mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(found.average.point[4], (no - yes).mean(axis=0), atol=1e-12)
    pd.testing.assert_frame_equal(clf.effects(X), table)


def test_indicators_are_known_by_their_names_without_a_table(people):
    _, X, y, _ = people
    clf = PlackettLuceClassifier("em", shape=0.9, features="exp").fit(X, y)
    features = by_feature(clf.effects(X), "car").index.tolist()
    assert sorted(features) == ["age", "home is missing", "home: coast vs farm", "home: town vs farm", "owns=yes"]
    zero = X.assign(**{"home=coast": 0.0})
    assert "home: none of these vs farm" in set(clf.effects(zero)["feature"])


def test_a_feature_map_may_take_a_frame_with_texts(people):
    frame, _, y, _ = people
    frame = frame.fillna("unknown")
    encoded = ColumnTransformer([("home", OneHotEncoder(), ["home", "owns"]), ("age", MinMaxScaler(), ["age"])])
    clf = PlackettLuceClassifier("variational", shape=0.5, features=encoded, random_state=0).fit(frame, y)
    table = by_feature(clf.effects(frame), "bus")
    assert "home: town vs farm" in table.index and "age" in table.index
    town, farm = (clf.predict_proba(frame.assign(home=level))[:, 0].mean() for level in ("town", "farm"))
    assert table["effect"]["home: town vs farm"] == pytest.approx(town - farm, abs=1e-3)


def test_more_columns_than_rows_and_constant_ones(quiet, monkeypatch):
    monkeypatch.setattr("plackett.directions.class_task.MANY_COLUMNS", 50)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 80)), np.arange(30) % 2
    X[:, 0] += 3 * y
    X[:, 5] = 7.0
    clf = PlackettLuceClassifier(SHORT, random_state=0).fit(X, y)
    assert clf.features_.rotation is not None
    found = average_effects(clf, X)
    assert (found.average.draws[:, 5] == 0).all() and by_feature(clf.effects(X), 1)["positive"]["x5"] == 0.5
    h = 1e-3 * X[:, 0].std() * np.eye(80)[0]
    slope = (clf.predict_proba(X + h) - clf.predict_proba(X - h)).mean(axis=0) / (2 * h[0])
    np.testing.assert_allclose(found.average.point[0], slope, rtol=1e-3)


def test_of_many_rows_some_are_taken(frame, logit):
    X, _ = frame
    many = pd.concat([X] * 4, ignore_index=True)
    some = many.iloc[np.linspace(0, 1199, 400).round().astype(int)]
    np.testing.assert_allclose(
        average_effects(logit, many).average.point[2], average_effects(logit, some).average.point[2], atol=1e-12
    )


def test_errors_say_what_to_do(frame, logit):
    X, y = frame
    for empty in (X[:0], X.to_numpy()[:0]):
        with pytest.raises(ValueError, match="averages over rows, and X has none"):
            logit.effects(empty)
    with pytest.raises(ValueError, match=r"feature names should match|columns"):
        logit.effects(X.rename(columns={"up": "down"}))
    unnamed = PlackettLuceClassifier("em", shape=0.9, features="exp").fit(X.to_numpy(), y)
    with pytest.raises(ValueError, match="3 features"):
        unnamed.effects(X.to_numpy()[:, :2])
    with pytest.raises(ValueError, match="columns of a table"):
        logit.effects(sparse.csr_array(X.to_numpy()))
    with pytest.raises(ValueError, match="columns of a table.*list"):
        logit.effects(["a text"])
    for wrong in ("Up", 3, -1, None, True):
        with pytest.raises(ValueError, match=r"one of the 3 columns.*The columns are up, none, on"):
            plots.effect(logit, X, wrong)
    whole = PlackettLuceClassifier("em", shape=1.0, features=FunctionTransformer(accept_sparse=True))
    whole.fit(sparse.csr_array(np.eye(4) + 1), [0, 1, 0, 1])
    with pytest.raises(ValueError, match="columns of a table"):
        whole.effects(sparse.csr_array(np.eye(4)))


def test_partial_dependence_is_drawn(frame, learned):
    X, _ = frame
    ax = plots.effect(learned, X, "up", grid=7, prob=0.8)
    x = ax.lines[1].get_xdata()
    np.testing.assert_allclose(x, np.linspace(X["up"].min(), X["up"].max(), 7))
    expected = [learned.predict_proba(X.assign(up=value))[:, 1].mean() for value in x]
    np.testing.assert_allclose(ax.lines[1].get_ydata(), expected, atol=1e-12)
    for part, line in zip(ax.collections, ax.lines, strict=False):
        y = part.get_paths()[0].vertices[:, 1]
        assert (y.min() <= line.get_ydata().min()) and (y.max() >= line.get_ydata().max())
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["no", "yes"]
    assert ax.get_xlabel() == "up" and "80 % intervals" in ax.get_ylabel()
    assert plots.effect(learned, X, 0).get_xlabel() == "up"
    ax = plots.effect(learned, X, "on")
    assert [text.get_text() for text in ax.get_xticklabels()] == ["0", "1"]
    expected = [learned.predict_proba(X.assign(on=value))[:, 1].mean() for value in (0, 1)]
    np.testing.assert_allclose(ax.lines[1].get_ydata(), expected, atol=1e-12)


@pytest.mark.filterwarnings("ignore:.*is missing in:plackett.data.columns.TableWarning")
def test_levels_are_drawn(people):
    frame, _, _, clf = people
    ax = plots.effect(clf, frame, "home")
    assert [text.get_text() for text in ax.get_xticklabels()] == ["farm", "coast", "town", "missing"]
    assert len(ax.lines) == 2 and len(ax.collections) == 2
    mode = PlackettLuceClassifier("em").fit(people[1], people[2])
    assert len(plots.effect(mode, people[1], "home").collections) == 0


def test_relevance_is_named_and_has_intervals(frame, learned, tmp_path):
    found = learned.relevance_
    assert found.name == "relevance" and found.index.tolist() == ["up", "none", "on"]
    table = learned.relevance(0.5)
    assert table.index[-1] == "none" and table["relevance"].is_monotonic_decreasing
    pd.testing.assert_series_equal(table["relevance"].sort_index(), found.sort_index())
    half, most = table.loc[found.index], learned.relevance().loc[found.index]
    assert most["lower"].tolist() == found.attrs["lower"] and found.attrs["prob"] == 0.9
    assert (most["lower"] < half["lower"]).all() and (half["upper"] < most["upper"]).all()
    learned.save(tmp_path / "m.plk")
    pd.testing.assert_frame_equal(load(tmp_path / "m.plk").relevance(0.5), table)
    mode = PlackettLuceClassifier("em").fit(*frame)
    assert mode.relevance()[["lower", "upper"]].isna().all(axis=None)
    with pytest.raises(ValueError, match="prob must be"):
        learned.relevance(2)
    plain = PlackettLuceClassifier("em", shape=0.9, features="exp").fit(*frame)
    assert not hasattr(plain, "relevance_")
    with pytest.raises(AttributeError, match="features='learned'"):
        plain.relevance()


def test_effects_print_with_a_heading_and_without_empty_columns(frame, logit):
    X, y = frame
    lines = repr(logit.effects(X)).splitlines()
    assert lines[0].endswith("of each class, over 300 rows") and lines[2].split()[:3] == [*COLUMNS[:2], "effect_per_sd"]
    mode = PlackettLuceClassifier("em", shape=0.9, features="exp").fit(X, y).effects(X)
    assert repr(mode).splitlines()[2].split() == ["class", "feature", "effect_per_sd", "effect"]
    assert type(mode.head(2)) is pd.DataFrame and "lower" in repr(mode.head(2))
