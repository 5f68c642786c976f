"""The gradient of learned directions on the GPU against the reference."""

import numpy as np
import pytest

from conftest import class_gradient
from plackett.engines.cupy_directions import plan_gradient
from plackett.engines.device import chip_bytes

pytestmark = pytest.mark.gpu
# rows, columns, classes, components: some do not stay on the chip, and the last has many blocks
SIZES = [(50, 1, 2, 2), (3000, 3, 3, 6), (9000, 20, 4, 16), (7000, 50, 10, 40), (4000, 33, 5, 20), (900, 12, 8, 64),
         (600, 400, 3, 12), (200_000, 5, 2, 4)]  # fmt: skip


def problem(n, d, n_classes, n_components, n_chains, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    codes = np.concatenate([np.arange(n_classes), rng.integers(n_classes, size=n - n_classes)])
    beta = rng.normal(size=(n_chains, n_components, d)) / np.sqrt(d)
    log_weights = 3 * rng.normal(size=(n_chains, n_classes, n_components))
    return X, codes, rng.gamma(1.0, size=n), beta, log_weights


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("n_chains", [1, 2, 3, 4, 5])
def test_gradients_agree_with_the_reference(size, n_chains, dtype):
    X, codes, weight, beta, log_weights = problem(*size, n_chains)
    X = X.astype(dtype).astype(float)
    reference = class_gradient("numpy", X, codes, weight)
    rows = class_gradient("cupy", X, codes, weight, dtype)
    values, slopes, in_log_weights = rows.gradients(beta, log_weights)
    close = 1e-10 if dtype == np.float64 else 2e-5
    for c in range(n_chains):
        want = reference.gradient(beta[c], log_weights[c])
        size_of_slopes = np.sqrt((weight**2).sum())  # what a sum of signs would have
        assert values[c] == pytest.approx(want.value, rel=close)
        np.testing.assert_allclose(slopes[c], want.directions, atol=close * size_of_slopes)
        np.testing.assert_allclose(in_log_weights[c], want.log_weights, atol=close * size_of_slopes)
    alone = rows.gradient(beta[0], log_weights[0])
    assert alone.value == pytest.approx(values[0], rel=close)
    np.testing.assert_allclose(alone.directions, slopes[0], atol=close * size_of_slopes)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [(3000, 3, 3, 6), (9000, 20, 4, 16), (900, 12, 8, 64)])
def test_each_chain_has_its_own_weights(size, dtype):
    X, codes, _, beta, log_weights = problem(*size, n_chains=3)
    X, weights = X.astype(dtype).astype(float), np.random.default_rng(1).gamma(1.0, size=(3, len(X)))
    rows = class_gradient("cupy", X, codes, np.ones(len(X)), dtype).reweighted(list(weights))
    values, slopes, in_log_weights = rows.gradients(beta, log_weights)
    close = 1e-10 if dtype == np.float64 else 2e-5
    for c, weight in enumerate(weights):
        want = class_gradient("numpy", X, codes, weight).gradient(beta[c], log_weights[c])
        size_of_slopes = np.sqrt((weight**2).sum())
        assert values[c] == pytest.approx(want.value, rel=close)
        np.testing.assert_allclose(slopes[c], want.directions, atol=close * size_of_slopes)
        np.testing.assert_allclose(in_log_weights[c], want.log_weights, atol=close * size_of_slopes)


def test_both_ways_are_tried():
    found = [plan_gradient(d, M, 4, chip_bytes()) for _, d, _, M in SIZES]
    assert any(plan is None for plan in found) and {plan.ROWS for plan in found if plan is not None} == {1, 2}


def test_a_gradient_is_the_same_to_the_last_bit_every_time():
    X, codes, weight, beta, log_weights = problem(9000, 20, 4, 16, 4)
    rows = class_gradient("cupy", X, codes, weight, np.float32)
    first = rows.gradients(beta, log_weights)
    for _ in range(5):
        for a, b in zip(first, rows.gradients(beta, log_weights), strict=True):
            np.testing.assert_array_equal(a, b)


def test_scores_far_apart_neither_overflow_nor_vanish():
    X, codes, weight, beta, log_weights = problem(2000, 5, 3, 6, 2)
    reference = class_gradient("numpy", X, codes, weight)
    for dtype in (np.float32, np.float64):
        rows = class_gradient("cupy", X, codes, weight, dtype)
        values, slopes, _ = rows.gradients(100 * beta, log_weights)
        assert np.isfinite(slopes).all()
        want = reference.gradient(100 * beta[0], log_weights[0])
        assert values[0] == pytest.approx(want.value, rel=1e-4 if dtype == np.float32 else 1e-9)
