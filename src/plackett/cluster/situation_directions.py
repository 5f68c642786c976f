"""Learned directions of rankings and choices where passes run on workers: blocks of situations, and their gradient.

All is decided where the situations are, by `plackett.directions.situations.SituationTask`. The workers have them too,
in blocks of canonical order, each sent once with the covariates of all designs. For passes a block is packed by one
design, in one precision, as one machine packs it, with those situations that a fold trains on: of a fold their numbers
are sent and nothing else. Slopes are added in the order of the blocks.
"""

from __future__ import annotations

import hashlib
import threading
import weakref
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import numpy.typing as npt

from plackett.cluster.client import ClusterError, in_use
from plackett.cluster.gpus import copy_of, go_to_gpus
from plackett.cluster.held import made, threads_here
from plackett.cluster.storage import Block
from plackett.cluster.together import Together
from plackett.data.observations import Observations, Situations
from plackett.engines import exponential_rankings, exponential_situations
from plackett.engines.cupy_situations import CupySituations, known
from plackett.engines.dask import power_of_two
from plackett.engines.device import MANY_ROWS
from plackett.engines.numba import CompiledSituations
from plackett.engines.situations import NumpySituations
from plackett.model.race import Array, Slopes
from plackett.responses.base import Response

NUMBERS = 1 << 20  # covariates and entries of a block, at the most: a pass over so many takes some milliseconds
Places = npt.NDArray[np.intp]


class SentSituations(Block):
    """Situations of a block as they came, and the covariates of their rows by design."""

    def __init__(self, designs: tuple[Array, ...], situations: Situations, response: Response, n_groups: int):
        self.designs, self.situations, self.response, self.n_groups = designs, situations, response, n_groups


class PackedSituations(Block):
    """Situations packed for passes; with a response from outside this package, as the reference has them."""

    def __init__(self, packed: Any, n_threads: int):
        self.packed, self.n_threads = packed, n_threads

    def gradient(self, beta: Array, log_weights: Array) -> Slopes:
        """ln p(Y|β, λ) and its gradient."""
        if isinstance(self.packed, exponential_rankings.RankedRows):
            return exponential_rankings.gradient(self.packed, beta, log_weights, self.n_threads)
        if isinstance(self.packed, exponential_situations.Covariates):
            return exponential_situations.gradient(self.packed, beta, log_weights, self.n_threads)
        found: Slopes = self.packed.gradient(beta, log_weights)
        return found


def received(designs: tuple[Array, ...], situations: Situations, response: Response, n_groups: int) -> SentSituations:
    """A block on its worker."""
    return SentSituations(designs, situations, response, n_groups).settled()


def packed(
    block: SentSituations, which: int, some: Places, dtype: str, on_gpu: bool
) -> PackedSituations | SituationsOnGpu:
    """Some situations of a block, by one design."""
    situations = block.situations.part(some)
    used, row = np.unique(situations.row, return_inverse=True)
    seen = Observations.of_situations(situations._replace(row=row), block.response, block.n_groups)
    parts = block.designs[which][used], seen
    if on_gpu and known(seen):
        return SituationsOnGpu(*parts).settled()
    rows = CompiledSituations(*parts)
    found: Any = rows.ranked(dtype)
    found = rows.covariates if found is None else found
    found = NumpySituations(*parts) if found is None else found
    block.give_back()
    return PackedSituations(found, threads_here()).settled()


class SituationsOnGpu(Block):
    """Situations whose passes run on the GPU of the worker."""

    def __init__(self, *parts: Any):
        self.parts = parts

    def gradient(self, beta: Array, log_weights: Array) -> Slopes:
        """ln p(Y|β, λ) and its gradient."""
        found: Slopes = copy_of(self, None, lambda: CupySituations(*self.parts)).gradient(beta, log_weights)
        return found


def slopes(rows: PackedSituations | SituationsOnGpu, beta: Array, log_weights: Array) -> Slopes:
    """Of one block."""
    return rows.gradient(beta, log_weights)


class SituationBlocks:
    """Situations on the workers, with their pass."""

    def __init__(self, together: Together):
        self.together = together

    def gradient(self, beta: Array, log_weights: Array) -> Slopes:
        """ln p(Y|β, λ) and its gradient."""
        return reduce(add, self.together.ask(beta, log_weights))


class Sent:
    """Blocks of all situations of a task, and those packed by whoever has passes under way."""

    def __init__(self, designs: tuple[Array, ...], situations: Situations, response: Response, n_groups: int):
        self.client = in_use()
        if self.client is None:
            raise ClusterError("engine='dask' needs a distributed.Client here.")
        T = len(situations.outcomes.counts)
        numbers = max(Z.size for Z in designs) + len(situations.group)
        self.size = -(-T // power_of_two(numbers / NUMBERS))
        self.firsts, self.on_gpus = range(0, T, self.size), go_to_gpus(self.client, T >= MANY_ROWS)

        def block(first: int) -> tuple[Any, ...]:
            some = situations.part(np.arange(first, min(first + self.size, T)))
            used, row = np.unique(some.row, return_inverse=True)
            return tuple(Z[used] for Z in designs), some._replace(row=row), response, n_groups

        self.held = made(self.client, "situations", received, map(block, self.firsts), len(self.firsts))
        self._packing = threading.Lock()  # chains ask side by side
        self._packed: weakref.WeakValueDictionary[Any, SituationBlocks] = weakref.WeakValueDictionary()

    def packed(self, which: int, places: Places, dtype: npt.DTypeLike) -> SituationBlocks:
        """Situations with these numbers, in ascending order, by one design; let go once nobody asks them."""
        name = np.dtype(dtype).name
        key = which, name, hashlib.sha256(places.astype(np.int64).tobytes()).digest()
        with self._packing:
            found = self._packed.get(key)
            if found is None:
                ends = np.searchsorted(places, [*self.firsts[1:], self.firsts[-1] + self.size])
                each = zip(self.held.blocks, self.firsts, np.split(places, ends[:-1]), strict=True)
                parts = [(block, which, some - first, name, self.on_gpus) for block, first, some in each if len(some)]
                blocks = made(self.client, "directions", packed, parts, len(parts))
                found = self._packed[key] = SituationBlocks(Together(blocks, slopes))
            return found
