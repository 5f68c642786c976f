"""What a fitted model tells about itself: the data frame, `repr`, HTML, and progress in a notebook."""

import contextlib
import sys
import threading
import types
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from plackett import Gibbs, PlackettLuceClassifier, SparseLogitClassifier, Variational
from plackett.model.diagnostics import diagnose_weights, probed_probabilities
from plackett.output.progress import _times, progress_bar
from plackett.output.summary import verdict
from plackett.posterior.weights import Draws

COLUMNS = ["class", "feature", "median", "5%", "95%", "active", "ess", "rhat"]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(90, 2)), columns=["size", "<script>alert(1)</script>"])
    y = np.array(["small", "large", "<b>odd</b>"])[np.digitize(X["size"] + 0.3 * rng.normal(size=90), [-0.5, 0.5])]
    return X, y


@pytest.fixture(scope="module")
def gibbs(table):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return PlackettLuceClassifier(
            Gibbs(draws=100, tune=100, chains=2), shape=0.1, random_state=0, features="exp"
        ).fit(*table)


@pytest.fixture(scope="module")
def logit(table):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return SparseLogitClassifier("holmes-held", draws=100, tune=50, chains=2, random_state=0).fit(*table)


def in_matrix(clf, frame, column):
    """A column of the summary by class and feature, as the weights are."""
    table = frame.pivot(index="class", columns="feature", values=column)
    return table.loc[clf.classes_, clf._feature_names()].to_numpy()


def test_summary_of_draws(gibbs):
    frame = gibbs.summary()
    assert list(frame) == COLUMNS and len(frame) == 15
    draws = np.exp(gibbs.posterior_.log_weights).reshape(-1, 3, 5)
    for column, expected in (
        ("median", np.median(draws, axis=0)),
        ("5%", np.quantile(draws, 0.05, axis=0)),
        ("95%", np.quantile(draws, 0.95, axis=0)),
    ):
        np.testing.assert_array_equal(in_matrix(gibbs, frame, column), expected.round(3))
    np.testing.assert_array_equal(in_matrix(gibbs, frame, "active"), (draws > 1 / 150).mean(axis=0).round(2))
    found = gibbs.diagnostics_
    np.testing.assert_array_equal(in_matrix(gibbs, frame, "rhat"), found.rhat.round(2))
    np.testing.assert_array_equal(in_matrix(gibbs, frame, "ess"), np.minimum(found.ess_bulk, found.ess_tail).round())


def test_the_summary_can_be_read(gibbs, logit):
    for clf in (gibbs, logit):
        frame = clf.summary()
        assert frame["median"].abs().is_monotonic_decreasing
        assert (frame["5%"] <= frame["median"]).all() and (frame["median"] <= frame["95%"]).all()
        numbers = frame[COLUMNS[2:]].to_string(index=False)
        assert max(map(len, numbers.splitlines())) <= 45 and "e-" not in numbers  # 35 are left for the names


def test_equal_medians_are_in_the_order_of_means(gibbs):
    clf = clone(gibbs)
    clf.classes_, clf.features_, clf.trace_, clf.n_iter_ = gibbs.classes_, gibbs.features_, gibbs.trace_, gibbs.n_iter_
    clf.shape_ = gibbs.shape_
    weights = np.full((1, 10, 3, 5), 1e-30)
    weights[:, :, 2, 4] = 0.9
    weights[:, :4, 1, 3] = 0.1  # in less than half of the draws: the median is nothing
    clf.posterior_, clf.diagnostics_ = Draws(np.log(weights), np.ones((1, 10))), None
    clf.weights_ = clf.posterior_.weights
    first = clf.summary().head(2)
    assert first["class"].tolist() == [clf.classes_[2], clf.classes_[1]]
    assert first["median"].tolist()[1] == 0 < first["95%"].tolist()[1]


def test_width_of_the_interval(gibbs):
    frame = gibbs.summary(prob=0.5)
    draws = np.exp(gibbs.posterior_.log_weights).reshape(-1, 3, 5)
    np.testing.assert_array_equal(in_matrix(gibbs, frame, "75%"), np.quantile(draws, 0.75, axis=0).round(3))
    assert "25%" in frame
    with pytest.raises(ValueError, match="prob must be"):
        gibbs.summary(prob=5)


