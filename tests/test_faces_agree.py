"""The three estimators agree on what they share: arguments, groups, folds by groups and chains."""

import inspect
import warnings
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import FunctionTransformer

from plackett import EM, ChoiceSets, Gibbs, PlackettLuceChooser, PlackettLuceClassifier, PlackettLuceRanker, Rankings
from plackett.cli.commands import Engine
from plackett.directions import LearnedDirections
from plackett.engines.factory import ENGINES
from plackett.engines.numba import CompiledSituations

N = 60
rng = np.random.default_rng(0)
COVARIATES = rng.normal(size=(N, 2))
TRIPS = pd.DataFrame({f"cost_{by}": rng.normal(5, 2, N) for by in ("bus", "car")})
DATA = {
    PlackettLuceClassifier: (COVARIATES, rng.integers(0, 2, N)),
    PlackettLuceRanker: (COVARIATES, Rankings.from_orders([rng.permutation([*"abc"]).tolist() for _ in range(N)])),
    PlackettLuceChooser: (
        ChoiceSets.from_wide(TRIPS, alternatives=["bus", "car"], attributes=["cost"]),
        np.array(["bus", "car"])[rng.integers(0, 2, N)],
    ),
}
SHORT = Gibbs(draws=5, tune=5, chains=2)
every_model = pytest.mark.parametrize("model", DATA)


@every_model
def test_weights_come_before_groups(model):
    names = list(inspect.signature(model.fit).parameters)
    assert names.index("sample_weight") < names.index("groups")


def test_the_old_order_of_a_chooser_is_accepted_and_deprecated():
    X, y = DATA[PlackettLuceChooser]
    persons, weight = np.arange(N) // 3, np.ones(N)
    model = PlackettLuceChooser("em", features="exp", shape=1.5, weights="person")
    with pytest.warns(FutureWarning, match="by name"):
        old = model.fit(X, y, persons, weight).predict_proba(X, groups=persons)
    new = model.fit(X, y, sample_weight=weight, groups=persons).predict_proba(X, groups=persons)
    np.testing.assert_array_equal(old, new)


@every_model
def test_one_group_is_refused(model):
    with pytest.raises(ValueError, match="groups must hold at least two labels"):
        model(SHORT).fit(*DATA[model], groups=np.zeros(N))


@every_model
def test_few_groups_are_too_few_to_hold_some_out(model, monkeypatch):
    """Fewer than 20 that are held out together: nothing is decided by held-out data, however many rows they have."""

    def refuse(*_, **__):
        raise AssertionError("data were held out")

    monkeypatch.setattr("plackett.directions.stacking.held_out_modes", refuse)
    few = LearnedDirections(components=1, leapfrogs=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = model(SHORT, features=few, random_state=0).fit(*DATA[model], groups=np.arange(N) % 5)
    found = fitted.posterior_
    found = getattr(found, "of_directions", found)
    assert found.power == 1.0 and found.mode_weight == 0.0


@pytest.mark.parametrize("model", [PlackettLuceRanker, PlackettLuceChooser])
def test_chains_of_small_data_share_the_cores(model, monkeypatch):
    asked, set_threads = [], CompiledSituations.set_threads
    monkeypatch.setattr(CompiledSituations, "set_threads", lambda self, n: asked.append(n) or set_threads(self, n))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model(Gibbs(draws=5, tune=5, chains=2, moves="none"), features="exp").fit(*DATA[model])
    assert asked[-1] == 1


class Seen(FunctionTransformer):
    """A map that learns nothing but how many rows it is fitted to."""

    fits: ClassVar[list[int]] = []

    def fit(self, X, y=None):
        Seen.fits.append(len(X))
        return super().fit(X, y)


@every_model
def test_folds_fit_the_map_anew(model, monkeypatch):
    """No fold of EM knows the rows that it holds out, not even by the scales of its features."""
    monkeypatch.setattr(Seen, "fits", [])
    model(EM(cv=3), features=Seen(np.exp)).fit(*DATA[model])
    whole = N * (2 if model is PlackettLuceChooser else 1)  # a choice has an entry for each alternative
    assert Seen.fits == [whole, *(3 * [whole * 2 // 3])]


def test_the_command_line_knows_all_engines():
    assert {each.value for each in Engine} == {"auto", *ENGINES}
