"""What the report says is held against the model; the browser's view of it is in test_report_browser.py."""

import html
import os
import re
import warnings
from html.parser import HTMLParser

import matplotlib
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import confusion_matrix, log_loss

from plackett import Gibbs, PlackettLuceClassifier, SparseLogitClassifier, Variational, explain
from plackett.model.diagnostics import Diagnostics, Measures, diagnose
from plackett.model.verdict import STANDARD
from plackett.output.html import text
from plackett.report import write, write_report
from plackett.report.markup import number
from plackett.report.words import contributions

BAD = '<script>alert("x")</script>'


class Tables(HTMLParser):
    """The tables of a page by caption, as lists of rows of text; and every tag with its attributes."""

    def __init__(self, page):
        super().__init__()
        self.tables, self.tags, self._cell, self._caption = {}, [], None, None
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag in ("td", "th", "caption"):
            self._cell = ""
        if tag == "tr":
            self.tables[self._caption].append([])

    def handle_data(self, data):
        if self._cell is not None:
            self._cell += data

    def handle_endtag(self, tag):
        if tag == "caption":
            self._caption = self._cell
            self.tables[self._caption] = []
        if tag in ("td", "th"):
            self.tables[self._caption][-1].append(self._cell)
        if tag in ("td", "th", "caption"):
            self._cell = None


@pytest.fixture(scope="module")
def iris():
    data = load_iris(as_frame=True)
    y = data.target.map(dict(enumerate(data.target_names))).rename("species")
    return data.data[::2], y[::2], data.data[1::2], y[1::2]


@pytest.fixture(scope="module")
def clf(iris):
    return PlackettLuceClassifier(Variational(draws=100), random_state=0, features="exp").fit(iris[0], iris[1])


