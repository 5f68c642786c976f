"""Rows of features as engines and posteriors see them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

RUN = 4096  # rows of W looked at together


class Features(Protocol):
    """W (n, p) as engines see it: an array, CSR rows, or anything that makes the rows that it is asked for."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, p)."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """float64 or float32."""
        ...

    def __getitem__(self, rows: Any, /) -> npt.NDArray[np.floating]:
        """The rows of a slice, or those with these numbers."""
        ...


def runs(features: Features) -> Iterator[tuple[slice, npt.NDArray[np.floating]]]:
    """The rows in runs, each with its place."""
    for start in range(0, features.shape[0], RUN):
        place = slice(start, min(start + RUN, features.shape[0]))
        yield place, features[place]
