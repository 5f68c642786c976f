"""The fast engine: rows sorted by class, packed in feature-major panels of 64, compiled loops across rows.

Within a panel every loop runs over the 64 rows with λ_kj a scalar, so it vectorises; C_i of (11) is a
branch-free count of running sums below a uniform target. A panel is read from memory once: the second
loop finds it in the first cache and asks for the next panel meanwhile; features are taken four at a time,
so that a row's sums are loaded and stored a quarter as often. Sums are taken in fixed blocks of panels, and the
random numbers belong to the rows, so that results do not depend on the number of threads.
"""

from __future__ import annotations

import itertools
import math
import os
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from plackett.compiled import FAST, call, jit
from plackett.engines.base import KEY_OF_TIMES, MIX_1, MIX_2, STEP, canonical_order
from plackett.model.race import Array, Stats, Weights, scaled

LANES = 64
BLOCK = 64  # panels in a block: the unit of summation and of work for a thread
SMALL = 1 << 18  # entries of W below which handing out blocks costs more than it saves

_STEP, _MIX_1, _MIX_2, _TIMES = (np.uint64(c) for c in (STEP, MIX_1, MIX_2, KEY_OF_TIMES))


class Panels(NamedTuple):
    """The packed rows. Lanes beyond `fill` hold ones and have weight zero."""

    values: npt.NDArray[np.floating]  # (panel, feature, lane)
    fill: npt.NDArray[np.int64]  # (panel,) rows in the panel
    first_row: npt.NDArray[np.int64]  # (panel,) position of its first row in canonical order
    block_start: npt.NDArray[np.int64]  # (block + 1,) first panel of each block
    block_class: npt.NDArray[np.int64]  # (block,) a block holds rows of one class
    weight: Array  # (panel, lane)


def pack(
    features: npt.NDArray[np.floating],
    codes: npt.NDArray[np.intp],
    sample_weight: Array | None,
    n_classes: int,
) -> Panels:
    """Sort rows into canonical order and lay them out in panels."""
    order, _ = canonical_order(features, codes)
    first_row: list[int] = []
    fill: list[int] = []
    block_start, block_class = [0], []
    start = 0
    for k, count in enumerate(np.bincount(codes, minlength=n_classes).tolist()):
        panel_rows = range(start, start + count, LANES)
        first_row.extend(panel_rows)
        fill.extend(min(LANES, start + count - row) for row in panel_rows)
        for first in range(0, len(panel_rows), BLOCK):
            block_start.append(block_start[-1] + min(BLOCK, len(panel_rows) - first))
            block_class.append(k)
        start += count
    values = np.ones((len(fill), features.shape[1], LANES), dtype=features.dtype)
    weight = np.zeros((len(fill), LANES))
    for q, (row, m) in enumerate(zip(first_row, fill, strict=True)):
        rows = order[row : row + m]
        values[q, :, :m] = features[rows].T
        weight[q, :m] = 1.0 if sample_weight is None else sample_weight[rows]
    return Panels(values, np.array(fill), np.array(first_row), np.array(block_start), np.array(block_class), weight)


