"""Learned directions on Dask: the gradient, the draws and the predictions of the rows in one piece."""

import functools
import pickle
from concurrent.futures import ThreadPoolExecutor

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from scipy.special import ndtri
from sklearn.model_selection import ShuffleSplit

from clusters import Kills, quiet
from plackett import EM, Bootstrap, Gibbs, PlackettLuceClassifier
from plackett.cluster import directions as far
from plackett.cluster.direction_blocks import PackedFolds
from plackett.cluster.directions import class_task_of, send_classes
from plackett.cluster.held import made
from plackett.cluster.observed import Observed, folds_of, keys_of, masses, observed
from plackett.cluster.scales import scores_from_sums
from plackett.cluster.storage import Block
from plackett.cluster.together import Together
from plackett.data.observations import Observations
from plackett.directions import LearnedDirections
from plackett.directions.class_task import make_class_task
from plackett.directions.map import SCALES, path
from plackett.engines.exponential import ExponentialRows
from plackett.inference.driver import Source
from plackett.model.mixture import probabilities
from plackett.output.scores import log_losses

rng = np.random.default_rng(4)
LABELS = np.array(["a", "b", "c"])


def table(n):
    X = np.column_stack([rng.normal(size=(n, 2)) * [1, 100], np.exp(rng.normal(size=n)), rng.integers(0, 2, n)])
    return X, LABELS[(X[:, 0] + rng.logistic(size=n) / 2 > 0).astype(int) + (np.log(X[:, 2]) + X[:, 3] > 1)]


X, Y = table(600)
CODES = np.searchsorted(LABELS, Y)
WEIGHT = rng.choice([0.5, 1.0, 3.0], size=600)
SHORT = {"draws": 6, "tune": 8, "chains": 2}
FEW = LearnedDirections(components=2, leapfrogs=3)
SEED = Source(np.random.SeedSequence(0))


@pytest.fixture(autouse=True)
def little_is_held_out(monkeypatch):
    monkeypatch.setattr("plackett.directions.stacking.FOLDS", {np.inf: 2})
    monkeypatch.setattr("plackett.directions.stacking.DRAWS", 10)
    monkeypatch.setattr("plackett.directions.stacking.ITERATIONS", 25)
    monkeypatch.setattr("plackett.directions.map.SCALES", (2.0, 0.6, 0.2))


def fitted(X, y=Y, sample_weight=None, inference=None, features=FEW, **settings):
    inference = Gibbs(**SHORT) if inference is None else inference
    clf = PlackettLuceClassifier(inference, features=features, random_state=0, **({"engine": "dask"} | settings))
    return quiet(clf, X, y, sample_weight=sample_weight)


def cut(X, size=170):
    return da.from_array(X, chunks=(size, X.shape[1]))


@functools.cache
def undisturbed():
    """A fit to which others are compared; with what is held out as in all tests here."""
    return fitted(cut(X))


def assert_equal(a, b):
    for name, value in vars(a.posterior_).items():
        np.testing.assert_array_equal(value, getattr(b.posterior_, name), err_msg=name)
    np.testing.assert_array_equal(a.trace_, b.trace_)


def task_in_blocks(client, weight=None, size=170, rows=X, codes=CODES):
    weight = np.ones(len(rows)) if weight is None else weight
    parts = [(rows[i : i + size], codes[i : i + size], weight[i : i + size]) for i in range(0, len(rows), size)]
    return class_task_of(made(client, "rows", observed, parts, len(parts)), SEED)


def place(M=6, K=3, d=4):
    rng = np.random.default_rng(1)
    return rng.normal(size=(M, d)), rng.normal(size=(K, M))


def assert_close(a, b, rtol=1e-10):
    assert a.value == pytest.approx(b.value, rel=rtol)
    np.testing.assert_allclose(a.directions, b.directions, rtol=rtol, atol=rtol * np.abs(b.directions).max())
    np.testing.assert_allclose(a.log_weights, b.log_weights, rtol=rtol, atol=rtol * np.abs(b.log_weights).max())


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
def test_the_gradient_is_that_of_the_compiled_engine(client, weight):
    whole, task = make_class_task(X, CODES, weight, SEED), task_in_blocks(client, weight)
    want = whole.prepared(np.float64).gradient(*place())
    assert_close(task.prepared(np.float64).gradient(*place()), want)
    assert_close(task.prepared(np.float32).gradient(*place()), want, 1e-4)
    assert task.n_seen == pytest.approx(whole.n_seen) and task.n_rows == whole.n_rows
    scored = task.reader.with_scores(task).prepared(np.float64).gradient(*place())
    assert_close(scored, whole.reader.with_scores(whole).prepared(np.float64).gradient(*place()))


