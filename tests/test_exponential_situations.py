"""Features exp(x·β) made as a pass over situations goes: the gradient of every response."""

import numpy as np
import pytest

from conftest import class_gradient, class_situations, situation_rows
from plackett.data.observations import Situations
from plackett.engines import exponential_choices, exponential_rankings, exponential_situations
from plackett.model.race import Slopes, Weights
from plackett.responses import Choice, Outcomes, make_response
from test_situations import ENGINES, OWN, RESPONSES, SHARED, problem

M, D = 4, 3


def directions(name, kind, engine="numba", **settings):
    """Covariates of any sign in the rows of random situations, β and ln λ."""
    features, situations, theta = problem(name, kind, **settings)
    rng = np.random.default_rng(5)
    X = rng.normal(size=(len(features), D))
    rows = situation_rows(engine, X, situations, make_response(name), len(theta))
    return rows, X, situations, rng.normal(size=(M, D)), rng.normal(size=(len(theta), M))


@pytest.mark.parametrize("kind", [SHARED, OWN])
@pytest.mark.parametrize("name", RESPONSES)
def test_the_value_is_that_of_made_features(name, kind):
    rows, X, situations, beta, log_weights = directions(name, kind)
    made = situation_rows("auto", np.exp(X @ beta.T), situations, make_response(name), len(log_weights))
    assert rows.gradient(beta, log_weights).value == pytest.approx(made.value(Weights.point(log_weights)), rel=1e-11)


@pytest.mark.parametrize("kind", [SHARED, OWN])
@pytest.mark.parametrize("name", RESPONSES)
def test_gradient_by_finite_differences(name, kind):
    rows, _, _, beta, log_weights = directions(name, kind, T=25)
    found = rows.gradient(beta, log_weights)
    for slope, which in ((found.directions, 0), (found.log_weights, 1)):
        for place in np.ndindex(*slope.shape):
            sides = []
            for h in (1e-5, -1e-5):
                at = [beta.copy(), log_weights.copy()]
                at[which][place] += h
                sides.append(rows.gradient(*at).value)
            assert slope[place] == pytest.approx((sides[0] - sides[1]) / 2e-5, rel=1e-5, abs=1e-5)


