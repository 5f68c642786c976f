"""The engine on a Dask cluster: the answers of the compiled one, whatever the blocks, the workers and their fates."""

import multiprocessing
import pickle

import numpy as np
import pytest

from clusters import NEAR, SETTLED, assert_same_answer, quiet
from conftest import class_rows, small_problem
from plackett import EM, Gibbs, PlackettLuceClassifier
from plackett.cluster.blocks import span
from plackett.cluster.client import ClusterError, check_versions, in_use, versions
from plackett.cluster.keeper import Keeper
from plackett.cluster.storage import Block
from plackett.data.observations import Observations
from plackett.engines.placed import place_rows
from plackett.model.race import Weights

rng = np.random.default_rng(0)
X = np.column_stack([rng.normal(size=(600, 2)), rng.integers(0, 2, size=(600, 2))])
Y = np.array(["a", "b", "c"])[(X[:, 0] + rng.normal(size=600) > 0).astype(int) + (X[:, 1] + X[:, 2] > 1)]
SHORT = {"draws": 15, "tune": 10, "chains": 2, "moves": "none"}
WEIGHT = rng.choice([0.0, 1.0, 2.0, 40.0, 1e3], size=600)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr("plackett.engines.dask.ENTRIES", 1000)


def fitted(inference, sample_weight=None, engine="dask", **settings):
    clf = PlackettLuceClassifier(inference, engine=engine, random_state=0, **({"features": "exp"} | settings))
    return quiet(clf, X, Y, sample_weight=sample_weight)


def test_a_cluster_is_started_and_closed_where_there_is_none():
    assert in_use() is None  # this test comes before those with a client
    found = fitted("variational", shape=0.5)
    assert in_use() is None
    assert not multiprocessing.active_children()
    assert_same_answer(fitted("variational", shape=0.5, engine="numba"), found)


@pytest.mark.parametrize("weighted", [False, True])
def test_passes_are_those_of_the_compiled_engine(client, weighted):
    W, codes, log_weights = small_problem(9000, 15, 5)
    weight = np.resize(WEIGHT, len(codes)) if weighted else None
    fast, far = (class_rows(name, W, codes, 5, weight) for name in ("numba", "dask"))
    assert len(far.held.blocks) > 100
    weights = Weights(log_weights - 1, log_weights + 2)
    a, b = fast.expect(weights), far.expect(weights)
    np.testing.assert_allclose(b.wins, a.wins, rtol=1e-11, atol=1e-9)
    np.testing.assert_allclose(b.exposure, a.exposure, rtol=1e-11)
    assert b.value == pytest.approx(a.value, rel=1e-11)
    for key in (0, 2**61 + 12345):
        a, b = fast.sample(weights, key), far.sample(weights, key)
        np.testing.assert_array_equal(b.wins, a.wins)
        np.testing.assert_allclose(b.exposure, a.exposure, rtol=1e-11)


def test_fractions_are_not_drawn(client):
    W, codes, log_weights = small_problem(50, 3, 3)
    rows = class_rows("dask", W, codes, 3, np.full(50, 0.5))
    with pytest.raises(ValueError, match="whole numbers"):
        rows.sample(Weights.point(log_weights), 1)


@pytest.mark.parametrize("inference", [EM(), SETTLED, Gibbs(**SHORT)])
def test_fits_are_those_of_the_compiled_engine(client, inference):
    shape = {"shape": 0.5} if isinstance(inference, EM) else {}
    a, b = (fitted(inference, engine=engine, **shape) for engine in ("numba", "dask"))
    assert_same_answer(a, b, NEAR if inference is SETTLED else 1e-10)


@pytest.mark.long
def test_weights_and_shapes_that_are_learned_too(client):
    a, b = (
        fitted(EM(shapes=(1.0, 0.5), cv=2), WEIGHT, engine, class_weight="balanced") for engine in ("numba", "dask")
    )
    assert_same_answer(a, b)
    np.testing.assert_allclose(list(b.cv_log_loss_.values()), list(a.cv_log_loss_.values()), rtol=1e-10)
    a, b = (fitted(Gibbs(**SHORT), WEIGHT, engine) for engine in ("numba", "dask"))
    assert_same_answer(a, b)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"inference": Gibbs(moves="exchange")}, r"moves='exchange'\) cannot be had with engine='dask'"),
        ({"inference": Gibbs(move_budget=2.0)}, "no moves with engine='dask'"),
    ],
)
def test_what_cannot_be_had_is_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        PlackettLuceClassifier(engine="dask", **({"features": "exp"} | settings)).fit(X, Y)


def test_other_versions_are_refused():
    check_versions(versions(), "tcp://here")
    with pytest.raises(ClusterError, match=r"tcp://there has NumPy 1\.0, and here it is"):
        check_versions(versions() | {"NumPy": "1.0"}, "tcp://there")


def test_blocks_in_files_are_the_same(tmp_path):
    W, codes, log_weights = small_problem(9000, 15, 5)
    weights = Weights.point(log_weights)
    held = place_rows(W, Observations.of_classes(codes, 5), 1)
    held.put(np.random.default_rng(0).permutation(9000).astype(np.uint32))
    mapped = held.in_file(str(tmp_path))
    assert not list(tmp_path.iterdir())  # the file has no name
    sent = pickle.loads(pickle.dumps(mapped))
    for rows in (mapped, sent):
        for a, b in ((held.expect(weights), rows.expect(weights)), (held.sample(weights, 3), rows.sample(weights, 3))):
            np.testing.assert_array_equal(a.wins, b.wins)
            np.testing.assert_array_equal(a.exposure, b.exposure)
        rows.give_back()
    np.testing.assert_array_equal(mapped.unpacked_features(np.arange(9000)), W)


def test_any_question_gives_the_pages_of_a_file_back(tmp_path, monkeypatch):
    """Dask counts them as memory of the worker, and would end it."""
    W, codes, _ = small_problem(500, 6, 4)
    held, given = place_rows(W, Observations.of_classes(codes, 4), 1).in_file(str(tmp_path)), []
    monkeypatch.setattr(Block, "give_back", lambda self: given.append(self))
    keeper = Keeper.__new__(Keeper)
    keeper.blocks = [held, held]
    assert len(keeper.find(span, (), None)) == 2
    assert given == [held, held]


def lies_in_file(rows):
    """All that is as long as the rows."""
    return rows.mapping is not None and all(not a.flags.owndata for a in (*rows.panels, rows.order))


def travels_into_a_file(rows):
    return lies_in_file(pickle.loads(pickle.dumps(rows)))


@pytest.mark.long
def test_a_worker_with_little_memory_keeps_blocks_in_files(client):
    keep = "import plackett.cluster.storage as storage; storage.KEPT = "
    W, codes, log_weights = small_problem(500, 6, 4)
    client.run(exec, keep + "0.0")
    rows = class_rows("dask", W, codes, 4)
    assert all(rows.held.each(lies_in_file))
    assert all(rows.held.each(travels_into_a_file))
    near = class_rows("numba", W, codes, 4).expect(Weights.point(log_weights))
    np.testing.assert_allclose(rows.expect(Weights.point(log_weights)).wins, near.wins, rtol=1e-11)
    far = fitted(Gibbs(**SHORT))
    client.run(exec, keep + "0.5")
    assert_same_answer(fitted(Gibbs(**SHORT), engine="numba"), far)
