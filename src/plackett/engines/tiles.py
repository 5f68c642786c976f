"""Classes on a GPU: rows in tiles of 32, with passes for several chains at once (``cuda/race.cu``).

Random numbers belong to (key, row) as in all engines, and sums are taken in fixed blocks of tiles. A draw equals that
of the reference up to the rounding of rates (float32 or float64, as the features), and is the same in every run.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import sparse

from plackett.data.observations import Observations
from plackett.engines.base import ClassRows, Features, Places, canonical_order, check_counts
from plackett.engines.device import check_fits, chip_bytes, free_bytes, gpu, kernel
from plackett.model.race import Array, Stats, Weights

LANES = 32  # rows per tile
BLOCK = 128  # tiles per block of sums
TOGETHER = 4  # maximum number of chains per pass over the rows
RESERVED = 1024  # bytes of shared memory reserved by the system per block
UPLOAD = 1 << 26  # bytes of rows per copy to the GPU
VALUE, EXPECT, SAMPLE = range(3)  # modes of a pass


class Blocks(NamedTuple):
    """Blocks of tiles, each block within one class."""

    first_tile: npt.NDArray[np.int64]
    first_row: npt.NDArray[np.int64]  # in canonical order
    n_rows: npt.NDArray[np.int32]
    label: npt.NDArray[np.int32]
    first_block: npt.NDArray[np.int32]  # (K + 1,) first block of each class


def blocks_of(counts: npt.NDArray[np.intp], size: int = BLOCK * LANES) -> Blocks:
    """Cut classes with these counts into blocks of at most `size` rows; each class begins with a new tile."""
    first_tile, first_row, n_rows, label, first_block = [], [], [], [], [0]
    tile = row = 0
    for k, count in enumerate(counts.tolist()):
        for start in range(0, count, size):
            first_tile.append(tile + start // LANES)
            first_row.append(row + start)
            n_rows.append(min(size, count - start))
            label.append(k)
        first_block.append(len(label))
        tile, row = tile + -(-count // LANES), row + count
    whole, short = np.int64, np.int32
    return Blocks(
        *map(np.array, (first_tile, first_row, n_rows, label, first_block), (whole, whole, short, short, short))
    )


def lay_out(rows: Any, xp: Any = np) -> Any:
    """Arrange rows (m, p), m a multiple of 32, as tiles (m/32, p, 32); lanes of feature j are rotated by 4 (j mod 8).

    A warp thus reads 32 rows of a feature, or 4 rows of 32 features, from different banks of shared memory.
    """
    m, p = rows.shape
    fours = rows.reshape(m // LANES, LANES, p).transpose(0, 2, 1).reshape(m // LANES, p, 8, 4)
    feature, four = xp.arange(p)[:, None], xp.arange(8)[None, :]
    return fours[:, feature, four ^ (feature & 7)].reshape(m // LANES, p, LANES)


class PassPlan(NamedTuple):
    """Compile-time sizes of a pass, named as in ``race.cu``."""

    WARPS: int
    STAGES: int
    HOLD: int
    LEAST_BLOCKS: int
    chip: int  # bytes of shared memory


@cache
def plan_pass(mode: int, p: int, n_chains: int, size: int, most: int) -> PassPlan | None:
    """Plan a pass for p features of `size` bytes and `most` bytes of shared memory; None if the weights do not fit.

    Tiles are loaded while others are processed. One chain waits for memory: a row then stays in registers, if it fits.
    """
    quads = -(-p // 4) * 4

    def chip(warps: int, stages: int) -> int:
        tiles = max(warps * stages * p * LANES * size, n_chains * 2 * p * 8 + 8)
        given_back = warps * (2 if mode == EXPECT else 1) * n_chains * LANES * size
        counts = n_chains * p * 8 if mode == SAMPLE else 0
        return -(-tiles // 16) * 16 + 2 * n_chains * quads * size + given_back + counts

    def blocks(taken: int) -> int:
        return min((most + RESERVED) // (taken + RESERVED), 4)

    hold = n_chains == 1 and p * size <= 512
    for warps, stages in ((4, 2), (2, 2), (1, 2), (4, 0)):
        taken = chip(warps, stages)
        if taken <= most:
            return PassPlan(warps, stages, int(hold and stages > 0), blocks(taken) if stages else 1, taken)
    return None


class CupyRows(ClassRows):
    """Tiles on the GPU with their passes.

    Parameters
    ----------
    tiles : CuPy array (tile, p, 32)
        Rows in canonical order, arranged by `lay_out`; a class begins with a new tile. Lanes without a row hold ones.
    counts : array (K,)
        Number of rows of each class.
    sample_weight : array (n,), optional
        Weights in canonical order; None if all are 1.
    order : array (n,)
        Input position of each row.
    places : array (n,) of uint32 or uint64, optional
        Positions among all rows if these are a part, in canonical order; random numbers depend on them.
    """

    def __init__(
        self,
        tiles: Any,
        counts: npt.NDArray[np.intp],
        sample_weight: Array | None,
        order: npt.NDArray[np.intp],
        places: Places | None = None,
    ):
        xp = gpu()
        self.tiles, self.order = tiles, order
        self.placed, self.places = places is not None, xp.asarray(np.zeros(1, np.uint32) if places is None else places)
        self.n_rows, self.n_groups, self.n_features = int(counts.sum()), len(counts), tiles.shape[1]
        self.sample_weight, self.work = sample_weight, self.n_rows * self.n_features
        self.n_seen = float(self.n_rows if sample_weight is None else sample_weight.sum())
        blocks = blocks_of(counts)
        self.blocks = Blocks(*map(xp.asarray, blocks))
        self.n_blocks = len(blocks.label)
        if sample_weight is None:
            self.weight, self.class_weight = xp.zeros(1), counts.astype(np.float64)
        else:
            self.weight = xp.asarray(sample_weight)
            codes = np.repeat(np.arange(len(counts)), counts)
            self.class_weight = np.bincount(codes, sample_weight, len(counts)).astype(np.float64)

    def set_threads(self, n_threads: int) -> None:
        """Do nothing: the GPU schedules its own threads."""

    def expect(self, weights: Weights) -> Stats:
        """Return expected wins and exposure."""
        return self._pass(EXPECT, [weights], [0])[0]

    def sample(self, weights: Weights, key: int) -> Stats:
        """Return sampled wins and exposure."""
        return self.sample_together([weights], [key])[0]

    def value(self, weights: Weights) -> float:
        """Return Σ_i ln(W_i·U_{Y_i}) − ln(W_i·Σ_l V_l)."""
        return self._pass(VALUE, [weights], [0])[0].value

    def sample_together(self, weights: Sequence[Weights], keys: Sequence[int]) -> list[Stats]:
        """Sample several chains, up to four per pass over the rows."""
        if self.sample_weight is not None:
            check_counts(self.sample_weight)
        together = TOGETHER
        while together > 1 and self._plan(SAMPLE, together) is None:
            together //= 2
        found: list[Stats] = []
        for i in range(0, len(weights), together):
            found += self._pass(SAMPLE, weights[i : i + together], keys[i : i + together])
        return found

    def _plan(self, mode: int, n_chains: int) -> PassPlan | None:
        return plan_pass(mode, self.n_features, n_chains, self.tiles.itemsize, chip_bytes())

    def _pass(self, mode: int, weights: Sequence[Weights], keys: Sequence[int]) -> list[Stats]:
        own, own_scale = zip(*(each.scaled_own for each in weights), strict=True)
        total, total_scale = zip(*(each.scaled_total for each in weights), strict=True)
        found = self.launch(mode, np.array(own), np.concatenate(total), np.array(keys, dtype=np.uint64)).get()
        stats = []
        for c in range(len(weights)):
            wins, exposure, value = np.split(found[:, c], [self.n_features, 2 * self.n_features], axis=1)
            for_all = np.broadcast_to(np.exp(-total_scale[c]) * exposure.sum(axis=0), wins.shape)
            offset = self.class_weight @ (own_scale[c] - total_scale[c])
            stats.append(Stats(wins, for_all, float(value.sum() + offset)))
        return stats

    def launch(self, mode: int, own: Array, total: Array, keys: npt.NDArray[np.uint64]) -> Any:
        """Compute wins, exposure and value on the GPU as sums (K, C, 2p + 1), from U (C, K, p) and Σ_l V_l (C, p)."""
        xp, (C, K, p) = gpu(), own.shape
        plan = self._plan(mode, C)
        assert plan is not None
        run = kernel(
            "race",
            ("draws", "race"),
            plan.chip,
            Real="float" if self.tiles.itemsize == 4 else "double",
            P=p,
            C=C,
            MODE=mode,
            WEIGHTED=int(self.sample_weight is not None),
            PLACED=int(self.placed),
            Place="unsigned" if self.places.itemsize == 4 else "u64",
            **{name: size for name, size in plan._asdict().items() if name != "chip"},
        )
        sent = xp.asarray(np.concatenate([own.ravel(), total.ravel(), keys.view(np.float64)]))
        on_gpu = sent[: C * K * p], sent[C * K * p : C * (K + 1) * p], sent[C * (K + 1) * p :]
        sums, columns = xp.empty((self.n_blocks, C, 2 * p + 1)), C * (2 * p + 1)
        blocks = self.blocks[:-1]
        run((self.n_blocks,), (32 * plan.WARPS,), (self.tiles, self.weight, self.places, *blocks, *on_gpu, np.int32(K),
            sums), shared_mem=plan.chip)  # fmt: skip
        out = xp.empty((K, C, 2 * p + 1))
        add = kernel("add_blocks", ("sums",))
        add((-(-columns // 32), K), (32, 32), (sums, self.blocks.first_block, np.int32(columns), out))
        return out


def bring_rows(features: Features, seen: Observations, places: Places | None, exact: bool) -> CupyRows:
    """Copy rows of classes to the GPU, in canonical order.

    Parameters
    ----------
    places : array (n,), optional
        Positions of these rows among all, if these are a part.
    exact : bool
        Store features in float64 whatever their type: maximisation to a tolerance of 1e-10 needs it, sampling does not.
    """
    if sparse.issparse(features):
        raise ValueError(
            "engine='cupy' holds dense features, and these are sparse. Use engine='auto', or a map with dense "
            "output, such as OneHotEncoder(sparse_output=False)."
        )
    xp, p = gpu(), features.shape[1]
    dtype = np.dtype(np.float32 if features.dtype == np.float32 and not exact else np.float64)
    if plan_pass(SAMPLE, p, 1, dtype.itemsize, chip_bytes()) is None:
        raise ValueError(f"engine='cupy' has no room for the weights of {p:,} features on the chip. Use engine='auto'.")
    codes, sample_weight = seen.class_codes, seen.counts
    order, _ = canonical_order(features, codes, sample_weight)
    counts = np.bincount(codes, minlength=seen.n_groups)
    n_tiles = int((-(-counts // LANES)).sum())
    needed = n_tiles * p * LANES * dtype.itemsize + 8 * len(codes) + 4 * UPLOAD
    check_fits(needed, free_bytes(), f"{len(codes):,} rows of {p:,} features", dtype.itemsize == 4 or exact)
    tiles, tile, row = xp.empty((n_tiles, p, LANES), dtype), 0, 0
    some = max(UPLOAD // (p * dtype.itemsize * LANES), 1) * LANES
    for count in counts.tolist():
        for start in range(0, count, some):
            end = min(start + some, count)
            rows = xp.ones((-(-(end - start) // LANES) * LANES, p), dtype)
            rows[: end - start] = xp.asarray(np.ascontiguousarray(features[order[row + start : row + end]], dtype))
            tiles[tile + start // LANES : tile + -(-end // LANES)] = lay_out(rows, xp)
        tile, row = tile + -(-count // LANES), row + count
    weight = None if sample_weight is None else sample_weight[order]
    found = CupyRows(tiles, counts, weight, order, None if places is None else places[order])
    return found.describe_in_order(features, seen, order)
