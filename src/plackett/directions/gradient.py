"""The log-likelihood of learned directions and its gradient, in one compiled pass over the rows.

ln p(Y|β, λ) = Σ_i w_i [ln Σ_j e^{x_i·β_j} λ_{y_i j} − ln Σ_j e^{x_i·β_j} Λ_j], Λ_j = Σ_k λ_kj. With the shares
ρ_ij ∝ e^{x_i·β_j} λ_{y_i j} of the label and the gates π_ij ∝ e^{x_i·β_j} Λ_j of the row, the gradient is
Xᵀw(ρ − π) in β, and wins − exposure∘λ in ln λ: wins_kj = Σ_{y_i=k} w_i ρ_ij, exposure_j = Σ_i w_i π_ij / Λ_j.

Rows are sorted by class and packed in column-major panels; every inner loop runs across the rows of one. The sums are
taken in one order, whatever the number of threads: chains run side by side, the rows of one chain do not.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from plackett.compiled import FAST, jit
from plackett.model.race import Array

LANES = 32
LOWEST = -600.0  # ln of the smallest gate, relative to the largest of its row, that is told from others


class Panels(NamedTuple):
    """The packed rows; lanes beyond the last row of a class hold zeros and have weight zero."""

    values: Array  # (panel, column, lane)
    weight: Array  # (panel, lane)
    label: npt.NDArray[np.int64]  # (panel,): a panel holds rows of one class


class Room(NamedTuple):
    """Scratch of a pass, and where it leaves the gradient."""

    score: Array  # (M, lane)
    own: Array  # (M, lane)
    lane: Array  # (4, lane)
    directions: Array  # (M, d): the gradient in β
    wins: Array  # (K, M)
    gates: Array  # (M,): Σ_i w_i π_ij


def pack(X: Array, codes: npt.NDArray[np.intp], weight: Array | None) -> Panels:
    """Rows of each class in the order in which they come, in panels."""
    values, weights, label = [], [], []
    for k in range(int(codes.max()) + 1):
        rows = np.flatnonzero(codes == k)
        for start in range(0, len(rows), LANES):
            some = rows[start : start + LANES]
            panel, heavy = np.zeros((X.shape[1], LANES)), np.zeros(LANES)
            panel[:, : len(some)] = X[some].T
            heavy[: len(some)] = 1.0 if weight is None else weight[some]
            values.append(panel)
            weights.append(heavy)
            label.append(k)
    return Panels(np.array(values), np.array(weights), np.array(label, dtype=np.int64))


def make_room(n_components: int, n_columns: int, n_classes: int) -> Room:
    """Scratch for one chain."""
    M = n_components
    return Room(
        np.empty((M, LANES)),
        np.empty((M, LANES)),
        np.empty((4, LANES)),
        np.empty((M, n_columns)),
        np.empty((n_classes, M)),
        np.empty(M),
    )


# Flags of its own, or else those of the caller hold: reassociation would undo the rounding.
@jit(fastmath={"contract"}, forceinline=True)
def exp(x):
    """e^x for LOWEST ≤ x ≤ 0, without a branch or a call, so that it vectorises.

    x = k ln 2 + r with |r| ≤ ½ ln 2: the series of e^r reaches the last bit at degree 13, and 2^k is put together from
    its exponent bits. The addition of 1.5·2⁵² rounds to an integer and leaves it in the low bits.
    """
    t = x * 1.4426950408889634 + 6755399441055744.0
    k = t - 6755399441055744.0
    r = (x - k * 0.6931471803691238) - k * 1.9082149292705877e-10
    s = 1.6059043836821613e-10
    s = s * r + 2.08767569878681e-09
    s = s * r + 2.505210838544172e-08
    s = s * r + 2.755731922398589e-07
    s = s * r + 2.7557319223985893e-06
    s = s * r + 2.48015873015873e-05
    s = s * r + 0.0001984126984126984
    s = s * r + 0.001388888888888889
    s = s * r + 0.008333333333333333
    s = s * r + 0.041666666666666664
    s = s * r + 0.16666666666666666
    s = s * r + 0.5
    s = s * r + 1.0
    s = s * r + 1.0
    bits = (np.float64(t).view(np.int64) + np.int64(1023)) << np.int64(52)
    return s * np.int64(bits).view(np.float64)


@jit(fastmath=FAST, forceinline=True)
def scores_of(x, beta, score):
    """score = β x over one panel, four columns at a time."""
    M, d = beta.shape
    whole = d - d % 4
    for j in range(M):
        for r in range(LANES):
            score[j, r] = 0.0
        for f in range(0, whole, 4):
            b0, b1, b2, b3 = beta[j, f], beta[j, f + 1], beta[j, f + 2], beta[j, f + 3]
            for r in range(LANES):
                score[j, r] += (b0 * x[f, r] + b1 * x[f + 1, r]) + (b2 * x[f + 2, r] + b3 * x[f + 3, r])
        for f in range(whole, d):
            b0 = beta[j, f]
            for r in range(LANES):
                score[j, r] += b0 * x[f, r]


@jit(fastmath=FAST, forceinline=True)
def add_products(x, residual, out):
    """out += residual xᵀ over one panel."""
    M, d = out.shape
    whole = d - d % 4
    for j in range(M):
        for f in range(0, whole, 4):
            s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
            for r in range(LANES):
                e = residual[j, r]
                s0 += e * x[f, r]
                s1 += e * x[f + 1, r]
                s2 += e * x[f + 2, r]
                s3 += e * x[f + 3, r]
            out[j, f] += s0
            out[j, f + 1] += s1
            out[j, f + 2] += s2
            out[j, f + 3] += s3
        for f in range(whole, d):
            s0 = 0.0
            for r in range(LANES):
                s0 += residual[j, r] * x[f, r]
            out[j, f] += s0


@jit(fastmath=FAST, forceinline=True)
def gates_and_shares(score, own, lane, log_total, vote, weight):
    """Turn scores into w(ρ − π), in `score`, and wρ, in `own`; the panel's log-likelihood.

    vote = λ_{y j}/Λ_j of the panel's class. Scores are taken relative to the largest of each row.
    """
    M = len(log_total)
    peak, total, mine = lane[0], lane[1], lane[2]
    for r in range(LANES):
        peak[r] = -np.inf
        total[r] = 0.0
        mine[r] = 0.0
    for j in range(M):
        for r in range(LANES):
            score[j, r] += log_total[j]
            peak[r] = max(peak[r], score[j, r])
    for j in range(M):
        for r in range(LANES):
            e = exp(max(score[j, r] - peak[r], LOWEST))
            score[j, r] = e
            total[r] += e
            own[j, r] = e * vote[j]
            mine[r] += own[j, r]
    value = 0.0
    for r in range(LANES):
        if weight[r] > 0:
            value += weight[r] * (np.log(mine[r]) - np.log(total[r]))
        mine[r] = weight[r] / mine[r]
        total[r] = weight[r] / total[r]
    for j in range(M):
        for r in range(LANES):
            own[j, r] *= mine[r]
            score[j, r] = own[j, r] - score[j, r] * total[r]
    return value


@jit(fastmath=FAST, forceinline=True)
def log_likelihood(panels, beta, log_weights, votes, log_total, room):
    """ln p(Y|β, λ); its gradient is left in `room`: directions, and wins − gates∘λ/Λ in ln λ.

    `votes` (K, M) and `log_total` (M,) are filled with λ_kj/Λ_j and ln Λ_j.
    """
    K, M = log_weights.shape
    for j in range(M):
        peak = -np.inf
        for k in range(K):
            peak = max(peak, log_weights[k, j])
        total = 0.0
        for k in range(K):
            votes[k, j] = np.exp(max(log_weights[k, j] - peak, -100.0))
            total += votes[k, j]
        for k in range(K):
            votes[k, j] /= total
        log_total[j] = peak + np.log(total)
    room.directions[:] = 0.0
    room.wins[:] = 0.0
    room.gates[:] = 0.0
    value = 0.0
    for p in range(len(panels.label)):
        x, k = panels.values[p], panels.label[p]
        scores_of(x, beta, room.score)
        value += gates_and_shares(room.score, room.own, room.lane, log_total, votes[k], panels.weight[p])
        for j in range(M):
            shares, residuals = 0.0, 0.0
            for r in range(LANES):
                shares += room.own[j, r]
                residuals += room.score[j, r]
            room.wins[k, j] += shares
            room.gates[j] += shares - residuals
        add_products(x, room.score, room.directions)
    return value