@pytest.fixture(scope="module")
def page(clf, iris, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "iris.html"
    write_report(clf, iris[0], iris[1], path, title="Iris", test=iris[2:])
    return path.read_text(encoding="utf-8")


def report(clf, X, y, tmp_path, **settings):
    write_report(clf, X, y, tmp_path / "out.html", **settings)
    return (tmp_path / "out.html").read_text(encoding="utf-8")


def test_the_confusion_matrix_and_errors_are_those_of_the_held_out_rows(page, clf, iris):
    X, y = iris[2:]
    tables = Tables(page).tables
    rows = next(rows for caption, rows in tables.items() if caption.startswith("Confusion"))
    matrix = np.array([[int(cell) for cell in row[1:]] for row in rows[1:]])
    np.testing.assert_array_equal(matrix, confusion_matrix(y, clf.predict(X)))
    assert f"<dd>{np.mean(clf.predict(X) != y):.1%}</dd>" in page
    assert f"<dd>{log_loss(y, clf.predict_proba(X)):.3f}</dd>" in page
    assert "66.7%" in page  # of always saying one of three equally frequent classes
    assert f"<dd>{np.log(3):.3f}</dd>" in page
    assert "These rows were held out" in page and "fitted to." not in page


def test_class_shares_are_those_of_the_fit(clf, iris, tmp_path):
    page = report(clf, iris[0][:30], iris[1][:30], tmp_path, test=(iris[2][:30], iris[3][:30]))
    assert "<dt>Errors of always saying the most frequent class</dt><dd>16.7%</dd>" in page
    entropy = -(25 * np.log(25 / 30) + 5 * np.log(5 / 30)) / 30
    assert f"shares in the fit</dt><dd>{entropy:.3f}</dd>" in page
    few = report(clf, iris[0][:30], iris[1][:30], tmp_path, test=(iris[2][20:30], iris[3][20:30]))
    assert "<dt>Errors of always saying the most frequent class</dt><dd>50.0%</dd>" in few
    assert f"shares in the fit</dt><dd>{-np.log(5 / 36) / 2:.3f}</dd>" in few  # and not ln 2, their own


def test_rows_of_the_fit_are_not_passed_off_as_held_out(clf, iris, tmp_path):
    page = report(clf, iris[0], iris[1], tmp_path)
    assert "These are the rows the model was fitted to." in page
    assert "rows of the fit itself" in page
    assert "held out:" not in page and "held-out rows, " not in page


def test_the_weight_table_holds_the_weights(page, clf):
    used = (np.quantile(clf.posterior_.flat_draws(), 0.95, axis=0).round(3) > 0).sum()
    rows = Tables(page).tables[f"The largest {used} of 27 weights, the others being about 0"]
    assert len(rows) == 1 + used < 28
    assert [re.sub("[▲▼]", "", head).strip() for head in rows[0]] == [
        "Feature",
        "Class",
        "Median",
        "5%",
        "95%",
        "Active",
    ]
    names = list(clf.features_.get_feature_names_out())
    for feature, label, weight, low, high, _ in rows[1:]:
        k, j = list(clf.classes_).index(label), names.index(feature)
        draws = clf.posterior_.flat_draws()[:, k, j]
        assert (low, weight, high) == tuple(number(q) for q in np.quantile(draws, [0.05, 0.5, 0.95]).round(3))


def test_columns_classes_and_uncertain_rows(page, clf, iris):
    tables = Tables(page).tables
    assert tables["Columns of the table"][1][0] == "sepal length (cm)"
    assert float(tables["Columns of the table"][1][5]) == pytest.approx(iris[0].iloc[:, 0].mean(), rel=0.005)
    assert {row[0]: row[1] for row in tables["Classes, the most frequent first"][1:]} == dict.fromkeys(
        clf.classes_, "25"
    )
    p = clf.predict_proba(iris[2])
    order = np.argsort((p * np.log(p)).sum(axis=1))[:10]
    assert [row[0] for row in tables["The most uncertain rows"][1:]] == [str(i) for i in iris[2].index[order]]
    assert [row[1] for row in tables["The most uncertain rows"][1:]] == list(iris[3].iloc[order])


def test_diagnostics_in_words(iris, tmp_path):
    clf = PlackettLuceClassifier(Gibbs(draws=60, tune=60, chains=2, moves="none"), random_state=3, features="exp")
    with pytest.warns(UserWarning):
        clf.fit(iris[0], iris[1])
    page = report(clf, iris[0], iris[1], tmp_path)
    found, groups = clf.diagnostics_, clf.diagnostics_.groups.items()
    assert found.grade == "not to be trusted"
    assert f'verdict bad">Predictions are not to be trusted: {found.sentence.split(": ", 1)[1]}' in page
    assert STANDARD in page and "The plots show the one of these probabilities that mixes most slowly" in page
    assert "Inference: Gibbs, 2 chains of 60 draws after 60 of tuning." in page
    assert page.count("<figure") == 11 and "The seed was 3" in page
    good = {name: Measures(1 + 0 * m.rhat, 2300 + 0 * m.ess_bulk, 2300 + 0 * m.ess_tail) for name, m in groups}
    clf.diagnostics_ = Diagnostics(good, 0.001, 0.003, 0.05)
    page = report(clf, iris[0], iris[1], tmp_path)
    assert 'verdict good">Predictions are settled: averaged probabilities are within ±0.001 of' in page
    clf.diagnostics_ = Diagnostics(good, chains=1, draws=60)
    assert 'verdict">Whether predictions are settled is unknown: a single chain' in report(
        clf, iris[0], iris[1], tmp_path
    )
    assert "The plots show the log-likelihood" in page  # of an early model file


def test_chains_are_drawn_as_they_are_judged(iris, tmp_path):
    """Chains far apart in a probability have an amber box beside a picture of just that probability."""
    clf = PlackettLuceClassifier(Gibbs(draws=40, tune=20, chains=2), random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf.fit(iris[0], iris[1])
    probability = np.random.default_rng(0).uniform(0.2, 0.3, size=(2, 40, 3, 3))
    probability[1, :, 2, 1] += 0.5
    clf.diagnostics_ = diagnose(probability=probability)
    page = report(clf, iris[0], iris[1], tmp_path)
    assert 'verdict bad">Predictions are not to be trusted: averaged' in page
    assert page.count(f"probability of {clf.classes_[1]}</text>") == 2
    name, values = clf.posterior_.quantities(clf).scalars["probability"]
    np.testing.assert_array_equal(values, probability[:, :, 2, 1])


def test_effects_and_reasons_are_those_of_the_model(page, clf, iris):
    found = clf.effects(iris[0])
    rows = Tables(page).tables["Average marginal effects"][1:]
    numbers = ["effect_per_sd", "effect", "lower", "upper", "positive"]
    held = {
        (line["feature"], str(line["class"])): [number(line[name]) for name in numbers] for _, line in found.iterrows()
    }
    assert {tuple(row[:2]): row[2:] for row in rows} == held and len(rows) == len(found)
    assert [row[0] for row in rows[:: len(clf.classes_)]] == list(found["feature"].unique())
    assert page.count('<figure id="effect') == 4
    p = clf.predict_proba(iris[2])
    i = np.argmin((p * np.log(p)).sum(axis=1))
    why, said = explain(clf, iris[2].iloc[i]), clf.classes_[p[i].argmax()]
    first = why[why["class"] == said].iloc[0]
    assert f"<h3>Why {said}? Row {iris[2].index[i]}</h3>" in page
    assert f"For {said}, of probability {p[i].max():.2f}, win {first.feature} ({first.probability:.2f})" in page


def test_contributions_are_told_in_words():
    why = pd.DataFrame({"feature": ["a", "b", "c"], "value": [1.23456, "x", 0.0], "contribution": [2.0, -1.5, 0.0]})
    why.attrs["class"] = "yes"
    assert contributions(why) == (
        "Predicted is yes; for it speaks a = 1.235 (+2.00); against it speaks b = x (-1.50). "
        "Numbers in brackets add up to log-odds."
    )
    assert contributions(why[2:]) == "No column moves this prediction."


def test_em_and_the_sparse_logit_have_reports(iris, tmp_path, quiet):
    em = PlackettLuceClassifier("em", shape=0.9, features="exp").fit(iris[0], iris[1])
    page = report(em, iris[0], iris[1], tmp_path)
    assert f"{(em.weights_ > 0).sum()} of 27 weights are not zero" in page
    assert "No whole number was given as seed" in page
    assert f"All {(em.weights_ > 0).sum()} weights" in Tables(page).tables
    logit = SparseLogitClassifier("holmes-held", draws=30, tune=30, chains=2, random_state=0).fit(iris[0], iris[1])
    page = report(logit, iris[0], iris[1], tmp_path)
    assert "sparse Bayesian multinomial logit" in page and 'id="race"' not in page and 'id="contributions"' in page
    assert "Inference: holmes-held, 2 chains of 30 draws after 30 of tuning." in page


def test_picture_and_table_of_a_logit_agree(tmp_path):
    """The same quantities, in the same unit and order, and as many of them."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(80, 8)) * 10.0 ** np.arange(-4, 4), columns=[f"column{j}" for j in range(8)])
    y = pd.Series(np.array(["a", "b", "c"])[np.argmax(X / X.std() @ rng.normal(size=(8, 3)), axis=1)], name="kind")
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        logit = SparseLogitClassifier(draws=30, tune=30, chains=2, random_state=0).fit(X, y)
    page = report(logit, X, y, tmp_path)
    rows = Tables(page).tables["All 18 coefficients"][1:]
    assert len(rows) == 18 == len(logit.summary()) and "12 of 18 coefficients" in page
    figure = page[page.index('<figure id="weights-figure"') :]
    drawn = re.findall(r">([ab]: (?:column\d|intercept))</text>", figure[: figure.index("</figure>")])
    assert drawn == [f"{label}: {feature}" for feature, label, *_ in rows[:12]]
    for feature, label, median, *_ in rows:
        k = list(logit.classes_).index(label)
        if feature != "intercept":
            j = list(X.columns).index(feature)
            expected = np.median(logit.posterior_.coef[:, :, k, j]) * X[feature].std(ddof=0)
            assert float(median) == pytest.approx(expected, abs=0.01 * abs(expected) + 6e-4)


@pytest.mark.parametrize("length", [1, 26, 30, 34, 60])
def test_long_labels_leave_room_for_the_picture(length):
    from plackett.report.figures import figure

    seen = []

    def draw(ax):
        ax.set(yticks=[0], yticklabels=["W" * length])
        seen.append(ax)

    figure("long", draw, "alt", "caption")
    assert seen[-1].get_window_extent().width / seen[-1].figure.dpi >= 1.5
    assert (seen[-1].figure.get_figwidth() == 4.4) or length > 1


def test_no_text_of_a_figure_is_cut():
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from plackett.report.figures import LOOK, figure

    words = "a label that is much longer than the axes are wide, so that it reaches beyond both ends of them"

    def draw(ax):
        ax.set(xlabel=words, title=words, yticks=[0], yticklabels=["a name of forty characters, more or less"])

    svg = figure("long", draw, "alt", "caption")
    left, _, width, _ = (float(v) for v in re.search(r'viewBox="([^"]*)"', svg).group(1).split())
    with matplotlib.rc_context(LOOK):
        canvas = FigureCanvasAgg(Figure(dpi=720))
        needed = canvas.figure.text(0, 0, words).get_window_extent(canvas.get_renderer()).width / 10
    places = [float(x) for x, text in re.findall(r'x="([\d.-]+)"[^>]*>([^<]*)</text>', svg) if text == words]
    assert places and all(left <= x - needed / 2 and x + needed / 2 <= left + width for x in places)


def test_learned_directions_have_a_report(iris, tmp_path):
    clf = PlackettLuceClassifier(Gibbs(draws=8, tune=8, chains=2), features="learned", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # sixteen draws do not settle anything
        clf.fit(iris[0][::2], iris[1][::2])
    page = report(clf, iris[0][::2], iris[1][::2], tmp_path, test=iris[2:])
    rows = Tables(page).tables["Relevance of columns"][1:]
    expected = [(line[0], *map(number, line[1:])) for line in clf.relevance().itertuples()]
    assert [tuple(row) for row in rows] == expected
    assert 'id="trace"' in page and 'id="race"' not in page
    assert f"<h1>Predicting {iris[1].name} from 4 columns: {len(iris[0][::2])} rows</h1>" in page
    entropy = -(clf.predict_proba(iris[2]) * np.log(clf.predict_proba(iris[2]))).sum(axis=1)
    why = explain(clf, iris[2].iloc[[int(np.argmax(entropy))]])
    drawn = page[page.index('<figure id="contributions"') :]
    assert f"to the log-odds of {why.attrs['class']} for Row" in drawn
    assert f"{why['feature'][0]} = {why['value'][0]}: {why['contribution'][0]:+.2f}" in drawn
    assert "Inference: Gibbs, 2 chains of 8 draws after 8 of tuning." in page and "Hamilton" not in page
    settings = dict(row for row in Tables(page).tables["Settings"][1:])
    assert settings["inference__draws"] == settings["inference__tune"] == "8"


def test_nothing_a_user_named_becomes_markup(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 3)), columns=[BAD, "a&b\x00", "$x^{"])
    X.index = [f"{BAD}{i}" for i in range(60)]
    y = pd.Series(np.where(X.iloc[:, 0] > 0, BAD, "'\"><img src=x onerror=alert(1)>"), name=BAD)
    clf = PlackettLuceClassifier(Variational(draws=50), random_state=0, features="exp").fit(X, y)
    page = report(clf, X, y, tmp_path, title=BAD)
    tags = Tables(page).tags
    assert [tag for tag, _ in tags].count("script") == 1
    assert not [tag for tag, _ in tags if tag in ("img", "iframe", "object")]
    assert not [a for _, attributes in tags for a in attributes if a.startswith("on")]
    assert html.escape(f"exp({BAD})") in page and f"<h1>{html.escape(BAD)}</h1>" in page
    assert "\x00" not in page


def test_nothing_is_loaded_from_outside(page):
    for tag, attributes in Tables(page).tags:
        for name in ("src", "href", "xlink:href", "action", "data"):
            assert attributes.get(name, "#").startswith(("#", "data:")), (tag, attributes)
    assert "@import" not in page and not re.search(r"url\((?!#)", page)


def test_unknown_classes_count_as_errors(clf, iris, tmp_path):
    X, y = iris[2:]
    strange = y.where(y != "setosa", "daisy")
    page = report(clf, iris[0], iris[1], tmp_path, test=(X, strange))
    assert "25 rows have a class that the model does not know" in page
    assert f"<dd>{np.mean(clf.predict(X) != strange):.1%}</dd>" in page
    assert "daisy (true)" in page
    with pytest.raises(ValueError, match="no label is a class of the model"):
        report(clf, iris[0], iris[1], tmp_path, test=(X, y.str.upper()))


def test_rows_of_another_table_are_all_held_out(clf, iris, tmp_path):
    X, y = iris[2:]
    page = report(clf, X, y, tmp_path, test=(X, y))
    assert "Rows, all held out" in page and "These rows were held out" in page
    assert "<dt>Rows held out</dt>" not in page


def test_one_class_only_has_no_roc(clf, iris, tmp_path):
    one = iris[3] == "setosa"
    page = report(clf, iris[0], iris[1], tmp_path, test=(iris[2][one], iris[3][one]))
    assert "need rows of at least two classes" in page and 'id="roc"' not in page


def test_two_classes_arrays_and_many_columns(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 201))
    y = (X[:, 0] > 0) * 1
    page = report(PlackettLuceClassifier("em", shape=0.8, features="exp").fit(X, y), X, y, tmp_path)
    assert "The first 200 of 201 columns are listed." in page
    assert "There are 201 columns, whose effects would take long" in page and "Average marginal effects" not in page


def test_a_failed_write_leaves_the_old_report(clf, iris, tmp_path, monkeypatch):
    path = tmp_path / "out.html"
    path.write_text("old")

    def fail(*_):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        write_report(clf, iris[0], iris[1], path)
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["out.html"]


def test_from_the_command_line(iris, tmp_path):
    from typer.testing import CliRunner

    from plackett.cli.commands import app

    table = pd.concat([iris[0].assign(species=iris[1]), iris[2].assign(species=iris[3])])
    table.to_csv(tmp_path / "iris.csv", index=False)
    run = CliRunner().invoke
    fit = ["fit", "iris.csv", "--target", "species", "--inference", "em", "--shape", "1", "--test", "0.2", "--out", "m"]
    make = ["report", "m", "iris.csv", "--out", "r.html", "--title", "From a file"]
    for command in (fit, make):
        result = run(app, [str(tmp_path / word) if word in ("iris.csv", "m", "r.html") else word for word in command])
        assert result.exit_code == 0, result.output
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<h1>From a file</h1>" in page and "These rows were held out" in page
    assert "<dd>120</dd>" in page and "<dt>Rows held out</dt><dd>30</dd>" in page


def test_rows_and_labels_must_match(clf, iris, tmp_path):
    with pytest.raises(ValueError, match="75 rows and 74 labels"):
        report(clf, iris[0], iris[1][1:], tmp_path)
    assert not os.listdir(tmp_path)
    assert write.write_report is write_report


def test_numbers_and_text():
    assert [number(v) for v in (0, 3.0, 1234.5, 0.12345, 0.00012, 1e-300, -2.5, np.nan)] == [
        "0", "3", "1,234", "0.123", "1.2e-04", "≈ 0", "-2.5", "–"
    ]  # fmt: skip
    assert text("<a>\n'&") == "&lt;a&gt; &#x27;&amp;"
