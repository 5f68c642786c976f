"""Attributes of comparisons of two items, such as the lengths of two answers, as differences between the items."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from plackett.data.labels import numbers_of
from plackett.data.partitioned import is_dask
from plackett.data.validation import plain
from plackett.model.race import Array


def read_differences(attributes: Any, n: int) -> tuple[Array, tuple[str, ...]]:
    """Return differences (n, d) and the names of their columns, from a data frame or an array."""
    if is_dask(attributes):
        raise ValueError("attributes must be in memory, got a Dask collection; use attributes.compute().")
    if hasattr(attributes, "columns"):
        names = tuple(str(name) for name in attributes.columns)
        columns = [numbers_of(attributes[name], name) for name in attributes.columns]
        table = np.column_stack(columns) if columns else np.empty((n, 0))
    else:
        table = np.array(attributes, dtype=np.float64)
        names = tuple(f"x{j}" for j in range(table.shape[-1] if table.ndim else 0))
    if table.ndim != 2 or len(table) != n or not table.shape[1]:
        raise ValueError(
            f"attributes must be a table with a row for each of the {n} pairs and one column or more, got shape "
            f"{table.shape} instead."
        )
    if len(set(names)) < len(names):
        raise ValueError(f"the columns of attributes must differ in their names, got {plain(list(names))}.")
    wrong = ~np.isfinite(table)
    if wrong.any():
        t, j = np.argwhere(wrong)[0]
        raise ValueError(f"attributes must be finite numbers, got {table[t, j]} in column {plain(names[j])}, row {t}.")
    return table, names


def turned(differences: Array, turn: npt.NDArray[np.bool_]) -> Array:
    """Return the differences with the opposite sign where the items of a pair are exchanged."""
    found: Array = np.where(turn[:, None], -differences, differences) + 0.0  # no negative zeros
    return found


def root_mean_squares(differences: Array, counts: Array) -> list[float]:
    """Return the root mean square of each attribute, of six digits, which the order of the rows does not change."""
    largest, total = np.abs(differences).max(axis=0), math.fsum(counts)
    shares = differences / np.where(largest > 0.0, largest, 1.0)  # of which no square overflows
    means = [math.fsum(counts * column**2) / total for column in shares.T]
    return [float(f"{most * math.sqrt(mean):.6g}") for most, mean in zip(largest, means, strict=True)]
