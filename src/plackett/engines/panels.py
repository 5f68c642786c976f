"""Dense rows of classes, compiled: sorted by class and packed in feature-major panels of 64, with loops across rows.

Within a panel λ_kj meets eight rows at a time, and the sums of 32 rows stay in registers; C_i of (11) is a branch-free
count of running sums below a uniform target. A panel is read from memory once: the second loop finds it in the
first-level cache, while later panels are prefetched. Sums are taken in fixed blocks of panels, and random numbers
belong to the rows, so that results do not depend on the number of threads. A row of weight w is w equal rows: its draws
are a Gamma and a multinomial, in a branch that only blocks with such rows take.
"""

from __future__ import annotations

import itertools
import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from plackett.compute.compiled import (
    CUBE,
    FLOAT_CUBE,
    NOTHING,
    REAL,
    REALS,
    TABLE,
    TRUTH,
    WHOLES,
    apart,
    inner,
    jit,
    record,
)
from plackett.compute.numba_private import cgutils
from plackett.compute.vectors import (
    WIDTH,
    count_below,
    load,
    load_doubles,
    log,
    multiply_add,
    smaller,
    smallest,
    spread,
    store,
    total,
)
from plackett.model.draws import KEY_OF_TIMES, MIX_1, MIX_2, STEP, begin, gamma, share_out
from plackett.model.features import Features
from plackett.model.race import Array

LANES = 64
BLOCK = 64  # panels per block, the unit of summation and of work for a thread

_STEP, _MIX_1, _MIX_2, _TIMES = (np.uint64(c) for c in (STEP, MIX_1, MIX_2, KEY_OF_TIMES))


class Panels(NamedTuple):
    """The packed rows. Lanes beyond `fill` hold ones and have weight zero."""

    values: npt.NDArray[np.floating]  # (panel, feature, lane)
    fill: npt.NDArray[np.int64]  # (panel,) rows in the panel
    first_row: npt.NDArray[np.int64]  # (panel,) position of its first row in canonical order
    block_start: npt.NDArray[np.int64]  # (block + 1,) first panel of each block
    block_class: npt.NDArray[np.int64]  # (block,) a block holds rows of one class
    block_weight: Array  # (block,) total weight of its rows
    plain: npt.NDArray[np.bool_]  # (block,) True if all its rows have weight 1
    weight: Array  # (panel, lane)


REST = WHOLES, WHOLES, WHOLES, WHOLES, REALS, types.Array(TRUTH, 1, "C"), TABLE
PANELS, FLOAT_PANELS = record(Panels, CUBE, *REST), record(Panels, FLOAT_CUBE, *REST)


def pack(
    features: Features,
    codes: npt.NDArray[np.intp],
    sample_weight: Array | None,
    n_groups: int,
    order: npt.NDArray[np.intp],
) -> Panels:
    """Pack the rows into panels in this order, which is sorted by class."""
    first_row: list[int] = []
    fill: list[int] = []
    block_start, block_class = [0], []
    start = 0
    for k, count in enumerate(np.bincount(codes, minlength=n_groups).tolist()):
        panel_rows = range(start, start + count, LANES)
        first_row.extend(panel_rows)
        fill.extend(min(LANES, start + count - row) for row in panel_rows)
        for first in range(0, len(panel_rows), BLOCK):
            block_start.append(block_start[-1] + min(BLOCK, len(panel_rows) - first))
            block_class.append(k)
        start += count
    p = features.shape[1]
    values = np.empty((len(fill), p, LANES), dtype=features.dtype)
    weight = np.zeros((len(fill), LANES))
    plain, block_weight = np.ones(len(block_class), dtype=np.bool_), np.empty(len(block_class))
    for b, (first, last) in enumerate(itertools.pairwise(block_start)):
        rows = order[first_row[first] : first_row[last - 1] + fill[last - 1]]
        lanes = np.ones(((last - first) * LANES, p), dtype=features.dtype)
        lanes[: len(rows)] = features[rows]
        values[first:last] = lanes.reshape(-1, LANES, p).transpose(0, 2, 1)
        if sample_weight is not None:
            plain[b] = bool((sample_weight[rows] == 1.0).all())
        weight[first:last].reshape(-1)[: len(rows)] = 1.0 if sample_weight is None else sample_weight[rows]
        block_weight[b] = weight[first:last].sum()
    fills, firsts, starts, classes = (np.array(each) for each in (fill, first_row, block_start, block_class))
    return Panels(values, fills, firsts, starts, classes, block_weight, plain, weight)


