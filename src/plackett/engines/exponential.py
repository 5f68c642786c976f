"""The block exp(x·β): features made as a pass goes, for classes, and the gradient of the log-likelihood.

ln p(Y|β, λ) = Σ_i w_i [ln Σ_j e^{x_i·β_j} λ_{y_i j} − ln Σ_j e^{x_i·β_j} Λ_j], Λ_j = Σ_k λ_kj. With the shares
ρ_ij ∝ e^{x_i·β_j} λ_{y_i j} of the label and the gates π_ij ∝ e^{x_i·β_j} Λ_j of the row, the gradient is
Xᵀw(ρ − π) in β, and wins − exposure∘λ in ln λ: wins_kj = Σ_{y_i=k} w_i ρ_ij, exposure_j = Σ_i w_i π_ij / Λ_j.

Rows are sorted by class, eight to a vector, two vectors to a panel. Both matrix products keep a tile of their result in
registers: four components by two vectors of rows for x·β, four components by two columns for Xᵀw(ρ − π). Sums are
taken in fixed blocks of rows: chains run side by side, or share the blocks of one chain out to threads, with the same
results.
"""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from plackett.compute.compiled import CUBE, NOTHING, REAL, REALS, TABLE, WHOLE, WHOLE_TABLE, apart, inner, record
from plackett.compute.pieces import cores
from plackett.compute.vectors import WIDTH, exp, larger, load, log, multiply_add, spread, store, total
from plackett.model.race import Array, Slopes

LANES = 2 * WIDTH
TILE = 8  # panels whose residuals are held until they are multiplied with the rows
BLOCK = 1024  # panels whose sums are taken together
LARGE = 1 << 22  # products of a score, over all rows, from which the cores share the rows of one chain
LOWEST = -600.0  # ln of the smallest gate, relative to the largest of its row, that is told from others


class Covariates(NamedTuple):
    """The packed rows; a class is padded to whole vectors with rows of weight zero, columns to an even number."""

    values: Array  # (panel, column, lane)
    weight: Array  # (panel, lane)
    label: npt.NDArray[np.int64]  # (panel, 2): a vector holds rows of one class
    n_columns: int  # without padding


class Scratch(NamedTuple):
    """What a pass works with, and where it leaves the gradient; components are padded to a multiple of four."""

    beta: Array  # (component, column)
    residual: Array  # (TILE, component, lane): scores, then w(ρ − π)
    share: Array  # (component, WIDTH)
    product_lanes: Array  # (component, column, WIDTH)
    win_lanes: Array  # (K, M, WIDTH)
    gate_lanes: Array  # (M, WIDTH)
    directions: Array  # (M, d): the gradient in β
    log_weights: Array  # (K, M): the gradient in ln λ
    votes: Array  # (K, M): λ_kj/Λ_j
    log_total: Array  # (M,): ln Λ_j


COVARIATES = record(Covariates, CUBE, TABLE, WHOLE_TABLE, WHOLE)
SCRATCH = record(Scratch, TABLE, CUBE, TABLE, CUBE, CUBE, TABLE, TABLE, TABLE, TABLE, REALS)


