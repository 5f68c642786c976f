"""Whole fits on the GPU against those on the processor, and trajectories against the functions of the processor."""

import warnings

import numpy as np
import pytest

from conftest import class_gradient
from plackett import EM, Gibbs, PlackettLuceClassifier, Variational, classifier
from plackett.directions import LearnedDirections, climbers, flights
from plackett.directions.centred import log_spread, uncentred
from plackett.directions.class_task import make_class_task
from plackett.directions.climbers import climb_at_once, make_climbers
from plackett.directions.density import density_of
from plackett.directions.flights import Trajectories
from plackett.directions.prior import size as prior_size
from plackett.engines import factory
from plackett.features import ExpFeatures
from plackett.inference.driver import Source
from plackett.inference.hmc import Flight, begin, leap, push

pytestmark = pytest.mark.gpu


def data(n, d=4, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    scores = X @ rng.normal(size=(d, n_classes)) + 0.7 * X[:, :1] ** 2 * np.arange(n_classes)
    return X, np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)


def fitted(engine, X, y, **settings):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*(R-hat|effective sample size|trusted|draws a chain).*")
        return PlackettLuceClassifier(engine=engine, random_state=0, **settings).fit(X, y)


@pytest.mark.parametrize("inference", [EM(), Variational()])
@pytest.mark.parametrize("shape", [0.5, "learn"])
def test_estimates_are_those_of_the_processor(inference, shape):
    X, y = data(3000)
    here, there = (fitted(e, X, y, features="exp", inference=inference, shape=shape) for e in ("numba", "cupy"))
    np.testing.assert_allclose(here.weights_, there.weights_, atol=1e-7)
    assert here.shape_ == pytest.approx(there.shape_, rel=1e-6)
    np.testing.assert_allclose(here.predict_proba(X), there.predict_proba(X), atol=1e-6)


def test_an_ascent_comes_to_rest_with_features_in_floats():
    X, y = data(60_000)
    settings = {"features": ExpFeatures(dtype="float32"), "inference": EM(), "shape": 0.5}
    here, there = (fitted(e, X, y, **settings) for e in ("numba", "cupy"))
    np.testing.assert_allclose(here.weights_, there.weights_, atol=1e-7)
    assert there.n_iter_ < 2 * here.n_iter_


def test_plain_gibbs_has_the_draws_of_the_processor():
    """Sums are rounded differently, which a short chain does not amplify enough to change a winner."""
    X, y = data(2000)
    settings = {"features": "exp", "inference": Gibbs(draws=15, tune=15, chains=5, moves="none")}
    here, there = (fitted(e, X, y, **settings) for e in ("numba", "cupy"))
    np.testing.assert_allclose(here.posterior_.log_weights, there.posterior_.log_weights, rtol=1e-6)


