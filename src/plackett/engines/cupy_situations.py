"""Choices and rankings on a GPU: the passes of `plackett.engines.situations` by the kernels of ``cuda/situations.cu``.

``cuda/situation_gradient.cu`` computes the gradient of learned directions, for several chains in one pass.

Each thread handles one entry or situation. Sums over the entries of a group are taken in fixed blocks, and sums over
the entries of a row in their order, so that a pass gives the same bits every time. W keeps its type, float32 or
float64; everything else is float64.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from plackett.data.observations import Observations
from plackett.engines.device import check_fits, free_bytes, gpu, kernel
from plackett.engines.situations import NumpySituations
from plackett.engines.tiles import Blocks, blocks_of
from plackett.model.features import Features
from plackett.model.race import Array, Slopes, Weights, scaled
from plackett.responses import Choice, Ranking
from plackett.responses.base import Whole

BLOCK = 1024  # entries per block of sums
ROOM = 1536  # bytes per row for the scores of four chains with many components
THREADS, WIDTH = 256, 128  # threads per block; per block that adds entries. Named as in ``block.cu``


def by_place(places: Any, size: int) -> tuple[Any, Any]:
    """Sort entries by position; return their order and the start of each of `size` positions."""
    counts = np.bincount(places, minlength=size)
    return np.argsort(places, kind="stable").astype(np.int32), np.append(0, np.cumsum(counts)).astype(np.int32)


def known(seen: Observations) -> bool:
    """True if the GPU has kernels for these outcomes, that is, without ties."""
    return not seen.response.absolute and bool((seen.all_situations.outcomes.sizes <= 1).all())


class SituationRoom(NamedTuple):
    """Inputs, outputs and scratch of the gradient for C chains on the GPU."""

    beta: Any  # (C, M, d)
    log_weights: Any  # (C, K, M)
    totals: Any  # (C, 2, K): used by trajectories only
    values: Any  # (C, blocks of situations): their sum is ln p(Y|β, λ)
    in_beta: Any  # (C, M, d): slopes
    in_log_weights: Any  # (K, C, M)
    scores: Any  # (rows, C·M): x·β, then the slope in it
    log_rate: Any  # (C, E)
    slope: Any  # (C, E): n − r s
    sums: Any  # (blocks of entries, C·M)


class CupySituations(NumpySituations):
    """Situations on the GPU with their passes."""

    flight: tuple[str, str] = ("situation_flight", "flight_over_situations")

    def __init__(self, features: Features, seen: Observations):
        n_groups = seen.n_groups
        if not known(seen):
            raise ValueError("engine='cupy' knows choices and rankings without ties. Use engine='auto'.")
        gpu()
        super().__init__(features, seen if isinstance(seen.response, Choice) else replace(seen, response=Ranking()))
        xp, (R, p), E = gpu(), self.features.shape, len(self.group)
        needed = self.features.nbytes + 8 * R * p + 68 * E + 48 * self.n_rows
        check_fits(needed, free_bytes(), f"{self.n_rows:,} situations of {E:,} entries and {p:,} features",
                   self.features.itemsize == 4)  # fmt: skip
        self.W = xp.asarray(self.features)
        start, bucket_start, _, counts = self.outcomes
        whole = (np.asarray(each, dtype=np.int32) for each in (start, np.diff(bucket_start), self.group, self.row))
        self.start, self.placed, self.of_group, self.of_row = map(xp.asarray, whole)
        self.counts = xp.asarray(np.asarray(counts, dtype=np.float64))
        self.by_group, _ = by_place(self.group, n_groups)
        self.by_group = xp.asarray(self.by_group)
        self.by_row, self.first_of_row = map(xp.asarray, by_place(self.row, R))
        blocks = blocks_of(np.bincount(self.group, minlength=n_groups), BLOCK)
        self.n_blocks, self.blocks = len(blocks.label), Blocks(*map(xp.asarray, blocks))
        self.number, self.place = xp.arange(self.n_rows), xp.arange(E)

    def put(self, places: tuple[Whole, Whole]) -> None:
        """Set the positions of these situations and their first entries among all, in input order.

        Random numbers depend on these positions.
        """
        (number, first_entry), start, xp = places, self.outcomes.start, gpu()
        self.number = xp.asarray(number[self.order])
        self.place = xp.asarray(np.arange(start[-1]) + np.repeat(first_entry[self.order] - start[:-1], np.diff(start)))

    def _run(self, name: str, size: int, *arguments: object, threads: int = THREADS) -> None:
        """Run a kernel with so many threads, in blocks of THREADS, or with so many blocks of another size."""
        real = "float" if self.W.itemsize == 4 else "double"
        grid = size if threads != THREADS else -(-size // threads)
        kernel(name, ("draws", "block", "situations"), Real=real)((grid,), (threads,), arguments)

    def _stages(self, key: int | None, rate: object, gain: object) -> tuple[Any, Any, Any]:
        """Compute arrivals and times at risk of entries, and V of situations."""
        xp, E, T = gpu(), len(self.group), self.n_rows
        arrivals, at_risk, values = xp.empty(E), xp.empty(E), xp.empty(T)
        self._run("stages", T, self.start, self.placed, self.counts, self.number, np.int32(T),
                  np.int32(key is not None), np.uint64(key or 0), rate, gain, arrivals, at_risk, values)  # fmt: skip
        return arrivals, at_risk, values

    def _add_blocks(self, sums: Any, out: Any) -> None:
        """Add the sums of blocks into `out` (K, columns)."""
        columns = sums.shape[1]
        add = kernel("add_blocks", ("sums",))
        add((-(-columns // 32), self.n_groups), (32, 32), (sums, self.blocks.first_block, np.int32(columns), out))

    def _pass(self, weights: Weights, key: int | None) -> tuple[Array, Array, Array]:
        """Return V of each situation, wins and exposure."""
        xp, E, p = gpu(), len(self.group), self.n_features
        rival, rival_scale, factor, top = self._factors(weights)
        own, own_scale = scaled(weights.log_own)
        u, v, f, gap = map(xp.asarray, (own, rival, factor, own_scale - rival_scale))
        arrived, rate, gain = xp.empty(E), xp.empty(E), xp.empty(E)
        sizes = np.int32(E), np.int32(p)
        self._run("rates", E, self.W, self.of_row, self.of_group, *sizes, u, v, f, gap, arrived, rate, gain)
        arrivals, at_risk, values = self._stages(key, rate, gain)
        sums, blocks = xp.empty((self.n_blocks, 2 * p)), (self.blocks.first_row, self.blocks.n_rows, self.blocks.label)
        self._run("add_entries", self.n_blocks, self.W, self.of_row, self.by_group, *blocks, sizes[1], u, arrived,
                  arrivals, at_risk, np.int32(key is not None), sums, threads=WIDTH)  # fmt: skip
        added = xp.empty((self.n_groups, 2 * p))
        self._add_blocks(sums, added)
        found = added.get()
        wins, exposure = found[:, :p], np.exp(-top) * found[:, p:]
        if key is not None:
            drawn = xp.zeros_like(u)
            self._run("share_wins", E, self.W, self.of_row, self.of_group, self.place, *sizes, np.uint64(key), u,
                      arrived, arrivals, drawn)  # fmt: skip
            wins = drawn.get()
        return values.get(), wins, exposure

    def gradient(self, beta: Array, log_weights: Array) -> Slopes:
        """Return the log-likelihood for features exp(x·β), and its gradient in β (M, d) and ln λ (K, M)."""
        room = self._room(1, *log_weights.shape)
        room.beta.set(beta[None])
        room.log_weights.set(np.ascontiguousarray(log_weights)[None])
        self.run(room)
        return Slopes(float(room.values.get().sum()), room.in_beta.get()[0], room.in_log_weights.get()[:, 0])

    def room(self, n_chains: int, n_groups: int, n_components: int) -> SituationRoom:
        """Allocate the arrays for passes of so many chains; raises if memory does not suffice."""
        C, M, (R, d), E = n_chains, n_components, self.features.shape, len(self.group)
        needed = 8 * (R * (C * M + d * (self.W.itemsize < 8)) + 2 * C * E + self.n_blocks * C * M)
        check_fits(needed, free_bytes(), f"{R:,} rows and {E:,} entries for {C} chains of {M:,} components", True)
        return self._room(n_chains, n_groups, n_components)

    def _room(self, C: int, K: int, M: int) -> SituationRoom:
        xp, (R, d), E, blocks = gpu(), self.features.shape, len(self.group), -(-self.n_rows // THREADS)
        empty = xp.empty
        return SituationRoom(
            empty((C, M, d)), empty((C, K, M)), empty((C, 2, K)), empty((C, blocks)), empty((C, M, d)),
            empty((K, C, M)), empty((R, C * M)), empty((C, E)), empty((C, E)), empty((self.n_blocks, C * M)),
        )  # fmt: skip

    @property
    def n_columns(self) -> int:
        """Number of columns d, if the features are covariates."""
        return self.n_features

    @cached_property
    def _doubles(self) -> Any:
        """Covariates in float64."""
        return self.W.astype(np.float64, copy=False)

    def run(self, room: SituationRoom) -> None:
        """Compute values and slopes of all chains at once from β and ln λ; results stay on the GPU."""
        xp, (C, K, M), (R, d), E = gpu(), room.log_weights.shape, self.features.shape, len(self.group)
        T, sizes = self.n_rows, [np.int32(each) for each in (E, K, M)]
        found = room.log_weights, room.log_rate, room.slope

        def over(name: str, size: int, arguments: tuple[Any, ...], threads: int = THREADS, chains: int = C) -> None:
            kernel(name, ("block", "situation_gradient"))((size, chains), (threads,), arguments)

        xp.dot(self._doubles, room.beta.reshape(C * M, d).T, out=room.scores)
        over("log_rates", -(-E // THREADS), (room.scores, self.of_row, self.of_group, *sizes, *found[:2]))
        over("slopes_of_entries", -(-T // THREADS),
             (self.start, self.placed, self.counts, np.int32(T), sizes[0], *found[1:], room.values))  # fmt: skip
        blocks = self.blocks.first_row, self.blocks.n_rows, self.blocks.label
        over("pull_of_groups", self.n_blocks,
             (room.scores, self.of_row, self.by_group, *blocks, *sizes, *found, room.sums), WIDTH)  # fmt: skip
        self._add_blocks(room.sums, room.in_log_weights)
        over("pull_of_rows", -(-R * C * M // THREADS),
             (room.scores, self.by_row, self.first_of_row, self.of_group, np.int32(R), sizes[0], np.int32(C),
              *sizes[1:], *found), chains=1)  # fmt: skip
        xp.dot(room.scores.T, self._doubles, out=room.in_beta.reshape(C * M, d))

    def handed(self, room: SituationRoom) -> tuple[Any, ...]:
        """Arguments of `flight_over_situations`, apart from the prior."""
        return *room[:4], np.int32(room.values.shape[1]), *room[4:6]
