"""Choice situations in partitions: each becomes ordinary `ChoiceSets` on the worker that has it, by the same code.

One look at each finds alternatives, columns and what is wrong, which is told by partition and situation. All rows of a
situation must be in one partition.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plackett.cluster.dask_private import empty_frame
from plackett.cluster.partitions import looked
from plackett.data.choice_sets import ChoiceSets
from plackett.data.choice_tables import Columns, Spec, long_parts, situations_of
from plackett.data.columns import MANY, Category, Number, TableError, check_column
from plackett.data.labels import Labels, distinct
from plackett.data.partitioned import PartitionedChoices, chosen_labels
from plackett.data.validation import plain


def delayed_sets(X: PartitionedChoices) -> list[Any]:
    """Choice sets of each partition as delayed values, without the choices; an empty partition gives an empty list."""
    import dask

    ask = dask.delayed(sets_or_nothing, pure=False)
    return [ask(part, X.spec._replace(choice=None)) for part in X.table.to_delayed()]


class Look(NamedTuple):
    """What one partition holds."""

    n: int
    problem: str | None
    n_entries: int
    alternatives: Labels
    attributes: Columns
    person: Columns
    marks: npt.NDArray[np.uint64]  # of the situations' labels


def sets_in(part: Any, spec: Spec, schema: ChoiceSets | None = None) -> ChoiceSets:
    """The situations of a partition, with the alternatives and columns of all."""
    found = ChoiceSets(*long_parts(part, spec))
    return found if schema is None else found.with_schema(schema)


def sets_or_nothing(part: Any, spec: Spec) -> Any:
    """The situations of a partition, or that it has none."""
    return sets_in(part, spec) if len(part) else []


def look(part: Any, spec: Spec) -> Look:
    """What a partition holds, and what is wrong with it; nothing is raised, so that the first can be told."""
    import pandas as pd

    none, marks = np.empty(0, dtype=object), np.empty(0, dtype=np.uint64)
    if not len(part):
        return Look(0, None, 0, none, (), (), marks)
    try:
        labels = situations_of(part, spec.situation, spec.alternative)[2]
        marks = pd.util.hash_array(np.array([str(label) for label in labels.tolist()], dtype=object), categorize=False)
        X = sets_in(part, spec)
        if spec.choice is not None:
            X.chosen(chosen_labels(part, spec))
    except (TypeError, ValueError) as error:
        return Look(len(marks), str(error), 0, none, (), (), marks)
    return Look(len(X), None, len(X.alternative), X.alternatives, X.attribute_columns, X.person_columns, marks)


def label_in(part: Any, spec: Spec, number: int) -> Any:
    """The label of a situation of a partition."""
    return situations_of(part, spec.situation, spec.alternative)[2][number]


def look_at(
    client: Any, parts: Sequence[Any], spec: Spec, columns: Sequence[str]
) -> tuple[ChoiceSets, Spec, list[int]]:
    """Alternatives and columns of all partitions, without any situation; the columns by name; and their sizes."""
    looks = _looks(client, parts, spec)
    if spec.attributes is None:
        found = {column.name for each in looks for column in each.attributes}
        spec = spec._replace(attributes=tuple(str(name) for name in columns if str(name) in found))
        looks = _looks(client, parts, spec)
    if not any(each.n for each in looks):
        raise TableError("the table has no rows.")
    filled = [(number, each) for number, each in enumerate(looks) if each.n]
    alternatives = distinct([label for _, each in filled for label in each.alternatives.tolist()], "an alternative")
    attributes = _joined([(number, each.n_entries, each.attributes) for number, each in filled])
    person = _joined([(number, each.n, each.person) for number, each in filled])
    widths = (sum(len(column.names()) for column in block) for block in (attributes, person))
    values, context = (np.empty((0, width)) for width in widths)
    none = np.empty(0, dtype=np.int64)
    schema = ChoiceSets(alternatives, none, np.zeros(1, dtype=np.int64), none, values, context, attributes, person)
    return schema, spec, [each.n for each in looks]


def _looks(client: Any, parts: Sequence[Any], spec: Spec) -> list[Look]:
    looks: list[Look] = looked(client, "look", look, [(part, spec) for part in parts])
    _refuse_twice(client, parts, spec, looks)
    for number, each in enumerate(looks):
        if each.problem is not None:
            raise TableError(f"partition {number} of the data: {each.problem}")
    return looks


def _refuse_twice(client: Any, parts: Sequence[Any], spec: Spec, looks: list[Look]) -> None:
    """Refuse a situation whose rows are in two partitions; equal marks are looked at, as they may be chance."""
    marks = np.concatenate([each.marks for each in looks])
    owner = np.repeat(np.arange(len(looks)), [each.n for each in looks])
    place = np.concatenate([np.arange(each.n) for each in looks])
    order = np.argsort(marks, kind="stable")
    for i in np.flatnonzero(np.diff(marks[order]) == 0).tolist():
        pair = order[i], order[i + 1]
        labels = looked(client, "labels", label_in, [(parts[owner[t]], spec, int(place[t])) for t in pair])
        if labels[0] == labels[1]:
            raise TableError(
                f"situation {plain(labels[0])} has rows in partitions {owner[pair[0]]} and {owner[pair[1]]}: all rows "
                f"of a situation must be in one, as after frame.shuffle({spec.situation!r})."
            )


def _joined(found: list[tuple[int, int, Columns]]) -> Columns:
    """Columns of all partitions, with the levels of any of them.

    Medians, which only missing numbers would need, are not known.
    """
    first, _, names = found[0]
    joined: list[Number | Category] = []
    for j, column in enumerate(names):
        held = [(number, n, columns[j]) for number, n, columns in found]
        other = next((number for number, _, each in held if type(each) is not type(column)), None)
        if other is not None:
            raise TableError(f"column {column.name!r} holds numbers or texts in partition {first}, not so in {other}.")
        if isinstance(column, Number):
            joined.append(Number(column.name, float("nan"), False))
            continue
        shares: dict[str, float] = {}
        total = sum(n for _, n, _ in held)
        for _, n, each in held:
            assert isinstance(each, Category)
            for level, share in zip(each.levels, each.shares, strict=True):
                shares[level] = shares.get(level, 0.0) + share * n / total
        levels = tuple(sorted(shares))
        if len(levels) > MANY:
            raise TableError(f"column {column.name!r} holds {len(levels)} different texts: leave it out, or join some.")
        joined.append(Category(column.name, levels, tuple(shares[level] for level in levels), False))
    return tuple(joined)


def check_table(table: Any, spec: Spec) -> None:
    """Refuse columns that are not there."""
    meta = empty_frame(table)
    meta = meta.set_axis(meta.columns.map(str), axis=1)
    named = (spec.situation, spec.alternative, *(spec.attributes or ()), *spec.person, spec.available, spec.choice)
    for name in named:
        if name is not None:
            check_column(meta, name)


def joined_sets(parts: Sequence[ChoiceSets]) -> ChoiceSets:
    """Situations of one schema, one after the other."""
    first = parts[0]
    start = np.append(0, np.cumsum(np.concatenate([np.diff(X.start) for X in parts])))
    return ChoiceSets(
        first.alternatives,
        np.concatenate([X.situations.astype(object) for X in parts]),
        start,
        np.concatenate([X.alternative for X in parts]),
        np.concatenate([X.values for X in parts]),
        np.concatenate([X.context for X in parts]),
        first.attribute_columns,
        first.person_columns,
    )
