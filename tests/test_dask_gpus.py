"""What can be said of GPUs on workers without one: who goes there, what is brought, and what does not travel.

The passes there are compared with those of the processor by ``make test-gpu``; here the reference stands in for them.
"""

import pickle

import numpy as np
import pytest

from conftest import class_gradient, small_problem
from plackett.cluster import client, direction_blocks, gpus
from plackett.cluster.client import ClusterError
from plackett.cluster.direction_blocks import PackedFolds, PackedOnGpu, SentSituations, packed_situations
from plackett.cluster.gpus import copy_of, go_to_gpus
from plackett.data.observations import Observations, Situations
from plackett.engines import dask
from plackett.engines.placed import place_rows, place_situations
from plackett.engines.situations import NumpySituations
from plackett.model.race import Weights
from plackett.responses import Outcomes, make_response

rng = np.random.default_rng(5)


class Client:
    """Whose workers give these answers."""

    def __init__(self, *answers):
        self.answers = answers

    def run(self, question, on_error):
        assert question is gpus.present
        return dict(enumerate(self.answers))


@pytest.mark.parametrize(
    ("answers", "there"),
    [((True, True), True), ((True, False), False), ((), False), ((True, OSError("lost")), False)],
)
def test_all_workers_have_a_gpu_or_none_is_used(answers, there):
    assert go_to_gpus(Client(*answers), True) == there
    assert not go_to_gpus(Client(*answers), False)


@pytest.mark.parametrize(("there", "threads"), [(True, [3]), (False, [1, 1, 1])])
def test_a_local_cluster_has_a_process_for_the_gpu_or_one_a_core(monkeypatch, there, threads):
    monkeypatch.setattr(client, "present", lambda: there)
    monkeypatch.setattr(client, "cores", lambda: 3)
    with client.cluster() as found:
        assert list(found.ncores().values()) == threads


@pytest.fixture
def a_gpu(monkeypatch):
    monkeypatch.setattr(gpus, "gpu", lambda: None)


def block_of(dtype=np.float64, weighted=True):
    W, codes, _ = small_problem(n=200)
    weight = rng.integers(1, 4, size=200).astype(float) if weighted else None
    rows, places = (
        place_rows(W.astype(dtype), Observations.of_classes(codes, 3, weight), 1),
        rng.permutation(1000)[:200].astype(np.uint32),
    )
    rows.put(places)
    return rows, (W.astype(dtype), codes, weight, places)


class Brought(dict):
    """What came to the GPU."""

    def __init__(self, W, seen, places, exact):
        super().__init__(W=W, codes=seen.codes, weight=seen.counts, places=places)
        self.exact = exact


@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_rows_are_brought_as_they_came(monkeypatch, a_gpu, dtype, weighted):
    monkeypatch.setattr(dask, "bring_rows", Brought)
    rows, came = block_of(dtype, weighted)
    found = dask.rows_there(rows, exact=False)
    assert found.exact == (dtype == np.float64)
    for want, name in zip(came, ("W", "codes", "weight", "places"), strict=True):
        np.testing.assert_array_equal(found[name], want)
    assert dask.rows_there(rows, exact=False) is found
    assert (dask.rows_there(rows, exact=True) is found) == (dtype == np.float64)


def test_a_copy_does_not_travel(a_gpu):
    rows, _ = block_of()
    assert copy_of(rows, 1, lambda: "copy") == "copy"
    assert copy_of(rows, 1, lambda: "another") == "copy"
    assert copy_of(rows, 2, lambda: "another") == "another"
    for moved in (pickle.loads(pickle.dumps(rows)), rows.alike()):
        assert moved.gpu_copy is None
        assert copy_of(moved, 2, lambda: "new") == "new"


def test_a_worker_without_a_gpu_among_others_says_so(monkeypatch):
    monkeypatch.setattr(gpus, "address_here", lambda: "tcp://there:1")
    with pytest.raises(ClusterError, match=r"tcp://there:1 has none: engine='cupy' needs CuPy"):
        copy_of(block_of()[0], None, dict)


