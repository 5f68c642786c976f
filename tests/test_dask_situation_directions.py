"""Learned directions of rankings and choices on Dask: the gradient, the draws and the predictions of one machine."""

import itertools
import pickle

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from sklearn.model_selection import ShuffleSplit

from clusters import Kills, quiet
from plackett import EM, Bootstrap, ChoiceSets, Gibbs, PlackettLuceChooser, PlackettLuceRanker, Rankings
from plackett.cluster import directions as far
from plackett.cluster.direction_blocks import PackedFolds
from plackett.cluster.held import Held
from plackett.data.choice_outcomes import chosen
from plackett.data.observations import Observations, Situations
from plackett.directions import LearnedDirections
from plackett.directions.situation_task import make_situation_task, with_design
from plackett.features.choice_design import BENDS, ChoiceDesign, EntryTable
from plackett.inference.driver import Source
from plackett.responses import make_response

rng = np.random.default_rng(5)
N, K = 120, 4
PERSONS = rng.normal(size=(N, 3))
RANKS = np.argsort(np.argsort(rng.gumbel(size=(N, K)) - np.outer(PERSONS[:, 0], [1, 0, -1, 2]), axis=1), axis=1) + 1
RANKINGS, TIES = (Rankings.from_ranks(table, items=list("abcd")) for table in (RANKS, np.ceil(RANKS / 2)))
COST, MINUTES, AGE = rng.integers(1, 9, size=(N, 3)) / 1.0, rng.normal(30, 10, size=(N, 3)), rng.normal(size=N)
GONE = np.arange(N) % 5 == 0  # where nobody can walk
TAKEN = np.argmax(rng.gumbel(size=(N, 3)) - COST / 2 - np.where(GONE[:, None], [0, 0, np.inf], 0), axis=1)
KEPT = np.ones((N, 3), dtype=bool)
KEPT[GONE, 2] = False
LABELS = np.array(["bus", "car", "walk"])
CHOSEN = LABELS[TAKEN]
WEIGHT = rng.integers(1, 4, size=N)
WHO = np.arange(N) % 40
SHORT = {"draws": 5, "tune": 6, "chains": 2}
FEW = LearnedDirections(components=1, leapfrogs=3)


def long_table():
    frame = pd.DataFrame({"trip": np.repeat(np.arange(N), 3), "by": np.tile(LABELS, N)})
    frame = frame.assign(cost=COST.ravel(), minutes=MINUTES.ravel(), age=np.repeat(AGE, 3), who=np.repeat(WHO, 3))
    frame["taken"] = (np.arange(3) == TAKEN[:, None]).ravel().astype(int)
    return frame[KEPT.ravel()].reset_index(drop=True)


LONG = long_table()
COLUMNS = {"situation": "trip", "alternative": "by", "attributes": ["cost", "minutes"], "person": ["age"]}
TRIPS = ChoiceSets.from_long(LONG, **COLUMNS)


@pytest.fixture(autouse=True)
def little_is_held_out(monkeypatch):
    monkeypatch.setattr(far, "NUMBERS", 400)
    monkeypatch.setattr("plackett.directions.stacking.FOLDS", {np.inf: 2})
    monkeypatch.setattr("plackett.directions.stacking.ITERATIONS", 6)
    monkeypatch.setattr("plackett.directions.stacking.DRAWS", 4)
    monkeypatch.setattr("plackett.directions.map.SCALES", (2.0, 0.5))


def fitted(model, data, more=None, inference=None, features=FEW, **settings):
    inference = Gibbs(**SHORT) if inference is None else inference
    return quiet(model(inference, features=features, random_state=0, **settings), *data, **(more or {}))


