"""Tables of choices, long (one row per alternative) and wide (one row per situation), as arrays of `ChoiceSets`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from plackett.data.columns import (
    MANY,
    Category,
    Number,
    TableError,
    as_frame,
    check_column,
    encode,
    is_date,
    is_text,
    listed,
    texts,
)
from plackett.data.labels import Codes, Labels, codes_of, distinct, given, label_array
from plackett.data.types import Frame, Label
from plackett.data.validation import plain
from plackett.model.race import Array
from plackett.optional import optional

if TYPE_CHECKING:
    import pandas as pd

Columns = tuple[Number | Category, ...]
Mask = npt.NDArray[np.bool_]
TRUE, FALSE = {"true", "yes", "1"}, {"false", "no", "0"}


class Parts(NamedTuple):
    """Arguments of `ChoiceSets`."""

    alternatives: Labels
    situations: Labels
    start: Codes
    alternative: Codes
    values: Array
    context: Array
    attribute_columns: Columns
    person_columns: Columns


class Spec(NamedTuple):
    """Columns of a table with one row for each alternative of each situation, as in `ChoiceSets.read_choices`."""

    situation: str
    alternative: str
    attributes: Iterable[str] | None
    person: Iterable[str]
    available: str | None
    choice: str | None = None


def long_parts(table: Frame, spec: Spec) -> Parts:
    """Convert a long table; situations are numbered by first occurrence."""
    situation, alternative, attributes, person, available, choice = spec
    frame, number, labels = situations_of(table, situation, alternative)
    persons = names_of(person, "person")
    alternatives = distinct(frame[alternative].tolist(), "an alternative")
    code = codes_of(frame[alternative].tolist(), alternatives, "alternative")
    there = np.ones(len(frame), dtype=bool) if available is None else _truth(frame, available)
    if attributes is None:
        taken = {situation, alternative, available, choice, *persons}
        named = _varying(frame, [name for name in frame if name not in taken], number, code)
    else:
        named = names_of(attributes, "attributes")
    return _assembled(frame, number, labels, code, alternatives, there, named, persons)


def wide_parts(
    table: Frame,
    alternatives: Iterable[Label],
    attributes: Iterable[str] | None,
    person: Iterable[str],
    sep: str,
    available: str | Mapping[Label, str] | None,
) -> Parts:
    """Convert a wide table, with a column for each attribute of each alternative."""
    pd = optional("pandas", "a table of choices")
    frame, known, persons = as_frame(table), given(alternatives, "alternatives", "an alternative"), names_of(person)
    n, A, labels = len(frame), len(known), known.tolist()
    there = np.ones((A, n), dtype=bool)
    if isinstance(available, Mapping):
        for label, column in available.items():
            there[codes_of([label], known, "alternative")[0]] = _truth(frame, column)
    elif available is not None:
        there = np.stack([_truth(frame, column) for column in _columns_of(frame, available, labels, sep)])
    named = names_of(attributes, "attributes") if attributes is not None else _wide_attributes(frame, labels, sep)
    if attributes is None and isinstance(available, str):
        named = [name for name in named if name != available]
    _refuse_both(named, persons)
    columns = {name: _columns_of(frame, name, labels, sep) for name in named}
    for name in persons:
        check_column(frame, name)
    long = pd.DataFrame(
        {name: pd.concat([frame[column] for column in found], ignore_index=True) for name, found in columns.items()}
        | {name: pd.concat([frame[name]] * A, ignore_index=True) for name in persons},
        index=range(n * A),
    )
    number, code = np.tile(np.arange(n), A), np.repeat(np.arange(A), n)
    return _assembled(long, number, np.arange(n), code, known, there.ravel(), named, persons)


def long_choices(table: Frame, situation: str, alternative: str, choice: str) -> Labels:
    """Return the label of the chosen alternative of each situation, from marks or from a column of labels."""
    frame, number, labels = situations_of(table, situation, alternative)
    check_column(frame, choice)
    held, options = frame[choice], frame[alternative].tolist()
    if held.isna().any():
        raise TableError(f"column {choice!r} is missing in situation {plain(labels[number[np.argmax(held.isna())]])}.")
    first = np.unique(number, return_index=True)[1]
    changes = _changes(held, number, first)
    if not changes.any() and set(held.unique()) <= set(options):
        return label_array(held.iloc[first].tolist())
    if not texts(held).str.lower().isin(TRUE | FALSE).all():
        t = number[np.argmax(changes)] if changes.any() else 0
        raise TableError(
            f"column {choice!r} must mark the chosen alternative by 1 or true and others by 0 or false, or hold the "
            f"label of the chosen one in all rows of a situation; in situation {plain(labels[t])} there is "
            f"{listed(map(plain, held[number == t].unique().tolist()))}."
        )
    chosen = _truth(frame, choice)
    times = np.bincount(number[chosen], minlength=len(labels))
    if (times != 1).any():
        t = int(np.argmax(times != 1))
        which = [option for option, marked in zip(options, chosen & (number == t), strict=True) if marked]
        told = f"{listed(map(plain, which))} are all chosen" if which else "no alternative is chosen"
        raise TableError(f"one alternative must be chosen, and in situation {plain(labels[t])} {told}.")
    rows = np.flatnonzero(chosen)
    return label_array(options[row] for row in rows[np.argsort(number[rows])])


def situations_of(table: Frame, situation: str, alternative: str) -> tuple[pd.DataFrame, Codes, Labels]:
    """Return the table, the number of the situation of each row, and the situations' labels."""
    pd = optional("pandas", "a table of choices")
    frame = as_frame(table)
    for name in (situation, alternative):
        check_column(frame, name)
        if frame[name].isna().any():
            raise TableError(f"column {name!r} is missing in row {int(np.argmax(frame[name].isna()))}.")
    if not len(frame):
        raise TableError("the table has no rows.")
    number, labels = pd.factorize(frame[situation])
    return frame, number.astype(np.int64), label_array(labels.tolist())


