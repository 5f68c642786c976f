"""Rows of a block packed for passes of learned directions, fold by fold, on a worker."""

from __future__ import annotations

import numpy as np

from plackett.cluster.held import threads_here
from plackett.cluster.observed import Observed, folds_of
from plackett.cluster.scales import Scale
from plackett.cluster.storage import Block
from plackett.engines.exponential import ExponentialRows
from plackett.model.race import Array, Slopes


class FoldedRows(Block):
    """A pack for each fold that has rows."""

    def __init__(self, packs: dict[int, ExponentialRows]):
        self.packs = packs

    def gradient(self, beta: Array, log_weights: Array, without: int | None) -> Slopes:
        """ln p(Y|β, λ) of all folds but one, and its gradient."""
        (K, M), d = log_weights.shape, beta.shape[1]
        some = (rows for fold, rows in self.packs.items() if fold != without)
        return sum((rows.gradient(beta, log_weights) for rows in some), Slopes.none(M, d, K))


def packed(block: Observed, scale: Scale, dtype: str, n_folds: int) -> FoldedRows:
    """Standardise and pack the rows of a block."""
    Z, fold, threads = scale.of(block.rows), folds_of(block.key, n_folds), threads_here()
    block.give_back()
    packs = {}
    for f in np.unique(fold).tolist():
        mine = fold == f
        packs[f] = ExponentialRows(Z[mine], block.codes[mine], block.weight[mine], dtype, threads)
    return FoldedRows(packs).settled()


def slopes(rows: FoldedRows, beta: Array, log_weights: Array, without: int | None) -> Slopes:
    """Of one block."""
    return rows.gradient(beta, log_weights, without)
