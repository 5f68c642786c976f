"""The log-likelihood of conditional logit: compiled passes, the readable reference, finite differences."""

import numpy as np
import pytest

from plackett.data.rankings import Rankings
from plackett.linear import likelihood
from plackett.linear.likelihood import (
    blocks_of,
    evaluate,
    gradient_of,
    pack_linear,
    reference,
    scores_of,
    scratch_for,
    value_and_gradient,
)
from plackett.responses.base import Outcomes
from plackett.responses.ranking import Ranking


def some_situations(kind, n=40, d=3, seed=0):
    """Situations of two to six entries, with counts; of rankings the places of one entry up to all."""
    rng = np.random.default_rng(seed)
    entries = rng.integers(2, 7, n)
    placed = np.ones(n, dtype=int) if kind == "choice" else rng.integers(1, entries + 1)
    outcomes = Outcomes.of(entries, [[1] * m for m in placed], rng.integers(0, 4, n) + rng.random(n))
    return pack_linear(rng.normal(size=(entries.sum(), d)), outcomes), rng.normal(size=d)


@pytest.mark.parametrize("kind", ["choice", "ranking"])
def test_passes_equal_the_reference(kind):
    packed, beta = some_situations(kind)
    found, expected = evaluate(packed, beta), reference(packed, beta)
    np.testing.assert_allclose(found.value, expected.value, rtol=1e-12)
    np.testing.assert_allclose(found.gradient, expected.gradient, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(found.information, expected.information, rtol=1e-10, atol=1e-11)
    value, gradient = gradient_of(packed, beta)
    np.testing.assert_allclose(value, expected.value, rtol=1e-12)
    np.testing.assert_allclose(gradient, expected.gradient, rtol=1e-10, atol=1e-11)
    values, scores = scores_of(packed, beta)
    np.testing.assert_allclose(values.sum(), expected.value, rtol=1e-12)
    np.testing.assert_allclose(scores.sum(axis=0), expected.gradient, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("kind", ["choice", "ranking"])
def test_derivatives_are_those_of_the_value(kind):
    packed, beta = some_situations(kind, seed=1)
    step = 1e-5 * np.eye(3)
    found = evaluate(packed, beta)
    up, down = ([evaluate(packed, beta + sign * each) for each in step] for sign in (1, -1))
    slopes = [(u.value - v.value) / 2e-5 for u, v in zip(up, down, strict=True)]
    curves = [(v.gradient - u.gradient) / 2e-5 for u, v in zip(up, down, strict=True)]
    np.testing.assert_allclose(found.gradient, slopes, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found.information, curves, rtol=1e-6, atol=1e-6)


def test_value_is_that_of_the_response():
    packed, beta = some_situations("ranking", seed=2)
    start, places = packed.outcomes.start, packed.outcomes.bucket_start
    rates, values = np.exp(packed.X @ beta), scores_of(packed, beta)[0]
    for t, count in enumerate(packed.outcomes.counts):
        sizes = packed.outcomes.sizes[places[t] : places[t + 1]]
        expected = Ranking().expect(rates[start[t] : start[t + 1]], sizes)[0]
        np.testing.assert_allclose(values[t], count * expected, rtol=1e-12)


@pytest.mark.parametrize("kind", ["choice", "ranking"])
def test_utilities_far_apart(kind):
    """Log-rates that differ by thousands leave finite numbers, also in stages after the first."""
    packed, beta = some_situations(kind, seed=3)
    with np.errstate(under="ignore"):
        found, expected = evaluate(packed, 1000 * beta), reference(packed, 1000 * beta)
    np.testing.assert_allclose(found.value, expected.value, rtol=1e-12)
    np.testing.assert_allclose(found.gradient, expected.gradient, rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(found.information, expected.information, rtol=1e-8, atol=1e-9)


def test_blocks_and_threads(monkeypatch):
    """Sums of blocks are those of single kernels, in the order of blocks, whoever makes them."""
    monkeypatch.setattr(likelihood, "BLOCK", 7)
    packed, beta = some_situations("ranking")
    alone = evaluate(packed, beta), gradient_of(packed, beta), scores_of(packed, beta)
    monkeypatch.setattr(likelihood, "LARGE", 0)
    shared = evaluate(packed, beta), gradient_of(packed, beta), scores_of(packed, beta)
    for one, other in zip(alone, shared, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)
    value = 0.0
    for first, last in blocks_of(packed):
        value += value_and_gradient(packed, first, last, beta, np.zeros(3), scratch_for(packed))
    assert value == alone[1][0]


def test_ties_are_refused():
    tied = Rankings.from_orders([[{"a", "b"}, "c"]], unranked="absent").outcomes
    with pytest.raises(ValueError, match="a bucket of 2 that are tied"):
        pack_linear(np.zeros((3, 1)), tied)