def _assembled(
    frame: pd.DataFrame,
    number: Codes,
    labels: Labels,
    code: Codes,
    alternatives: Labels,
    there: Mask,
    attributes: Sequence[str],
    person: Sequence[str],
) -> Parts:
    """Assemble the rows of available alternatives by situation, in the order of the alternatives."""
    _refuse_both(attributes, person)
    order = np.lexsort((code, number))
    order = order[there[order]]
    number, code = number[order], code[order]
    twice = (np.diff(number) == 0) & (np.diff(code) == 0)
    if twice.any():
        e = int(np.argmax(twice))
        raise TableError(f"situation {plain(labels[number[e]])} has alternative {plain(alternatives[code[e]])} twice.")
    entries = np.bincount(number, minlength=len(labels))
    if (entries < 2).any():
        t = int(np.argmax(entries < 2))
        raise TableError(
            f"situation {plain(labels[t])} has {entries[t]} available alternative{'' if entries[t] else 's'}, and a "
            f"choice needs two or more; leave out such situations ({(entries < 2).sum()} of {len(labels)})."
        )
    start = np.append(0, np.cumsum(entries))
    for name in (*attributes, *person):
        check_column(frame, name)
    rows = frame[[*attributes, *person]].iloc[order].reset_index(drop=True)
    for name in rows:
        _refuse_missing(rows[name], number, code, labels, alternatives)
    for name in person:
        changes = _changes(rows[name], number, start[:-1])
        if changes.any():
            t = number[np.argmax(changes)]
            raise TableError(
                f"column {name!r} belongs to the person, and must be the same in all rows of a situation; in situation "
                f"{plain(labels[t])} it is {listed(map(plain, rows[name][number == t].unique().tolist()))}."
            )
    blocks = rows[list(attributes)], rows[list(person)].iloc[start[:-1]]
    of_attributes, of_person = (tuple(_learned(block[name]) for name in block) for block in blocks)
    values, context = (
        np.ascontiguousarray(encode(columns, block).to_numpy(dtype=np.float64))
        for columns, block in zip((of_attributes, of_person), blocks, strict=True)
    )
    return Parts(alternatives, labels, start, code, values, context, of_attributes, of_person)


def _learned(column: pd.Series) -> Number | Category:
    name = str(column.name)
    if not is_text(column):
        return Number.learn(name, column)
    if is_date(column):
        raise TableError(f"column {name!r} holds dates: turn them into numbers, such as days since the first.")
    if column.nunique() > MANY:
        raise TableError(f"column {name!r} holds {column.nunique()} different texts: leave it out, or join some.")
    return Category.learn(name, column)


