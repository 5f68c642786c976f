"""Input of a model: numbers, or a data frame whose texts and missing values become numbers as in `TableEncoder`.

Dates, texts in arrays and missing values in arrays are refused by column.
"""

from __future__ import annotations

import copy
import datetime
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import validate_data

from plackett.data.columns import Category, Number, TableError, as_frame, encode, learn_columns, tell_of_missing
from plackett.data.table import TableEncoder
from plackett.data.types import Label, MatrixLike
from plackett.data.validation import SHOWN, check_range, plain
from plackett.model.race import Array
from plackett.optional import optional

if TYPE_CHECKING:
    import pandas as pd

NUMBERS = "biuf"  # kinds of numeric dtypes
DATES = "dates or times"
MOMENTS = (datetime.date, datetime.time, datetime.timedelta)


def known_columns(model: Any) -> tuple[Number | Category, ...] | None:
    """Return the columns of the table that a model was fitted to, if it had texts or missing values, or a schema."""
    own = getattr(model, "columns_", None)
    found: tuple[Number | Category, ...] | None = getattr(getattr(model, "table_", None), "columns", own)
    return found


def taken(model: Any, X: Any) -> Any:
    """Convert X for a fitted model: if it knows columns, a data frame is encoded unless it already is.

    Missing values of columns that had some in the fit are filled in silently, since the fit said how.
    """
    columns = known_columns(model)
    if columns is None or not hasattr(X, "columns"):
        return X
    names = list(X.columns)
    if names == list(model.feature_names_in_) and names != [column.name for column in columns]:
        return X
    frame = _without_objects(as_frame(X))
    found = encode(columns, frame, getattr(getattr(model, "table_", None), "missing", "impute"))
    tell_of_missing([column for column in columns if not column.indicator], frame)
    return found


def encoded(model: Any, X: Any) -> Any:
    """Return X for a fit. A data frame with texts, categories or missing values becomes numbers.

    The model stores its columns as ``columns_``; a warning tells once how missing values are filled in.
    """
    if not hasattr(X, "columns"):
        return X
    who, kinds = type(model).__name__, [(_other_than_numbers(column), column) for _, column in _columns(X)]
    if any(kind is not None and kind[0] == DATES for kind, _ in kinds):
        check_numbers(X, who)
    if not any(kind is not None or _is_category(column) or _has_missing(column) for kind, column in kinds):
        return X
    frame = _without_objects(as_frame(X))
    try:
        columns = learn_columns(frame, categorical=[name for name in frame if _is_category(frame[name])])
        if not columns:
            raise TableError("the table has no column that could tell rows apart.")
        found = encode(columns, frame)
    except TableError as error:
        where = f" drop and categorical are settings of TableEncoder: {_encoded(who)}." if "=[" in str(error) else ""
        raise TableError(f"{error}{where}") from None
    tell_of_missing(columns, frame)
    model.columns_ = columns
    return found


def of_pipeline(model: Any, *tables: Any) -> tuple[Any, ...]:
    """Return the last step of a fitted pipeline, followed by tables as it takes them; other models as they are.

    After a `TableEncoder` alone the tables stay as they are, and the model knows their columns.
    """
    if not isinstance(model, Pipeline):
        return model, *tables
    *first, last = [step for _, step in model.steps if step not in (None, "passthrough")]
    if len(first) == 1 and isinstance(first[0], TableEncoder) and first[0].missing == "impute":
        last = copy.copy(last)
        last.columns_ = first[0].columns_
        return last, *tables
    for step in first:
        tables = tuple(None if table is None else step.transform(table) for table in tables)
    if hasattr(last, "feature_names_in_"):
        frame, names = optional("pandas", "a table with named columns").DataFrame, last.feature_names_in_
        tables = tuple(X if X is None or hasattr(X, "columns") else frame(X, columns=names) for X in tables)
    return last, *tables


def _columns(X: Any) -> Iterator[tuple[Label, Any]]:
    """Yield the names and columns of any kind of data frame."""
    for j, name in enumerate(X.columns):
        yield name, X.iloc[:, j] if hasattr(X, "iloc") else X[name]


def _is_category(column: Any) -> bool:
    """True for a column of a categorical type."""
    return "categor" in type(column.dtype).__name__.lower()


