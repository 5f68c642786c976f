"""Rows of features, as engines and posteriors access them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

RUN = 4096  # rows of W processed together


class Features(Protocol):
    """Features W (n, p): an array, CSR rows, or any object that computes requested rows."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, p)."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """float64 or float32."""
        ...

    def __getitem__(self, rows: Any, /) -> npt.NDArray[np.floating]:
        """Return the rows of a slice or of an array of row numbers."""
        ...


def runs(features: Features) -> Iterator[tuple[slice, npt.NDArray[np.floating]]]:
    """Yield runs of rows, each with its position."""
    for start in range(0, features.shape[0], RUN):
        place = slice(start, min(start + RUN, features.shape[0]))
        yield place, features[place]
