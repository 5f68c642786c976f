"""Rows of a block packed for passes of learned directions, fold by fold, on a worker."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from plackett.cluster.gpus import copy_of
from plackett.cluster.held import threads_here
from plackett.cluster.observed import Codes, Observed, folds_of
from plackett.cluster.scales import Scale
from plackett.cluster.storage import Block
from plackett.data.observations import Observations
from plackett.engines.cupy_directions import CupyDirections, bring_covariates
from plackett.engines.exponential import ExponentialRows
from plackett.model.race import Array, Slopes


class Fold(NamedTuple):
    """Standardised rows of a block that are in one fold."""

    Z: Array
    codes: Codes
    weight: Array


class FoldedRows(Block):
    """A pack for each fold that has rows."""

    def __init__(self, folds: dict[int, Fold], dtype: str, n_threads: int):
        self.packs = {f: ExponentialRows(*fold, dtype, n_threads) for f, fold in folds.items()}

    def packs_of(self, n_classes: int) -> dict[int, Any]:
        """Ready for passes over so many classes."""
        return self.packs

    def gradient(self, beta: Array, log_weights: Array, without: int | None) -> Slopes:
        """ln p(Y|β, λ) of all folds but one, and its gradient."""
        (K, M), d = log_weights.shape, beta.shape[1]
        some = (rows for fold, rows in self.packs_of(K).items() if fold != without)
        return sum((rows.gradient(beta, log_weights) for rows in some), Slopes.none(M, d, K))


class FoldedOnGpu(FoldedRows):
    """The same on the GPU of the worker."""

    def __init__(self, folds: dict[int, Fold], dtype: str):
        self.folds, self.dtype = folds, dtype

    def packs_of(self, n_classes: int) -> dict[int, Any]:
        """Ready for passes over so many classes."""
        found: dict[int, CupyDirections] = copy_of(self, n_classes, partial(self._bring, n_classes))
        return found

    def _bring(self, n_classes: int) -> dict[int, CupyDirections]:
        return {
            f: bring_covariates(Z, Observations.of_classes(codes, n_classes, weight), np.dtype(self.dtype))
            for f, (Z, codes, weight) in self.folds.items()
        }


def packed(block: Observed, scale: Scale, dtype: str, n_folds: int, on_gpu: bool) -> FoldedRows:
    """Standardise and pack the rows of a block."""
    Z, fold = scale.of(block.rows), folds_of(block.key, n_folds)
    block.give_back()
    folds = {f: Fold(Z[fold == f], block.codes[fold == f], block.weight[fold == f]) for f in np.unique(fold).tolist()}
    rows = FoldedOnGpu(folds, dtype) if on_gpu else FoldedRows(folds, dtype, threads_here())
    return rows.settled()


def slopes(rows: FoldedRows, beta: Array, log_weights: Array, without: int | None) -> Slopes:
    """Of one block."""
    return rows.gradient(beta, log_weights, without)
