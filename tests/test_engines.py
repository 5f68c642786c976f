"""The one pass over the rows: laws of the statistics, and the fast engine against the readable one."""

import numpy as np
import pytest

from conftest import class_rows, small_problem
from plackett.data.observations import Observations
from plackett.engines.factory import make_engine
from plackett.engines.numba import PanelRows
from plackett.inference.sweeps import log
from plackett.model.draws import uniforms
from plackett.model.race import Weights

ENGINES = ["numpy", "numba"]
SIZES = [(7, 1, 2), (40, 3, 3), (500, 6, 4), (9000, 15, 5)]


def both(W, codes, n_classes, weight=None):
    return [class_rows(name, W, codes, n_classes, weight) for name in ENGINES]


def assert_same(a, b, rtol):
    np.testing.assert_allclose(a.wins, b.wins, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(a.exposure, b.exposure, rtol=rtol)
    assert a.value == pytest.approx(b.value, rel=rtol)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("weighted", [False, True])
def test_engines_agree_on_expectations(size, weighted):
    W, codes, log_weights = small_problem(*size)
    weight = np.random.default_rng(1).gamma(1, size=len(codes)) if weighted else None
    reference, fast = both(W, codes, size[2], weight)
    assert_same(reference.expect(Weights.point(log_weights)), fast.expect(Weights.point(log_weights)), 1e-11)
    apart = Weights(log_weights - 1, log_weights + 2)
    assert_same(reference.expect(apart), fast.expect(apart), 1e-11)


def counts_of(n):
    """Whole weights of rows, most of them 1."""
    return np.random.default_rng(4).choice(
        [0.0, 1.0, 2.0, 40.0, 1e3, 1e6], size=n, p=[0.05, 0.6, 0.2, 0.05, 0.05, 0.05]
    )


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("weighted", [False, True])
def test_engines_agree_draw_for_draw(size, weighted):
    W, codes, log_weights = small_problem(*size)
    reference, fast = both(W, codes, size[2], counts_of(size[0]) if weighted else None)
    for key in (0, 1, 2**61 + 12345):
        a, b = (rows.sample(Weights.point(log_weights), key) for rows in (reference, fast))
        np.testing.assert_array_equal(a.wins, b.wins)
        assert_same(a, b, 1e-11)


@pytest.mark.parametrize("name", ENGINES)
def test_passes_add(name):
    W, codes, log_weights = small_problem(300, 4, 3)
    engine, weights = make_engine(name), Weights.point(log_weights)
    whole = engine.rows(W, Observations.of_classes(codes, 3)).expect(weights)
    parts = [
        engine.rows(W[part], Observations.of_classes(codes[part], 3)).expect(weights)
        for part in (slice(0, 90), slice(90, None))
    ]
    assert_same(whole, parts[0] + parts[1], 1e-12)


@pytest.mark.parametrize("name", ENGINES)
def test_expected_wins_of_a_class_are_its_count(name):
    W, codes, log_weights = small_problem(200, 4, 3)
    stats = class_rows(name, W, codes, 3).expect(Weights.point(log_weights))
    np.testing.assert_allclose(stats.wins.sum(axis=1), np.bincount(codes))
    np.testing.assert_allclose((stats.exposure * np.exp(log_weights)).sum(), len(codes))


@pytest.mark.parametrize("name", ENGINES)
def test_row_scaling_and_row_order_change_nothing(name):
    W, codes, log_weights = small_problem(200, 4, 3)
    rng = np.random.default_rng(3)
    shuffle, scale = rng.permutation(len(codes)), rng.gamma(1, size=(len(codes), 1))
    engine, weights = make_engine(name), Weights.point(log_weights)
    rows, shuffled = (
        engine.rows(W, Observations.of_classes(codes, 3)),
        engine.rows(W[shuffle], Observations.of_classes(codes[shuffle], 3)),
    )
    scaled = engine.rows(W * scale, Observations.of_classes(codes, 3))
    assert_same(rows.expect(weights), shuffled.expect(weights), 1e-13)
    np.testing.assert_array_equal(rows.sample(weights, 5).wins, shuffled.sample(weights, 5).wins)
    assert rows.expect(weights).value == pytest.approx(scaled.expect(weights).value)
    np.testing.assert_allclose(rows.expect(weights).wins, scaled.expect(weights).wins)
    np.testing.assert_allclose(rows.expect(weights).exposure, scaled.expect(weights).exposure)


@pytest.mark.parametrize("name", ENGINES)
def test_weights_are_repeated_rows(name):
    W, codes, log_weights = small_problem(60, 3, 3)
    weight = np.random.default_rng(2).integers(1, 4, size=60)
    engine, weights = make_engine(name), Weights.point(log_weights)
    assert_same(
        engine.rows(W, Observations.of_classes(codes, 3, weight.astype(float))).expect(weights),
        engine.rows(np.repeat(W, weight, axis=0), Observations.of_classes(np.repeat(codes, weight), 3)).expect(weights),
        1e-12,
    )


@pytest.mark.parametrize("name", ENGINES)
def test_rows_of_weight_one_keep_their_draws_among_others(name):
    """Of a row with a weight the draws are added: all that is left of the others is what they were."""
    W, codes, log_weights = small_problem(60, 3, 3)
    engine, weights = make_engine(name), Weights.point(log_weights)
    weight = np.ones(60)
    plain = engine.rows(W, Observations.of_classes(codes, 3, weight))
    heavy = plain.order[17]
    weight[heavy] = 5.0
    weighted = engine.rows(W, Observations.of_classes(codes, 3, weight))
    np.testing.assert_array_equal(plain.order, weighted.order)
    for key in range(20):
        change = weighted.sample(weights, key).wins - plain.sample(weights, key).wins
        assert change.sum() == change[codes[heavy]].sum() == 4.0 and change.min() >= -1.0


@pytest.mark.parametrize("name", ENGINES)
def test_equal_rows_with_different_weights_may_come_in_any_order(name):
    W, codes = np.repeat(np.random.default_rng(0).random((5, 3)), 8, axis=0), np.arange(40) % 2
    weight = np.random.default_rng(1).permutation(np.arange(1.0, 41.0))
    shuffle = np.random.default_rng(2).permutation(40)
    engine, weights = make_engine(name), Weights.point(np.log(np.random.default_rng(3).random((2, 3))))
    one = engine.rows(W, Observations.of_classes(codes, 2, weight))
    two = engine.rows(W[shuffle], Observations.of_classes(codes[shuffle], 2, weight[shuffle]))
    for key in range(5):
        np.testing.assert_array_equal(one.sample(weights, key).wins, two.sample(weights, key).wins)


@pytest.mark.parametrize("name", ENGINES)
def test_a_fraction_of_a_row_cannot_be_sampled(name):
    W, codes, log_weights = small_problem(20, 3, 3)
    rows = class_rows(name, W, codes, 3, np.full(20, 2.5))
    with pytest.raises(ValueError, match="whole numbers as weights .* got 2.5"):
        rows.sample(Weights.point(log_weights), 0)


@pytest.mark.parametrize("name", ENGINES)
def test_gradient_by_finite_differences(name):
    """d/dθ of the log-likelihood in θ = ln λ is wins − λ∘exposure."""
    W, codes, theta = small_problem(80, 3, 3)
    rows = class_rows(name, W, codes, 3)
    stats = rows.expect(Weights.point(theta))
    gradient = stats.wins - np.exp(theta) * stats.exposure
    for k, j in np.ndindex(*theta.shape):
        step = np.zeros_like(theta)
        step[k, j] = 1e-5
        up, down = (rows.expect(Weights.point(theta + s)).value for s in (step, -step))
        assert gradient[k, j] == pytest.approx((up - down) / 2e-5, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("weighted", [False, True])
def test_sampled_statistics_have_the_expected_means_and_variances(weighted):
    """Over many keys, within five standard errors; the variances are those of multinomials and Gammas."""
    W, codes, log_weights = small_problem(60, 2, 3)
    weight = np.random.default_rng(4).choice([1.0, 2.0, 7.0, 60.0], size=60) if weighted else np.ones(60)
    rows, weights = class_rows("numba", W, codes, 3, weight), Weights.point(log_weights)
    expected = rows.expect(weights)
    scores = W[:, None, :] * np.exp(log_weights)
    chance = scores[np.arange(60), codes] / scores[np.arange(60), codes].sum(axis=1, keepdims=True)
    member = np.equal.outer(np.arange(3), codes)
    variance = {
        "wins": member @ (weight[:, None] * chance * (1 - chance)),
        "exposure": np.broadcast_to((weight / scores.sum(axis=(1, 2)) ** 2) @ W**2, (3, 5)),
    }
    keys = np.random.default_rng(0).integers(2**62, size=4000)
    sampled = [rows.sample(weights, int(key)) for key in keys]
    for got, want, square in (
        (np.array([s.wins for s in sampled]), expected.wins, variance["wins"]),
        (np.array([s.exposure for s in sampled]), expected.exposure, variance["exposure"]),
    ):
        squares = (got - want) ** 2
        assert (np.abs(squares.mean(axis=0) - square) / (squares.std(axis=0) / np.sqrt(len(keys)) + 1e-9)).max() < 5
        error = got.std(axis=0) / np.sqrt(len(keys)) + 1e-12
        assert (np.abs(got.mean(axis=0) - want) / error).max() < 5
        assert (got.std(axis=0) > 0).any()


def test_number_of_threads_changes_nothing():
    W, codes, log_weights = small_problem(60_000, 7, 3)
    weights = Weights.point(log_weights)
    rows = class_rows("numba", W, codes, 3)
    assert isinstance(rows, PanelRows) and rows.panels.values.size > 1 << 18
    results = []
    for n_threads in (1, 2, 7):
        rows.set_threads(n_threads)
        results.append((rows.expect(weights), rows.sample(weights, 11)))
    for expected, sampled in results[1:]:
        for a, b in ((results[0][0], expected), (results[0][1], sampled)):
            np.testing.assert_array_equal(a.wins, b.wins)
            np.testing.assert_array_equal(a.exposure, b.exposure)
            assert a.value == b.value


def test_single_precision_storage_is_close():
    W, codes, log_weights = small_problem(2000, 5, 3)
    double, single = (
        class_rows("numba", w, codes, 3).expect(Weights.point(log_weights)) for w in (W, W.astype(np.float32))
    )
    assert_same(double, single, 1e-5)


def test_a_row_without_support_makes_the_value_minus_infinity():
    W = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    log_weights = np.array([[0.0, -np.inf], [0.0, 0.0]])
    for rows in both(W, np.array([0, 0, 1]), 2):
        assert rows.expect(Weights.point(log_weights)).value == -np.inf


def test_dead_weights_do_not_underflow():
    W, codes, log_weights = small_problem(50, 2, 3)
    log_weights = log_weights * 2000
    for rows in both(W, codes, 3):
        stats = rows.expect(Weights.point(log_weights - log_weights.max()))
        assert np.isfinite(stats.value) and np.isfinite(stats.wins).all() and np.isfinite(stats.exposure).all()


def test_uniform_numbers_are_uniform_and_independent():
    u = np.array([uniforms(key, 4096) for key in (1, 2, 3, 2**40, 2**61)])
    counts = np.apply_along_axis(lambda x: np.histogram(x, bins=64, range=(0, 1))[0], 1, u)
    chi2 = ((counts - 64) ** 2 / 64).sum(axis=1)
    assert (chi2 < 63 + 5 * np.sqrt(2 * 63)).all()
    assert np.abs(np.corrcoef(u) - np.eye(5)).max() < 5 / np.sqrt(4096)
    assert u.min() > 0 and u.max() < 1


def test_compiled_logarithm():
    x = np.exp(np.random.default_rng(0).uniform(-600, 600, 20000))
    x = np.append(x, [1.0, 1 - 1e-16, 1 + 1e-15, 0.5, 2.0])
    got = np.array([log(v) for v in x])
    np.testing.assert_allclose(got, np.log(x), rtol=5e-16, atol=2e-16)


def test_unknown_engine():
    with pytest.raises(ValueError, match=r"engine must be .*'numba', 'numpy'.* got 'gpu'"):
        make_engine("gpu")
