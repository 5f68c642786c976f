"""Lazy predictions of rows or situations in partitions, computed where these are stored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from plackett.cluster.choice_parts import delayed_sets
from plackett.cluster.client import dask
from plackett.cluster.cutting import pieces_of
from plackett.cluster.held import later
from plackett.data.partitioned import is_dask
from plackett.optional import optional

Predict = Callable[[Any], npt.NDArray[Any]]


def lazily(predict: Predict, X: Any, empty: npt.NDArray[Any]) -> Any:
    """Return predict(X) of a Dask collection as a Dask array, partitioned like X; `empty` is the result for no rows."""
    array = optional("dask.array", "a Dask collection")
    pieces, sizes = (delayed_sets(X), None) if hasattr(X, "spec") else pieces_of(X)
    held, chunks = dask().delayed(predict), [np.nan] * len(pieces) if sizes is None else sizes
    parts = [
        array.from_delayed(later(predicted, held, piece, empty), shape=(size, *empty.shape[1:]), meta=empty)
        for piece, size in zip(pieces, chunks, strict=True)
    ]
    return array.concatenate(parts, allow_unknown_chunksizes=True)


def predicted(predict: Predict, X: Any, empty: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Predictions of one partition."""
    return predict(X) if len(X) else empty


def refuse_partitions(X: object) -> None:
    """Raise for a Dask collection where rows in memory are needed."""
    if is_dask(X):
        raise ValueError(
            "X is a Dask collection, which only fit, predict and predict_proba take; here give rows in memory, such as "
            "X.partitions[0].compute() or X[:1000].compute()."
        )
