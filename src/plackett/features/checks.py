"""Checks of the output of any feature map: non-negative finite numbers without an empty row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

FLOOR = {
    np.dtype(np.float64): -460.0,
    np.dtype(np.float32): -69.0,
}  # ln of the smallest entry of a scaled row, by type


def check_features(
    W: Any, names: Callable[[], Any], places: npt.NDArray[np.intp] | None = None, empty: bool = False
) -> Any:
    """Return features with rows scaled to a largest entry of 1; raises an error that names the row and column.

    Sparse input becomes a `csr_array` of the non-zero entries, in order of the columns; other input an array (n, p).
    `names` returns the names of the columns when they are needed; `places` are the row numbers, if not 0 to n − 1. Rows
    of zeros raise unless `empty`.
    """
    if hasattr(W, "to_numpy"):
        W = W.to_numpy()
    W = sparse.csr_array(W, copy=True) if sparse.issparse(W) else np.asarray(W)
    if W.dtype not in FLOOR:
        W = W.astype(np.float64)
    if W.ndim != 2 or W.shape[1] == 0:
        raise ValueError(f"the features must be a table with at least one column, got shape {W.shape} instead.")
    row = range(W.shape[0]) if places is None else places
    if sparse.issparse(W):
        W.sum_duplicates()
        W.eliminate_zeros()
    held = W.data if sparse.issparse(W) else W
    for bad, what in ((~np.isfinite(held), "not finite"), (held < 0, "negative")):
        if bad.any():
            i, j = _place(W, np.argwhere(bad)[0])
            known = names()
            name = known[j] if known is not None and len(known) == W.shape[1] else j
            raise ValueError(
                f"features must be non-negative and finite; row {row[i]}, column {j} ({name}) is {what}: {W[i, j]}. "
                "Use a map with non-negative output, such as ExpFeatures or MinMaxScaler(clip=True)."
            )
    largest = _largest(W)
    if not empty and (largest == 0).any():
        i = int(np.argmin(largest))
        raise ValueError(
            f"row {row[i]} of the features is zero in every column, so no class can win its race. Add a constant "
            "column or a feature that covers this row, or leave the row out."
        )
    largest[largest == 0] = 1
    if sparse.issparse(W):
        W.data /= np.repeat(largest, np.diff(W.indptr))
        return W
    return np.ascontiguousarray(W / largest[:, None])


def _place(W: Any, found: npt.NDArray[np.intp]) -> tuple[int, int]:
    """Return row and column of an entry, for CSR rows of a non-zero entry."""
    if len(found) == 2:
        return int(found[0]), int(found[1])
    return int(np.searchsorted(W.indptr, found[0], side="right")) - 1, int(W.indices[found[0]])


def _largest(W: Any) -> npt.NDArray[np.floating]:
    """Return the largest entry of each row."""
    if not sparse.issparse(W):
        largest: npt.NDArray[np.floating] = W.max(axis=1)
        return largest
    filled = np.diff(W.indptr) > 0
    largest = np.zeros(W.shape[0], dtype=W.dtype)
    if filled.any():
        largest[filled] = np.maximum.reduceat(W.data, W.indptr[:-1][filled])
    return largest
