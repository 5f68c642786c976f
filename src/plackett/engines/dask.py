"""The engine on a Dask cluster: blocks of rows on its workers, K×p states to them, statistics back.

Inside a worker the passes are those of `plackett.engines.numba`, or of `plackett.engines.cupy` where all workers have
GPUs. Statistics are added in the order of the blocks, and
random numbers belong to the places of rows among all, so that answers depend neither on the number of workers nor on
which of them were lost on the way.
"""

from __future__ import annotations

import math
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from plackett.cluster.client import ClusterError, in_use
from plackett.cluster.gpus import copy_of, go_to_gpus
from plackett.cluster.held import Held, made, threads_here
from plackett.engines.base import Features, canonical_order, check_counts
from plackett.engines.cupy import CupyEngine, CupyRows
from plackett.engines.device import MANY_ENTRIES
from plackett.engines.placed import PlacedRows, Places, place_rows
from plackett.model.race import Array, Stats, Weights

ENTRIES, ENTRIES_ON_GPU = 1 << 24, 1 << 26  # of W in a block that is cut from an array, at the most


class ClusterRows:
    """Rows on the workers, with their passes."""

    absolute = False

    def __init__(
        self,
        held: Held,
        n_rows: int,
        n_classes: int,
        n_features: int,
        on_gpus: bool,
        order: Any = None,
        sample_weight: Array | None = None,
    ):
        self.held, self.on_gpus, self.order, self.sample_weight = held, on_gpus, order, sample_weight
        self.n_rows, self.n_classes, self.n_features = n_rows, n_classes, n_features

    def expect(self, weights: Weights) -> Stats:
        """Expected wins and exposure."""
        return self._added(self.held.each(expected, weights, self.on_gpus))

    def sample(self, weights: Weights, key: int) -> Stats:
        """Sampled wins and exposure."""
        if self.sample_weight is not None:
            check_counts(self.sample_weight)
        return self._added(self.held.each(sampled, weights, key, self.on_gpus))

    def _added(self, found: list[Stats]) -> Stats:
        stats = reduce(add, found)
        return Stats(stats.wins, np.broadcast_to(stats.exposure, stats.wins.shape), stats.value)


def expected(rows: PlacedRows, weights: Weights, on_gpu: bool) -> Stats:
    """Of one block; on a GPU in doubles, as ascents want it."""
    return _small((rows_there(rows, exact=True) if on_gpu else rows).expect(weights))


def sampled(rows: PlacedRows, weights: Weights, key: int, on_gpu: bool) -> Stats:
    """Of one block."""
    return _small((rows_there(rows, exact=False) if on_gpu else rows).sample(weights, key))


def rows_there(rows: PlacedRows, exact: bool) -> CupyRows:
    """The rows of a block on the GPU of the worker."""
    exact = exact or rows.panels.values.dtype == np.float64

    def bring() -> CupyRows:
        W = rows.features(np.arange(rows.n_rows))
        codes, weight, places = rows.unpacked()
        return CupyEngine(exact).prepare(W, codes, None if (weight == 1.0).all() else weight, rows.n_classes, places)

    found: CupyRows = copy_of(rows, exact, bring)
    return found


def _small(stats: Stats) -> Stats:
    """Exposure once, as it is the same for all classes."""
    return Stats(stats.wins, np.ascontiguousarray(stats.exposure[:1]), stats.value)


def packed(
    W: npt.NDArray[np.floating],
    codes: npt.NDArray[np.intp],
    weight: Array | None,
    n_classes: int,
    places: Places,
) -> PlacedRows:
    """A block of rows whose places are known."""
    rows = place_rows(W, codes.astype(np.intp), weight, n_classes, threads_here())
    rows.put(places)
    return rows.settled()


def _power_of_two(x: float) -> int:
    """The smallest that is not below x: so many equal blocks can be shared out to 2, 4 or 8 workers."""
    return 1 << max(math.ceil(math.log2(x)), 0)


def smallest_kind(n: int) -> Any:
    """Of numbers below n."""
    return np.uint32 if n <= 1 << 32 else np.uint64


class DaskEngine:
    """Passes on the workers of the Dask client in use."""

    def prepare(
        self,
        features: Features,
        codes: npt.NDArray[np.intp],
        sample_weight: Array | None,
        n_classes: int,
    ) -> ClusterRows:
        """Cut the rows, in canonical order, into blocks of the same size, and send them to the workers in turn."""
        if sparse.issparse(features):
            raise ValueError("engine='dask' takes dense features, and these are sparse. Use engine='auto'.")
        client = in_use()
        if client is None:
            raise ClusterError("engine='dask' needs a distributed.Client here.")
        (n, p), order = features.shape, canonical_order(features, codes, sample_weight)[0]
        there = go_to_gpus(client, n * p >= MANY_ENTRIES)
        size, kind = -(-n // _power_of_two(n * p / (ENTRIES_ON_GPU if there else ENTRIES))), smallest_kind(n)

        def block(start: int) -> tuple[Any, ...]:
            rows = order[start : start + size]
            weight = None if sample_weight is None else sample_weight[rows]
            places = np.arange(start, start + len(rows), dtype=kind)
            return np.asarray(features[rows]), codes[rows], weight, n_classes, places

        held = made(client, "block", packed, map(block, range(0, n, size)), -(-n // size))
        return ClusterRows(held, n, n_classes, p, there, order, sample_weight)
