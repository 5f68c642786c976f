"""Features exp(x·β) of choices if all alternatives share the weights: the fast gradient.

Entry e has the rate D_e = Σ_j g_ej, g_ej = e^{x_e·β_j} λ_j. With the chosen entry first, w copies of a situation have

    ln p = w ln(D_0/R), R = Σ_e D_e,      C_e = ∂ ln p/∂D_e = w (1{e = 0}/D_0 − 1/R),

and the gradient is Σ_e x_e C_e g_ej in β_j, Σ_e C_e g_ej in ln λ_j.

Situations lie in lanes, sorted by their number of entries; a panel is two vectors of situations, and the places of its
entries follow one another. The matrix products are those of `plackett.engines.exponential`. Sums are taken in fixed
blocks of panels.
"""

from __future__ import annotations

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
    WHOLES,
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
from plackett.responses import choice
from plackett.responses.base import Outcomes, Response, Whole

TILE = 16  # places whose gates are buffered before the product with the rows, or those of one panel
BLOCK = 1 << 13  # situations per block of sums
MISSING = -1e30  # added to the scores of entries that a situation lacks


class PackedChoices(NamedTuple):
    """Choices in panels of two vectors, padded with situations without observations."""

    values: Numbers  # (place, column, lane): places of all panels in a row
    missing: Numbers  # (place, lane): MISSING or 0
    weight: Numbers  # (panel, lane)
    start: Whole  # (panel + 1,): first place of each panel, and the end


class ChoiceScratch(NamedTuple):
    """Scratch and gradient of a pass; components are padded to a multiple of four."""

    beta: Numbers  # (component, column)
    residual: Numbers  # (places of a tile, component · lane): scores, then g, then C g
    rates: Numbers  # (lane of a vector,): D_0
    product_lanes: Numbers  # (component, column, lane of a vector)
    moved_lanes: Numbers  # (M, lane of a vector): Σ C g
    votes: Numbers  # (1, M): 1
    log_total: Numbers  # (M,): ln λ
    directions: Array  # (M, d): gradient in β
    log_weights: Array  # (1, M): gradient in ln λ


PANELS, FLOAT_PANELS = (
    record(PackedChoices, three, two, two, WHOLES) for two, three in ((TABLE, CUBE), (FLOAT_TABLE, FLOAT_CUBE))
)
SCRATCH, FLOAT_SCRATCH = (
    record(ChoiceScratch, two, two, one, three, two, two, one, TABLE, TABLE)
    for one, two, three in ((REALS, TABLE, CUBE), (FLOATS, FLOAT_TABLE, FLOAT_CUBE))
)


def has_shared_weights(n_groups: int, response: Response) -> bool:
    """True for choices whose alternatives share the weights."""
    return n_groups == 1 and response.expect_block is choice.expect_block


