"""Averages over draws: the compiled tiles against plain NumPy, on any number of rows, classes and draws."""

import numpy as np
import pytest

from plackett import PlackettLuceClassifier, Variational
from plackett.compute.pieces import ROWS, over_rows
from plackett.features import gates as gates_module
from plackett.features.gates import Gates
from plackett.posterior.averaging import mean_shares
from plackett.posterior.weights import averaged, chunks, mean_probabilities, without_answer


def plain(W, weights):
    """Σ_s W·λ_sk / Σ_l W·λ_sl / S, a row that no weight answers to as if it were ones."""
    scores = np.einsum("ij,skj->isk", W.astype(float), weights)
    scores = np.where(scores.any(axis=2, keepdims=True), scores, weights.sum(axis=2))
    return (scores / scores.sum(axis=2, keepdims=True)).mean(axis=1)


def problem(n, S, K, p, dtype=float, seed=0):
    rng = np.random.default_rng(seed)
    W, weights = rng.random((n, p)).astype(dtype), rng.random((S, K, p)) ** 8
    return W, weights / weights.sum(axis=(1, 2), keepdims=True)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [(1, 1, 2, 1), (ROWS + 3, 300, 3, 7), (5000, 9, 2, 3), (70, 3, 300, 4)])
def test_compiled_averages_are_plain_ones(size, dtype):
    W, weights = problem(*size, dtype)
    found = mean_shares(W, weights, without_answer(weights))
    np.testing.assert_allclose(found, plain(W, weights), rtol=1e-12)
    np.testing.assert_allclose(averaged(chunks(W, weights)), plain(W, weights), rtol=1e-12)


def test_rows_without_an_answer_and_scores_without_an_inverse():
    W, weights = problem(40, 600, 3, 4)
    weights[:, :, 0] = 0.0  # pruned
    weights[300, :, 0] = [1e-310, 3e-310, 0.0]  # 1/4e-310 is infinite
    W[5], W[6], W[7] = [1, 0, 0, 0], 0.0, W[7] * 1e-322
    silent = without_answer(weights)
    found = mean_shares(W, weights, silent)
    np.testing.assert_allclose(found, plain(W, weights), rtol=1e-12)
    np.testing.assert_allclose(averaged(chunks(W, weights)), plain(W, weights), rtol=1e-12)
    np.testing.assert_allclose(found[6], silent.mean(axis=0))
    silent[300] = [0.25, 0.75, 0.0]
    np.testing.assert_allclose(found[5], silent.mean(axis=0))


def test_many_predictions_are_those_of_few(monkeypatch, iris):
    X, y = iris
    clf = PlackettLuceClassifier(Variational(tol=1e-3, draws=300), shape=0.5, features="exp", random_state=0).fit(X, y)
    few = clf.predict_proba(X)
    monkeypatch.setattr("plackett.posterior.weights.MANY", 0)
    np.testing.assert_allclose(clf.predict_proba(X), few, rtol=1e-12)


def test_few_predictions_do_not_compile(monkeypatch):
    monkeypatch.setattr("plackett.posterior.weights.mean_shares", None)
    W, weights = problem(100, 50, 3, 4)
    np.testing.assert_allclose(mean_probabilities(W, weights), plain(W, weights), rtol=1e-12)


@pytest.mark.parametrize("many", [False, True])
def test_gates_are_mixed_without_being_kept(many, monkeypatch):
    rng = np.random.default_rng(0)
    S, M, K, n = 70, 5, 3, ROWS + 20
    gates = Gates(rng.normal(size=(S, M, 4)), rng.normal(size=(S, M)), np.ones(4), np.full(4, 2.0))
    X, weights = rng.normal(size=(n, 4)), rng.random((K, S * M))
    scores = np.einsum("if,sjf->isj", (X - 1) / 2, gates.directions) + gates.offsets
    expected = np.exp(scores) / np.exp(scores).sum(axis=2, keepdims=True)
    np.testing.assert_allclose(np.concatenate(list(gates.chunks(X))), expected, rtol=1e-12)
    monkeypatch.setattr(gates_module, "MANY", 0 if many else np.inf)
    np.testing.assert_allclose(gates.mixed(X, weights), expected.reshape(n, -1) @ weights.T, rtol=1e-12)


@pytest.mark.parametrize("many", [False, True])
def test_pieces_come_back_in_order(many):
    blocks = [np.arange(900.0).reshape(-1, 1), np.arange(900.0, 1000.0).reshape(-1, 1)]
    sizes = []
    found = over_rows(lambda piece: sizes.append(len(piece)) or piece * 2, blocks, many)
    np.testing.assert_array_equal(found[:, 0], 2 * np.arange(1000.0))
    assert max(sizes) == ROWS and len(sizes) == 5
