"""Rankings and choices on a Dask cluster: the answers of the compiled engine, whatever the blocks and the workers."""

import warnings

import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster

from clusters import two_workers
from plackett import EM, ChoiceSets, Gibbs, PlackettLuceChooser, PlackettLuceRanker, Rankings, Variational
from plackett.engines import dask_situations

rng = np.random.default_rng(3)
N = 200
PERSONS = np.column_stack([rng.normal(size=N), rng.integers(0, 2, size=N)])
RANKS = np.argsort(np.argsort(rng.gumbel(size=(N, 4)) + np.outer(PERSONS[:, 0], [0.5, 0, -0.5, 1]), axis=1), axis=1) + 1
TIED = np.ceil(RANKS / 2)
RANKINGS, TIES = (Rankings.from_ranks(table, items=list("abcd"), unranked="last") for table in (RANKS, TIED))
LONG = pd.DataFrame({"trip": np.repeat(np.arange(N) + 1000, 3), "by": ["bus", "car", "walk"] * N})
LONG["cost"], LONG["minutes"] = rng.integers(1, 9, size=3 * N), rng.normal(30, 10, size=3 * N)
LONG["income"], LONG["who"] = np.repeat(rng.normal(size=N), 3), np.repeat(np.arange(N) % 7, 3)
LONG["taken"] = 0
LONG.loc[
    np.arange(N) * 3 + np.argmax(rng.gumbel(size=(N, 3)) - LONG["cost"].to_numpy().reshape(N, 3) / 3, 1), "taken"
] = 1
LONG = LONG.drop(index=np.flatnonzero((LONG["by"] == "walk") & (LONG["taken"] == 0))[::3]).reset_index(drop=True)
COLUMNS = {"situation": "trip", "alternative": "by", "attributes": ["cost", "minutes"], "person": ["income"]}
TRIPS, TAKEN = ChoiceSets.read_choices(LONG, choice="taken", **COLUMNS)
WHO = LONG.groupby("trip")["who"].first().to_numpy()
COUNTS = rng.integers(0, 4, size=N)
SHORT = Gibbs(draws=12, tune=8, chains=2)


@pytest.fixture(scope="module")
def client():
    with two_workers() as client:
        yield client


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(dask_situations, "ENTRIES", 600)


def quiet(model, *data, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # chains are short
        return model.fit(*data, **more)


def ranker(inference=SHORT, R=RANKINGS, X=PERSONS, weight=None, **settings):
    settings = {"shape": 1.2} | ({} if X is None else {"features": "exp"}) | settings
    return quiet(PlackettLuceRanker(inference, random_state=0, **settings), X, R, sample_weight=weight)


def chooser(inference=SHORT, X=TRIPS, y=TAKEN, groups=None, weight=None, **settings):
    settings = {"shape": 1.2, "features": "exp"} | settings
    model = PlackettLuceChooser(inference, random_state=0, **settings)
    return quiet(model, X, y, groups=groups, sample_weight=weight)


def assert_same(a, b, rtol=1e-10):
    """Of EM and the variational scheme where they end, of chains draw for draw."""
    np.testing.assert_allclose(a.weights_, b.weights_, rtol=0, atol=rtol)
    assert a.shape_ == pytest.approx(b.shape_, rel=1e-8)
    if a.trace_.ndim == 1:
        assert a.trace_[-1] == pytest.approx(b.trace_[-1], rel=rtol)
        return
    np.testing.assert_allclose(a.trace_, b.trace_, rtol=rtol)
    drawn, again = (getattr(each.posterior_, "of_weights", each.posterior_) for each in (a, b))
    np.testing.assert_allclose(drawn.log_weights, again.log_weights, rtol=rtol)


RANKED = {
    "ranking": {},
    "unknown order": {"R": TIES},
    "race ties": {"R": TIES, "ties": "race"},
    "weighted": {"weight": COUNTS},
    "shape learned": {"shape": "learn"},
}
CHOSEN = {
    "choice": {},
    "ranked alternatives": {"y": Rankings.from_orders([[y] for y in TAKEN], unranked="last", items=TRIPS.alternatives)},
    "alternatives": {"weights": "alternative"},
    "persons, weighted": {"weights": "person", "groups": WHO, "weight": COUNTS},
}


@pytest.mark.parametrize("inference", [EM(cv=2, shapes=(1.3, 1.2)), Variational(), SHORT], ids=["em", "var", "gibbs"])
@pytest.mark.parametrize("fit, settings", [(ranker, each) for each in RANKED.values()]
    + [(chooser, each) for each in CHOSEN.values()], ids=[*RANKED, *CHOSEN])  # fmt: skip
def test_fits_are_those_of_the_compiled_engine(client, fit, settings, inference):
    if isinstance(inference, EM) and settings.get("shape") != "learn":
        inference = EM()
    assert_same(fit(inference, **settings), fit(inference, engine="dask", **settings))


@pytest.mark.parametrize("inference", [Variational(), SHORT], ids=["var", "gibbs"])
@pytest.mark.parametrize("R, ties", [(RANKINGS, "error"), (TIES, "race"), (None, "unknown-order")])
def test_rankings_without_covariates(client, R, ties, inference):
    """By sets of those left, which stay here; rankings with ties on the workers, also where both are."""
    if R is None:
        R = Rankings.from_ranks(np.vstack([RANKS, TIED]), unranked="last")
    near, far = (ranker(inference, R, None, ties=ties, engine=engine) for engine in ("numba", "dask"))
    assert_same(near, far)


def test_other_blocks_and_other_workers(client, monkeypatch):
    def both():
        return [fit(inference, engine="dask", **more) for fit, more in ((ranker, {"R": TIES}), (chooser, {}))
                for inference in (Variational(), SHORT)]  # fmt: skip

    found = []
    for entries in (1 << 24, 100, 600):
        monkeypatch.setattr(dask_situations, "ENTRIES", entries)
        found.append(both())
    for one, other in [*zip(found[0], found[1], strict=True), *zip(found[0], found[2], strict=True)]:
        assert_same(one, other)
    with LocalCluster(1, threads_per_worker=2, dashboard_address="127.0.0.1:0") as workers, Client(workers):
        for one, other in zip(found[2], both(), strict=True):
            np.testing.assert_array_equal(one.weights_, other.weights_)  # to the last bit: the blocks are the same
            np.testing.assert_array_equal(one.trace_, other.trace_)


def test_what_cannot_be_had_is_refused():
    with pytest.raises(ValueError, match="engine='dask' has no learned directions of rankings"):
        PlackettLuceRanker(engine="dask").fit(PERSONS, RANKINGS)
    with pytest.raises(ValueError, match="engine='dask' has no learned directions of choices"):
        PlackettLuceChooser(engine="dask").fit(TRIPS, TAKEN)
    with pytest.raises(ValueError, match="cannot be had with rankings"):
        ranker(Gibbs(moves="exchange"), engine="dask")
    with pytest.raises(ValueError, match="whole numbers"):
        ranker(SHORT, weight=np.full(N, 0.5), engine="dask")
