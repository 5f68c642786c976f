"""Engine on a Dask cluster: blocks of rows live on workers, which receive K×p states and return statistics.

Inside a worker the passes are those of `plackett.engines.numba`, or of `plackett.engines.cupy` if all workers have
GPUs. Statistics are added in the order of the blocks, and random numbers belong to the global positions of rows,
situations and entries, so that results depend neither on the number of workers nor on lost workers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial, reduce
from operator import add
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
from scipy import sparse

from plackett.capabilities import Offers
from plackett.cluster.client import ClusterError, in_use
from plackett.cluster.gpus import copy_of, go_to_gpus
from plackett.cluster.held import Held, made, threads_here
from plackett.data.observations import Observations
from plackett.engines.base import (
    ON_WORKERS,
    ClassRows,
    Features,
    Places,
    Rows,
    SituationRows,
    canonical_order,
    check_counts,
)
from plackett.engines.cupy_situations import CupySituations, known
from plackett.engines.device import MANY_ENTRIES
from plackett.engines.placed import PlacedRows, PlacedSituations, place_rows, place_situations
from plackett.engines.plain_rankings import CompiledLeftSets, plain_rows
from plackett.engines.situations import NumpySituations, canonical, checked_situations
from plackett.engines.tiles import CupyRows, bring_rows
from plackett.features.mapped import in_order
from plackett.model.race import Array, Stats, Weights

ENTRIES, ENTRIES_ON_GPU = 1 << 24, 1 << 26  # maximum of numbers read per block, when arrays are cut into blocks


class ClusterRows(ClassRows):
    """Rows of classes on the workers.

    `digests` are the digests of the blocks, which identify the table; None if the observations came from the client.
    """

    digests: tuple[str, ...] | None = None

    def __init__(
        self,
        held: Held,
        n_rows: int,
        n_groups: int,
        n_features: int,
        on_gpus: bool,
        order: Any = None,
        sample_weight: Array | None = None,
    ):
        self.held, self.on_gpus, self.order, self.sample_weight = held, on_gpus, order, sample_weight
        self.n_rows, self.n_groups, self.n_features = n_rows, n_groups, n_features
        self.n_seen = float(n_rows if sample_weight is None else sample_weight.sum())
        self.work = n_rows * n_features

    def identity(self, mirrors: object) -> tuple[Any, ...]:
        """Return digests of the blocks, and mirrors."""
        return super().identity(mirrors) if self.digests is None else (*self.digests, mirrors)

    def set_threads(self, n_threads: int) -> None:
        """Do nothing: each worker uses its own threads."""

    def expect(self, weights: Weights) -> Stats:
        """Return expected wins and exposure."""
        return self._added(self.held.each(expected, weights, self.on_gpus))

    def sample(self, weights: Weights, key: int) -> Stats:
        """Return sampled wins and exposure."""
        if self.sample_weight is not None:
            check_counts(self.sample_weight)
        return self._added(self.held.each(sampled, weights, key, self.on_gpus))

    def value(self, weights: Weights) -> float:
        """Return Σ_i ln(W_i·U_{Y_i}) − ln(W_i·Σ_l V_l)."""
        return self.expect(weights).value

    def _added(self, found: list[Stats]) -> Stats:
        stats = reduce(add, found)
        return Stats(stats.wins, np.broadcast_to(stats.exposure, stats.wins.shape), stats.value)


class ClusterSituations(SituationRows):
    """Situations on the workers.

    Parameters
    ----------
    blocks : Held
        Blocks of `PlacedSituations`.
    rows_of : callable
        Returns the rows of W, some of whose predictions are diagnosed.
    sizes : (T, entries, counts)
        Numbers of situations and entries, and the total of their counts.
    """

    def __init__(
        self,
        blocks: Held,
        rows_of: Callable[[], Features],
        order: Any,
        sizes: tuple[int, int, float],
        n_groups: int,
        n_features: int,
        absolute: bool,
    ):
        self.blocks, self.rows_of, self.order, self.absolute = blocks, rows_of, order, absolute
        self.n_rows, self.n_entries, self.n_seen = sizes
        self.n_groups, self.n_features = n_groups, n_features
        self.on_gpus = go_to_gpus(blocks.client, self.work >= MANY_ENTRIES and not absolute and n_features > 1)

    @property
    def features(self) -> Features:
        """Rows of W in use, in the order of the situations."""
        return self.rows_of()

    @property
    def held(self) -> tuple[Any, ...]:
        """Digests of the blocks, in order."""
        return tuple(self.blocks.each(PlacedSituations.digest))

    @property
    def work(self) -> int:
        """Count of numbers read by a pass."""
        return self.n_entries * self.n_features

    def set_threads(self, n_threads: int) -> None:
        """Do nothing: each worker uses its own threads."""

    def expect(self, weights: Weights) -> Stats:
        """Return expected wins and exposure."""
        return reduce(add, self.blocks.each(expected_situations, weights, self.on_gpus))

    def sample(self, weights: Weights, key: int) -> Stats:
        """Return sampled wins and exposure, as a function of weights and key alone."""
        return reduce(add, self.blocks.each(sampled_situations, weights, key, self.on_gpus))

    def value(self, weights: Weights) -> float:
        """Return the log-likelihood Σ count · ln Pr(outcome)."""
        return float(sum(self.blocks.each(valued_situations, weights, self.on_gpus)))


def expected(rows: PlacedRows, weights: Weights, on_gpu: bool) -> Stats:
    """Return expected statistics of one block; on a GPU in float64, as maximisation needs."""
    return _small((rows_there(rows, exact=True) if on_gpu else rows).expect(weights))


def sampled(rows: PlacedRows, weights: Weights, key: int, on_gpu: bool) -> Stats:
    """Return sampled statistics of one block."""
    return _small((rows_there(rows, exact=False) if on_gpu else rows).sample(weights, key))


def rows_there(rows: PlacedRows, exact: bool) -> CupyRows:
    """Return the rows of a block on the worker's GPU."""
    exact = exact or rows.panels.values.dtype == np.float64

    def bring() -> CupyRows:
        W = rows.unpacked_features(np.arange(rows.n_rows))
        codes, weight, places = rows.unpacked()
        seen = Observations.of_classes(codes, rows.n_groups, None if (weight == 1.0).all() else weight)
        return bring_rows(W, seen, places, exact)

    found: CupyRows = copy_of(rows, exact, bring)
    return found


