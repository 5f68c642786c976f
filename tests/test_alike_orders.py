"""Many rankings whose buckets have the same sizes: their likelihood in arrays equals that of passes."""

import numpy as np
import pytest

from plackett import EM, Gibbs, PlackettLuceRanker, Rankings
from plackett.data.observations import Observations
from plackett.engines import alike_orders
from plackett.engines.alike_orders import AlikeOrders, kinds_of
from plackett.engines.by_passes import ByPasses
from plackett.engines.factory import make_engine
from plackett.responses import Outcomes, make_response

K = 8
KINDS = {
    "best-worst": [([1, 3, 1], 5)],
    "two sizes": [([1, 2, 1], 4), ([1, 3, 1], 5)],
    "bucket at the end": [([1, 3], 4)],
    "unranked last": [([2], 6), ([1, 4], 6)],
    "several buckets": [([2, 1, 3], 7), ([5, 2], 7)],
}


def tasks(kinds, n=40, seed=0):
    """Random rankings of these sizes and numbers of entries, with counts; unranked items come last."""
    rng = np.random.default_rng(seed)
    outcomes, items, lengths = [], [], []
    for t in range(n):
        sizes, length = kinds[t % len(kinds)]
        outcomes.append(sizes)
        lengths.append(length)
        items.append(rng.permutation(K)[:length])
    found = Outcomes.of(lengths, outcomes, rng.integers(1, 4, n))
    return Observations.of_rankings(found, np.concatenate(items), make_response("unknown-order"), K)


def likelihoods(seen, monkeypatch):
    """The likelihood in arrays, and by passes of the reference."""
    monkeypatch.setattr(alike_orders, "FEWEST", 1)
    monkeypatch.setattr(alike_orders, "NUMBERS", 64)  # so that kinds are cut
    found = make_engine("numba").rows(None, seen).walk()
    assert isinstance(found, AlikeOrders)
    return found, make_engine("numpy").rows(None, seen).walk()


@pytest.mark.parametrize("spread", [1.0, 20.0])
@pytest.mark.parametrize("kinds", KINDS.values(), ids=KINDS)
def test_values_and_slopes_are_those_of_passes(kinds, spread, monkeypatch):
    fast, reference = likelihoods(tasks(kinds), monkeypatch)
    assert type(reference) is ByPasses
    x = spread * np.random.default_rng(1).normal(size=K)
    (value, slope, free), (other, expected, _) = (each.slopes(x, np.empty(0)) for each in (fast, reference))
    assert value == pytest.approx(other, rel=1e-12) and not free.size
    np.testing.assert_allclose(slope, expected, atol=1e-9)
    np.testing.assert_allclose(fast.curvature(x, free), reference.curvature(x, free), atol=1e-4)


def test_chances_of_all_outcomes_sum_to_one(monkeypatch):
    """Of best and worst among four items, each possible pair once."""
    orders = [[b, {*range(4)} - {b, w}, w] for b in range(4) for w in range(4) if b != w]
    monkeypatch.setattr(alike_orders, "FEWEST", 1)
    x, total = np.array([0.3, -1.0, 2.0, 0.1]), 0.0
    for order in orders:
        R = Rankings.from_orders([order], items=range(4))
        seen = Observations.of_rankings(R.outcomes, R.item, make_response("unknown-order"), 4)
        found = make_engine("numba").rows(None, seen).walk()
        assert isinstance(found, AlikeOrders)
        total += np.exp(found.slopes(x, np.empty(0))[0])
    assert total == pytest.approx(1.0)


def test_worths_of_any_size_are_finite(monkeypatch):
    fast, _ = likelihoods(tasks(KINDS["several buckets"]), monkeypatch)
    for x in (np.linspace(-900, 900, K), np.linspace(900, -900, K) + 1e4):
        value, slope, _ = fast.slopes(x, np.empty(0))
        assert np.isfinite(value) and np.isfinite(slope).all() and value < 0
        assert slope.sum() == pytest.approx(0.0, abs=1e-9)


def test_kinds_hold_every_ranking_once(monkeypatch):
    rows = make_engine("numba").rows(None, tasks(KINDS["several buckets"]))
    found = kinds_of(rows)
    assert sorted(kind.sizes for kind in found) == [(2, 1, 3), (5, 2)]
    assert sum(kind.counts.sum() for kind in found) == rows.n_seen
    items = np.concatenate([kind.items.ravel() for kind in found])
    np.testing.assert_array_equal(np.sort(items), np.sort(rows.group))


def test_few_rankings_and_large_buckets_go_by_passes(monkeypatch):
    assert type(make_engine("numba").rows(None, tasks(KINDS["best-worst"])).walk()) is ByPasses
    monkeypatch.setattr(alike_orders, "FEWEST", 1)
    assert type(make_engine("numba").rows(None, tasks([([6, 1], 8)])).walk()) is ByPasses


@pytest.mark.filterwarnings("ignore")
def test_many_tasks_are_drawn_about_the_mode():
    """With many tasks the posterior is that of the curvature at the mode, here of maximum likelihood by passes."""
    rng, worth = np.random.default_rng(3), np.arange(1.0, 6.0)
    times = rng.exponential(1.0 / worth, size=(1500, 5)).argsort(axis=1)
    R = Rankings.from_orders([[int(row[0]), {*map(int, row[1:4])}, int(row[4])] for row in times])
    model = PlackettLuceRanker(Gibbs(draws=400, tune=100, chains=2), shape=1, random_state=0).fit(None, R)
    logs = model.posterior_.log_weights[..., 0].reshape(-1, 5)
    logs = logs - logs.mean(axis=1, keepdims=True)
    best = np.log(PlackettLuceRanker(EM(tol=1e-9), shape=1).fit(None, R).weights_[:, 0])
    deviation = logs.std(axis=0)
    assert (np.abs(logs.mean(axis=0) - best + best.mean()) < 0.25 * deviation).all()
    seen = Observations.of_rankings(R.outcomes, R.item, make_response("unknown-order"), 5)
    curvature = make_engine("numpy").rows(None, seen).walk().curvature(best, np.empty(0))
    np.testing.assert_allclose(deviation, np.sqrt(np.diag(np.linalg.pinv(curvature, rcond=1e-6))), rtol=0.15)