def _has_missing(column: Any) -> bool:
    """True if a column has missing values."""
    if hasattr(column, "isna"):
        return bool(column.isna().any())
    values = np.asarray(column)
    if values.dtype.kind == "f":
        return bool(np.isnan(values).any())
    return values.dtype.kind == "O" and any(value is None or value != value for value in values.tolist())


def _without_objects(frame: pd.DataFrame) -> pd.DataFrame:
    """Convert columns of objects that hold numbers and missing values."""
    to_numeric = optional("pandas", "a table with named columns").to_numeric
    held = [name for name in frame if frame[name].dtype == object and _other_than_numbers(frame[name]) is None]
    return frame.assign(**{name: to_numeric(frame[name]) for name in held}) if held else frame


def numbers(model: Any, X: Any, reset: bool = True) -> Array:
    """Return X (n, d) as finite numbers; `reset` in fit, otherwise the columns must be those of the fit.

    An error names the columns, their content and the remedy.
    """
    who = type(model).__name__
    check_numbers(X, who)
    found: Array = validate_data(model, X, dtype=np.float64, reset=reset, ensure_all_finite=False)
    names = list(X.columns) if hasattr(X, "columns") else list(range(found.shape[1]))
    low, high = found.min(axis=0), found.max(axis=0)
    _check_finite(found, low, high, names, who)
    if reset:
        check_range(low, high, names)
    return found


def _check_finite(X: Array, low: Array, high: Array, names: list[Label], who: str) -> None:
    """Refuse missing values and infinities by column; the minima and maxima show whether there are any."""
    wrong = np.flatnonzero(~(np.isfinite(low) & np.isfinite(high)))
    if not len(wrong):
        return
    missing = bool(np.isnan(low[wrong]).any())
    told, bad = [], np.isnan if missing else np.isinf
    for j in wrong[:SHOWN]:
        rows = np.flatnonzero(bad(X[:, j]))
        if len(rows):
            what = "NaN" if missing else "infinity"
            told.append(f"column {plain(names[j])} holds {what} in {len(rows)} of {len(X)} rows, such as row {rows[0]}")
    more = f"; and {len(wrong) - SHOWN} columns more" if len(wrong) > SHOWN else ""
    todo = (
        f"fill missing values in with {_encoded(who)}, which takes a data frame" if missing else "correct such numbers"
    )
    raise ValueError(f"{'; '.join(told)}{more}. {who} takes finite numbers: {todo}, or leave such rows or columns out.")


def _encoded(who: str) -> str:
    return f"make_pipeline(plackett.TableEncoder(), {who}())"


def check_dense(X: MatrixLike) -> None:
    """Refuse sparse X for exponential features."""
    if sparse.issparse(X):
        raise ValueError(
            "X is sparse, and features='learned' and features='exp' are exponentials, which leave no entry zero. Keep "
            "it sparse with a map that leaves zeros as they are, such as features=MaxAbsScaler() or, for numbers that "
            "are not negative, features=FunctionTransformer(accept_sparse=True); or, if it is small, give X.toarray()."
        )


def check_numbers(X: Any, who: str) -> None:
    """Refuse columns of a data frame that hold texts or dates, by name."""
    if not hasattr(X, "columns"):
        return
    held = [(name, _other_than_numbers(column)) for name, column in _columns(X)]
    wrong = [(name, what) for name, what in held if what is not None]
    if not wrong:
        return
    told = "; ".join(f"column {plain(name)} holds {what[0]} such as {what[1]}" for name, what in wrong[:SHOWN])
    more = f"; and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
    kinds = {what[0] for _, what in wrong}
    todo = [f"encode texts with {_encoded(who)}"] if "texts" in kinds else []
    todo += ["turn dates into numbers, such as days since the first"] if DATES in kinds else []
    raise ValueError(f"{told}{more}. {who} takes numbers: {', '.join(todo)}, or leave such columns out.")


def _other_than_numbers(column: Any) -> tuple[str, str] | None:
    """Describe values of a column that are not numbers, with an example; None for numbers or texts of numbers."""
    if getattr(column.dtype, "kind", "O") in NUMBERS:
        return None
    values = np.asarray(column)
    if values.dtype.kind in NUMBERS:
        return None
    if values.dtype.kind in "mM":
        present = values[~np.isnat(values)]
        return DATES, str(present[0]) if len(present) else "none at all"
    for value in values.tolist():
        if isinstance(value, MOMENTS):
            return DATES, str(value)
        if isinstance(value, str) and not _is_number(value):
            return "texts", repr(value)
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
