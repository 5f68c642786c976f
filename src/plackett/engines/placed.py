"""Rows of one block, with their positions among all rows.

The random numbers of a sampled pass are a function of (key, position), so that draws of a row or situation depend
neither on where its block lives nor on how blocks were cut. Statistics of blocks add.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import numpy.typing as npt

from plackett.cluster.storage import Block
from plackett.data.observations import Observations
from plackett.engines.base import Features, Places, canonical_order
from plackett.engines.numba import CompiledSituations, PanelRows
from plackett.engines.panels import LANES, pack
from plackett.model.race import Array


class PlacedBlock(Block):
    """Block whose passes are shared among threads; the threads are not serialised."""

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_pool": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.set_threads(self.n_threads)  # type: ignore[attr-defined]


class PlacedRows(PlacedBlock, PanelRows):
    """Block of rows of classes."""

    def unpacked(self) -> tuple[npt.NDArray[np.intp], Array, Places | None]:
        """Return class, weight and position of all rows, in input order."""
        panels = self.panels
        of_panel = np.repeat(panels.block_class, np.diff(panels.block_start))
        used = np.arange(LANES) < panels.fill[:, None]
        codes, weight = np.empty(self.n_rows, dtype=np.intp), np.empty(self.n_rows)
        codes[self.order] = np.broadcast_to(of_panel[:, None], used.shape)[used]
        weight[self.order] = panels.weight[used]
        if self.place is None:
            return codes, weight, None
        places = np.empty(self.n_rows, dtype=self.place.dtype)
        places[self.order] = self.place[used]
        return codes, weight, places

    def unpacked_features(self, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.floating]:
        """Return W of the rows with these numbers, in input order."""
        at = np.empty(self.n_rows, dtype=np.intp)
        at[self.order] = np.arange(self.n_rows)
        where = at[rows]
        panel = np.searchsorted(self.panels.first_row, where, side="right") - 1
        found: npt.NDArray[np.floating] = self.panels.values[panel, :, where - self.panels.first_row[panel]]
        return np.ascontiguousarray(found)


class PlacedSituations(PlacedBlock, CompiledSituations):
    """Block of choices or rankings."""

    def digest(self) -> str:
        """Return the SHA-256 of all data of the block."""
        found = hashlib.sha256(type(self.response).__name__.encode())
        for part in (self.features, *self.situations.outcomes, self.group, self.row, self.number):
            found.update(np.ascontiguousarray(part))  # type: ignore[arg-type]
        return found.hexdigest()


def place_rows(W: Features, seen: Observations, n_threads: int) -> PlacedRows:
    """Pack rows of classes of one block, in the canonical order of this block."""
    order, _ = canonical_order(W, seen.class_codes, seen.counts)
    rows = PlacedRows(pack(W, seen.class_codes, seen.counts, seen.n_groups, order), seen.n_groups, order)
    rows.set_threads(n_threads)
    return rows


def place_situations(W: Features, seen: Observations, n_threads: int) -> PlacedSituations:
    """Pack situations of one block, in the canonical order of this block."""
    rows = PlacedSituations(W, seen)
    rows.set_threads(n_threads)
    return rows
