"""Real choices beyond the table of published numbers: errors by person, posteriors, correlated tastes."""

import numpy as np
import pytest

from benchmarks.published import sources
from plackett import PlackettLuceChooser, Segments, Tastes
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
def test_segments_of_swissmetro_as_biogeme_has_them(swissmetro):
    """Biogeme's discrete mixture, each choice by itself: −5208.498; one class attends to time (−2.80), .749 of all."""
    X, y, _ = swissmetro
    features, by = LinearUtility(base="swissmetro"), {"by": ["time"]}
    model = PlackettLuceChooser("em", features=features, segments=Segments(2, **by, ignored=["time"]), random_state=0)
    model.fit(X, y)
    found = model.fit_statistics(X, y)
    np.testing.assert_allclose(found.log_likelihood, -5208.498, atol=2e-3)
    assert found.parameters == 5
    table = model.coefficients().set_index("column")
    named = ["constant: train", "constant: car", "cost", "time"]
    np.testing.assert_allclose(table.loc[named, "coefficient"], [-0.398, 0.125, -1.26, -2.80], atol=6e-3)
    np.testing.assert_allclose(model.segments_["share"], [0.749, 0.251], atol=1e-3)
    free = PlackettLuceChooser("em", features=features, segments=Segments(2, **by), random_state=0).fit(X, y)
    assert -5208.498 < free.fit_statistics(X, y).log_likelihood < -5206


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
