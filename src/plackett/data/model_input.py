"""Input of a model: numbers, or a table with a known schema. Texts, dates and missing values are refused by column."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import validate_data

from plackett.data.types import Label, MatrixLike
from plackett.data.validation import SHOWN, check_range, plain
from plackett.model.race import Array

NUMBERS = "biuf"  # kinds of numeric dtypes
MOMENTS = (datetime.date, datetime.time, datetime.timedelta)


def taken(model: Any, X: Any) -> Any:
    """Convert X for a fitted model: if it has a ``table_``, a data frame is encoded unless it already is."""
    table = getattr(model, "table_", None)
    if table is None or not hasattr(X, "columns"):
        return X
    names = list(X.columns)
    encoded = names == list(model.feature_names_in_) and names != [column.name for column in table.columns]
    return X if encoded else table.covariates(X)


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
    columns = (X.iloc[:, j] if hasattr(X, "iloc") else X[name] for j, name in enumerate(X.columns))
    held = [(name, _other_than_numbers(column)) for name, column in zip(X.columns, columns, strict=True)]
    wrong = [(name, what) for name, what in held if what is not None]
    if not wrong:
        return
    told = "; ".join(f"column {plain(name)} holds {what[0]} such as {what[1]}" for name, what in wrong[:SHOWN])
    more = f"; and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
    kinds = {what[0] for _, what in wrong}
    todo = [f"encode texts with {_encoded(who)}"] if "texts" in kinds else []
    todo += ["turn dates into numbers, such as days since the first"] if "dates or times" in kinds else []
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
        return "dates or times", str(present[0]) if len(present) else "none at all"
    for value in values.tolist():
        if isinstance(value, MOMENTS):
            return "dates or times", str(value)
        if isinstance(value, str) and not _is_number(value):
            return "texts", repr(value)
    return None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
