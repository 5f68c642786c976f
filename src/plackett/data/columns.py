"""Columns of a table: their content, and how each becomes numbers. The module knows neither classes nor files."""

from __future__ import annotations

import difflib
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from plackett.data.types import Frame
from plackett.data.validation import plain
from plackett.model.race import Array
from plackett.optional import optional

if TYPE_CHECKING:
    import pandas as pd

COUNTING = 10  # number of rows from which increasing whole numbers count as row numbers
MANY = 50  # number of levels from which a text column counts as identifier or free text
FEW = 10  # number of levels that is always accepted
DAY = r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{4}"
DATE = rf"(?:{DAY})(?:[T ]\d{{1,2}}:\d{{2}}.*)?"


class TableError(ValueError):
    """Raised for an unusable table; the message names the column and the remedy."""


class TableWarning(UserWarning):
    """Something in a table that deserves attention."""


@dataclass(frozen=True)
class Number:
    """Numeric column; missing values become the median, with an indicator column if training had any."""

    text: ClassVar[Literal[False]] = False

    name: str
    median: float
    indicator: bool

    @classmethod
    def learn(cls, name: str, values: pd.Series) -> Number:
        """Learn the median, and whether values were missing."""
        return cls(name, float(np.nanmedian(_floats(values))), bool(values.isna().any()))

    @property
    def filling(self) -> str:
        """What missing values become, in words."""
        return f"the median {self.median:g}"

    def names(self) -> list[str]:
        """Return the names of its numbers."""
        return [self.name, *_indicator(self)]

    def encode(self, values: pd.Series) -> dict[str, Array]:
        """Return the numbers under the column's own name, with the indicator if there is one."""
        import pandas as pd

        numbers = pd.to_numeric(values, errors="coerce")
        wrong = numbers.isna() & values.notna()
        if wrong.any():
            raise TableError(
                f"column {self.name!r} held numbers in training, and {wrong.sum()} of {len(values)} rows hold "
                f"something else, such as {plain(values[wrong].iloc[0])}."
            )
        column = _floats(numbers)
        endless = int(np.isinf(column).sum())
        if endless:
            raise TableError(
                f"column {self.name!r} is infinite in {endless} of {len(values)} rows; correct these values, write "
                f"them as empty, or fit without the column: drop={[self.name]}."
            )
        return {self.name: np.where(np.isnan(column), self.median, column)}


@dataclass(frozen=True)
class Category:
    """Text column with one indicator per level (for two levels, of the second only).

    A missing or new level gets the share of each level in training: standardised, this is zero in every column, and
    thus uninformative.
    """

    text: ClassVar[Literal[True]] = True
    filling: ClassVar[str] = "the average level"

    name: str
    levels: tuple[str, ...]
    shares: tuple[float, ...]
    indicator: bool

    @classmethod
    def learn(cls, name: str, values: pd.Series) -> Category:
        """Learn the levels and their shares, and whether values were missing."""
        shares = texts(values).value_counts(normalize=True).sort_index()
        return cls(name, tuple(shares.index), tuple(shares.tolist()), bool(values.isna().any()))

    def names(self) -> list[str]:
        """Return the names of its numbers."""
        return [*(f"{self.name}={level}" for level, _ in self._shown()), *_indicator(self)]

    def _shown(self) -> list[tuple[str, float]]:
        levels = list(zip(self.levels, self.shares, strict=True))
        return levels[1:] if len(levels) == 2 else levels

    def encode(self, values: pd.Series) -> dict[str, Array]:
        """Return 0 and 1 under names such as ``season=spring``."""
        held = texts(values)
        known = held.isin(self.levels).to_numpy(dtype=bool)
        new = held[~known & held.notna().to_numpy()]
        if len(new):
            count = "1 value" if len(new) == 1 else f"{len(new)} values"
            _warn(
                f"column {self.name!r} has {count} that did not occur in training, such as {new.iloc[0]!r}: taken for "
                "the average of the training rows."
            )
        return {f"{self.name}={level}": np.where(known, held == level, share) for level, share in self._shown()}


def _indicator(column: Number | Category) -> list[str]:
    return [f"{column.name} is missing"] if column.indicator else []


