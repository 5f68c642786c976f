"""Choices and rankings on a GPU: the passes of `plackett.engines.situations` by the kernels of ``cuda/situations.cu``.

A thread has an entry or a situation. Sums over the entries of a group are taken in fixed blocks, and those over the
entries of a row in their order: a pass gives the same bits every time. W lies there as it came, in float32 or float64;
all else is in doubles.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plackett.engines.base import Features
from plackett.engines.cupy import Blocks, blocks_of
from plackett.engines.device import check_fits, free_bytes, gpu, kernel
from plackett.engines.situations import NumpySituations, Situations
from plackett.model.race import Array, Slopes, Weights, scaled
from plackett.responses import Choice, Ranking
from plackett.responses.base import Response, Whole

BLOCK = 1024  # entries whose sums are taken together
THREADS, WIDTH = 256, 128  # of a block of threads; of one that adds entries


def by_place(places: Any, size: int) -> tuple[Any, Any]:
    """Entries in the order of their places, and where each of so many places begins."""
    counts = np.bincount(places, minlength=size)
    return np.argsort(places, kind="stable").astype(np.int32), np.append(0, np.cumsum(counts)).astype(np.int32)


def known(situations: Situations, response: Response) -> bool:
    """Whether the GPU knows outcomes like these: without ties."""
    return not response.absolute and bool((situations.outcomes.sizes <= 1).all())


class CupySituations(NumpySituations):
    """Situations on the GPU with their passes."""

    def __init__(self, features: Features, situations: Situations, response: Response, n_groups: int):
        if not known(situations, response):
            raise ValueError("engine='cupy' knows choices and rankings without ties. Use engine='auto'.")
        gpu()
        super().__init__(features, situations, response if isinstance(response, Choice) else Ranking(), n_groups)
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

    def put(self, number: Whole, first_entry: Whole) -> None:
        """Say which places among all these situations and their entries have, in the order in which they came.

        Random numbers belong to them.
        """
        start, xp = self.outcomes.start, gpu()
        self.number = xp.asarray(number[self.order])
        self.place = xp.asarray(np.arange(start[-1]) + np.repeat(first_entry[self.order] - start[:-1], np.diff(start)))

    def _run(self, name: str, size: int, *arguments: Any, threads: int = THREADS) -> None:
        """A kernel with so many threads, in blocks of THREADS, or so many blocks of others."""
        real = "float" if self.W.itemsize == 4 else "double"
        grid = size if threads != THREADS else -(-size // threads)
        kernel(name, ("draws", "situations"), Real=real)((grid,), (threads,), arguments)

    def _stages(self, key: int | None, rate: Any, gain: Any) -> tuple[Any, Any, Any]:
        """Arrivals and times at risk of entries, and V of situations."""
        xp, E, T = gpu(), len(self.group), self.n_rows
        arrivals, at_risk, values = xp.empty(E), xp.empty(E), xp.empty(T)
        self._run("stages", T, self.start, self.placed, self.counts, self.number, np.int32(T),
                  np.int32(key is not None), np.uint64(key or 0), rate, gain, arrivals, at_risk, values)  # fmt: skip
        return arrivals, at_risk, values

    def _by_group(self, sums: Any) -> Any:
        """(K, columns): the sums of blocks, added up."""
        columns = sums.shape[1]
        out = gpu().empty((self.n_classes, columns))
        add = kernel("add_blocks", ("sums",))
        add((-(-columns // 32), self.n_classes), (32, 32), (sums, self.blocks.first_block, np.int32(columns), out))
        return out

    def _pass(self, weights: Weights, key: int | None) -> tuple[Array, Array, Array]:
        """V of each situation, wins and exposure."""
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
        found = self._by_group(sums).get()
        wins, exposure = found[:, :p], np.exp(-top) * found[:, p:]
        if key is not None:
            drawn = xp.zeros_like(u)
            self._run("share_wins", E, self.W, self.of_row, self.of_group, self.place, *sizes, np.uint64(key), u,
                      arrived, arrivals, drawn)  # fmt: skip
            wins = drawn.get()
        return values.get(), wins, exposure

    def gradient(self, beta: Array, log_weights: Array) -> Slopes:
        """The log-likelihood where the features are exp(x·β), and its gradient in β (M, d) and ln λ (K, M)."""
        xp, E, R, M = gpu(), len(self.group), len(self.features), len(beta)
        X = self.W.astype(np.float64, copy=False)
        scores, weights = X @ xp.asarray(beta.T), xp.asarray(np.ascontiguousarray(log_weights))
        log_rate, rate = xp.empty(E), xp.empty(E)
        self._run("log_rates", E, scores, self.of_row, self.of_group, np.int32(E), np.int32(M), weights, log_rate)
        self._run("relative", self.n_rows, self.start, np.int32(self.n_rows), log_rate, rate)
        arrivals, at_risk, values = self._stages(None, rate, xp.zeros(E))
        slope = arrivals - rate * at_risk
        pull, sums = xp.empty((R, M)), xp.empty((self.n_blocks, M))
        self._run("pull_of_rows", R * M, scores, self.by_row, self.first_of_row, self.of_group, np.int32(R),
                  np.int32(M), weights, log_rate, slope, pull)  # fmt: skip
        blocks = self.blocks.first_row, self.blocks.n_rows, self.blocks.label
        self._run("pull_of_groups", self.n_blocks, scores, self.of_row, self.by_group, *blocks, np.int32(M), weights,
                  log_rate, slope, sums, threads=WIDTH)  # fmt: skip
        return Slopes(self._total(values.get()), (pull.T @ X).get(), self._by_group(sums).get())
