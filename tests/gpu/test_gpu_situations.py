"""Choices and rankings on the GPU against the reference."""

import warnings

import numpy as np
import pandas as pd
import pytest

from plackett import EM, ChoiceSets, Gibbs, PlackettLuceChooser, PlackettLuceRanker, Rankings, Variational
from plackett.directions import LearnedDirections
from plackett.engines.situations import Situations, prepare_situations
from plackett.model.race import Weights
from plackett.responses import Outcomes, make_response

pytestmark = pytest.mark.gpu
SIZES = [(60, 6, 3), (3000, 12, 1), (400, 30, 150), (9000, 4, 20)]  # situations, groups, features


def problem(name, shared, T, n_groups, p, dtype=np.float64, seed=0):
    """Random situations of different sizes, some of them seen many times, rows shared by their entries or not."""
    rng = np.random.default_rng(seed)
    entries = rng.integers(1, n_groups + 1, size=T)
    sizes = [[1] * (1 if name == "choice" else rng.integers(1, n + 1)) for n in entries]
    outcomes = Outcomes.of(entries, sizes, np.where(rng.random(T) < 0.1, 1000, rng.integers(0, 4, size=T)))
    group = np.concatenate([rng.permutation(n_groups)[:n] for n in entries])
    row = np.repeat(rng.permutation(T) // 2, entries) if shared else np.arange(entries.sum())
    features = rng.uniform(size=(row.max() + 1, p)) * (rng.random((row.max() + 1, p)) < 0.8) + 1e-3
    return features.astype(dtype), Situations(outcomes, group, row), rng.normal(size=(n_groups, p)), rng


def both(name, features, situations, n_groups):
    return (prepare_situations(features, situations, make_response(name), n_groups, e) for e in ("numpy", "cupy"))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["choice", "ranking"])
def test_passes_agree_with_the_reference(name, size, shared, dtype):
    features, situations, theta, _ = problem(name, shared, *size, dtype)
    reference, there = both(name, features, situations, len(theta))
    for weights in (Weights.point(theta), Weights(theta - 0.3, theta), Weights(theta, 2 * theta + 1)):
        for key in (None, 0, 2**61 + 12345):
            stats, found = (
                rows.expect(weights) if key is None else rows.sample(weights, key) for rows in (reference, there)
            )
            close = {"rtol": 1e-10, "atol": 1e-10}
            np.testing.assert_allclose(found.wins, stats.wins, **(close if key is None else {"atol": 0}))
            np.testing.assert_allclose(found.exposure, stats.exposure, **close)
            assert found.value == pytest.approx(stats.value, rel=1e-11)
        seen = situations.outcomes.counts > 0
        np.testing.assert_allclose(there.values(weights)[seen], reference.values(weights)[seen], **close)
        again = there.expect(weights)
        np.testing.assert_array_equal(again.wins, there.expect(weights).wins)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("n_components", [1, 6, 140])
@pytest.mark.parametrize("name", ["choice", "ranking"])
def test_gradients_agree_with_the_reference(name, n_components, shared):
    features, situations, _, rng = problem(name, shared, 2000, 7, 5)
    reference, there = both(name, features, situations, 7)
    beta, log_weights = rng.normal(size=(n_components, 5)), 3 * rng.normal(size=(7, n_components))
    want, found = (rows.gradient(beta, log_weights) for rows in (reference, there))
    assert found.value == pytest.approx(want.value, rel=1e-11)
    np.testing.assert_allclose(found.directions, want.directions, rtol=1e-9, atol=1e-8)
    np.testing.assert_allclose(found.log_weights, want.log_weights, rtol=1e-9, atol=1e-8)


def test_an_arrival_without_support_is_impossible_there_too():
    features, situations, theta, _ = problem("ranking", False, 60, 6, 3)
    features[0] = 0.0
    reference, there = both("ranking", features, situations, 6)
    stats, found = (rows.expect(Weights.point(theta)) for rows in (reference, there))
    assert stats.value == found.value
    np.testing.assert_allclose(found.wins, stats.wins, rtol=1e-10, atol=1e-10)


def rankings(n=400, K=5, d=2):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    order = np.argsort(-(X @ rng.normal(size=(d, K)) + rng.gumbel(size=(n, K))), axis=1)
    return X, Rankings.from_orders([[f"item{i}" for i in row[:4]] for row in order.tolist()], unranked="last")


@pytest.mark.parametrize("inference", [EM(), Variational(), Gibbs(draws=15, tune=15, chains=2, moves="none")])
def test_rankers_are_those_of_the_processor(inference):
    X, R = rankings()
    settings = {"features": "exp", "shape": 0.5, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        here, there = (PlackettLuceRanker(inference, engine=e, **settings).fit(X, R) for e in ("numpy", "cupy"))
    np.testing.assert_allclose(here.weights_, there.weights_, atol=1e-6)


@pytest.mark.parametrize("inference", [EM(cv=2), Gibbs(draws=10, tune=10, chains=2)])
def test_learned_directions_of_rankings_are_those_of_the_processor(inference):
    X, R = rankings(200, 3)
    settings = {"features": LearnedDirections(components=1), "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        here, there = (PlackettLuceRanker(inference, engine=e, **settings).fit(X, R) for e in ("numba", "cupy"))
    np.testing.assert_allclose(here.log_likelihood(X, R), there.log_likelihood(X, R), atol=0.05)


def test_choosers_are_those_of_the_processor():
    rng, labels = np.random.default_rng(0), ["bus", "car", "walk"]
    frame = pd.DataFrame({f"{x}_{a}": rng.normal(size=300) for a in labels for x in ("cost", "time")})
    utility = np.column_stack([frame[f"cost_{a}"] - 0.5 * frame[f"time_{a}"] for a in labels])
    chosen = np.array(labels)[np.argmax(utility + rng.gumbel(size=(300, 3)), axis=1)]
    X = ChoiceSets.from_wide(frame, alternatives=labels)
    here, there = (
        PlackettLuceChooser(EM(cv=2), features=LearnedDirections(components=1), engine=e).fit(X, chosen)
        for e in ("numba", "cupy")
    )
    np.testing.assert_allclose(here.predict_proba(X), there.predict_proba(X), atol=1e-3)
