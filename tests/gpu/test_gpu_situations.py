"""Choices and rankings on the GPU against the reference."""

import warnings

import numpy as np
import pandas as pd
import pytest

from conftest import situation_rows
from plackett import EM, ChoiceSets, Gibbs, PlackettLuceChooser, PlackettLuceRanker, Rankings, Variational
from plackett.data.observations import Observations, Situations
from plackett.directions import LearnedDirections
from plackett.directions.density import density_of
from plackett.directions.flights import Trajectories
from plackett.directions.prior import size as prior_size
from plackett.directions.situation_task import make_situation_task
from plackett.directions.walk import HamiltonianSampler, make_sampler
from plackett.inference.driver import Chain, Source
from plackett.inference.hmc import Flight, begin, leap, push
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
    return (situation_rows(e, features, situations, make_response(name), n_groups) for e in ("numpy", "cupy"))


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


def test_a_gradient_is_the_same_to_the_last_bit_every_time():
    features, situations, _, rng = problem("ranking", False, 9000, 7, 5)
    there = situation_rows("cupy", features, situations, make_response("ranking"), 7)
    beta, log_weights = rng.normal(size=(6, 5)), rng.normal(size=(7, 6))
    first = there.gradient(beta, log_weights)
    for _ in range(5):
        again = there.gradient(beta, log_weights)
        assert again.value == first.value
        np.testing.assert_array_equal(again.directions, first.directions)
        np.testing.assert_array_equal(again.log_weights, first.log_weights)


# one weight for all alternatives, or their own; items that own components or not, with totals apart or not
@pytest.mark.parametrize("n_chains", [1, 3, 4])
@pytest.mark.parametrize(
    ("name", "n_groups", "shared", "owned", "totals"),
    [
        ("choice", 1, False, False, False),
        ("choice", 5, False, False, False),
        ("choice", 5, True, True, False),
        ("ranking", 6, True, True, True),
        ("ranking", 6, False, True, True),
        ("ranking", 300, True, False, True),
    ],
)
def test_trajectories_are_those_of_the_processor(name, n_groups, shared, owned, totals, n_chains):
    features, situations, _, rng = problem(name, shared, 600, 6, 3)
    situations = situations._replace(group=situations.group * (n_groups // 6 or 1) % n_groups)
    reference, there = both(name, 3 * features - 1, situations, n_groups)
    seed = np.random.SeedSequence(0)
    task = make_situation_task(
        [features], Observations.of_situations(situations, make_response(name), n_groups), Source(seed), owned
    )
    prior = task.reader.prior(task, LearnedDirections(), 0.02, 2)._replace(totals=totals)
    density, D = density_of(reference, prior, 3), prior_size(prior, 3)
    trajectories = Trajectories(there, prior, n_chains)
    q, p = 0.5 * rng.normal(size=(2, n_chains, D))
    value, gradient = trajectories.look(q)
    step, inverse_mass = np.full(n_chains, 0.01), rng.gamma(2.0, 0.05, size=(n_chains, D))
    floor = value - 1000.0
    if n_chains > 1:
        floor[1] = value[1] + 1e9  # given up at the first leap
    new, again = (trajectories.fly(q, p, gradient, inverse_mass, step, floor, 7) for _ in range(2))
    close = {"rtol": 1e-9, "atol": 1e-8}
    for c in range(n_chains):
        walk, flight = begin(q[c].copy()), Flight(p[c].copy(), np.empty(D), np.empty(D), np.empty(D))
        walk.variance[0] = inverse_mass[c]
        assert value[c] == pytest.approx(density(walk.position, flight.gradient), rel=1e-10)
        np.testing.assert_allclose(gradient[c], flight.gradient, **close)
        for _ in range(7):
            leap(walk, flight, step[c])
            last = density(walk.position, flight.gradient)
            if not last > floor[c]:
                break
            push(flight, step[c])
        for got, want in zip(new, (walk.position, flight.momentum, flight.gradient, last), strict=True):
            np.testing.assert_allclose(got[c], want, **close)
    for a, b in zip(new, again, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("name", "owned", "T"), [("ranking", True, 15), ("choice", False, 150), ("choice", False, 8)])
def test_one_chain_that_flies_has_the_draws_of_one_that_walks(name, owned, T):
    """New scales before each trajectory are in it where totals are apart or situations are many."""
    features, situations, _, _ = problem(name, False, T, 4, 2)
    found = []
    for engine in ("numba", "cupy"):
        response, seed = make_response(name), np.random.SeedSequence(0)
        task = make_situation_task(
            [features], Observations.of_situations(situations, response, 4), Source(seed), owned, engine
        )
        rng, prior = np.random.default_rng(1), task.reader.prior(task, LearnedDirections(components=2), 0.02)
        prior = prior._replace(totals=owned)
        sampler = make_sampler(task, prior, 10, 6)
        assert (type(sampler) is HamiltonianSampler) == (engine == "numba")
        assert sampler.narrow == (T != 8)
        chain = Chain(begin(0.3 * rng.normal(size=prior_size(prior, 2)), 1e-3, sampler.narrow), rng)
        draws, values = np.empty((10, prior_size(prior, 2))), np.empty(10)
        sampler.advance(chain, True, draws, values)
        found.append((draws, values, *chain.state))
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)
    assert len(np.unique(found[0][1])) > 3


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


def test_modes_of_rankings_are_those_of_the_processor():
    X, R = rankings(200, 3)
    settings = {"features": LearnedDirections(components=1), "random_state": 0}
    here, there = (PlackettLuceRanker(EM(cv=2), engine=e, **settings).fit(X, R) for e in ("numba", "cupy"))
    np.testing.assert_allclose(here.log_likelihood(X, R), there.log_likelihood(X, R), atol=1e-3)


def test_posteriors_of_rankings_predict_as_on_the_processor():
    """Chains fly equally far: other draws of the same posterior. Two seeds on the processor are 0.0012 apart."""
    X, R = rankings(400, 4)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*(R-hat|effective sample size|trusted|draws a chain).*")
        here, there = (
            PlackettLuceRanker(engine=e, random_state=0).fit(X, R).predict_proba(X[:200]) for e in ("numba", "cupy")
        )
    assert 0 < np.sqrt(((here - there) ** 2).mean()) < 0.006


def choices(n=300):
    rng, labels = np.random.default_rng(0), ["bus", "car", "walk"]
    frame = pd.DataFrame({f"{x}_{a}": rng.normal(size=n) for a in labels for x in ("cost", "time")})
    utility = np.column_stack([frame[f"cost_{a}"] - 0.5 * frame[f"time_{a}"] for a in labels])
    chosen = np.array(labels)[np.argmax(utility + rng.gumbel(size=(n, 3)), axis=1)]
    return ChoiceSets.from_wide(frame, alternatives=labels), chosen


def test_posteriors_of_choices_predict_as_on_the_processor():
    """Two seeds on the processor are 0.0008 apart."""
    X, chosen = choices(500)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*(R-hat|effective sample size|trusted|draws a chain).*")
        here, there = (
            PlackettLuceChooser(engine=e, random_state=0).fit(X, chosen).predict_proba(X) for e in ("numba", "cupy")
        )
    assert 0 < np.sqrt(((here - there) ** 2).mean()) < 0.006


def test_choosers_are_those_of_the_processor():
    X, chosen = choices()
    here, there = (
        PlackettLuceChooser(EM(cv=2), features=LearnedDirections(components=1), engine=e).fit(X, chosen)
        for e in ("numba", "cupy")
    )
    np.testing.assert_allclose(here.predict_proba(X), there.predict_proba(X), atol=1e-3)