def as_frame(table: Frame) -> pd.DataFrame:
    """Return a pandas data frame with unique text names, from any kind of data frame.

    Examples
    --------
    >>> import polars as pl
    >>> from plackett.data.columns import as_frame
    >>> as_frame(pl.DataFrame({"age": [31, None], "home": ["town", "farm"]}))["age"].isna().tolist()
    [False, True]
    """
    pd = optional("pandas", "a table with named columns")
    if not hasattr(table, "columns"):
        raise TableError(f"expected a data frame with named columns, got {type(table).__name__} instead.")
    if not hasattr(table, "iloc"):
        table = pd.DataFrame({name: np.asarray(table[name]) for name in table.columns})
    frame = table.set_axis(table.columns.map(str), axis=1)
    twice = frame.columns[frame.columns.duplicated()]
    if len(twice):
        raise TableError(f"two columns are called {twice[0]!r}: rename one of them.")
    return frame


def learn_columns(
    frame: pd.DataFrame,
    drop: Iterable[str] = (),
    categorical: Iterable[str] = (),
    held_out: npt.NDArray[np.bool_] | bool = False,
) -> tuple[Number | Category, ...]:
    """Learn how each column becomes numbers; warn about oddities, and refuse all unusable columns at once.

    All rows are checked; medians and levels are learned from rows that are not `held_out` (booleans).
    """
    drop, categorical = set(drop), set(categorical)
    for name in (*drop, *categorical):
        check_column(frame, name)
    used = frame[[name for name in frame if name not in drop]]
    training = used[np.broadcast_to(~np.asarray(held_out), len(used))]
    still = [name for name in used if len(training[name].unique()) < 2]
    if still:
        _warn(f"left out, being the same in every row: {listed(still)}.")
    used = used[[name for name in used if name not in still]]
    _refuse_unusable(used[[name for name in used if name not in categorical]])
    return tuple(
        (Category if name in categorical or is_text(used[name]) else Number).learn(name, training[name])
        for name in used
    )


def encode(columns: Iterable[Number | Category], frame: pd.DataFrame, missing: str = "impute") -> pd.DataFrame:
    """Return the numbers (n, d) of the rows of a table, as input of a classifier."""
    pd = optional("pandas", "a table with named columns")
    columns = list(columns)
    some = _missing(columns, frame)
    if some and missing == "error":
        names = [column.name for column in some]
        raise TableError(
            f"{listed(some.values())}; fill {'it' if len(some) == 1 else 'them'} in, fit without (drop={names}), or "
            "allow missing='impute'."
        )
    parts: dict[str, Array] = {}
    for column in columns:
        new = column.encode(frame[column.name])
        new |= {name: frame[column.name].isna().to_numpy() * 1.0 for name in _indicator(column)}
        for name in new.keys() & parts.keys():
            raise TableError(f"two columns would be called {name!r}: rename one of them.")
        parts |= new
    return pd.DataFrame(parts, index=frame.index, dtype=np.float64)


def tell_of_missing(columns: Iterable[Number | Category], frame: pd.DataFrame) -> None:
    """Warn how missing values are filled."""
    for column, share in _missing(columns, frame).items():
        marked = f"; a new column '{column.name} is missing' marks these rows" if column.indicator else ""
        _warn(f"{share}: filled in with {column.filling}{marked}.")


def _missing(columns: Iterable[Number | Category], frame: pd.DataFrame) -> dict[Number | Category, str]:
    """Return the columns with missing values, and describe their number."""
    counts = {}
    for column in columns:
        check_column(frame, column.name)
        counts[column] = int(frame[column.name].isna().sum())
    return {
        column: f"column {column.name!r} is missing in {n} of {len(frame)} rows" for column, n in counts.items() if n
    }


def check_column(frame: pd.DataFrame, name: str, what: str = "column") -> None:
    """Raise for an unknown column, with similar names."""
    if name in frame:
        return
    close = difflib.get_close_matches(name, frame.columns, cutoff=0.5) or [
        column for column in frame if column.lower() == name.lower()
    ]
    advice = f"did you mean {listed(close)}?" if close else f"the table has {listed(frame.columns)}."
    raise TableError(f"there is no {what} {name!r}; {advice}")


def kind_of(values: pd.Series) -> str:
    """Name the kind of values of a column."""
    import pandas as pd

    types = pd.api.types
    if types.is_bool_dtype(values):
        return "true or false"
    if types.is_numeric_dtype(values):
        return "whole numbers" if types.is_integer_dtype(values) else "numbers"
    return "dates" if is_date(values) else "text"


