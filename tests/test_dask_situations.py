"""Rankings and choices on a Dask cluster: the answers of the compiled engine, whatever the blocks and the workers."""

import itertools
import os
import signal
import threading

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from sklearn.preprocessing import MinMaxScaler

import plackett
from clusters import assert_same_answer, assert_same_summary, quiet
from plackett import EM, ChoiceSets, Gibbs, PlackettLuceChooser, PlackettLuceRanker, Rankings, Variational
from plackett.cluster.held import Held
from plackett.engines import dask

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
SHORT = Gibbs(draws=12, tune=8, chains=2, moves="none")


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(dask, "ENTRIES", 600)


def ranker(inference=SHORT, R=RANKINGS, X=PERSONS, weight=None, **settings):
    settings = {"shape": 1.2} | ({} if X is None else {"features": "exp"}) | settings
    return quiet(PlackettLuceRanker(inference, random_state=0, **settings), X, R, sample_weight=weight)


def chooser(inference=SHORT, X=TRIPS, y=TAKEN, groups=None, weight=None, **settings):
    settings = {"shape": 1.2, "features": "exp"} | settings
    model = PlackettLuceChooser(inference, random_state=0, **settings)
    return quiet(model, X, y, groups=groups, sample_weight=weight)


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


ALL = [EM(), Variational(), SHORT]
CASES = [(ranker, name, each) for name in ("ranking", "unknown order", "race ties") for each in ALL]
CASES += [(chooser, "choice", each) for each in ALL]
CASES += [(ranker, "shape learned", each) for each in (EM(cv=2, shapes=(1.3, 1.2)), Variational())]
CASES += [(ranker, "weighted", SHORT), *((chooser, name, SHORT) for name in list(CHOSEN)[1:])]


@pytest.mark.brief(6)
@pytest.mark.parametrize(
    "fit, name, inference", CASES, ids=[f"{name}-{type(each).__name__}" for _, name, each in CASES]
)
def test_fits_are_those_of_the_compiled_engine(client, fit, name, inference):
    settings = (RANKED | CHOSEN)[name]
    assert_same_answer(fit(inference, **settings), fit(inference, engine="dask", **settings))


@pytest.mark.parametrize("inference", [Variational(), SHORT], ids=["var", "gibbs"])
@pytest.mark.parametrize("R, ties", [(RANKINGS, "error"), (TIES, "race"), (None, "unknown-order")])
def test_rankings_without_covariates(client, R, ties, inference):
    """By sets of those left, which stay here; rankings with ties on the workers, also where both are."""
    if R is None:
        R = Rankings.from_ranks(np.vstack([RANKS, TIED]), unranked="last")
    near, far = (ranker(inference, R, None, ties=ties, engine=engine) for engine in ("numba", "dask"))
    assert_same_answer(near, far)


@pytest.mark.long
def test_other_blocks_and_other_workers(client, monkeypatch):
    def both():
        return [fit(inference, engine="dask", **more) for fit, more in ((ranker, {"R": TIES}), (chooser, {}))
                for inference in (Variational(), SHORT)]  # fmt: skip

    found = []
    for entries in (1 << 24, 100, 600):
        monkeypatch.setattr(dask, "ENTRIES", entries)
        found.append(both())
    for one, other in [*zip(found[0], found[1], strict=True), *zip(found[0], found[2], strict=True)]:
        assert_same_answer(one, other)
    with LocalCluster(1, threads_per_worker=2, dashboard_address="127.0.0.1:0") as workers, Client(workers):
        for one, other in zip(found[2], both(), strict=True):
            np.testing.assert_array_equal(one.weights_, other.weights_)  # to the last bit: the blocks are the same
            np.testing.assert_array_equal(one.trace_, other.trace_)


def test_what_cannot_be_had_is_refused():
    with pytest.raises(ValueError, match="cannot be had with engine='dask': the moves go through all rankings"):
        ranker(Gibbs(moves="exchange"), engine="dask")
    with pytest.raises(ValueError, match="whole numbers"):
        ranker(SHORT, weight=np.full(N, 0.5), engine="dask")


