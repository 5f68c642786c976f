"""Real choices beyond the table of published numbers: errors by person, posteriors, correlated tastes."""

import numpy as np
import pytest

from benchmarks.published import sources
from plackett import PlackettLuceChooser, Tastes
from plackett.datasets import load
from plackett.linear import LinearUtility


@pytest.fixture(scope="module")
def swissmetro(folder):
    return sources.swissmetro()


@pytest.mark.data
def test_nine_choices_of_a_person_are_no_nine_persons(swissmetro):
    X, y, person = swissmetro
    model = PlackettLuceChooser("em", features=LinearUtility(base="swissmetro")).fit(X, y, groups=person)
    by_person = model.coefficients(errors="person").set_index("column")["std_error"]
    assert len(X) == 6768 and (by_person > model.coefficients().set_index("column")["std_error"]).all()


@pytest.mark.data
def test_the_posterior_of_swissmetro(swissmetro):
    X, y, _ = swissmetro
    best, drawn = (
        PlackettLuceChooser(inference, features="linear", random_state=0).fit(X, y) for inference in ("em", "gibbs")
    )
    one, other = best.coefficients(), drawn.coefficients()
    assert other["rhat"].max() <= 1.01
    error = one["std_error"] / np.sqrt(other["ess"])
    assert (np.abs(other["mean"] - one["coefficient"]) < 5 * error + 0.02 * one["std_error"]).all()
    np.testing.assert_allclose(other["sd"], one["std_error"], rtol=0.1)


@pytest.mark.slow
def test_correlated_tastes_of_electricity():
    """Correlations gain more than a hundred in log-likelihood, and known persons are predicted better than new ones."""
    found = load("electricity")
    X, y, persons = found.choices, found.y, found.groups
    tastes = Tastes(correlated=True, constants=False)
    model = PlackettLuceChooser(features=tastes, random_state=1).fit(X, y, groups=persons)
    assert model.diagnostics_.worst_rhat <= 1.01
    value = model.integrated_log_likelihood(X, y, persons)
    assert value > -3888.465 + 150  # xlogit without correlations
    known, new = (model.log_likelihood(X, y, groups=groups).sum() for groups in (persons, None))
    assert known > value > new
