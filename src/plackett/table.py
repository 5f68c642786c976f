"""The tabular front end: which columns a table has and how they become numbers, as plain data for the model file."""

from __future__ import annotations

import difflib
import warnings
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from plackett.model.race import Array

if TYPE_CHECKING:
    import pandas as pd

RARE = 10  # rows of a class below which its probabilities are rough
MANY = 50  # levels of a text column from which it is taken for an identifier or free text
FEW = 10  # levels that are never too many


class TableError(ValueError):
    """A table that cannot be used as it is; the message says which column and what to do."""


@dataclass(frozen=True)
class Number:
    """A column of numbers; a missing one becomes the median, with an indicator column if there were any in training."""

    name: str
    median: float
    indicator: bool

    @classmethod
    def learn(cls, name: str, values: pd.Series) -> Number:
        """The median, and whether values were missing."""
        return cls(name, float(np.nanmedian(_floats(values))), bool(values.isna().any()))

    def encode(self, values: pd.Series) -> dict[str, Array]:
        """The numbers themselves under the column's own name."""
        import pandas as pd

        numbers = pd.to_numeric(values, errors="coerce")
        wrong = numbers.isna() & values.notna()
        if wrong.any():
            raise TableError(
                f"column {self.name!r} held numbers in training, and {wrong.sum()} of {len(values)} rows hold "
                f"something else, such as {values[wrong].iloc[0]!r}."
            )
        column = _floats(numbers)
        endless = int(np.isinf(column).sum())
        if endless:
            raise TableError(
                f"column {self.name!r} is infinite in {endless} of {len(values)} rows; correct these values, write "
                f"them as empty, or leave the column out with --drop {self.name}."
            )
        return {self.name: np.where(np.isnan(column), self.median, column)}


@dataclass(frozen=True)
class Category:
    """A column of texts, one indicator column a level (for two levels, of the second only).

    A level that is missing or was not seen in training gets the share of each level in training: standardised, zero in
    every column, so that it says nothing.
    """

    name: str
    levels: tuple[str, ...]
    shares: tuple[float, ...]
    indicator: bool

    @classmethod
    def learn(cls, name: str, values: pd.Series) -> Category:
        """The levels and their shares, and whether values were missing."""
        shares = texts(values).value_counts(normalize=True).sort_index()
        return cls(name, tuple(shares.index), tuple(shares.tolist()), bool(values.isna().any()))

    def encode(self, values: pd.Series) -> dict[str, Array]:
        """0 and 1 under names such as ``season=spring``."""
        held = texts(values)
        known = held.isin(self.levels).to_numpy(dtype=bool)
        new = held[~known & held.notna().to_numpy()]
        if len(new):
            warnings.warn(
                f"column {self.name!r} has {_count(len(new), 'value')} that did not occur in training, such as "
                f"{new.iloc[0]!r}: taken for the average of the training rows.",
                stacklevel=4,
            )
        skipped = 1 if len(self.levels) == 2 else 0
        return {
            f"{self.name}={level}": np.where(known, held == level, share)
            for level, share in list(zip(self.levels, self.shares, strict=True))[skipped:]
        }


