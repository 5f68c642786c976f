"""Rankings by their distinct sets: the same passes as situation by situation, and the same law; curvature; the mode."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from conftest import plain_rows, situation_rows
from plackett import EM, PlackettLuceRanker, Rankings
from plackett.data.observations import Observations, Situations
from plackett.engines.by_passes import ByPasses
from plackett.engines.factory import make_engine
from plackett.engines.plain_rankings import CombinedRows, CompiledLeftSets, LeftSets, SetLikelihood
from plackett.model.race import Weights
from plackett.responses import Outcomes, make_response
from plackett.responses.left_sets import sets_of


def rankings(n_items=6, T=50, tied=0.0, seed=0):
    """Random partial rankings of unequal sets, some with ties, with counts."""
    rng = np.random.default_rng(seed)
    entries = rng.integers(2, n_items + 1, size=T)
    item = np.concatenate([rng.permutation(n_items)[:n] for n in entries])
    sizes = [[1] * rng.integers(1, n + 1) for n in entries]
    for t in np.flatnonzero(rng.random(T) < tied):
        sizes[t] = [2] + [1] * rng.integers(0, entries[t] - 1)
    return Outcomes.of(entries, sizes, rng.integers(1, 4, size=T)), item


def one_by_one(outcomes, item, response, n_items):
    situations = Situations(outcomes, item, np.zeros_like(item))
    return situation_rows("numpy", np.ones((1, 1)), situations, make_response(response), n_items)


@pytest.mark.parametrize("engine", ["numpy", "numba"])
@pytest.mark.parametrize(("n_items", "tied"), [(2, 0.0), (6, 0.0), (70, 0.0), (6, 0.5), (6, 1.0)])
def test_expectations_equal_those_situation_by_situation(engine, n_items, tied):
    outcomes, item = rankings(n_items, tied=tied)
    response = "unknown-order" if tied else "ranking"
    rows = plain_rows(engine, outcomes, item, make_response(response), n_items)
    reference, rng = one_by_one(outcomes, item, response, n_items), np.random.default_rng(1)
    assert (rows.n_rows, rows.n_seen) == (reference.n_rows, outcomes.counts.sum())
    for weights in (
        Weights.point(rng.normal(size=(n_items, 1))),
        Weights(*rng.normal(size=(2, n_items, 1))),
        Weights.point(rng.normal(-300, 100, size=(n_items, 1))),
    ):
        found, want = rows.expect(weights), reference.expect(weights)
        np.testing.assert_allclose(found.wins, want.wins, rtol=1e-12)
        np.testing.assert_allclose(found.exposure, want.exposure, rtol=1e-11)
        assert found.value == pytest.approx(want.value, rel=1e-12)
        if weights.log_own is weights.log_rival:
            assert rows.value(weights) == pytest.approx(want.value, rel=1e-12)


def test_kinds_of_rows():
    for tied, kind in ((0.0, CompiledLeftSets), (0.5, CombinedRows)):
        seen = Observations.of_rankings(*rankings(tied=tied), make_response("unknown-order"), 6)
        assert type(make_engine("auto").rows(None, seen)) is kind
    outcomes, item = rankings(tied=0.5)
    assert plain_rows("auto", outcomes, item, make_response("race"), 6).absolute
    seen = Observations.of_rankings(*rankings(), make_response("ranking"), 6)
    assert type(make_engine("numpy").rows(None, seen)) is LeftSets


@pytest.mark.parametrize("tied", [0.0, 0.5])
def test_compiled_draws_are_those_of_the_reference(tied):
    outcomes, item = rankings(tied=tied)
    theta = np.random.default_rng(1).normal(size=(6, 1))
    first, second = (plain_rows(e, outcomes, item, make_response("unknown-order"), 6) for e in ("numpy", "numba"))
    for key in (0, 7, 2**61 + 3):
        a, b = (rows.sample(Weights.point(theta), key) for rows in (first, second))
        np.testing.assert_array_equal(a.wins, b.wins)
        np.testing.assert_allclose(a.exposure, b.exposure, rtol=1e-11)


def test_sampled_times_have_the_law_of_those_stage_by_stage():
    """Means and covariances of the times agree with those of the situations' own draws."""
    outcomes, item = rankings(4, T=12)
    weights = Weights.point(np.array([[0.5], [-0.3], [0.0], [1.0]]))
    rows = plain_rows("auto", outcomes, item, make_response("ranking"), 4)
    reference = one_by_one(outcomes, item, "ranking", 4)
    keys = np.random.default_rng(0).integers(2**62, size=4000).tolist()
    times = [np.array([each.sample(weights, key).exposure.ravel() for key in keys]) for each in (rows, reference)]
    terms = [np.hstack([x, *(x[:, [k]] * x for k in range(4))]) for x in times]
    error = np.sqrt(sum(x.var(axis=0) for x in terms) / len(keys))
    assert (np.abs(terms[0].mean(axis=0) - terms[1].mean(axis=0)) < 4.5 * error).all()


def test_there_are_no_more_sets_than_subsets_and_any_order_gives_the_same_draws():
    outcomes, item = rankings(5, T=600)
    rows = plain_rows("auto", outcomes, item, make_response("ranking"), 5)
    assert len(rows.sets.item) <= 2**5 < len(item)
    order = np.random.default_rng(0).permutation(600)
    entries = np.concatenate([np.arange(outcomes.start[t], outcomes.start[t + 1]) for t in order])
    sizes = [outcomes.sizes[outcomes.bucket_start[t] : outcomes.bucket_start[t + 1]].tolist() for t in order]
    shuffled = Outcomes.of(np.diff(outcomes.start)[order], sizes, outcomes.counts[order])
    weights = Weights.point(np.random.default_rng(1).normal(size=(5, 1)))
    same = plain_rows("auto", shuffled, item[entries], make_response("ranking"), 5)
    np.testing.assert_array_equal(rows.sample(weights, 3).exposure, same.sample(weights, 3).exposure)


