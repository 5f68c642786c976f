"""Rows of one block among many: packed as those of `plackett.engines.numba`, with the place of each among all rows.

The random numbers of a sampled pass are a function of (key, place), so that a row draws the same wherever its block
lies and however the blocks were cut. Statistics of blocks add.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from plackett.cluster.storage import Block
from plackett.engines.base import Features, canonical_order
from plackett.engines.numba import LANES, PanelRows, pack, sample_blocks
from plackett.model.race import Array, Stats, Weights

Places = npt.NDArray[np.unsignedinteger]


class PlacedRows(Block, PanelRows):
    """The rows of a block with their passes; `place` (panel, lane) is None until a sampled pass needs it."""

    place: Places | None = None

    def put(self, places: Places) -> None:
        """Say which places among all rows those of this block have, in the order in which they came."""
        first, fill = self.panels.first_row, self.panels.fill
        self.place = np.zeros(self.panels.weight.shape, dtype=places.dtype)
        lanes = np.arange(LANES)
        used = lanes < fill[:, None]
        self.place[used] = places[self.order][(first[:, None] + lanes)[used]]

    def sample(self, weights: Weights, key: int) -> Stats:
        """Sampled wins and exposure; whether weights are whole numbers is known to who cut the blocks."""
        assert self.place is not None
        return self._pass(sample_blocks, weights, np.uint64(key), self.place)

    def unpacked(self) -> tuple[npt.NDArray[np.intp], Array, Places | None]:
        """Class, weight and place of all rows, in the order in which they came."""
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

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_pool": None}  # threads do not travel

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.set_threads(self.n_threads)

    def features(self, rows: npt.NDArray[np.intp]) -> npt.NDArray[np.floating]:
        """W of the rows with these numbers, in the order in which they came."""
        at = np.empty(self.n_rows, dtype=np.intp)
        at[self.order] = np.arange(self.n_rows)
        where = at[rows]
        panel = np.searchsorted(self.panels.first_row, where, side="right") - 1
        found: npt.NDArray[np.floating] = self.panels.values[panel, :, where - self.panels.first_row[panel]]
        return np.ascontiguousarray(found)


def place_rows(
    W: Features, codes: npt.NDArray[np.intp], weight: Array | None, n_classes: int, n_threads: int
) -> PlacedRows:
    """Pack the rows of one block, in the canonical order of this block."""
    order, _ = canonical_order(W, codes, weight)
    rows = PlacedRows(pack(W, codes, weight, n_classes, order), n_classes, order)
    rows.set_threads(n_threads)
    return rows
