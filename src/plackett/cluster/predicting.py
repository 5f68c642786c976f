"""Predictions of rows in partitions, made where they lie when they are asked for."""

from __future__ import annotations

from typing import Any

import numpy as np

from plackett.cluster.choice_parts import delayed_sets
from plackett.data.partitioned import is_dask


def lazily(model: Any, method: str, X: Any) -> Any:
    """The method of a fitted model for a Dask collection: a Dask array that is cut as X is."""
    import dask
    import dask.array as da

    told = nothing(model, method)
    if hasattr(X, "spec"):  # choice situations, a partition of whose table becomes some
        parts, sizes = delayed_sets(X), [np.nan] * X.table.npartitions
    elif hasattr(X, "columns"):
        parts, sizes = X.to_delayed(), [np.nan] * X.npartitions
    else:
        X = X.rechunk({1: -1})
        parts, sizes = X.to_delayed().ravel().tolist(), X.chunks[0]
    held, ask = dask.delayed(model), dask.delayed(predicted)
    made = [
        da.from_delayed(ask(held, method, part), shape=(size, *told.shape[1:]), meta=told)
        for part, size in zip(parts, sizes, strict=True)
    ]
    return da.concatenate(made, allow_unknown_chunksizes=True)


def predicted(model: Any, method: str, X: Any) -> Any:
    """Of one partition."""
    return getattr(model, method)(X) if len(X) else nothing(model, method)


def nothing(model: Any, method: str) -> Any:
    """What the method gives of no rows: probabilities of classes or items, a class a row, or all items in order."""
    if hasattr(model, "items_"):
        K = len(model.items_)
        return np.empty((0, K)) if method == "predict_proba" else np.empty((0, K), dtype=model.items_.dtype)
    return np.empty((0, len(model.classes_))) if method == "predict_proba" else model.classes_[:0]


def refuse_partitions(X: Any) -> None:
    """Where rows are needed here."""
    if is_dask(X):
        raise ValueError(
            "X is a Dask collection, which fit, predict and predict_proba take; here give some of its rows, as "
            "X.partitions[0].compute() or X[:1000].compute() are."
        )
