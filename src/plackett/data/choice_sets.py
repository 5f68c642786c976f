"""Choice situations as flat arrays of alternatives, attributes and persons' columns. Knows no model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from plackett.data.choice_tables import Columns, Spec, long_choices, long_parts, wide_parts
from plackett.data.columns import listed
from plackett.data.labels import Codes, Labels, codes_of, is_missing, listed_rows, locked, row_numbers
from plackett.data.partitioned import PartitionedChoices, is_dask
from plackett.data.rankings import Rankings
from plackett.data.types import Frame, Label, LabelsLike
from plackett.data.validation import plain
from plackett.model.race import Array
from plackett.optional import optional
from plackett.responses.base import in_order

__all__ = ["ChoiceSets"]


@dataclass(frozen=True, eq=False, repr=False)
class ChoiceSets:
    """Choice situations, made by `from_long`, `from_wide` or `read_choices`.

    In each situation one of two or more alternatives is chosen; situations may differ in their alternatives. An
    *attribute* describes an alternative in a situation (its price, its duration); a column of the *person* is the same
    for all alternatives of a situation (income, purpose). A text column becomes one indicator per level, as in
    `TableEncoder`; linear utilities leave the one of the first level out.

    Situations are indexed by numbers, slices, lists and masks, so that scikit-learn's splitters and cross-validation
    accept them as `X`. Instances are immutable.

    Attributes
    ----------
    alternatives : (A,) array
        Labels of the alternatives.
    situations : (T,) array
        Labels of the situations.
    start : (T + 1,) array
        First entry of each situation; the last number is the number of entries.
    alternative : (entries,) array
        Code of the alternative of each entry, sorted within a situation.
    values : (entries, p) array
        Attributes.
    context : (T, q) array
        Columns of the person.
    attribute_columns, person_columns : tuples of Number and Category
        Source columns.

    Examples
    --------
    >>> import pandas as pd
    >>> from plackett import ChoiceSets
    >>> frame = pd.DataFrame({"cost_bus": [2, 3], "cost_car": [5.5, 4], "income": [31, 47], "y": ["bus", "car"]})
    >>> X = ChoiceSets.from_wide(frame, alternatives=["bus", "car"], attributes=["cost"], person=["income"])
    >>> X
    ChoiceSets(2 situations, 2 alternatives, attributes: cost; person: income)
    >>> X.values.tolist(), X.context.tolist()
    ([[2.0], [5.5], [3.0], [4.0]], [[31.0], [47.0]])
    >>> X.chosen(frame["y"])
    array([0, 3])
    """

    alternatives: Labels
    situations: Labels
    start: Codes
    alternative: Codes
    values: Array
    context: Array
    attribute_columns: Columns
    person_columns: Columns

    def __post_init__(self) -> None:
        for array in self._arrays():
            locked(array)

    @classmethod
    def from_long(
        cls,
        frame: Frame,
        *,
        situation: str,
        alternative: str,
        attributes: Iterable[str] | None = None,
        person: Iterable[str] = (),
        available: str | None = None,
    ) -> ChoiceSets:
        """Read situations from a table with one row for each alternative of each situation.

        Parameters
        ----------
        frame : data frame
            From pandas or polars, with rows in any order. Situations are numbered by first occurrence. A Dask data
            frame stays in its partitions, with all rows of a situation in one of them; `PlackettLuceChooser.fit`
            and `predict_proba` accept the result.
        situation, alternative : str
            Columns with the situation and the alternative of a row.
        attributes : list of str, optional
            Columns of the alternatives; by default all numeric columns that vary within a situation.
        person : list of str
            Columns that are the same in all rows of a situation.
        available : str, optional
            A column of 0 and 1; rows with 0 are dropped.

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"trip": [1, 1, 2, 2, 2], "by": ["bus", "car", "bus", "car", "walk"]})
        >>> frame["minutes"] = [30, 20, 15, 12, 45]
        >>> X = ChoiceSets.from_long(frame, situation="trip", alternative="by")
        >>> X.attributes, X.start
        (('minutes',), array([0, 2, 5]))
        """
        spec = Spec(situation, alternative, attributes, person, available)
        return _in_partitions(frame, spec) if is_dask(frame) else cls(*long_parts(frame, spec))

    @classmethod
    def from_wide(
        cls,
        frame: Frame,
        *,
        alternatives: Iterable[Label],
        attributes: Iterable[str] | None = None,
        person: Iterable[str] = (),
        sep: str = "_",
        available: str | Mapping[Label, str] | None = None,
    ) -> ChoiceSets:
        """Read situations from a table with one row per situation and a column per attribute and alternative.

        Parameters
        ----------
        frame : data frame
            From pandas or polars. The row numbers become the labels of the situations.
        alternatives : list
            Labels of the alternatives, as in the column names.
        attributes : list of str, optional
            ``"cost"`` for columns ``cost_bus``, ``cost_car`` or ``bus_cost``, ``car_cost``; by default all attributes
            that every alternative has.
        person : list of str
            Columns of the person.
        sep : str
            Separator between the two parts of a name.
        available : str or dict, optional
            Columns of 0 and 1, named like an attribute; or a dictionary of alternatives and their columns, where
            omitted alternatives are always available.
        """
        if is_dask(frame):
            raise ValueError("a Dask data frame must have a row for each alternative: use ChoiceSets.from_long.")
        return cls(*wide_parts(frame, alternatives, attributes, person, sep, available))

    @classmethod
    def read_choices(
        cls,
        frame: Frame,
        *,
        situation: str,
        alternative: str,
        choice: str,
        attributes: Iterable[str] | None = None,
        person: Iterable[str] = (),
        available: str | None = None,
    ) -> tuple[ChoiceSets, Labels]:
        """Read situations as `from_long` does, and the label of the chosen alternative of each.

        Parameters
        ----------
        frame, situation, alternative, attributes, person, available
            As in `from_long`.
        choice : str
            A column that marks the chosen row of each situation (1 or true, others 0 or false), or that contains the
            label of the chosen alternative in all rows.

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"trip": [1, 1, 2, 2], "by": ["bus", "car"] * 2, "minutes": [30, 20, 15, 12]})
        >>> X, y = ChoiceSets.read_choices(
        ...     frame.assign(taken=[0, 1, 1, 0]), situation="trip", alternative="by", choice="taken"
        ... )
        >>> X.attributes, y.tolist()
        (('minutes',), ['car', 'bus'])
        """
        spec = Spec(situation, alternative, attributes, person, available, choice)
        if is_dask(frame):
            parts = _in_partitions(frame, spec)
            return parts, parts.labels()
        X = cls(*long_parts(frame, spec))
        y = long_choices(frame, situation, alternative, choice)
        X.chosen(y)
        return X, y

    @property
    def attributes(self) -> tuple[str, ...]:
        """Names of the columns of `values`."""
        return tuple(name for column in self.attribute_columns for name in column.names())

    @property
    def person(self) -> tuple[str, ...]:
        """Names of the columns of `context`."""
        return tuple(name for column in self.person_columns for name in column.names())

    @property
    def situation(self) -> Codes:
        """Number of the situation of each entry, (entries,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.start))

    @property
    def available(self) -> npt.NDArray[np.bool_]:
        """Availability of each alternative in each situation, (T, A)."""
        there = np.zeros((len(self), len(self.alternatives)), dtype=bool)
        there[self.situation, self.alternative] = True
        return there

    @property
    def shape(self) -> tuple[int]:
        """(T,), for scikit-learn."""
        return (len(self),)

    def __len__(self) -> int:
        return len(self.situations)

    def __getitem__(self, key: Any) -> ChoiceSets:
        rows = row_numbers(key, len(self))
        entries = in_order(rows, self.start)
        return ChoiceSets(
            self.alternatives,
            self.situations[rows],
            np.append(0, np.cumsum(np.diff(self.start)[rows])),
            self.alternative[entries],
            self.values[entries],
            self.context[rows],
            self.attribute_columns,
            self.person_columns,
        )

    def __eq__(self, other: object) -> bool:
        """Return True if both hold the same situations, with the same names."""
        if not isinstance(other, ChoiceSets):
            return NotImplemented
        same = self.attributes == other.attributes and self.person == other.person
        return same and all(np.array_equal(a, b) for a, b in zip(self._arrays(), other._arrays(), strict=True))

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return ChoiceSets, tuple(getattr(self, field.name) for field in fields(self))

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError("choice sets are no array: take .values, .alternative and .start.")

    def __repr__(self) -> str:
        size = f"{len(self)} situations, {len(self.alternatives)} alternatives"
        person = f"; person: {listed(self.person)}" if self.person else ""
        return f"ChoiceSets({size}, attributes: {listed(self.attributes) or 'none'}{person})"

    def _arrays(self) -> tuple[Labels, ...]:
        return self.alternatives, self.situations, self.start, self.alternative, self.values, self.context

    def chosen(self, y: LabelsLike) -> Codes:
        """Return the entry (T,) of the label in `y` of each situation; raises if it is not available."""
        labels = listed_rows(np.asarray(y) if hasattr(y, "__array__") else y)
        if len(labels) != len(self):
            raise ValueError(f"y must have one label for each of the {len(self)} situations, got {len(labels)}.")
        none = next((t for t, label in enumerate(labels) if is_missing(label)), None)
        if none is not None:
            raise ValueError(f"no alternative is chosen in situation {plain(self.situations[none])}.")
        return self._entries(np.arange(len(self)), codes_of(labels, self.alternatives, "alternative"), "chosen")

    def ranked(self, rankings: Rankings) -> Codes:
        """Return the entry of each entry of rankings of the alternatives, one ranking per situation."""
        if len(rankings) != len(self):
            raise ValueError(f"there must be one ranking for each of {len(self)} situations, got {len(rankings)}.")
        return self._entries(rankings.situation, rankings.with_items(self.alternatives.tolist()).item, "ranked")

    def _entries(self, situation: Codes, code: Codes, what: str) -> Codes:
        A = len(self.alternatives)
        there, wanted = self.situation * A + self.alternative, situation * A + code
        place = np.minimum(np.searchsorted(there, wanted), max(len(there) - 1, 0))
        wrong = there[place] != wanted
        if wrong.any():
            e = int(np.argmax(wrong))
            t = situation[e]
            held = self.alternatives[self.alternative[self.start[t] : self.start[t + 1]]].tolist()
            raise ValueError(
                f"{plain(self.alternatives[code[e]])} is {what} in situation {plain(self.situations[t])}, where it is "
                f"not available; there are {listed(map(plain, held))}."
            )
        return place

    def with_schema(self, other: ChoiceSets) -> ChoiceSets:
        """Convert to the alternatives and columns of others, such as those of the training data.

        Columns are matched by name; columns that `other` lacks are dropped. ``X[:0]`` is the schema of X alone.
        """
        used, place = np.unique(self.alternative, return_inverse=True)
        code = codes_of(self.alternatives[used].tolist(), other.alternatives, "alternative")[place]
        order = np.lexsort((code, self.situation))
        return ChoiceSets(
            other.alternatives,
            self.situations,
            self.start,
            code[order],
            _recoded(self.values, self.attribute_columns, other.attribute_columns, "attribute")[order],
            _recoded(self.context, self.person_columns, other.person_columns, "column of the person"),
            other.attribute_columns,
            other.person_columns,
        )


