"""Partitions of choice situations: each becomes ordinary `ChoiceSets` on its worker.

A first look finds alternatives and columns of all partitions, a second one choices, persons and weights. All rows of a
situation must be in one partition. Up to `maps.EXACT` numbers, scales of columns equal those of the concatenated table
to the last bit; beyond, they are computed from sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plackett.cluster import maps
from plackett.cluster.blocks import block_of, hold_situations, make_blocks
from plackett.cluster.cutting import cut, local_only, split
from plackett.cluster.dask_private import empty_frame
from plackett.cluster.held import later, made
from plackett.cluster.moments import Moments, moments_of
from plackett.cluster.parts import Codes, ask, numbers_within, optional_rows, raise_first, take_from
from plackett.data.choice_outcomes import chosen, situation_weights
from plackett.data.choice_sets import ChoiceSets
from plackett.data.choice_tables import Columns, Spec, long_parts, situations_of
from plackett.data.columns import MANY, Category, Number, TableError, check_column
from plackett.data.labels import Labels, distinct
from plackett.data.observations import Observations, Situations
from plackett.data.partitioned import PartitionedChoices, PartitionedRankings, chosen_labels
from plackett.data.rankings import Rankings
from plackett.data.validation import plain
from plackett.engines.dask import ClusterSituations
from plackett.engines.plain_rankings import ONE
from plackett.features import ExpFeatures
from plackett.features.choice_design import ChoiceDesign, EntryTable, EntryTotals
from plackett.features.entry_features import features_of_entries, groups_of_entries
from plackett.features.exp import KnownColumns
from plackett.model.diagnostics import probed
from plackett.model.race import Array
from plackett.responses import make_response

if TYPE_CHECKING:
    from distributed import Client

NOBODY = np.array([])


class SchemaLook(NamedTuple):
    """Alternatives and columns of one partition."""

    n: int
    problem: str | None = None
    n_entries: int = 0
    alternatives: Labels = np.empty(0, dtype=object)
    attributes: Columns = ()
    person: Columns = ()
    marks: npt.NDArray[np.uint64] = np.empty(0, dtype=np.uint64)  # hashes of the labels of situations


class ChoiceLook(NamedTuple):
    """Choices in one partition, with the alternatives and columns of all."""

    problem: str | None = None
    persons: npt.NDArray[Any] = NOBODY
    totals: EntryTotals | None = None
    context: Moments | None = None  # moments of the columns of persons
    fraction: bool = False  # True if a weight is not a whole number


class ChoiceRecipe(NamedTuple):
    """How situations become features and groups."""

    design: ChoiceDesign
    features: Any  # the fitted map of the columns of the design
    weights: str  # groups of the weights: "shared", "alternative" or "person"
    persons: npt.NDArray[Any]

    def n_groups(self, X: ChoiceSets) -> int:
        """Return the number of groups with separate weights."""
        return {"shared": 1, "alternative": len(X.alternatives), "person": len(self.persons)}[self.weights]


@dataclass(frozen=True)
class ChoicePart:
    """Rows of the table, with labels of choices, persons and weights of its situations (None where absent)."""

    table: Any
    y: Any
    groups: Any
    weight: Any
    spec: Spec
    schema: ChoiceSets | None = None  # with the alternatives and columns of all partitions
    some: Codes | None = None  # selected situations, to which labels, persons and weights belong; None: all

    def sets(self) -> ChoiceSets:
        """Return the situations, with the schema if it is known."""
        found = self._all_sets()
        return found if self.some is None else found[self.some]

    def _all_sets(self) -> ChoiceSets:
        found = ChoiceSets(*long_parts(self.table, self.spec))
        return found if self.schema is None else found.with_schema(self.schema)

    def labels(self) -> Labels:
        """Return the labels of the situations."""
        return situations_of(self.table, self.spec.situation, self.spec.alternative)[2]

    def look_for_schema(self) -> SchemaLook:
        """Return alternatives and columns, or a problem of the table."""
        import pandas as pd

        marks = np.empty(0, dtype=np.uint64)
        if not len(self.table):
            return SchemaLook(0)
        try:
            labels = np.array([str(label) for label in self.labels().tolist()], dtype=object)
            marks = pd.util.hash_array(labels, categorize=False)
            X = self.sets()
            if self.spec.choice is not None:
                X.chosen(chosen_labels(self.table, self.spec))
        except (TypeError, ValueError) as error:
            return SchemaLook(len(marks), str(error), marks=marks)
        columns = X.attribute_columns, X.person_columns
        return SchemaLook(len(X), None, len(X.alternative), X.alternatives, *columns, marks)

    def look(self) -> ChoiceLook:
        """Return persons and sums of the situations, or a problem of choices, persons or weights."""
        try:
            X = self.sets()
            counts = self._weights(len(X))
            chosen(X, self.y, counts)
            who = NOBODY if self.groups is None else np.asarray(self.groups)
            if self.groups is not None and who.shape != (len(X),):
                raise ValueError(
                    f"groups must have one label for each of the {len(X)} situations, got shape {who.shape}."
                )
        except (TypeError, ValueError) as error:
            return ChoiceLook(str(error))
        whole = counts is None or bool((counts == np.round(counts)).all())
        ones = np.ones(len(X)) if counts is None else counts
        return ChoiceLook(None, np.unique(who), EntryTotals.of(X, counts), moments_of(X.context, ones), not whole)

    def _weights(self, n: int) -> Array | None:
        """Return finite, non-negative weights of n situations."""
        if self.weight is None:
            return None
        counts = np.asarray(self.weight, dtype=np.float64)
        if counts.shape != (n,):
            raise ValueError(f"sample_weight must have one number for each of the {n} situations, got {counts.shape}.")
        if not (np.isfinite(counts).all() and (counts >= 0).all()):
            raise ValueError("sample_weight must be finite and not negative.")
        return counts

    def in_memory(self) -> tuple[ChoiceSets, Any, Any, Array | None]:
        """Return situations, choices, persons and weights."""
        X = self.sets()
        groups = None if self.groups is None else np.asarray(self.groups)
        return X, np.asarray(self.y), groups, self._weights(len(X))

    def columns(self, design: ChoiceDesign) -> tuple[Moments, Moments, Array, Array]:
        """Return moments of the columns of a design, weighted and not, with their minima and maxima."""
        X = self.sets()
        columns, counts = design.columns(EntryTable.of(X)), self._weights(len(X))
        ones = np.ones(len(columns))
        of_entries = ones if counts is None else np.repeat(counts, np.diff(X.start))
        return moments_of(columns, of_entries), moments_of(columns, ones), columns.min(axis=0), columns.max(axis=0)

    def observe(self, recipe: ChoiceRecipe) -> tuple[Array, Observations]:
        """Return features of the entries, and the choices."""
        X = self.sets()
        table, seen = EntryTable.of(X), chosen(X, self.y, self._weights(len(X)))
        W = features_of_entries(recipe.design, recipe.features, table)
        group = groups_of_entries(recipe.weights, table, coded(self.groups, recipe.persons))
        situations = Situations(seen.outcomes, group[seen.entry], seen.entry)
        return W, Observations.of_situations(situations, make_response(seen.response), recipe.n_groups(X))

    def take(self, numbers: Codes) -> ChoicePart:
        """Select situations by number."""
        y, groups, weight = (optional_rows(each, numbers) for each in (self.y, self.groups, self.weight))
        return replace(self, y=y, groups=groups, weight=weight, some=numbers)

    def probed(self, persons: npt.NDArray[Any], which: Codes) -> tuple[ChoiceSets, Codes | None]:
        """Return some situations, and the numbers of their persons among all."""
        return self.sets()[which], optional_rows(coded(self.groups, persons), which)


def coded(groups: object, persons: npt.NDArray[Any]) -> Codes | None:
    """Return the numbers of persons among all."""
    return None if groups is None else np.searchsorted(persons, np.asarray(groups)).astype(np.intp)


@dataclass(frozen=True)
class ChoiceTable:
    """Non-empty partitions of situations, with the results of the looks."""

    client: Client
    parts: list[ChoicePart]
    numbers: list[int]  # numbers of these partitions
    sizes: list[int]
    looks: list[ChoiceLook]
    schema: ChoiceSets  # without situations
    persons: npt.NDArray[Any]

    @property
    def totals(self) -> EntryTotals:
        """Sums over the entries of all partitions."""
        return reduce(EntryTotals.__add__, [each.totals for each in self.looks if each.totals is not None])

    def _check_whole(self) -> None:
        """Raise for fractional weights, which a sampler does not take."""
        for number, look in zip(self.numbers, self.looks, strict=True):
            if look.fraction:
                raise ValueError(
                    "Gibbs with fixed features takes whole numbers as sample_weight (2 is two situations), and "
                    f"partition {number} has others. Use inference='variational' or inference='em'."
                )

    def straight_design(self, constants: bool) -> ChoiceDesign:
        """Return the design without bends, from sums."""
        some = [look.context for look in self.looks if look.context is not None and look.context.weight > 0]
        design = ChoiceDesign(constants=constants)
        design.fit_straight(self.schema, self.totals, *reduce(Moments.__add__, some).scale_to_rounding())
        return design

    def recipe(self, features: Any, weights: str, sampled: bool) -> ChoiceRecipe:
        """Return the design of the alternatives and the map of its columns, fitted to all situations."""
        if sampled:
            self._check_whole()
        client, parts, totals = self.client, self.parts, self.totals
        exponential = isinstance(features, ExpFeatures)
        if not exponential:
            advice = "or a map that learns nothing, such as FunctionTransformer."
            maps.check_learns_nothing(features, "entries", advice)
        if totals.weight.sum() == 0:
            raise ValueError("sample_weight must be finite and not negative, and not all of it zero.")
        design = self.straight_design(weights != "alternative")
        if totals.n_entries * len(design.names_) <= maps.EXACT:
            gathered = ask(client, "situations", ChoicePart.in_memory, parts)
            X = joined_sets([sets for sets, *_ in gathered])
            counts = [each for *_, each in gathered if each is not None]
            design.fit(X, situation_weights(np.concatenate(counts) if counts else None, len(X)))
            return ChoiceRecipe(design, features.fit(design.columns(EntryTable.of(X))), weights, self.persons)
        sums = ask(client, "columns", ChoicePart.columns, parts, design)
        weighted = reduce(Moments.__add__, [each[0] for each in sums if each[0].weight > 0])
        design.rescaled(*weighted.scale_to_rounding())
        if exponential:
            unweighted = reduce(Moments.__add__, [each[1] for each in sums])
            low, high = np.min([each[2] for each in sums], axis=0), np.max([each[3] for each in sums], axis=0)
            columns = KnownColumns(totals.n_entries, None, low, high, *unweighted.scale_to_rounding())
            return ChoiceRecipe(design, features.fit_columns(columns), weights, self.persons)
        first = ask(client, "first", ChoicePart.sets, parts[:1])[0]
        return ChoiceRecipe(design, features.fit(design.columns(EntryTable.of(first))), weights, self.persons)

    def hold(self, recipe: ChoiceRecipe, sampled: bool) -> ClusterSituations:
        """Hold all situations as blocks on workers."""
        held = make_blocks(self.client, block_of, self.parts, recipe)
        return hold_situations(held, recipe.n_groups(self.schema), False, sampled, ONE)

    def part(self, numbers: Codes) -> ChoiceTable:
        """Return the situations with these numbers, in parts that have no look yet."""
        within = numbers_within(numbers, self.sizes)
        some = [(number, len(each)) for number, each in zip(self.numbers, within, strict=True) if len(each)]
        which, sizes = map(list, zip(*some, strict=True))
        return replace(self, parts=take_from(self.parts, within), numbers=which, sizes=sizes, looks=[])

    def looked_at(self) -> ChoiceTable:
        """Return this table with looks at its own situations."""
        return replace(self, looks=ask(self.client, "choices", ChoicePart.look, self.parts))

    def diagnosed(self) -> tuple[EntryTable, Codes | None]:
        """Return the situations whose predictions are diagnosed, and the numbers of their persons."""
        starts = np.append(0, np.cumsum(self.sizes))
        which = probed(int(starts[-1]))
        owner = np.searchsorted(starts, which, side="right") - 1
        asked = [(self.parts[b], self.persons, which[owner == b] - starts[b]) for b in np.unique(owner)]
        found = made(self.client, "probed", ChoicePart.probed, asked, len(asked)).fetch()
        persons = [who for _, who in found if who is not None]
        return EntryTable.of(joined_sets([X for X, _ in found])), np.concatenate(persons) if persons else None


def read_choices(
    client: Client, X: PartitionedChoices, y: object, groups: object, sample_weight: object
) -> ChoiceTable:
    """Partition choices, persons and weights like the situations, and look at all partitions."""
    _check_table(X.table, X.spec)
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    if isinstance(y, (Rankings, PartitionedRankings)):
        raise ValueError(
            "for situations in partitions, y must be the label of the chosen alternative, and not a ranking."
        )
    given = {"y": y, "groups": groups, "sample_weight": sample_weight}
    pieces, beside, _ = cut(X.table, "the situations have", given)
    schema, spec, sizes = _schema(client, pieces, X.spec, X.table.columns)
    for key, what in local_only(given).items():
        beside[key] = split(what, sizes, key, "situations")
    numbers, labels, who, weights = np.flatnonzero(sizes).tolist(), *(beside[key] for key in given)
    parts = [ChoicePart(pieces[b], labels[b], who[b], weights[b], spec, schema) for b in numbers]
    looks = ask(client, "choices", ChoicePart.look, parts)
    for number, look in zip(numbers, looks, strict=True):
        raise_first([look], first=number)
    persons = np.unique(np.concatenate([look.persons for look in looks])) if groups is not None else NOBODY
    if groups is not None and len(persons) < 2:
        raise ValueError("groups must hold at least two persons.")
    return ChoiceTable(client, parts, numbers, [sizes[b] for b in numbers], looks, schema, persons)


def delayed_sets(X: PartitionedChoices) -> list[Any]:
    """Return delayed choice sets of each partition, without choices; an empty partition gives an empty list."""
    spec = X.spec._replace(choice=None)
    return [later(sets_or_none, ChoicePart(piece, None, None, None, spec)) for piece in X.table.to_delayed()]


def sets_or_none(part: ChoicePart) -> Any:
    """Return the situations of a part, or an empty list."""
    return part.sets() if len(part.table) else []


def _schema(
    client: Client, pieces: Sequence[Any], spec: Spec, names: Sequence[str]
) -> tuple[ChoiceSets, Spec, list[int]]:
    """Return alternatives and columns of all partitions without situations, the columns by name, and sizes."""
    looks = _schema_looks(client, pieces, spec)
    if spec.attributes is None:
        found = {column.name for each in looks for column in each.attributes}
        spec = spec._replace(attributes=tuple(str(name) for name in names if str(name) in found))
        looks = _schema_looks(client, pieces, spec)
    filled = [(number, each) for number, each in enumerate(looks) if each.n]
    if not filled:
        raise TableError("the table has no rows.")
    alternatives = distinct([label for _, each in filled for label in each.alternatives.tolist()], "an alternative")
    attributes = _joined([(number, each.n_entries, each.attributes) for number, each in filled])
    person = _joined([(number, each.n, each.person) for number, each in filled])
    widths = (sum(len(column.names()) for column in block) for block in (attributes, person))
    values, context = (np.empty((0, width)) for width in widths)
    none = np.empty(0, dtype=np.int64)
    schema = ChoiceSets(alternatives, none, np.zeros(1, dtype=np.int64), none, values, context, attributes, person)
    return schema, spec, [each.n for each in looks]


def _schema_looks(client: Client, pieces: Sequence[Any], spec: Spec) -> list[SchemaLook]:
    parts = [ChoicePart(piece, None, None, None, spec) for piece in pieces]
    looks = ask(client, "look", ChoicePart.look_for_schema, parts)
    _refuse_twice(client, parts, spec, looks)
    raise_first(looks, TableError)
    return looks


def _refuse_twice(client: Client, parts: Sequence[ChoicePart], spec: Spec, looks: list[SchemaLook]) -> None:
    """Raise for a situation with rows in two partitions; labels with equal hashes are compared."""
    marks = np.concatenate([each.marks for each in looks])
    owner = np.repeat(np.arange(len(looks)), [each.n for each in looks])
    place = np.concatenate([np.arange(each.n) for each in looks])
    order = np.argsort(marks, kind="stable")
    for i in np.flatnonzero(np.diff(marks[order]) == 0).tolist():
        pair = order[i], order[i + 1]
        first, second = ask(client, "labels", ChoicePart.labels, [parts[owner[t]] for t in pair])
        if first[place[pair[0]]] == second[place[pair[1]]]:
            raise TableError(
                f"situation {plain(first[place[pair[0]]])} has rows in partitions {owner[pair[0]]} and "
                f"{owner[pair[1]]}: all rows of a situation must be in one, as after "
                f"frame.shuffle({spec.situation!r})."
            )


def _joined(found: list[tuple[int, int, Columns]]) -> Columns:
    """Merge the columns of all partitions, with the union of their levels.

    Medians, which only missing numbers need, are not computed.
    """
    first, _, names = found[0]
    joined: list[Number | Category] = []
    for j, column in enumerate(names):
        held = [(number, n, columns[j]) for number, n, columns in found]
        other = next((number for number, _, each in held if each.text != column.text), None)
        if other is not None:
            raise TableError(
                f"column {column.name!r} holds numbers in one of the partitions {first} and {other}, and texts in the "
                "other."
            )
        if not column.text:
            joined.append(Number(column.name, float("nan"), False))
            continue
        shares: dict[str, float] = {}
        total = sum(n for _, n, _ in held)
        for n, each in [(n, each) for _, n, each in held if each.text]:
            for level, share in zip(each.levels, each.shares, strict=True):
                shares[level] = shares.get(level, 0.0) + share * n / total
        levels = tuple(sorted(shares))
        if len(levels) > MANY:
            raise TableError(f"column {column.name!r} holds {len(levels)} different texts: leave it out, or join some.")
        joined.append(Category(column.name, levels, tuple(shares[level] for level in levels), False))
    return tuple(joined)


def _check_table(table: object, spec: Spec) -> None:
    """Raise for columns that do not exist."""
    meta = empty_frame(table)
    meta = meta.set_axis(meta.columns.map(str), axis=1)
    named = (spec.situation, spec.alternative, *(spec.attributes or ()), *spec.person, spec.available, spec.choice)
    for name in named:
        if name is not None:
            check_column(meta, name)


def joined_sets(parts: Sequence[ChoiceSets]) -> ChoiceSets:
    """Concatenate situations of one schema."""
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