@intrinsic
def prefetch(typingctx: Any, array: Any, index: Any) -> Any:
    """Ask for the cache line of array.flat[index]; an address beyond the end is harmless."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        byte, int32 = ir.IntType(8).as_pointer(), ir.IntType(32)
        hint = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(ir.VoidType(), [byte, int32, int32, int32]), "llvm.prefetch.p0"
        )
        builder.call(hint, [builder.bitcast(builder.gep(data, [args[1]]), byte), int32(0), int32(3), int32(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp), codegen


@jit(fastmath=FAST, inline="always")
def uniform(key, row):
    """The same numbers as `plackett.engines.base.uniforms`."""
    bits = key + row * _STEP
    bits = (bits ^ (bits >> np.uint64(30))) * _MIX_1
    bits = (bits ^ (bits >> np.uint64(27))) * _MIX_2
    bits = bits ^ (bits >> np.uint64(31))
    return (np.float64(np.int64(bits >> np.uint64(12))) + 0.5) * 2.0**-52


@jit(fastmath=FAST, inline="always")
def log(x):
    """ln x of a normal positive double, without a branch or a call, so that it vectorises.

    x = 2^e m with m in [√½, √2), and ln m = 2 artanh(s) with s = (m−1)/(m+1), |s| < 0.172: ten terms of the
    series reach the last bit.
    """
    bits = np.float64(x).view(np.int64)
    e = (bits - np.int64(0x3FE6A09E667F3BCD)) >> np.int64(52)
    m = np.int64(bits - (e << np.int64(52))).view(np.float64)
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    high = 1 / 11 + z * (1 / 13 + z * (1 / 15 + z * (1 / 17 + z * (1 / 19))))
    low = 1 / 3 + z * (1 / 5 + z * (1 / 7 + z * (1 / 9 + z * high)))
    return np.float64(e) * 0.6931471805599453 + 2.0 * s * (1.0 + z * low)


@jit(fastmath=FAST, inline="always")
def _sums(panel, own, total, T, R):
    """T_r = W_r·U and R_r = W_r·Σ_l V_l for the rows of a panel, four features at a time."""
    p = panel.shape[0]
    fours = p - p % 4
    for r in range(LANES):
        T[r] = 0.0
        R[r] = 0.0
    for j in range(0, fours, 4):
        u0, u1, u2, u3 = own[j], own[j + 1], own[j + 2], own[j + 3]
        v0, v1, v2, v3 = total[j], total[j + 1], total[j + 2], total[j + 3]
        for r in range(LANES):
            w0, w1 = np.float64(panel[j, r]), np.float64(panel[j + 1, r])
            w2, w3 = np.float64(panel[j + 2, r]), np.float64(panel[j + 3, r])
            T[r] += w0 * u0 + w1 * u1 + w2 * u2 + w3 * u3
            R[r] += w0 * v0 + w1 * v1 + w2 * v2 + w3 * v3
    for j in range(fours, p):
        u0, v0 = own[j], total[j]
        for r in range(LANES):
            w0 = np.float64(panel[j, r])
            T[r] += w0 * u0
            R[r] += w0 * v0


@jit(fastmath=FAST, inline="always")
def _log_shares(weight, T, R):
    """Σ_r weight_r ln(T_r / R_r)."""
    margin = 1.0
    total = 0.0
    for r in range(LANES):
        margin = min(margin, T[r] - 1e-290 * R[r])
    if margin > 0.0:
        for r in range(LANES):
            total += weight[r] * log(T[r] / R[r])
    else:
        for r in range(LANES):
            if weight[r] > 0.0:
                total += weight[r] * (math.log(T[r]) - math.log(R[r]))
    return total


@jit(fastmath=FAST, inline="always")
def _read_ahead(values, panel, j):
    start = (panel * values.shape[1] + j) * LANES
    for lane in range(0, LANES, 64 // values.itemsize):
        prefetch(values, start + lane)


@jit(fastmath=FAST, forceinline=True)
def expect_blocks(panels, first, last, own, total, wins, exposure, value):
    """Expected statistics, (10) and (18), of blocks first ≤ b < last into row b of the outputs."""
    p = panels.values.shape[1]
    T, R, claim, z = np.empty(LANES), np.empty(LANES), np.empty(LANES), np.empty(LANES)
    for b in range(first, last):
        u = own[panels.block_class[b]]
        wins[b] = 0.0
        exposure[b] = 0.0
        value[b] = 0.0
        for q in range(panels.block_start[b], panels.block_start[b + 1]):
            panel = panels.values[q]
            _sums(panel, u, total, T, R)
            value[b] += _log_shares(panels.weight[q], T, R)
            for r in range(LANES):
                supported = panels.weight[q, r] if T[r] > 0.0 else 0.0  # else the value is −inf
                claim[r] = supported / max(T[r], 1e-300)
                z[r] = supported / R[r]
            for j in range(p):
                n = 0.0
                s = 0.0
                _read_ahead(panels.values, q + 1, j)
                for r in range(LANES):
                    w = np.float64(panel[j, r])
                    n += claim[r] * w
                    s += z[r] * w
                wins[b, j] += n * u[j]
                exposure[b, j] += s


@jit(fastmath=FAST, forceinline=True)
def sample_blocks(panels, first, last, own, total, key, wins, exposure, value):
    """Sampled statistics, (11) and (12), of blocks first ≤ b < last into row b of the outputs."""
    p = panels.values.shape[1]
    T, R, climb = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    target, below, z = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    for b in range(first, last):
        u = own[panels.block_class[b]]
        wins[b] = 0.0
        exposure[b] = 0.0
        value[b] = 0.0
        for q in range(panels.block_start[b], panels.block_start[b + 1]):
            m = panels.fill[q]
            row = panels.first_row[q]
            _sums(panels.values[q], u, total, T, R)
            value[b] += _log_shares(panels.weight[q], T, R)
            for r in range(LANES):
                climb[r] = 0.0
                below[r] = 0.0
                target[r] = uniform(key, np.uint64(row + r)) * T[r]
                z[r] = -log(uniform(key ^ _TIMES, np.uint64(row + r))) / R[r]
            z[m:] = 0.0
            _climb(panels.values, q, u, target, z, climb, below, exposure[b])
            for r in range(m):
                wins[b, min(int(below[r]), p - 1)] += 1.0


@jit(fastmath=FAST, inline="always")
def _climb(values, q, own, target, z, climb, below, exposure):
    """Count the running sums of W_rj U_j below each target, add Σ_r z_r W_rj to exposure; four features at a time."""
    panel = values[q]
    p = panel.shape[0]
    fours = p - p % 4
    for j in range(0, fours, 4):
        u0, u1, u2, u3 = own[j], own[j + 1], own[j + 2], own[j + 3]
        s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
        for ahead in range(j, j + 4):
            _read_ahead(values, q + 1, ahead)
        for r in range(LANES):
            w0, w1 = np.float64(panel[j, r]), np.float64(panel[j + 1, r])
            w2, w3 = np.float64(panel[j + 2, r]), np.float64(panel[j + 3, r])
            c0 = climb[r] + w0 * u0
            c1 = c0 + w1 * u1
            c2 = c1 + w2 * u2
            c3 = c2 + w3 * u3
            climb[r] = c3
            below[r] += (
                (1.0 if c0 < target[r] else 0.0)
                + (1.0 if c1 < target[r] else 0.0)
                + (1.0 if c2 < target[r] else 0.0)
                + (1.0 if c3 < target[r] else 0.0)
            )
            s0 += z[r] * w0
            s1 += z[r] * w1
            s2 += z[r] * w2
            s3 += z[r] * w3
        exposure[j] += s0
        exposure[j + 1] += s1
        exposure[j + 2] += s2
        exposure[j + 3] += s3
    for j in range(fours, p):
        u0, s0 = own[j], 0.0
        _read_ahead(values, q + 1, j)
        for r in range(LANES):
            w0 = np.float64(panel[j, r])
            climb[r] += w0 * u0
            below[r] += 1.0 if climb[r] < target[r] else 0.0
            s0 += z[r] * w0
        exposure[j] += s0


class PanelRows:
    """Packed rows with their passes; large data are shared out to threads block by block."""

    def __init__(self, panels: Panels, n_classes: int):
        self.panels = panels
        self.n_classes = n_classes
        self.n_rows = int(panels.fill.sum())
        self.n_features = panels.values.shape[1]
        per_panel = panels.weight.sum(axis=1)
        self.class_weight = np.zeros(n_classes)
        np.add.at(self.class_weight, np.repeat(panels.block_class, np.diff(panels.block_start)), per_panel)
        self.set_threads(1 if panels.values.size < SMALL else cores())

    def set_threads(self, n_threads: int) -> None:
        """Share passes out to so many threads; the results stay the same."""
        self.n_threads = n_threads
        self._pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None

    def _pass(self, kernel: Any, weights: Weights, *key: np.uint64) -> Stats:
        own, own_scale = scaled(weights.log_own)
        total, total_scale = scaled(weights.log_total)
        n_blocks = len(self.panels.block_class)
        wins = np.empty((n_blocks, self.n_features))
        exposure = np.empty((n_blocks, self.n_features))
        value = np.empty(n_blocks)

        def work(bounds: tuple[int, int]) -> None:
            call(kernel, self.panels, *bounds, own, total[0], *key, wins, exposure, value)

        if self._pool is None:
            work((0, n_blocks))
        else:
            cuts = np.linspace(0, n_blocks, min(n_blocks, 8 * self.n_threads) + 1).astype(int).tolist()
            list(self._pool.map(work, itertools.pairwise(cuts)))
        by_class = np.zeros((self.n_classes, self.n_features))
        np.add.at(by_class, self.panels.block_class, wins)
        offset = self.class_weight @ (own_scale - total_scale)
        return Stats(by_class, np.exp(-total_scale) * exposure.sum(axis=0)[None, :], float(value.sum() + offset))

    def expect(self, weights: Weights) -> Stats:
        """Expected wins and exposure."""
        return self._pass(expect_blocks, weights)

    def sample(self, weights: Weights, key: int) -> Stats:
        """Sampled wins and exposure."""
        return self._pass(sample_blocks, weights, np.uint64(key))


class NumbaEngine:
    """Compiled passes on all cores."""

    def prepare(
        self,
        features: npt.NDArray[np.floating],
        codes: npt.NDArray[np.intp],
        sample_weight: Array | None,
        n_classes: int,
    ) -> PanelRows:
        """Pack the rows."""
        return PanelRows(pack(features, codes, sample_weight, n_classes), n_classes)


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
