"""Covariates that describe items: a table with a row for each item becomes standardised numbers z.

Means and deviations are those of the items of the fit, so that other items in the table change nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from plackett.data.columns import FEW, Category, Number, as_frame, check_column, is_date, is_text, listed
from plackett.data.labels import given
from plackett.data.types import Label, Labels
from plackett.data.validation import is_missing, plain
from plackett.model.race import Array
from plackett.optional import optional

if TYPE_CHECKING:
    import pandas as pd

FORMS = (
    "items must be a data frame with the items as index, a dictionary of items, or an array with one row for each item "
    "of the rankings in the order of R.items"
)
ROUNDING = 1e-9  # of standardised covariates that are the same


@dataclass(frozen=True)
class ItemCovariates:
    """Columns of a table of items, and the covariates of the items of a fit.

    Attributes
    ----------
    columns : tuple of Number and Category
        Columns in use; a table may have them in any order, with others.
    mean, scale : (d,) arrays
        Mean and standard deviation of each number over the items of the fit.
    z : (K, d) array
        Standardised covariates of the items of the fit.
    others : array (n,)
        Items of the table that were never ranked.
    other_z : (n, d) array
        Their covariates.
    """

    columns: tuple[Number | Category, ...]
    mean: Array
    scale: Array
    z: Array = field(repr=False)
    others: Labels
    other_z: Array = field(repr=False)

    @classmethod
    def learn(cls, table: Any, items: Labels) -> ItemCovariates:
        """Learn from a table that has a row for each of the items.

        Examples
        --------
        >>> import numpy as np
        >>> from plackett.data.item_covariates import ItemCovariates
        >>> table = {"ash": {"age": 3}, "elm": {"age": 5}, "fir": {"age": 9}}
        >>> found = ItemCovariates.learn(table, np.array(["ash", "elm"]))
        >>> found.z.tolist(), found.others.tolist(), found.other_z.tolist()
        ([[-1.0], [1.0]], ['fir'], [[5.0]])
        """
        frame = frame_of(table, items)
        labels = frame.index.tolist()
        known = set(labels)
        missing = [item for item in items.tolist() if item not in known]
        if missing:
            raise ValueError(
                f"items has no row for {listed(map(plain, missing))}, which {_were(missing)} ranked. Add "
                f"{'it' if len(missing) == 1 else 'them'}, or leave these items out of the rankings; R.with_items(...) "
                "leaves out those that occur in none."
            )
        ranked = frame.loc[items.tolist()]
        columns = tuple(_learn(name, frame[name], ranked[name]) for name in frame)
        if not columns:
            raise ValueError("items has no columns, and thus does not describe the items.")
        numbers = encoded(columns, ranked)
        mean, scale = numbers.mean(axis=0), numbers.std(axis=0)
        ranks = set(items.tolist())
        places = [i for i, label in enumerate(labels) if label not in ranks]
        other = (encoded(columns, frame.iloc[places]) - mean) / scale if places else np.empty((0, len(mean)))
        names = [labels[i] for i in places]
        others = given(names, "items", "an item") if names else np.empty(0, dtype=object)
        return cls(columns, mean, scale, np.ascontiguousarray((numbers - mean) / scale), others, other)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the numbers."""
        return tuple(name for column in self.columns for name in _names(column))

    @property
    def in_words(self) -> str:
        """Number of covariates."""
        n = len(self.names)
        return f"{n} covariate{'' if n == 1 else 's'}"

    def of(self, table: Any, items: Labels) -> tuple[Labels, Array]:
        """Return the items of a table that were never ranked, and their covariates.

        Items of the fit may be in the table with the covariates of the fit.
        """
        frame = frame_of(table, None)
        for column in self.columns:
            check_column(frame, column.name)
            _check_values(column.name, frame[column.name])
        z = (encoded(self.columns, frame) - self.mean) / self.scale
        place = {item: k for k, item in enumerate(items.tolist())}
        new, labels = [], frame.index.tolist()
        for i, label in enumerate(labels):
            if label not in place:
                new.append(i)
            elif not np.allclose(z[i], self.z[place[label]], rtol=ROUNDING, atol=ROUNDING):
                raise ValueError(
                    f"the item {plain(label)} was in the fit with other covariates. Give it another label to predict "
                    "it as a new item, or fit again."
                )
        found = given([labels[i] for i in new], "items", "an item") if new else np.empty(0, dtype=object)
        return found, z[new]