def _small(stats: Stats) -> Stats:
    """Keep one copy of the exposure, which is the same for all classes."""
    return Stats(stats.wins, np.ascontiguousarray(stats.exposure[:1]), stats.value)


def expected_situations(rows: PlacedSituations, weights: Weights, on_gpu: bool) -> Stats:
    """Return expected statistics of one block."""
    return situations_there(rows, on_gpu).expect(weights)


def sampled_situations(rows: PlacedSituations, weights: Weights, key: int, on_gpu: bool) -> Stats:
    """Return sampled statistics of one block."""
    return situations_there(rows, on_gpu).sample(weights, key)


def valued_situations(rows: PlacedSituations, weights: Weights, on_gpu: bool) -> float:
    """Return the log-likelihood of one block."""
    return situations_there(rows, on_gpu).value(weights)


def situations_there(rows: PlacedSituations, on_gpu: bool) -> NumpySituations:
    """Return the situations of a block on the worker's GPU, if it has kernels for them, and else unchanged."""
    if not on_gpu or not known(rows.seen):
        return rows

    def bring() -> CupySituations:
        there = CupySituations(rows.features, rows.seen)
        there.put((rows.number, rows.first_entry))
        return there

    found: CupySituations = copy_of(rows, None, bring)
    return found


def packed(W: npt.NDArray[np.floating], seen: Observations, places: Places) -> PlacedRows:
    """Pack a block of rows with known positions."""
    rows = place_rows(W, seen, threads_here())
    rows.put(places)
    return rows.settled()