@pytest.mark.parametrize("without", [None, 1])
def test_folds_that_lack_classes(monkeypatch, a_gpu, without):
    def by_reference(X, seen, dtype):
        K = seen.n_groups
        whole = np.vstack([X, np.zeros((K, X.shape[1]))])  # rows of no weight, one of each class
        codes, weight = np.append(seen.codes, np.arange(K)), np.append(seen.counts, np.zeros(K))
        return class_gradient("numpy", whole, codes, weight, dtype)

    monkeypatch.setattr(direction_blocks, "bring_covariates", by_reference)
    folds = {
        f: (
            rng.normal(size=(40, 3)),
            Observations.of_classes(rng.integers(0, 2 + f, 40), 2 + f, rng.gamma(1.0, size=40)),
        )
        for f in (0, 1)
    }
    beta, log_weights = rng.normal(size=(4, 3)), rng.normal(size=(3, 4))
    there, here = PackedOnGpu(folds, "float64"), PackedFolds(folds, "float64", 1)
    got, want = (pickle.loads(pickle.dumps(rows)).gradient(beta, log_weights, without) for rows in (there, here))
    assert got.value == pytest.approx(want.value, rel=1e-12)
    np.testing.assert_allclose(got.directions, want.directions, atol=1e-10)
    np.testing.assert_allclose(got.log_weights, want.log_weights, atol=1e-10)


def rankings(tied):
    entries, sizes = np.full(30, 4), [[1, 2, 1] if tied else [1, 1, 1] for _ in range(30)]
    group = np.concatenate([rng.permutation(4) for _ in range(30)])
    situations = Situations(Outcomes.of(entries, sizes), group, np.repeat(np.arange(30), 4))
    return rng.uniform(size=(30, 3)), situations, make_response("unknown-order")


class There(NumpySituations):
    """Stands for those on a GPU."""

    def put(self, places):
        self.put_there = tuple(each[self.order] for each in places)


@pytest.mark.parametrize("tied", [True, False])
def test_situations_go_there_unless_they_have_ties(monkeypatch, a_gpu, tied):
    monkeypatch.setattr(dask, "CupySituations", There)
    W, situations, response = rankings(tied)
    rows = place_situations(W, Observations.of_situations(situations, response, 4), 1)
    rows.put((100 + rng.permutation(30), 4 * rng.permutation(60)[:30]))
    weights = Weights.point(rng.normal(size=(4, 3)))
    here, there = (dask.expected_situations(rows, weights, on_gpu) for on_gpu in (False, True))
    np.testing.assert_allclose(there.wins, here.wins, rtol=1e-12)
    np.testing.assert_allclose(there.exposure, here.exposure, rtol=1e-12)
    assert dask.valued_situations(rows, weights, True) == pytest.approx(here.value, rel=1e-12)
    assert (rows.gpu_copy is None) == tied
    if not tied:
        for got, want in zip(rows.gpu_copy[1].put_there, (rows.number, rows.first_entry), strict=True):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("tied", [True, False])
def test_directions_of_situations_go_there_unless_they_have_ties(monkeypatch, a_gpu, tied):
    monkeypatch.setattr("plackett.cluster.direction_blocks.CupySituations", NumpySituations)
    monkeypatch.setattr("plackett.cluster.direction_blocks.threads_here", lambda: 1)
    X, situations, response = rankings(tied)
    sent = SentSituations((X,), Observations.of_situations(situations, response, 4))
    beta, log_weights, counts = rng.normal(size=(2, 3)), rng.normal(size=(4, 2)), rng.gamma(1.0, size=25)
    here, there = (packed_situations(sent, 0, np.arange(5, 30), counts, "float64", on_gpu) for on_gpu in (False, True))
    assert isinstance(there, PackedOnGpu) != tied
    want, got = (rows.gradient(beta, log_weights) for rows in (here, there))
    assert got.value == pytest.approx(want.value, rel=1e-12)
    np.testing.assert_allclose(got.directions, want.directions, atol=1e-10)
    np.testing.assert_allclose(got.log_weights, want.log_weights, atol=1e-10)
