"""The race of section 2 has the law of equations (2) to (5)."""

import numpy as np
from scipy.stats import chisquare, kstest

from conftest import small_problem
from plackett.simulate import prior_predictive, prior_weights, race


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