@dataclass(frozen=True)
class Table:
    """What a model must know of the table it was fitted to, and how a table becomes covariates.

    Attributes
    ----------
    columns : tuple of Number and Category
        The columns that are used; a table may hold them in any order, with others.
    target : str
        The column of the classes.
    missing : {"impute", "error"}
        What to do about missing values.
    counts : dict
        Rows of each class in training.
    test : float
        Share of the rows that were held out of training.
    seen : array of uint32
        A checksum of each row of the training, sorted: they tell which rows of a table are new.
    """

    columns: tuple[Number | Category, ...]
    target: str
    missing: str
    counts: dict[Any, int]
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
    ) -> Table:
        """Look at a table with `labelled` rows; warn about what deserves a look, refuse what cannot be used.

        Examples
        --------
        >>> import pandas as pd
        >>> from plackett.table import Table
        >>> frame = pd.DataFrame({"age": [31, 27, 54], "home": ["town", "farm", "town"], "y": ["no", "yes", "no"]})
        >>> table = Table.learn(pd.concat([frame] * 10), "y")
        >>> table.covariates(frame[["home", "age"]]).columns.tolist()
        ['age', 'home=town']
        """
        drop, categorical = set(drop), set(categorical)
        for name in (*drop, *categorical):
            check_column(frame, name)
        used = frame[[name for name in frame if name != target and name not in drop]]
        still = [name for name in used if len(used[name].unique()) < 2]
        if still:
            warnings.warn(f"left out, being the same in every row: {listed(still)}.", stacklevel=2)
        columns = []
        for name in (name for name in used if name not in still):
            kind = Category if name in categorical or is_text(used[name]) else Number
            if name not in categorical:
                _check_kind(name, used[name])
            columns.append(kind.learn(name, used[name]))
        if not columns:
            raise TableError(f"there is no column to predict {target!r} from.")
        return cls(tuple(columns), target, missing, class_counts(labels(frame, target)))

    def covariates(self, frame: pd.DataFrame) -> pd.DataFrame:
        """The numbers that the classifier takes, (n, d), for the rows of a table."""
        import pandas as pd

        parts: dict[str, Array] = {}
        for column in self.columns:
            check_column(frame, column.name)
            values = frame[column.name]
            absent = values.isna().to_numpy()
            self._check_missing(column, int(absent.sum()), len(values))
            new = column.encode(values)
            if column.indicator:
                new[f"{column.name} is missing"] = absent * 1.0
            for name in new.keys() & parts.keys():
                raise TableError(f"two columns would be called {name!r}: rename one of them.")
            parts |= new
        return pd.DataFrame(parts, index=frame.index, dtype=np.float64)

    def held_out(self, covariates: pd.DataFrame, y: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Which rows the model was not fitted to: beside all rows of the training, the others; else every row.

        In a table without all of them, rows that equal some are counted in a warning.
        """
        marks = row_marks(covariates, y)
        order = np.argsort(marks, kind="stable")
        ordered = marks[order]
        copy = np.arange(len(marks)) - np.searchsorted(ordered, ordered)
        fitted = np.searchsorted(self.seen, ordered, side="right") - np.searchsorted(self.seen, ordered)
        new = np.empty(len(marks), dtype=bool)
        new[order] = copy >= fitted
        known = int((~new).sum())
        if known == len(self.seen):
            return new
        if known:
            warnings.warn(
                f"{known} of {len(new)} rows equal rows that the model was fitted to; on those it errs less than on "
                "new ones.",
                stacklevel=2,
            )
        return np.ones(len(new), dtype=bool)

    def _check_missing(self, column: Number | Category, absent: int, n_rows: int) -> None:
        if not absent:
            return
        share = f"column {column.name!r} is missing in {absent} of {n_rows} rows"
        if self.missing == "error":
            raise TableError(f"{share}; fill it, leave it out with --drop {column.name}, or allow --missing impute.")
        filled = f"the median {column.median:g}" if isinstance(column, Number) else "the average level"
        told = f", and told from others by a column '{column.name} is missing'" if column.indicator else ""
        warnings.warn(f"{share}: taken for {filled}{told}.", stacklevel=3)


def labelled(frame: pd.DataFrame, target: str, missing: str = "impute") -> pd.DataFrame:
    """The rows that have a class; a target that is not one of classes is refused."""
    check_column(frame, target, "target")
    absent = frame[target].isna()
    if absent.any():
        share = f"the target {target!r} is missing in {absent.sum()} of {len(frame)} rows"
        if missing == "error":
            raise TableError(f"{share}; fill it, or allow --missing impute, which leaves these rows out.")
        warnings.warn(f"{share}: these rows are left out.", stacklevel=2)
        frame = frame[~absent].reset_index(drop=True)
    y = labels(frame, target)
    distinct = len(np.unique(y))
    if distinct < 2:
        raise TableError(f"the target {target!r} must hold two classes or more, got {distinct} in {len(frame)} rows.")
    if distinct > max(2, MANY if y.dtype == object and not is_text(frame[target]) else len(y) / 2):
        raise TableError(
            f"the target {target!r} holds {distinct} different values in {len(y)} rows, such as {y[0]!r}; a classifier "
            "needs classes that repeat. Is it the right column?"
        )
    return frame


def labels(frame: pd.DataFrame, target: str) -> npt.NDArray[Any]:
    """The classes of the rows, as NumPy has them: whole numbers, booleans or texts."""
    check_column(frame, target, "target")
    values = frame[target]
    if values.dtype.kind in "iub":
        return np.asarray(values.to_numpy(dtype=f"{values.dtype.kind}{values.dtype.itemsize}"))
    if values.dtype.kind == "f" and (values == values.round()).all():
        return np.asarray(values.to_numpy(dtype=np.int64))
    return np.asarray(texts(values), dtype=object)


def class_counts(y: npt.NDArray[Any]) -> dict[Any, int]:
    """Rows of each class, with a warning about rare ones."""
    counts = dict(zip(*(part.tolist() for part in np.unique(y, return_counts=True)), strict=True))
    rare = {label: n for label, n in counts.items() if n < RARE}
    if rare:
        warnings.warn(
            f"few rows of some classes ({listed(f'{label}: {n}' for label, n in rare.items())}): their probabilities "
            f"will be rough. Join classes, or collect {RARE} rows of each or more.",
            stacklevel=3,
        )
    return counts


def row_marks(covariates: pd.DataFrame, y: npt.NDArray[Any]) -> npt.NDArray[np.uint32]:
    """A checksum of the covariates and class of each row."""
    rows = np.ascontiguousarray(covariates.to_numpy()) + 0.0  # one zero, not two
    marks = (zlib.crc32(row.tobytes() + str(label).encode()) for row, label in zip(rows, y.tolist(), strict=True))
    return np.fromiter(marks, dtype=np.uint32, count=len(rows))


def stratified(y: npt.NDArray[Any], share: float, seed: int) -> npt.NDArray[np.bool_]:
    """Which rows to hold out for testing: that share of each class, but never all of it."""
    rng = np.random.default_rng(seed)
    chosen = np.zeros(len(y), dtype=bool)
    for label in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == label))
        chosen[rows[: min(round(share * len(rows)), len(rows) - 1)]] = True
    return chosen


def check_column(frame: pd.DataFrame, name: str, what: str = "column") -> None:
    """An error that lists names close to the one that is not there."""
    if name in frame:
        return
    close = difflib.get_close_matches(name, frame.columns, cutoff=0.5) or [
        column for column in frame if column.lower() == name.lower()
    ]
    advice = f"did you mean {listed(close)}?" if close else f"the table has {listed(frame.columns)}."
    raise TableError(f"there is no {what} {name!r}; {advice}")


def is_text(values: pd.Series) -> bool:
    """Whether a column holds something other than numbers and booleans."""
    import pandas as pd

    return not pd.api.types.is_numeric_dtype(values)


def texts(values: pd.Series) -> pd.Series:
    """Values as text, a whole number without a decimal point however it is stored; missing ones stay missing."""

    def text(value: Any) -> str:
        whole = isinstance(value, (float, np.floating)) and float(value).is_integer()
        return str(int(value) if whole else value)

    present = values.notna()
    return values.astype(object).where(present, None).map(text, na_action="ignore").astype(object).where(present, None)


def _floats(values: pd.Series) -> Array:
    """Numbers with NaN for missing ones, however they are stored."""
    return np.asarray(values.astype("Float64").to_numpy(dtype=np.float64, na_value=np.nan))


def _check_kind(name: str, values: pd.Series) -> None:
    """Refuse dates and texts that are not levels; warn about row numbers."""
    import pandas as pd

    if pd.api.types.is_datetime64_any_dtype(values):
        raise TableError(f"column {name!r} holds dates; turn them into numbers, or leave them out with --drop {name}.")
    present = values.dropna()
    if not is_text(values):
        if len(present) >= RARE and pd.api.types.is_integer_dtype(values) and (present.diff().iloc[1:] == 1).all():
            warnings.warn(f"column {name!r} counts the rows: leave it out with --drop {name}.", stacklevel=3)
        return
    levels = present.unique()
    if len(levels) <= max(FEW, min(MANY, len(present) / 2)):
        return
    numbers = pd.to_numeric(present, errors="coerce").notna()
    if numbers.mean() > 0.5:
        raise TableError(
            f"column {name!r} holds numbers in {numbers.sum()} of {len(present)} rows, and in the others texts such as "
            f"{present[~numbers].iloc[0]!r}; correct these, write them as empty, or leave the column out with "
            f"--drop {name}."
        )
    raise TableError(
        f"column {name!r} holds {len(levels)} different texts in {len(present)} rows, such as {levels[0]!r}, like an "
        f"identifier: leave it out with --drop {name}, or insist with --categorical {name}."
    )


def _count(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def listed(names: Iterable[Any], most: int = 8) -> str:
    """Some of them, with commas, and how many more there are."""
    names = [str(name) for name in names]
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
