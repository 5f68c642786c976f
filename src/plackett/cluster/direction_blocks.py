"""Covariates of a block, packed for passes of learned directions in a worker's memory or on its GPU.

Blocks of classes are packed fold by fold, so that chains trained without a fold omit it from the sum, and rows are
packed once for all of them. Blocks of situations are packed for the training part of each fold.
"""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any

import numpy as np
import numpy.typing as npt

from plackett.cluster.gpus import copy_of
from plackett.cluster.held import threads_here
from plackett.cluster.observed import Observed, folds_of
from plackett.cluster.storage import Block
from plackett.data.observations import Observations
from plackett.engines.base import Gradient
from plackett.engines.cupy_directions import bring_covariates
from plackett.engines.cupy_situations import CupySituations, known
from plackett.engines.exponential import ExponentialRows
from plackett.engines.numba import CompiledSituations, passes_over
from plackett.engines.situations import NumpySituations
from plackett.features.standardise import Scaling
from plackett.model.race import Array, Slopes

Part = tuple[Array, Observations]  # standardised covariates and observations


class SentSituations(Block):
    """Situations of a block as they were sent, with the covariates of their rows by design."""

    def __init__(self, designs: tuple[Array, ...], seen: Observations):
        self.designs, self.seen = designs, seen


def received(designs: tuple[Array, ...], seen: Observations) -> SentSituations:
    """Receive a block on its worker."""
    return SentSituations(designs, seen).settled()


class PackedSituations:
    """Situations packed for passes; responses from outside this package use the reference."""

    def __init__(self, Z: Array, seen: Observations, dtype: npt.DTypeLike, n_threads: int):
        rows, self.n_threads = CompiledSituations(Z, seen), n_threads
        packed = rows.in_lanes(dtype)
        packed = rows.covariates if packed is None else packed
        self.packed: Any = NumpySituations(Z, seen) if packed is None else packed

    def gradient(self, beta: Array, log_weights: Array) -> Slopes:
        """Return ln p(Y|β, λ) and its gradient."""
        if isinstance(self.packed, NumpySituations):
            return self.packed.gradient(beta, log_weights)
        found: Slopes = passes_over(self.packed).gradient(self.packed, beta, log_weights, self.n_threads)
        return found

    def packed_for(self, n_components: int, dtype: npt.DTypeLike) -> None:
        """Return None: chains run on the client."""


class PackedFolds(Block):
    """One pack for each fold with observations in the block; situations have one."""

    def __init__(self, parts: dict[int, Part], dtype: str, n_threads: int):
        self.packs: dict[int, Gradient] = {f: packed_here(*part, dtype, n_threads) for f, part in parts.items()}

    def packs_of(self, n_groups: int) -> dict[int, Gradient]:
        """Return packs for passes over this number of groups."""
        return self.packs

    def gradient(self, beta: Array, log_weights: Array, without: int | None = None) -> Slopes:
        """Return ln p(Y|β, λ) of all folds but one, and its gradient."""
        (K, M), d = log_weights.shape, beta.shape[1]
        some = [rows.gradient(beta, log_weights) for fold, rows in self.packs_of(K).items() if fold != without]
        return reduce(add, some) if some else Slopes.none(M, d, K)


class PackedOnGpu(PackedFolds):
    """Packs on the worker's GPU."""

    def __init__(self, parts: dict[int, Part], dtype: str):
        self.parts, self.dtype = parts, dtype

    def packs_of(self, n_groups: int) -> dict[int, Gradient]:
        """Return packs for passes over this number of groups."""

        def bring() -> dict[int, Gradient]:
            return {f: packed_on_gpu(*part, n_groups, self.dtype) for f, part in self.parts.items()}

        found: dict[int, Gradient] = copy_of(self, n_groups, bring)
        return found


def packed_here(Z: Array, seen: Observations, dtype: str, n_threads: int) -> Gradient:
    """Pack in the worker's memory."""
    if seen.codes is None:
        return PackedSituations(Z, seen, dtype, n_threads)
    return ExponentialRows(Z, seen.codes, seen.weights, dtype, n_threads)


def packed_on_gpu(Z: Array, seen: Observations, n_groups: int, dtype: str) -> Gradient:
    """Pack on the worker's GPU; a block of classes does not know the total number of classes."""
    if seen.codes is None:
        return CupySituations(Z, seen)
    return bring_covariates(Z, Observations.of_classes(seen.codes, n_groups, seen.weights), np.dtype(dtype))


def packed_classes(
    block: Observed, scaling: Scaling, dtype: str, n_folds: int, on_gpu: bool, draw: tuple[int, int] | None = None
) -> PackedFolds:
    """Standardise and pack the rows of a block by fold; with a seed, under random weights Gam(weight, 1)."""
    Z, fold = scaling.of(block.rows), folds_of(block.key, n_folds)
    weight = block.weight if draw is None else np.random.default_rng(draw).standard_gamma(block.weight)
    block.give_back()
    seen = Observations.of_classes(block.codes, int(block.codes.max()) + 1, weight)
    parts = {f: (Z[fold == f], seen.part(np.flatnonzero(fold == f))) for f in np.unique(fold).tolist()}
    return (PackedOnGpu(parts, dtype) if on_gpu else PackedFolds(parts, dtype, threads_here())).settled()


def packed_situations(
    block: SentSituations, which: int, some: npt.NDArray[np.intp], counts: Array, dtype: str, on_gpu: bool
) -> PackedFolds:
    """Pack some situations of a block with these counts, for one design."""
    seen = block.seen.part(some).weighted(counts)
    situations = seen.all_situations
    used, row = np.unique(situations.row, return_inverse=True)
    part = (
        block.designs[which][used],
        Observations.of_situations(situations._replace(row=row), seen.response, seen.n_groups),
    )
    if on_gpu and known(part[1]):
        return PackedOnGpu({0: part}, dtype).settled()
    found = PackedFolds({0: part}, dtype, threads_here())
    block.give_back()
    return found.settled()


def slopes(rows: PackedFolds, beta: Array, log_weights: Array, without: int | None = None) -> Slopes:
    """Return the gradient of one block."""
    return rows.gradient(beta, log_weights, without)