def _in_partitions(frame: Frame, spec: Spec) -> Any:
    """Return choice situations in a Dask data frame."""
    return PartitionedChoices.of(frame, spec)


def _recoded(block: Array, have: Columns, want: Columns, what: str) -> Array:
    """Convert the numbers (rows, …) of some columns to other columns of the same names."""
    ends = np.cumsum([0, *(len(column.names()) for column in have)])
    held = {column.name: (column, block[:, ends[j] : ends[j + 1]]) for j, column in enumerate(have)}
    parts = [np.empty((len(block), 0))]
    for column in want:
        if column.name not in held:
            raise ValueError(f"there is no {what} {column.name!r}; there are {listed(held) or 'none'}.")
        own, numbers = held[column.name]
        if own.text != column.text:
            kinds = ("texts", "numbers") if column.text else ("numbers", "texts")
            raise ValueError(f"{what} {column.name!r} held {kinds[0]} in training, and holds {kinds[1]} here.")
        if own.text and column.text and own.levels != column.levels:
            code = numbers[:, 0].astype(int) if len(own.levels) == 2 else numbers.argmax(axis=1)
            levels = optional("pandas", "text that is coded anew").Series(
                np.array(own.levels, dtype=object)[code], dtype=object
            )
            numbers = np.column_stack(list(column.encode(levels).values()))
        parts.append(numbers)
    return np.hstack(parts)
