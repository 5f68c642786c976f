"""Dask collections with the same partitions: a leading table, and labels, weights or groups that belong to its rows.

Data frames that derive from one frame are read as one, since Dask may partition them differently when it reads few
columns. The module knows neither the content of the tables nor the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from plackett.cluster.dask_private import same_rows
from plackett.cluster.held import later
from plackett.data.partitioned import is_dask

BESIDE = "{}: {} {}, of plackett"  # names of columns of other collections, added to those of the leading table
Pieces = list[Any]  # delayed partitions, arrays in memory or None, one per partition of the leading table


def local_only(beside: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that are in memory."""
    return {key: what for key, what in beside.items() if what is not None and not is_dask(what)}


def cut(lead: Any, has: str, beside: Mapping[str, Any]) -> tuple[Pieces, dict[str, Pieces], list[int] | None]:
    """Return partitions of a Dask collection and of those beside it, and row counts where they are known.

    `has` begins an error message: "X has", "the rankings have". Arguments that are not collections have pieces None.
    """
    given = {key: what for key, what in beside.items() if is_dask(what)}
    wide, columns, added = lead, dict[str, dict[str, Any]](), dict[str, Any]()
    if hasattr(lead, "columns"):
        for key, what in given.items():
            if hasattr(what, "divisions") and same_rows(lead, what):
                series = {c: what[c] for c in what.columns} if what.ndim == 2 else {key: what}
                columns[key] = {BESIDE.format(key, i, c): c for i, c in enumerate(series)}
                added |= {long: series[c] for long, c in columns[key].items()}
        wide = lead.assign(**added) if added else lead
    pieces, sizes = pieces_of(wide)
    found: dict[str, Pieces] = {key: [None] * len(pieces) for key in beside}
    for key, what in given.items():
        if key in columns:
            select = some_columns if what.ndim == 2 else one_column
            found[key] = [later(select, piece, columns[key]) for piece in pieces]
        else:
            found[key] = _like(what, key, has, len(pieces), sizes)
    if added:
        pieces = [later(some_columns, piece, {c: c for c in lead.columns}) for piece in pieces]
    return pieces, found, sizes


def some_columns(piece: Any, names: dict[str, Any]) -> Any:
    """Return some columns of a frame, renamed."""
    return piece[list(names)].rename(columns=names)


def one_column(piece: Any, names: dict[str, Any]) -> Any:
    """Return the only one of these columns of a frame."""
    return piece[next(iter(names))]


def pieces_of(what: Any) -> tuple[Pieces, list[int] | None]:
    """Return partitions, those of an array with all columns, and their row counts where they are known."""
    if hasattr(what, "divisions"):
        return list(what.to_delayed()), None
    if what.ndim > 1:
        what = what.rechunk({1: -1})
    sizes = None if any(np.isnan(size) for size in what.chunks[0]) else [int(size) for size in what.chunks[0]]
    return what.to_delayed().ravel().tolist(), sizes


def _like(what: Any, key: str, has: str, count: int, sizes: list[int] | None) -> Pieces:
    """Return the partitions of another collection that match those of the leading one."""
    if not hasattr(what, "divisions") and sizes is not None and what.shape[0] == sum(sizes):
        what = what.rechunk({0: tuple(sizes)})
    pieces, _ = pieces_of(what)
    if len(pieces) != count:
        raise ValueError(
            f"{key} has {len(pieces)} partitions and {has} {count}: they must have the same partitions. Take both from "
            "one Dask data frame, or repartition one by the divisions of the other."
        )
    return pieces


def split(what: object, sizes: Sequence[int], key: str, of: str) -> Pieces:
    """Split an array in memory, with one entry per row, by the sizes of the partitions."""
    values, ends = np.asarray(what), np.cumsum(sizes)
    if values.shape != (ends[-1],):
        raise ValueError(f"{key} must have one entry for each of the {ends[-1]} {of}, got shape {values.shape}.")
    return np.split(values, ends[:-1])