def pack(X: Array, codes: npt.NDArray[np.intp], weight: Array | None) -> Covariates:
    """Rows of each class in the order in which they come, in panels."""
    n, d = X.shape
    size = np.bincount(codes)
    vectors = -(-size // WIDTH)
    label = np.repeat(np.arange(len(size)), vectors)
    first = np.concatenate([[0], np.cumsum(vectors)[:-1]]) * WIDTH  # place of a class's first row
    order = np.argsort(codes, kind="stable")
    before = np.concatenate([[0], np.cumsum(size)[:-1]])
    place = np.empty(n, dtype=np.intp)
    place[order] = np.arange(n) + (first - before)[codes[order]]
    n_panels = -(-len(label) // 2)
    values, weights = np.zeros((n_panels * LANES, d + d % 2)), np.zeros(n_panels * LANES)
    values[place, :d] = X
    weights[place] = 1.0 if weight is None else weight
    values = np.ascontiguousarray(values.reshape(n_panels, LANES, -1).transpose(0, 2, 1))
    labels = np.concatenate([label, label[-1:]])[: 2 * n_panels].reshape(n_panels, 2).astype(np.int64)
    return Covariates(values, weights.reshape(n_panels, LANES), labels, d)


def make_scratch(n_components: int, n_columns: int, n_classes: int) -> Scratch:
    """Scratch for one chain."""
    M, K = n_components, n_classes
    components, columns = -(-M // 4) * 4, n_columns + n_columns % 2
    return Scratch(
        np.zeros((components, columns)),
        np.zeros((TILE, components, LANES)),
        np.empty((components, WIDTH)),
        np.empty((components, columns, WIDTH)),
        np.empty((K, M, WIDTH)),
        np.empty((M, WIDTH)),
        np.empty((M, n_columns)),
        np.empty((K, M)),
        np.empty((K, M)),
        np.empty(M),
    )


@inner
def scores_of(x, beta, score):
    """score = β x over one panel."""
    M, d = beta.shape
    for j in range(0, M, 4):
        l0 = l1 = l2 = l3 = spread(0.0)
        r0 = r1 = r2 = r3 = spread(0.0)
        for f in range(d):
            left, right = load(x, LANES * f), load(x, LANES * f + WIDTH)
            b0, b1, b2, b3 = spread(beta[j, f]), spread(beta[j + 1, f]), spread(beta[j + 2, f]), spread(beta[j + 3, f])
            l0, r0 = multiply_add(b0, left, l0), multiply_add(b0, right, r0)
            l1, r1 = multiply_add(b1, left, l1), multiply_add(b1, right, r1)
            l2, r2 = multiply_add(b2, left, l2), multiply_add(b2, right, r2)
            l3, r3 = multiply_add(b3, left, l3), multiply_add(b3, right, r3)
        at = LANES * j
        store(score, at, l0)
        store(score, at + WIDTH, r0)
        store(score, at + LANES, l1)
        store(score, at + LANES + WIDTH, r1)
        store(score, at + 2 * LANES, l2)
        store(score, at + 2 * LANES + WIDTH, r2)
        store(score, at + 3 * LANES, l3)
        store(score, at + 3 * LANES + WIDTH, r3)


@inner
def add_products(values, residual, first, last, lanes):
    """lanes += residual xᵀ over the panels first ≤ q < last, lane by lane."""
    M, d = lanes.shape[:2]
    for j in range(0, M, 4):
        for f in range(0, d, 2):
            at = WIDTH * (j * d + f)
            a0, b0 = load(lanes, at), load(lanes, at + WIDTH)
            a1, b1 = load(lanes, at + WIDTH * d), load(lanes, at + WIDTH * d + WIDTH)
            a2, b2 = load(lanes, at + 2 * WIDTH * d), load(lanes, at + 2 * WIDTH * d + WIDTH)
            a3, b3 = load(lanes, at + 3 * WIDTH * d), load(lanes, at + 3 * WIDTH * d + WIDTH)
            for q in range(first, last):
                for half in range(0, LANES, WIDTH):
                    column = LANES * (q * d + f) + half
                    x, y = load(values, column), load(values, column + LANES)
                    row = LANES * ((q - first) * M + j) + half
                    e0, e1 = load(residual, row), load(residual, row + LANES)
                    e2, e3 = load(residual, row + 2 * LANES), load(residual, row + 3 * LANES)
                    a0, b0 = multiply_add(e0, x, a0), multiply_add(e0, y, b0)
                    a1, b1 = multiply_add(e1, x, a1), multiply_add(e1, y, b1)
                    a2, b2 = multiply_add(e2, x, a2), multiply_add(e2, y, b2)
                    a3, b3 = multiply_add(e3, x, a3), multiply_add(e3, y, b3)
            store(lanes, at, a0)
            store(lanes, at + WIDTH, b0)
            store(lanes, at + WIDTH * d, a1)
            store(lanes, at + WIDTH * d + WIDTH, b1)
            store(lanes, at + 2 * WIDTH * d, a2)
            store(lanes, at + 2 * WIDTH * d + WIDTH, b2)
            store(lanes, at + 3 * WIDTH * d, a3)
            store(lanes, at + 3 * WIDTH * d + WIDTH, b3)


@inner
def gates_and_shares(score, half, share, log_total, vote, weight, win_lanes, gate_lanes):
    """Turn the scores of eight rows into w(ρ − π); adds wρ and wπ to the lanes, returns w·ln p in each lane.

    vote = λ_{y j}/Λ_j of the rows' class. Scores are taken relative to the largest of each row.
    """
    M = len(log_total)
    peak = spread(-np.inf)
    for j in range(M):
        peak = larger(peak, load(score, LANES * j + half) + spread(log_total[j]))
    gates = own = spread(0.0)
    for j in range(M):
        e = exp(larger(load(score, LANES * j + half) + spread(log_total[j]) - peak, spread(LOWEST)))
        mine = e * spread(vote[j])
        gates, own = gates + e, own + mine
        store(score, LANES * j + half, e)
        store(share, WIDTH * j, mine)
    for_own, for_all = weight / own, weight / gates
    for j in range(M):
        rho, pi = load(share, WIDTH * j) * for_own, load(score, LANES * j + half) * for_all
        store(win_lanes, WIDTH * j, load(win_lanes, WIDTH * j) + rho)
        store(gate_lanes, WIDTH * j, load(gate_lanes, WIDTH * j) + pi)
        store(score, LANES * j + half, rho - pi)
    return weight * log(own / gates)


@apart(NOTHING, TABLE, TABLE, SCRATCH)
def begin_pass(beta, log_weights, scratch):
    """Take in β, λ_kj/Λ_j and ln Λ_j, and begin the gradient at 0."""
    (K, M), d = log_weights.shape, beta.shape[1]
    for j in range(M):
        peak = -np.inf
        for k in range(K):
            peak = max(peak, log_weights[k, j])
        whole = 0.0
        for k in range(K):
            scratch.votes[k, j] = np.exp(max(log_weights[k, j] - peak, -100.0))
            whole += scratch.votes[k, j]
        for k in range(K):
            scratch.votes[k, j] /= whole
            scratch.log_weights[k, j] = 0.0
        scratch.log_total[j] = peak + np.log(whole)
        for f in range(d):
            scratch.beta[j, f] = beta[j, f]
            scratch.directions[j, f] = 0.0


@inner
def clear(lanes):
    """Set all lanes to 0."""
    for at in range(0, lanes.size, WIDTH):
        store(lanes, at, spread(0.0))


@apart(REAL, COVARIATES, WHOLE, WHOLE, SCRATCH)
def add_block(packed, first, last, scratch):
    """ln p(Y|β, λ) of the panels first ≤ q < last; their part of the gradient is added to what the scratch has."""
    (K, M), d = scratch.votes.shape, scratch.directions.shape[1]
    clear(scratch.win_lanes)
    clear(scratch.gate_lanes)
    clear(scratch.product_lanes)
    value = spread(0.0)
    for begin in range(first, last, TILE):
        end = min(begin + TILE, last)
        for q in range(begin, end):
            score = scratch.residual[q - begin]
            scores_of(packed.values[q], scratch.beta, score)
            for half in range(2):
                k, weight = packed.label[q, half], load(packed.weight[q], WIDTH * half)
                value = value + gates_and_shares(
                    score, WIDTH * half, scratch.share, scratch.log_total, scratch.votes[k], weight,
                    scratch.win_lanes[k], scratch.gate_lanes,
                )  # fmt: skip
        add_products(packed.values, scratch.residual, begin, end, scratch.product_lanes)
    for j in range(M):
        gates = total(load(scratch.gate_lanes, WIDTH * j))
        for k in range(K):
            wins = total(load(scratch.win_lanes, WIDTH * (k * M + j)))
            scratch.log_weights[k, j] += wins - gates * scratch.votes[k, j]
        for f in range(d):
            at = WIDTH * (j * scratch.beta.shape[1] + f)
            scratch.directions[j, f] += total(load(scratch.product_lanes, at))
    return total(value)


@apart(REAL, COVARIATES, TABLE, TABLE, SCRATCH)
def log_likelihood(packed, beta, log_weights, scratch):
    """ln p(Y|β, λ); its gradient is left in the scratch."""
    begin_pass(beta, log_weights, scratch)
    value = 0.0
    for first in range(0, len(packed.label), BLOCK):
        value += add_block(packed, first, min(first + BLOCK, len(packed.label)), scratch)
    return value


class ExponentialRows:
    """Packed covariates with their pass; the blocks of large data are shared out to threads."""

    def __init__(self, X: Array, codes: npt.NDArray[np.intp], weight: Array | None):
        self.packed = pack(X, codes, weight)
        n_panels = len(self.packed.label)
        self.blocks = list(itertools.pairwise([*range(0, n_panels, BLOCK), n_panels]))

    def large(self, n_components: int) -> bool:
        """Whether a pass is worth sharing out."""
        return len(self.blocks) > 1 and self.packed.values.size * n_components >= LARGE

    def gradient(self, beta: Array, log_weights: Array) -> Slopes:
        """ln p(Y|β, λ) and its gradient."""
        (K, M), d = log_weights.shape, beta.shape[1]

        def of_block(block: tuple[int, int]) -> Slopes:
            scratch = make_scratch(M, d, K)
            begin_pass(beta, log_weights, scratch)
            value = add_block(self.packed, *block, scratch)
            return Slopes(value, scratch.directions, scratch.log_weights)

        if not self.large(M):
            return sum(map(of_block, self.blocks), Slopes.none(M, d, K))
        with ThreadPoolExecutor(cores()) as pool:
            return sum(pool.map(of_block, self.blocks), Slopes.none(M, d, K))