def test_a_fold_is_left_out_by_what_its_rows_hold(client):
    task, other = task_in_blocks(client, WEIGHT), task_in_blocks(client, WEIGHT, size=450)
    (train, test), _, (last, _) = task.reader.folds(task, 3)
    fold = folds_of(keys_of(X, CODES), 3)
    assert 0.25 < np.mean(fold == 0) < 0.42
    kept = fold != 0
    Z = task.design.of(X[kept])
    want = ExponentialRows(Z, CODES[kept], WEIGHT[kept], np.float64).gradient(*place())
    for each in (task, other):
        assert_close(each.part(train).prepared(np.float64).gradient(*place()), want)
        assert each.part(train).n_seen == pytest.approx(WEIGHT[kept].sum())
    merged = make_class_task(X, CODES, WEIGHT, SEED)
    np.testing.assert_array_equal(
        test, np.flatnonzero(folds_of(keys_of(merged.reader.rows, merged.seen.codes), 3) == 0)
    )
    assert last.fold == 2


def test_a_class_that_a_fold_has_alone_is_left_out(client):
    codes, keys = CODES.copy(), keys_of(X, np.full(600, 3))
    codes[np.flatnonzero(folds_of(keys, 2) == 1)[:4]] = 3
    task = task_in_blocks(client, codes=codes)
    part, present = task.reader.training(task, task.reader.folds(task, 2)[1][0])
    assert present.tolist() == [0, 1, 2] and part.seen.n_groups == 3 and task.seen.n_groups == 4
    kept = folds_of(keys_of(X, codes), 2) != 1
    want = ExponentialRows(task.design.of(X[kept]), codes[kept], None, np.float64).gradient(*place())
    assert_close(part.prepared(np.float64).gradient(*place()), want)


def test_some_rows_here_and_scores_of_all(client, monkeypatch):
    """Where rows are too many to come, standardisation and normal scores are those of all of them."""
    monkeypatch.setattr(far, "ENOUGH", 200)
    monkeypatch.setattr(far, "RARE", 30)
    rare = np.append(CODES, [3] * 5)
    rows = np.vstack([X, X[:5] + 1])
    weight = np.append(WEIGHT, np.ones(5))
    task, whole = task_in_blocks(client, weight, rows=rows, codes=rare), make_class_task(rows, rare, weight, SEED)
    assert 140 < len(task.Z) < 270 and (task.seen.codes == 3).sum() == 5
    assert task.seen.weights.sum() / task.n_seen == pytest.approx(200 / 605, rel=0.25)
    np.testing.assert_allclose(task.design.mean, whole.design.mean, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(task.design.scale, whole.design.scale, rtol=1e-12)
    assert_close(
        task.prepared(np.float64).gradient(*place(K=4)), whole.prepared(np.float64).gradient(*place(K=4)), 1e-9
    )
    scored = task.reader.with_scores(task).design
    for f in range(4):
        values, scores = scored.knots[:, f]
        for value, score in list(zip(values, scores, strict=True))[::7]:
            if np.isfinite(value):
                share = (weight[rows[:, f] < value].sum() + weight[rows[:, f] == value].sum() / 2) / weight.sum()
                assert score == pytest.approx(ndtri(share), abs=1e-12)
        assert values[0] == rows[:, f].min() and values[np.isfinite(values)][-1] == rows[:, f].max()
    Z = scored.of(rows)
    np.testing.assert_allclose(np.average(Z, axis=0, weights=weight), 0, atol=1e-12)
    np.testing.assert_allclose(np.average(Z**2, axis=0, weights=weight), 1, rtol=1e-12)
    exact = whole.reader.with_scores(whole)
    assert np.abs(scored.of(whole.reader.rows) - exact.Z).max() < 0.5  # straight between 200 values instead of 256
    assert scores_from_sums(task.remote.blocks.held, task.reader.rows).knots.shape == scored.knots.shape


def test_blocks_in_files_and_on_the_way(tmp_path):
    block = Observed(X, CODES, WEIGHT)
    want = ExponentialRows(X, CODES, WEIGHT, np.float64, 1).gradient(*place())
    rows = PackedFolds({0: (X, Observations.of_classes(CODES, 3, WEIGHT))}, "float64", 1).in_file(str(tmp_path))
    assert list(tmp_path.iterdir()) == []  # without a name from the start
    frames = []
    message = pickle.dumps(rows, protocol=5, buffer_callback=frames.append)
    again = pickle.loads(message, buffers=[bytes(frame.raw()) for frame in frames])  # which cannot be written to
    for each in (rows, again):
        found = each.gradient(*place(), None)
        assert found.value == want.value
        np.testing.assert_array_equal(found.directions, want.directions)
    assert masses(pickle.loads(pickle.dumps(block)), np.array([[0.0]] * 4)).shape == (2, 4, 1)


class Number(Block):
    def __init__(self, value):
        self.value = value

    def power(self, e):
        return self.value**e


def test_questions_go_together_and_are_answered_one_by_one(client):
    blocks = made(client, "numbers", Number, [(i,) for i in range(5)], 5)
    together = Together(blocks, Number.power)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(together.ask, range(40)))
    assert found == [[i**e for i in range(5)] for e in range(40)]
    with ThreadPoolExecutor(4) as pool, pytest.raises(TypeError):
        list(pool.map(together.ask, ["none"] * 4))
    assert together.ask(2) == [0, 1, 4, 9, 16]


