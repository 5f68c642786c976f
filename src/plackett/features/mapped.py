"""Fitted feature maps, and their checked features of rows computed on request.

W of many rows takes more memory than X, and its consumers store it in their own layout: it is passed on uncomputed.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils.validation import has_fit_parameter

from plackett.data.rows import count_rows, take_rows
from plackett.features.checks import check_features
from plackett.model.features import RUN, Features
from plackett.model.race import Array

WHOLE = 1 << 21  # entries of W up to which one call of the map computes all
Places = npt.NDArray[np.intp]


def fit_features(features: Any, X: Any, y: Any, sample_weight: Array | None) -> Any:
    """Fit a feature map, passing the weights of the rows if it accepts them."""
    if sample_weight is not None and has_fit_parameter(features, "sample_weight"):
        return features.fit(X, y, sample_weight=sample_weight)
    return features.fit(X, y)


def feature_names(features: Any, columns: Any = None) -> Any:
    """Return names of a fitted map's output, in terms of its columns if given, or None if it has none."""
    try:
        return features.get_feature_names_out(columns)
    except (AttributeError, ValueError):
        return None


def transform(features: object, X: object, places: Places | None = None, empty: bool = False) -> Features:
    """Return W of the rows of X, or of those at `places`: an array if it is small, else computed on request.

    Sparse output is stored whole. `empty` allows rows of zeros, for which predictions use no information.
    """
    W = MappedRows(features, X, places, empty)
    return W[:] if W.n_rows <= RUN or W.sparse or W.n_rows * W.shape[1] <= WHOLE else W


def dense(W: Features) -> Features:
    """Return W; raises if it is sparse."""
    if sparse.issparse(W):
        raise ValueError(
            "the feature map gives sparse features, which rankings do not take: use a map with dense output, such as "
            "OneHotEncoder(sparse_output=False)."
        )
    return W


def in_order(W: Features, order: Places) -> Features:
    """Return the rows of W in this order, stored or computed on request as before."""
    if not isinstance(W, MappedRows):
        return W[order]
    return MappedRows(W.features, W.X, order if W.places is None else W.places[order], W.empty)


def nonempty_rows(features: object, X: object) -> tuple[Features, Places | slice]:
    """Return W of the non-empty rows, and their positions: a text may have no words known to the map."""
    if not MappedRows(features, X, empty=True).sparse:
        return transform(features, X), slice(None)
    W: Any = transform(features, X, empty=True)
    some = np.flatnonzero(np.diff(W.indptr))
    return W[some], some


class MappedRows:
    """Rows W = 𝒦(X), for a map that treats every row by itself; X is stored and W is not.

    Parameters
    ----------
    features : transformer
        Fitted map.
    X : array or data frame (n, d)
        Input of the map.
    places : array of int, optional
        Selected rows of X, in this order; rows may repeat.
    empty : bool
        True if rows of zeros are allowed.
    """

    def __init__(self, features: Any, X: Any, places: Places | None = None, empty: bool = False):
        self.features, self.X, self.places, self.empty = features, X, places, empty
        self.n_rows = count_rows(X) if places is None else len(places)

    @cached_property
    def _first(self) -> Any:
        return self[:1]

    @property
    def sparse(self) -> bool:
        """True if the map returns CSR rows."""
        return bool(sparse.issparse(self._first))

    @property
    def shape(self) -> tuple[int, int]:
        """(n, p)."""
        return self.n_rows, self._first.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        """float64 or float32."""
        return self._first.dtype

    def __getitem__(self, rows: slice | Places) -> Any:
        places = np.arange(self.n_rows)[rows] if self.places is None else self.places[rows]
        untouched = self.places is None and isinstance(rows, slice) and len(places) == self.n_rows and rows.step is None
        some = self.X if untouched else take_rows(self.X, places)
        return check_features(self.features.transform(some), lambda: feature_names(self.features), places, self.empty)