def tables(npartitions=4):
    """Ranks and covariates as columns of one Dask data frame."""
    frame = pd.DataFrame(RANKS, columns=list("abcd")).assign(tied=0, age=PERSONS[:, 0], smokes=PERSONS[:, 1], n=COUNTS)
    return dd.from_pandas(frame, npartitions=npartitions)


@pytest.mark.parametrize("inference", [EM(), Variational(), SHORT], ids=["em", "var", "gibbs"])
def test_rankings_in_partitions(client, inference):
    frame = tables()
    parts = Rankings.from_ranks(frame[list("abcd")], counts=frame["n"])
    far = ranker(inference, parts, frame[["age", "smokes"]])
    whole = Rankings.from_ranks(RANKS, items=list("abcd"), counts=COUNTS)
    near = ranker(inference, whole, pd.DataFrame(PERSONS, columns=["age", "smokes"]))
    assert_same_answer(near, far)
    assert far.items_.tolist() == list("abcd")
    assert far.feature_names_in_.tolist() == ["age", "smokes"]
    assert_same_summary(far.summary(), near.summary())
    persons = frame[["age", "smokes"]]
    for method in ("predict_proba", "predict"):
        lazy, at_once = getattr(far, method)(persons), getattr(near, method)(persons.compute())
        assert isinstance(lazy, da.Array)
        assert (np.isclose(lazy.compute(), at_once) if method == "predict_proba" else lazy.compute() == at_once).all()
    with pytest.raises(ValueError, match="X is a Dask collection"):
        far.prob_better(persons)
    with pytest.raises(ValueError, match="in partitions, which fit takes alone"):
        far.log_likelihood(persons.partitions[0].compute(), parts)


@pytest.mark.parametrize("ties", ["unknown-order", "race"])
def test_ties_in_partitions(client, ties):
    table = np.vstack([RANKS, TIED])
    X = np.vstack([PERSONS, PERSONS + 1])
    parts = Rankings.from_ranks(da.from_array(table, chunks=(90, 2)), unranked="last")
    far = ranker(SHORT, parts, da.from_array(X, chunks=(130, 2)), np.tile(COUNTS, 2), ties=ties)
    assert_same_answer(ranker(SHORT, Rankings.from_ranks(table), X, np.tile(COUNTS, 2), ties=ties), far)


@pytest.mark.parametrize("inference", [EM(), SHORT], ids=["em", "gibbs"])
@pytest.mark.parametrize("table, ties", [(RANKS, "error"), (np.vstack([RANKS, TIED]), "unknown-order"), (TIED, "race")])
def test_partitions_without_covariates(client, table, ties, inference):
    parts = Rankings.from_ranks(da.from_array(table, chunks=(90, 4)), unranked="last")
    far, near = (ranker(inference, R, None, ties=ties) for R in (parts, Rankings.from_ranks(table)))
    assert_same_answer(near, far)


def test_orders_in_partitions(client):
    orders = pd.DataFrame(np.array(list("abcd"))[np.argsort(RANKS, axis=1)], columns=["1", "2", "3", "4"]).astype(
        object
    )
    orders.iloc[::3, 2:] = None
    parts = Rankings.from_orders(dd.from_pandas(orders, npartitions=3), unranked="last")
    assert_same_answer(ranker(SHORT, Rankings.from_orders(orders, unranked="last"), None), ranker(SHORT, parts, None))
    orders.iloc[150, 0] = "e"
    parts = Rankings.from_orders(dd.from_pandas(orders, npartitions=4), unranked="last", items=list("abcd"))
    with pytest.raises(ValueError, match="partition 3 of the data: row 0: there is no item 'e'"):
        ranker(SHORT, parts, None)


def wrong_ranks(row, column, value):
    table = RANKS.astype(float)
    table[row, column] = value
    return Rankings.from_ranks(da.from_array(table, chunks=(50, 4)))


