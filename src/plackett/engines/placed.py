"""Rows of one block among many: packed as those of `plackett.engines.numba`, with the place of each among all rows.

The random numbers of a sampled pass are a function of (key, place), so that a row draws the same wherever its block
lies and however the blocks were cut. Statistics of blocks add.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from plackett.cluster.storage import Block
from plackett.compute.compiled import inner, jit
from plackett.compute.vectors import WIDTH, load, log, spread, store, total
from plackett.engines.base import KEY_OF_TIMES, Features, canonical_order
from plackett.engines.numba import (
    LANES,
    PanelRows,
    _clear,
    _climb,
    _log_shares,
    _sums,
    arrival_times,
    pack,
    uniform,
    winning_features,
)
from plackett.model.race import Array, Stats, Weights

_TIMES = np.uint64(KEY_OF_TIMES)
Places = npt.NDArray[np.unsignedinteger]


@inner
def _add_wins(panels, place, q, own, T, below, key, one, wins):
    """Wins of a panel in which not all rows have weight 1; `one` is room for a row."""
    p = own.size
    for r in range(panels.fill[q]):
        weight = panels.weight[q, r]
        if weight == 1.0:
            wins[min(int(below[r]), p - 1)] += 1.0
        elif weight > 0.0:
            for j in range(p):
                one[j] = panels.values[q, j, r]
            winning_features(weight, one, own, T[r], key, np.uint64(place[q, r]), wins)


@jit
def sample_placed_blocks(panels, place, first, last, own, whole, key, wins, exposure, value):
    """What `plackett.engines.numba.sample_blocks` does, with random numbers of place[q, r]."""
    values, p = panels.values, panels.values.shape[1]
    T, R, z = np.empty(LANES), np.empty(LANES), np.empty(LANES)
    target, below = np.empty(LANES), np.empty(LANES)
    lanes, one = np.empty((p, WIDTH)), np.empty(p)
    for b in range(first, last):
        u = own[panels.block_class[b]]
        _clear(lanes)
        value[b] = 0.0
        for j in range(p):
            wins[b, j] = 0.0
        for q in range(panels.block_start[b], panels.block_start[b + 1]):
            m = panels.fill[q]
            _sums(values, q, u, whole, T, R)
            value[b] += _log_shares(panels.weight[q], T, R)
            for r in range(LANES):
                target[r] = uniform(key, np.uint64(place[q, r])) * T[r]
                z[r] = uniform(key ^ _TIMES, np.uint64(place[q, r]))
            for r in range(0, LANES, WIDTH):
                store(z, r, (spread(0.0) - log(load(z, r))) / load(R, r))
            for r in range(m, LANES):
                z[r] = 0.0
            if not panels.plain[b]:
                for r in range(m):
                    if panels.weight[q, r] != 1.0:
                        z[r] = arrival_times(panels.weight[q, r], key, np.uint64(place[q, r])) / R[r]
            for half in range(0, LANES, 4 * WIDTH):
                _climb(values, q, half, u, target, z, below, lanes)
            if not panels.plain[b]:
                _add_wins(panels, place, q, u, T, below, key, one, wins[b])
                continue
            for r in range(m):
                wins[b, min(int(below[r]), p - 1)] += 1.0
        for j in range(p):
            exposure[b, j] = total(load(lanes, WIDTH * j))


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
        place = self.place
        assert place is not None

        def kernel(panels: Any, *rest: Any) -> None:
            sample_placed_blocks(panels, place, *rest)

        return self._pass(kernel, weights, np.uint64(key))

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
