"""Loops over rows for the moves: W feature-major, sums of logarithms with one logarithm per thousands of terms.

Rows are sorted by class, and every class is padded to a multiple of eight rows on which W is 0 and all sums are 1.
Slices are taken before a loop, because only a loop over a whole array vectorises.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from plackett.compute.compiled import NOTHING, REAL, REALS, TABLE, WHOLES, apart, inner, jit, record
from plackett.compute.vectors import (
    LN2,
    WIDTH,
    count_below,
    exponent,
    larger,
    load,
    log,
    mantissa,
    multiply_add,
    smaller,
    smallest,
    spread,
    store,
    total,
)
from plackett.model.features import Features, runs
from plackett.model.race import Array

PAD = 8
RUN = 2048  # terms per logarithm: the product of their mantissas stays below 2^256 in each lane
WIDE = 1000  # number of features beyond which there is no partner kernel
CANCELLED = 1e-7  # a sum below this fraction of its peak is recomputed


class MoveColumns(NamedTuple):
    """Data as the moves read them, and column information of the feature map."""

    W: Array  # (p, N), rows sorted by class
    start: npt.NDArray[np.int64]  # (K + 1,) first row of each class
    size: npt.NDArray[np.int64]  # (K,) rows without padding
    mirror: npt.NDArray[np.int64]  # (p,) inverse of each feature; empty if the map has none
    near: Array  # (p, p) cumulated rows of a symmetric kernel that prefers correlated features; empty if p is large
    level: Array  # (p,) ln of the mean of each feature
    weight: Array  # (N,) weights of the rows, 0 on the padding; empty if all are 1
    class_weight: Array  # (K,) total weight of each class


COLUMNS = record(MoveColumns, TABLE, WHOLES, WHOLES, WHOLES, TABLE, REALS, REALS, REALS)


def lay_out(
    W: Features,
    codes: npt.NDArray[np.intp],
    n_classes: int,
    mirror: npt.NDArray[np.intp] | None,
    sample_weight: Array | None = None,
) -> MoveColumns:
    """Sort and pad the rows; W (n, p), the larger entries of each row near 1."""
    size = np.bincount(codes, minlength=n_classes)
    start = np.concatenate([[0], np.cumsum(-(-size // PAD) * PAD)])
    start[-1] += PAD if start[-1] % 512 == 0 else 0  # columns a power of two apart collide in the cache
    packed, weight = np.zeros((W.shape[1], start[-1])), np.zeros(0 if sample_weight is None else start[-1])
    given = np.ones(len(codes)) if sample_weight is None else sample_weight
    filled = start[:-1].copy()
    for place, some in runs(W):
        for k in np.unique(codes[place]):
            mine = some[codes[place] == k]
            packed[:, filled[k] : filled[k] + len(mine)] = mine.T
            if sample_weight is not None:
                weight[filled[k] : filled[k] + len(mine)] = given[place][codes[place] == k]
            filled[k] += len(mine)
    involution = np.empty(0, dtype=np.int64) if mirror is None else np.asarray(mirror, dtype=np.int64)
    kernel, level = partner_kernel(W, involution, given), np.log(relative_mean(W, given) + 1e-300)
    class_weight: Array = np.bincount(codes, given, n_classes).astype(np.float64)
    return MoveColumns(packed, start, size, involution, np.cumsum(kernel, axis=1), level, weight, class_weight)


def relative(W: npt.NDArray[np.floating]) -> Array:
    """Scale rows to mean 1."""
    return np.asarray(W / W.mean(axis=1, keepdims=True), dtype=np.float64)


def relative_mean(W: Features, weight: Array) -> Array:
    """Mean of each relative feature; rows are added one by one, so that batches have no effect."""
    total = np.zeros(W.shape[1])
    for place, some in runs(W):
        total = np.vstack([total, weight[place, None] * relative(some)]).sum(axis=0)
    return total / weight.sum()


def partner_kernel(W: Features, mirror: npt.NDArray[np.int64], weight: Array) -> Array:
    """Symmetric doubly stochastic kernel without diagonal: squared correlation of relative features, plus a floor.

    By symmetry the choice of a partner cancels in every acceptance ratio.
    """
    p = W.shape[1]
    if p == 1 or p > WIDE:
        return np.empty((0, 0))
    mean, products = relative_mean(W, weight), np.zeros((p, p))
    for place, some in runs(W):
        deviation = np.sqrt(weight[place, None]) * (relative(some) - mean)
        products += deviation.T @ deviation
    size = np.sqrt(np.diagonal(products))
    varying = size > 1e-9 * np.sqrt(weight.sum())
    affinity = np.zeros((p, p))
    pairs = np.ix_(varying, varying)
    affinity[pairs] = (products[pairs] / np.outer(size[varying], size[varying])) ** 2
    affinity += 0.3 * affinity.mean() + 1e-12
    affinity = (affinity + affinity.T) / 2
    if mirror.size:
        affinity = (affinity + affinity[mirror][:, mirror]) / 2
    np.fill_diagonal(affinity, 0.0)
    for _ in range(2000):
        root = np.sqrt(affinity.sum(axis=1))
        affinity = affinity / root[:, None] / root
        if np.abs(root - 1).max() < 1e-14:
            break
    return affinity


@inner
def _log_product(x, y, d, first, last):
    """Return Σ ln(x + d y) of the rows first ≤ i < last (at most RUN), and whether a product over- or underflowed.

    Products of four terms are multiplied by their mantissas, and their exponents are added.
    """
    by, powers, product = spread(d), spread(0.0), spread(1.0)
    low, high = spread(1.0), spread(1.0)
    i = first
    while i < last:
        one = multiply_add(by, load(y, i), load(x, i))
        two = spread(1.0)
        if i + 4 * WIDTH <= last:
            one = one * multiply_add(by, load(y, i + WIDTH), load(x, i + WIDTH))
            two = multiply_add(by, load(y, i + 2 * WIDTH), load(x, i + 2 * WIDTH))
            two = two * multiply_add(by, load(y, i + 3 * WIDTH), load(x, i + 3 * WIDTH))
            i += 3 * WIDTH
        i += WIDTH
        low, high = smaller(low, smaller(one, two)), larger(high, larger(one, two))
        both = one * two
        powers, product = powers + exponent(both), product * mantissa(both)
    inside = smallest(low) > 1e-145 and -smallest(spread(0.0) - high) < 1e145
    return total(log(product)) + total(powers) * LN2, inside


@inner
def _weighted_logs(x, y, d, weight):
    """Return Σ weight ln(x + d y), and True if all terms are within the range of `log`."""
    by, sums, low, high = spread(d), spread(0.0), spread(1.0), spread(1.0)
    for i in range(0, x.size, WIDTH):
        term = multiply_add(by, load(y, i), load(x, i))
        low, high = smaller(low, term), larger(high, term)
        sums = multiply_add(load(weight, i), log(term), sums)
    return total(sums), smallest(low) > 1e-290 and -smallest(spread(0.0) - high) < 1e290


@apart(REAL(REALS, REALS, REAL, REALS))
def sum_log(x, y, d, weight):
    """Return Σ weight ln(x + d y), −inf if a term is not positive; empty weights mean 1."""
    if weight.size:
        result, inside = _weighted_logs(x, y, d, weight)
        if inside:
            return result
        result = 0.0
        for i in range(x.size):
            term = x[i] + d * y[i]
            if weight[i] > 0.0:
                result += weight[i] * math.log(term) if term > 0.0 else -np.inf
        return result
    result, inside = 0.0, True
    for first in range(0, x.size, RUN):
        part, fits = _log_product(x, y, d, first, min(first + RUN, x.size))
        result += part
        inside = inside and fits
    if inside:
        return result
    result = 0.0
    for i in range(x.size):
        term = x[i] + d * y[i]
        result += math.log(term) if term > 0.0 else -np.inf
    return result


@inner
def shift(out, x, y, d, peak):
    """Set out = x + d y; return the number of rows that have cancelled."""
    by, bad = spread(d), spread(0.0)
    for i in range(0, out.size, WIDTH):
        value = multiply_add(by, load(y, i), load(x, i))
        bad = bad + count_below(value, spread(CANCELLED) * load(peak, i))
        store(out, i, value)
    return total(bad)


@inner
def shift_two(out, x, y, d, z, e, peak):
    """Set out = x + d y + e z; return the number of rows that have cancelled."""
    by, also, bad = spread(d), spread(e), spread(0.0)
    for i in range(0, out.size, WIDTH):
        value = multiply_add(also, load(z, i), multiply_add(by, load(y, i), load(x, i)))
        bad = bad + count_below(value, spread(CANCELLED) * load(peak, i))
        store(out, i, value)
    return total(bad)


@inner
def replace(out, x, new, old, peak):
    """Set out = x + new − old; return the number of rows that have cancelled."""
    bad = spread(0.0)
    for i in range(0, out.size, WIDTH):
        value = load(x, i) + (load(new, i) - load(old, i))
        bad = bad + count_below(value, spread(CANCELLED) * load(peak, i))
        store(out, i, value)
    return total(bad)


@inner
def rise(peak, x):
    """peak = max(peak, x)."""
    for i in range(0, peak.size, WIDTH):
        store(peak, i, larger(load(peak, i), load(x, i)))


@inner
def add(x, y, d):
    """x += d y."""
    for i in range(x.size):
        x[i] += d * y[i]


@inner
def add_four(out, w0, w1, w2, w3, d0, d1, d2, d3):
    """out += d0 w0 + d1 w1 + d2 w2 + d3 w3."""
    b0, b1, b2, b3 = spread(d0), spread(d1), spread(d2), spread(d3)
    for i in range(0, out.size, WIDTH):
        value = multiply_add(b1, load(w1, i), multiply_add(b0, load(w0, i), load(out, i)))
        store(out, i, multiply_add(b3, load(w3, i), multiply_add(b2, load(w2, i), value)))


@jit
def copy(out, x):
    """out = x."""
    for i in range(out.size):
        out[i] = x[i]


@inner
def copy_table(out, x):
    """out = x, row by row."""
    for k in range(out.shape[0]):
        copy(out[k], x[k])


@inner
def fill(out, value):
    """out = value."""
    for i in range(out.size):
        out[i] = value


@inner
def scale(x, d):
    """x *= d."""
    for i in range(x.size):
        x[i] *= d


@inner
def sum_of(x):
    """Σ x."""
    result = 0.0
    for i in range(x.size):
        result += x[i]
    return result


@inner
def least(x):
    """Return the smallest of positive numbers, whose bit patterns have the same order."""
    smallest = np.int64(0x7FF0000000000000)
    for i in range(x.size):
        smallest = min(smallest, np.float64(x[i]).view(np.int64))
    return np.int64(smallest).view(np.float64)


@inner
def pad(columns, x, value):
    """Write a value to the padding of all classes."""
    for k in range(columns.size.size):
        fill(x[columns.start[k] + columns.size[k] : columns.start[k + 1]], value)


@apart(NOTHING(COLUMNS, REALS, REALS), allocates=True)
def score(columns, weights, out):
    """Compute out_i = W_i·weights for all rows: large weights first, then only those that still matter to a double."""
    fill(out, 0.0)
    pad(columns, out, 1.0)
    chosen, used = np.zeros(4, dtype=np.int64), np.zeros(4)
    top = 0.0
    for j in range(weights.size):
        top = max(top, weights[j])
    upper, lower = np.inf, 1e-6 * top
    while lower < upper:
        m = 0
        for j in range(weights.size):
            if lower <= weights[j] < upper and weights[j] > 0.0:
                chosen[m], used[m] = j, weights[j]
                m += 1
            if m == 4 or (m > 0 and j == weights.size - 1):
                for i in range(m, 4):
                    used[i] = 0.0
                W = columns.W
                add_four(
                    out, W[chosen[0]], W[chosen[1]], W[chosen[2]], W[chosen[3]], used[0], used[1], used[2], used[3]
                )
                m = 0
        upper, lower = lower, 1e-17 * least(out)
    pad(columns, out, 1.0)
