"""Reports on choices and rankings: their numbers are those of the library, and nothing is there that does not apply."""

import html
import re
import warnings
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from plackett import EM, ChoiceSets, Gibbs, PlackettLuceChooser, PlackettLuceRanker, Rankings, explain
from plackett.directions import LearnedDirections
from plackett.output.constants import choice_constants, quality_of_choices, quality_of_constants, worths
from plackett.report import write_report
from plackett.responses import make_response

LABELS = ["bus", "car", "<b>walk</b>"]


class Tables(HTMLParser):
    """The tables of a page by caption, and its headings."""

    def __init__(self, page):
        super().__init__()
        self.tables, self.headings, self.rows, self.cell, self.caption = {}, [], [], None, None
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        if tag == "table":
            self.rows = []
        elif tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th", "caption", "h2", "h3"):
            self.cell = ""

    def handle_data(self, data):
        if self.cell is not None:
            self.cell += data

    def handle_endtag(self, tag):
        if tag == "caption":
            self.caption = self.cell
        elif tag in ("td", "th"):
            self.rows[-1].append(self.cell)
        elif tag in ("h2", "h3"):
            self.headings.append(self.cell)
        elif tag == "table":
            self.tables[self.caption] = self.rows
        if tag in ("td", "th", "caption", "h2", "h3"):
            self.cell = None


