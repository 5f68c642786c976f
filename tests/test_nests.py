"""Nested logit: the law by simulation and by hand, its slopes, its maximum, its posterior and what it predicts."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from plackett import EM, ChoiceSets, PlackettLuceChooser
from plackett.data.choice_nests import nests_of
from plackett.data.choice_outcomes import chosen
from plackett.data.observations import Observations, Situations
from plackett.directions import LearnedDirections
from plackett.directions.density import density_of
from plackett.directions.prior import size
from plackett.directions.situation_task import make_situation_task
from plackett.features.choice_design import ChoiceDesign, EntryTable
from plackett.inference.driver import Source
from plackett.responses import Choice, make_response
from plackett.responses.nests import nested_slopes, nested_utilities

LABELS = np.array(["bus", "car", "metro", "train", "walk"])
NESTS = {"rails": ["train", "metro"], "road": ["bus", "car"]}


def some_nests(*dissimilarity):
    nests = nests_of(NESTS, LABELS)
    return nests.at(*dissimilarity) if dissimilarity else nests


def situations(rng, n, spread=2.0):
    """Starts, alternatives and log-rates of situations with one to five alternatives."""
    sets = [rng.permutation(5)[: rng.integers(1, 6)] for _ in range(n)]
    start = np.append(0, np.cumsum([len(each) for each in sets]))
    return start, np.concatenate(sets), spread * rng.standard_normal(start[-1])


def compiled(nests, start, alternative, log_rates):
    """V, slopes in ln r and in α of the kernel."""
    T, G = len(start) - 1, len(nests.names)
    values, to_rates, to_alpha = np.empty(T), np.empty(start[-1]), np.empty((T, G))
    nested_slopes(start, nests.of_alternative[alternative], log_rates, nests.dissimilarity, values, to_rates, to_alpha)
    return values, to_rates, to_alpha


def stable(rng, alpha, n):
    """Positive stable variables with E e^{−sS} = e^{−s^α} (Chambers, Mallows & Stuck 1976)."""
    u, e = np.pi * rng.random(n), rng.standard_exponential(n)
    return np.sin(alpha * u) / np.sin(u) ** (1 / alpha) * (np.sin((1 - alpha) * u) / e) ** ((1 - alpha) / alpha)


def test_probabilities_are_those_of_races_with_a_frailty_of_each_nest():
    rng, n, nests = np.random.default_rng(0), 200_000, some_nests(0.4, 0.7)
    log_rates = np.array([0.3, -0.2, 0.5, 0.1, 0.0])
    times = np.empty((n, 5))
    for a, g in enumerate(nests.of_alternative):
        times[:, a] = rng.standard_exponential(n) / np.exp(log_rates[a] / (1.0 if g < 0 else nests.dissimilarity[g]))
    for g, alpha in enumerate(nests.dissimilarity):
        inside = nests.of_alternative == g
        times[:, inside] = (times[:, inside] / stable(rng, alpha, n)[:, None]) ** alpha
    won = np.bincount(times.argmin(axis=1), minlength=5) / n
    orders = [np.roll(np.arange(5), -a) for a in range(5)]
    p = np.exp([nests.answer(log_rates[order], order).value for order in orders])
    assert p.sum() == pytest.approx(1.0, abs=1e-12)
    assert (np.abs(won - p) < 4.5 * np.sqrt(p * (1 - p) / n)).all()


def test_the_kernel_is_the_reference_and_its_slopes_are_differences():
    start, alternative, log_rates = situations(np.random.default_rng(1), 60)
    nests, h = some_nests(0.3, 0.85), 1e-5
    values, to_rates, to_alpha = compiled(nests, start, alternative, log_rates)
    for t, (low, high) in enumerate(pairwise(start)):
        found = nests.answer(log_rates[low:high], alternative[low:high])
        assert found.value == pytest.approx(values[t], abs=1e-12)
        np.testing.assert_allclose(found.to_rates, to_rates[low:high], atol=1e-12)
        np.testing.assert_allclose(found.to_dissimilarity, to_alpha[t], atol=1e-11)
    for e, change in enumerate(h * np.eye(len(log_rates))):
        up, down = (compiled(nests, start, alternative, log_rates + s * change)[0].sum() for s in (1, -1))
        assert (up - down) / (2 * h) == pytest.approx(to_rates[e], abs=1e-8)
    for g, change in enumerate(h * np.eye(2)):
        up, down = (
            compiled(nests.at(*(nests.dissimilarity + s * change)), start, alternative, log_rates)[0] for s in (1, -1)
        )
        np.testing.assert_allclose((up - down) / (2 * h), to_alpha[:, g], atol=1e-7)


def test_far_log_rates_and_small_dissimilarities_stay_finite():
    start, alternative, log_rates = situations(np.random.default_rng(2), 200, spread=300.0)
    for nests in (some_nests(0.01, 0.02), some_nests(1.0, 0.5)):
        for found in compiled(nests, start, alternative, log_rates):
            assert np.isfinite(found).all()


def test_a_dissimilarity_of_1_is_the_plain_choice():
    start, alternative, log_rates = situations(np.random.default_rng(3), 40)
    values, to_rates, _ = compiled(some_nests(1.0, 1.0), start, alternative, log_rates)
    for t, (low, high) in enumerate(pairwise(start)):
        rates = np.exp(log_rates[low:high])
        value, arrivals, at_risk = Choice().expect(rates, [1])
        assert values[t] == pytest.approx(value, abs=1e-12)
        np.testing.assert_allclose(to_rates[low:high], arrivals - rates * at_risk, atol=1e-12)


def test_utilities_are_those_of_the_reference():
    rng, nests = np.random.default_rng(4), some_nests(0.3, 0.8)
    log_rates, available = rng.normal(size=(3, 7, 5)), rng.random((7, 5)) < 0.7
    available[:, 4] = True
    alpha = rng.uniform(0.2, 1, (3, 2))
    utilities = nested_utilities(np.where(available, log_rates, -np.inf), nests.of_alternative, alpha)
    p = np.exp(utilities) / np.exp(utilities).sum(axis=2, keepdims=True)
    for s, t, a in np.argwhere(np.broadcast_to(available, p.shape)):
        there = np.flatnonzero(available[t])
        order = np.append(a, there[there != a])
        assert np.log(p[s, t, a]) == pytest.approx(nests.at(*alpha[s]).answer(log_rates[s, t, order], order).value)


@pytest.mark.parametrize(
    ("nests", "words"),
    [
        ({}, "must be a dictionary"),
        ([["bus", "car"]], "must be a dictionary"),
        ({"road": "bus"}, "lists of alternatives"),
        ({1: ["bus", "car"]}, "lists of alternatives"),
        ({"road": ["car"]}, "'road' needs two alternatives or more"),
        ({"road": ["car", "car"]}, "needs two alternatives or more"),
        ({"road": ["bus", "car"], "four": ["car", "walk"]}, "'car' is in 'road' and in 'four'"),
        ({"road": ["bus", "plane"]}, "'plane' of 'road' is none of the alternatives"),
    ],
)
def test_nests_that_make_no_sense_are_refused(nests, words):
    with pytest.raises(ValueError, match=words):
        nests_of(nests, LABELS)


def survey(rng, n, nests, beta=(-0.8, -1.0), bent=False):
    """Trips with costs and times of all five alternatives, of which some are not there, and what was chosen."""
    table = {f"{x}_{a}": rng.integers(1, 9, n) / 2 for a in LABELS for x in ("cost", "time")}
    frame = pd.DataFrame(table | {f"there_{a}": 1 * (rng.random(n) < 0.8) for a in LABELS[:4]} | {"there_walk": 1})
    X = ChoiceSets.from_wide(frame, alternatives=list(LABELS), attributes=["cost", "time"], available="there")
    log_rates = X.values @ np.array(beta) + (np.log(X.values[:, 0]) if bent else 0.0)
    wide = np.full((1, n, 5), -np.inf)
    wide[0, X.situation, X.alternative] = log_rates
    utilities = nested_utilities(wide, nests.of_alternative, nests.dissimilarity[None])[0]
    return X, LABELS[np.argmax(utilities + rng.gumbel(size=utilities.shape), axis=1)]


def learned_task(rng, n=60):
    """Choices in nests as learned directions take them, and the task without nests."""
    nests = some_nests(0.4, 0.7)
    X, y = survey(rng, n, nests)
    design, given = ChoiceDesign().fit(X), chosen(X, y)
    Z = design.transform(EntryTable.of(X))
    seen = Observations.of_situations(
        Situations(given.outcomes, np.zeros_like(given.entry), given.entry), make_response("choice"), 1
    )
    source, nest = Source(np.random.SeedSequence(0)), nests.of_alternative[X.alternative]
    nested = make_situation_task([Z], seen, source, False, "numba", nests, nest)
    return nested, make_situation_task([Z], seen, source, False, "numba")


@pytest.mark.parametrize("of_coordinates", [True, False])
def test_slopes_of_learned_directions_are_differences(of_coordinates):
    rng = np.random.default_rng(5)
    task, _ = learned_task(rng)
    prior = task.reader.prior(task, LearnedDirections(components=2, own_shape=0.5), 1.0)
    density = density_of(task.prepared(np.float64), prior, task.n_columns, of_coordinates)
    q, gradient = 0.5 * rng.standard_normal(size(prior, task.n_columns)), np.empty(size(prior, task.n_columns))
    density(q, gradient)
    for i, change in enumerate(1e-5 * np.eye(len(q))):
        up, down = (density(q + s * change, np.empty_like(q)) for s in (1, -1))
        assert (up - down) / 2e-5 == pytest.approx(gradient[i], rel=1e-5, abs=1e-5)


def test_learned_directions_with_dissimilarities_of_1_are_those_without_nests():
    rng = np.random.default_rng(6)
    nested, plain = learned_task(rng)
    settings = LearnedDirections(components=2, own_shape=0.5)
    priors = [task.reader.prior(task, settings, 1.0) for task in (nested, plain)]
    assert [prior.parameters for prior in priors] == [2, 0]
    q = 0.5 * rng.standard_normal(size(priors[0], nested.n_columns))
    q[-2:] = 40.0  # a dissimilarity of 1 but for 1e-9
    with_nests, without = np.empty_like(q), np.empty(len(q) - 2)
    found = density_of(nested.prepared(np.float64), priors[0], nested.n_columns, False)(q, with_nests)
    assert found == pytest.approx(
        density_of(plain.prepared(np.float64), priors[1], plain.n_columns)(q[:-2], without), abs=1e-5
    )
    np.testing.assert_allclose(with_nests[:-2], without, atol=1e-5)
    positions = [(nested, q[None], priors[0]), (plain, q[None, :-2], priors[1])]
    p = [task.predicted(position, prior, np.arange(len(task.seen))) for task, position, prior in positions]
    assert sorted(p[0][:, 0].round(6)) == sorted(p[1][:, 0].round(6))


@pytest.fixture(scope="module")
def trips():
    """Choices with strong nests, and as many that are held out."""
    rng, nests = np.random.default_rng(7), some_nests(0.35, 0.9)
    return survey(rng, 500, nests), survey(rng, 500, nests)


@pytest.fixture(scope="module")
def learned(trips):
    """The mode of learned directions with nests."""
    settings = LearnedDirections(components=1)
    return PlackettLuceChooser(EM(cv=2), features=settings, nests=NESTS).fit(*trips[0])


def test_em_learns_nests_with_directions(trips, learned):
    """The dissimilarity of the strong nest, and better predictions than without nests."""
    found = learned.parameters()
    assert found.index.tolist() == ["rails", "road"] and found["lower"].isna().all()
    assert 0.2 < found.loc["rails", "mean"] < 0.55 < found.loc["road", "mean"] <= 1.0
    plain = PlackettLuceChooser(EM(cv=2), features=LearnedDirections(components=1)).fit(*trips[0])
    assert len(plain.parameters()) == 0
    gain = learned.log_likelihood(*trips[1]) - plain.log_likelihood(*trips[1])
    assert gain.mean() > 2 * gain.std() / np.sqrt(len(gain))
    assert "nests with dissimilarities rails 0." in repr(learned)
