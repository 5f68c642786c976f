"""The paper's non-negative features, W = 𝒦(X) of section 2."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from plackett.capabilities import Ignored
from plackett.data.model_input import numbers
from plackett.data.validation import plain, sample_weights
from plackett.features.checks import FLOOR
from plackett.features.standardise import mean_and_scale, standardise
from plackett.model.race import Array

LARGE = 1 << 22  # entries of W in fit from which float32 is the default storage
SPAN = 40.0  # log-range of a row beyond which float32 is not used, as fits begin to differ


class KnownColumns(NamedTuple):
    """Summaries of the columns of X, without its rows."""

    n_rows: int
    names: Sequence[str] | None
    low: Array  # (d,) smallest values
    high: Array
    mean: Array
    scale: Array  # standard deviations, infinite for a constant column


class ExpFeatures(TransformerMixin, BaseEstimator):
    """The paper's features: exp(s·x_j), exp(−s·x_j) and a constant.

    Each row is divided by its largest entry, on the log scale, before exponentials are taken: a common factor
    of a row has no effect in the model, and no finite input overflows.

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
    dtype : {"auto", "float64", "float32"}
        Storage of the output; float32 halves the memory, sums are still taken in float64. "auto": float32 where fit
        sees 2²² entries of the output or more and no row spans more than e⁴⁰, so that predictions agree to 1e-5; else
        float64. Rows that span more than e⁶⁹, which float32 would cut off, `transform` then gives in float64.

    Attributes
    ----------
    mean_, scale_ : (d,) arrays
        Centres and scales of the columns.
    dtype_ : str
        Chosen storage type.

    Examples
    --------
    >>> import numpy as np
    >>> from plackett.features import ExpFeatures
    >>> features = ExpFeatures().fit(np.array([[0.0, 1.0], [2.0, 5.0]]))
    >>> [str(name) for name in features.get_feature_names_out()]
    ['exp(x0)', 'exp(x1)', 'exp(-x0)', 'exp(-x1)', '1']
    """

    logs_ignore = Ignored(("dtype",), "logarithms of features are compared within situations, in float64.")

    def __init__(
        self,
        scales: float | Iterable[float] = 1.0,
        offset: bool = True,
        pair_sums: bool = False,
        pair_differences: bool = False,
        standardize: bool = True,
        dtype: str = "auto",
    ):
        self.scales = scales
        self.offset = offset
        self.pair_sums = pair_sums
        self.pair_differences = pair_differences
        self.standardize = standardize
        self.dtype = dtype

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> ExpFeatures:
        """Learn the mean and standard deviation of each column."""
        self._check()
        X = numbers(self, X)
        d = X.shape[1]
        self.mean_, self.scale_ = np.zeros(d), np.ones(d)
        if self.standardize:
            self.mean_, self.scale_ = mean_and_scale(X, sample_weights(sample_weight, len(X)))
        return self._choose_dtype(len(X), X.min(axis=0), X.max(axis=0))

    def fit_columns(self, columns: KnownColumns) -> ExpFeatures:
        """Fit to summaries of the columns of distributed rows."""
        self._check()
        self.n_features_in_ = len(columns.low)
        if columns.names is not None:
            self.feature_names_in_ = np.asarray(columns.names, dtype=object)
        self.mean_, self.scale_ = np.zeros(self.n_features_in_), np.ones(self.n_features_in_)
        if self.standardize:
            self.mean_, self.scale_ = columns.mean, columns.scale
        return self._choose_dtype(columns.n_rows, columns.low, columns.high)

    def _check(self) -> None:
        scales = np.atleast_1d(np.asarray(self.scales, dtype=np.float64))
        if scales.ndim != 1 or not len(scales) or not np.all((scales > 0) & np.isfinite(scales)):
            raise ValueError(f"scales must be positive numbers, got {plain(self.scales)} instead.")
        if self.dtype != "auto" and np.dtype(self.dtype) not in FLOOR:
            raise ValueError(f"dtype must be 'auto', 'float64' or 'float32', got {self.dtype!r} instead.")

    def _choose_dtype(self, n_rows: int, low: Array, high: Array) -> ExpFeatures:
        small = self._span(np.array([low, high])) <= SPAN and n_rows * len(self._terms()) >= LARGE
        self.dtype_ = np.dtype(("float32" if small else "float64") if self.dtype == "auto" else self.dtype).name
        return self

    def _span(self, X: Array) -> float:
        """Return an upper bound of the log-range of a row."""
        ends = np.abs(standardise(np.array([X.min(axis=0), X.max(axis=0)]), self.mean_, self.scale_))
        largest = np.sort(ends.max(axis=0))[::-1]
        terms = 2 if self.pair_sums or self.pair_differences else 1
        return 2.0 * float(np.asarray(self.scales, dtype=np.float64).max() * largest[:terms].sum())

    def transform(self, X: object) -> npt.NDArray[np.floating]:
        """Return rows of W, scaled to a largest entry of 1."""
        exponents, dtype = self.exponents(X), np.dtype(getattr(self, "dtype_", self.dtype))  # not in early model files
        exponents -= exponents.max(axis=1, keepdims=True)
        if self.dtype == "auto" and exponents.min() < FLOOR[dtype]:
            dtype = np.dtype(np.float64)
        np.maximum(exponents, FLOOR[dtype], out=exponents)
        return np.exp(exponents, out=exponents).astype(dtype, copy=False)

    def exponents(self, X: object) -> Array:
        """Return ln W by the formulas, before scaling, so that rows can be compared."""
        check_is_fitted(self)
        X = numbers(self, X, reset=False)
        Z = standardise(X, self.mean_, self.scale_)
        terms = self._terms()
        exponents = np.empty((len(X), len(terms)))
        for column, (scale, plus, minus) in enumerate(terms):
            exponents[:, column] = scale * (_sum(Z, plus) - _sum(Z, minus))
        return exponents

    def get_feature_names_out(self, input_features: object = None) -> npt.NDArray[np.object_]:
        """Return names that read like the formula, in terms of the standardised columns."""
        check_is_fitted(self)
        names = OneToOneFeatureMixin.get_feature_names_out(self, input_features)
        return np.array([_formula(names, *term) for term in self._terms()], dtype=object)

    @property
    def mirrors_(self) -> npt.NDArray[np.intp]:
        """Index of exp(−t) for each feature exp(t); the constant is its own mirror."""
        place = {term: column for column, term in enumerate(self._terms())}
        return np.array([place[(scale, minus, plus)] for scale, plus, minus in self._terms()])

    def _terms(self) -> list[tuple[float, tuple[int, ...], tuple[int, ...]]]:
        """Return each feature exp(scale·(Σ plus − Σ minus)) as factor, columns added, columns subtracted."""
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


def _sum(Z: Array, columns: tuple[int, ...]) -> Array | float:
    """Sum at most two columns."""
    total: Array | float = sum((Z[:, j] for j in columns), start=0.0)
    return total


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