@intrinsic
def prefetch(typingctx: Any, array: Any, index: Any) -> Any:
    """Prefetch the cache line of array.flat[index] into the second level; the first holds the current panel."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        byte, int32 = ir.IntType(8).as_pointer(), ir.IntType(32)
        hint = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(ir.VoidType(), [byte, int32, int32, int32]), "llvm.prefetch.p0"
        )
        builder.call(hint, [builder.bitcast(builder.gep(data, [args[1]]), byte), int32(0), int32(2), int32(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp), codegen


@intrinsic
def of_doubles(typingctx: Any, array: Any) -> Any:
    """True if an array holds doubles. The answer is known at compile time, so that only one branch is compiled."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return context.get_constant(types.boolean, array.dtype == types.float64)

    return types.boolean(array), codegen


@inner
def uniform(key, row):
    """Return the same number as `plackett.model.draws.uniforms`."""
    bits = key + row * _STEP
    bits = (bits ^ (bits >> np.uint64(30))) * _MIX_1
    bits = (bits ^ (bits >> np.uint64(27))) * _MIX_2
    bits = bits ^ (bits >> np.uint64(31))
    return (np.float64(np.int64(bits >> np.uint64(12))) + 0.5) * 2.0**-52


@inner
def _read_ahead(values, panel, j):
    """Prefetch a whole feature (floats, which arrive faster than they are used)."""
    start = (panel * values.shape[1] + j) * LANES
    for lane in range(0, LANES, 64 // values.itemsize):
        prefetch(values, start + lane)


@inner
def _read_steadily(values, q, j, quarter):
    """Prefetch a quarter of a feature two panels ahead (doubles, whose requests would queue if made at once)."""
    start = ((q + 2) * values.shape[1] + j) * LANES + quarter
    prefetch(values, start)
    prefetch(values, start + WIDTH)


@inner
def _sums(values, q, own, total, T, R):
    """Compute T_r = W_r·U and R_r = W_r·Σ_l V_l for the rows of a panel, four vectors of them at a time."""
    p = values.shape[1]
    for half in range(0, LANES, 4 * WIDTH):
        t0 = t1 = t2 = t3 = spread(0.0)
        r0 = r1 = r2 = r3 = spread(0.0)
        for j in range(p):
            if of_doubles(values):
                _read_steadily(values, q, j, half // 2)
            at = (q * p + j) * LANES + half
            w0, w1 = load_doubles(values, at), load_doubles(values, at + WIDTH)
            w2, w3 = load_doubles(values, at + 2 * WIDTH), load_doubles(values, at + 3 * WIDTH)
            u, v = spread(own[j]), spread(total[j])
            t0, r0 = multiply_add(w0, u, t0), multiply_add(w0, v, r0)
            t1, r1 = multiply_add(w1, u, t1), multiply_add(w1, v, r1)
            t2, r2 = multiply_add(w2, u, t2), multiply_add(w2, v, r2)
            t3, r3 = multiply_add(w3, u, t3), multiply_add(w3, v, r3)
        _store_four(T, half, t0, t1, t2, t3)
        _store_four(R, half, r0, r1, r2, r3)


@inner
def _store_four(out, at, a, b, c, d):
    store(out, at, a)
    store(out, at + WIDTH, b)
    store(out, at + 2 * WIDTH, c)
    store(out, at + 3 * WIDTH, d)


@inner
def _log_shares(weight, T, R):
    """Return Σ_r weight_r ln(T_r / R_r)."""
    margin, shares = spread(1.0), spread(0.0)
    for r in range(0, LANES, WIDTH):
        margin = smaller(margin, load(T, r) - spread(1e-290) * load(R, r))
    if smallest(margin) > 0.0:
        for r in range(0, LANES, WIDTH):
            shares = multiply_add(load(weight, r), log(load(T, r) / load(R, r)), shares)
        return total(shares)
    value = 0.0
    for r in range(LANES):
        if weight[r] > 0.0:
            value += weight[r] * (math.log(T[r]) - math.log(R[r]))
    return value


@inner
def _give_back(values, q, half, claim, z, win_lanes, exposure_lanes):
    """Add Σ_r claim_r W_rj and Σ_r z_r W_rj to the lanes of every feature, for half a panel."""
    p = values.shape[1]
    c0, c1 = load(claim, half), load(claim, half + WIDTH)
    c2, c3 = load(claim, half + 2 * WIDTH), load(claim, half + 3 * WIDTH)
    z0, z1, z2, z3 = load(z, half), load(z, half + WIDTH), load(z, half + 2 * WIDTH), load(z, half + 3 * WIDTH)
    for j in range(p):
        if of_doubles(values):
            _read_steadily(values, q, j, (LANES + half) // 2)
        elif half == 0:
            _read_ahead(values, q + 1, j)
        at = (q * p + j) * LANES + half
        w0, w1 = load_doubles(values, at), load_doubles(values, at + WIDTH)
        w2, w3 = load_doubles(values, at + 2 * WIDTH), load_doubles(values, at + 3 * WIDTH)
        even, odd = multiply_add(c0, w0, load(win_lanes, WIDTH * j)), c1 * w1
        store(win_lanes, WIDTH * j, multiply_add(c2, w2, even) + multiply_add(c3, w3, odd))
        even, odd = multiply_add(z0, w0, load(exposure_lanes, WIDTH * j)), z1 * w1
        store(exposure_lanes, WIDTH * j, multiply_add(z2, w2, even) + multiply_add(z3, w3, odd))


@inner
def _clear(lanes):
    for at in range(0, lanes.size, WIDTH):
        store(lanes, at, spread(0.0))


@jit
def expect_blocks(panels, first, last, own, whole, wins, exposure, value):
    """Write expected statistics, (10) and (18), of blocks first ≤ b < last into row b of the outputs."""
    values, p = panels.values, panels.values.shape[1]
    T, R, claim, z = np.empty(LANES), np.empty(LANES), np.empty(LANES), np.empty(LANES)
    win_lanes, exposure_lanes = np.empty((p, WIDTH)), np.empty((p, WIDTH))
    for b in range(first, last):
        u = own[panels.block_class[b]]
        _clear(win_lanes)
        _clear(exposure_lanes)
        value[b] = 0.0
        for q in range(panels.block_start[b], panels.block_start[b + 1]):
            _sums(values, q, u, whole, T, R)
            value[b] += _log_shares(panels.weight[q], T, R)
            for r in range(LANES):
                supported = panels.weight[q, r] if T[r] > 0.0 else 0.0  # otherwise the value is −inf
                claim[r] = supported / max(T[r], 1e-300)
                z[r] = supported / R[r]
            for half in range(0, LANES, 4 * WIDTH):
                _give_back(values, q, half, claim, z, win_lanes, exposure_lanes)
        for j in range(p):
            wins[b, j] = total(load(win_lanes, WIDTH * j)) * u[j]
            exposure[b, j] = total(load(exposure_lanes, WIDTH * j))


@apart(REAL(REAL, types.uint64, types.uint64), allocates=True)
def arrival_times(count, key, row):
    """Draw the sum of `count` standard exponentials of a row."""
    stream = np.empty(1, dtype=np.uint64)
    begin(stream, key, row)
    return gamma(count, stream)


@apart(NOTHING(REAL, REALS, REALS, REAL, types.uint64, types.uint64, REALS), allocates=True)
def winning_features(count, features, own, total, key, row, wins):
    """Add the winning features of `count` races of a row to the wins."""
    stream = np.empty(1, dtype=np.uint64)
    begin(stream, key ^ _TIMES, row)
    share_out(count, features, own, total, stream, wins)


@inner
def _place(panels, place, q, r):
    """Position of a row among all, which determines its random numbers: place[q, r], or the packed position if None."""
    if place is None:
        return np.uint64(panels.first_row[q] + r)
    return np.uint64(place[q, r])


@inner
def _add_wins(panels, place, q, own, T, below, key, one, wins):
    """Add the wins of a panel whose rows do not all have weight 1; `one` is scratch for a row."""
    p = own.size
    for r in range(panels.fill[q]):
        weight = panels.weight[q, r]
        if weight == 1.0:
            wins[min(int(below[r]), p - 1)] += 1.0
        elif weight > 0.0:
            for j in range(p):
                one[j] = panels.values[q, j, r]
            winning_features(weight, one, own, T[r], key, _place(panels, place, q, r), wins)


@jit
def sample_blocks(panels, first, last, own, whole, key, place, wins, exposure, value):
    """Write sampled statistics, (11) and (12), of blocks first ≤ b < last into row b of the outputs."""
    values, p = panels.values, panels.values.shape[1]
    T, R, z = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    target, below = np.empty(LANES), np.empty(LANES)
    lanes, one = np.empty((p, WIDTH)), np.empty(p)
    for b in range(first, last):
        u = own[panels.block_class[b]]
        _clear(lanes)
        value[b] = 0.0
        for j in range(p):
            wins[b, j] = 0.0
        for q in range(panels.block_start[b], panels.block_start[b + 1]):
            m = panels.fill[q]
            _sums(values, q, u, whole, T, R)
            value[b] += _log_shares(panels.weight[q], T, R)
            for r in range(LANES):
                target[r] = uniform(key, _place(panels, place, q, r)) * T[r]
                z[r] = uniform(key ^ _TIMES, _place(panels, place, q, r))
            for r in range(0, LANES, WIDTH):
                store(z, r, (spread(0.0) - log(load(z, r))) / load(R, r))
            for r in range(m, LANES):
                z[r] = 0.0
            if not panels.plain[b]:
                for r in range(m):
                    if panels.weight[q, r] != 1.0:
                        z[r] = arrival_times(panels.weight[q, r], key, _place(panels, place, q, r)) / R[r]
            for half in range(0, LANES, 4 * WIDTH):
                _climb(values, q, half, u, target, z, below, lanes)
            if not panels.plain[b]:
                _add_wins(panels, place, q, u, T, below, key, one, wins[b])
                continue
            for r in range(m):
                wins[b, min(int(below[r]), p - 1)] += 1.0
        for j in range(p):
            exposure[b, j] = total(load(lanes, WIDTH * j))


@inner
def _climb(values, q, half, own, target, z, below, lanes):
    """Count the running sums of W_rj U_j below each target, and add Σ_r z_r W_rj to the lanes, for half a panel."""
    p = values.shape[1]
    c0 = c1 = c2 = c3 = spread(0.0)
    n0 = n1 = n2 = n3 = spread(0.0)
    t0, t1 = load(target, half), load(target, half + WIDTH)
    t2, t3 = load(target, half + 2 * WIDTH), load(target, half + 3 * WIDTH)
    z0, z1, z2, z3 = load(z, half), load(z, half + WIDTH), load(z, half + 2 * WIDTH), load(z, half + 3 * WIDTH)
    for j in range(p):
        if of_doubles(values):
            _read_steadily(values, q, j, (LANES + half) // 2)
        elif half == 0:
            _read_ahead(values, q + 1, j)
        at, u = (q * p + j) * LANES + half, spread(own[j])
        w0, w1 = load_doubles(values, at), load_doubles(values, at + WIDTH)
        w2, w3 = load_doubles(values, at + 2 * WIDTH), load_doubles(values, at + 3 * WIDTH)
        c0, c1 = multiply_add(w0, u, c0), multiply_add(w1, u, c1)
        c2, c3 = multiply_add(w2, u, c2), multiply_add(w3, u, c3)
        n0, n1 = n0 + count_below(c0, t0), n1 + count_below(c1, t1)
        n2, n3 = n2 + count_below(c2, t2), n3 + count_below(c3, t3)
        even, odd = multiply_add(z0, w0, load(lanes, WIDTH * j)), z1 * w1
        even, odd = multiply_add(z2, w2, even), multiply_add(z3, w3, odd)
        store(lanes, WIDTH * j, even + odd)
    _store_four(below, half, n0, n1, n2, n3)
