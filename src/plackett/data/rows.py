"""Rows of any table that scikit-learn accepts: their number, and selections."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from plackett.data.types import LabelsLike, MatrixLike


def count_rows(X: MatrixLike | LabelsLike) -> int:
    """Number of rows of an array, a sparse matrix, a data frame or a list."""
    shape = getattr(X, "shape", None)
    if shape is None:
        return len(X)
    if not shape:
        raise TypeError(f"expected rows, got a single value instead: {X!r}.")
    return int(shape[0])


def take_rows(X: Any, places: npt.ArrayLike) -> Any:
    """Select rows of X by position, as the same kind of table.

    Examples
    --------
    >>> from plackett.data.rows import take_rows
    >>> take_rows(["a", "b", "c"], [2, 0])
    ['c', 'a']
    """
    places = np.asarray(places)
    if places.dtype.kind not in "iu":
        raise TypeError(f"places of rows must be whole numbers, got {places.dtype} instead.")
    if hasattr(X, "iloc"):
        return X.iloc[places]
    if hasattr(X, "column_names"):  # a pyarrow table
        return X.take(places)
    if hasattr(X, "shape"):
        return X[places]
    return [X[i] for i in places.tolist()]
