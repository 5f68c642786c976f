"""Situations of one block among many: compiled passes, with the places of situations and entries among all.

The random numbers of a sampled pass are a function of (key, place), so that a situation draws the same wherever its
block lies and however the blocks were cut. Statistics of blocks add.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from plackett.cluster.storage import Block
from plackett.engines.base import Features
from plackett.engines.compiled_situations import CompiledSituations
from plackett.engines.situations import Situations
from plackett.responses.base import Response, Whole


class PlacedSituations(Block, CompiledSituations):
    """The situations of a block with their passes."""

    n_threads = 1

    def set_threads(self, n_threads: int) -> None:
        """Share passes out to so many threads; the results stay the same."""
        self.n_threads = n_threads
        super().set_threads(n_threads)

    def put(self, number: Whole, first_entry: Whole) -> None:
        """Say which places among all those of this block have, in the order in which they came."""
        self.number, self.first_entry = number[self.order], first_entry[self.order]

    def digest(self) -> str:
        """Of all that the block holds."""
        found = hashlib.sha256(type(self.response).__name__.encode())
        for part in (self.features, *self.situations.outcomes, self.group, self.row, self.number):
            found.update(np.ascontiguousarray(part))  # type: ignore[arg-type]
        return found.hexdigest()

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_pool": None}  # threads do not travel

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.set_threads(self.n_threads)


def place_situations(
    features: Features, situations: Situations, response: Response, n_groups: int, n_threads: int
) -> PlacedSituations:
    """The situations of one block, in the canonical order of this block."""
    rows = PlacedSituations(features, situations, response, n_groups)
    rows.set_threads(n_threads)
    return rows
