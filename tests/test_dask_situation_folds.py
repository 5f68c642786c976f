"""EM with shape="learn" of rankings and choices in partitions: the folds, losses and fit of the table in memory."""

import itertools

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from sklearn.model_selection import GroupKFold, KFold, ShuffleSplit
from sklearn.preprocessing import FunctionTransformer

from clusters import Kills, two_workers
from plackett import EM, ChoiceSets, PlackettLuceChooser, PlackettLuceRanker, Rankings
from plackett.cluster.parts import numbers_within as within
from plackett.inference import folds

rng = np.random.default_rng(5)
N = 150
PERSONS = pd.DataFrame({"age": rng.normal(size=N), "smokes": rng.integers(0, 2, size=N)})
RANKS = (
    np.argsort(np.argsort(rng.gumbel(size=(N, 4)) + np.outer(PERSONS["age"], [0.5, 0, -0.5, 1]), axis=1), axis=1) + 1
)
TIED = np.ceil(RANKS / 2)
SOME_TIED = np.where(np.arange(N)[:, None] % 3, RANKS, TIED)
RATERS = rng.permutation([f"rater {i}" for i in range(25)] * (N // 25))
COUNTS = rng.integers(0, 4, size=N)
COUNTS[40:80] = 0
PLAIN = {"max_iter": 6, "accelerate": False}  # so many passes at each shape: nothing but rounding can differ
PATH, LOW = EM(cv=2, shapes=(3.0, 1.5, 1.2), **PLAIN), EM(cv=3, shapes=(1.2, 1.0, 0.6), **PLAIN)

ITEMS = 3
LONG = pd.DataFrame({"trip": np.repeat(np.arange(N), ITEMS), "by": ["bus", "car", "walk"] * N})
LONG["cost"], LONG["minutes"] = rng.integers(1, 5, size=ITEMS * N), rng.integers(20, 24, size=ITEMS * N)
LONG["income"] = np.repeat(rng.integers(0, 3, size=N), ITEMS)
LONG["taken"] = 0
UTILITY = rng.gumbel(size=(N, ITEMS)) - LONG["cost"].to_numpy().reshape(N, ITEMS) / 2
LONG.loc[np.arange(N) * ITEMS + np.argmax(UTILITY, 1), "taken"] = 1
LONG = LONG.drop(index=np.flatnonzero((LONG["by"] == "walk") & (LONG["taken"] == 0))[::3]).reset_index(drop=True)
COLUMNS = {"situation": "trip", "alternative": "by", "attributes": ["cost", "minutes"], "person": ["income"]}
COLUMNS["choice"] = "taken"
WHO = np.arange(N) % 5
CUTS = [(0, 1, 40, 80, 80, N), (0, 77, N)]  # partitions of one situation and of none, and one without weight


pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


@pytest.fixture(scope="module")
def client():
    with two_workers() as client:
        yield client


def parted(frame, cut, key=None):
    """A frame in partitions of these situations."""
    ends = np.asarray(cut) if key is None else np.searchsorted(frame[key], cut)
    pieces = [frame.iloc[a:b] for a, b in itertools.pairwise(ends)]
    return dd.from_map(as_it_is, pieces, meta=frame.iloc[:0])


def as_it_is(part):
    return part


def ranked(ranks, cut=None, em=PATH, covariates=True, counts=None, weight=None, groups=None, **settings):
    """A ranker of the table in memory, or of its partitions."""
    frame, X = pd.DataFrame(ranks, columns=list("abcd")), PERSONS if covariates else None
    if cut is not None:
        frame = parted(frame.join(PERSONS).assign(n=1 if counts is None else counts), cut)
        X, counts = frame[["age", "smokes"]] if covariates else None, None if counts is None else frame["n"]
    R = Rankings.from_ranks(frame[list("abcd")], counts=counts, unranked="last")
    settings = ({"features": "exp"} if covariates else {}) | settings
    return PlackettLuceRanker(em, **settings).fit(X, R, sample_weight=weight, groups=groups)


def chose(cut=None, em=PATH, weight=None, groups=None, **settings):
    """A chooser of the table in memory, or of its partitions."""
    X, y = ChoiceSets.read_choices(LONG if cut is None else parted(LONG, cut, "trip"), **COLUMNS)
    return PlackettLuceChooser(em, features="exp", **settings).fit(X, y, groups=groups, sample_weight=weight)


def losses(model):
    return np.array(list(model.cv_log_loss_.values()))


def assert_same(near, far, rtol=1e-12):
    """The shapes that were tried, their losses, the shape that was taken and the weights found with it."""
    assert list(near.cv_log_loss_) == list(far.cv_log_loss_)
    np.testing.assert_allclose(losses(near), losses(far), rtol=rtol)
    assert len(np.unique(losses(near).round(6))) > 1  # shapes can be told apart
    assert near.shape_ == far.shape_
    np.testing.assert_allclose(near.weights_, far.weights_, rtol=0, atol=1e-10)


def by(splitter):
    return EM(cv=splitter, shapes=(2.0, 1.2), **PLAIN)


RANKINGS = {
    "covariates": (RANKS, {}),
    "ties of unknown order": (SOME_TIED, {"em": LOW}),
    "race ties": (SOME_TIED, {"ties": "race", "rate": 0.5}),
    "counts and weights": (RANKS, {"counts": COUNTS, "weight": rng.uniform(size=N) * (WHO > 0)}),
    "groups": (RANKS, {"counts": COUNTS, "groups": RATERS}),
    "no covariates": (RANKS, {"covariates": False, "em": LOW}),
    "no covariates, some tied": (SOME_TIED, {"covariates": False, "counts": COUNTS}),
    "no covariates, all tied": (TIED, {"covariates": False, "weight": COUNTS / 2}),
    "no covariates, race ties": (SOME_TIED, {"covariates": False, "ties": "race", "groups": RATERS}),
    "splitter": (SOME_TIED, {"covariates": False, "em": by(KFold(3, shuffle=True, random_state=1)), "counts": COUNTS}),
    "splitter of some": (RANKS, {"em": by(ShuffleSplit(2, train_size=0.3, random_state=0))}),
    "splitter of groups": (RANKS, {"em": by(GroupKFold(2)), "groups": RATERS}),
    "another map": (RANKS, {"features": FunctionTransformer(np.exp)}),
}  # fmt: skip


TWICE = ("covariates", "no covariates, some tied", "shared")  # each in two ways of cutting, all others in one


@pytest.mark.brief("counts and weights", "no covariates, race ties")
@pytest.mark.parametrize("name", RANKINGS)
def test_rankings_in_partitions(client, name):
    ranks, settings = RANKINGS[name]
    near = ranked(ranks, **settings)
    for cut in CUTS[: 1 + (name in TWICE)]:
        assert_same(near, ranked(ranks, cut, **settings))


CHOICES = {
    "shared": {"em": LOW},
    "alternative, weighted": {"weights": "alternative", "weight": COUNTS},
    "person": {"weights": "person", "groups": WHO, "weight": rng.uniform(size=N)},
    "splitter": {"em": by(KFold(2))},
}


@pytest.mark.brief("person")
@pytest.mark.parametrize("name", CHOICES)
def test_choices_in_partitions(client, name):
    near = chose(**CHOICES[name])
    for cut in CUTS[: 1 + (name in TWICE)]:
        assert_same(near, chose(cut, **CHOICES[name]))


def test_numbers_within_parts():
    found = within(np.array([9, 0, 3, 3, 8]), [3, 0, 1, 6, 2])
    assert [each.tolist() for each in found] == [[0], [], [0, 0], [5, 4], []]
    mask = np.isin(np.arange(12), [2, 3, 11])
    assert [each.tolist() for each in within(mask, [3, 0, 1, 6, 2])] == [[2], [], [0], [], [1]]


@pytest.mark.long
def test_climbs_to_the_end(client):
    """With all shapes that are usual, of which those at 1 and below are tried where a maximum exists."""
    em = EM(cv=2, tol=1e-8)
    near, far = ranked(RANKS, em=em, covariates=False), ranked(RANKS, CUTS[0], em=em, covariates=False)
    assert list(far.cv_log_loss_) == list(em.shapes)
    assert_same(near, far, 1e-8)  # steps that are extrapolated make more of rounding
    last = np.column_stack([RANKS, np.full(N, 5)])
    few = PlackettLuceRanker(em).fit(None, Rankings.from_ranks(da.from_array(last, chunks=(60, 5))))
    assert min(few.cv_log_loss_) > 1
    with pytest.raises(ValueError, match="with shape=0.6 there is no maximum"):
        PlackettLuceRanker(LOW).fit(None, Rankings.from_ranks(da.from_array(last, chunks=(60, 5))))


def test_what_is_held_out_is_not_trained_on(client):
    """Neither are weights fitted to it, nor the map of covariates: losses are those of fits to the others."""
    folds = [np.arange(0, 50), np.arange(50, N)]
    em = EM(cv=[(np.setdiff1d(np.arange(N), test), test) for test in folds], shapes=(1.5,))
    frame, R = PERSONS.copy(), Rankings.from_ranks(RANKS, items=list("abcd"))
    frame.loc[:49, "age"] *= 30  # scales are others without these
    value = 0.0
    for train, test in em.cv:
        model = PlackettLuceRanker("em", shape=1.5, features="exp").fit(frame.iloc[train], R[train])
        value += model.log_likelihood(frame.iloc[test], R[test]).sum()
    table = parted(pd.DataFrame(RANKS, columns=list("abcd")).join(frame), CUTS[0])
    far = PlackettLuceRanker(em, features="exp").fit(table[["age", "smokes"]], Rankings.from_ranks(table[list("abcd")]))
    assert far.cv_log_loss_[1.5] == pytest.approx(-value / N, rel=1e-5)  # a path is climbed to 1e-6


@pytest.mark.parametrize("cut", [None, 1])
def test_what_is_held_out_of_choices_is_not_trained_on(client, cut):
    """The same of choices, in memory and in partitions."""
    n = LONG["trip"].nunique()
    tests = [np.arange(0, n // 3), np.arange(n // 3, n)]
    em, value = EM(cv=[(np.setdiff1d(np.arange(n), test), test) for test in tests], shapes=(1.5,)), 0.0
    X, y = ChoiceSets.read_choices(LONG, **COLUMNS)
    for train, test in em.cv:
        model = PlackettLuceChooser("em", shape=1.5, features="exp").fit(X[train], y[train])
        value += model.log_likelihood(X[test], y[test]).sum()
    found = chose(None if cut is None else CUTS[cut], em=em)
    assert found.cv_log_loss_[1.5] == pytest.approx(-value / n, rel=1e-5)


@pytest.mark.long
def test_other_workers_and_workers_that_are_lost(client, monkeypatch):
    """Nothing changes, to the last bit."""

    def both():
        return [losses(ranked(SOME_TIED, CUTS[0])), losses(chose(CUTS[0]))]

    calm = both()
    with monkeypatch.context() as patch:
        kills = Kills(patch, client, (40, 100))
        killed = both()
        assert kills.done == 2  # a fold of rankings, and one of choices
    with LocalCluster(1, threads_per_worker=2, dashboard_address="127.0.0.1:0") as workers, Client(workers):
        alone = both()
    for other in (killed, alone):
        np.testing.assert_array_equal(calm, other)


def test_blocks_of_a_fold_are_let_go(client, monkeypatch):
    """Workers never hold more than the situations of one fold beside all of them."""
    of_fold, held = folds.losses_of_fold, []

    def counting(*arguments):
        held.append(sum("plackett-block" in str(key) for key in client.futures))
        return of_fold(*arguments)

    monkeypatch.setattr(folds, "losses_of_fold", counting)
    chose(CUTS[1], em=EM(cv=4, shapes=(1.5,), **PLAIN))
    assert held == [6] * 4  # of two partitions all situations, those to train on and those to test on


def test_groups_that_cannot_be(client):
    with pytest.raises(ValueError, match="one entry for each of the 150 rankings"):
        ranked(RANKS, CUTS[0], groups=RATERS[1:])
    with pytest.raises(ValueError, match="none are held out but for"):
        ranked(RANKS, CUTS[0], em="variational", groups=RATERS)


@pytest.mark.parametrize("covariates", [False, True])
def test_what_is_beside_rankings_is_told_by_partition(client, covariates):
    """Weights and groups that are cut differently, and weights that are none."""
    uneven = dd.from_map(as_it_is, [pd.Series(RATERS[:70]), pd.Series(RATERS[70:])], meta=pd.Series(RATERS[:0]))
    with pytest.raises(ValueError, match="partition 0 of the data: groups must have one entry for each of the 77"):
        ranked(RANKS, CUTS[1], covariates=covariates, groups=uneven)
    with pytest.raises(
        ValueError, match="partition 0 of the data: sample_weight must have one entry for each of .* 77"
    ):
        ranked(RANKS, CUTS[1], covariates=covariates, weight=uneven)
    for wrong in (-1.0, np.nan):
        weight = np.where(np.arange(N) == 80, wrong, 1.0)
        with pytest.raises(
            ValueError, match="partition 1 of the data: row 3 has a weight that is negative or not fini"
        ):
            ranked(RANKS, CUTS[1], covariates=covariates, weight=weight)