def pack(X: Array, outcomes: Outcomes, row: Whole, dtype: npt.DTypeLike) -> PackedChoices:
    """Pack choices by their number of entries, otherwise in input order."""
    sizes, d = np.diff(outcomes.start), X.shape[1]
    lanes = 2 * BYTES // np.dtype(dtype).itemsize
    order = np.argsort(sizes, kind="stable")
    n_panels = -(-len(order) // lanes)
    most = np.maximum.reduceat(sizes[order], np.arange(0, len(order), lanes))
    start = np.append(0, np.cumsum(most)).astype(np.int64)
    values, missing = np.zeros((start[-1], d + d % 2, lanes), dtype), np.full((start[-1], lanes), MISSING, dtype)
    weight = np.zeros((n_panels, lanes), dtype)
    position = np.empty(len(order), dtype=np.intp)
    position[order] = np.arange(len(order))
    panel, lane = np.divmod(position, lanes)
    weight[panel, lane] = outcomes.counts
    situation = np.repeat(np.arange(len(order)), sizes)
    place = start[panel[situation]] + np.arange(len(row)) - outcomes.start[situation]
    values[place, :d, lane[situation]] = X[row]
    missing[place, lane[situation]] = 0.0
    missing[start[:-1]] = 0.0  # padding has one entry
    return PackedChoices(values, missing, weight, start)


def make_scratch(packed: PackedChoices, n_components: int, n_columns: int, n_groups: int) -> ChoiceScratch:
    """Allocate scratch for one chain."""
    (_, columns, lanes), dtype, M = packed.values.shape, packed.values.dtype, -(-n_components // 4) * 4
    places = max(TILE, int(np.diff(packed.start).max()))
    shapes = (
        (M, columns), (places, M * lanes), lanes // 2, (M, columns, lanes // 2), (n_components, lanes // 2),
        (n_groups, n_components), n_components,
    )  # fmt: skip
    arrays: list[Any] = [np.zeros(shape, dtype) for shape in shapes]
    arrays += [np.empty((n_components, n_columns)), np.empty((n_groups, n_components))]
    return ChoiceScratch(*arrays)


@inner
def make_gates(missing, first, n, gates, base, half, log_total):
    """Replace scores of the places of a vector of situations by gates, relative to the largest of each situation."""
    lanes = missing.shape[1]
    size, lowest = gates.shape[1], all_lanes(gates, LOWEST if gates.itemsize == 8 else LOWEST_FLOAT)
    peak = all_lanes(gates, -np.inf)
    for e in range(n):
        away = load(missing, (first + e) * lanes + half)
        for j in range(len(log_total)):
            at = (base + e) * size + j * lanes + half
            score = load(gates, at) + spread(log_total[j]) + away
            store(gates, at, score)
            peak = larger(peak, score)
    for e in range(n):
        for j in range(len(log_total)):
            at = (base + e) * size + j * lanes + half
            store(gates, at, exp(larger(load(gates, at) - peak, lowest)))


@inner
def make_residual(gates, base, n, half, weight, rates, moved_lanes):
    """Replace the gates of a vector of situations by C g, and add these to the lanes; return ln p, summed."""
    M, width = moved_lanes.shape
    size, lanes = gates.shape[1], 2 * width
    whole = all_lanes(gates, 0.0)
    for e in range(n):
        rate = all_lanes(gates, 0.0)
        for j in range(M):
            rate = rate + load(gates, (base + e) * size + j * lanes + half)
        if e == 0:
            store(rates, 0, rate)
        whole = whole + rate
    chosen, one = load(rates, 0), all_lanes(gates, 1.0)
    for_chosen, for_all = one / chosen, one / whole
    for e in range(n):
        for j in range(M):
            at = (base + e) * size + j * lanes + half
            gate = load(gates, at)
            slope = all_lanes(gates, 0.0) - gate * for_all
            if e == 0:
                slope = gate * for_chosen + slope
            slope = weight * slope
            store(gates, at, slope)
            store(moved_lanes, width * j, load(moved_lanes, width * j) + slope)
    return total(weight * log(chosen / whole))


@inner
def add_tile(packed, first, last, scratch):
    """Return ln p of the panels first ≤ q < last, and add their gradient to the lanes."""
    start, width = packed.start, scratch.moved_lanes.shape[1]
    begin, end, value = start[first], start[last], 0.0
    for p in range(begin, end):
        scores_of(packed.values[p], scratch.beta, scratch.residual[p - begin])
    for q in range(first, last):
        n, base = start[q + 1] - start[q], start[q] - begin
        for half in range(0, 2 * width, width):
            make_gates(packed.missing, start[q], n, scratch.residual, base, half, scratch.log_total)
            weight = load(packed.weight, 2 * width * q + half)
            value += make_residual(scratch.residual, base, n, half, weight, scratch.rates, scratch.moved_lanes)
    add_products(packed.values, scratch.residual, begin, end, scratch.product_lanes)
    return value


@inner
def add_block(packed, first, last, scratch):
    """Return ln p of the panels first ≤ q < last, and add their gradient to the scratch."""
    (M, width), d = scratch.moved_lanes.shape, scratch.directions.shape[1]
    clear(scratch.product_lanes)
    clear(scratch.moved_lanes)
    value, begin = 0.0, first
    while begin < last:
        end = begin + 1
        while end < last and packed.start[end + 1] - packed.start[begin] <= TILE:
            end += 1
        value += add_tile(packed, begin, end, scratch)
        begin = end
    for j in range(M):
        scratch.log_weights[0, j] += total(load(scratch.moved_lanes, width * j))
        for f in range(d):
            scratch.directions[j, f] += total(load(scratch.product_lanes, width * (j * scratch.beta.shape[1] + f)))
    return value


def _log_likelihood(packed, first, last, beta, log_weights, scratch):
    """Return ln p(Y|β, λ) of the panels first ≤ q < last; writes its gradient into the scratch."""
    gradient = scratch.directions, scratch.log_weights
    take_in(beta, log_weights, scratch.beta, scratch.votes, scratch.log_total, *gradient)
    value, step = 0.0, BLOCK // packed.weight.shape[1]
    for begin in range(first, last, step):
        value += add_block(packed, begin, min(begin + step, last), scratch)
    return value


log_likelihood = apart(REAL(PANELS, WHOLE, WHOLE, TABLE, TABLE, SCRATCH))(_log_likelihood)
log_likelihood_in_floats = apart(REAL(FLOAT_PANELS, WHOLE, WHOLE, TABLE, TABLE, FLOAT_SCRATCH))(_log_likelihood)


def is_large(packed: PackedChoices, n_components: int) -> bool:
    """True if threads should share a pass."""
    return packed.weight.size > BLOCK and packed.values.size * n_components >= LARGE


def gradient(packed: PackedChoices, beta: Array, log_weights: Array, n_threads: int | None = None) -> Slopes:
    """Return ln p(Y|β, λ) and its gradient; threads share the blocks of large data, with the same results."""
    pass_over = log_likelihood_in_floats if packed.values.dtype == np.float32 else log_likelihood
    (K, M), d = log_weights.shape, beta.shape[1]
    beta, log_weights = np.ascontiguousarray(beta), np.ascontiguousarray(log_weights)
    n_panels, lanes = packed.weight.shape

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