def _refuse_missing(column: pd.Series, number: Codes, code: Codes, labels: Labels, alternatives: Labels) -> None:
    wrong = column.isna().to_numpy()
    if not is_text(column):
        wrong = wrong | np.isinf(column.astype("Float64").to_numpy(dtype=np.float64, na_value=np.nan))
    if wrong.any():
        e = int(np.argmax(wrong))
        raise TableError(
            f"column {column.name!r} is missing or infinite for alternative {plain(alternatives[code[e]])} in "
            f"situation {plain(labels[number[e]])}{_others(int(wrong.sum()) - 1)}. Fill it in, or drop the column or "
            "the situations."
        )


def _others(n: int) -> str:
    """The number of further rows, in words."""
    return f" and in {n} other row{'s' * (n > 1)}" if n else ""


def _changes(column: pd.Series, number: Codes, first: Codes) -> Mask:
    """True where a column differs from the first row of its situation."""
    import pandas as pd

    held = pd.factorize(column)[0]
    changed: Mask = held != held[first][number]
    return changed


def _varying(frame: pd.DataFrame, names: Sequence[str], number: Codes, code: Codes) -> list[str]:
    """Return the numeric columns that vary within a situation; raises for a column that looks like the choice."""
    first = np.unique(number, return_index=True)[1]
    found = [name for name in names if not is_text(frame[name]) and _changes(frame[name], number, first).any()]
    for name in found:
        held = texts(frame[name])
        if not held.str.lower().isin(TRUE | FALSE).all():
            continue
        chosen = held.str.lower().isin(TRUE).to_numpy(dtype=bool)
        once = (np.bincount(number[chosen], minlength=number.max() + 1) == 1).all()
        if once and len(np.unique(code[chosen])) > 1:
            raise TableError(
                f"column {name!r} marks one alternative in each situation, as a choice does: name the attributes, "
                f"or read what was chosen by choice={name!r}."
            )
    return found


def _truth(frame: pd.DataFrame, name: str) -> Mask:
    """Return a column of 0 and 1, or of true and false, as booleans."""
    check_column(frame, name)
    held = texts(frame[name]).str.lower()
    wrong = ~held.isin(TRUE | FALSE)
    if wrong.any():
        raise TableError(
            f"column {name!r} must hold 0 and 1, or true and false, got {plain(frame[name][wrong].iloc[0])} instead."
        )
    return np.asarray(held.isin(TRUE).to_numpy(dtype=bool))


def names_of(columns: Iterable[str], what: str = "person") -> list[str]:
    """Return named columns, each of them once."""
    if isinstance(columns, str):
        raise ValueError(f"{what} must be a list of columns, got {columns!r} instead.")
    return [str(name) for name in given(columns, what, "a column").tolist()]


def _refuse_both(attributes: Sequence[str], person: Sequence[str]) -> None:
    for name in set(attributes) & set(person):
        raise ValueError(f"{name!r} is named as an attribute and as a column of the person.")


def _columns_of(frame: pd.DataFrame, name: str, labels: Sequence[Label], sep: str) -> list[str]:
    """Return the column of each alternative, all named like ``cost_car`` or all like ``car_cost``."""
    after, before = [f"{name}{sep}{label}" for label in labels], [f"{label}{sep}{name}" for label in labels]
    hits = [sum(column in frame for column in form) for form in (after, before)]
    if hits == [len(labels)] * 2 and after != before:
        raise TableError(
            f"{name!r} may mean the columns {listed(after)} or {listed(before)}: leave the others out of the table."
        )
    columns = after if hits[0] >= hits[1] else before
    missing = [column for column in columns if column not in frame]
    if missing and len(missing) < len(labels):
        raise TableError(
            f"{name!r} has no column {listed(map(repr, missing))}: every alternative needs one, of zeros where it "
            "means nothing."
        )
    for column in missing:
        check_column(frame, column)
    return columns


def _wide_attributes(frame: pd.DataFrame, labels: Sequence[Label], sep: str) -> list[str]:
    """Return the attributes that have a column for every alternative."""
    end, begin = f"{sep}{labels[0]}", f"{labels[0]}{sep}"
    found = [name.removesuffix(end) for name in frame if name.endswith(end) and name != end]
    found += [name.removeprefix(begin) for name in frame if name.startswith(begin) and name != begin]
    whole = (
        name
        for name in dict.fromkeys(found)
        if all(f"{name}{sep}{label}" in frame for label in labels)
        or all(f"{label}{sep}{name}" in frame for label in labels)
    )
    return list(whole)
