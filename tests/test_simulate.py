"""The race of section 2 has the law of equations (2) to (5); rankings and choices have theirs."""

from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chisquare, kstest

from conftest import small_problem
from plackett import ChoiceSets
from plackett.simulate import choices, prior_predictive, prior_weights, race, rankings


def test_race_has_the_law_of_the_model():
    W, _, log_weights = small_problem(5, 2, 3, seed=2)
    n = 40000
    result = race(np.repeat(W[:1], n, axis=0), log_weights, rng=0)
    rates = W[0] * np.exp(log_weights)
    assert chisquare(np.bincount(result.winner, minlength=3), n * rates.sum(axis=1) / rates.sum()).pvalue > 1e-3
    joint = np.bincount(result.winner * 5 + result.competitor, minlength=15)
    assert chisquare(joint, n * rates.ravel() / rates.sum()).pvalue > 1e-3
    assert kstest(np.exp(result.log_time) * rates.sum(), "expon").pvalue > 1e-3
    # the time of arrival says nothing about the winner
    assert kstest(np.exp(result.log_time[result.winner == 0]) * rates.sum(), "expon").pvalue > 1e-3


def test_prior_weights():
    weights = np.exp(prior_weights(100, 200, shape=0.5, rate=2.0, rng=0))
    assert abs(weights.mean() - 0.25) < 5 * np.sqrt(0.125 / weights.size)
    assert np.isfinite(prior_weights(3, 5, shape=1e-3, rng=0)).all()


def test_prior_predictive_is_reproducible():
    W, _, _ = small_problem()
    a, b = (prior_predictive(W, 3, 0.2, rng=4) for _ in range(2))
    np.testing.assert_array_equal(a.winner, b.winner)
    assert np.isclose(np.exp(a.log_weights).sum(), 1)


def seen(orders, n):
    """How often each order of three items was drawn, and how often it is expected, at rates 1, 2 and 4."""
    rates = {"a": 1.0, "b": 2.0, "c": 4.0}
    kinds = list(permutations(rates))
    law = [rates[i] / 7 * rates[j] / (rates[j] + rates[k]) for i, j, k in kinds]
    counts = [sum(tuple(order) == kind for order in orders) for kind in kinds]
    return counts, n * np.array(law)


def test_rankings_have_the_law_of_plackett_and_luce():
    n, logs = 20000, np.log([[1.0, 2.0, 4.0]])
    whole = rankings(np.repeat(logs, n, axis=0), items=["a", "b", "c"], rng=1)
    assert chisquare(*seen(whole.to_orders(), n)).pvalue > 1e-3
    first = rankings(np.repeat(logs, n, axis=0), items=["a", "b", "c"], top=1, rng=2)
    assert first.unranked == "last" and all(len(order) == 1 for order in first.to_orders())
    counts = [sum(order == [item] for order in first.to_orders()) for item in "abc"]
    assert chisquare(counts, n * np.exp(logs[0]) / 7).pvalue > 1e-3


def test_rates_of_rankings_are_those_of_the_row():
    logs = np.array([[50.0, 0.0, -50.0], [-50.0, 0.0, 50.0]])
    assert rankings(logs, items=["a", "b", "c"], rng=0).to_orders() == [["a", "b", "c"], ["c", "b", "a"]]


def test_choices_have_the_law_of_the_available_alternatives():
    n = 20000
    frame = pd.DataFrame({"x_a": np.zeros(n), "x_b": np.log(2.0), "x_c": np.log(4.0), "there": np.arange(n) % 2})
    X = ChoiceSets.from_wide(frame, alternatives=["a", "b", "c"], attributes=["x"], available={"b": "there"})
    y = choices(X, X.values[:, 0], rng=3)
    without, whole = y[::2], y[1::2]
    assert chisquare([(whole == a).sum() for a in "abc"], n / 2 * np.array([1, 2, 4]) / 7).pvalue > 1e-3
    assert not (without == "b").any()
    assert chisquare([(without == a).sum() for a in "ac"], n / 2 * np.array([1, 4]) / 5).pvalue > 1e-3


def test_what_cannot_be_simulated_is_refused():
    with pytest.raises(ValueError, match="rankings × items"):
        rankings([1.0, 2.0])
    with pytest.raises(ValueError, match="top must be between 1"):
        rankings(np.zeros((2, 3)), top=4)
    X = ChoiceSets.from_wide(pd.DataFrame({"x_a": [1.0], "x_b": [2.0]}), alternatives=["a", "b"], attributes=["x"])
    with pytest.raises(ValueError, match="each of the 2 entries"):
        choices(X, [0.0])