def task(what, engine):
    """Of rankings by persons, of ties whose order is unknown, of ties of a race, or of choices."""
    source = Source(np.random.SeedSequence(0))
    if what == "choices":
        table, seen = EntryTable.of(TRIPS), chosen(TRIPS, CHOSEN, WEIGHT.astype(float))
        designs = [ChoiceDesign(True, bend).fit(TRIPS).transform(table) for bend in BENDS]
        situations = Situations(seen.outcomes, np.zeros(len(seen.entry), dtype=np.intp), seen.entry)
        seen = Observations.of_situations(situations, make_response("choice"), 1)
        found = make_situation_task(designs, seen, source, False)
        return far.send_situations(found) if engine == "dask" else found
    R = RANKINGS if what == "ranking" else TIES
    R = Rankings(R.items, R.item, R.outcomes._replace(counts=WEIGHT.astype(float)), R.unranked)
    situations = Situations(R.outcomes, R.item, R.situation)
    seen = Observations.of_situations(situations, make_response(what), K)
    found = make_situation_task([PERSONS, PERSONS**3], seen, source, True)
    return far.send_situations(found) if engine == "dask" else found


def place(task, M=6):
    rng = np.random.default_rng(1)
    return rng.normal(size=(M, task.n_columns)), rng.normal(size=(task.seen.n_groups, M))


def assert_close(a, b, rtol=1e-10):
    assert a.value == pytest.approx(b.value, rel=rtol)
    np.testing.assert_allclose(a.directions, b.directions, rtol=rtol, atol=rtol * np.abs(b.directions).max())
    np.testing.assert_allclose(a.log_weights, b.log_weights, rtol=rtol, atol=rtol * np.abs(b.log_weights).max())


def assert_equal(a, b):
    drawn, again = (getattr(each.posterior_, "of_directions", each.posterior_) for each in (a, b))
    for name, value in vars(drawn).items():
        np.testing.assert_array_equal(value, getattr(again, name), err_msg=name)
    np.testing.assert_array_equal(a.trace_, b.trace_)


@pytest.mark.brief(2)
@pytest.mark.parametrize("what", ["ranking", "unknown-order", "race", "choices"])
def test_the_gradient_is_that_of_the_compiled_engine(client, monkeypatch, what):
    near, there = task(what, "numba"), task(what, "dask")
    assert len(there.remote.blocks.firsts) >= 4 and there.is_remote and not near.is_remote
    assert_close(there.prepared(np.float64).gradient(*place(near)), near.prepared(np.float64).gradient(*place(near)))
    some = np.sort(np.r_[100:20:-3, 5])
    part, same = (with_design(each, 1).part(some) for each in (there, near))
    assert_close(part.prepared(np.float64).gradient(*place(part)), same.prepared(np.float64).gradient(*place(part)))
    half = part.part(np.arange(5)).prepared(np.float64)  # of which not all blocks have one
    assert len(half.blocks.held.blocks) < len(there.remote.blocks.firsts)
    assert_close(half.gradient(*place(part)), same.part(np.arange(5)).prepared(np.float64).gradient(*place(part)))
    monkeypatch.setattr("plackett.directions.situation_task.FLOATS", 1)
    in_floats = there.prepared(np.float32).gradient(*place(near))
    assert_close(in_floats, near.prepared(np.float64).gradient(*place(near)), 1e-4)
    rounded = in_floats.value != there.prepared(np.float64).gradient(*place(near)).value
    assert rounded == (what in ("ranking", "choices"))  # in floats where one machine has them so
    for prior in (
        there.reader.prior(there, FEW, 0.02)._replace(totals=there.reader.totals),
        there.reader.prior(there, FEW, 0.02, 1),
    ):
        starts = (each.starts(prior, [np.random.default_rng(0)])[0] for each in (near, there))
        np.testing.assert_array_equal(*starts)


def test_who_asks_for_the_same_fold_shares_its_blocks(client):
    there = task("ranking", "dask")
    fold = np.arange(0, N, 2)
    one, other = (there.part(fold).prepared(np.float64) for _ in range(2))
    assert one is other
    assert there.part(fold[1:]).prepared(np.float64) is not one
    assert with_design(there, 1).part(fold).prepared(np.float64) is not one
    del one, other
    assert len(there.remote.blocks._packed) == 0  # let go


def test_blocks_in_files_and_on_the_way(tmp_path):
    ranked, choices = task("ranking", "numba"), task("choices", "numba")
    for near, dtype in ((ranked, "float32"), (choices, "float64")):
        block, q = PackedFolds({0: (near.Z, near.seen)}, dtype, 1), place(near)
        want = block.gradient(*q)
        stored = block.in_file(str(tmp_path))
        for each in (stored, pickle.loads(pickle.dumps(stored))):
            found = each.gradient(*q)
            assert found.value == want.value
            np.testing.assert_array_equal(found.directions, want.directions)


