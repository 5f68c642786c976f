"""Checkpoints: a fit that was killed, cut or damaged ends with the draws of one that was not."""

import _thread
import itertools
import json
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import plackett.inference.driver as driver
from plackett import Gibbs, PlackettLuceClassifier
from plackett.features import ExpFeatures
from plackett.inference.checkpoint import HEADER, MAGIC, CheckpointError, Journal, read, salvage
from plackett.inference.moves.exchange import ExchangeSampler
from plackett.inference.store import Store
from plackett.priors import LogUniform

SMALL = {"draws": 12, "tune": 8, "chains": 2}


@pytest.fixture
def small():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    return X, (X[:, 0] + rng.normal(size=30) > 0).astype(int)


@pytest.fixture
def short_rounds(monkeypatch):
    """One iteration in a round, and so one in a record."""
    monkeypatch.setattr(driver, "ROUND_SECONDS", 0.0)


def fit(data, path=None, random_state=3, shape="learn", rate=1.0, features="exp", **settings):
    """A fit that says nothing about mixing."""
    model = PlackettLuceClassifier(
        Gibbs(**SMALL | settings, checkpoint=path), shape, rate, features, random_state=random_state
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=ConvergenceWarning)
        return model.fit(*data)


def assert_same(a, b):
    """Bit for bit."""
    np.testing.assert_array_equal(a.posterior_.log_weights, b.posterior_.log_weights)
    np.testing.assert_array_equal(a.posterior_.shape, b.posterior_.shape)
    np.testing.assert_array_equal(a.trace_, b.trace_)
    assert a.n_iter_ == b.n_iter_


def ends(data):
    """Where the magic and every record of a whole file end."""
    places = [len(MAGIC)]
    while places[-1] < len(data):
        places.append(places[-1] + HEADER.size + HEADER.unpack_from(data, places[-1])[0])
    assert places[-1] == len(data)
    return places


