"""Non-negative feature maps W = 𝒦(X) (section 2) and the checks that any map must pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import (
    _check_feature_names_in,
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

from plackett.model.race import Array
from plackett.validation import plain

__all__ = ["ExpFeatures"]

FLOOR = {
    np.dtype(np.float64): -460.0,
    np.dtype(np.float32): -69.0,
}  # ln of the smallest entry of a scaled row


class ExpFeatures(TransformerMixin, BaseEstimator):
    """The paper's features: exp(s·x_j), exp(−s·x_j) and a constant.

    Each row is divided by its largest entry, in logarithms, before exponentials are taken: a common factor
    of a row changes nothing in the model, and no finite input overflows.

    Parameters
    ----------
    scales : float or sequence of float
        The factors s.
    offset : bool
        Include the constant exp(0).
    pair_sums : bool
        Include exp(±(x_i + x_j)) for all pairs of columns (section 5).
    pair_differences : bool
        Include exp(±(x_i − x_j)) for all pairs of columns.
    standardize : bool
        Subtract the mean and divide by the standard deviation of each column first; a constant column
        becomes zero.
    dtype : {"float64", "float32"}
        Storage of the output; float32 halves the memory, sums are still taken in float64.

    Examples
    --------
    >>> import numpy as np
    >>> from plackett.features import ExpFeatures
    >>> features = ExpFeatures().fit(np.array([[0.0, 1.0], [2.0, 5.0]]))
    >>> [str(name) for name in features.get_feature_names_out()]
    ['exp(x0)', 'exp(x1)', 'exp(-x0)', 'exp(-x1)', '1']
    """

    def __init__(
        self,
        scales: float | Iterable[float] = 1.0,
        offset: bool = True,
        pair_sums: bool = False,
        pair_differences: bool = False,
        standardize: bool = True,
        dtype: str = "float64",
    ):
        self.scales = scales
        self.offset = offset
        self.pair_sums = pair_sums
        self.pair_differences = pair_differences
        self.standardize = standardize
        self.dtype = dtype

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> ExpFeatures:
        """Learn the mean and standard deviation of each column."""
        scales = np.atleast_1d(np.asarray(self.scales, dtype=np.float64))
        if scales.ndim != 1 or not len(scales) or not np.all((scales > 0) & np.isfinite(scales)):
            raise ValueError(f"scales must be positive numbers, got {plain(self.scales)} instead.")
        if np.dtype(self.dtype) not in FLOOR:
            raise ValueError(f"dtype must be 'float64' or 'float32', got {self.dtype!r} instead.")
        X = validate_data(self, X, dtype=np.float64)
        d = X.shape[1]
        self.mean_, self.scale_ = np.zeros(d), np.ones(d)
        if self.standardize:
            self.mean_, self.scale_ = mean_and_scale(X, _check_sample_weight(sample_weight, X))
        return self

    def transform(self, X: Any) -> npt.NDArray[np.floating]:
        """Scaled rows of W, the largest entry of each 1."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        with np.errstate(over="ignore"):
            Z = np.clip((X - self.mean_) / self.scale_, -1e100, 1e100)
        exponents = np.empty((len(X), len(self._terms())))
        for column, (scale, plus, minus) in enumerate(self._terms()):
            exponents[:, column] = scale * (Z[:, plus].sum(axis=1) - Z[:, minus].sum(axis=1))
        exponents -= exponents.max(axis=1, keepdims=True)
        dtype = np.dtype(self.dtype)
        return np.exp(np.maximum(exponents, FLOOR[dtype])).astype(dtype, copy=False)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Names that read like the formula, in terms of the standardised columns."""
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        return np.array([_formula(names, *term) for term in self._terms()], dtype=object)

    @property
    def mirrors_(self) -> npt.NDArray[np.intp]:
        """For each feature exp(t), the position of exp(−t); the constant is its own mirror."""
        place = {term: column for column, term in enumerate(self._terms())}
        return np.array([place[(scale, minus, plus)] for scale, plus, minus in self._terms()])

    def _terms(self) -> list[tuple[float, tuple[int, ...], tuple[int, ...]]]:
        """Each feature as exp(scale·(Σ plus − Σ minus)): factor, columns added, columns subtracted."""
        return list(self._each_term())

    def _each_term(self) -> Iterator[tuple[float, tuple[int, ...], tuple[int, ...]]]:
        columns = range(self.n_features_in_)
        for scale in np.atleast_1d(np.asarray(self.scales, dtype=np.float64)).tolist():
            yield from ((scale, (j,), ()) for j in columns)
            yield from ((scale, (), (j,)) for j in columns)
            if self.pair_sums:
                yield from ((scale, pair, ()) for pair in combinations(columns, 2))
                yield from ((scale, (), pair) for pair in combinations(columns, 2))
            if self.pair_differences:
                yield from ((scale, (i,), (j,)) for i, j in combinations(columns, 2))
                yield from ((scale, (j,), (i,)) for i, j in combinations(columns, 2))
        if self.offset:
            yield (1.0, (), ())

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags


def mean_and_scale(X: Array, weight: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of each column, infinite for a constant one.

    Sums are taken in an order of the values: nothing depends on how the rows came.
    """
    columns = range(X.shape[1])
    mean = np.array([_weighted_mean(X[:, j], weight) for j in columns])
    deviation = X - mean
    size = np.abs(deviation).max(axis=0)
    constant = size <= 1e-12 * np.abs(X).max(axis=0)
    size[constant] = 1.0
    variance = [_weighted_mean((deviation[:, j] / size[j]) ** 2, weight) for j in columns]
    return mean, np.where(constant, np.inf, size * np.sqrt(variance))