MODELS = {
    "rankings": (PlackettLuceRanker, (PERSONS, RANKINGS)),
    "ties": (PlackettLuceRanker, (PERSONS, TIES)),
    "choices": (PlackettLuceChooser, (TRIPS, CHOSEN)),
}


@pytest.mark.parametrize("what", MODELS)
def test_short_fits_are_those_of_the_compiled_engine(client, what):
    """Draw for draw, and so in all that held-out situations decide.

    Chains begin at the same places with the same random numbers. What differs is rounding, 1e-14 of a gradient, which
    some fifty steps of short trajectories make 1e-10 or so of a position: 1e-6 is far above that, and far below what
    any other trajectory would give. Predictions differ by no more. Chains of choices use float32, where rounding is
    1e-7 of a gradient: 1e-6 or so of a position.
    """
    near, there = (fitted(*MODELS[what], {"groups": WHO}, engine=engine) for engine in ("numba", "dask"))
    tolerance = 1e-4 if what == "choices" else 1e-6
    np.testing.assert_allclose(there.trace_, near.trace_, rtol=tolerance)
    here = MODELS[what][1][0]
    np.testing.assert_allclose(there.predict_proba(here), near.predict_proba(here), atol=tolerance)


@pytest.mark.brief("choices")
@pytest.mark.parametrize("what", ["rankings", "choices"])
def test_modes_are_those_of_the_compiled_engine(client, what):
    em = EM(cv=ShuffleSplit(2, random_state=0))
    single = LearnedDirections(components=1)
    near, there = (fitted(*MODELS[what], None, em, single, engine=engine) for engine in ("numba", "dask"))
    for choice, loss in near.cv_log_loss_.items():
        assert there.cv_log_loss_[choice] == pytest.approx(loss, abs=1e-4)  # climbs end within 1e-6 of an objective
    here = MODELS[what][1][0]
    np.testing.assert_allclose(there.predict_proba(here), near.predict_proba(here), atol=1e-5)


@pytest.mark.brief("rankings")
@pytest.mark.parametrize("what", ["rankings", "choices"])
def test_the_bootstrap_is_that_of_the_compiled_engine(client, monkeypatch, what):
    """Situations have the same random weights, so that there are the same modes."""
    monkeypatch.setattr("plackett.directions.climbers.TOLERANCE", 1e-12)
    how = {"inference": Bootstrap(draws=4, max_iter=400), "features": LearnedDirections(components=1)}
    there, here = (fitted(*MODELS[what], **how, engine=engine) for engine in ("dask", "numba"))
    given = MODELS[what][1][0]
    np.testing.assert_allclose(there.predict_proba(given), here.predict_proba(given), atol=5e-4)  # passes in floats
    np.testing.assert_allclose(there.trace_, here.trace_, rtol=1e-4)  # not stationary: of first order in the position


@pytest.mark.long
def test_workers_change_no_bit_not_even_lost_ones(client, monkeypatch):
    calm = {what: fitted(*MODELS[what], engine="dask") for what in ("rankings", "choices")}
    assert 0 < calm["rankings"].posterior_.mode_weight < 1
    with monkeypatch.context() as patch:
        kills = Kills(patch, client, [15, 60])
        assert_equal(calm["rankings"], fitted(*MODELS["rankings"], engine="dask"))
        assert kills.done == 2
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0") as workers,
        Client(workers, direct_to_workers=True),
    ):
        for what, model in calm.items():
            assert_equal(model, fitted(*MODELS[what], engine="dask"))


@pytest.mark.long
def test_a_checkpoint_continues_bit_for_bit(client, tmp_path, monkeypatch):
    at = tmp_path / "chains"
    straight = fitted(*MODELS["choices"], engine="dask")
    fitted(*MODELS["choices"], inference=Gibbs(**SHORT | {"draws": 3}, checkpoint=at), engine="dask")
    assert_equal(straight, fitted(*MODELS["choices"], inference=Gibbs(**SHORT, checkpoint=at), engine="dask"))
    monkeypatch.setattr(far, "NUMBERS", 4000)  # other blocks, and so other rounding
    with pytest.raises(ValueError, match="belongs to another fit"):
        fitted(*MODELS["choices"], inference=Gibbs(**SHORT, checkpoint=at), engine="dask")


