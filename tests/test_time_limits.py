"""A limit of time gives a model, whatever there is no time for, and says what that was."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from plackett import Bootstrap, Gibbs, PlackettLuceClassifier, PlackettLuceRanker, load
from plackett.compute.pieces import cores
from plackett.directions import LearnedDirections
from plackett.directions.budget import plan_fit
from plackett.directions.class_task import make_class_task
from plackett.directions.settings import lengths
from plackett.directions.stacking import n_folds_of
from plackett.inference.driver import Source
from plackett.inference.limits import Clock, TimeIsUp
from test_bootstrap import FACES, ONE, PERSONS, R, X, every_model, y


def plan_of(monkeypatch, limit, each):
    """The plan under a limit where a pass takes so many seconds."""
    monkeypatch.setattr(Clock, "timed", staticmethod(lambda work: each))
    task = make_class_task(X, y, None, Source(np.random.SeedSequence(0)))
    prior = task.reader.prior(task, ONE, 0.02)
    gibbs = Gibbs(max_seconds=limit).completed(**lengths(False, 60))
    return plan_fit(task, prior, gibbs, ONE, Clock(limit)), n_folds_of(task)


def test_folds_and_chains_are_planned_from_the_time_of_a_pass(monkeypatch):
    slower = [plan_of(monkeypatch, 10.0, each) for each in (1e-7, 3e-4, 1e-3, 1.0)]
    plans, usual = [plan for plan, _ in slower], slower[0][1]
    assert plans[0].n_folds == usual == 10 and plans[0].chains
    assert 2 <= plans[1].n_folds < usual and plans[1].chains
    assert plans[3].n_folds < 2 and not plans[3].chains
    assert np.all(np.diff([plan.n_folds for plan in plans]) <= 0)
    np.testing.assert_allclose(plans[3].seconds / plans[2].seconds, 1000)


def test_without_a_limit_all_is_done(monkeypatch):
    plan, usual = plan_of(monkeypatch, None, 1.0)
    assert plan.n_folds == usual and plan.chains and plan.seconds > 1000


def test_a_share_of_the_time_is_insisted_on(seconds):
    clock = Clock(10.0)
    clock.start()
    seconds.now = 3.9
    clock.insist(0.4)
    assert clock.left_of(0.4) == pytest.approx(0.1) and not clock.past(0.4)
    seconds.now = 4.0
    with pytest.raises(TimeIsUp):
        clock.insist(0.4)
    assert Clock().left_of(0.4) is None and not Clock().past(0.4)


@every_model
def test_draws_are_those_of_the_bootstrap_where_chains_have_no_time(model, tmp_path, seconds):
    """Every reading of the clock takes half a second, and so does a pass."""
    seconds.reading = 0.5
    given, asked = FACES[model]
    words = r"Gibbs\(max_seconds=1\): there was no time for chains, and draws are those of inference='bootstrap'"
    with pytest.warns(ConvergenceWarning, match=words):
        clf = model(Gibbs(max_seconds=1), features=ONE, random_state=0).fit(*given)
    assert isinstance(clf.inference_, Bootstrap) and clf.trace_.shape[1] >= 1
    assert "no time for chains" in repr(clf) and np.isfinite(clf.predict_proba(asked)).all()
    clf.save(tmp_path / "model.plk")
    assert load(tmp_path / "model.plk").notes_ == clf.notes_


@every_model
def test_tuning_is_shortened_and_draws_are_made(model, seconds):
    seconds.iteration = 1.0
    given, asked = FACES[model]
    with pytest.warns(ConvergenceWarning, match=r"Gibbs\(max_seconds=20\): there was time for \d+ of 150 iterations"):
        clf = model(Gibbs(max_seconds=20), features=LearnedDirections(2, leapfrogs=2), random_state=0).fit(*given)
    assert 14 <= clf.inference_.tune < 40 and 1 <= clf.trace_.shape[1] < 40
    assert "iterations of tuning" in clf.notes_[-1] and np.isfinite(clf.predict_proba(asked)).all()


@pytest.mark.parametrize("given", [(None, R), (PERSONS, R)], ids=["worths", "features"])
def test_a_limit_of_time_counts_for_fixed_features(given, seconds):
    seconds.iteration = 1.0
    model = PlackettLuceRanker(Gibbs(max_seconds=20), features="exp" if given[0] is not None else "learned")
    with pytest.warns(ConvergenceWarning, match=r"there was time for \d+ of [\d,]+ iterations of tuning"):
        model.fit(*given)
    assert model.trace_.shape[1] >= 1 and np.isfinite(model.predict_proba(given[0])).all()


def test_a_limit_that_is_long_enough_changes_nothing(seconds):
    settings = {"draws": 20, "tune": 20, "chains": 2}
    found = []
    for limit in ({}, {"max_seconds": 1000}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            clf = PlackettLuceClassifier(Gibbs(**settings, **limit), features=ONE, random_state=0).fit(X, y)
        assert clf.notes_ == []
        found.append(clf.predict_proba(X))
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("name", ["NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "LOKY_MAX_CPU_COUNT"])
def test_threads_are_limited_as_joblib_asks(name, monkeypatch):
    for other in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "LOKY_MAX_CPU_COUNT"):
        monkeypatch.delenv(other, raising=False)
    usual = cores()
    for value, expected in {"1": 1, "100000": usual, "": usual, "many": usual, "0": 1}.items():
        monkeypatch.setenv(name, value)
        assert cores() == expected
