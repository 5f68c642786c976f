"""A chooser fitted to situations in partitions: what its `fit` does, without ever seeing them.

Scales of columns are those of the table in one piece, to the last bit, up to 2²⁴ numbers, and by sums beyond.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from plackett.cluster import fitting
from plackett.cluster.alike import apart, parts_of, split
from plackett.cluster.choices import Spec, check_table, joined_sets, look_at, sets_in
from plackett.cluster.client import Versions, check_versions, in_use, versions
from plackett.cluster.held import address_here, made, threads_here
from plackett.cluster.partitions import Moments, looked, moments_of
from plackett.cluster.situations import together
from plackett.data.choice_outcomes import chosen, situation_weights
from plackett.data.choice_sets import ChoiceSets
from plackett.data.observations import Observations
from plackett.data.partitioned import PartitionedChoices, PartitionedRankings
from plackett.data.rankings import Rankings
from plackett.engines.dask import ClusterSituations
from plackett.engines.placed import PlacedSituations, place_situations
from plackett.engines.plain_rankings import ONE
from plackett.features import ExpFeatures
from plackett.features.choice_design import ChoiceDesign, EntryTable, Totals
from plackett.features.exp import Columns
from plackett.inference import Gibbs
from plackett.model.diagnostics import probed
from plackett.model.features import Features
from plackett.model.race import Array
from plackett.responses import make_response

Part = tuple[Any, Any, Any, Any]  # rows of the table, chosen labels, persons and weights of the situations


class Kept(NamedTuple):
    """What is found of a partition once it is known what was chosen in it."""

    problem: str | None
    persons: npt.NDArray[Any]
    totals: Totals | None
    context: Moments | None
    fraction: bool  # whether a weight is no whole number


class Plan(NamedTuple):
    """What a worker needs to know to make a block of a partition."""

    model: Any  # with its design and its features
    spec: Spec
    schema: ChoiceSets
    persons: npt.NDArray[Any]
    versions: Versions


@dataclass(frozen=True)
class Situated:
    """Situations on workers, and what all of them are."""

    rows: ClusterSituations
    schema: ChoiceSets
    persons: npt.NDArray[Any]
    some: tuple[EntryTable, npt.NDArray[np.intp] | None]  # those whose predictions are diagnosed, and their persons


class Cut(NamedTuple):
    """Situations, partition by partition, those without any left out, and what was found of each."""

    parts: list[Part]
    numbers: list[int]  # of the partitions
    sizes: list[int]
    found: list[Kept]
    spec: Spec
    schema: ChoiceSets

    @property
    def totals(self) -> Totals:
        """Of all partitions."""
        return reduce(Totals.__add__, [each.totals for each in self.found if each.totals is not None])


def cut_alike(X: PartitionedChoices, y: Any, groups: Any, sample_weight: Any) -> Cut:
    """Look at all partitions of situations, and cut what belongs to them alike."""
    client = in_use()
    check_table(X.table, X.spec)
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    if isinstance(y, (Rankings, PartitionedRankings)):
        raise ValueError(
            "of situations in partitions y must be the label of the chosen alternative, and not a ranking."
        )
    far, near = apart(y=y, groups=groups, sample_weight=sample_weight)
    pieces, beside = parts_of(X.table, far, "the situations")
    schema, spec, sizes = look_at(client, pieces, X.spec, X.table.columns)
    for name, what in near.items():
        if what is not None:
            beside[name] = split(what, sizes, name, "situations")
    columns = zip(pieces, beside["y"], beside["groups"], beside["sample_weight"], strict=True)
    parts = [part for part, size in zip(columns, sizes, strict=True) if size]
    found: list[Kept] = looked(client, "choices", kept_in, [(*part, spec, schema) for part in parts])
    numbers = np.flatnonzero(sizes).tolist()
    for number, each in zip(numbers, found, strict=True):
        if each.problem is not None:
            raise ValueError(f"partition {number} of the data: {each.problem}")
    return Cut(parts, numbers, [sizes[b] for b in numbers], found, spec, schema)


def prepare_choices(
    model: Any,
    inference: Any,
    X: PartitionedChoices,
    y: Any,
    groups: Any,
    sample_weight: Any,
    prepared: Callable[..., None],
) -> Situated:
    """Look at all partitions, fit the map and make blocks; `prepared(schema, persons)` comes before the map is fitted.

    Within `cluster()`.
    """
    client, cut = in_use(), cut_alike(X, y, groups, sample_weight)
    for number, each in zip(cut.numbers, cut.found, strict=True):
        if each.fraction and isinstance(inference, Gibbs):
            raise ValueError(
                f"Gibbs with fixed features takes whole numbers as sample_weight (2 is two situations), and partition "
                f"{number} has others. Use inference='variational' or inference='em'."
            )
    persons = np.unique(np.concatenate([each.persons for each in cut.found])) if groups is not None else np.array([])
    if groups is not None and len(persons) < 2:
        raise ValueError("groups must hold at least two persons.")
    prepared(cut.schema, persons)
    light = clone(model)
    light.design_, light.features_ = _maps(client, model, cut)
    plan = Plan(light, cut.spec, cut.schema, persons, versions())
    held = made(client, "block", make_block, [(*part, plan) for part in cut.parts], len(cut.parts))
    n_groups = len(model.group_labels_)
    rows = together(client, held, n_groups, False, isinstance(inference, Gibbs), no_rows)
    model.design_, model.features_ = light.design_, light.features_
    return Situated(rows, cut.schema, persons, _some(client, cut.parts, cut.sizes, plan))


def no_rows(*_: Any) -> Features:
    """Predictions of situations are diagnosed, and not those of rows."""
    return ONE


def kept_in(part: Any, y: Any, groups: Any, weight: Any, spec: Spec, schema: ChoiceSets) -> Kept:
    """Of one partition; nothing is raised, so that the first problem can be told."""
    nobody = np.array([])
    try:
        X = sets_in(part, spec, schema)
        counts = _weights(weight, len(X))
        chosen(X, y, counts)
        who = nobody if groups is None else np.asarray(groups)
        if groups is not None and who.shape != (len(X),):
            raise ValueError(f"groups must have one label for each of the {len(X)} situations, got shape {who.shape}.")
    except (TypeError, ValueError) as error:
        return Kept(str(error), nobody, None, None, False)
    whole = counts is None or bool((counts == np.round(counts)).all())
    ones = np.ones(len(X)) if counts is None else counts
    return Kept(None, np.unique(who), Totals.of(X, counts), moments_of(X.context, ones), not whole)


def _weights(weight: Any, n: int) -> Array | None:
    """Finite, non-negative weights of n situations."""
    if weight is None:
        return None
    counts = np.asarray(weight, dtype=np.float64)
    if counts.shape != (n,):
        raise ValueError(f"sample_weight must have one number for each of the {n} situations, got {counts.shape}.")
    if not (np.isfinite(counts).all() and (counts >= 0).all()):
        raise ValueError("sample_weight must be finite and not negative.")
    return counts


def _maps(client: Any, model: Any, cut: Cut) -> tuple[ChoiceDesign, Any]:
    """The design and the map of its columns, as `PlackettLuceChooser` fits them."""
    parts, spec, schema, totals = cut.parts, cut.spec, cut.schema, cut.totals
    features = model._make_features()
    if not isinstance(features, ExpFeatures) and features.__sklearn_tags__().requires_fit:
        raise ValueError(
            f"features={features!r} would have to be fitted to all entries, and those of a Dask collection are in many "
            "places. Use features='exp', or a map that learns nothing, such as FunctionTransformer."
        )
    if totals.weight.sum() == 0:
        raise ValueError("sample_weight must be finite and not negative, and not all of it zero.")
    design = straight_design(model, cut)
    if totals.n_entries * len(design.names_) <= fitting.EXACT:
        gathered = looked(client, "situations", gathered_in, [(*part, spec, schema) for part in parts])
        X = joined_sets([sets for sets, *_ in gathered])
        weights = [counts for *_, counts in gathered]
        design.fit(X, situation_weights(None if weights[0] is None else np.concatenate(weights), len(X)))
        return design, features.fit(design.columns(EntryTable.of(X)))
    sums = looked(client, "columns", columns_in, [(*part, spec, schema, design) for part in parts])
    weighted = reduce(Moments.__add__, [each[0] for each in sums if each[0].weight > 0])
    design.rescaled(*_scale(weighted))
    if not isinstance(features, ExpFeatures):
        first = looked(client, "first", gathered_in, [(*parts[0], spec, schema)])[0][0]
        return design, features.fit(design.columns(EntryTable.of(first)))
    plain = reduce(Moments.__add__, [each[1] for each in sums])
    low, high = np.min([each[2] for each in sums], axis=0), np.max([each[3] for each in sums], axis=0)
    return design, features.fit_columns(Columns(totals.n_entries, None, low, high, *_scale(plain)))


def straight_design(model: Any, cut: Cut) -> ChoiceDesign:
    """The design without bends, by sums."""
    context = reduce(Moments.__add__, [each.context for each in cut.found if each.context and each.context.weight > 0])
    design = ChoiceDesign(constants=model.weights != "alternative")
    design.fit_straight(cut.schema, cut.totals, *_scale(context))
    return design


def gathered_in(part: Any, y: Any, groups: Any, weight: Any, spec: Spec, schema: ChoiceSets) -> Any:
    """The situations of a partition, what was chosen, by whom, and their weights, where all together are few."""
    X = sets_in(part, spec, schema)
    return X, np.asarray(y), None if groups is None else np.asarray(groups), _weights(weight, len(X))


def columns_in(
    part: Any, y: Any, groups: Any, weight: Any, spec: Spec, schema: ChoiceSets, design: ChoiceDesign
) -> tuple[Moments, Moments, Array, Array]:
    """Moments of the columns of a design, with weights and without; their smallest and largest values."""
    X = sets_in(part, spec, schema)
    columns, counts = design.columns(EntryTable.of(X)), _weights(weight, len(X))
    ones = np.ones(len(columns))
    of_entries = ones if counts is None else np.repeat(counts, np.diff(X.start))
    return moments_of(columns, of_entries), moments_of(columns, ones), columns.min(axis=0), columns.max(axis=0)


def _scale(moments: Moments) -> tuple[Array, Array]:
    """Mean and deviation, infinite for a column that is constant to rounding."""
    mean: Array = moments.mean.astype(np.float64)
    deviation = np.sqrt(moments.squares / moments.weight).astype(np.float64)
    return mean, np.where(deviation > 1e-12 * np.abs(mean), deviation, np.inf)


def _coded(groups: Any, persons: npt.NDArray[Any]) -> npt.NDArray[np.intp] | None:
    return None if groups is None else np.searchsorted(persons, np.asarray(groups)).astype(np.intp)


def make_block(part: Any, y: Any, groups: Any, weight: Any, plan: Plan) -> PlacedSituations:
    """The situations of a partition, with their features."""
    check_versions(plan.versions, address_here())
    X = sets_in(part, plan.spec, plan.schema)
    seen = chosen(X, y, _weights(weight, len(X)))
    W, situations = plan.model._situations(EntryTable.of(X), seen, _coded(groups, plan.persons))
    n_groups = {"shared": 1, "alternative": len(X.alternatives), "person": len(plan.persons)}[plan.model.weights]
    observed = Observations.of_situations(situations, make_response(seen.response), n_groups)
    return place_situations(W, observed, threads_here()).settled()


def _some(
    client: Any, parts: list[Part], sizes: list[int], plan: Plan
) -> tuple[EntryTable, npt.NDArray[np.intp] | None]:
    """The situations whose predictions are diagnosed, and their persons."""
    starts = np.append(0, np.cumsum(sizes))
    which = probed(int(starts[-1]))
    owner = np.searchsorted(starts, which, side="right") - 1
    asked = [(*parts[b], plan, which[owner == b] - starts[b]) for b in np.unique(owner)]
    found = looked(client, "probed", some_in, asked)
    person = None if found[0][1] is None else np.concatenate([who for _, who in found])
    return EntryTable.of(joined_sets([X for X, _ in found])), person


def some_in(part: Any, y: Any, groups: Any, weight: Any, plan: Plan, which: npt.NDArray[np.intp]) -> Any:
    """Some situations of a partition, and their persons."""
    person = _coded(groups, plan.persons)
    return sets_in(part, plan.spec, plan.schema)[which], None if person is None else person[which]
