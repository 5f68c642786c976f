"""Features exp(x·β) if every ranking or choice of items has its own row of covariates: the fast gradient.

A row has gates e_j ∝ e^{x·β_j} Λ_j, Λ_j = Σ_k λ_kj, relative to its largest, and with the votes θ_kj = λ_kj/Λ_j item k
has the rate D_k = Σ_j e_j θ_kj. In the order of the outcome, let w_p be the number of copies of the stage at place p (0
where the order is unknown), and R_p = Σ_{p' ≥ p} D_p'. Then

    ln p = Σ_p w_p ln(D_p/R_p),      C_p = ∂ ln p/∂D_p = w_p/D_p − Σ_{p' ≤ p} w_p'/R_p',

and the gradient is Σ_i x_i e_ij Σ_k C_ik θ_kj in β_j, θ_kj Σ_i C_ik e_ij in ln λ_kj.

Rows lie in lanes, as in `plackett.engines.exponential`, whose matrix products compute all five sums; only the exchange
between items and places handles lanes one by one. Sums are taken in fixed blocks of rows.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types

from plackett.compute.compiled import (
    CUBE,
    FLOAT_CUBE,
    FLOAT_TABLE,
    FLOATS,
    REAL,
    REALS,
    TABLE,
    WHOLE,
    apart,
    inner,
    record,
)
from plackett.compute.pieces import cores
from plackett.compute.vectors import BYTES, all_lanes, exp, larger, load, log, spread, store, total
from plackett.engines.exponential import (
    LARGE,
    LOWEST,
    LOWEST_FLOAT,
    Numbers,
    add_products,
    clear,
    scores_of,
    take_in,
)
from plackett.model.race import Array, Slopes
from plackett.responses import choice, ranking
from plackett.responses.base import Outcomes, Response, Whole

TILE = 4  # panels whose gates are buffered before the product with the rows
BLOCK = 1 << 13  # rows per block of sums
KINDS = [choice.expect_block, ranking.expect_block]  # responses in stages
NOTHING_LEFT = 1e-35  # replaces a rate of 0 where there is no stage


class RankedRows(NamedTuple):
    """Rows in panels of two vectors, padded with rows without observations."""

    values: Numbers  # (panel, column, lane)
    copies: Numbers  # (panel, place, lane): w
    place: npt.NDArray[np.uint32]  # (panel, place · lane): index of D of the entry at that place in the panel's table


class RankingScratch(NamedTuple):
    """Scratch and gradient of a pass.

    Components are padded to a multiple of four, items likewise with at least one padding item.
    """

    beta: Numbers  # (component, column)
    gates: Numbers  # (TILE, component · lane): scores, then e
    residual: Numbers  # (TILE, component · lane): e Σ C θ
    slopes: Numbers  # (TILE, item · lane): D, then C
    rates: Numbers  # (TILE, place · lane): D, then C
    left: Numbers  # (place · lane,): R
    product_lanes: Numbers  # (component, column, lane of a vector)
    moved_lanes: Numbers  # (item, component, lane of a vector)
    votes: Numbers  # (item, M): θ
    by_component: Numbers  # (component, K): θ
    log_total: Numbers  # (M,): ln Λ
    directions: Array  # (M, d): gradient in β
    log_weights: Array  # (K, M): gradient in ln λ


PLACES = types.Array(types.uint32, 2, "C")
ROWS, FLOAT_ROWS = (record(RankedRows, kind, kind, PLACES) for kind in (CUBE, FLOAT_CUBE))
SCRATCH, FLOAT_SCRATCH = (
    record(RankingScratch, *[two] * 5, one, *[three] * 2, *[two] * 2, one, TABLE, TABLE)
    for one, two, three in ((REALS, TABLE, CUBE), (FLOATS, FLOAT_TABLE, FLOAT_CUBE))
)


def padded(n: int) -> int:
    """Round up to a multiple of four."""
    return -(-n // 4) * 4


def ranks_items(outcomes: Outcomes, group: Whole, row: Whole, n_groups: int, response: Response) -> bool:
    """True if each situation has its own row, no item twice, and a response in stages."""
    if response.expect_block not in KINDS:
        return False
    situation = np.repeat(np.arange(len(outcomes.counts)), np.diff(outcomes.start))
    return bool((row == situation).all() and len(np.unique(situation * n_groups + group)) == len(group))


def pack(
    X: Array, outcomes: Outcomes, group: Whole, n_groups: int, response: Response, dtype: npt.DTypeLike
) -> RankedRows:
    """Pack situations in input order, each with its row of X."""
    (n, d), sizes = X.shape, np.diff(outcomes.start)
    lanes = 2 * BYTES // np.dtype(dtype).itemsize
    n_panels, most = -(-n // lanes), int(sizes.max())
    placed = np.diff(outcomes.bucket_start) if response.expect_block is ranking.expect_block else np.ones(n)
    stages = np.minimum(placed, sizes - 1)
    values, copies = np.zeros((n_panels * lanes, d + d % 2), dtype), np.zeros((n_panels * lanes, most), dtype)
    item = np.full((n_panels * lanes, most), n_groups)
    values[:n, :d] = X
    copies[:n] = np.where(np.arange(most) < stages[:, None], outcomes.counts[:, None], 0.0)
    item[:n][np.arange(most) < sizes[:, None]] = group

    def laid_out(table: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.ascontiguousarray(table.reshape(n_panels, lanes, -1).transpose(0, 2, 1))

    place = (laid_out(item) * lanes + np.arange(lanes)).reshape(n_panels, -1)
    return RankedRows(laid_out(values), laid_out(copies), place.astype(np.uint32))


def make_scratch(packed: RankedRows, n_components: int, n_columns: int, n_groups: int) -> RankingScratch:
    """Allocate scratch for one chain."""
    (_, columns, lanes), places, dtype = packed.values.shape, packed.copies.shape[1], packed.values.dtype
    M, K = padded(n_components), padded(n_groups + 1)
    shapes = (
        (M, columns), (TILE, M * lanes), (TILE, M * lanes), (TILE, K * lanes), (TILE, places * lanes), places * lanes,
        (M, columns, lanes // 2), (K, M, lanes // 2), (K, n_components), (M, n_groups), n_components
    )  # fmt: skip
    arrays: list[Any] = [np.zeros(shape, dtype) for shape in shapes]
    arrays += [np.empty((n_components, n_columns)), np.empty((n_groups, n_components))]
    return RankingScratch(*arrays)


@inner
def begin_pass(beta, log_weights, scratch):
    """Store β, θ and ln Λ, and set the gradient to 0.

    Kernels for classes receive the arrays of this `RankingScratch` and not the tuple: a cache would name its type, and
    reading an old cache would import this module during compilation.
    """
    gradient = scratch.directions, scratch.log_weights
    take_in(beta, log_weights, scratch.beta, scratch.votes, scratch.log_total, *gradient)
    for k in range(log_weights.shape[0]):
        for j in range(log_weights.shape[1]):
            scratch.by_component[j, k] = scratch.votes[k, j]


@inner
def make_gates(gates, log_total):
    """Replace the scores of a panel by e, relative to the largest of each row."""
    width = BYTES // gates.itemsize
    lanes, lowest = 2 * width, all_lanes(gates, LOWEST if gates.itemsize == 8 else LOWEST_FLOAT)
    for half in range(0, lanes, width):
        peak = all_lanes(gates, -np.inf)
        for j in range(len(log_total)):
            score = load(gates, lanes * j + half) + spread(log_total[j])
            store(gates, lanes * j + half, score)
            peak = larger(peak, score)
        for j in range(len(log_total)):
            store(gates, lanes * j + half, exp(larger(load(gates, lanes * j + half) - peak, lowest)))


@inner
def go_through_stages(copies, rates, left):
    """Replace D by C at every place; return ln p of the rows of a panel, summed."""
    places, lanes = copies.shape
    width, least, value = lanes // 2, all_lanes(rates, NOTHING_LEFT), 0.0
    for half in range(0, lanes, width):
        rest = all_lanes(rates, 0.0)
        for at in range(lanes * (places - 1) + half, -1, -lanes):
            rest = rest + load(rates, at)
            store(left, at, rest)
        time = values = all_lanes(rates, 0.0)
        for at in range(half, lanes * places, lanes):
            rate, rest, count = larger(load(rates, at), least), larger(load(left, at), least), load(copies, at)
            time = time + count / rest
            values = values + count * log(rate / rest)
            store(rates, at, count / rate - time)
        value += total(values)
    return value


@inner
def go_through_panel(packed, q, slopes, rates, left):
    """Replace D by C; return ln p of the rows of a panel."""
    place = packed.place[q]
    for at in range(len(place)):
        rates[at] = slopes[place[at]]
    value = go_through_stages(packed.copies[q], rates, left)
    clear(slopes)
    for at in range(len(place)):
        slopes[place[at]] = rates[at]
    return value


@inner
def add_tile(packed, first, last, scratch):
    """Return ln p of the panels first ≤ q < last, and add their gradient to the lanes."""
    value = 0.0
    for i in range(last - first):
        scores_of(packed.values[first + i], scratch.beta, scratch.gates[i])
        make_gates(scratch.gates[i], scratch.log_total)
        scores_of(scratch.gates[i], scratch.votes, scratch.slopes[i])
    for i in range(last - first):
        value += go_through_panel(packed, first + i, scratch.slopes[i], scratch.rates[i], scratch.left)
    for i in range(last - first):
        gates, residual = scratch.gates[i], scratch.residual[i]
        scores_of(scratch.slopes[i], scratch.by_component, residual)
        for at in range(0, len(residual), BYTES // residual.itemsize):
            store(residual, at, load(residual, at) * load(gates, at))
    add_products(packed.values, scratch.residual, first, last, scratch.product_lanes)
    add_products(scratch.gates, scratch.slopes, 0, last - first, scratch.moved_lanes)
    return value


@inner
def add_block(packed, first, last, scratch):
    """Return ln p of the panels first ≤ q < last, and add their gradient to the scratch."""
    (K, M), d = scratch.log_weights.shape, scratch.directions.shape[1]
    width, padding = scratch.product_lanes.shape[2], scratch.moved_lanes.shape[1]
    clear(scratch.product_lanes)
    clear(scratch.moved_lanes)
    value = 0.0
    for begin in range(first, last, TILE):
        value += add_tile(packed, begin, min(begin + TILE, last), scratch)
    for j in range(M):
        for k in range(K):
            moved = total(load(scratch.moved_lanes, width * (k * padding + j)))
            scratch.log_weights[k, j] += moved * scratch.votes[k, j]
        for f in range(d):
            scratch.directions[j, f] += total(load(scratch.product_lanes, width * (j * scratch.beta.shape[1] + f)))
    return value


def _log_likelihood(packed, first, last, beta, log_weights, scratch):
    """Return ln p(Y|β, λ) of the panels first ≤ q < last; writes its gradient into the scratch."""
    begin_pass(beta, log_weights, scratch)
    value, step = 0.0, BLOCK // packed.copies.shape[2]
    for begin in range(first, last, step):
        value += add_block(packed, begin, min(begin + step, last), scratch)
    return value


log_likelihood = apart(REAL(ROWS, WHOLE, WHOLE, TABLE, TABLE, SCRATCH))(_log_likelihood)
log_likelihood_in_floats = apart(REAL(FLOAT_ROWS, WHOLE, WHOLE, TABLE, TABLE, FLOAT_SCRATCH))(_log_likelihood)


def is_large(packed: RankedRows, n_components: int) -> bool:
    """True if threads should share a pass."""
    return packed.copies.size > packed.copies.shape[1] * BLOCK and packed.values.size * n_components >= LARGE


def gradient(packed: RankedRows, beta: Array, log_weights: Array, n_threads: int | None = None) -> Slopes:
    """Return ln p(Y|β, λ) and its gradient; threads share the blocks of large data, with the same results."""
    pass_over = log_likelihood_in_floats if packed.values.dtype == np.float32 else log_likelihood
    (K, M), d = log_weights.shape, beta.shape[1]
    beta, log_weights = np.ascontiguousarray(beta), np.ascontiguousarray(log_weights)
    n_panels, _, lanes = packed.values.shape

    def of_block(first: int) -> Slopes:
        scratch = make_scratch(packed, M, d, K)
        last = min(first + BLOCK // lanes, n_panels)
        value = pass_over(packed, first, last, beta, log_weights, scratch)
        return Slopes(value, scratch.directions, scratch.log_weights)

    blocks = range(0, n_panels, BLOCK // lanes)
    if not is_large(packed, M):
        return sum(map(of_block, blocks), Slopes.none(M, d, K))
    with ThreadPoolExecutor(n_threads or cores()) as pool:
        return sum(pool.map(of_block, blocks), Slopes.none(M, d, K))
