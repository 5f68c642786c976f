"""Passes over situations: the general path equals the fast one, its special cases, its reference and brute force."""

import itertools

import numpy as np
import pytest
from scipy import stats as laws
from scipy.special import digamma

from conftest import class_rows, class_situations, situation_rows, small_problem
from plackett.data.observations import Situations
from plackett.engines.numba import CompiledSituations
from plackett.model.race import Weights
from plackett.responses import Choice, Outcomes, Ranking, make_response

ENGINES = ["numpy", "numba"]
RESPONSES = ["choice", "ranking", "unknown-order", "race"]
SHARED, OWN = "one row a situation", "one row an entry"


def assert_same(a, b, rtol, exact_wins=False):
    np.testing.assert_allclose(a.wins, b.wins, rtol=0 if exact_wins else rtol, atol=0 if exact_wins else rtol)
    np.testing.assert_allclose(a.exposure, b.exposure, rtol=rtol)
    assert a.value == pytest.approx(b.value, rel=rtol)


def problem(name, kind=SHARED, T=60, n_groups=6, p=3, seed=0, largest=4):
    """Random situations of different sizes, with features of either kind, and weights."""
    rng = np.random.default_rng(seed)
    entries = rng.integers(2, n_groups + 1, size=T)
    sizes = []
    for n in entries:
        if name == "choice":
            sizes.append([1])
        elif name == "ranking":
            sizes.append([1] * rng.integers(1, n + 1))
        else:
            cuts = np.flatnonzero(rng.random(n - 1) < 0.5) + 1
            sizes.append(np.diff([0, *cuts, n]).tolist()[: rng.integers(1, len(cuts) + 2)])
    outcomes = Outcomes.of(entries, sizes, rng.integers(1, largest, size=T))
    group = np.concatenate([rng.permutation(n_groups)[:n] for n in entries])
    row = np.repeat(np.arange(T), entries) if kind == SHARED else np.arange(entries.sum())
    features = rng.uniform(size=(row.max() + 1, p)) * (rng.random((row.max() + 1, p)) < 0.8) + 1e-3
    return features, Situations(outcomes, group, row), rng.normal(size=(n_groups, p))


def prepared(name, engine="numba", **settings):
    features, situations, theta = problem(name, **settings)
    return situation_rows(engine, features, situations, make_response(name), len(theta)), Weights.point(theta)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("size", [(7, 1, 2), (200, 4, 3)])
def test_classes_equal_the_fast_path(engine, weighted, size):
    W, codes, theta = small_problem(*size)
    weight = np.random.default_rng(1).gamma(1, size=len(codes)) if weighted else None
    rows = situation_rows(engine, W, class_situations(codes, size[2], weight), Choice(), size[2])
    for fast in (class_rows(name, W, codes, size[2], weight) for name in ENGINES):
        for weights in (Weights.point(theta), Weights(theta - 1, theta + 2), Weights(theta - 0.1 * theta**2, theta)):
            assert_same(rows.expect(weights), fast.expect(weights), 1e-12)
            assert rows.value(weights) == pytest.approx(fast.expect(weights).value, rel=1e-12)
    probabilities = W @ np.exp(theta).T
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    want = np.log(probabilities[np.arange(len(codes)), codes])
    np.testing.assert_allclose(rows.values(Weights.point(theta)), want, rtol=1e-12)


@pytest.mark.parametrize("kind", [SHARED, OWN])
@pytest.mark.parametrize("name", RESPONSES)
def test_compiled_equals_reference(name, kind):
    """Expectations to rounding, samples draw for draw, in one block and in many."""
    features, situations, theta = problem(name, kind)
    reference, fast = (situation_rows(engine, features, situations, make_response(name), 6) for engine in ENGINES)
    np.testing.assert_array_equal(reference.order, fast.order)
    for cuts in (fast.cuts, [0, 1, 17, 30, 60]):
        fast.cuts = cuts
        for weights in (Weights.point(theta), Weights(theta - 0.3, theta), Weights(theta, 2 * theta + 1)):
            assert_same(reference.expect(weights), fast.expect(weights), 1e-11)
            np.testing.assert_allclose(reference.values(weights), fast.values(weights), rtol=1e-11, atol=1e-11)
            assert reference.value(weights) == pytest.approx(fast.value(weights), rel=1e-12)
            for key in (0, 1, 2**61 + 12345):
                assert_same(reference.sample(weights, key), fast.sample(weights, key), 1e-11, exact_wins=True)


