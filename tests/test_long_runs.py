"""Runs of millions of draws are kept, diagnosed, summed up and exported in bounded memory, and say so."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from plackett import (
    ChoiceSets,
    Gibbs,
    PlackettLuceChooser,
    PlackettLuceClassifier,
    PlackettLuceRanker,
    Rankings,
    SparseLogitClassifier,
)
from plackett.directions import LearnedDirections
from plackett.inference import driver, store
from plackett.inference.driver import Run
from plackett.inference.store import room_for
from plackett.model import measures
from plackett.model.diagnostics import diagnose
from plackett.model.mixture import normalised
from plackett.output import arviz

LONG = {"draws": 2_000_000, "tune": 0, "chains": 2}
N, LABELS = 40, ["bus", "car", "walk"]
rng = np.random.default_rng(0)
X, Y = rng.normal(size=(N, 2)), np.arange(N) % 3
RANKINGS = Rankings.from_orders([rng.permutation(list("abcd")).tolist() for _ in range(N)])
TRIPS = ChoiceSets.from_wide(
    pd.DataFrame({f"cost_{a}": rng.normal(size=N) for a in LABELS}), alternatives=LABELS, attributes=["cost"]
)
TAKEN = np.array(LABELS)[Y]
EXP, LEARNED = {"features": "exp"}, {"features": LearnedDirections(components=1)}
CASES = {
    "classes": (PlackettLuceClassifier(Gibbs(**LONG), **EXP), (X, Y)),
    "learned classes": (PlackettLuceClassifier(Gibbs(**LONG), **LEARNED), (X, Y)),
    "worths": (PlackettLuceRanker(Gibbs(**LONG)), (None, RANKINGS)),
    "rankings": (PlackettLuceRanker(Gibbs(**LONG), **EXP), (X, RANKINGS)),
    "learned rankings": (PlackettLuceRanker(Gibbs(**LONG), **LEARNED), (X, RANKINGS)),
    "choices": (PlackettLuceChooser(Gibbs(**LONG), **EXP), (TRIPS, TAKEN)),
    "learned choices": (PlackettLuceChooser(Gibbs(**LONG), **LEARNED), (TRIPS, TAKEN)),
    "logit": (SparseLogitClassifier(**LONG), (X, Y)),
}


def made_up(run, pool, report, interruption):
    """Draws of no chain at all, in no time."""
    rng = np.random.default_rng(0)
    while run.store.iterations < run.goal:
        if run.store.room() == 0:
            run.store.halve()
        n = min(run.store.room(), run.goal - run.store.iterations, 1 << 16)
        k = len(range(-run.store.iterations % run.store.thin, n, run.store.thin))
        draws = {name: rng.normal(size=(len(run.chains), k, *shape)) for name, shape in run.shapes.items()}
        for name in ("shape", "theta"):
            draws |= {name: np.exp(draws[name])} if name in draws else {}
        if "log_weights" in draws:
            draws["log_weights"] = normalised(draws["log_weights"])
        run.store.add(draws, n)


def peak(work, *arguments):
    """The largest memory that was held at a time, in MiB."""
    tracemalloc.start()
    try:
        work(*arguments)
        return tracemalloc.get_traced_memory()[1] / 2**20
    finally:
        tracemalloc.stop()


@pytest.fixture
def little_room(monkeypatch):
    """A 16th of the usual room, so that tests take a 16th of the time."""
    for name in ("SURE", "MOST", "NUMBERS"):
        monkeypatch.setattr(store, name, getattr(store, name) // 16)


@pytest.mark.brief(4)
@pytest.mark.filterwarnings("ignore:.*(R-hat|effective sample size|trusted)")
@pytest.mark.usefixtures("little_room")
@pytest.mark.parametrize("case", CASES)
def test_two_million_draws(monkeypatch, case):
    """All of them would take 64 MiB for each number of a draw, and a draw has nine at least."""
    model, data = CASES[case]
    monkeypatch.setattr(Run, "_rounds", made_up)
    assert peak(model.set_params(random_state=0).fit, *data) < 150
    assert model.n_iter_ == 2_000_000 and 2000 < model.trace_.shape[1] <= store.MOST / 2
    assert f"2 chains of {model.trace_.shape[1]:,} draws, thinned from 2,000,000, after" in repr(model)
    if model.posterior_.no_estimates is None or "choices" in case:
        assert peak(model.summary) < 150
    assert peak(model.to_arviz, *data) < 150
    monkeypatch.setattr(arviz, "MOST", N * model.trace_.size // 2)
    with pytest.warns(UserWarning, match="one draw in 2 is exported"):
        some = model.to_arviz(*data)
    np.testing.assert_array_equal(some["sample_stats"]["lp"], model.trace_[:, ::2])


@pytest.mark.filterwarnings("ignore:.*(R-hat|effective sample size|trusted)")
def test_the_room_that_there_is(monkeypatch):
    model, data = CASES["worths"]
    monkeypatch.setattr(Run, "_rounds", made_up)
    assert peak(model.set_params(random_state=0).fit, *data) < 300
    assert model.trace_.shape == (2, 125_000)


def test_what_is_ordinary_is_kept():
    """Ten thousand draws of each chain, however many numbers they have."""
    for chains, numbers in ((1, 1), (4, 100), (4, 10**6), (64, 10**5)):
        assert room_for(10_000, chains, numbers) == 10_000
    assert room_for(10**9, 4, 10) == 1 << 16
    assert room_for(10**9, 4, 1 << 10) == 10_000
    assert room_for(10**9, 1, 1 << 10) == 1 << 14


@pytest.mark.filterwarnings("ignore:.*(R-hat|effective sample size|trusted)")
@pytest.mark.usefixtures("little_room")
def test_long_diagnosing_shows_a_bar(monkeypatch, capsys):
    model, data = CASES["classes"]
    monkeypatch.setattr(Run, "_rounds", made_up)
    monkeypatch.setattr(driver, "MANY", 1 << 10)
    clone(model).set_params(progress=True).fit(*data)
    assert "diagnosing, per cent" in capsys.readouterr().err


def test_the_bar_of_diagnosing_goes_to_its_end(monkeypatch):
    """By shares of the work, over all that is measured."""
    monkeypatch.setattr(measures, "AT_A_TIME", 1000)
    shares, x = [], np.random.default_rng(0).normal(size=(2, 100, 70))
    diagnose(shares.append, one=x, fixed=None, other=x[..., :35])
    assert len(shares) == 14 + 7 and shares == sorted(shares) and shares[-1] == 1.0
