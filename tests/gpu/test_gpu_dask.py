"""Passes on the GPUs of Dask workers against those of the processor."""

import warnings

import numpy as np
import pandas as pd
import pytest

from clusters import Kills, two_workers
from plackett import EM, ChoiceSets, Gibbs, PlackettLuceChooser, PlackettLuceClassifier, PlackettLuceRanker, Rankings
from plackett import Variational as VB
from plackett.cluster import directions, gpus
from plackett.cluster.directions import send_classes
from plackett.data.observations import Observations, Situations
from plackett.directions import LearnedDirections
from plackett.engines import dask
from plackett.engines.cupy_situations import CupySituations
from plackett.engines.placed import place_rows, place_situations
from plackett.features import ExpFeatures
from plackett.inference.driver import Source
from plackett.model.race import Weights
from plackett.responses import Outcomes, make_response

pytestmark = pytest.mark.gpu
SHORT = {"draws": 10, "tune": 10, "chains": 2, "moves": "none"}


@pytest.fixture(scope="module")
def client():
    with two_workers() as client:
        yield client


@pytest.fixture(autouse=True)
def little_is_enough(monkeypatch):
    monkeypatch.setattr(directions, "MANY_ROWS", 1)
    monkeypatch.setattr(dask, "MANY_ENTRIES", 1)
    monkeypatch.setattr(dask, "ENTRIES", 2000)  # many blocks
    monkeypatch.setattr(dask, "ENTRIES_ON_GPU", 2000)
    monkeypatch.setattr(directions, "NUMBERS", 2000)
    monkeypatch.setattr("plackett.directions.stacking.FOLDS", {np.inf: 2})
    monkeypatch.setattr("plackett.directions.stacking.DRAWS", 10)


