"""Types of user input: tables, single rows, labels and seeds."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    from scipy import sparse

Label: TypeAlias = Hashable  # label of a class, an item or an alternative
Labels: TypeAlias = npt.NDArray[Any]  # texts, whole numbers or objects
Frame: TypeAlias = "pd.DataFrame | pl.DataFrame"
LabelsLike: TypeAlias = "Labels | Sequence[Any] | pd.Series | pl.Series"
MatrixLike: TypeAlias = "npt.NDArray[Any] | Sequence[Sequence[float]] | sparse.csr_array | pd.DataFrame | pl.DataFrame"
RowLike: TypeAlias = "npt.NDArray[Any] | dict[str, Any] | pd.Series | pd.DataFrame | pl.DataFrame"
Seed: TypeAlias = int | np.random.Generator | np.random.RandomState | None


class Lazy(Protocol):
    """A Dask collection; predictions of it are Dask arrays."""

    def __dask_graph__(self) -> Any: ...