def _weighted_mean(x: Array, weight: Array) -> float:
    order = np.lexsort((weight, x))
    return float((x[order] * (weight[order] / weight.sum())).sum())


def _formula(names: Any, scale: float, plus: tuple[int, ...], minus: tuple[int, ...]) -> str:
    if not plus and not minus:
        return "1"
    factor = "" if scale == 1 else f"{scale:g}·"
    if len(plus) + len(minus) == 1:
        return f"exp({'-' if minus else ''}{factor}{names[(plus + minus)[0]]})"
    if plus and minus:
        inner = f"{names[plus[0]]} - {names[minus[0]]}"
    else:
        inner = " + ".join(str(names[j]) for j in plus + minus)
    sign = "-" if minus and not plus else ""
    return f"exp({sign}{factor}({inner}))" if sign or factor else f"exp({inner})"


def check_features(W: Any, names: Any) -> npt.NDArray[np.floating]:
    """The output of a feature map as an array (n, p), or an error that names the row and column at fault."""
    if hasattr(W, "to_numpy"):
        W = W.to_numpy()
    W = np.asarray(W.toarray() if sparse.issparse(W) else W)
    if W.dtype not in FLOOR:
        W = W.astype(np.float64)
    if W.ndim != 2 or W.shape[1] == 0:
        raise ValueError(f"the features must be a table with at least one column, got shape {W.shape} instead.")
    for bad, what in ((~np.isfinite(W), "not finite"), (W < 0, "negative")):
        if bad.any():
            i, j = np.argwhere(bad)[0]
            name = names[j] if names is not None and len(names) == W.shape[1] else j
            raise ValueError(
                f"features must be non-negative and finite; row {i}, column {j} ({name}) is {what}: {W[i, j]}. "
                "Use a map with non-negative output, such as ExpFeatures or MinMaxScaler(clip=True)."
            )
    largest = W.max(axis=1)
    if (largest == 0).any():
        i = int(np.argmin(largest))
        raise ValueError(
            f"row {i} of the features is zero in every column, so no class can win its race. Add a constant column, "
            "or a feature that covers this row."
        )
    return np.ascontiguousarray(W / largest[:, None])
