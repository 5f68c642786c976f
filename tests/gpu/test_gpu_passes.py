"""Passes on the GPU against the reference: same statistics, same draws, for any size, precision and chains."""

import numpy as np
import pytest

from conftest import class_rows
from plackett.engines.device import chip_bytes
from plackett.engines.tiles import SAMPLE, plan_pass
from plackett.model.race import Weights

pytestmark = pytest.mark.gpu
SIZES = [
    (7, 1, 2),
    (40, 7, 3),
    (500, 13, 4),
    (9000, 31, 5),
    (5000, 101, 10),
    (3000, 150, 3),
    (700, 300, 2),
    (300, 700, 2),
]
WIDE = (200, 3000, 2)
CLOSE = {np.float64: 1e-10, np.float32: 1e-5}


def problem(n, p, n_classes, dtype=np.float64, seed=0):
    rng = np.random.default_rng(seed)
    W = rng.gamma(2.0, size=(n, p)).astype(dtype)
    codes = np.concatenate([np.arange(n_classes), rng.integers(n_classes, size=n - n_classes)])
    return W, codes, np.log(rng.gamma(0.5, size=(n_classes, p)))


def both(W, codes, n_classes, weight=None):
    return [class_rows(name, W, codes, n_classes, weight) for name in ("numpy", "cupy")]


def assert_same(a, b, rtol):
    np.testing.assert_allclose(a.wins, b.wins, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(a.exposure, b.exposure, rtol=rtol)
    assert a.value == pytest.approx(b.value, rel=rtol)


def counts_of(n):
    """Whole weights of rows, most of them 1."""
    rng = np.random.default_rng(4)
    return rng.choice([0.0, 1.0, 2.0, 40.0, 1e3, 1e6], size=n, p=[0.05, 0.6, 0.2, 0.05, 0.05, 0.05])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [*SIZES, WIDE])
@pytest.mark.parametrize("weighted", [False, True])
def test_expectations_agree_with_the_reference(size, weighted, dtype):
    W, codes, log_weights = problem(*size, dtype)
    weight = np.random.default_rng(1).gamma(1, size=len(codes)) if weighted else None
    reference, gpu = both(W, codes, size[2], weight)
    for weights in (Weights.point(log_weights), Weights(log_weights - 1, log_weights + 2)):
        assert_same(reference.expect(weights), gpu.expect(weights), CLOSE[dtype])
        assert gpu.value(weights) == pytest.approx(reference.expect(weights).value, rel=CLOSE[dtype])


@pytest.mark.parametrize("size", [*SIZES, WIDE])
@pytest.mark.parametrize("weighted", [False, True])
def test_draws_in_doubles_are_those_of_the_reference(size, weighted):
    W, codes, log_weights = problem(*size)
    reference, gpu = both(W, codes, size[2], counts_of(size[0]) if weighted else None)
    for key in (0, 2**61 + 12345):
        a, b = (rows.sample(Weights.point(log_weights), key) for rows in (reference, gpu))
        np.testing.assert_array_equal(a.wins, b.wins)
        assert_same(a, b, 1e-10)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("weighted", [False, True])
def test_draws_in_floats_are_those_of_the_reference_but_for_rounding(size, weighted):
    """A winner changes where rounding, of about 1e-7 √p, moves a sum across the target: some 1e-6 p of the rows."""
    W, codes, log_weights = problem(*size, np.float32)
    reference, gpu = both(W, codes, size[2], counts_of(size[0]) if weighted else None)
    for key in (0, 1, 2, 2**61 + 12345):
        a, b = (rows.sample(Weights.point(log_weights), key) for rows in (reference, gpu))
        assert np.abs(a.wins - b.wins).sum() / 2 <= 2 + 1e-6 * size[0] * size[1]
        np.testing.assert_array_equal(a.wins.sum(axis=1), b.wins.sum(axis=1))
        np.testing.assert_allclose(a.exposure, b.exposure, rtol=1e-5)
        assert a.value == pytest.approx(b.value, rel=1e-5)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("p", [5, 40, 101])