@pytest.mark.long
@pytest.mark.parametrize(
    ("kills", "settings"),
    [
        (20, {"draws": 10_000, "tune": 500}),
        pytest.param(6, {"draws": 40_000, "tune": 200, "moves": "none"}, marks=pytest.mark.slow),
        pytest.param(5, {"draws": 500, "tune": 100, "target_ess": 1e9, "max_draws": 6000}, marks=pytest.mark.slow),
        (5, {"draws": 4_000, "tune": 200, "sampler": "holmes-held"}),
        pytest.param(5, {"draws": 4_000, "tune": 200, "sampler": "polya-gamma"}, marks=pytest.mark.slow),
    ],
    ids=["exchange", "none", "target_ess", "holmes-held", "polya-gamma"],
)
def test_killed_at_random_moments(tmp_path, kills, settings):
    job = {name: str(tmp_path / f"{name}.npz") for name in ("checkpoint", "whole", "pieces")}
    (tmp_path / "job.json").write_text(json.dumps({**job, "settings": settings, "kills": kills, "seed": 0}))
    command = [sys.executable, str(Path(__file__).with_name("killed.py")), str(tmp_path / "job.json")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["status"] == 0, done.stderr
    assert len(report["sizes"]) == kills, "the fit ended before the last kill"
    assert report["sizes"][0] < report["sizes"][-1]
    whole, pieces = np.load(job["whole"]), np.load(job["pieces"])
    assert len(whole.files) >= 4
    for name in whole.files:
        np.testing.assert_array_equal(whole[name], pieces[name])


@pytest.mark.parametrize("moves", ["exchange", "none"])
def test_rounds_of_any_length_give_the_same_draws(small, monkeypatch, moves):
    settings = {"draws": 300, "tune": 200, "moves": moves}
    usual = fit(small, **settings)
    monkeypatch.setattr(driver, "ROUND_SECONDS", 0.0)
    assert_same(usual, fit(small, **settings))


def test_every_cut_leaves_the_whole_records(tmp_path):
    path = tmp_path / "cut"
    journal = Journal(path)
    for i in range(3):
        journal.write({"i": i}, {"x": np.arange(i)})
    journal.close()
    data = path.read_bytes()
    places = ends(data)
    for cut in range(len(data) + 1):
        path.write_bytes(data[:cut])
        records, end = read(path)
        whole = sum(place <= cut for place in places[1:])
        assert [facts["i"] for facts, _ in records] == list(range(whole))
        assert end == (cut if cut < len(MAGIC) else places[whole])


@pytest.mark.brief(1)
@pytest.mark.parametrize("settings", [{}, {"moves": "none"}, {"draws": 3, "target_ess": 1e9, "max_draws": 17}])
def test_a_cut_file_is_continued(tmp_path, small, short_rounds, settings):
    path = tmp_path / "fit"
    whole = fit(small, path, **settings)
    assert_same(whole, fit(small, **settings))
    data = path.read_bytes()
    places = ends(data)
    some = np.random.default_rng(0).choice(places, size=4, replace=False)
    near = [place + step for place in (0, *places[:2], *some, len(data)) for step in (-1, 0, 1, HEADER.size)]
    cuts = {cut for cut in near if 0 <= cut <= len(data)} | set(np.random.default_rng(1).integers(len(data), size=8))
    for cut in sorted(cuts):
        path.write_bytes(data[:cut])
        assert_same(whole, fit(small, path, **settings))
        if cut >= places[1]:
            assert path.read_bytes()[: places[1]] == data[: places[1]]


def test_a_flipped_bit_is_refused_wherever_it_is(tmp_path, small, short_rounds):
    path = tmp_path / "fit"
    fit(small, path, draws=4, tune=2)
    data = path.read_bytes()
    places = ends(data)
    rng = np.random.default_rng(0)
    heads = [place + i for place in places[:-1] for i in range(HEADER.size)]
    for place in [*heads, *rng.integers(len(MAGIC), len(data), size=300)]:
        flipped = bytearray(data)
        flipped[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(flipped)
        before = sum(end <= place for end in places[1:])
        with pytest.raises(
            CheckpointError, match=rf"record {before + 1},.* The {before} before it are intact.*salvage"
        ):
            read(path)
        assert salvage(path) == before
        assert path.read_bytes() == data[: places[before]]


def test_damage_is_refused_salvaged_and_continued(tmp_path, small, short_rounds):
    path = tmp_path / "fit"
    whole = fit(small, path)
    data = path.read_bytes()
    places = ends(data)
    for n in (0, 1, len(places) // 2, len(places) - 2):
        flipped = bytearray(data)
        flipped[(places[n] + places[n + 1]) // 2] ^= 16
        path.write_bytes(flipped)
        with pytest.raises(CheckpointError, match=rf"damaged.*The {n} before it are intact"):
            fit(small, path)
        assert path.read_bytes() == flipped  # refused, and left as it was
        assert salvage(path) == n
        assert_same(whole, fit(small, path))
        assert path.read_bytes() == data


def test_salvage_leaves_a_whole_file_alone(tmp_path, small):
    path = tmp_path / "fit"
    fit(small, path)
    data = path.read_bytes()
    assert salvage(path) == len(ends(data)) - 1
    assert path.read_bytes() == data


def test_a_file_of_another_kind_is_refused_and_left_alone(tmp_path, small):
    path = tmp_path / "notes.txt"
    path.write_text("not a checkpoint, and dear to its owner\n")
    with pytest.raises(CheckpointError, match="notes.txt is not a plackett checkpoint"):
        fit(small, path)
    with pytest.raises(CheckpointError, match="not a plackett checkpoint"):
        salvage(path)
    assert path.read_text() == "not a checkpoint, and dear to its owner\n"


class Unmirrored(ExpFeatures):
    """The same features for a sampler that is not told which of them are mirrors."""

    @property
    def mirrors_(self):
        return None

    @mirrors_.setter
    def mirrors_(self, value):
        pass


@pytest.mark.parametrize(
    "other",
    [
        {"tune": 9},
        {"chains": 3},
        {"moves": "none"},
        {"move_budget": 1.0},
        {"shape_prior": LogUniform(0.01, 1.0)},
        {"shape": 0.5},
        {"rate": 2.0},
        {"random_state": 4},
        {"random_state": None},
        {"features": ExpFeatures(scales=(1.0, 2.0))},
        {"features": Unmirrored()},
    ],
    ids=lambda other: ", ".join(other),
)
def test_a_checkpoint_of_other_settings_is_refused(tmp_path, small, other):
    path = tmp_path / "fit"
    whole = fit(small, path)
    data = path.read_bytes()
    with pytest.raises(CheckpointError, match="belongs to another fit: data, prior or settings differ"):
        fit(small, path, **other)
    assert path.read_bytes() == data
    assert_same(whole, fit(small, path))


def test_a_checkpoint_of_other_data_is_refused(tmp_path, small):
    path = tmp_path / "fit"
    fit(small, path)
    X, y = small
    moved, relabelled = X.copy(), y.copy()
    moved[7, 1] += 1e-9
    relabelled[7] = 1 - y[7]
    three_classes = np.where(y == 0, 0, np.arange(30) % 2 + 1)
    for data in ((moved, y), (X, relabelled), (X[:-1], y[:-1]), (X[:, :1], y), (X, three_classes)):
        with pytest.raises(CheckpointError, match="belongs to another fit"):
            fit(data, path)


def test_without_a_seed_a_fit_goes_on_as_well(tmp_path, small, short_rounds):
    path = tmp_path / "fit"
    whole = fit(small, path, random_state=None)
    data = path.read_bytes()
    path.write_bytes(data[: ends(data)[7]])
    assert_same(whole, fit(small, path, random_state=None))


def test_without_tuning_a_fit_goes_on_with_the_plan_it_had(tmp_path, small, short_rounds):
    settings = {"tune": 0, "draws": 20, "move_budget": 0.3}
    path = tmp_path / "fit"
    whole = fit(small, path, **settings)
    data = path.read_bytes()
    path.write_bytes(data[: ends(data)[7]])
    assert_same(whole, fit(small, path, **settings))


@pytest.mark.parametrize("settings", [{}, {"target_ess": 5.0, "draws": 200, "tune": 100}], ids=["draws", "target_ess"])
def test_a_finished_checkpoint_loads_without_sampling(tmp_path, small, monkeypatch, settings):
    path = tmp_path / "fit"
    whole = fit(small, path, **settings)
    data = path.read_bytes()

    def refuse(*args, **draws):
        raise AssertionError("the chains were advanced")

    monkeypatch.setattr(ExchangeSampler, "advance", refuse)
    loaded = fit(small, path, **settings)
    assert_same(whole, loaded)
    assert loaded.diagnostics_.smallest_ess == whole.diagnostics_.smallest_ess
    assert loaded.shape_ == whole.shape_
    assert path.read_bytes() == data


def interrupt_at(monkeypatch, n):
    """Ctrl-C in the nth advance of a chain."""
    advance, calls = ExchangeSampler.advance, itertools.count(1)

    def interrupted(self, chain, *args, **draws):
        if next(calls) == n:  # chains run side by side
            _thread.interrupt_main()
        advance(self, chain, *args, **draws)

    monkeypatch.setattr(ExchangeSampler, "advance", interrupted)


@pytest.mark.usefixtures("interruptible")
def test_interruption_and_a_new_fit(tmp_path, small, short_rounds, monkeypatch):
    path = tmp_path / "fit"
    whole = fit(small)
    with monkeypatch.context() as patch:
        interrupt_at(patch, 5)
        with pytest.raises(KeyboardInterrupt):
            fit(small, path)
    size = path.stat().st_size
    with monkeypatch.context() as patch:
        interrupt_at(patch, 2 * SMALL["tune"] + 6)
        with pytest.warns(
            ConvergenceWarning, match=r"interrupted: the (\d+) draws of each chain made so far were kept"
        ):
            part = PlackettLuceClassifier(Gibbs(**SMALL, checkpoint=path), random_state=3, features="exp").fit(*small)
    assert path.stat().st_size > size
    kept = part.posterior_.shape.shape[1]
    assert 0 < kept < SMALL["draws"]
    np.testing.assert_array_equal(part.posterior_.log_weights, whole.posterior_.log_weights[:, :kept])
    assert_same(whole, fit(small, path))


def test_target_ess_stops_when_it_is_reached(iris):
    """Without a word, with memory for twice the draws at most."""
    model = PlackettLuceClassifier(Gibbs(draws=500, tune=500, target_ess=200), random_state=0, features="exp")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(*iris)
    found = model.diagnostics_
    assert found.smallest_ess >= 200 and found.worst_rhat <= 1.01
    iterations, kept = model.n_iter_ - 500, model.posterior_.shape.shape[1]
    assert 500 <= kept <= 1000
    assert kept <= iterations < 20_000


def test_a_missed_target_warns_and_the_draws_are_thinned(small):
    """Room for 20: at 20, 40, 80 and 160 iterations every second draw goes."""
    settings = {"draws": 10, "tune": 8, "chains": 2}
    plain = fit(small, **settings | {"draws": 250})
    model = PlackettLuceClassifier(Gibbs(**settings, target_ess=5000, max_draws=250), random_state=3, features="exp")
    told = r"after 250 .* \(1 of every 16 is kept\): .*smallest effective .* is \d+ \(should be at least 5000\)"
    with pytest.warns(ConvergenceWarning, match=rf"{told}.*Gibbs\(max_draws=1000\)"):
        model.fit(*small)
    assert model.n_iter_ == 258
    np.testing.assert_array_equal(model.posterior_.log_weights, plain.posterior_.log_weights[:, ::16])
    np.testing.assert_array_equal(model.posterior_.shape, plain.posterior_.shape[:, ::16])
    np.testing.assert_array_equal(model.trace_, plain.trace_[:, ::16])


def test_the_warning_tells_the_smallest_ess(small):
    model = PlackettLuceClassifier(
        Gibbs(draws=200, chains=2, target_ess=1e6, max_draws=300), random_state=3, features="exp"
    )
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(*small)
    assert f"is {model.diagnostics_.smallest_ess:.0f} (should be at least 1e+06)" in str(caught[0].message)
    assert len(caught) == 1


def test_a_fit_out_of_time_says_so(iris, seconds):
    settings = Gibbs(draws=1000, tune=20, chains=2, moves="none", target_ess=1e9, max_draws=10**9, max_seconds=0.5)
    told = r"^Gibbs\(max_seconds=0.5\) stopped the run after [\d,]+ .*effective .*Try Gibbs\(max_seconds=2\)\.$"
    with pytest.warns(ConvergenceWarning, match=told):
        model = PlackettLuceClassifier(settings, random_state=0, features="exp").fit(*iris)
    assert 50 <= model.n_iter_ < 70


def test_a_fit_out_of_time_is_judged_as_any_other(iris, quiet, seconds):
    settings = Gibbs(draws=200_000, tune=20, chains=2, moves="none", max_seconds=0.5)
    model = PlackettLuceClassifier(settings, random_state=0, features="exp").fit(*iris)
    assert 50 <= model.n_iter_ < 70
    assert model.diagnostics_.sentence in repr(model)


def test_max_seconds_counts_tuning(tmp_path, iris, seconds):
    """Where tuning would take more than its share it is shortened, and the checkpoint goes on from there."""
    path = tmp_path / "fit"
    settings = {"draws": 20, "tune": 100_000, "chains": 2, "checkpoint": path}
    model = PlackettLuceClassifier(Gibbs(**settings, max_seconds=0.5), random_state=0, features="exp")
    words = r"Gibbs\(max_seconds=0.5\): there was time for (\d+) of 100,000 iterations of tuning"
    with pytest.warns(ConvergenceWarning, match=words):
        model.fit(*iris)
    assert 35 <= model.inference_.tune < 55 and 1 <= model.trace_.shape[1] <= 20
    assert len(read(path)[0]) > 1
    longer = PlackettLuceClassifier(Gibbs(**settings | {"draws": 30}), random_state=0, features="exp")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        longer.fit(*iris)
    assert longer.trace_.shape[1] == 30 and longer.inference_.tune == model.inference_.tune
    np.testing.assert_array_equal(longer.trace_[:, : model.trace_.shape[1]], model.trace_)


@pytest.mark.parametrize("seed", range(5))
def test_what_is_kept_does_not_depend_on_the_portions(seed):
    rng = np.random.default_rng(seed)
    x = np.arange(500.0).reshape(1, -1, 1, 1)
    store = Store(1, 20, {"one": (1, 1), "other": ()})
    while store.iterations < 500:
        if store.room() == 0:
            store.halve()
        n = min(int(rng.integers(1, 40)), store.room(), 500 - store.iterations)
        some = x[:, store.iterations : store.iterations + n]
        store.add(store.select({"one": some, "other": some[..., 0, 0]}), n)
        assert store.count <= 20 and store.thin & (store.thin - 1) == 0
    assert store.thin == 32
    for kept in store.filled().values():
        np.testing.assert_array_equal(kept.ravel(), np.arange(0, 500, 32))


def test_draws_that_were_thinned_less_are_thinned_on(tmp_path, small, short_rounds):
    """A file with every draw, and one with every fourth, taken up by runs with room for fewer."""
    for first in ({"draws": 100}, {"draws": 13, "target_ess": 1e9, "max_draws": 100}):
        for room in (3, 5, 12):
            path = tmp_path / f"{len(first)} {room}"
            fit(small, path, **first)
            settings = {"draws": room, "target_ess": 1e9, "max_draws": 130}
            assert_same(fit(small, path, **settings), fit(small, **settings))


def test_more_draws_extend_a_checkpoint(tmp_path, small):
    path = tmp_path / "fit"
    for draws in (20, 40, 40, 7, 90):
        assert_same(fit(small, path, draws=draws), fit(small, draws=draws))
    records = len(read(path)[0])
    assert_same(fit(small, path, draws=30), fit(small, draws=30))
    assert len(read(path)[0]) == records  # fewer draws leave the file as it is


def test_a_target_extends_a_checkpoint_of_draws(tmp_path, small):
    path = tmp_path / "fit"
    fit(small, path, draws=40)
    settings = {"draws": 40, "target_ess": 1e9, "max_draws": 200}
    assert_same(fit(small, path, **settings), fit(small, **settings))


def test_draws_that_were_thinned_cannot_be_had_again(tmp_path, small):
    path = tmp_path / "fit"
    fit(small, path, draws=10, target_ess=1e9, max_draws=100)
    data = path.read_bytes()
    with pytest.raises(CheckpointError, match=r"holds one draw in 2 only.*Gibbs\(draws=60\) needs more"):
        fit(small, path, draws=60)
    assert path.read_bytes() == data
    assert_same(fit(small, path, draws=15), fit(small, draws=15))  # those were not thinned


def test_one_fit_at_a_time(tmp_path, small):
    """Also by another process, and until it ends, however it ends."""
    path = tmp_path / "fit"
    whole = fit(small, path)
    code = f"""
import sys; from pathlib import Path; from plackett.inference.checkpoint import Journal
journal = Journal(Path({str(path)!r})); print("open", flush=True); sys.stdin.read()"""
    other = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert other.stdout.readline() == b"open\n"
    with pytest.raises(CheckpointError, match="is in use: another fit writes to it"):
        fit(small, path, draws=20)
    with pytest.raises(CheckpointError, match="is in use"):
        salvage(path)
    other.kill()
    other.communicate()
    assert_same(whole, fit(small, path))
    journal = Journal(path)
    with pytest.raises(CheckpointError, match="is in use"):
        fit(small, path)
    journal.close()
    assert_same(whole, fit(small, path))
