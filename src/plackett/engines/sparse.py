"""Mostly zero rows (CSR): the passes of `engines/panels.py` over the non-zero entries.

For every class, U_j and Σ_l V_lj are adjacent in memory, as are the sums of wins and exposure of a block, so that an
entry of W finds both in one cache line; the second line is prefetched while the first is read. A block is part of a
class and has its own sums, each as long as a row of weights. Blocks are few and are added in a fixed order, so that
results do not depend on the number of threads.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from plackett.compute.compiled import inner, jit
from plackett.compute.vectors import WIDTH, count_below, exp, larger, load, multiply_add, spread, store
from plackett.engines.panels import arrival_times, prefetch, uniform, winning_features
from plackett.model.draws import KEY_OF_TIMES
from plackett.model.race import Array

BLOCKS = 16  # blocks of a class that has all rows; smaller classes have fewer
AHEAD = 64  # prefetch distance of weights, in entries
LEAST = -1.7e308  # smaller values are −inf
_TIMES = np.uint64(KEY_OF_TIMES)


class SparseEntries(NamedTuple):
    """Non-zero entries of the rows, in canonical order."""

    values: npt.NDArray[np.floating]  # (entry,)
    columns: npt.NDArray[np.uint32]  # (entry + AHEAD,), 0 at the end
    start: npt.NDArray[np.int64]  # (row + 1,) first entry of each row
    weight: Array  # (row,)
    block_start: npt.NDArray[np.int64]  # (block + 1,) first row of each block
    block_class: npt.NDArray[np.int64]  # (block,) a block holds rows of one class


def blocks(codes: npt.NDArray[np.intp], n_groups: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """First rows and classes of the blocks, from sorted codes."""
    most = -(-len(codes) // BLOCKS)
    starts, classes, first = [0], [], 0
    for k, count in enumerate(np.bincount(codes, minlength=n_groups).tolist()):
        for start in range(0, count, most):
            starts.append(first + min(start + most, count))
            classes.append(k)
        first += count
    return np.array(starts), np.array(classes)


@inner
def _eight(table, k, at, count, room):
    """Load eight entries of a row from a column on, padded with −inf."""
    if count == WIDTH:
        return load(table, k * table.shape[1] + at)
    for i in range(WIDTH):
        room[i] = table[k, at + i] if i < count else -np.inf
    return load(room, 0)


@inner
def _relative(log_weights, scale):
    """Exponentials of eight numbers relative to a scale, as in `plackett.model.race.scaled`."""
    share = exp(larger(log_weights - spread(scale), spread(-690.0)))
    return share * count_below(spread(LEAST), log_weights)


@jit
def weigh(log_own, log_rival, own_scale, scale, first, last, pairs):
    """Write U_kj and Σ_l V_lj, up to their scales, side by side into pairs[k, j] for columns first ≤ j < last."""
    K = log_own.shape[0]
    sums, room = np.empty(WIDTH), np.empty(WIDTH)
    for at in range(first, last, WIDTH):
        count = min(WIDTH, last - at)
        whole = spread(0.0)
        for k in range(K):
            whole = whole + _relative(_eight(log_rival, k, at, count, room), scale)
        store(sums, 0, whole)
        for k in range(K):
            store(room, 0, _relative(_eight(log_own, k, at, count, room), own_scale[k]))
            for i in range(count):
                pairs[k, at + i, 0] = room[i]
                pairs[k, at + i, 1] = sums[i]


@inner
def _rates(rows, i, pairs, sums):
    """Return W_i·U and W_i·Σ_l V_l, each from two alternating sums.

    Prefetches the sums of the row's columns, and the weights of entries ahead.
    """
    start, stop = rows.start[i], rows.start[i + 1]
    even_own = odd_own = even_all = odd_all = 0.0
    for e in range(start, stop - 1, 2):
        w, j = np.float64(rows.values[e]), rows.columns[e]
        even_own, even_all = multiply_add(w, pairs[j, 0], even_own), multiply_add(w, pairs[j, 1], even_all)
        prefetch(sums, 2 * j)
        prefetch(pairs, 2 * rows.columns[e + AHEAD])
        w, j = np.float64(rows.values[e + 1]), rows.columns[e + 1]
        odd_own, odd_all = multiply_add(w, pairs[j, 0], odd_own), multiply_add(w, pairs[j, 1], odd_all)
        prefetch(sums, 2 * j)
        prefetch(pairs, 2 * rows.columns[e + 1 + AHEAD])
    if (stop - start) % 2 == 1:
        w, j = np.float64(rows.values[stop - 1]), rows.columns[stop - 1]
        even_own, even_all = multiply_add(w, pairs[j, 0], even_own), multiply_add(w, pairs[j, 1], even_all)
    return even_own + odd_own, even_all + odd_all


@inner
def _clear(sums):
    for j in range(sums.shape[0]):
        sums[j, 0] = 0.0
        sums[j, 1] = 0.0


@jit
def expect_blocks(rows, first, last, pairs, key, sums, value):
    """Write expected statistics, (10) and (18), of blocks first ≤ b < last: Σ claim·W and Σ z·W into sums[b]."""
    for b in range(first, last):
        weights, out = pairs[rows.block_class[b]], sums[b]
        _clear(out)
        value[b] = 0.0
        for i in range(rows.block_start[b], rows.block_start[b + 1]):
            own, whole = _rates(rows, i, weights, out)
            value[b] += rows.weight[i] * (math.log(own) - math.log(whole))
            supported = rows.weight[i] if own > 0.0 else 0.0  # otherwise the value is −inf
            claim, z = supported / max(own, 1e-300), supported / whole
            for e in range(rows.start[i], rows.start[i + 1]):
                w, j = np.float64(rows.values[e]), rows.columns[e]
                out[j, 0] = multiply_add(w, claim, out[j, 0])
                out[j, 1] = multiply_add(w, z, out[j, 1])


@inner
def _share_out(rows, i, weights, own, key, room, out):
    """Add the winning features of a row of weight w, a multinomial; `room` is scratch of three rows."""
    start, count = rows.start[i], rows.start[i + 1] - rows.start[i]
    for e in range(count):
        room[0, e] = rows.values[start + e]
        room[1, e] = weights[rows.columns[start + e], 0]
        room[2, e] = 0.0
    winning_features(rows.weight[i], room[0, :count], room[1, :count], own, key, np.uint64(i), room[2, :count])
    for e in range(count):
        out[rows.columns[start + e], 0] += room[2, e]


@jit
def sample_blocks(rows, first, last, pairs, key, sums, value):
    """Write sampled statistics, (11) and (12), of blocks first ≤ b < last: wins and Σ z·W into sums[b]."""
    longest = 0
    for i in range(rows.block_start[first], rows.block_start[last]):
        if rows.weight[i] != 1.0:
            longest = max(longest, rows.start[i + 1] - rows.start[i])
    room = np.empty((3, longest))
    for b in range(first, last):
        weights, out = pairs[rows.block_class[b]], sums[b]
        _clear(out)
        value[b] = 0.0
        for i in range(rows.block_start[b], rows.block_start[b + 1]):
            own, whole = _rates(rows, i, weights, out)
            value[b] += rows.weight[i] * (math.log(own) - math.log(whole))
            target = uniform(key, np.uint64(i)) * own
            z = -math.log(uniform(key ^ _TIMES, np.uint64(i))) / whole
            once = rows.weight[i] == 1.0
            if not once:
                z = arrival_times(rows.weight[i], key, np.uint64(i)) / whole
            climb, winner = 0.0, rows.start[i]
            for e in range(rows.start[i], rows.start[i + 1]):
                w, j = np.float64(rows.values[e]), rows.columns[e]
                climb = multiply_add(w, weights[j, 0], climb)
                winner += 1 if climb < target else 0
                out[j, 1] = multiply_add(w, z, out[j, 1])
            if once:
                out[rows.columns[min(winner, rows.start[i + 1] - 1)], 0] += 1.0
            elif rows.weight[i] > 0.0:
                _share_out(rows, i, weights, own, key, room, out)


@jit
def gather(rows, pairs, sums, expected, first, last, wins, exposure):
    """Add the sums of all blocks for columns first ≤ j < last into wins (K, p) and exposure (p,)."""
    for j in range(first, last):
        exposure[j] = 0.0
        for k in range(wins.shape[0]):
            wins[k, j] = 0.0
    for b in range(rows.block_class.size):
        k = rows.block_class[b]
        for j in range(first, last):
            wins[k, j] += sums[b, j, 0] * pairs[k, j, 0] if expected else sums[b, j, 0]
            exposure[j] += sums[b, j, 1]
