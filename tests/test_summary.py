"""What a fitted model tells about itself: the data frame, `repr`, HTML, and progress in a notebook."""

import sys
import types
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone

from plackett import Gibbs, PlackettLuceClassifier, SparseLogitClassifier, Variational
from plackett.diagnostics import diagnose
from plackett.posterior import Draws
from plackett.progress import progress_bar
from plackett.summary import verdict

COLUMNS = ["class", "feature", "mean", "sd", "5%", "95%", "active", "ess", "rhat"]


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
        return SparseLogitClassifier(draws=100, tune=50, chains=2, random_state=0).fit(*table)


def in_matrix(clf, frame, column):
    return frame[column].to_numpy().reshape(clf.weights_.shape)


def test_summary_of_draws(gibbs):
    frame = gibbs.summary()
    assert list(frame) == COLUMNS and len(frame) == 15
    assert frame["class"].tolist() == np.repeat(gibbs.classes_, 5).tolist()
    assert frame["feature"].tolist() == gibbs.features_.get_feature_names_out().tolist() * 3
    draws = np.exp(gibbs.posterior_.log_weights).reshape(-1, 3, 5)
    np.testing.assert_allclose(in_matrix(gibbs, frame, "mean"), draws.mean(axis=0))
    np.testing.assert_allclose(in_matrix(gibbs, frame, "sd"), draws.std(axis=0, ddof=1))
    np.testing.assert_allclose(in_matrix(gibbs, frame, "5%"), np.quantile(draws, 0.05, axis=0))
    np.testing.assert_allclose(in_matrix(gibbs, frame, "95%"), np.quantile(draws, 0.95, axis=0))
    np.testing.assert_allclose(in_matrix(gibbs, frame, "active"), (draws > 1 / 150).mean(axis=0))
    found = gibbs.diagnostics_
    np.testing.assert_array_equal(in_matrix(gibbs, frame, "rhat"), found.rhat)
    np.testing.assert_array_equal(in_matrix(gibbs, frame, "ess"), np.minimum(found.ess_bulk, found.ess_tail))


def test_width_of_the_interval(gibbs):
    frame = gibbs.summary(prob=0.5)
    draws = np.exp(gibbs.posterior_.log_weights).reshape(-1, 3, 5)
    np.testing.assert_allclose(in_matrix(gibbs, frame, "75%"), np.quantile(draws, 0.75, axis=0))
    assert "25%" in frame
    with pytest.raises(ValueError, match="prob must be"):
        gibbs.summary(prob=5)


def test_summary_of_the_approximation_and_of_the_mode(table):
    fast = PlackettLuceClassifier("variational", shape=0.1, random_state=0, features="exp").fit(*table)
    frame = fast.summary()
    np.testing.assert_allclose(in_matrix(fast, frame, "mean"), fast.weights_)
    assert frame["active"].between(0, 1).all() and frame["ess"].isna().all() and frame["rhat"].isna().all()
    assert (frame["5%"] <= frame["95%"]).all() and (frame["sd"] > 0).all()
    mode = PlackettLuceClassifier("em", shape=0.5, features="exp").fit(*table)
    frame = mode.summary()
    np.testing.assert_array_equal(in_matrix(mode, frame, "mean"), mode.weights_)
    np.testing.assert_array_equal(in_matrix(mode, frame, "active"), mode.weights_ > 0)
    assert 0 < frame["active"].sum() < 15
    assert frame[["sd", "5%", "95%", "ess", "rhat"]].isna().all(axis=None)


def test_summary_of_the_logit(table, logit):
    X, _ = table
    frame = logit.summary()
    assert list(frame) == COLUMNS and len(frame) == 2 * 3
    assert frame["feature"].tolist() == ["intercept", *X.columns] * 2
    assert frame["class"].tolist() == np.repeat(logit.classes_[:2], 3).tolist()
    np.testing.assert_allclose(frame["mean"].to_numpy().reshape(2, 3)[:, 1:], logit.coef_[:2])
    np.testing.assert_allclose(frame["mean"].to_numpy().reshape(2, 3)[:, 0], logit.intercept_[:2])
    coef = logit.posterior_.coef.reshape(-1, 3, 2)[:, :2]
    active = (np.abs(coef * X.std(ddof=0).to_numpy()) > 0.1).mean(axis=0)
    np.testing.assert_allclose(frame["active"].to_numpy().reshape(2, 3)[:, 1:], active)
    np.testing.assert_array_equal(frame["rhat"].to_numpy().reshape(2, 3)[:, 1:], logit.diagnostics_.coef.rhat[:2])


def test_few_draws_have_no_diagnostics(table):
    with pytest.warns(UserWarning, match="too few"):
        clf = PlackettLuceClassifier(Gibbs(draws=2, tune=2, chains=1), shape=1.0, random_state=0, features="exp").fit(
            *table
        )
    assert clf.summary()["rhat"].isna().all() and "too few" in repr(clf)


def test_repr(table, gibbs, logit):
    unfitted = clone(gibbs)
    assert repr(unfitted).startswith("PlackettLuceClassifier(features='exp', inference=Gibbs(") and "\n  " not in repr(
        unfitted
    )
    assert repr(gibbs).startswith(repr(unfitted)) and "3 classes × 5 features, shape a = 0.1\n" in repr(gibbs)
    assert verdict(gibbs) in repr(gibbs) and "2 chains of 100 draws" in verdict(gibbs)
    assert "penalty θ = " in repr(logit) and "2 chains of 100 draws" in repr(logit)
    learned = PlackettLuceClassifier(Variational(draws=20), random_state=0, features="exp").fit(*table)
    assert f"shape a = {learned.shape_:.3g} (learned)" in repr(learned)


def test_verdicts(gibbs):
    rng = np.random.default_rng(0)
    clf = clone(gibbs)
    for weights, words in (
        (rng.normal(size=(4, 500, 3, 5)), "4 chains of 500 draws agree: R-hat 1.00, smallest effective sample size 1,"),
        (rng.normal(size=(4, 500, 3, 5)) + np.arange(4)[:, None, None, None], "the chains have not mixed"),
    ):
        clf.posterior_ = Draws(weights, rng.gamma(1.0, size=(4, 500)))
        clf.diagnostics_ = diagnose(clf.posterior_, True, np.ones((1, 5)))
        clf.trace_ = np.zeros((4, 500))
        assert words in verdict(clf)


def test_html_holds_the_diagnostics_and_escapes_names(gibbs, logit):
    for clf in (gibbs, logit):
        html = clf._repr_html_()
        assert "2 chains of 100 draws" in html and "Largest weights" in html
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html and "<script>alert" not in html
        assert "&lt;b&gt;odd&lt;/b&gt;" in html and "<b>odd" not in html
        assert "Largest weights" in clf._repr_mimebundle_()["text/html"]
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
        assert "50/200, 0:00, 0:00 left" in notebook[-1] and '<progress value="50" max="200">' in notebook[-1]
    assert len(notebook) == 1 and capsys.readouterr() == ("", "")


def test_fits_show_progress_in_a_notebook(table, notebook):
    for clf in (
        PlackettLuceClassifier(Gibbs(draws=20, tune=20, chains=2), shape=0.1, progress=True, features="exp"),
        SparseLogitClassifier(draws=20, tune=20, chains=2, progress=True),
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