def test_summary_of_the_approximation_and_of_the_mode(table):
    fast = PlackettLuceClassifier("variational", shape=0.1, random_state=0, features="exp").fit(*table)
    frame = fast.summary()
    assert list(frame) == COLUMNS[:-2]
    np.testing.assert_allclose(in_matrix(fast, frame, "median"), fast.weights_, atol=0.05)
    assert frame["active"].between(0, 1).all() and (frame["5%"] <= frame["95%"]).all()
    mode = PlackettLuceClassifier("em", shape=0.5, features="exp").fit(*table)
    frame = mode.summary()
    assert list(frame) == ["class", "feature", "mode"] and frame["mode"].is_monotonic_decreasing
    np.testing.assert_array_equal(in_matrix(mode, frame, "mode"), mode.weights_.round(3))
    assert 0 < (frame["mode"] > 0).sum() < 15


def test_summary_of_the_logit(table, logit):
    X, _ = table
    frame = logit.summary()
    assert list(frame) == COLUMNS and len(frame) == 2 * 3
    names = ["intercept", *X.columns]
    by_name = {
        column: frame.pivot(index="class", columns="feature", values=column).loc[logit.classes_[:2], names].to_numpy()
        for column in ("median", "active", "rhat")
    }
    draws = logit.posterior_
    coef = draws.coef[:, :, :2] * X.std(ddof=0).to_numpy()
    average = draws.intercept[:, :, :2] + draws.coef[:, :, :2] @ X.mean().to_numpy()
    expected = np.concatenate([average[..., None], coef], axis=-1).reshape(-1, 2, 3)
    np.testing.assert_allclose(by_name["median"], np.median(expected, axis=0), atol=6e-4)
    np.testing.assert_allclose(by_name["active"], (np.abs(expected) > 0.1).mean(axis=0), atol=6e-3)
    np.testing.assert_allclose(by_name["rhat"][:, 1:], logit.diagnostics_.coef.rhat[:2], atol=6e-3)


def test_few_draws_have_no_diagnostics(table):
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)  # nothing is known to be wrong
        clf = PlackettLuceClassifier(Gibbs(draws=2, tune=2, chains=1), shape=1.0, random_state=0, features="exp").fit(
            *table
        )
    assert list(clf.summary()) == COLUMNS[:-2] and "too few" in repr(clf)


def test_repr(table, gibbs, logit):
    unfitted = clone(gibbs)
    assert repr(unfitted).startswith("PlackettLuceClassifier(features='exp', inference=Gibbs(") and "\n  " not in repr(
        unfitted
    )
    assert repr(gibbs).startswith(repr(unfitted)) and "3 classes × 5 features, shape a = 0.1\n" in repr(gibbs)
    assert verdict(gibbs) in repr(gibbs) and "Gibbs, 2 chains of 100 draws after 100 of tuning: " in verdict(gibbs)
    assert "penalty θ = " in repr(logit)
    assert "holmes-held, 2 chains of 100 draws after 50 of tuning: " in repr(logit)
    learned = PlackettLuceClassifier(Variational(draws=20), random_state=0, features="exp").fit(*table)
    assert f"shape a = {learned.shape_:.3g} (learned)" in repr(learned)


def test_verdicts(gibbs):
    rng = np.random.default_rng(0)
    clf, apart = clone(gibbs), np.arange(4)[:, None, None, None] * np.arange(3)[:, None]
    for weights, words in (
        (rng.normal(size=(4, 500, 3, 5)), "predictions are settled: averaged probabilities are within ±0.00"),
        (
            rng.normal(size=(4, 500, 3, 5)) + apart,
            "predictions are not to be trusted: averaged probabilities may differ",
        ),
    ):
        clf.posterior_ = Draws(weights, rng.gamma(1.0, size=(4, 500)))
        clf.diagnostics_ = diagnose_weights(clf.posterior_, True, probed_probabilities(clf.posterior_, np.ones((1, 5))))
        clf.trace_, clf.weights_, clf.n_iter_ = np.zeros((4, 500)), clf.posterior_.weights, 2100
        assert words in verdict(clf)
        assert "Gibbs, 4 chains of 500 draws, thinned from 2,000, after 100 of tuning" in verdict(clf)
        assert ("to read single weights, go on with Gibbs(target_ess=400): " in verdict(clf)) == ("not" in words)


def test_numbers_that_were_left_open_are_told(table):
    clf = PlackettLuceClassifier(Gibbs(draws=5, chains=1, moves="none"), shape=1.0, random_state=0, features="exp")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf.fit(*table)
    assert "Gibbs, 1 chain of 5 draws after 2,000 of tuning" in repr(clf)
    used = clf._settings()
    assert used["inference__draws"] == clf.inference_.draws == 5
    assert used["inference__tune"] == clf.inference_.tune == 2000