@pytest.mark.parametrize(
    ("R", "X", "settings", "words"),
    [
        (wrong_ranks(120, 1, -3.0), None, {}, "partition 2 of the data: a rank must be positive .* in row 20"),
        (wrong_ranks(60, slice(None), 0), None, {}, "partition 1 of the data: row 10 is an empty ranking"),
        (wrong_ranks(60, 1, 0), None, {}, "partition 1 of the data: row 10 ranks 3 of 4 items: say unranked"),
        (wrong_ranks(60, slice(None), 1), None, {"ties": "error"}, "in row 10 of partition 1, and ties='error'"),
        (wrong_ranks(0, 0, 1), PERSONS, {}, "X must be a Dask collection"),
        (wrong_ranks(0, 0, 1), da.from_array(PERSONS[:99], chunks=(33, 2)), {}, "X has 3 partitions and the rank.* 4"),
        (wrong_ranks(0, 0, 1), da.from_array(np.where(PERSONS > 9, 0, [[0, np.nan]]), chunks=(50, 2)), {},
            "partition 0 of the data: row 0, column 1 is not finite"),
        (wrong_ranks(0, 0, 1), None, {"weight": np.full(N, 0.5)}, "got 0.5 in row 0 of partition 0"),
        (wrong_ranks(0, 0, 1), None, {"weight": np.full(N - 1, 1)}, "one entry for each of the 200 rankings"),
        (wrong_ranks(0, 0, 1), None, {"engine": "numba"}, "in partitions, which engine='numba' does not take"),
        (wrong_ranks(slice(None), 0, 9), None, {"inference": "em", "shape": 1}, "no maximum: .* 2 components.*: 1, "),
        (RANKINGS, da.from_array(PERSONS), {}, "X is a Dask collection, and the rankings are in memory"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_rankings_is_told_by_partition_and_row(client, R, X, settings, words):
    with pytest.raises(ValueError, match=words):
        ranker(**({"R": R, "X": X} | settings))


def by_trips(n=4, frame=LONG):
    """The table of trips in partitions of whole ones."""
    ends = np.searchsorted(LONG["trip"], 1000 + np.arange(n + 1) * N // n)
    return dd.from_map(as_it_is, [frame.iloc[a:b] for a, b in itertools.pairwise(ends)], meta=frame.iloc[:0])


def as_it_is(part):
    return part


@pytest.mark.parametrize("inference", [EM(), Variational(), SHORT], ids=["em", "var", "gibbs"])
def test_choices_in_partitions(client, inference):
    X, y = ChoiceSets.read_choices(by_trips(), choice="taken", **COLUMNS)
    near, far = chooser(inference), chooser(inference, X, y)
    assert_same_answer(near, far)
    assert_same_summary(far.summary(), near.summary())
    lazy = far.predict_proba(X)
    assert isinstance(lazy, da.Array)
    np.testing.assert_allclose(lazy.compute(), near.predict_proba(TRIPS), rtol=1e-9)
    assert far.predict(X).compute().tolist() == near.predict(TRIPS).tolist()
    with pytest.raises(ValueError, match="in partitions, which fit, predict"):
        far.predict_interval(X)


SEATS = LONG.assign(seat=np.where(np.arange(len(LONG)) < 30, "roof", np.where(LONG["cost"] > 4, "first", "second")))


@pytest.mark.parametrize("settings", [{"weights": "alternative"}, {"weights": "person", "groups": WHO}])
def test_weights_of_groups_and_levels_of_texts_in_partitions(client, settings):
    """A level that occurs in the first partition alone; attributes that are found, or named."""
    columns = COLUMNS | {"attributes": ["cost", "minutes", "seat"], "choice": "taken"}
    X, y = ChoiceSets.read_choices(SEATS, **columns)
    far, again = ChoiceSets.read_choices(by_trips(3, SEATS), **columns)
    near = chooser(SHORT, X, y, weight=COUNTS, **settings)
    assert_same_answer(near, chooser(SHORT, far, again, weight=COUNTS, **settings))
    found, again = ChoiceSets.read_choices(by_trips(3), **(COLUMNS | {"attributes": None}), choice="taken")
    assert_same_answer(chooser(SHORT, **settings), chooser(SHORT, found, again, **settings))


def test_scales_by_sums_where_numbers_are_many(client, monkeypatch, tmp_path):
    monkeypatch.setattr("plackett.cluster.maps.EXACT", 0)
    X, y = ChoiceSets.read_choices(by_trips(), choice="taken", **COLUMNS)
    near, far = chooser("variational", weight=COUNTS), chooser("variational", X, y, weight=COUNTS)
    for name in ("mean_", "scale_", "unit_", "centre_", "spread_", "typical_", "shares_"):
        np.testing.assert_allclose(getattr(far.design_, name), getattr(near.design_, name), rtol=1e-12, atol=1e-15)
    assert_same_answer(near, far, 1e-9)
    far.save(tmp_path / "model")
    again = plackett.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(TRIPS), far.predict_proba(TRIPS))


def wrong_trips(row, column, value):
    frame = LONG.copy()
    frame[column] = frame[column].astype(object if isinstance(value, str) else float)
    frame.loc[row, column] = value
    return ChoiceSets.read_choices(by_trips(4, frame), choice="taken", **COLUMNS)


MIDDLE = int(np.searchsorted(LONG["trip"], 1120))


@pytest.mark.parametrize(
    ("data", "settings", "words"),
    [
        (
            wrong_trips(MIDDLE, "cost", np.nan),
            {},
            "partition 2 of the data: column 'cost' is missing .* situation 1120",
        ),
        (wrong_trips(MIDDLE, "by", "car"), {}, "partition 2 of the data: situation 1120 has alternative 'car' twice"),
        (wrong_trips(MIDDLE, "trip", 1010), {}, "situation 1010.* has rows in partitions 0 and 2"),
        (wrong_trips(MIDDLE, "income", 99.0), {}, "partition 2 of the data: column 'income' belongs to the person"),
        (
            wrong_trips(MIDDLE + np.arange(3), "taken", 0),
            {},
            "partition 2 .*in situation 112.* no alternative is chosen",
        ),
        (None, {"y": np.where(np.arange(N) == 199, "train", TAKEN)}, "partition 3 .*: there is no alternative 'train'"),
        (None, {"y": TAKEN[1:]}, "y must have one entry for each of the 200 situations"),
        (None, {"weight": np.full(N, 0.5)}, "whole numbers as sample_weight .* partition 0 has others"),
        (
            None,
            {"weight": np.where(np.arange(N) == 60, -1, 1)},
            "partition 1 of the data: sample_weight must be finite",
        ),
        (None, {"engine": "numba"}, "in partitions, which engine='numba' does not take"),
        (None, {"y": RANKINGS}, "label of the chosen alternative, and not a ranking"),
        (None, {"features": MinMaxScaler()}, "must be fitted to all entries"),
    ],
)
def test_what_is_wrong_with_choices_is_told_by_partition_and_situation(client, data, settings, words):
    X, y = ChoiceSets.read_choices(by_trips(), choice="taken", **COLUMNS) if data is None else data
    with pytest.raises(ValueError, match=words):
        chooser(**({"X": X, "y": y} | settings))


FAULTS = {"chains": 2, "draws": 15, "tune": 10}


def kills_at(monkeypatch, client, moment):
    """Kill a worker a moment after this question; how many were."""
    each, numbers, done = Held.each, itertools.count(), []

    def asking(held, *question, **own):
        if next(numbers) == moment:  # chains ask side by side
            done.append(moment)
            pids = client.run(os.getpid)
            threading.Timer(0.002, os.kill, (next(iter(pids.values())), signal.SIGKILL)).start()
        return each(held, *question, **own)

    monkeypatch.setattr(Held, "each", asking)
    return done


@pytest.mark.long
@pytest.mark.parametrize("what", ["rankings", "choices"])
def test_a_worker_killed_among_passes_and_a_checkpoint(client, monkeypatch, tmp_path, what):
    """Nothing changes but the time; chains that were cut short go on from their file, bit for bit."""
    frame = tables()

    def fit(**settings):
        if what == "rankings":
            R = Rankings.from_ranks(frame[list("abcd")])
            return ranker(Gibbs(**(FAULTS | settings)), R, frame[["age", "smokes"]])
        return chooser(Gibbs(**(FAULTS | settings)), *ChoiceSets.read_choices(by_trips(), choice="taken", **COLUMNS))

    calm = fit()
    with monkeypatch.context() as patch:
        done = kills_at(patch, client, 130)
        killed = fit()
        assert done == [130]
    client.wait_for_workers(2)
    fit(draws=5, checkpoint=tmp_path / "chains")
    again = fit(checkpoint=tmp_path / "chains")
    for other in (killed, again):
        np.testing.assert_array_equal(calm.trace_, other.trace_)
        np.testing.assert_array_equal(calm.weights_, other.weights_)
