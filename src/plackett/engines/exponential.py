"""Features exp(x·β) of classes, computed during the pass, and the gradient of the log-likelihood.

ln p(Y|β, λ) = Σ_i w_i [ln Σ_j e^{x_i·β_j} λ_{y_i j} − ln Σ_j e^{x_i·β_j} Λ_j], Λ_j = Σ_k λ_kj. With the shares
ρ_ij ∝ e^{x_i·β_j} λ_{y_i j} of the label and the gates π_ij ∝ e^{x_i·β_j} Λ_j of the row, the gradient is
Xᵀw(ρ − π) in β, and wins − exposure∘λ in ln λ: wins_kj = Σ_{y_i=k} w_i ρ_ij, exposure_j = Σ_i w_i π_ij / Λ_j.

Rows are sorted by class, with eight doubles or sixteen floats per vector and two vectors per panel. Both matrix
products keep a tile of their result in registers: four components by two vectors of rows for x·β, four components by
two columns for Xᵀw(ρ − π). Sums are taken in fixed blocks of rows, so that chains run side by side, or threads share
the blocks of one chain, with the same results.
"""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plackett.compute.compiled import (
    CUBE,
    FLOAT_CUBE,
    FLOAT_TABLE,
    FLOATS,
    REAL,
    REALS,
    TABLE,
    WHOLE,
    WHOLE_TABLE,
    apart,
    inner,
    record,
)
from plackett.compute.pieces import cores
from plackett.compute.vectors import BYTES, all_lanes, exp, larger, load, log, multiply_add, spread, store, total
from plackett.model.race import Array, Slopes

TILE = 8  # panels whose residuals are buffered before the product with the rows
BLOCK = 1 << 14  # rows per block of sums
LARGE = 1 << 24  # multiplications for the scores of all rows, from which threads share one chain
LOWEST, LOWEST_FLOAT = -600.0, -80.0  # ln of the smallest gate, relative to the largest of its row
RAREST, RAREST_FLOAT = -100.0, -50.0  # ln of the smallest vote, relative to the largest of its component


Numbers = npt.NDArray[np.floating]


class ClassCovariates(NamedTuple):
    """Packed rows. Each class is padded to whole vectors with rows of weight zero, columns to an even number."""

    values: Numbers  # (panel, column, lane)
    weight: Numbers  # (panel, lane)
    label: npt.NDArray[np.int64]  # (panel, 2): a vector holds rows of one class
    n_columns: int  # number of columns without padding


class ClassScratch(NamedTuple):
    """Scratch and gradient of a pass; components are padded to a multiple of four."""

    beta: Numbers  # (component, column)
    residual: Numbers  # (TILE, component, lane): scores, then w(ρ − π)
    share: Numbers  # (component, lane of a vector)
    product_lanes: Numbers  # (component, column, lane of a vector)
    win_lanes: Numbers  # (K, M, lane of a vector)
    gate_lanes: Numbers  # (M, lane of a vector)
    votes: Numbers  # (K, M): λ_kj/Λ_j
    log_total: Numbers  # (M,): ln Λ_j
    directions: Array  # (M, d): gradient in β
    log_weights: Array  # (K, M): gradient in ln λ


COVARIATES = record(ClassCovariates, CUBE, TABLE, WHOLE_TABLE, WHOLE)
SCRATCH = record(ClassScratch, TABLE, CUBE, TABLE, CUBE, CUBE, TABLE, TABLE, REALS, TABLE, TABLE)
FLOAT_COVARIATES = record(ClassCovariates, FLOAT_CUBE, FLOAT_TABLE, WHOLE_TABLE, WHOLE)
FLOAT_SCRATCH = record(
    ClassScratch,
    FLOAT_TABLE,
    FLOAT_CUBE,
    FLOAT_TABLE,
    FLOAT_CUBE,
    FLOAT_CUBE,
    FLOAT_TABLE,
    FLOAT_TABLE,
    FLOATS,
    TABLE,
    TABLE,
)


