"""What any feature map must give: a table of non-negative finite numbers without an empty row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

FLOOR = {
    np.dtype(np.float64): -460.0,
    np.dtype(np.float32): -69.0,
}  # ln of the smallest entry of a scaled row


def check_features(
    W: Any, names: Callable[[], Any], places: npt.NDArray[np.intp] | None = None
) -> npt.NDArray[np.floating]:
    """The output of a feature map as an array (n, p), or an error that names the row and column at fault.

    The names of the columns are asked for when they are needed; the places are those of the rows, if not 0 to n − 1.
    """
    if hasattr(W, "to_numpy"):
        W = W.to_numpy()
    W = np.asarray(W.toarray() if sparse.issparse(W) else W)
    if W.dtype not in FLOOR:
        W = W.astype(np.float64)
    if W.ndim != 2 or W.shape[1] == 0:
        raise ValueError(f"the features must be a table with at least one column, got shape {W.shape} instead.")
    row = range(len(W)) if places is None else places
    for bad, what in ((~np.isfinite(W), "not finite"), (W < 0, "negative")):
        if bad.any():
            i, j = np.argwhere(bad)[0]
            known = names()
            name = known[j] if known is not None and len(known) == W.shape[1] else j
            raise ValueError(
                f"features must be non-negative and finite; row {row[i]}, column {j} ({name}) is {what}: {W[i, j]}. "
                "Use a map with non-negative output, such as ExpFeatures or MinMaxScaler(clip=True)."
            )
    largest = W.max(axis=1)
    if (largest == 0).any():
        i = int(np.argmin(largest))
        raise ValueError(
            f"row {row[i]} of the features is zero in every column, so no class can win its race. Add a constant "
            "column, or a feature that covers this row."
        )
    return np.ascontiguousarray(W / largest[:, None])
