"""Lanes of doubles or floats: arithmetic, sums in their order, exponentials and logarithms to the last bit but one."""

import numpy as np
import pytest

from plackett.compute import vectors as v
from plackett.compute.compiled import jit


@jit
def exponentials(x, out):
    for i in range(0, x.size, v.BYTES // x.itemsize):
        v.store(out, i, v.exp(v.load(x, i)))


@jit
def logarithms(x, out):
    for i in range(0, x.size, v.BYTES // x.itemsize):
        v.store(out, i, v.log(v.load(x, i)))


@jit
def combine(x, y, out):
    a, b = v.load(x, 0), v.load(y, 0)
    n = x.size
    v.store(out, 0, a + b)
    v.store(out, n, a - b)
    v.store(out, 2 * n, a * b)
    v.store(out, 3 * n, a / b)
    v.store(out, 4 * n, v.multiply_add(a, b, v.all_lanes(x, 3.0)))
    v.store(out, 5 * n, v.larger(a, b))
    v.store(out, 6 * n, v.smaller(a, b))
    v.store(out, 7 * n, v.count_below(a, b))
    return v.total(a), v.smallest(a)


@jit
def doubles_of(x, out):
    v.store(out, 0, v.load_doubles(x, 0))


@jit
def take_apart(x, out):
    v.store(out, 0, v.exponent(v.load(x, 0)))
    v.store(out, 8, v.mantissa(v.load(x, 0)))


def test_exponent_and_mantissa_put_together():
    x, out = np.geomspace(1e-300, 1e300, 8), np.empty(16)
    take_apart(x, out)
    np.testing.assert_array_equal(np.ldexp(out[8:], out[:8].astype(int)), x)
    assert ((out[8:] >= 1) & (out[8:] < 2)).all()


@pytest.mark.parametrize(("dtype", "largest", "error"), [(np.float64, 600, 5e-16), (np.float32, 80, 2.4e-7)])
def test_exponential_and_logarithm(dtype, largest, error):
    x = np.linspace(-largest, largest, 8000).astype(dtype)
    out = np.empty_like(x)
    exponentials(x, out)
    np.testing.assert_allclose(out, np.exp(x.astype(np.float64)), rtol=error)
    powers = out.copy()
    logarithms(powers, out)
    np.testing.assert_allclose(out, np.log(powers.astype(np.float64)), rtol=error, atol=error)


@pytest.mark.parametrize(("dtype", "n"), [(np.float64, 8), (np.float32, 16)])
def test_every_operation_is_the_ieee_operation_of_each_lane(dtype, n):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=n).astype(dtype), rng.normal(size=n).astype(dtype)
    out = np.empty(8 * n, dtype)
    total, least = combine(a, b, out)
    exact = [a + b, a - b, a * b, a / b, None, np.maximum(a, b), np.minimum(a, b), (a < b) * 1.0]
    for got, expected in zip(out.reshape(8, n), exact, strict=True):
        if expected is not None:
            np.testing.assert_array_equal(got, expected)
    np.testing.assert_allclose(out[4 * n : 5 * n], a * b + 3, rtol=np.finfo(dtype).eps)
    left = a.astype(np.float64)
    while len(left) > 1:
        left = left[: len(left) // 2] + left[len(left) // 2 :]
    assert total == left[0]
    assert least == a.min()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_floats_are_read_as_doubles_where_sums_need_them(dtype):
    x, out = np.random.default_rng(0).normal(size=8).astype(dtype), np.empty(8)
    doubles_of(x, out)
    np.testing.assert_array_equal(out, x.astype(np.float64))


@jit
def less_than_square(x, y):
    return v.total(v.multiply_add(v.load(x, 0), v.load(x, 0), v.load(y, 0)))


def test_multiply_add_rounds_once():
    x = 1 + 2.0**-30
    assert x * x - (1 + 2.0**-29) == 0.0
    assert less_than_square(np.full(8, x), np.full(8, -(1 + 2.0**-29))) == 8 * 2.0**-60


def test_an_entry_is_spread_over_all_lanes():
    @jit
    def kernel(a, index, out):
        v.store(out, 0, v.spread_at(a, index))

    for dtype, width in ((np.float64, 8), (np.float32, 16)):
        a, out = np.arange(12, dtype=dtype).reshape(3, 4), np.empty(width, dtype)
        kernel(a, 7, out)
        assert (out == 7).all()
