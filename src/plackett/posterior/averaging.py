"""Predictions of many rows averaged over many draws: tiles of a matrix product, consumed while they are in cache."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from plackett.compute.compiled import jit
from plackett.compute.pieces import COLUMNS, over_rows
from plackett.compute.vectors import dot
from plackett.model.features import Features, runs
from plackett.model.race import Array


def mean_shares(features: Features, weights: Array, silent: Array) -> Array:
    """Mean over the draws of W·λ_k / Σ_l W·λ_l, (n, K); weights (S, K, p), and the shares (S, K) where W·λ = 0."""
    S, K, p = weights.shape
    step = max(1, COLUMNS // K)
    tiles = [
        (np.ascontiguousarray(weights[s : s + step].transpose(2, 1, 0)).reshape(p, -1), silent[s : s + step].T.copy())
        for s in range(0, S, step)
    ]

    def work(W: Any) -> Array:
        n = W.shape[0]
        total, room = np.zeros((n, K)), np.empty(n * step * K)
        for flat, without in tiles:
            scores = room[: n * flat.shape[1]].reshape(n, -1)
            if sparse.issparse(W):
                scores[...] = W @ flat
            else:
                np.matmul(W, flat, out=scores)
            add_shares(scores.reshape(n, K, -1), without, total)
        return total / S

    return over_rows(work, (some for _, some in runs(features)), many=True)


@jit
def add_shares(scores, silent, total):
    """Add Σ_s scores_iks / Σ_l scores_ils to total_ik, for scores (n, K, S); silent (K, S) where all are 0."""
    n, K, S = scores.shape
    inverse, shares = np.empty(S), np.empty(K)
    for i in range(n):
        for s in range(S):
            inverse[s] = 0.0
        for k in range(K):
            row = scores[i, k]
            for s in range(S):
                inverse[s] += row[s]
        for s in range(S):
            inverse[s] = 1.0 / inverse[s]
        finite = True
        for k in range(K):
            shares[k] = dot(scores[i, k], inverse)
            finite = finite and shares[k] < np.inf
        if finite:
            for k in range(K):
                total[i, k] += shares[k]
        else:
            add_divided(scores[i], silent, total[i])


@jit
def add_divided(scores, silent, total):
    """Handle a row of which some sum of scores is 0, or too small to have a finite inverse."""
    K, S = scores.shape
    for s in range(S):
        everything = scores[:, s].sum()
        for k in range(K):
            total[k] += scores[k, s] / everything if everything > 0.0 else silent[k, s]