def test_chains_together_are_chains_one_by_one(p, dtype):
    W, codes, _ = problem(20_000, p, 3, dtype)
    _, rows = both(W, codes, 3)
    weights = [Weights.point(problem(3, p, 3, seed=s)[2]) for s in range(6)]
    keys = [5, 6, 7, 8, 9, 10]
    for many in range(1, 7):
        sampled = rows.sample_together(weights[:many], keys[:many])
        for c in range(many):
            assert_same(sampled[c], rows.sample(weights[c], keys[c]), 1e-12 if dtype == np.float64 else 1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_pass_is_the_same_to_the_last_bit_every_time(weighted):
    W, codes, log_weights = problem(50_000, 33, 3, np.float32)
    _, rows = both(W, codes, 3, counts_of(len(W)) if weighted else None)
    first = [rows.sample(Weights.point(log_weights), 3), rows.expect(Weights.point(log_weights))]
    for _ in range(5):
        again = [rows.sample(Weights.point(log_weights), 3), rows.expect(Weights.point(log_weights))]
        for a, b in zip(first, again, strict=True):
            np.testing.assert_array_equal(a.wins, b.wins)
            np.testing.assert_array_equal(a.exposure, b.exposure)
            assert a.value == b.value


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_that_stand_on_weights_beyond_the_range_of_floats(dtype, weighted):
    """Rates of 1e-200 and less, where zeros of W leave a row nothing else."""
    rng = np.random.default_rng(0)
    W, codes, log_weights = problem(400, 6, 3, dtype)
    W[::3, :4] = 0.0
    log_weights[:, 4:] -= rng.uniform(100, 500, size=(3, 2))
    weight = counts_of(400) if weighted else None
    reference, gpu = both(W, codes, 3, weight)
    close = CLOSE[dtype]
    assert_same(reference.expect(Weights.point(log_weights)), gpu.expect(Weights.point(log_weights)), close)
    a, b = (rows.sample(Weights.point(log_weights), 9) for rows in (reference, gpu))
    np.testing.assert_array_equal(a.wins, b.wins)
    assert_same(a, b, close)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_row_without_support_makes_the_value_minus_infinity(dtype):
    W = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], dtype)
    log_weights = np.array([[0.0, -np.inf], [0.0, 0.0]])
    rows = class_rows("cupy", W, np.array([0, 0, 1]), 2)
    assert rows.expect(Weights.point(log_weights)).value == -np.inf
    assert rows.value(Weights.point(log_weights)) == -np.inf


def test_classes_of_many_blocks():
    """More blocks of a class than are added side by side."""
    W, codes, log_weights = problem(400_000, 3, 2, np.float32)
    reference, gpu = both(W, codes, 2)
    assert_same(reference.expect(Weights.point(log_weights)), gpu.expect(Weights.point(log_weights)), 1e-5)


def test_a_class_may_have_no_rows():
    W, codes, log_weights = problem(100, 5, 3)
    reference, gpu = both(W, np.where(codes == 1, 2, codes), 3)
    assert_same(reference.expect(Weights.point(log_weights)), gpu.expect(Weights.point(log_weights)), 1e-10)


def test_every_way_through_a_tile_is_tried():
    """The sizes above hold rows in registers or do not, take fewer warps, and read tiles where they lie."""
    plans = {plan_pass(SAMPLE, p, 1, size, chip_bytes())[:3] for _, p, _ in [*SIZES, WIDE] for size in (4, 8)}
    assert {(4, 2, 1), (4, 2, 0), (2, 2, 0), (4, 0, 0)} <= plans


def test_fractions_and_sparse_features_are_refused():
    from scipy import sparse

    W, codes, log_weights = problem(20, 3, 3)
    rows = class_rows("cupy", W, codes, 3, np.full(20, 2.5))
    with pytest.raises(ValueError, match="whole numbers as weights .* got 2.5"):
        rows.sample(Weights.point(log_weights), 0)
    with pytest.raises(ValueError, match="holds dense features, and these are sparse"):
        class_rows("cupy", sparse.csr_array(W), codes, 3)


def test_data_that_do_not_fit_are_refused_with_their_bytes(monkeypatch):
    from plackett.engines import tiles as engine

    monkeypatch.setattr(engine, "free_bytes", lambda: 1000)
    W, codes, _ = problem(2000, 10, 3)
    with pytest.raises(MemoryError, match=r"2,000 rows of 10 features take [\d,]+ bytes .* 1,000 are free.*float32"):
        class_rows("cupy", W, codes, 3)
