"""Tables that are cut alike: one that leads, and others whose partitions belong to its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from plackett.cluster.partitions import column_of, of_one_frame
from plackett.data.partitioned import is_dask

BESIDE = "{}: {} {}, of plackett"  # columns of others beside those of the table that leads


def parts_of(lead: Any, others: dict[str, Any], name: str) -> tuple[list[Any], dict[str, list[Any]]]:
    """The parts of a Dask collection, and those of other ones, None where nothing is given.

    Frames that come from one frame are read as one: Dask may cut them differently where it reads few columns.
    """
    given = {key: what for key, what in others.items() if what is not None}
    wide, columns, beside = lead, {}, dict[str, Any]()
    if hasattr(lead, "columns"):
        for key, what in given.items():
            if of_one_frame(lead, what):
                series = {c: what[c] for c in what.columns} if what.ndim == 2 else {key: what}
                columns[key] = {BESIDE.format(key, i, c): c for i, c in enumerate(series)}
                beside |= {long: series[c] for long, c in columns[key].items()}
        wide = lead.assign(**beside) if beside else lead
    pieces, sizes = _pieces(wide)
    found: dict[str, list[Any]] = {key: [None] * len(pieces) for key in others}
    for key, what in given.items():
        if key in columns:
            found[key] = [_some(piece, columns[key], what.ndim == 2) for piece in pieces]
        else:
            found[key] = _like(what, key, name, len(pieces), sizes)
    if beside:
        pieces = [_some(piece, {c: c for c in lead.columns}, True) for piece in pieces]
    return pieces, found


def _some(piece: Any, names: dict[str, Any], table: bool) -> Any:
    """Columns of a piece under other names, as a table or as the only one."""
    import dask

    return dask.delayed(renamed if table else first_of, pure=False)(piece, names)


def renamed(piece: Any, names: dict[str, Any]) -> Any:
    """Some columns of a frame, under other names."""
    return column_of(piece, list(names)).rename(columns=names)


def first_of(piece: Any, names: dict[str, Any]) -> Any:
    """One column of a frame."""
    return column_of(piece, next(iter(names)))


def _pieces(what: Any) -> tuple[list[Any], list[int] | None]:
    """Partitions, of an array with whole rows, and their sizes where they are known."""
    if hasattr(what, "divisions"):
        return list(what.to_delayed()), None
    if what.ndim > 1:
        what = what.rechunk({1: -1})
    sizes = None if any(np.isnan(size) for size in what.chunks[0]) else [int(size) for size in what.chunks[0]]
    return what.to_delayed().ravel().tolist(), sizes


def _like(what: Any, key: str, name: str, count: int, sizes: list[int] | None) -> list[Any]:
    """The parts of another collection that belong to those of the one that leads."""
    if not hasattr(what, "divisions") and sizes is not None and what.shape[0] == sum(sizes):
        what = what.rechunk({0: tuple(sizes)})
    pieces, _ = _pieces(what)
    if len(pieces) != count:
        raise ValueError(
            f"{key} has {len(pieces)} partitions and {name} have {count}: they must be cut alike. Take both from one "
            "Dask data frame."
        )
    return pieces


def split(what: Any, sizes: Sequence[int], key: str, of: str) -> list[Any]:
    """An array in memory, one entry a situation, cut by the sizes of the partitions; None stays None."""
    if what is None:
        return [None] * len(sizes)
    values, ends = np.asarray(what), np.cumsum(sizes)
    if values.shape != (ends[-1],):
        raise ValueError(f"{key} must have one entry for each of the {ends[-1]} {of}, got shape {values.shape}.")
    return np.split(values, ends[:-1])


def apart(**given: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """What are Dask collections, and what lies in memory."""
    far = {key: what if is_dask(what) else None for key, what in given.items()}
    return far, {key: None if is_dask(what) else what for key, what in given.items()}