@pytest.mark.parametrize("kind", [SHARED, OWN])
@pytest.mark.parametrize("name", RESPONSES)
def test_gradient_by_finite_differences(name, kind):
    """d/dθ of the log-likelihood in θ = ln λ is wins − λ∘exposure."""
    rows, weights = prepared(name, kind=kind)
    theta = weights.log_own
    stats = rows.expect(weights)
    assert stats.value == pytest.approx(rows.value(weights), rel=1e-13)
    gradient = stats.wins - np.exp(theta) * stats.exposure
    for g, j in np.ndindex(*theta.shape):
        step = 1e-5 * ((np.arange(6) == g)[:, None] & (np.arange(3) == j))
        up, down = (rows.value(Weights.point(theta + s)) for s in (step, -step))
        assert gradient[g, j] == pytest.approx((up - down) / 2e-5, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("name", RESPONSES)
def test_sampled_statistics_have_the_expected_means(name):
    rows, weights = prepared(name, T=25)
    expected = rows.expect(weights)
    sampled = [rows.sample(weights, int(key)) for key in np.random.default_rng(0).integers(2**62, size=4000)]
    for got, want in (
        (np.array([s.wins for s in sampled]), expected.wins),
        (np.array([s.exposure for s in sampled]), expected.exposure),
    ):
        error = got.std(axis=0) / np.sqrt(len(sampled))
        assert (np.abs(got.mean(axis=0) - want) <= 4.5 * error).all()
        assert (error > 0).all()
    assert sampled[0].value == pytest.approx(expected.value, rel=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_ranking_equals_its_exploded_choices(engine):
    features, situations, theta = problem("ranking")
    (start, bucket_start, _, counts), group, row = situations
    stages = [
        (np.arange(low + s, high), counts[t])
        for t, (low, high) in enumerate(itertools.pairwise(start))
        for s in range(min(bucket_start[t + 1] - bucket_start[t], high - low - 1))
    ]
    entries = np.concatenate([each for each, _ in stages])
    outcomes = Outcomes.choices([len(each) for each, _ in stages], [count for _, count in stages])
    exploded = situation_rows(engine, features, Situations(outcomes, group[entries], row[entries]), Choice(), 6)
    whole = situation_rows(engine, features, situations, Ranking(), 6)
    for weights in (Weights.point(theta), Weights(theta - 0.3, theta)):
        assert_same(whole.expect(weights), exploded.expect(weights), 1e-12)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", RESPONSES)
def test_an_unavailable_alternative_equals_a_deleted_one(name, engine):
    """A row of zeros among what is left, against the same situations without that entry."""
    features, (outcomes, group, row), theta = problem(name, OWN)
    placed = np.diff(np.append(0, np.cumsum(outcomes.sizes))[outcomes.bucket_start])
    dead = np.array([high - 1 for t, high in enumerate(outcomes.start[1:]) if high - outcomes.start[t] > placed[t] + 1])
    assert len(dead) > 5
    without = features.copy()
    without[dead] = 0.0
    zeros = situation_rows(engine, without, Situations(outcomes, group, row), make_response(name), 6)
    start = outcomes.start - np.searchsorted(dead, outcomes.start)
    fewer = Situations(outcomes._replace(start=start), np.delete(group, dead), np.delete(row, dead))
    deleted = situation_rows(engine, features, fewer, make_response(name), 6)
    assert_same(zeros.expect(Weights.point(theta)), deleted.expect(Weights.point(theta)), 1e-12)


@pytest.mark.parametrize("name", RESPONSES)
def test_a_count_of_seven_equals_seven_copies(name):
    features, (outcomes, group, row), theta = problem(name, T=8, p=2)
    outcomes = outcomes._replace(counts=np.full(8, 7.0))
    once = outcomes._replace(counts=np.ones(8))
    copies = Outcomes(
        np.append(0, np.cumsum(np.tile(np.diff(once.start), 7))),
        np.append(0, np.cumsum(np.tile(np.diff(once.bucket_start), 7))),
        np.tile(once.sizes, 7),
        np.ones(56),
    )
    counted = situation_rows("auto", features, Situations(outcomes, group, row), make_response(name), 6)
    repeated = situation_rows(
        "auto", features, Situations(copies, np.tile(group, 7), np.tile(row, 7)), make_response(name), 6
    )
    weights = Weights.point(theta)
    assert_same(counted.expect(weights), repeated.expect(weights), 1e-12)
    n = 4000
    drawn = [[rows.sample(weights, key) for key in range(n)] for rows in (counted, repeated)]
    for field in ("wins", "exposure"):
        one, two = (np.array([getattr(stats, field).ravel() for stats in each]).T for each in drawn)
        for x, y in zip(one, two, strict=True):
            assert laws.ks_2samp(x, y).pvalue > 1e-3 / theta.size


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", RESPONSES)
def test_order_of_situations_and_within_buckets_changes_nothing(name, engine):
    features, (outcomes, group, row), theta = problem(name, OWN)
    rng = np.random.default_rng(9)
    T = len(outcomes.counts)
    shuffle, rows_shuffled = rng.permutation(T), rng.permutation(len(features))
    entries, sizes, kept = [], [], []
    for t in shuffle:
        own = outcomes.sizes[outcomes.bucket_start[t] : outcomes.bucket_start[t + 1]]
        bounds = outcomes.start[t] + np.append(0, np.cumsum(own))
        parts = [*np.split(np.arange(outcomes.start[t], outcomes.start[t + 1]), bounds[1:] - outcomes.start[t])]
        entries.append(np.concatenate([rng.permutation(part) for part in parts]))
        sizes.append(own)
        kept.append(outcomes.counts[t])
    at = np.concatenate(entries)
    again = Situations(
        Outcomes.of([len(e) for e in entries], sizes, kept), group[at], np.argsort(rows_shuffled)[row[at]]
    )
    one = situation_rows(engine, features, Situations(outcomes, group, row), make_response(name), 6)
    two = situation_rows(engine, features[rows_shuffled], again, make_response(name), 6)
    weights = Weights.point(theta)
    np.testing.assert_array_equal(one.order, shuffle[two.order])
    np.testing.assert_allclose(one.values(weights)[shuffle], two.values(weights), rtol=0, atol=0)
    for a, b in ((one.expect(weights), two.expect(weights)), (one.sample(weights, 3), two.sample(weights, 3))):
        np.testing.assert_array_equal(a.wins, b.wins)
        np.testing.assert_array_equal(a.exposure, b.exposure)
        assert a.value == b.value


def test_number_of_threads_changes_nothing():
    rows, weights = prepared("unknown-order", T=8000, n_groups=8)
    assert isinstance(rows, CompiledSituations) and len(rows.cuts) > 5
    results = []
    for n_threads in (1, 2, 7):
        rows.set_threads(n_threads)
        results.append((rows.expect(weights), rows.sample(weights, 11)))
    for expected, sampled in results[1:]:
        for a, b in ((results[0][0], expected), (results[0][1], sampled)):
            np.testing.assert_array_equal(a.wins, b.wins)
            np.testing.assert_array_equal(a.exposure, b.exposure)
            assert a.value == b.value


@pytest.mark.parametrize("kind", [SHARED, OWN])
@pytest.mark.parametrize("name", RESPONSES)
def test_features_of_a_situation_times_a_constant_change_nothing_but_in_race_ties(name, kind):
    features, situations, theta = problem(name, kind)
    factor = np.random.default_rng(2).gamma(1, size=60)
    if kind == OWN:
        factor = np.repeat(factor, np.diff(situations.outcomes.start))
    one, two = (
        situation_rows("auto", W, situations, make_response(name), 6).expect(Weights.point(theta))
        for W in (features, factor[:, None] * features)
    )
    if name == "race":
        assert abs(one.value - two.value) > 1 and np.abs(one.exposure / two.exposure - 1).max() > 0.05
    else:
        assert_same(one, two, 1e-11)


@pytest.mark.parametrize("name", RESPONSES)
def test_the_value_at_expected_weights_is_a_bound(name):
    """With U = exp⟨ln λ⟩, V = ⟨λ⟩ of Gamma laws, value ≤ ⟨log-likelihood⟩, and the gap closes as they narrow."""
    rows, weights = prepared(name)
    rng, gaps = np.random.default_rng(0), []
    for shape in (3.0, 300.0):
        A = np.full((6, 3), shape)
        B = shape * np.exp(-weights.log_own)
        mean = Weights(digamma(A) - np.log(B), np.log(A / B))
        draws = [rows.value(Weights.point(np.log(rng.gamma(A) / B))) for _ in range(2000)]
        error = np.std(draws) / np.sqrt(len(draws))
        gaps.append(np.mean(draws) - rows.expect(mean).value)
        assert gaps[-1] > -4.5 * error
    assert 0 < gaps[1] < 0.05 * gaps[0]


@pytest.mark.parametrize("name", RESPONSES)
def test_faint_weights_do_not_underflow(name):
    rows, weights = prepared(name)
    faint = Weights.point(np.where(np.arange(6)[:, None] < 3, weights.log_own, weights.log_own - 500))
    for stats in (rows.expect(faint), rows.sample(faint, 1)):
        assert np.isfinite(stats.value) and np.isfinite(stats.wins).all() and np.isfinite(stats.exposure).all()
        assert stats.wins[3:].sum() > 0


@pytest.mark.parametrize("engine", ENGINES)
def test_an_arrival_without_support_makes_the_value_minus_infinity(engine):
    situations = Situations(Outcomes.of([3], [[1, 1]]), np.array([0, 1, 2]), np.zeros(3, dtype=int))
    rows = situation_rows(engine, np.ones((1, 1)), situations, Ranking(), 3)
    dead = np.array([[0.0], [-np.inf], [0.0]])
    for weights in (Weights.point(dead), Weights(dead, np.zeros((3, 1)))):
        stats = rows.expect(weights)
        assert stats.value == rows.value(weights) == -np.inf and np.isfinite(stats.wins).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_count_of_zero_is_no_situation(engine):
    features, (outcomes, group, row), theta = problem("ranking")
    none = outcomes._replace(counts=np.where(np.arange(60) % 3 == 0, 0.0, outcomes.counts))
    kept = np.flatnonzero(none.counts)
    at = np.concatenate([np.arange(outcomes.start[t], outcomes.start[t + 1]) for t in kept])
    sizes = [outcomes.sizes[outcomes.bucket_start[t] : outcomes.bucket_start[t + 1]] for t in kept]
    fewer = Outcomes.of(np.diff(outcomes.start)[kept], sizes, outcomes.counts[kept])
    one = situation_rows(engine, features, Situations(none, group, row), Ranking(), 6)
    two = situation_rows(engine, features, Situations(fewer, group[at], row[at]), Ranking(), 6)
    assert_same(one.expect(Weights.point(theta)), two.expect(Weights.point(theta)), 1e-12)
    assert one.sample(Weights.point(theta), 1).wins.sum() == two.sample(Weights.point(theta), 1).wins.sum()


def test_single_precision_storage_is_close():
    features, situations, theta = problem("ranking", OWN, p=20)
    double, single = (
        situation_rows("auto", W, situations, Ranking(), 6).expect(Weights.point(theta))
        for W in (features, features.astype(np.float32))
    )
    assert_same(double, single, 1e-5)


def test_what_does_not_fit_is_refused():
    features, situations, theta = problem("ranking")
    with pytest.raises(ValueError, match="engine must be 'auto' or one of .*'numba', 'numpy'.* got 'gpu'"):
        situation_rows("gpu", features, situations, Ranking(), 6)
    with pytest.raises(ValueError, match="group must have a number from 0 to 4 for each entry"):
        situation_rows("auto", features, situations, Ranking(), 5)
    with pytest.raises(ValueError, match="row must have a number from 0 to 9 for each entry"):
        situation_rows("auto", features[:10], situations, Ranking(), 6)
    with pytest.raises(ValueError, match="one bucket of one entry"):
        situation_rows("auto", features, situations, Choice(), 6)
    half = situations._replace(outcomes=situations.outcomes._replace(counts=np.full(60, 0.5)))
    for engine in ENGINES:
        rows = situation_rows(engine, features, half, Ranking(), 6)
        assert np.isfinite(rows.expect(Weights.point(theta)).value)
        with pytest.raises(ValueError, match="a sampler takes whole numbers as counts .* got 0.5"):
            rows.sample(Weights.point(theta), 0)
