"""Features exp(x·β) of situations, computed during the pass for any response, and the gradient.

Rows have gates e_ij ∝ e^{x_i·β_j} Λ_j, Λ_j = Σ_k λ_kj, relative to their largest, computed once for all entries that
share the row. With the votes θ_kj = λ_kj/Λ_j an entry has the rate r_e ∝ D_e = Σ_j e_ij θ_gj. The response returns the
slopes n_e − r_e s_e of the log-likelihood in ln r_e, and with C_e = (n_e − r_e s_e)/D_e its gradient is

    Σ_i x_i e_ij Σ_{e of i} C_e θ_gj   in β_j,        θ_gj Σ_{e of g} C_e e_ij   in ln λ_gj.

Sums are taken entry by entry; if every ranking has its own row, `exponential_rankings` is faster. A tile consists of
some situations and the rows that only these use, so that it fits in cache; sums of tiles are added in fixed blocks,
which threads may share.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from plackett.compute.compiled import (
    NOTHING,
    REAL,
    REALS,
    TABLE,
    TRUTH,
    WHOLE,
    WHOLES,
    Pointer,
    apart,
    inner,
    is_compiled,
    record,
)
from plackett.compute.pieces import cores
from plackett.compute.vectors import (
    WIDTH,
    exp,
    larger,
    load,
    multiply_add,
    smaller,
    smallest,
    spread,
    spread_at,
    store,
    total,
)
from plackett.model.race import Array, Slopes
from plackett.responses.base import Outcomes, Response, Whole

TILE = 64  # rows per tile, approximately
BLOCK = 1 << 13  # rows whose sums are taken together
LARGE = 1 << 24  # multiplications for the scores of all rows, from which threads share one chain
LOWEST = -600.0  # ln of the smallest gate, relative to the largest of its row
RAREST = -300.0  # ln of the smallest vote, relative to the largest of its component
FARTHEST = -300.0  # smallest ln of a row's largest gate relative to its situation, where rates are relative


class SituationCovariates(NamedTuple):
    """Packed situations."""

    values: Array  # (rows · columns,): columns padded to a multiple of four, and four rows of zeros at the end
    outcomes: Outcomes
    group: Whole  # (entries,)
    row: Whole  # (entries,)
    tile_situation: Whole  # (tiles + 1,): first situation of each tile
    tile_row: Whole  # (tiles + 1,)
    blocks: Whole  # first tile of each block, and the end
    expect: int  # address of the response's `expect_block`
    absolute: bool


class SituationScratch(NamedTuple):
    """Scratch and gradient of a pass; tables are flat, with rows padded to vectors."""

    beta: Array  # (column, component)
    log_total: Array  # (component,): ln Λ
    votes: Array  # (group, component): θ
    gates: Array  # (row of a tile, component)
    pull: Array  # (row of a tile, component)
    peak: Array  # (row of a tile,): ln of the largest gate
    rates: Array  # (entry of a tile,): r
    relative: Array  # D, then C
    arrivals: Array  # n
    at_risk: Array  # s
    values: Array  # (situation,)
    product: Array  # (column, component): sums of a block
    moved: Array  # (group, component): Σ C e of a block
    directions: Array  # (M, d): gradient in β
    log_weights: Array  # (K, M): gradient in ln λ


OUTCOMES = record(Outcomes, WHOLES, WHOLES, WHOLES, REALS)
COVARIATES = record(SituationCovariates, REALS, OUTCOMES, WHOLES, WHOLES, WHOLES, WHOLES, WHOLES, WHOLE, TRUTH)
SCRATCH = record(SituationScratch, *[REALS] * 13, TABLE, TABLE)
EXPECT = Pointer(NOTHING, OUTCOMES, WHOLE, WHOLE, *[REALS] * 4)
expect = EXPECT.call


def padded(n: int, width: int = WIDTH) -> int:
    """Round up to a multiple of `width`."""
    return -(-n // width) * width


def tiles_of(start: Whole, row: Whole) -> tuple[Whole, Whole]:
    """First situations and rows of the tiles, and the ends; no two tiles share a row.

    Rows are numbered in the order of their first use.
    """
    used = np.append(0, np.maximum.accumulate(np.maximum.reduceat(row, start[:-1])) + 1)  # rows before each situation
    later = np.minimum.accumulate(np.minimum.reduceat(row, start[:-1])[::-1])[::-1]  # first row used from there on
    cuts = [0]
    for t in np.flatnonzero(later >= used[:-1])[1:]:
        if used[t] - used[cuts[-1]] >= TILE:
            cuts.append(int(t))
    ends = np.array([*cuts, len(start) - 1], dtype=np.int64)
    return ends, used[ends].astype(np.int64)


def pack(X: Array, outcomes: Outcomes, group: Whole, row: Whole, response: Response) -> SituationCovariates | None:
    """Pack situations for the compiled pass; None if the response is not compiled."""
    if not is_compiled(response.expect_block):
        return None
    n, d = X.shape
    values = np.zeros((n + 4, padded(d, 4)))
    values[:n, :d] = X
    situation, rows = tiles_of(outcomes.start, row)
    starts = np.flatnonzero(np.diff(rows[:-1] // BLOCK, prepend=-1))
    return SituationCovariates(
        values.ravel(),
        outcomes,
        group.astype(np.int64),
        row.astype(np.int64),
        situation,
        rows,
        np.append(starts, len(situation) - 1).astype(np.int64),
        EXPECT.address(response.expect_block),
        response.absolute,
    )


def make_scratch(packed: SituationCovariates, n_components: int, n_columns: int, n_groups: int) -> SituationScratch:
    """Allocate scratch for one chain."""
    M, d = padded(n_components), padded(n_columns, 4)
    rows = int(np.diff(packed.tile_row).max()) + 4
    entries = padded(int(np.diff(packed.outcomes.start[packed.tile_situation]).max()))
    sizes = (d * M, M, n_groups * M, rows * M, rows * M, rows, entries, entries, entries, entries)
    arrays = [np.zeros(size) for size in (*sizes, len(packed.outcomes.counts), d * M, n_groups * M)]
    arrays += [np.empty((n_components, n_columns)), np.empty((n_groups, n_components))]
    return SituationScratch(*arrays)


@inner
def add_products(A, a, a_row, a_step, B, b, b_step, n, C, c, c_row):
    """Add Σ_q A_pq B_q to four vectors C_p: A_pq at a + p·a_row + q·a_step, B_q at b + q·b_step, C_p at c + p·c_row."""
    c0, c1 = load(C, c), load(C, c + c_row)
    c2, c3 = load(C, c + 2 * c_row), load(C, c + 3 * c_row)
    for q in range(n):
        v, at = load(B, b + q * b_step), a + q * a_step
        c0 = multiply_add(spread_at(A, at), v, c0)
        c1 = multiply_add(spread_at(A, at + a_row), v, c1)
        c2 = multiply_add(spread_at(A, at + 2 * a_row), v, c2)
        c3 = multiply_add(spread_at(A, at + 3 * a_row), v, c3)
    store(C, c, c0)
    store(C, c + c_row, c1)
    store(C, c + 2 * c_row, c2)
    store(C, c + 3 * c_row, c3)


@inner
def begin_pass(beta, log_weights, scratch):
    """Store β, θ and ln Λ, and set the gradient to 0."""
    (K, M), d = log_weights.shape, beta.shape[1]
    width = len(scratch.log_total)
    for j in range(M):
        peak = -np.inf
        for k in range(K):
            peak = max(peak, log_weights[k, j])
        whole = 0.0
        for k in range(K):
            vote = math.exp(max(log_weights[k, j] - peak, RAREST))
            scratch.votes[k * width + j] = vote
            whole += vote
        for k in range(K):
            scratch.votes[k * width + j] /= whole
            scratch.log_weights[k, j] = 0.0
        scratch.log_total[j] = peak + math.log(whole)
        for f in range(d):
            scratch.beta[f * width + j] = beta[j, f]
            scratch.directions[j, f] = 0.0
    for j in range(M, width):
        scratch.log_total[j] = -1e300


@inner
def make_gates(values, columns, first, n, scratch):
    """Compute gates of n rows from `first` on, relative to the largest of each."""
    width = len(scratch.log_total)
    d = len(scratch.beta) // width
    for i in range(0, n, 4):
        for j in range(0, width, WIDTH):
            for p in range(4):
                store(scratch.gates, (i + p) * width + j, load(scratch.log_total, j))
            at = (first + i) * columns
            add_products(values, at, columns, 1, scratch.beta, j, width, d, scratch.gates, i * width + j, width)
    for i in range(n):
        top = spread(-np.inf)
        for j in range(i * width, (i + 1) * width, WIDTH):
            top = larger(top, load(scratch.gates, j))
        peak = -smallest(spread(0.0) - top)
        scratch.peak[i] = peak
        for j in range(i * width, (i + 1) * width, WIDTH):
            store(scratch.gates, j, exp(larger(load(scratch.gates, j) - spread(peak), spread(LOWEST))))


@inner
def rate_of(packed, e, i, scratch):
    """Return D_e of an entry whose row is the i-th of its tile."""
    width, g = len(scratch.log_total), packed.group[e]
    sums = spread(0.0)
    for j in range(0, width, WIDTH):
        sums = multiply_add(load(scratch.gates, i * width + j), load(scratch.votes, g * width + j), sums)
    return total(sums)


@inner
def make_rates(packed, first, last, first_row, scratch):
    """Compute D and r of the entries of a tile; r up to a factor per situation unless rates are absolute."""
    start = packed.outcomes.start
    base = start[first]
    for t in range(first, last):
        top = 0.0 if packed.absolute else -np.inf
        if not packed.absolute:
            for e in range(start[t], start[t + 1]):
                top = max(top, scratch.peak[packed.row[e] - first_row])
        for e in range(start[t], start[t + 1]):
            i = packed.row[e] - first_row
            scratch.relative[e - base] = rate_of(packed, e, i, scratch)
            scratch.rates[e - base] = scratch.peak[i] - top
    for e in range(0, start[last] - base, WIDTH):
        away = smaller(larger(load(scratch.rates, e), spread(FARTHEST)), spread(-FARTHEST))
        store(scratch.rates, e, exp(away) * load(scratch.relative, e))


@inner
def make_slopes(packed, first, last, scratch):
    """Replace D_e by C_e for the entries of a tile."""
    start = packed.outcomes.start
    base = start[first]
    for t in range(first, last):
        count = packed.outcomes.counts[t]
        for e in range(start[t] - base, start[t + 1] - base):
            slope = scratch.arrivals[e] - scratch.rates[e] * scratch.at_risk[e]
            scratch.relative[e] = count * slope / scratch.relative[e]


@inner
def pull(packed, low, high, first_row, n, scratch):
    """Compute Σ C θ of n rows, and add Σ C e of all groups."""
    width = len(scratch.log_total)
    for at in range(0, n * width, WIDTH):
        store(scratch.pull, at, spread(0.0))
    for e in range(low, high):
        at, own = (packed.row[e] - first_row) * width, packed.group[e] * width
        slope = spread(scratch.relative[e - low])
        for j in range(0, width, WIDTH):
            store(scratch.pull, at + j, multiply_add(slope, load(scratch.votes, own + j), load(scratch.pull, at + j)))
            store(
                scratch.moved, own + j, multiply_add(slope, load(scratch.gates, at + j), load(scratch.moved, own + j))
            )


@inner
def add_tile(packed, tile, scratch):
    """Return the log-likelihood of a tile, and add its gradient to the sums of the block."""
    first, last = packed.tile_situation[tile], packed.tile_situation[tile + 1]
    first_row, n = packed.tile_row[tile], packed.tile_row[tile + 1] - packed.tile_row[tile]
    low, high = packed.outcomes.start[first], packed.outcomes.start[last]
    width, columns = len(scratch.log_total), len(scratch.beta) // len(scratch.log_total)
    make_gates(packed.values, columns, first_row, n, scratch)
    make_rates(packed, first, last, first_row, scratch)
    expect(
        packed.expect, packed.outcomes, first, last, scratch.rates, scratch.arrivals, scratch.at_risk, scratch.values
    )
    make_slopes(packed, first, last, scratch)
    pull(packed, low, high, first_row, n, scratch)
    for at in range(0, n * width, WIDTH):
        store(scratch.pull, at, load(scratch.pull, at) * load(scratch.gates, at))
    for f in range(0, columns, 4):
        for j in range(0, width, WIDTH):
            x, at = first_row * columns + f, f * width + j
            add_products(packed.values, x, 1, columns, scratch.pull, j, width, n, scratch.product, at, width)
    value = 0.0
    for t in range(first, last):
        if packed.outcomes.counts[t] > 0.0:
            value += packed.outcomes.counts[t] * scratch.values[t]
    return value


@inner
def add_block(packed, first, last, scratch):
    """Return the log-likelihood of the tiles first ≤ tile < last, and add their gradient to the scratch."""
    (K, M), d, width = scratch.log_weights.shape, scratch.directions.shape[1], len(scratch.log_total)
    for at in range(0, len(scratch.product), WIDTH):
        store(scratch.product, at, spread(0.0))
    for at in range(0, len(scratch.moved), WIDTH):
        store(scratch.moved, at, spread(0.0))
    value = 0.0
    for tile in range(first, last):
        value += add_tile(packed, tile, scratch)
    for j in range(M):
        for k in range(K):
            scratch.log_weights[k, j] += scratch.moved[k * width + j] * scratch.votes[k * width + j]
        for f in range(d):
            scratch.directions[j, f] += scratch.product[f * width + j]
    return value


@apart(REAL(COVARIATES, WHOLE, WHOLE, TABLE, TABLE, SCRATCH))
def log_likelihood(packed, first, last, beta, log_weights, scratch):
    """Return ln p(Y|β, λ) of the blocks first ≤ b < last; writes its gradient into the scratch."""
    begin_pass(beta, log_weights, scratch)
    value = 0.0
    for b in range(first, last):
        value += add_block(packed, packed.blocks[b], packed.blocks[b + 1], scratch)
    return value


def is_large(packed: SituationCovariates, n_components: int) -> bool:
    """True if threads should share a pass."""
    return len(packed.blocks) > 2 and len(packed.values) * n_components >= LARGE


def gradient(packed: SituationCovariates, beta: Array, log_weights: Array, n_threads: int | None = None) -> Slopes:
    """Return ln p(Y|β, λ) and its gradient; threads share the blocks of large data, with the same results."""
    (K, M), d = log_weights.shape, beta.shape[1]
    beta, log_weights = np.ascontiguousarray(beta), np.ascontiguousarray(log_weights)

    def of_block(b: int) -> Slopes:
        scratch = make_scratch(packed, M, d, K)
        value = log_likelihood(packed, b, b + 1, beta, log_weights, scratch)
        return Slopes(value, scratch.directions, scratch.log_weights)

    blocks = range(len(packed.blocks) - 1)
    if not is_large(packed, M):
        return sum(map(of_block, blocks), Slopes.none(M, d, K))
    with ThreadPoolExecutor(n_threads or cores()) as pool:
        return sum(pool.map(of_block, blocks), Slopes.none(M, d, K))