def by_trips(frame=LONG, n=3):
    """The table of trips in partitions of whole ones."""
    ends = np.searchsorted(frame["trip"], np.arange(n + 1) * N // n)
    return dd.from_map(as_it_is, [frame.iloc[a:b] for a, b in itertools.pairwise(ends)], meta=frame.iloc[:0])


def as_it_is(part):
    return part


def in_partitions():
    """Rankings and choices in partitions, with what belongs to them."""
    frame = pd.DataFrame(PERSONS, columns=["x", "y", "z"]).assign(**dict(zip("abcd", RANKS.T, strict=True)), n=WEIGHT)
    frame = dd.from_pandas(frame.assign(who=WHO), npartitions=3)
    ranked = frame[["x", "y", "z"]], Rankings.from_ranks(frame[list("abcd")])
    trips = ChoiceSets.read_choices(by_trips(), choice="taken", **COLUMNS)
    return {"rankings": (ranked, {"groups": frame["who"], "sample_weight": frame["n"]}),
            "choices": (trips, {"groups": WHO, "sample_weight": WEIGHT})}  # fmt: skip


@pytest.mark.brief(1)
@pytest.mark.parametrize("engine", ["auto", "dask"])
@pytest.mark.parametrize("what", ["rankings", "choices"])
def test_partitions_come_to_the_client(client, monkeypatch, what, engine):
    """The same fit as of situations in memory, here or by passes of workers, and predictions where the rows lie."""
    data, more = in_partitions()[what]
    model, (here, seen) = MODELS[what]
    if what == "rankings":
        here = pd.DataFrame(here, columns=["x", "y", "z"])
    asked, ask = [], Held.each
    monkeypatch.setattr(Held, "each", lambda *args, **own: asked.append(args) or ask(*args, **own))
    there = fitted(model, data, more, engine=engine)
    assert bool(asked) == (engine == "dask")
    assert_equal(fitted(model, (here, seen), {"groups": WHO, "sample_weight": WEIGHT}, engine=engine), there)
    lazy = there.predict_proba(data[0])
    assert isinstance(lazy, da.Array)
    np.testing.assert_allclose(lazy.compute(), there.predict_proba(here), rtol=1e-12)


def test_too_many_for_the_client_are_refused(client, monkeypatch):
    monkeypatch.setattr("plackett.cluster.gathering.MOST", 800)
    words = {"rankings": "120 of 4 items with 3 covariates: 840", "choices": "120 situations with 336 alternatives of"}
    for what, told in words.items():
        data, more = in_partitions()[what]
        with pytest.raises(ValueError, match=f"bring {what} in partitions to the client, up to 800 .* are {told}.*exp"):
            fitted(MODELS[what][0], data, more)


def test_what_is_wrong_is_told(client):
    frame = pd.DataFrame(np.where(np.arange(N)[:, None] == 70, np.nan, PERSONS))
    R = Rankings.from_ranks(da.from_array(RANKS, chunks=(40, 4)))
    with pytest.raises(ValueError, match="partition 1 of the data: row 30, column .* is not finite"):
        fitted(PlackettLuceRanker, (dd.from_pandas(frame, npartitions=3), R))
    with pytest.raises(ValueError, match="in partitions, which engine='numba' does not take"):
        fitted(PlackettLuceRanker, (da.from_array(PERSONS, chunks=(40, 3)), R), engine="numba")
    for model, data in (MODELS["rankings"], MODELS["choices"], (PlackettLuceChooser, in_partitions()["choices"][0])):
        with pytest.raises(ValueError, match="no variational approximation"):
            fitted(model, data, inference="variational", engine="dask")
        with pytest.raises(ValueError, match="moves='none'.* would be ignored"):
            fitted(model, data, inference=Gibbs(moves="none"), engine="dask")