def test_few_rows_are_fitted_here(client):
    """To the last bit as if they had never been in partitions."""
    want = fitted(X, sample_weight=WEIGHT, engine="numba")
    assert_equal(want, fitted(cut(X), sample_weight=WEIGHT, engine="auto"))


def test_workers_change_no_bit_not_even_lost_ones(client, monkeypatch):
    table, two = cut(X), undisturbed()
    assert 0 < two.posterior_.mode_weight < 1
    with monkeypatch.context() as patch:
        kills = Kills(patch, client, [15, 110])
        assert_equal(two, fitted(table))
        assert kills.done == 2


@pytest.mark.long
def test_one_worker_gives_the_bits_of_two():
    table, two = cut(X), undisturbed()
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0") as workers,
        Client(workers, direct_to_workers=True),
    ):
        assert_equal(two, fitted(table))


@pytest.mark.long
def test_a_row_of_weight_2_is_two_rows_and_classes_have_weights(client):
    twice = np.where(CODES == 1, 2, 1)
    places = np.repeat(np.arange(600), twice)
    sizes = tuple(int(each.sum()) for each in np.split(twice, [170, 340, 510]))
    doubled = da.from_array(X[places], chunks=(sizes, (4,)))
    want = fitted(doubled, Y[places])
    assert_equal(want, fitted(cut(X), sample_weight=twice.astype(float)))
    assert_equal(want, fitted(cut(X), class_weight={"b": 2.0}))


def test_a_checkpoint_continues_bit_for_bit(client, tmp_path):
    at = str(tmp_path / "chains")
    fitted(cut(X), inference=Gibbs(**SHORT | {"draws": 3}, checkpoint=at))
    assert_equal(undisturbed(), fitted(cut(X), inference=Gibbs(**SHORT, checkpoint=at)))
    with pytest.raises(ValueError, match="belongs to another fit"):
        fitted(cut(X[:-1]), Y[:-1], inference=Gibbs(**SHORT, checkpoint=at))


def test_a_limit_of_time_counts(client, seconds):
    limited = fitted(cut(X), inference=Gibbs(draws=100_000, tune=2, chains=2, max_seconds=0.2))
    assert 18 <= limited.trace_.shape[1] < 38
    seconds.reading = 0.01
    hurried = fitted(cut(X), inference=Gibbs(max_seconds=0.02))
    assert hurried.trace_.shape[1] >= 1 and "no time to hold data out" in hurried.notes_[0]


def test_predictions_are_those_of_the_compiled_engine(client):
    """Averages of draws agree within their Monte-Carlo error, which the means of the chains tell.

    w and κ come from other folds than on one machine: they are right up to what so many held-out rows tell, so that
    new rows are predicted as well, by two standard errors of the difference or half a hundredth of a nat.
    """
    features, inference = LearnedDirections(components=1, leapfrogs=8), Gibbs(draws=100, tune=50, chains=4)
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("pqrs")).assign(y=Y), npartitions=3)
    there = fitted(frame[list("pqrs")], frame["y"], inference=inference, features=features)
    here = fitted(pd.DataFrame(X, columns=list("pqrs")), Y, None, inference, features, engine="numba")
    assert (there.features_.knots is None) == (here.features_.knots is None)
    np.testing.assert_allclose(there.features_.mean, here.features_.mean, rtol=1e-12)
    Z, means, variance = here.features_.standardised(X[::6]), [], 0.0
    for clf in (there, here):
        by_chain = probabilities(clf.posterior_, Z).mean(axis=1)  # (chain, row, class)
        means.append(by_chain.mean(axis=0))
        variance = variance + by_chain.var(axis=0, ddof=1) / 4
    z = (means[0] - means[1]) / np.sqrt(variance)
    assert np.sqrt(np.mean(z**2)) < 2  # 1.2 where all is well: two times four chains leave six degrees of freedom
    new, labels = table(3000)
    frame = pd.DataFrame(new, columns=list("pqrs"))
    lazy = there.predict_proba(dd.from_pandas(frame, npartitions=2))
    assert isinstance(lazy, da.Array)
    np.testing.assert_allclose(lazy.compute(), there.predict_proba(frame), rtol=1e-12)
    codes = np.searchsorted(LABELS, labels)
    gain = log_losses(there.predict_proba(frame), codes) - log_losses(here.predict_proba(frame), codes)
    assert abs(gain.mean()) < max(2 * gain.std() / np.sqrt(3000), 0.005)
    assert there.relevance_.index.tolist() == list("pqrs") and len(there.effects(frame[:50]))
    assert there.to_arviz(raw=True) is not None