def trips(n=80, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({f"{x}_{a}": rng.integers(1, 5, n) / 1.0 for a in LABELS for x in ("cost", "time")})
    frame["income"] = rng.normal(size=n)
    utility = np.column_stack([-0.5 * frame[f"cost_{a}"] - frame[f"time_{a}"] for a in LABELS])
    utility[:, 1] += 0.8 * frame.income
    y = np.array(LABELS)[np.argmax(utility + rng.gumbel(size=utility.shape), axis=1)]
    return ChoiceSets.from_wide(frame, alternatives=LABELS, attributes=["cost", "time"], person=["income"]), y


def orders(n=60, seed=0):
    rng = np.random.default_rng(seed)
    times = rng.exponential(size=(n, 4)) / [8, 4, 2, 1]
    return Rankings.from_orders(
        np.array(["Ann", "Bob", "<i>Cy</i>", "Dee"])[times.argsort(axis=1)][:, :3], unranked="last"
    )


@pytest.fixture(scope="module")
def chooser():
    X, y = trips()
    model = PlackettLuceChooser(
        Gibbs(draws=30, tune=20, chains=2), features=LearnedDirections(components=1), random_state=0
    )
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        model.fit(X[:60], y[:60])
    return model, X, y


@pytest.fixture(scope="module")
def of_choices(chooser, tmp_path_factory):
    model, X, y = chooser
    path = tmp_path_factory.mktemp("report") / "choices.html"
    write_report(model, X[:60], y[:60], path, test=(X[60:], y[60:]))
    return path.read_text(encoding="utf-8")


def test_a_report_on_choices_has_its_sections_and_no_others(of_choices):
    sections = re.findall(r"<h2[^>]*>(.*?)</h2>", of_choices)
    assert sections == [
        "Data",
        "Model and diagnostics",
        "Coefficients",
        "Fit",
        "Effects and elasticities",
        "Predictions",
        "Why? A few situations",
        "How to cite, settings, versions",
    ]
    for name in ("trace", "rank", "elasticity0", "elasticity1", "why0"):
        assert f'<figure id="{name}"' in of_choices
    assert 'id="roc"' not in of_choices and "<b>walk" not in of_choices and html.escape("<b>walk</b>") in of_choices


def test_its_numbers_are_those_of_the_library(of_choices, chooser):
    model, X, y = chooser
    found = Tables(of_choices).tables
    own = quality_of_choices(model, X[60:], y[60:])
    assert own.right == model.score(X[60:], y[60:])
    np.testing.assert_allclose(own.log_likelihood, model.log_likelihood(X[60:], y[60:]).mean())
    alone = quality_of_constants(choice_constants(X[:60], y[:60]), X[60:], y[60:])
    rows = {row[0]: row[1:] for row in found["How well choices are predicted"]}
    assert rows["This model"] == [f"{own.log_likelihood:.3g}", f"{100 * own.right:.3g}"]
    assert rows["Constants alone"] == [f"{alone.log_likelihood:.3g}", f"{100 * alone.right:.3g}"]
    assert rows["Equal chances"][0] == f"{np.log(1 / 3):.3g}"
    counts = {row[0]: int(row[2]) for row in found["Alternatives"][1:]}
    assert counts == {label: int((y[:60] == label).sum()) for label in LABELS}
    elastic = model.elasticities(X[:60], "cost")
    listed = [row for row in found["Elasticities"] if row[0] == "cost" and row[1] == row[2] == "bus"]
    bus = elastic[(elastic.of == "bus") & (elastic.alternative == "bus")]
    assert listed[0][3] == f"{bus.elasticity.iloc[0]:.3g}"


def test_situations_are_explained(of_choices, chooser):
    model, X, _ = chooser
    p = model.predict_proba(X[60:])
    entropy = -(p * np.log(p)).sum(axis=1)
    t = 60 + int(entropy.argmax())
    why = explain(model, X[t])
    heading = next(h for h in Tables(of_choices).headings if h.startswith(f"Situation {t}, the least certain"))
    assert f"predicted is {why.attrs['class']}" in heading
    first = why.iloc[0]
    assert html.escape(f"{first.of} {first.feature} = {first.value:.4g}: {first.contribution:+.2f}") in of_choices


def test_fixed_features_after_em_have_no_interval_and_win_races(tmp_path):
    X, y = trips()
    model = PlackettLuceChooser(EM(max_iter=30), shape=1.0, features="exp", random_state=0)
    model.fit(X, y)
    write_report(model, X, y, tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    found = Tables(page).tables
    assert "These are the situations the model was fitted to" in page and 'id="trace"' not in page
    assert found["Elasticities"][0] == ["Attribute", "Of", "Probability of", "Elasticity"]
    assert any("who arrives first" in caption for caption in found) and 'id="why0"' not in page


def test_constants_alone_are_shares_where_all_is_available():
    X, y = trips()
    shares = np.array([(y == label).mean() for label in LABELS])
    found = np.exp(choice_constants(X, y))
    np.testing.assert_allclose(found / found.sum(), shares, atol=1e-3)
    quality = quality_of_constants(np.log(shares), X, y)
    np.testing.assert_allclose(quality.log_likelihood, shares @ np.log(shares))
    assert quality.right == shares.max()


def test_worths_alone_are_the_mode_of_the_ranker():
    R = orders()
    found = worths(R.outcomes, R.item, 4, make_response("ranking"))
    mode = PlackettLuceRanker(EM(tol=1e-9), shape=1.01).fit(None, R)
    np.testing.assert_allclose(found - found.mean(), mode.worth()["log_worth"][R.items], atol=1e-4)


@pytest.fixture(scope="module")
def ranker():
    R = orders()
    model = PlackettLuceRanker(Gibbs(draws=100, tune=50, chains=2), random_state=0)
    return model.fit(None, R[:50]), R


def test_a_report_on_rankings(ranker, tmp_path):
    model, R = ranker
    write_report(model, None, R[:50], tmp_path / "r.html", title="Ballots", test=(None, R[50:]))
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    sections = re.findall(r"<h2[^>]*>(.*?)</h2>", page)
    assert sections == ["Data", "Model and diagnostics", "Worths", "Predictions", "How to cite, settings, versions"]
    for name in ("trace", "rank", "worth-figure", "places", "better"):
        assert f'<figure id="{name}"' in page
    found, worth = Tables(page).tables, model.worth()
    assert [row[0] for row in found["Worths"][1:]] == worth.index.tolist()
    assert found["Worths"][1][1] == f"{worth['worth'].iloc[0]:.3g}"
    rows = {row[0]: row[1:] for row in found["How well rankings are predicted"]}
    assert rows["This model"][0] == f"{model.score(None, R[50:]):.3g}"
    assert rows["Equal chances"][0] == f"{-np.log(24):.3g}" and "Worths alone" not in page
    first = np.array([order[0] for order in R[50:].to_orders()])
    assert rows["This model"][1] == f"{100 * (first == worth.index[0]).mean():.3g}"
    assert "<h1>Ballots</h1>" in page and "<i>Cy" not in page and "These rankings were held out" in page


def test_a_report_on_rankings_with_covariates(tmp_path):
    R, rng = orders(), np.random.default_rng(0)
    X = pd.DataFrame({"age": rng.normal(size=60), "pay": rng.normal(size=60)})
    model = PlackettLuceRanker(EM(max_iter=30), shape=1.5, features="exp", random_state=0).fit(X, R)
    write_report(model, X, R, tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    rows = {row[0]: row[1:] for row in Tables(page).tables["How well rankings are predicted"]}
    assert "Worths alone, the same for everyone" in rows and 'id="places"' not in page and "exp(age)" in page
    np.testing.assert_allclose(float(rows["This model"][0]), model.score(X, R), rtol=5e-3)


def test_groups_are_for_choices_alone(ranker, tmp_path):
    model, R = ranker
    with pytest.raises(ValueError, match="groups would be ignored"):
        write_report(model, None, R, tmp_path / "r.html", groups=np.arange(60))