def packed_situations(W: Array, seen: Observations, number: int, entry: int) -> PlacedSituations:
    """Pack a block of consecutive situations that start at these positions."""
    rows, start = place_situations(W, seen, threads_here()), seen.all_situations.outcomes.start
    rows.put((number + np.arange(len(start) - 1), entry + start[:-1]))
    return rows.settled()


def power_of_two(x: float) -> int:
    """Smallest power of two not below x: so many equal blocks can be divided among 2, 4 or 8 workers."""
    return 1 << max(math.ceil(math.log2(x)), 0)


def smallest_kind(n: int) -> Any:
    """Smallest unsigned dtype, of 32 or 64 bits, that holds 0 … n−1."""
    return np.uint32 if n <= 1 << 32 else np.uint64


class DaskEngine:
    """Passes on the workers of the current Dask client."""

    offers = Offers(ON_WORKERS, partitions=True)

    def rows(self, W: Features | None, seen: Observations, places: Any = None) -> Rows:
        """Cut the rows, in canonical order, into blocks of equal size, and send them to the workers in turn.

        Distinct sets of rankings without covariates stay on the client: they are few, and a pass over them is short.
        """
        if places is not None:
            raise ValueError("engine='dask' holds all rows, so that places among others have no meaning.")
        if W is None:
            return plain_rows(seen, CompiledLeftSets, self._situations)
        return self._situations(W, seen) if seen.codes is None else self._classes(W, seen, seen.codes)

    def gradient(self, Z: Array, seen: Observations, dtype: npt.DTypeLike) -> NoReturn:
        """Raise ValueError: `plackett.cluster.directions` standardises and packs covariates on the workers."""
        raise ValueError("engine='dask' takes covariates in partitions, and not as an array.")

    def _classes(self, W: Features, seen: Observations, codes: npt.NDArray[np.intp]) -> ClusterRows:
        if sparse.issparse(W):
            raise ValueError("engine='dask' takes dense features, and these are sparse. Use engine='auto'.")
        client = client_in_use()
        (n, p), order = W.shape, canonical_order(W, codes, seen.counts)[0]
        there = go_to_gpus(client, n * p >= MANY_ENTRIES)
        size, kind = -(-n // power_of_two(n * p / (ENTRIES_ON_GPU if there else ENTRIES))), smallest_kind(n)

        def block(start: int) -> tuple[Any, ...]:
            rows = order[start : start + size]
            return np.asarray(W[rows]), seen.part(rows), np.arange(start, start + len(rows), dtype=kind)

        held = made(client, "block", packed, map(block, range(0, n, size)), -(-n // size))
        rows = ClusterRows(held, n, seen.n_groups, p, there, order, seen.counts)
        return rows.describe_in_order(W, seen, order)

    def _situations(self, W: Features, seen: Observations) -> ClusterSituations:
        checked_situations(W, seen)
        client = client_in_use()
        situations, order, used = canonical(W, seen.all_situations)
        start, p = situations.outcomes.start, W.shape[1]
        T, entries = len(order), int(start[-1])
        size = -(-T // power_of_two(entries * p / ENTRIES))

        def block(first: int) -> tuple[Any, ...]:
            some = situations.part(np.arange(first, min(first + size, T)))
            rows, row = np.unique(some.row, return_inverse=True)
            part = Observations.of_situations(some._replace(row=row), seen.response, seen.n_groups)
            return np.asarray(W[used[rows]]), part, first, int(start[first])

        held = made(client, "block", packed_situations, map(block, range(0, T, size)), -(-T // size))
        sizes = T, entries, float(situations.outcomes.counts.sum())
        rows_of = partial(in_order, W, used)
        return ClusterSituations(held, rows_of, order, sizes, seen.n_groups, p, seen.response.absolute)


def client_in_use() -> Any:
    """Return the current Dask client; raises ClusterError without one."""
    client = in_use()
    if client is None:
        raise ClusterError("engine='dask' needs a distributed.Client here.")
    return client