def test_modes_are_those_of_the_compiled_engine(client):
    whole, task = make_class_task(X, CODES, WEIGHT, SEED), task_in_blocks(client, WEIGHT)
    prior = FEW.prior(3, 4, 0.02, 1)
    for a, b in zip(path(whole, prior, SCALES, 60, 1e-8), path(task, prior, SCALES, 60, 1e-8), strict=True):
        np.testing.assert_allclose(a[1][-1], b[1][-1], rtol=1e-6)
    single = LearnedDirections(components=1)
    there, here = (fitted(X, Y, WEIGHT, EM(cv=2), single, engine=engine) for engine in ("dask", "numba"))
    for losses in zip(there.cv_log_loss_.values(), here.cv_log_loss_.values(), strict=True):
        assert losses[0] == pytest.approx(losses[1], abs=0.03)  # of other folds
    best = [min(clf.cv_log_loss_, key=clf.cv_log_loss_.get) for clf in (there, here)]
    assert best[0] == best[1]
    np.testing.assert_allclose(there.predict_proba(X), here.predict_proba(X), atol=1e-4)


def test_random_weights_vary_about_those_of_the_rows(client):
    """(value, gradients) are sums of Gam(weight, 1) variates times terms of the rows: their mean is that without."""
    task, at = task_in_blocks(client, WEIGHT), place()
    want = task.prepared(np.float64).gradient(*at)
    found = [task.reweighted(np.random.default_rng(seed)).prepared(np.float64).gradient(*at) for seed in range(30)]
    values = np.array([each.value for each in found])
    terms = make_class_task(X, CODES, WEIGHT, SEED)
    alone = [terms.part(np.array([i])).prepared(np.float64).gradient(*at).value for i in range(len(terms.seen))]
    deviation = np.sqrt(np.sum(np.square(alone) / terms.seen.weights))  # of a sum of Gam(c, 1) ln p: √Σ c (ln p)²
    assert abs(values.mean() - want.value) < 4 * deviation / np.sqrt(30)
    assert 0.6 < values.std() / deviation < 1.5  # 4 deviations of that of 30
    again = task.reweighted(np.random.default_rng(3)).prepared(np.float64).gradient(*at)
    assert again.value == found[3].value


@pytest.mark.long
def test_the_bootstrap_draws_the_same_on_any_workers(client):
    short = {"inference": Bootstrap(draws=3, max_iter=15), "features": LearnedDirections(components=1)}
    there = fitted(cut(X), **short)
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0") as workers,
        Client(workers, direct_to_workers=True),
    ):
        assert_equal(there, fitted(cut(X), **short))
    here = fitted(X, **short, engine="numba")
    assert there.posterior_.power == pytest.approx(here.posterior_.power, rel=1e-6)  # rows on the client decide
    assert there.posterior_.mode_weight == pytest.approx(here.posterior_.mode_weight, abs=1e-6)
    lower, upper = there.predict_interval(X[:20])
    assert (lower <= upper).all() and (upper > lower).any()


def test_an_array_and_its_order(client, monkeypatch):
    monkeypatch.setattr(far, "ENTRIES", 800)
    order = np.random.default_rng(0).permutation(600)
    tasks = [send_classes(X[some], CODES[some], WEIGHT[some], SEED) for some in (slice(None), order)]
    assert len(tasks[0].remote.blocks.held.blocks) == 4
    a, b = (each.prepared(np.float32).gradient(*place()) for each in tasks)
    assert a.value == b.value
    np.testing.assert_array_equal(a.directions, b.directions)
    np.testing.assert_array_equal(tasks[0].Z, tasks[1].Z)


@pytest.mark.parametrize(
    ("settings", "more", "words"),
    [
        ({}, {"groups": CODES}, "groups cannot be had with engine='dask'"),
        ({"inference": EM(cv=ShuffleSplit(2))}, {}, r"EM\(cv=ShuffleSplit.* cannot be had with engine='dask'"),
        ({"inference": EM(cv=1)}, {}, "needs two folds of distinct rows or more"),
        ({"inference": "variational"}, {}, "no variational approximation"),
        ({"inference": Gibbs(moves="none")}, {}, "moves='none'.* would be ignored"),
    ],
)
def test_what_cannot_be_had_is_refused(client, settings, more, words):
    for X_there, engine in ((X, "dask"), (cut(X), "auto")):
        with pytest.raises(ValueError, match=words):
            PlackettLuceClassifier(**settings, engine=engine).fit(X_there, Y, **more)
