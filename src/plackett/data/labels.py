"""Labels of items and alternatives, their codes, and row indexing. The module knows neither rankings nor choices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

from plackett.data.columns import listed
from plackett.data.types import Label, Labels
from plackett.data.validation import is_missing, plain
from plackett.model.race import Array

Codes = npt.NDArray[np.int64]
UNHASHABLE = "the label of {} must be a text or a number, got a list or the like."


def label_array(labels: Iterable[Label]) -> Labels:
    """Return labels as an array of texts or whole numbers if all are, else of objects.

    Examples
    --------
    >>> label_array(["b", "a"]).dtype.kind, label_array([2, 1.0]).dtype.kind, label_array(["b", 1]).dtype.kind
    ('U', 'i', 'O')
    """
    held: list[Any] = [label.item() if isinstance(label, np.generic) else label for label in labels]
    kinds = {type(label) for label in held}
    numbers = all(issubclass(kind, (int, float)) for kind in kinds)
    if numbers and any(issubclass(kind, float) for kind in kinds) and all(float(label).is_integer() for label in held):
        held = [int(label) for label in held]  # columns of whole numbers with missing values are stored as floats
        kinds = {int}
    if len(kinds) == 1 and issubclass(kinds.pop(), (str, int)):
        return np.array(held)
    found = np.empty(len(held), dtype=object)
    found[:] = held
    return found


def distinct(labels: Iterable[Label], what: str) -> Labels:
    """Return distinct labels, sorted if possible, else by first occurrence; raises for missing labels and sets."""
    try:
        found: list[Any] = list(dict.fromkeys(labels))
    except TypeError:
        raise ValueError(UNHASHABLE.format(what)) from None
    wrong = [label for label in found if is_missing(label) or isinstance(label, (tuple, frozenset))]
    if wrong:
        raise ValueError(f"the label of {what} must be a text or a number, got {plain(wrong[0])} instead.")
    try:
        return label_array(sorted(found))
    except TypeError:
        return label_array(found)


def given(labels: Iterable[Label], name: str, what: str) -> Labels:
    """Return given labels in their order; raises for duplicates."""
    if isinstance(labels, (str, bytes)):
        raise ValueError(f"{name} must be a list of labels, got {labels!r} instead.")
    named = label_array(labels)
    if len(distinct(named.tolist(), what)) < len(named):
        held = named.tolist()
        raise ValueError(f"{name} names {plain(next(label for label in held if held.count(label) > 1))} twice.")
    return named


def codes_of(labels: Sequence[Label], known: Labels, what: str) -> Codes:
    """Return the position of each label among the known ones."""
    place = {label: code for code, label in enumerate(known.tolist())}
    try:
        return np.fromiter(map(place.__getitem__, labels), dtype=np.int64, count=len(labels))
    except KeyError as error:
        label = error.args[0]
    raise ValueError(f"there is no {what} {plain(label)}; there are {listed(map(plain, known.tolist()))}.")


def coded(labels: Iterable[Label], what: str) -> tuple[list[Any], Codes]:
    """Return the distinct labels by first occurrence, and the number among them of each label.

    Examples
    --------
    >>> coded(["b", "a", "b"], "an item")
    (['b', 'a'], array([0, 1, 0]))
    """
    if hasattr(labels, "factorize"):  # a column of a data frame
        code, found = labels.factorize(use_na_sentinel=False)
        return found.tolist(), np.asarray(code, dtype=np.int64)
    native = isinstance(labels, np.ndarray) and labels.dtype.kind in "USbiuf"
    held = labels.tolist() if native else list(labels)  # type: ignore[attr-defined]
    number: defaultdict[Any, int] = defaultdict(count().__next__)
    try:
        code = np.fromiter(map(number.__getitem__, held), dtype=np.int64, count=len(held))
    except TypeError:
        raise ValueError(UNHASHABLE.format(what)) from None
    return list(number), code


def listed_rows(table: Any) -> list[Any]:
    """Return the rows of a data frame or an array as lists, and anything else unchanged."""
    if hasattr(table, "columns"):
        columns = [table[name].to_list() for name in table.columns]
        return [list(row) for row in zip(*columns, strict=True)]
    return table.tolist() if isinstance(table, np.ndarray) else list(table)


def numbers_of(column: Any, name: Any) -> Array:
    """Return a column of numbers of any storage type, with NaN for missing values."""
    try:
        if hasattr(column, "isna"):
            return np.asarray(column.astype("Float64").to_numpy(dtype=np.float64, na_value=np.nan))
        return np.asarray(column).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"column {plain(name)} must hold numbers: {error}.") from None


def counted(counts: object, n: int) -> Array:
    """Return the counts of n rows, by default 1."""
    if counts is None:
        return np.ones(n)
    found = np.array(counts, dtype=np.float64)
    if found.shape != (n,):
        raise ValueError(f"counts must have one number for each of the {n} rows, got shape {found.shape}.")
    wrong = ~(np.isfinite(found) & (found >= 0))
    if wrong.any():
        t = int(np.argmax(wrong))
        raise ValueError(f"counts must be finite and not negative, got {found[t]} in row {t}.")
    return found


def row_numbers(key: Any, n: int) -> Codes:
    """Return the row numbers of an index: a number, a slice, numbers, or a mask, as in NumPy.

    Examples
    --------
    >>> row_numbers(slice(1, None), 3), row_numbers(-1, 3), row_numbers([True, False, True], 3)
    (array([1, 2]), array([2]), array([0, 2]))
    """
    if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:  # indexing by scikit-learn
        key = key[0]
    if isinstance(key, tuple):
        raise IndexError(f"rows are indexed by one number, slice or list, got {len(key)} of them.")
    if hasattr(key, "to_numpy"):
        key = key.to_numpy()
    rows = np.atleast_1d(np.arange(n)[key])
    if rows.ndim > 1:
        raise IndexError(f"rows are indexed by one dimension, got {rows.ndim}.")
    return rows


def locked(array: Labels) -> Labels:
    """Make an array read-only and return it."""
    array.setflags(write=False)
    return array