@pytest.mark.parametrize("n_items", [5, 70])
def test_sets_are_the_same_for_rankings_in_any_order(n_items):
    orders = [np.random.default_rng(t).permutation(n_items)[:3].tolist() for t in range(60)]
    first, second = (
        sets_of(Outcomes.of([3] * 60, [[1, 1]] * 60), np.concatenate(some), n_items)[0]
        for some in (orders, orders[::-1])
    )
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one, other)


def test_fractions_are_refused_in_samples():
    outcomes, item = rankings()
    rows = plain_rows("auto", outcomes._replace(counts=outcomes.counts + 0.5), item, make_response("ranking"), 6)
    assert np.isfinite(rows.expect(Weights.point(np.zeros((6, 1)))).value)
    with pytest.raises(ValueError, match="whole numbers"):
        rows.sample(Weights.point(np.zeros((6, 1))), 0)


def random_pairs(n_items, n, seed=0):
    """Pairs won by the first entry, most of them more than once."""
    rng = np.random.default_rng(seed)
    item = np.array([rng.choice(n_items, 2, replace=False) for _ in range(n)]).ravel()
    return Outcomes.of([2] * n, [[1]] * n, rng.integers(1, 4, size=n)), item


@pytest.mark.parametrize("engine", ["numpy", "numba"])
def test_passes_over_pairs_equal_those_one_by_one(engine):
    outcomes, item = random_pairs(5, 80)
    rows = plain_rows(engine, outcomes, item, make_response("ranking"), 5)
    reference = one_by_one(outcomes, item, "ranking", 5)
    assert (rows.n_rows, rows.n_seen) == (80, outcomes.counts.sum())
    np.testing.assert_array_equal(rows.order, reference.order)
    weights = Weights.point(np.random.default_rng(1).normal(size=(5, 1)))
    found, want = rows.expect(weights), reference.expect(weights)
    np.testing.assert_array_equal(found.wins, want.wins)
    np.testing.assert_allclose(found.exposure, want.exposure, rtol=1e-12)
    assert found.value == pytest.approx(want.value, rel=1e-12)


@pytest.mark.parametrize(("n_items", "n"), [(5, 80), (60, 80)])  # few kinds of pairs, and few pairs of a kind
@pytest.mark.parametrize("fraction", [0.0, 1 / 3])
def test_pairs_in_any_order_are_the_same(n_items, n, fraction):
    outcomes, item = random_pairs(n_items, n)
    outcomes = outcomes._replace(counts=outcomes.counts + fraction * np.arange(n))
    order = np.random.default_rng(1).permutation(n)
    shuffled = outcomes._replace(counts=outcomes.counts[order]), item.reshape(-1, 2)[order].ravel()
    a, b = (plain_rows("auto", *each, make_response("ranking"), n_items) for each in ((outcomes, item), shuffled))
    for one, other in zip(a.held, b.held, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("engine", ["numpy", "numba"])
@pytest.mark.parametrize("n_items", [2, 6, 20])
def test_curvature_is_that_of_the_slopes(engine, n_items):
    """Differences of slopes have errors of about 1e-16/1e-5 and 1e-10, relative to counts of about 100."""
    rows = plain_rows(engine, *rankings(n_items, T=25), make_response("ranking"), n_items)
    likelihood, none = rows.likelihood(), np.empty(0)
    x = 2.0 * np.random.default_rng(1).normal(size=n_items)
    np.testing.assert_allclose(likelihood.curvature(x, none), ByPasses(rows).curvature(x, none), atol=1e-7)
    below = likelihood.curvature(x - 1000.0 * (np.arange(n_items) == 1), none)
    assert type(likelihood) is SetLikelihood and np.isfinite(below).all()
    assert np.abs(below.sum(axis=0)).max() < 1e-10


def test_the_curvature_of_large_sets_is_left_to_passes():
    rows = plain_rows("auto", *rankings(200, T=25), make_response("ranking"), 200)
    assert type(rows.likelihood()) is ByPasses


@pytest.mark.parametrize("shape", [1.0, 2.5])
def test_newton_ends_where_passes_end(shape):
    outcomes, item = rankings(6, T=300)
    R = Rankings(np.arange(6), item, outcomes, "absent")
    quick, plain = (PlackettLuceRanker(EM(accelerate=quick), shape=shape).fit(None, R) for quick in (True, False))
    assert quick.n_iter_ < 4 < 10 < plain.n_iter_ and (np.diff(plain.trace_) > -1e-9).all()
    np.testing.assert_allclose(quick.weights_, plain.weights_, rtol=1e-7)
    assert np.abs(quick.worth()["lower"] - plain.worth()["lower"]).max() < 1e-6


def test_iterations_are_limited():
    outcomes, item = rankings(6, T=300)
    R = Rankings(np.arange(6), item, outcomes, "absent")
    with pytest.warns(ConvergenceWarning, match="did not converge in 1 iterations"):
        PlackettLuceRanker(EM(max_iter=1), shape=1).fit(None, R)


def test_newton_is_left_to_few_items(monkeypatch):
    outcomes, item = rankings(6, T=300)
    R = Rankings(np.arange(6), item, outcomes, "absent")
    monkeypatch.setattr("plackett.inference.em.BEGIN", -(10**9))
    assert PlackettLuceRanker("em", shape=1).fit(None, R).n_iter_ > 4