def data(n, d=4, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.argmax(X @ rng.normal(size=(d, n_classes)) + rng.gumbel(size=(n, n_classes)), axis=1)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", [np.uint32, np.uint64])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_block_among_others_draws_the_same(dtype, kind, weighted):
    rng = np.random.default_rng(1)
    W, codes = rng.uniform(size=(3000, 21)).astype(dtype), rng.integers(0, 3, 3000)
    weight = np.where(rng.random(3000) < 0.2, 7.0, 1.0) if weighted else None
    rows = place_rows(W, Observations.of_classes(codes, 4, weight), 1)  # the last class has no rows
    rows.put((np.iinfo(kind).max // 2 + rng.permutation(10_000)[:3000]).astype(kind))
    weights = Weights.point(rng.normal(size=(4, 21)))
    for key in (3, 2**61 + 7):
        here, there = (dask.sampled(rows, weights, key, on_gpu) for on_gpu in (False, True))
        if dtype == np.float64:
            np.testing.assert_array_equal(there.wins, here.wins)
        else:  # the rounding of a rate moves few across the line
            assert np.abs(there.wins - here.wins).sum() <= 6
        np.testing.assert_allclose(there.exposure, here.exposure, rtol=1e-10 if dtype == np.float64 else 1e-5)
    here, there = (dask.expected(rows, weights, on_gpu) for on_gpu in (False, True))
    np.testing.assert_allclose(there.wins, here.wins, rtol=1e-10, atol=1e-10)
    assert there.value == pytest.approx(here.value, rel=1e-12)


@pytest.mark.parametrize("name", ["choice", "ranking"])
def test_situations_among_others_draw_the_same(name):
    rng = np.random.default_rng(2)
    entries = rng.integers(2, 7, size=2000)
    sizes = [[1] if name == "choice" else [1] * (n - 1) for n in entries]
    group = np.concatenate([rng.permutation(6)[:n] for n in entries])
    situations = Situations(Outcomes.of(entries, sizes, rng.integers(1, 5, 2000)), group, np.arange(len(group)))
    seen = Observations.of_situations(situations, make_response(name), 6)
    rows = place_situations(rng.uniform(size=(len(group), 4)), seen, 1)
    rows.put((5000 + rng.permutation(2000), 7 * rng.permutation(3000)[:2000]))
    weights = Weights.point(rng.normal(size=(6, 4)))
    for key in (5, 2**60 + 1):
        here, there = (dask.sampled_situations(rows, weights, key, on_gpu) for on_gpu in (False, True))
        np.testing.assert_array_equal(there.wins, here.wins)
        np.testing.assert_allclose(there.exposure, here.exposure, rtol=1e-10)
    assert isinstance(rows.gpu_copy[1], CupySituations)


def fitted(model, *seen, **settings):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*(R-hat|effective sample size|trusted|draws a chain).*")
        return model(random_state=0, **settings).fit(*seen)


@pytest.fixture
def asked(monkeypatch):
    """What was said to whom asked whether passes go to GPUs."""
    answers, whether = [], gpus.go_to_gpus

    def asking(*question):
        answers.append(whether(*question))
        return answers[-1]

    for module in (dask, directions):
        monkeypatch.setattr(module, "go_to_gpus", asking)
    return answers


@pytest.mark.parametrize("inference", [EM(), VB(), Gibbs(**SHORT)])
def test_classes(client, asked, inference):
    X, y = data(3000)
    settings = {"features": "exp", "inference": inference, "shape": 0.5}
    here, there = (fitted(PlackettLuceClassifier, X, y, engine=e, **settings) for e in ("numba", "dask"))
    assert asked and all(asked)
    if isinstance(inference, Gibbs):
        np.testing.assert_allclose(there.posterior_.log_weights, here.posterior_.log_weights, rtol=1e-6)
    else:
        np.testing.assert_allclose(there.weights_, here.weights_, atol=1e-7)


def test_a_worker_killed_changes_no_bit(client, monkeypatch):
    X, y = data(3000)
    settings = {"features": ExpFeatures(dtype="float32"), "inference": Gibbs(**SHORT), "engine": "dask"}
    calm = fitted(PlackettLuceClassifier, X, y, **settings)
    with monkeypatch.context() as patch:
        kills = Kills(patch, client, [6, 20])
        again = fitted(PlackettLuceClassifier, X, y, **settings)
        assert kills.done == 2
    np.testing.assert_array_equal(again.posterior_.log_weights, calm.posterior_.log_weights)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_gradient_of_directions(client, monkeypatch, asked, dtype):
    X, y = data(3000)
    rng, seed = np.random.default_rng(3), np.random.SeedSequence(0)
    beta, log_weights, found = rng.normal(size=(6, 4)), rng.normal(size=(3, 6)), []
    for many in (1, 10**9):
        monkeypatch.setattr(directions, "MANY_ROWS", many)
        task = send_classes(X.astype(dtype).astype(float), y, None, Source(seed))
        parts = [task, *(task.part(train) for train, _ in task.reader.folds(task, 2))]
        found.append([part.prepared(dtype).gradient(beta, log_weights) for part in parts])
    assert asked == [True, True, False, False]  # packed for all rows, and by folds
    close = 1e-10 if dtype == np.float64 else 2e-5
    for there, here in zip(*found, strict=True):
        assert there.value == pytest.approx(here.value, rel=close)
        np.testing.assert_allclose(there.directions, here.directions, atol=close * np.sqrt(3000))
        np.testing.assert_allclose(there.log_weights, here.log_weights, atol=close * np.sqrt(3000))


def choices(n=600):
    rng = np.random.default_rng(4)
    x, price = rng.normal(size=(n, 3)), rng.normal(size=(n, 3))
    chosen = np.argmax(x - price + rng.gumbel(size=(n, 3)), axis=1)
    columns = {"who": np.repeat(np.arange(n), 3), "what": np.tile([*"abc"], n), "x": x.ravel(), "price": price.ravel()}
    return ChoiceSets.from_long(pd.DataFrame(columns), situation="who", alternative="what"), np.array([*"abc"])[chosen]


def test_choices(client, asked):
    seen = choices()
    for inference, close in ((EM(), 1e-7), (Gibbs(**SHORT), 1e-6)):
        settings = {"features": "exp", "inference": inference, "shape": 0.5}
        here, there = (fitted(PlackettLuceChooser, *seen, engine=e, **settings) for e in ("numba", "dask"))
        np.testing.assert_allclose(there.weights_, here.weights_, atol=close)
    assert asked and all(asked)


def test_rankings(client, asked):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(700, 2))
    worth = X @ rng.normal(size=(2, 4)) + rng.gumbel(size=(700, 4))
    R = Rankings.from_orders(np.array(list("abcd"))[np.argsort(-worth, axis=1)])
    settings = {"features": "exp", "inference": Gibbs(**SHORT), "shape": 0.5}
    here, there = (fitted(PlackettLuceRanker, X, R, engine=e, **settings) for e in ("numba", "dask"))
    np.testing.assert_allclose(there.posterior_.log_weights, here.posterior_.log_weights, rtol=1e-6)
    assert asked and all(asked)


@pytest.mark.parametrize("model", [PlackettLuceClassifier, PlackettLuceChooser])
def test_learned_directions(client, asked, model):
    """Draws differ from those of the processor by rounding, which a few steps do not amplify much."""
    seen = data(800) if model is PlackettLuceClassifier else choices()
    few = LearnedDirections(components=2, leapfrogs=3)
    settings = {"features": few, "inference": Gibbs(draws=6, tune=8, chains=2), "engine": "dask"}
    there = fitted(model, *seen, **settings)
    assert asked and all(asked)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(directions, "MANY_ROWS", 10**9)
        here = fitted(model, *seen, **settings)
    np.testing.assert_allclose(there.predict_proba(seen[0]), here.predict_proba(seen[0]), atol=1e-3)