def test_weights_of_rows_count():
    X, y = data(500)
    weight = np.random.default_rng(0).integers(1, 300, size=500).astype(float)
    settings = {"features": "exp", "inference": Gibbs(draws=15, tune=15, chains=2, moves="none")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        here, there = (
            PlackettLuceClassifier(engine=e, random_state=0, **settings).fit(X, y, sample_weight=weight)
            for e in ("numba", "cupy")
        )
    np.testing.assert_allclose(here.posterior_.log_weights, there.posterior_.log_weights, rtol=1e-5)


@pytest.mark.parametrize("components", [2, 3])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_chains", [1, 3, 4])
def test_trajectories_are_those_of_the_processor(components, dtype, n_chains):
    X, codes = data(2000)
    X = X.astype(dtype).astype(float)
    weight = np.random.default_rng(0).gamma(1.0, size=2000)
    prior, rng = LearnedDirections(components=components).prior(3, 4, 0.02), np.random.default_rng(1)
    D = prior_size(prior, 4)
    density = density_of(class_gradient("numpy", X, codes, weight), prior, 4)
    trajectories = Trajectories(class_gradient("cupy", X, codes, weight, dtype), prior, n_chains)
    close = {"rtol": 1e-9, "atol": 1e-8} if dtype == np.float64 else {"rtol": 2e-4, "atol": 2e-2}
    q, p = 0.5 * rng.normal(size=(2, n_chains, D))
    value, gradient = trajectories.look(q)
    step, inverse_mass = np.full(n_chains, 0.01), rng.gamma(2.0, 0.05, size=(n_chains, D))
    floor = value - 1000.0
    if n_chains > 1:
        floor[1] = value[1] + 1e9  # given up at the first leap
    new = trajectories.fly(q, p, gradient, inverse_mass, step, floor, 7)
    for c in range(n_chains):
        walk, flight = begin(q[c].copy()), Flight(p[c].copy(), np.empty(D), np.empty(D), np.empty(D))
        walk.variance[0] = inverse_mass[c]
        assert value[c] == pytest.approx(density(walk.position, flight.gradient), rel=close["rtol"])
        np.testing.assert_allclose(gradient[c], flight.gradient, **close)
        for _ in range(7):
            leap(walk, flight, step[c])
            last = density(walk.position, flight.gradient)
            if not last > floor[c]:
                break
            push(flight, step[c])
        for got, want in zip(new, (walk.position, flight.momentum, flight.gradient, last), strict=True):
            np.testing.assert_allclose(got[c], want, **close)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_slopes_in_the_coordinates_of_many_rows(dtype):
    """Against differences of the reference's log-density."""
    X, codes = data(500)
    X = X.astype(dtype).astype(float)
    prior, rng = LearnedDirections(components=2).prior(3, 4, 0.02), np.random.default_rng(1)
    D = prior_size(prior, 4)
    density = density_of(
        class_gradient("numpy", X, codes, np.ones(500)),
        prior,
        4,
    )

    def reference(position):
        return density(uncentred(position, prior, 4), np.empty(D)) - log_spread(position, prior, 4)

    q = 0.5 * rng.normal(size=(2, D))
    trajectories = Trajectories(
        class_gradient("cupy", X, codes, np.ones(500), dtype),
        prior,
        2,
        True,
    )
    value, gradient = trajectories.look(q)
    close = {"rtol": 1e-5, "atol": 1e-4} if dtype == np.float64 else {"rtol": 1e-3, "atol": 1e-2}
    for c in range(2):
        assert value[c] == pytest.approx(reference(q[c]), rel=close["rtol"])
        steps = 1e-5 * np.eye(D)
        want = [(reference(q[c] + step) - reference(q[c] - step)) / 2e-5 for step in steps]
        np.testing.assert_allclose(gradient[c], want, **close)


def test_many_rows_are_walked_over_from_modes(monkeypatch):
    """With all that belongs to many rows, the posterior of few: predictions differ by their Monte-Carlo error."""
    X, y = data(4000)
    new, _ = data(2000, seed=1)
    here = fitted("cupy", X, y)
    monkeypatch.setattr(flights, "MANY", 1000)
    difference = here.predict_proba(new) - fitted("cupy", X, y).predict_proba(new)
    assert 0 < np.sqrt((difference**2).mean()) < 0.015


def test_auto_takes_the_gpu_and_predicts_there(monkeypatch):
    X, y = data(3000)
    monkeypatch.setattr(factory, "MANY_ROWS", 1000)
    monkeypatch.setattr(classifier, "MANY_GATES", 1)
    settings = {"inference": Gibbs(draws=20, tune=20)}
    there, asked = fitted("auto", X, y, **settings), fitted("cupy", X, y, **settings)
    np.testing.assert_array_equal(there.posterior_.directions, asked.posterior_.directions)
    found = there.predict_proba(X)
    np.testing.assert_allclose(found, there.set_params(engine="numba").predict_proba(X), rtol=1e-9)


def test_learned_directions_predict_as_on_the_processor():
    """Different trajectories, the same posterior: probabilities differ by their Monte-Carlo error, held to 0.01."""
    X, y = data(4000)
    new, _ = data(2000, seed=1)
    here, there = (fitted(e, X, y) for e in ("numba", "cupy"))
    difference = here.predict_proba(new) - there.predict_proba(new)
    assert np.sqrt((difference**2).mean()) < 0.015
    one = {"inference": EM(cv=2), "features": LearnedDirections(components=1)}  # with more, rounding picks the mode
    here, there = (fitted(e, X, y, **one) for e in ("numba", "cupy"))
    np.testing.assert_allclose(here.predict_proba(new), there.predict_proba(new), atol=1e-5)


def test_climbers_on_the_gpu_reach_modes_of_their_own_weights(monkeypatch):
    """With one component per class the mode under given weights is unique, and that of the processor."""
    (X, codes), positions = data(3000), {}
    seeds = np.random.SeedSequence(3).spawn(6)
    monkeypatch.setattr(climbers, "TOLERANCE", 1e-8)
    for engine in ("numba", "cupy"):
        task = make_class_task(X, codes, None, Source(np.random.SeedSequence(0)), engine=engine)
        prior = task.reader.prior(task, LearnedDirections(components=1), 0.02)
        parts = [seeds] if climb_at_once(task) else [[seed] for seed in seeds]
        made = [make_climbers(task, prior, some, 1000, lambda: False) for some in parts]
        positions[engine] = np.concatenate([each.to(0.5) for each in made])
    every = np.arange(len(X))
    modes = {engine: [task.predicted(q[None], prior, every) for q in found] for engine, found in positions.items()}
    for one, other in zip(*modes.values(), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-3)  # passes are in floats
    assert np.std(modes["cupy"], axis=0).max() > 0.01  # the weights differ
