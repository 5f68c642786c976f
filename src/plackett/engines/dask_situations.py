"""Choices and rankings on a Dask cluster: blocks of situations on its workers, K×p states to them, statistics back.

Inside a worker the passes are those of `plackett.engines.compiled_situations`, or of `plackett.engines.cupy_situations`
where all workers have GPUs. Statistics are added in the order of the blocks, and random numbers belong to the places of
situations and entries among all.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np

from plackett.cluster.client import ClusterError, in_use
from plackett.cluster.gpus import copy_of, go_to_gpus
from plackett.cluster.held import Held, made, threads_here
from plackett.engines.base import Features
from plackett.engines.cupy_situations import CupySituations, known
from plackett.engines.dask import _power_of_two
from plackett.engines.device import MANY_ENTRIES
from plackett.engines.placed_situations import PlacedSituations, place_situations
from plackett.engines.situations import NumpySituations, Situations, canonical, part_of
from plackett.features.mapped import in_order
from plackett.model.race import Array, Stats, Weights
from plackett.responses.base import Response, Whole, checked

ENTRIES = 1 << 24  # numbers that a pass over a block goes through, at the most, where blocks are cut here


class ClusterSituations:
    """Situations on the workers, with their passes.

    Parameters
    ----------
    blocks : Held
        Of `PlacedSituations`.
    rows_of : callable
        Gives the rows of W, some of whose predictions are diagnosed.
    sizes : (T, entries, counts)
        How many situations and entries there are, and how often situations were seen in all.
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
        self.n_classes, self.n_features = n_groups, n_features
        self.on_gpus = go_to_gpus(blocks.client, self.work >= MANY_ENTRIES and not absolute and n_features > 1)

    @property
    def features(self) -> Features:
        """The rows of W that are used, in the order of the situations."""
        return self.rows_of()

    @property
    def held(self) -> tuple[Any, ...]:
        """Digests of the blocks, in their order."""
        return tuple(self.blocks.each(PlacedSituations.digest))

    @property
    def work(self) -> int:
        """How many numbers a pass goes through."""
        return self.n_entries * self.n_features

    def set_threads(self, n_threads: int) -> None:
        """A worker's threads share its passes; the results stay the same."""

    def expect(self, weights: Weights) -> Stats:
        """Expected wins and exposure."""
        return reduce(add, self.blocks.each(expected, weights, self.on_gpus))

    def sample(self, weights: Weights, key: int) -> Stats:
        """Sampled wins and exposure, a function of the weights and the key alone."""
        return reduce(add, self.blocks.each(sampled, weights, key, self.on_gpus))

    def value(self, weights: Weights) -> float:
        """The log-likelihood: Σ count · ln Pr(outcome)."""
        return float(sum(self.blocks.each(valued, weights, self.on_gpus)))


def expected(rows: PlacedSituations, weights: Weights, on_gpu: bool) -> Stats:
    """Of one block."""
    return _there(rows, on_gpu).expect(weights)


def sampled(rows: PlacedSituations, weights: Weights, key: int, on_gpu: bool) -> Stats:
    """Of one block."""
    return _there(rows, on_gpu).sample(weights, key)


def valued(rows: PlacedSituations, weights: Weights, on_gpu: bool) -> float:
    """Of one block."""
    return _there(rows, on_gpu).value(weights)


def _there(rows: PlacedSituations, on_gpu: bool) -> NumpySituations:
    """The situations of a block on the GPU of the worker, if the GPU knows such; if not, as they are."""
    if not on_gpu or not known(rows.situations, rows.response):
        return rows

    def bring() -> CupySituations:
        there = CupySituations(rows.features, rows.situations, rows.response, rows.n_classes)
        there.put(rows.number, rows.first_entry)
        return there

    found: CupySituations = copy_of(rows, None, bring)
    return found


def packed(
    W: Array, situations: Situations, response: Response, n_groups: int, number: int, entry: int
) -> PlacedSituations:
    """A block of situations that come one after the other from these places on."""
    rows = place_situations(W, situations, response, n_groups, threads_here())
    start: Whole = situations.outcomes.start
    rows.put(number + np.arange(len(start) - 1), entry + start[:-1])
    return rows.settled()


def cut_situations(features: Features, situations: Situations, response: Response, n_groups: int) -> ClusterSituations:
    """Cut the situations, in canonical order, into blocks of the same size, and send them to the workers in turn."""
    response.check(checked(situations.outcomes))
    client = in_use()
    if client is None:
        raise ClusterError("engine='dask' needs a distributed.Client here.")
    situations, order, used = canonical(features, situations)
    start, p = situations.outcomes.start, features.shape[1]
    T, entries = len(order), int(start[-1])
    size = -(-T // _power_of_two(entries * p / ENTRIES))

    def block(first: int) -> tuple[Any, ...]:
        some = part_of(situations, np.arange(first, min(first + size, T)))
        rows, row = np.unique(some.row, return_inverse=True)
        W = np.asarray(features[used[rows]])
        return W, some._replace(row=row), response, n_groups, first, int(start[first])

    held = made(client, "block", packed, map(block, range(0, T, size)), -(-T // size))
    sizes = T, entries, float(situations.outcomes.counts.sum())
    return ClusterSituations(held, partial(in_order, features, used), order, sizes, n_groups, p, response.absolute)