def frame_of(table: Any, items: Labels | None) -> pd.DataFrame:
    """Return a data frame with the items as index; arrays are in the order of `items`, if these are known."""
    pandas = optional("pandas", "items")
    if isinstance(table, Mapping):
        values = list(table.values())
        if not values:
            raise ValueError(f"{FORMS}, got an empty dictionary.")
        if all(np.ndim(value) == 0 and not isinstance(value, Mapping) for value in values):
            table = {item: [value] for item, value in table.items()}
        labels = list(table)
        table = pandas.DataFrame(list(table.values()))
        table.index = pandas.Index(labels, tupleize_cols=False)
    elif not hasattr(table, "columns"):
        if items is None:
            raise ValueError("new items have labels: give a data frame with the items as index, or a dictionary.")
        array = np.asarray(table)
        if array.ndim not in (1, 2) or len(array) != len(items):
            raise ValueError(
                f"{FORMS}, got {type(table).__name__} of shape {array.shape}; there are {len(items)} items."
            )
        table = pandas.DataFrame(array.reshape(len(items), -1), index=pandas.Index(items.tolist(), tupleize_cols=False))
    elif not hasattr(table, "iloc"):
        raise ValueError(f"{FORMS}, got {type(table).__name__} without an index: use its to_pandas().set_index(...).")
    if not isinstance(table.columns[0] if len(table.columns) else "", str):
        table = table.set_axis([f"z{j}" for j in range(len(table.columns))], axis=1)
    frame = as_frame(table)
    if len(frame):
        given(frame.index.tolist(), "items", "an item")
    return frame


def encoded(columns: tuple[Number | Category, ...], frame: pd.DataFrame) -> Array:
    """Return numbers (n, d); the first level of a text is the one that others are compared with."""
    parts = []
    for column in columns:
        found = column.encode(frame[column.name])
        parts += [found[name] for name in _names(column)]
    return np.column_stack(parts)


def _names(column: Number | Category) -> list[str]:
    many = column.text and len(column.levels) > 2
    return column.names()[1:] if many else column.names()


def _learn(name: str, values: pd.Series, ranked: pd.Series) -> Number | Category:
    """Learn a column from the items that were ranked; all its values are checked."""
    _check_values(name, values)
    text = is_text(values)
    if text and is_date(values):
        raise ValueError(f"column {name!r} of items holds dates: turn them into numbers, such as years.")
    distinct = ranked.nunique()
    if distinct < 2:
        raise ValueError(f"column {name!r} of items is the same for all ranked items: leave it out.")
    if text and distinct > max(FEW, len(ranked) / 2):
        raise ValueError(
            f"column {name!r} of items holds {distinct} different texts for {len(ranked)} items, like an identifier: "
            "leave it out, or group its levels."
        )
    return (Category if text else Number).learn(name, ranked)


def _check_values(name: str, values: pd.Series) -> None:
    """Raise for missing or infinite values."""
    absent = [label for label, value in zip(values.index.tolist(), values.tolist(), strict=True) if is_missing(value)]
    if absent:
        raise ValueError(
            f"column {name!r} of items is missing for {listed(map(plain, absent))}. Fill it in, for example with the "
            "median and a column that marks these items, or leave the column or the items out."
        )
    if not is_text(values) and np.isinf(values.to_numpy(dtype=np.float64)).any():
        raise ValueError(f"column {name!r} of items is infinite for some items: correct it, or leave the column out.")


def _were(labels: list[Label]) -> str:
    return "was" if len(labels) == 1 else "were"