def assert_same_slopes(found, expected, rel=1e-12, tolerance=1e-10):
    assert found.value == pytest.approx(expected.value, rel=rel)
    np.testing.assert_allclose(found.directions, expected.directions, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(found.log_weights, expected.log_weights, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kind", [SHARED, OWN])
@pytest.mark.parametrize("name", RESPONSES)
def test_compiled_equals_reference(name, kind, monkeypatch):
    rows, _, _, beta, log_weights = directions(name, kind, "numpy")
    expected = rows.gradient(beta, log_weights)
    for tile, block in ((64, 1 << 13), (5, 17), (1, 1)):
        monkeypatch.setattr(exponential_situations, "TILE", tile)
        monkeypatch.setattr(exponential_situations, "BLOCK", block)
        rows, _, _, beta, log_weights = directions(name, kind)
        assert_same_slopes(exponential_situations.gradient(rows.covariates, beta, log_weights), expected)
        assert_same_slopes(rows.gradient(beta, log_weights), expected)
    assert len(rows.covariates.blocks) == len(rows.covariates.tile_row) > 50
    assert (rows.in_lanes(np.float64) is not None) == (kind == SHARED and name in ("choice", "ranking"))


def ranked(dtype, name="ranking", **settings):
    """Of rows in lanes: what a chain computes, β, ln λ, and the same by entries."""
    rows, _, _, beta, log_weights = directions(name, SHARED, **settings)
    packed = rows.in_lanes(dtype)
    doubles, floats = exponential_rankings.log_likelihood, exponential_rankings.log_likelihood_in_floats
    scratch = exponential_rankings.make_scratch(packed, M, D, len(log_weights))
    value = (doubles if dtype == np.float64 else floats)(packed, 0, len(packed.values), beta, log_weights, scratch)
    expected = exponential_situations.gradient(rows.covariates, beta, log_weights)
    return Slopes(value, scratch.directions, scratch.log_weights), expected


@pytest.mark.parametrize("name", ["choice", "ranking"])
@pytest.mark.parametrize("n", [1, 15, 16, 17, 400, 9000])
def test_rows_in_lanes_equal_entries(name, n):
    assert_same_slopes(*ranked(np.float64, name, T=n), tolerance=1e-9)
    found, expected = ranked(np.float32, name, T=n)
    assert abs(found.value - expected.value) < 3e-6 * n
    for slope, other in ((found.directions, expected.directions), (found.log_weights, expected.log_weights)):
        assert np.abs(slope - other).max() < 1e-5 * np.sqrt(n) + 1e-5 * np.abs(other).max()


def shared_choices(n, engine="numba", rows_of=None, largest=5):
    """Choices of all sizes whose alternatives share the weights, some situations without copies; β and ln λ."""
    rng = np.random.default_rng(n)
    sizes = rng.integers(1, largest + 1, size=n)
    row = np.arange(sizes.sum()) if rows_of is None else rng.integers(rows_of, size=sizes.sum())
    outcomes = Outcomes.choices(sizes, rng.integers(0, 4, size=n).astype(float))
    situations = Situations(outcomes, np.zeros(len(row), dtype=np.int64), row)
    X = rng.normal(size=(row.max() + 1, D))
    return situation_rows(engine, X, situations, Choice(), 1), rng.normal(size=(M + 1, D)), rng.normal(size=(1, M + 1))


def slopes_in_lanes(rows, beta, log_weights, dtype):
    """What a chain computes."""
    packed, module = rows.in_lanes(dtype), exponential_choices
    scratch = module.make_scratch(packed, len(beta), D, 1)
    kernel = module.log_likelihood if dtype == np.float64 else module.log_likelihood_in_floats
    value = kernel(packed, 0, len(packed.weight), np.ascontiguousarray(beta), log_weights, scratch)
    return Slopes(value, scratch.directions, scratch.log_weights)


@pytest.mark.parametrize(("n", "largest"), [(1, 1), (1, 5), (15, 5), (16, 40), (33, 2), (400, 5), (9000, 3)])
def test_choices_with_shared_weights_lie_in_lanes(n, largest):
    """Situations of all sizes, some of them in the same panel, with scores near and far from one another."""
    expected = shared_choices(n, "numpy", largest=largest)
    rows, beta, log_weights = shared_choices(n, largest=largest)
    for factor, dtype in ((1.0, np.float64), (10.0, np.float64), (1.0, np.float32), (3.0, np.float32)):
        reference = expected[0].gradient(factor * beta, log_weights)
        found = slopes_in_lanes(rows, factor * beta, log_weights, dtype)
        if dtype == np.float32:
            assert abs(found.value - reference.value) < 1e-5 * factor * n
            for slope, other in ((found.directions, reference.directions), (found.log_weights, reference.log_weights)):
                assert np.abs(slope - other).max() < 1e-5 * factor * (np.sqrt(n) + np.abs(other).max())
            continue
        by_entries = exponential_situations.gradient(rows.covariates, factor * beta, log_weights)
        for slopes in (found, by_entries, rows.gradient(factor * beta, log_weights)):
            assert_same_slopes(slopes, reference, tolerance=1e-9)


def test_choices_may_share_rows():
    expected, rows = (shared_choices(50, engine, rows_of=7) for engine in ENGINES)
    assert_same_slopes(rows[0].gradient(*rows[1:]), expected[0].gradient(*expected[1:]))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_far_scores_of_shared_choices_stay_finite(dtype):
    rows, beta, log_weights = shared_choices(60)
    found = slopes_in_lanes(rows, 1e3 * beta, log_weights, dtype)
    assert np.isfinite(found.value) and np.isfinite(found.directions).all() and np.isfinite(found.log_weights).all()


def test_an_item_twice_or_a_row_of_two_is_no_ranking_of_rows():
    rows, X, (outcomes, group, row), _, log_weights = directions("ranking", SHARED)
    K, response = len(log_weights), make_response("ranking")
    assert exponential_rankings.ranks_items(outcomes, group, row, K, response)
    assert not exponential_rankings.ranks_items(outcomes, np.zeros_like(group), row, K, response)
    assert not exponential_rankings.ranks_items(outcomes, group, row // 2, K, response)
    assert not exponential_rankings.ranks_items(outcomes, group, row, K, make_response("race"))


@pytest.mark.parametrize("engine", ENGINES)
def test_classes_equal_the_fast_path(engine):
    rng = np.random.default_rng(0)
    X, codes, weight = rng.normal(size=(90, D)), rng.integers(3, size=90), rng.gamma(1, size=90)
    beta, log_weights = rng.normal(size=(M, D)), rng.normal(size=(3, M))
    general = situation_rows(engine, X, class_situations(codes, 3, weight), Choice(), 3).gradient(beta, log_weights)
    fast = class_gradient(engine, X, codes, weight).gradient(beta, log_weights)
    assert general.value == pytest.approx(fast.value, rel=1e-12)
    np.testing.assert_allclose(general.directions, fast.directions, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(general.log_weights, fast.log_weights, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["choice", "ranking", "unknown-order"])
def test_far_scores_stay_finite(name, engine):
    rows, _, _, beta, log_weights = directions(name, OWN, engine)
    found = rows.gradient(1e3 * beta, log_weights)
    assert np.isfinite(found.value) and np.isfinite(found.directions).all() and np.isfinite(found.log_weights).all()


@pytest.mark.parametrize("kind", [SHARED, OWN, "shared weights"])
def test_number_of_threads_changes_nothing(kind, monkeypatch):
    if kind == "shared weights":
        module, (rows, beta, log_weights) = exponential_choices, shared_choices(20_000)
    elif kind == SHARED:
        module, (rows, _, _, beta, log_weights) = exponential_rankings, directions("ranking", kind, T=20_000)
    else:
        module = exponential_situations
        monkeypatch.setattr(module, "BLOCK", 1 << 10)
        rows, _, _, beta, log_weights = directions("ranking", kind, T=8000)
    found = []
    for n_threads in (1, 2, 7):
        monkeypatch.setattr(module, "cores", lambda n_threads=n_threads: n_threads)
        monkeypatch.setattr(module, "LARGE", 1 << 60 if n_threads == 1 else 1)
        found.append(rows.gradient(beta, log_weights))
    packed = rows.covariates if kind == OWN else rows.in_lanes(np.float64)
    assert module.is_large(packed, len(beta))
    scratch = module.make_scratch(packed, *beta.shape, len(log_weights))  # as a chain runs it, all blocks in a row
    end = {SHARED: lambda: len(packed.values), OWN: lambda: len(packed.blocks) - 1}.get(
        kind, lambda: len(packed.weight)
    )
    value = module.log_likelihood(packed, 0, end(), beta, log_weights, scratch)
    found.append(Slopes(value, scratch.directions, scratch.log_weights))
    for other in found[1:]:
        assert other.value == found[0].value
        np.testing.assert_array_equal(other.directions, found[0].directions)
        np.testing.assert_array_equal(other.log_weights, found[0].log_weights)


@pytest.mark.parametrize("name", RESPONSES)
def test_rows_that_situations_share(name):
    """A few rows for all entries, in any order: one tile, and sums of many entries."""
    found = []
    for engine in ENGINES:
        features, situations, theta = problem(name, OWN)
        rng = np.random.default_rng(6)
        X, row = rng.normal(size=(9, D)), rng.integers(9, size=len(situations.row))
        beta, log_weights = rng.normal(size=(M, D)), rng.normal(size=(len(theta), M))
        rows = situation_rows(engine, X, situations._replace(row=row), make_response(name), len(theta))
        found.append(rows.gradient(beta, log_weights))
    assert len(rows.covariates.tile_row) == 2
    assert found[1].value == pytest.approx(found[0].value, rel=1e-12)
    np.testing.assert_allclose(found[1].directions, found[0].directions, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(found[1].log_weights, found[0].log_weights, rtol=1e-10, atol=1e-10)


def test_a_response_from_outside_takes_the_pass_of_the_reference():
    class Own(Choice):
        def expect_block(self, *_):
            raise AssertionError("the reference uses `expect`")

    features, situations, theta = problem("choice", OWN)
    rows = situation_rows("auto", features, situations, Own(), len(theta))
    beta, log_weights = np.ones((M, features.shape[1])), np.ones((len(theta), M))
    expected = situation_rows("numpy", features, situations, Choice(), len(theta)).gradient(beta, log_weights)
    assert rows.gradient(beta, log_weights).value == expected.value
