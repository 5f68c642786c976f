"""Tabular front end: the columns of a table, its target, and how its rows become numbers."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from plackett.data.columns import (
    MANY,
    Category,
    Number,
    TableError,
    TableWarning,
    as_frame,
    check_column,
    encode,
    is_text,
    learn_columns,
    listed,
    tell_of_missing,
    texts,
)
from plackett.data.types import Frame, Label, Labels
from plackett.data.validation import plain

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TableEncoder"]

RARE = 10  # number of rows below which probabilities of a class are rough
MISSING = ("impute", "error")


class TableEncoder(TransformerMixin, BaseEstimator):
    """Turn a table with texts and missing values into numbers, as ``plackett fit`` does; a step for Pipelines.

    A text column becomes one indicator per level (for two levels, of the second only), and a new level is
    uninformative. A missing number becomes the median, and columns with missing values get an indicator. Constant
    columns are dropped. Dates, and texts that hardly repeat, are refused by name.

    Parameters
    ----------
    drop : sequence of str
        Columns to drop.
    categorical : sequence of str
        Columns of codes, not quantities; or of texts with any number of levels.
    missing : {"impute", "error"}
        Fill in missing values, or refuse them.

    Attributes
    ----------
    columns_ : tuple of Number and Category
        Columns in use, as fitted.
    feature_names_in_ : array of str
        Names of all training columns.

    Examples
    --------
    >>> import pandas as pd
    >>> from plackett.data.table import TableEncoder
    >>> frame = pd.DataFrame({"age": [31, 27, 54], "home": ["town", "farm", "town"]})
    >>> encoder = TableEncoder().fit(frame)
    >>> encoder.transform(frame[["home", "age"]]).to_numpy().tolist()
    [[31.0, 1.0], [27.0, 0.0], [54.0, 1.0]]
    >>> encoder.get_feature_names_out().tolist()
    ['age', 'home=town']
    """

    def __init__(self, drop: Iterable[str] = (), categorical: Iterable[str] = (), missing: str = "impute"):
        self.drop = drop
        self.categorical = categorical
        self.missing = missing

    def fit(self, X: Frame, y: object = None) -> TableEncoder:
        """Learn levels, medians, and which columns have missing values."""
        if self.missing not in MISSING:
            raise ValueError(f"missing must be one of {list(MISSING)}, got {self.missing!r} instead.")
        for name in ("drop", "categorical"):
            if isinstance(getattr(self, name), str):
                raise ValueError(f"{name} must be a list of columns, got {getattr(self, name)!r} instead.")
        frame = as_frame(X)
        self.columns_ = learn_columns(frame, self.drop, self.categorical)
        if not self.columns_:
            raise TableError("the table has no column that could tell rows apart.")
        self.feature_names_in_ = np.asarray(frame.columns, dtype=object)
        self.n_features_in_ = len(frame.columns)
        return self

    def transform(self, X: Frame) -> pd.DataFrame:
        """Return the rows as numbers; columns may be in any order, with others."""
        check_is_fitted(self)
        return encode(self.columns_, as_frame(X), self.missing)

    def get_feature_names_out(self, input_features: object = None) -> npt.NDArray[np.object_]:
        """Return names such as ``age``, ``age is missing`` and ``home=town``."""
        check_is_fitted(self)
        return np.asarray([name for column in self.columns_ for name in column.names()], dtype=object)


@dataclass(frozen=True)
class Table:
    """What a model stores about its training table, and how a table becomes covariates.

    Attributes
    ----------
    columns : tuple of Number and Category
        Columns in use; a table may have them in any order, with others.
    target : str
        Column of the classes.
    missing : {"impute", "error"}
        Treatment of missing values.
    counts : dict
        Number of training rows of each class.
    test : float
        Fraction of rows held out of training.
    seen : array of uint32
        Sorted checksums of the training rows, which identify new rows of a table.
    """

    columns: tuple[Number | Category, ...]
    target: str
    missing: str
    counts: dict[Label, int]
    test: float = 0.0
    seen: npt.NDArray[np.uint32] = field(default_factory=lambda: np.empty(0, dtype=np.uint32), repr=False)

    @classmethod
    def learn(
        cls,
        frame: pd.DataFrame,
        target: str,
        drop: Iterable[str] = (),
        categorical: Iterable[str] = (),
        missing: str = "impute",
        held_out: npt.NDArray[np.bool_] | bool = False,
    ) -> Table:
        """Learn from a table with `labelled` rows; warn about oddities, refuse what is unusable.

        Rows that are `held_out` (booleans) are checked, and nothing is learned from them.

        Examples
        --------
        >>> import pandas as pd
        >>> from plackett.data.table import Table
        >>> frame = pd.DataFrame({"age": [31, 27, 54], "home": ["town", "farm", "town"], "y": ["no", "yes", "no"]})
        >>> table = Table.learn(pd.concat([frame] * 10), "y")
        >>> table.covariates(frame[["home", "age"]]).columns.tolist()
        ['age', 'home=town']
        """
        frame, drop, categorical = as_frame(frame), set(drop), set(categorical)
        if target in drop | categorical:
            raise TableError(f"{target!r} is the target, not a column to predict from: name others to drop or encode.")
        columns = learn_columns(frame.drop(columns=target), drop, categorical, held_out)
        if not columns:
            raise TableError(f"there is no column to predict {target!r} from.")
        training = np.broadcast_to(~np.asarray(held_out), len(frame))
        return cls(columns, target, missing, class_counts(labels(frame, target)[training]))

    def covariates(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Return the numbers (n, d) of the rows of a table, as input of the classifier."""
        frame = as_frame(frame)
        covariates = encode(self.columns, frame, self.missing)
        tell_of_missing(self.columns, frame)
        return covariates

    def held_out(self, covariates: pd.DataFrame, y: Labels) -> npt.NDArray[np.bool_]:
        """Mark rows that the model was not fitted to: the new ones if all training rows are present, else all.

        In a table without all training rows, a warning counts the rows that equal some of them.
        """
        return not_fitted(row_marks(covariates, y), self.seen, "rows")


