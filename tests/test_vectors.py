"""Eight lanes at a time: arithmetic, sums in their order, exponentials and logarithms to the last bit but one."""

import numpy as np
import pytest

from plackett.compute import vectors as v
from plackett.compute.compiled import jit


@jit
def exponentials(x, out):
    for i in range(0, x.size, v.WIDTH):
        v.store(out, i, v.exp(v.load(x, i)))


@jit
def logarithms(x, out):
    for i in range(0, x.size, v.WIDTH):
        v.store(out, i, v.log(v.load(x, i)))


@jit
def combine(x, y, out):
    a, b = v.load(x, 0), v.load(y, 0)
    v.store(out, 0, a + b)
    v.store(out, 8, a - b)
    v.store(out, 16, a * b)
    v.store(out, 24, a / b)
    v.store(out, 32, v.multiply_add(a, b, v.spread(3.0)))
    v.store(out, 40, v.larger(a, b))
    v.store(out, 48, v.smaller(a, b))
    v.store(out, 56, v.count_below(a, b))
    return v.total(a), v.smallest(a)


@jit
def take_apart(x, out):
    v.store(out, 0, v.exponent(v.load(x, 0)))
    v.store(out, 8, v.mantissa(v.load(x, 0)))


def test_exponent_and_mantissa_put_together():
    x, out = np.geomspace(1e-300, 1e300, 8), np.empty(16)
    take_apart(x, out)
    np.testing.assert_array_equal(np.ldexp(out[8:], out[:8].astype(int)), x)
    assert ((out[8:] >= 1) & (out[8:] < 2)).all()


def test_exponential_and_logarithm():
    x = np.linspace(-600, 600, 8000)
    out = np.empty_like(x)
    exponentials(x, out)
    np.testing.assert_allclose(out, np.exp(x), rtol=5e-16)
    logarithms(out.copy(), out)
    np.testing.assert_allclose(out, x, rtol=5e-16, atol=5e-16)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_every_operation_is_the_ieee_operation_of_each_lane(dtype):
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=8).astype(dtype), rng.normal(size=8).astype(dtype)
    out = np.empty(64)
    total, least = combine(x, y, out)
    a, b = x.astype(np.float64), y.astype(np.float64)
    exact = [a + b, a - b, a * b, a / b, None, np.maximum(a, b), np.minimum(a, b), (a < b) * 1.0]
    for got, expected in zip(out.reshape(8, 8), exact, strict=True):
        if expected is not None:
            np.testing.assert_array_equal(got, expected)
    np.testing.assert_allclose(out[32:40], a * b + 3, rtol=1e-15)
    half = a[:4] + a[4:]
    quarter = half[:2] + half[2:]
    assert total == quarter[0] + quarter[1]
    assert least == a.min()


@jit
def less_than_square(x, y):
    return v.total(v.multiply_add(v.load(x, 0), v.load(x, 0), v.load(y, 0)))


def test_multiply_add_rounds_once():
    x = 1 + 2.0**-30
    assert x * x - (1 + 2.0**-29) == 0.0
    assert less_than_square(np.full(8, x), np.full(8, -(1 + 2.0**-29))) == 8 * 2.0**-60
