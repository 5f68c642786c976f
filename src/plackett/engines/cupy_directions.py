"""Features exp(x·β) on a GPU: ln p(Y|β, λ) and its gradient for all chains, in one pass over the rows.

In float32, if columns and components are few enough for a tile of rows to fit in shared memory, one kernel does
everything (``cuda/gradient.cu``). Otherwise scores and slopes are library matrix products, and `class_sums` computes
the steps between them with array operations of CuPy or NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plackett.data.observations import Observations
from plackett.engines.device import check_fits, chip_bytes, free_bytes, gpu, kernel
from plackett.engines.exponential import RAREST, RAREST_FLOAT
from plackett.engines.tiles import Blocks, blocks_of
from plackett.model.features import RUN
from plackett.model.race import Array, Slopes

BLOCK = 2048  # rows per block of sums
TOGETHER = 4  # maximum number of chains per pass over the rows
BEYOND = 1024  # rows of zeros at the end, so that the last tile is complete
ABSENT = -1e30  # ln Λ of a padding component
PRODUCTS = 1 << 28  # bytes of scores per batch of library products


class GradientPlan(NamedTuple):
    """Compile-time sizes of the kernel, named as in ``gradient.cu``."""

    DPAD: int
    M: int
    C: int
    ROWS: int
    WARPS: int
    TF: int
    TM: int
    SPLIT: int
    chip: int  # bytes of shared memory


@cache
def plan_gradient(d: int, n_components: int, n_chains: int, most: int) -> GradientPlan | None:
    """Plan for d columns and `most` bytes of shared memory; None if a tile of rows does not fit."""
    DPAD, M, C = d + (4 - d) % 8, -(-n_components // 4) * 4, n_chains
    if M > 48:
        return None
    ROWS = 2 if M <= 24 else 1
    WARPS = C * max(8 // ROWS // C, 1)
    tile, CM = 32 * ROWS * WARPS // C, C * M
    chip = 4 * (2 * tile * DPAD + DPAD * CM + 2 * CM + tile * (CM if CM % 8 else CM + 4))
    found = []
    for TF in range(1, 5):
        for TM in range(1, 6):
            squares = -(-DPAD // (4 * TF)) * -(-CM // (4 * TM))
            if squares <= 32 * WARPS and TF * TM <= 5:
                SPLIT = min(32 * WARPS // squares, tile)
                work = -(-tile // SPLIT) * (16 * TF * TM + 2 * (TF + TM))
                found.append((work, TF, TM, SPLIT))
    return GradientPlan(DPAD, M, C, ROWS, WARPS, *min(found)[1:], chip) if found and chip <= most else None


def votes_and_totals(log_weights: Array, rarest: float) -> tuple[Array, Array]:
    """Return θ_kj = λ_kj/Λ_j and ln Λ_j of ln λ (C, K, M); votes are at least e^rarest of the component's largest."""
    peak = log_weights.max(axis=1, keepdims=True)
    weights = np.exp(np.maximum(log_weights - peak, rarest))
    whole = weights.sum(axis=1, keepdims=True)
    return weights / whole, (peak + np.log(whole))[:, 0]


def class_sums(X: Any, weight: Any, beta: Any, votes: Any, log_total: Any, xp: Any = np) -> tuple[Any, ...]:
    """For rows X (n, d) of one class, return Xᵀw(ρ − π) (C, M, d), Σ wρ/θ and Σ wπ (C, M), Σ w ln p (C,).

    Weights are (n, 1), or (n, C) if each chain has its own. β (C, M, d), θ of the class (C, M), ln Λ (C, M).
    """
    C, M, d = beta.shape
    score = (X @ beta.reshape(C * M, d).T).reshape(-1, C, M) + log_total
    score -= score.max(axis=2, keepdims=True)
    e = xp.exp(score, out=score)
    every, own = e.sum(axis=2), xp.einsum("ncm,cm->nc", e, votes)
    value = (weight * xp.log(own / every)).astype(np.float64).sum(axis=0)
    for_own, for_all = weight / own, weight / every
    wins = xp.matmul(for_own.T[:, None, :], e.transpose(1, 0, 2))[:, 0]
    gates = xp.matmul(for_all.T[:, None, :], e.transpose(1, 0, 2))[:, 0]
    e *= votes * for_own[:, :, None] - for_all[:, :, None]
    slopes = (e.reshape(-1, C * M).T @ X).reshape(C, M, d)
    return slopes, wins, gates, value


