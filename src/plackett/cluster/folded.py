"""Rows of a block packed for passes of learned directions, fold by fold, on a worker."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np

from plackett.cluster.held import threads_here
from plackett.cluster.observed import Observed, folds_of
from plackett.cluster.scales import Scale
from plackett.cluster.storage import folder_for_files, let_go, written
from plackett.engines.exponential import Covariates, ExponentialRows
from plackett.model.race import Array, Slopes


class FoldedRows:
    """A pack for each fold that has rows; the values may lie in files."""

    def __init__(self, packs: dict[int, ExponentialRows]):
        self.packs = packs
        self.mappings: list[mmap.mmap] = []

    def gradient(self, beta: Array, log_weights: Array, without: int | None) -> Slopes:
        """ln p(Y|β, λ) of all folds but one, and its gradient."""
        (K, M), d = log_weights.shape, beta.shape[1]
        some = (rows for fold, rows in self.packs.items() if fold != without)
        found = sum((rows.gradient(beta, log_weights) for rows in some), Slopes.none(M, d, K))
        for mapping in self.mappings:
            let_go(mapping)
        return found

    def put_into(self, folder: str) -> None:
        """Keep the values in files of this folder."""
        for rows in self.packs.values():
            values, mapping = written(rows.packed.values, folder)
            rows.packed = rows.packed._replace(values=values)
            self.mappings.append(mapping)

    def __getstate__(self) -> dict[str, Any]:
        return {"packs": self.packs, "mappings": []}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        for rows in self.packs.values():  # kernels take arrays that could be written to, which those that came are not
            values, weight, label, n_columns = rows.packed
            rows.packed = Covariates(own(values), own(weight), own(label), n_columns)


def own(array: Any) -> Any:
    """The array, or a copy where it belongs to a message."""
    return np.require(array, requirements=["C", "W"])


def packed(block: Observed, scale: Scale, dtype: str, n_folds: int) -> FoldedRows:
    """Standardise and pack the rows of a block."""
    Z, fold, threads = scale.of(block.rows), folds_of(block.key, n_folds), threads_here()
    block.give_back()
    packs = {}
    for f in np.unique(fold).tolist():
        mine = fold == f
        packs[f] = ExponentialRows(Z[mine], block.codes[mine], block.weight[mine], dtype, threads)
    found, folder = FoldedRows(packs), folder_for_files()
    if folder is not None:
        found.put_into(folder)
    return found


def slopes(rows: FoldedRows, beta: Array, log_weights: Array, without: int | None) -> Slopes:
    """Of one block."""
    return rows.gradient(beta, log_weights, without)