def pack(X: Array, codes: npt.NDArray[np.intp], weight: Array | None, dtype: npt.DTypeLike) -> ClassCovariates:
    """Pack the rows of each class into panels, in input order."""
    n, d = X.shape
    width = BYTES // np.dtype(dtype).itemsize
    size = np.bincount(codes)
    vectors = -(-size // width)
    label = np.repeat(np.arange(len(size)), vectors)
    first = np.concatenate([[0], np.cumsum(vectors)[:-1]]) * width  # position of each class's first row
    order = np.argsort(codes, kind="stable")
    before = np.concatenate([[0], np.cumsum(size)[:-1]])
    place = np.empty(n, dtype=np.intp)
    place[order] = np.arange(n) + (first - before)[codes[order]]
    n_panels = -(-len(label) // 2)
    values, weights = np.zeros((n_panels * 2 * width, d + d % 2), dtype), np.zeros(n_panels * 2 * width, dtype)
    values[place, :d] = X
    weights[place] = 1.0 if weight is None else weight
    values = np.ascontiguousarray(values.reshape(n_panels, 2 * width, -1).transpose(0, 2, 1))
    labels = np.concatenate([label, label[-1:]])[: 2 * n_panels].reshape(n_panels, 2).astype(np.int64)
    return ClassCovariates(values, weights.reshape(n_panels, 2 * width), labels, d)


def make_scratch(n_components: int, n_columns: int, n_classes: int, dtype: npt.DTypeLike) -> ClassScratch:
    """Allocate scratch for one chain."""
    M, K, width = n_components, n_classes, BYTES // np.dtype(dtype).itemsize
    components, columns = -(-M // 4) * 4, n_columns + n_columns % 2
    return ClassScratch(
        np.zeros((components, columns), dtype),
        np.zeros((TILE, components, 2 * width), dtype),
        np.empty((components, width), dtype),
        np.empty((components, columns, width), dtype),
        np.empty((K, M, width), dtype),
        np.empty((M, width), dtype),
        np.empty((K, M), dtype),
        np.empty(M, dtype),
        np.empty((M, n_columns)),
        np.empty((K, M)),
    )


@inner
def scores_of(x, beta, score):
    """score = β x over one panel."""
    (M, d), width = beta.shape, BYTES // x.itemsize
    lanes = 2 * width
    for j in range(0, M, 4):
        l0 = l1 = l2 = l3 = all_lanes(x, 0.0)
        r0 = r1 = r2 = r3 = all_lanes(x, 0.0)
        for f in range(d):
            left, right = load(x, lanes * f), load(x, lanes * f + width)
            b0, b1, b2, b3 = spread(beta[j, f]), spread(beta[j + 1, f]), spread(beta[j + 2, f]), spread(beta[j + 3, f])
            l0, r0 = multiply_add(b0, left, l0), multiply_add(b0, right, r0)
            l1, r1 = multiply_add(b1, left, l1), multiply_add(b1, right, r1)
            l2, r2 = multiply_add(b2, left, l2), multiply_add(b2, right, r2)
            l3, r3 = multiply_add(b3, left, l3), multiply_add(b3, right, r3)
        at = lanes * j
        store(score, at, l0)
        store(score, at + width, r0)
        store(score, at + lanes, l1)
        store(score, at + lanes + width, r1)
        store(score, at + 2 * lanes, l2)
        store(score, at + 2 * lanes + width, r2)
        store(score, at + 3 * lanes, l3)
        store(score, at + 3 * lanes + width, r3)


@inner
def add_products(values, residual, first, last, sums):
    """sums += residual xᵀ over the panels first ≤ q < last, lane by lane."""
    M, d, width = sums.shape
    for j in range(0, M, 4):
        for f in range(0, d, 2):
            at = width * (j * d + f)
            a0, b0 = load(sums, at), load(sums, at + width)
            a1, b1 = load(sums, at + width * d), load(sums, at + width * d + width)
            a2, b2 = load(sums, at + 2 * width * d), load(sums, at + 2 * width * d + width)
            a3, b3 = load(sums, at + 3 * width * d), load(sums, at + 3 * width * d + width)
            for q in range(first, last):
                for half in range(0, 2 * width, width):
                    column = 2 * width * (q * d + f) + half
                    x, y = load(values, column), load(values, column + 2 * width)
                    row = 2 * width * ((q - first) * M + j) + half
                    e0, e1 = load(residual, row), load(residual, row + 2 * width)
                    e2, e3 = load(residual, row + 4 * width), load(residual, row + 6 * width)
                    a0, b0 = multiply_add(e0, x, a0), multiply_add(e0, y, b0)
                    a1, b1 = multiply_add(e1, x, a1), multiply_add(e1, y, b1)
                    a2, b2 = multiply_add(e2, x, a2), multiply_add(e2, y, b2)
                    a3, b3 = multiply_add(e3, x, a3), multiply_add(e3, y, b3)
            store(sums, at, a0)
            store(sums, at + width, b0)
            store(sums, at + width * d, a1)
            store(sums, at + width * d + width, b1)
            store(sums, at + 2 * width * d, a2)
            store(sums, at + 2 * width * d + width, b2)
            store(sums, at + 3 * width * d, a3)
            store(sums, at + 3 * width * d + width, b3)


@inner
def gates_and_shares(score, half, share, log_total, vote, weight, win_lanes, gate_lanes):
    """Replace the scores of a vector of rows by w(ρ − π); add wρ and wπ to the lanes; return w·ln p per lane.

    vote = λ_{y j}/Λ_j of the rows' class. Scores are taken relative to the largest of each row.
    """
    M, width = len(log_total), share.shape[1]
    lanes = 2 * width
    lowest = all_lanes(score, LOWEST if score.itemsize == 8 else LOWEST_FLOAT)
    peak = all_lanes(score, -np.inf)
    for j in range(M):
        peak = larger(peak, load(score, lanes * j + half) + spread(log_total[j]))
    gates = own = all_lanes(score, 0.0)
    for j in range(M):
        e = exp(larger(load(score, lanes * j + half) + spread(log_total[j]) - peak, lowest))
        mine = e * spread(vote[j])
        gates, own = gates + e, own + mine
        store(score, lanes * j + half, e)
        store(share, width * j, mine)
    for_own, for_all = weight / own, weight / gates
    for j in range(M):
        rho, pi = load(share, width * j) * for_own, load(score, lanes * j + half) * for_all
        store(win_lanes, width * j, load(win_lanes, width * j) + rho)
        store(gate_lanes, width * j, load(gate_lanes, width * j) + pi)
        store(score, lanes * j + half, rho - pi)
    return weight * log(own / gates)


@inner
def take_in(beta, log_weights, own_beta, votes, log_total, to_directions, to_weights):
    """Store β, λ_kj/Λ_j and ln Λ_j, and set the gradient in β and ln λ to 0."""
    (K, M), d = log_weights.shape, beta.shape[1]
    rarest = RAREST if votes.itemsize == 8 else RAREST_FLOAT
    for j in range(M):
        peak = -np.inf
        for k in range(K):
            peak = max(peak, log_weights[k, j])
        whole = 0.0
        for k in range(K):
            to_weights[k, j] = np.exp(max(log_weights[k, j] - peak, rarest))
            whole += to_weights[k, j]
        for k in range(K):
            votes[k, j] = to_weights[k, j] / whole
            to_weights[k, j] = 0.0
        log_total[j] = peak + np.log(whole)
        for f in range(d):
            own_beta[j, f] = beta[j, f]
            to_directions[j, f] = 0.0


@inner
def clear(lanes):
    """Set all lanes to 0."""
    for at in range(0, lanes.size, BYTES // lanes.itemsize):
        store(lanes, at, all_lanes(lanes, 0.0))


@inner
def add_block(packed, first, last, scratch):
    """Return ln p(Y|β, λ) of the panels first ≤ q < last, and add their gradient to the scratch."""
    (K, M), d, width = scratch.votes.shape, scratch.directions.shape[1], scratch.share.shape[1]
    clear(scratch.win_lanes)
    clear(scratch.gate_lanes)
    clear(scratch.product_lanes)
    value = 0.0
    for begin in range(first, last, TILE):
        end = min(begin + TILE, last)
        for q in range(begin, end):
            score = scratch.residual[q - begin]
            scores_of(packed.values[q], scratch.beta, score)
            for half in range(2):
                k, weight = packed.label[q, half], load(packed.weight[q], width * half)
                value += total(gates_and_shares(
                    score, width * half, scratch.share, scratch.log_total, scratch.votes[k], weight,
                    scratch.win_lanes[k], scratch.gate_lanes,
                ))  # fmt: skip
        add_products(packed.values, scratch.residual, begin, end, scratch.product_lanes)
    for j in range(M):
        gates = total(load(scratch.gate_lanes, width * j))
        for k in range(K):
            wins = total(load(scratch.win_lanes, width * (k * M + j)))
            scratch.log_weights[k, j] += wins - gates * scratch.votes[k, j]
        for f in range(d):
            at = width * (j * scratch.beta.shape[1] + f)
            scratch.directions[j, f] += total(load(scratch.product_lanes, at))
    return value


def _log_likelihood(packed, first, last, beta, log_weights, scratch):
    """Return ln p(Y|β, λ) of the panels first ≤ q < last; writes its gradient into the scratch."""
    gradient = scratch.directions, scratch.log_weights
    take_in(beta, log_weights, scratch.beta, scratch.votes, scratch.log_total, *gradient)
    value, step = 0.0, BLOCK // packed.weight.shape[1]
    for begin in range(first, last, step):
        value += add_block(packed, begin, min(begin + step, last), scratch)
    return value


log_likelihood = apart(REAL(COVARIATES, WHOLE, WHOLE, TABLE, TABLE, SCRATCH))(_log_likelihood)
log_likelihood_in_floats = apart(REAL(FLOAT_COVARIATES, WHOLE, WHOLE, TABLE, TABLE, FLOAT_SCRATCH))(_log_likelihood)


class ExponentialRows:
    """Packed covariates with their pass; threads share the blocks of large data.

    In float32 a pass takes half the time, and the log-likelihood of a row is accurate to about 1e-6.
    """

    def __init__(
        self,
        X: Array,
        codes: npt.NDArray[np.intp],
        weight: Array | None,
        dtype: npt.DTypeLike,
        n_threads: int | None = None,
    ):
        self.packed, self.n_threads = pack(X, codes, weight, dtype), n_threads or cores()
        n_panels, step = len(self.packed.label), BLOCK // self.packed.weight.shape[1]
        self.blocks = list(itertools.pairwise([*range(0, n_panels, step), n_panels]))

    def large(self, n_components: int) -> bool:
        """True if threads should share a pass."""
        return len(self.blocks) > 1 and self.packed.values.size * n_components >= LARGE

    @property
    def kernel(self) -> Any:
        """Log-likelihood kernel for the precision of the rows."""
        return log_likelihood if self.packed.values.itemsize == 8 else log_likelihood_in_floats

    def packed_for(self, n_components: int, dtype: npt.DTypeLike) -> ClassCovariates | None:
        """Return the rows for compiled chains in float32; None if there are so many that threads should share them."""
        return None if self.large(n_components) or self.packed.values.itemsize == 8 else self.packed

    def gradient(self, beta: Array, log_weights: Array) -> Slopes:
        """Return ln p(Y|β, λ) and its gradient."""
        (K, M), d = log_weights.shape, beta.shape[1]

        def of_block(block: tuple[int, int]) -> Slopes:
            scratch = make_scratch(M, d, K, self.packed.values.dtype)
            value = self.kernel(self.packed, *block, beta, log_weights, scratch)
            return Slopes(value, scratch.directions, scratch.log_weights)

        if self.n_threads == 1 or not self.large(M):
            return sum(map(of_block, self.blocks), Slopes.none(M, d, K))
        with ThreadPoolExecutor(self.n_threads) as pool:
            return sum(pool.map(of_block, self.blocks), Slopes.none(M, d, K))