def mean_votes(Z: Any, directions: Any, log_weights: Any, xp: Any = np) -> Any:
    """Average Σ_j softmax_j(z·β_j + ln Λ_j) λ_kj/Λ_j (n, K) over draws of β (S, M, d) and ln λ (S, K, M)."""
    S, M, d = directions.shape
    peak = log_weights.max(axis=1, keepdims=True)
    votes = xp.exp(log_weights - peak)
    whole = votes.sum(axis=1, keepdims=True)
    score = (Z @ directions.reshape(S * M, d).T).reshape(-1, S, M) + (peak + xp.log(whole))[:, 0]
    score -= score.max(axis=2, keepdims=True)
    gates = xp.exp(score, out=score)
    gates /= gates.sum(axis=2, keepdims=True) * S
    return gates.reshape(-1, S * M) @ (votes / whole).transpose(0, 2, 1).reshape(S * M, -1)


def mean_votes_on_gpu(Z: Array, directions: Array, log_weights: Array) -> Array:
    """Compute `mean_votes` on the GPU, in batches of rows that fit in memory."""
    xp, some = gpu(), max(PRODUCTS // (8 * directions.shape[0] * directions.shape[1]), RUN)
    draws = xp.asarray(directions), xp.asarray(log_weights)
    rows = (xp.asarray(Z[start : start + some]) for start in range(0, len(Z), some))
    return np.concatenate([mean_votes(each, *draws, xp).get() for each in rows])


class GradientRoom(NamedTuple):
    """Inputs and outputs of a pass for C chains on the GPU; components are padded to a multiple of four."""

    beta: Any  # (C, M, d)
    votes: Any  # (C, K, M)
    log_total: Any  # (C, M)
    sums: Any  # (K, columns): for each class Xᵀw(ρ − π) (C, M, d), Σ wρ/θ and Σ wπ (C, M), Σ w ln p (C,)


def split_sums(sums: Any, n_chains: int, n_components: int, d: int) -> tuple[Any, Any, Any, Any]:
    """Split sums into views Xᵀw(ρ − π) (K, C, M, d), Σ wρ/θ and Σ wπ (K, C, M), and Σ w ln p (K, C)."""
    K, size = len(sums), n_chains * n_components
    wins, gates = sums[:, size * d : size * (d + 1)], sums[:, size * (d + 1) : size * (d + 2)]
    each = (K, n_chains, n_components)
    return sums[:, : size * d].reshape(*each, d), wins.reshape(each), gates.reshape(each), sums[:, size * (d + 2) :]


class CupyDirections:
    """Covariates (n, d) on the GPU, sorted by class, with their pass.

    Rows have one weight for all chains, weight (1, n), or one for each, (C, n). `order` sorts the task's rows by class;
    None if they are sorted.
    """

    flight: tuple[str, str] = ("class_flight", "flight_over_classes")

    def __init__(
        self,
        X: Any,
        weight: Any,
        order: npt.NDArray[np.intp] | None,
        counts: npt.NDArray[np.intp],
        n_columns: int,
    ):
        xp = gpu()
        self.X, self.weight, self.order, self.counts, self.n_columns = X, weight, order, counts, n_columns
        self.n_rows = int(counts.sum())
        blocks = blocks_of(counts, BLOCK)
        self.n_blocks, self.blocks = len(blocks.label), Blocks(*map(xp.asarray, blocks))
        self.rarest = RAREST if X.itemsize == 8 else RAREST_FLOAT

    def packed_for(self, n_components: int, dtype: npt.DTypeLike) -> tuple[Any, ...] | None:
        """Return None: chains are not compiled."""
        return None

    def reweighted(self, weights: Sequence[Array]) -> CupyDirections:
        """Return the same rows with weights (n,) of each chain, in the order of the task."""
        found, xp = copy(self), gpu()
        found.weight = xp.zeros((len(weights), self.n_rows + BEYOND), self.X.dtype)
        for c, weight in enumerate(weights):
            found.weight[c, : self.n_rows] = xp.asarray(sorted_by(self.order, weight).astype(self.X.dtype))
        return found

    def gradient(self, beta: Array, log_weights: Array) -> Slopes:
        """Return ln p(Y|β, λ) and its gradient, for β (M, d) and ln λ (K, M)."""
        value, slopes, in_log_weights = self.gradients(beta[None], log_weights[None])
        return Slopes(float(value[0]), slopes[0], in_log_weights[0])

    def gradients(self, beta: Array, log_weights: Array) -> tuple[Array, Array, Array]:
        """Return values (C,) and slopes (C, M, d) and (C, K, M) of all chains, for β (C, M, d) and ln λ (C, K, M)."""
        found = []
        for c in range(0, len(beta), TOGETHER):
            found.append(self._gradients(beta[c : c + TOGETHER], log_weights[c : c + TOGETHER]))
        value, slopes, in_log_weights = (np.concatenate(each) for each in zip(*found, strict=True))
        return value, slopes, in_log_weights

    def _gradients(self, beta: Array, log_weights: Array) -> tuple[Array, Array, Array]:
        xp, (C, K, M) = gpu(), log_weights.shape
        votes, log_total = votes_and_totals(log_weights, self.rarest)
        room = self.room(C, K, M)
        room.beta[:, :M], room.votes[:, :, :M], room.log_total[:, :M] = map(xp.asarray, (beta, votes, log_total))
        self.run(room)
        slopes, wins, gates, value = split_sums(room.sums.get(), *room.beta.shape)
        in_log_weights = votes * (wins.transpose(1, 0, 2) - gates.sum(axis=0)[:, None])[..., :M]
        return value.sum(axis=0), slopes.sum(axis=0)[:, :M], in_log_weights

    def room(self, n_chains: int, n_groups: int, n_components: int) -> GradientRoom:
        """Allocate arrays for at most four chains."""
        xp, (C, K, M), d = gpu(), (n_chains, n_groups, -(-n_components // 4) * 4), self.n_columns
        sums = xp.zeros((K, C * M * (d + 2) + C))
        return GradientRoom(xp.zeros((C, M, d)), xp.zeros((C, K, M)), xp.full((C, M), ABSENT), sums)

    def run(self, room: GradientRoom) -> None:
        """Compute the sums of each class."""
        C, M, d = room.beta.shape
        plan = plan_gradient(d, M, C, chip_bytes()) if self.X.itemsize == 4 else None
        if plan is None:
            self._by_products(room)
        else:
            self._fused(plan, room)

    def handed(self, room: GradientRoom) -> tuple[Any, ...]:
        """Arguments of `flight_over_classes`, apart from the prior."""
        return np.int32(room.beta.shape[1]), np.float64(self.rarest), room.sums, *room[:3]

    def _fused(self, plan: GradientPlan, room: GradientRoom) -> None:
        """Run one kernel, then add the sums of its blocks."""
        (K, columns), sums = room.sums.shape, gpu().empty((self.n_blocks, room.sums.shape[1]))
        sizes = {name: value for name, value in plan._asdict().items() if name != "chip"}
        run = kernel("gradient", ("gradient",), plan.chip, D=self.n_columns, **sizes)
        blocks = self.blocks.first_row, self.blocks.n_rows, self.blocks.label
        apart = np.int64(self.weight.shape[1] if len(self.weight) > 1 else 0)  # between weights of chains
        run((self.n_blocks,), (32 * plan.WARPS,), (self.X, self.weight, apart, *blocks, *room[:3], np.int32(K), sums),
            shared_mem=plan.chip)  # fmt: skip
        add = kernel("add_blocks", ("sums",))
        add((-(-columns // 32), K), (32, 32), (sums, self.blocks.first_block, np.int32(columns), room.sums))

    def _by_products(self, room: GradientRoom) -> None:
        """Compute by library matrix products, in batches of rows that fit in memory."""
        dtype, (C, M, d) = self.X.dtype, room.beta.shape
        beta, votes, log_total = (each.astype(dtype) for each in room[:3])
        wholes, row = split_sums(room.sums, C, M, d), 0
        some = max(PRODUCTS // (C * M * dtype.itemsize), RUN)
        for k, count in enumerate(self.counts.tolist()):
            for whole in wholes:
                whole[k] = 0.0
            for start in range(row, row + count, some):
                rows = slice(start, min(start + some, row + count))
                found = class_sums(self.X[rows, :d], self.weight[:, rows].T, beta, votes[:, k], log_total, gpu())
                for whole, part in zip(wholes, found, strict=True):
                    whole[k] += part
            row += count


def sorted_by(order: npt.NDArray[np.intp] | None, rows: Array) -> Array:
    """Return rows in this order; None: as they are."""
    return rows if order is None else rows[order]


def bring_covariates(X: Array, seen: Observations, dtype: np.dtype[Any]) -> CupyDirections:
    """Copy rows to the GPU by class, in input order; columns are padded to 4 mod 8."""
    xp, (n, d), codes = gpu(), X.shape, seen.class_codes
    order = None if (codes[1:] >= codes[:-1]).all() else np.argsort(codes, kind="stable")
    wide = d + (4 - d) % 8
    needed = (n + BEYOND) * (wide + 1) * dtype.itemsize + (2 * PRODUCTS if dtype.itemsize == 8 else 0)
    check_fits(needed, free_bytes(), f"{n:,} rows of {d:,} covariates", dtype.itemsize == 4)
    values, weights = np.zeros((n + BEYOND, wide), dtype), np.zeros((1, n + BEYOND), dtype)
    values[:n, :d] = sorted_by(order, X)
    weights[0, :n] = sorted_by(order, seen.weights)
    counts = np.bincount(codes, minlength=seen.n_groups)
    return CupyDirections(xp.asarray(values), xp.asarray(weights), order, counts, d)