def test_diagnostics_are_told_in_a_line_or_two(gibbs, logit):
    for found in (gibbs.diagnostics_, logit.diagnostics_, logit.diagnostics_.coef):
        words = repr(found)
        assert len(words.splitlines()) <= 3 and max(map(len, words.splitlines())) <= 100
    for clf in (gibbs, logit):
        found = clf.diagnostics_
        assert f"worst R-hat {found.worst_rhat:.2f}" in repr(found)
        assert f"predictions: {found.grade}, error " in repr(found)
        assert f"smallest effective sample size {found.smallest_ess:,.0f}" in repr(found)


def test_html_holds_the_diagnostics_and_escapes_names(gibbs, logit):
    for clf, title in ((gibbs, "Largest weights"), (logit, "Largest coefficients")):
        html = clf._repr_html_()
        assert "2 chains of 100 draws" in html and title in html
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html and "<script>alert" not in html
        assert "&lt;b&gt;odd&lt;/b&gt;" in html and "<b>odd" not in html
        assert title in clf._repr_mimebundle_()["text/html"]
    assert "Largest weights" not in clone(gibbs)._repr_html_()
    with sklearn.config_context(display="text"):
        assert list(gibbs._repr_mimebundle_()) == ["text/plain"]


@pytest.fixture
def notebook(monkeypatch):
    """What a notebook shows, by a stand-in for IPython."""
    shown = []

    class Handle:
        def update(self, content):
            shown[-1] = content

    def display(content, display_id):
        assert display_id is True
        shown.append(content)
        return Handle()

    ipython, frontend = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    ipython.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    frontend.HTML, frontend.display = str, display
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", frontend)
    return shown


def test_progress_in_a_notebook_is_one_element_updated_in_place(notebook, capsys):
    with progress_bar(True, "a <b>", 200) as report:
        assert notebook[-1].startswith("<label>a &lt;b&gt;: 0/200, 0:00 ")
        report(50)
        assert "50/200, 0:00 elapsed, 0:00 left" in notebook[-1] and '<progress value="50" max="200">' in notebook[-1]
    assert len(notebook) == 1 and capsys.readouterr() == ("", "")


def test_fits_show_progress_in_a_notebook(table, notebook):
    for clf in (
        PlackettLuceClassifier(Gibbs(draws=20, tune=20, chains=2), shape=0.1, progress=True, features="exp"),
        SparseLogitClassifier("holmes-held", draws=20, tune=20, chains=2, progress=True),
        PlackettLuceClassifier("em", progress=True, features="exp"),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            clf.set_params(random_state=0).fit(*table)
    gibbs, logit, em = notebook
    assert "Gibbs, 2 chains: 40/40" in gibbs and "holmes-held, 2 chains: 40/40" in logit
    assert "EM, cross-validation: 5/5" in em


def test_no_bar_unless_asked_for(table, capsys):
    PlackettLuceClassifier("em", features="exp").fit(*table)
    assert capsys.readouterr() == ("", "")


def test_work_of_which_nothing_is_done_yet_shows_itself_too(monkeypatch):
    """A bar comes by itself: a step may take minutes, and nothing is reported before it is over."""
    shown = threading.Event()

    @contextlib.contextmanager
    def bar(*_):
        shown.set()
        yield lambda done: None

    monkeypatch.setattr("plackett.output.progress._terminal_bar", bar)
    monkeypatch.setattr("plackett.output.progress.PATIENCE", 0.01)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with progress_bar(False, "modes", 3):
        assert shown.wait(60)


def test_times_of_a_bar_are_read_without_a_legend(monkeypatch, capsys):
    """From the moment the work began, also where the bar came late; hours only where there are any."""
    clock = [100.0]
    monkeypatch.setattr("plackett.output.progress.time.perf_counter", lambda: clock[0])
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    with progress_bar(False, "chains", 3) as report:
        clock[0] += 10
        report(2)
    assert "2/3 0:10 elapsed" in capsys.readouterr().err
    assert [_times(*given) for given in ((50, None), (59.6, 466), (3725, 36000))] == [
        "0:50 elapsed", "1:00 elapsed, 7:46 left", "1:02:05 elapsed, 10:00:00 left",
    ]  # fmt: skip


@pytest.mark.parametrize("patience, shown", [(0.0, True), (60.0, False)])
def test_long_work_shows_itself_on_a_terminal(monkeypatch, capsys, patience, shown):
    """Nobody asked for a bar; one comes where the work takes long, and not where standard error goes to a file."""
    monkeypatch.setattr("plackett.output.progress.PATIENCE", patience)
    for terminal in (True, False):
        monkeypatch.setattr("sys.stderr.isatty", lambda terminal=terminal: terminal, raising=False)
        with progress_bar(False, "chains", 3) as report:
            report(1)
            report(2)
        assert ("chains" in capsys.readouterr().err) == (shown and terminal)