def is_text(values: pd.Series) -> bool:
    """True if a column holds something other than numbers and booleans."""
    import pandas as pd

    return not pd.api.types.is_numeric_dtype(values)


def is_date(values: pd.Series) -> bool:
    """True if a column holds dates, or texts that look like dates."""
    import pandas as pd

    if pd.api.types.is_datetime64_any_dtype(values) or isinstance(values.dtype, pd.PeriodDtype):
        return True
    present = values.dropna()
    return is_text(values) and len(present) > 0 and bool(texts(present).str.fullmatch(DATE).all())


def texts(values: pd.Series) -> pd.Series:
    """Return values as text, whole numbers without a decimal point; missing values stay missing."""

    def text(value: float | str) -> str:
        whole = isinstance(value, (float, np.floating)) and float(value).is_integer()
        return str(int(value) if whole else value)

    present = values.notna()
    return values.astype(object).where(present, None).map(text, na_action="ignore").astype(object).where(present, None)


def listed(names: Iterable[object], most: int = 8) -> str:
    """Join names by commas; after `most` of them, count the others."""
    shown = [str(name) for name in names]
    return ", ".join(shown[:most]) + (f" and {len(shown) - most} more" if len(shown) > most else "")


def _refuse_unusable(frame: pd.DataFrame) -> None:
    """Refuse dates and texts that are not levels, all at once; warn about row numbers."""
    found = {name: problem for name in frame if (problem := _problem(frame[name]))}
    for name in frame:
        if _counts_rows(frame[name]):
            _warn(f"column {name!r} counts the rows: leave it out with drop={[name]}.")
    if not found:
        return
    words = "; ".join(f"column {name!r} holds {told}" for name, (told, _) in list(found.items())[:MANY])
    remedies = {remedy for _, remedy in found.values()}
    advice = [f"leave {'it' if len(found) == 1 else 'them'} out with drop={list(found)}"]
    if "count" in remedies:
        advice.append("turn dates into numbers, such as days since the first")
    if "convert" in remedies:
        advice.append("convert such texts with pandas.to_numeric")
    if "correct" in remedies:
        advice.append("correct texts among numbers or write them as empty")
    insist = [name for name, (_, remedy) in found.items() if remedy in ("count", "insist")]
    if insist:
        advice.append(f"insist on one level a text with categorical={insist}")
    raise TableError(f"{words}. What to do: {', or '.join(advice)}.")


def _problem(values: pd.Series) -> tuple[str, str] | None:
    """Return why a column is unusable and the alternative to dropping it, or None."""
    import pandas as pd

    if not is_text(values):
        return None
    present = values.dropna()
    if is_date(values):
        return f"dates such as {texts(present).iloc[0]}", "count"
    levels = present.unique()
    if len(levels) <= max(FEW, min(MANY, len(present) / 2)):
        return None
    numbers = pd.to_numeric(texts(present), errors="coerce").notna()
    if numbers.all():
        return f"numbers as texts, such as {plain(levels[0])}", "convert"
    if numbers.mean() > 0.5:
        other = plain(present[~numbers].iloc[0])
        return f"numbers in {numbers.sum()} of {len(present)} rows, and in the others texts such as {other}", "correct"
    said = f"{len(levels)} different texts in {len(present)} rows, such as {plain(levels[0])}, like an identifier"
    return said, "insist"


def _counts_rows(values: pd.Series) -> bool:
    """True if whole numbers increase steadily, even with gaps, or number all rows in another order."""
    if is_text(values) or values.notna().sum() < COUNTING:
        return False
    numbers = _floats(values.dropna())
    steps, span = np.diff(numbers), np.ptp(numbers) + 1
    if not (np.isfinite(span) and (numbers == np.round(numbers)).all()):
        return False
    return bool(((steps > 0).all() and span < 2 * len(numbers)) or span == len(np.unique(numbers)) == len(numbers))


def _floats(values: pd.Series) -> Array:
    """Return numbers of any storage type, with NaN for missing values."""
    return np.asarray(values.astype("Float64").to_numpy(dtype=np.float64, na_value=np.nan))


def _warn(words: str) -> None:
    warnings.warn(words, TableWarning, stacklevel=4)