def not_fitted(marks: npt.NDArray[np.uint32], seen: npt.NDArray[np.uint32], what: str) -> npt.NDArray[np.bool_]:
    """Mark new rows by checksum if all `seen` rows are present; otherwise mark all rows, with a warning."""
    order = np.argsort(marks, kind="stable")
    ordered = marks[order]
    copy = np.arange(len(marks)) - np.searchsorted(ordered, ordered)
    fitted = np.searchsorted(seen, ordered, side="right") - np.searchsorted(seen, ordered)
    new = np.empty(len(marks), dtype=bool)
    new[order] = copy >= fitted
    known = int((~new).sum())
    if known == len(seen):
        return new
    if known:
        warnings.warn(
            f"{known} of {len(new)} {what} equal {what} that the model was fitted to; on those it errs less than on "
            "new ones.",
            TableWarning,
            stacklevel=3,
        )
    return np.ones(len(new), dtype=bool)


def labelled(frame: pd.DataFrame, target: str, missing: str = "impute") -> pd.DataFrame:
    """Return the rows that have a class; raises for a target that does not consist of classes."""
    check_column(frame, target, "target")
    absent = frame[target].isna()
    if absent.any():
        share = f"the target {target!r} is missing in {absent.sum()} of {len(frame)} rows"
        if missing == "error":
            raise TableError(f"{share}; fill it, or allow missing='impute', which leaves these rows out.")
        warnings.warn(f"{share}: these rows are left out.", TableWarning, stacklevel=2)
        frame = frame[~absent].reset_index(drop=True)
    y = labels(frame, target)
    distinct = len(np.unique(y))
    if distinct < 2:
        raise TableError(f"the target {target!r} must hold two classes or more, got {distinct} in {len(frame)} rows.")
    if distinct > max(2, MANY if y.dtype == object and not is_text(frame[target]) else len(y) / 2):
        raise TableError(
            f"the target {target!r} holds {distinct} different values in {len(y)} rows, such as {plain(y[0])}; a "
            "classifier needs classes that repeat. Is it the right column?"
        )
    return frame


def labels(frame: pd.DataFrame, target: str) -> Labels:
    """Return the classes of the rows as NumPy stores them: whole numbers, booleans or texts."""
    check_column(frame, target, "target")
    values = frame[target]
    if values.dtype.kind in "iub":
        return np.asarray(values.to_numpy(dtype=f"{values.dtype.kind}{values.dtype.itemsize}"))
    if values.dtype.kind == "f" and (values == values.round()).all():
        return np.asarray(values.to_numpy(dtype=np.int64))
    return np.asarray(texts(values), dtype=object)


def class_counts(y: Labels) -> dict[Label, int]:
    """Return the number of rows of each class, and warn about rare ones."""
    counts = dict(zip(*(part.tolist() for part in np.unique(y, return_counts=True)), strict=True))
    rare = {label: n for label, n in counts.items() if n < RARE}
    if rare:
        warnings.warn(
            f"few rows of some classes ({listed(f'{label}: {n}' for label, n in rare.items())}): their probabilities "
            f"will be rough. Join classes, or collect {RARE} rows of each or more.",
            TableWarning,
            stacklevel=3,
        )
    return counts


def row_marks(covariates: pd.DataFrame, y: Labels) -> npt.NDArray[np.uint32]:
    """Return a checksum of the covariates and class of each row."""
    rows = np.ascontiguousarray(covariates.to_numpy()) + 0.0  # one zero, not two
    marks = (zlib.crc32(row.tobytes() + str(label).encode()) for row, label in zip(rows, y.tolist(), strict=True))
    return np.fromiter(marks, dtype=np.uint32, count=len(rows))


def stratified(y: Labels, share: float, seed: int) -> npt.NDArray[np.bool_]:
    """Choose rows to hold out for testing: this share of each class, but never all of it."""
    rng = np.random.default_rng(seed)
    chosen = np.zeros(len(y), dtype=bool)
    for label in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == label))
        chosen[rows[: min(round(share * len(rows)), len(rows) - 1)]] = True
    return chosen
