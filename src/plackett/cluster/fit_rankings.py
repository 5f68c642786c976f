"""A ranker fitted to rankings in partitions: what its `fit` does, without ever seeing the rankings.

Without covariates, rankings without ties come here, each distinct one once: their sets of those left are counted here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plackett.cluster.alike import apart, parts_of, split
from plackett.cluster.blocks import Recipe, rows_of
from plackett.cluster.client import Versions, check_versions, in_use, versions
from plackett.cluster.fitting import _fitted_map, _know_columns
from plackett.cluster.held import address_here, made, threads_here
from plackett.cluster.partitions import Looked, Partitions, look_at, looked
from plackett.cluster.rankings import (
    Spec,
    distinct_rankings,
    edges_in,
    items_of,
    joined,
    look,
    network,
    rankings_in,
    weighted,
)
from plackett.cluster.situations import OneRowEach, together
from plackett.data.labels import Labels
from plackett.data.observations import Observations, Situations
from plackett.data.partitioned import PartitionedRankings
from plackett.data.rankings import Rankings
from plackett.engines.base import Features, Rows
from plackett.engines.placed import PlacedSituations, place_situations
from plackett.engines.plain_rankings import ONE, CompiledLeftSets, LeftSets, Together, left_sets
from plackett.features.mapped import transform
from plackett.inference import EM, Gibbs
from plackett.responses import make_response

Codes = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]
Part = tuple[Any, Any, Any]  # rankings, their covariates and their weights


class Plan(NamedTuple):
    """What a worker needs to know to make a block of a partition."""

    features: Any  # the fitted map, None without covariates
    response: str
    versions: Versions


class Facts(NamedTuple):
    """What is found of a partition once weights and response are known."""

    n: int  # rankings that go to a block
    fraction: tuple[int, float] | None  # the first row whose count is no whole number, and that count
    edges: Any  # for EM, who was placed right above whom


class Cut(NamedTuple):
    """Rankings, covariates, weights and groups, partition by partition, and what a partition holds."""

    pieces: list[Any]
    beside: dict[str, list[Any]]
    spec: Spec
    sizes: list[int]
    response: str

    @property
    def filled(self) -> list[int]:
        """The partitions that have rows."""
        return [number for number, size in enumerate(self.sizes) if size]


@dataclass(frozen=True)
class Ranked:
    """Rankings on workers, what all of them are, and what they were made of."""

    rows: Rows
    items: Labels
    plan: Plan
    above: Rankings | None  # for EM, rankings of two that have the components of all
    cut: Cut
    parts: list[Part]


def cut_alike(model: Any, X: Any, R: PartitionedRankings, sample_weight: Any, groups: Any = None) -> Cut:
    """Look at all partitions of rankings, and cut what belongs to them alike."""
    client = in_use()
    far, near = apart(X=X, counts=R.counts, sample_weight=sample_weight, groups=groups)
    if near["X"] is not None:
        raise ValueError("the rankings are in partitions: X must be a Dask array or data frame that is cut alike.")
    pieces, beside = parts_of(R.table, far, "the rankings")
    items = items_of(client, pieces) if R.items is None else R.items
    spec = Spec(R.kind, R.unranked, items)
    if any(near[name] is not None for name in ("counts", "sample_weight", "groups")):
        sizes = looked(client, "sizes", len, [(piece,) for piece in pieces])
        for name in ("counts", "sample_weight", "groups"):
            beside[name] = beside[name] if near[name] is None else split(near[name], sizes, name, "rankings")
    columns = zip(pieces, beside["counts"], beside["sample_weight"], beside["groups"], strict=True)
    response, sizes = _look(model, client, list(columns), spec)
    return Cut(pieces, beside, spec, sizes, response)


def prepare_rankings(
    model: Any, features: Any, inference: Any, X: Any, R: PartitionedRankings, sample_weight: Any, groups: Any
) -> Ranked:
    """Look at all partitions, fit the map and make blocks; within `cluster()`."""
    client, cut = in_use(), cut_alike(model, X, R, sample_weight, groups)
    parts = made_of(cut)
    items, found = cut.spec.items, None
    assert items is not None
    if X is not None:
        found = fitted_map(model, client, features, X, parts)
    else:
        model.n_features_in_ = 0
        model.__dict__.pop("feature_names_in_", None)
    plan, climbs = Plan(found, cut.response, versions()), isinstance(inference, EM)
    facts: list[Facts] = looked(client, "facts", facts_of, [(R, weight, plan, climbs) for R, _, weight in parts])
    sampled = isinstance(inference, Gibbs)
    if sampled:
        _check_whole(cut.filled, facts)
    rows = rows_of_parts(client, parts, [each.n for each in facts], plan, len(items), sampled)
    above = network(items, [each.edges for each in facts]) if climbs else None
    return Ranked(rows, items, plan, above, cut, parts)


def _look(model: Any, client: Any, parts: list[tuple[Any, ...]], spec: Spec) -> tuple[str, list[int]]:
    """The response, and the rows of each partition; what is wrong with the first that is wrong is the error."""
    looks = looked(client, "look", look, [(*part, spec) for part in parts])
    for number, each in enumerate(looks):
        if each.problem is not None:
            raise ValueError(f"partition {number} of the data: {each.problem}")
        if each.tied is not None and model.ties == "error":
            raise ValueError(
                f"items share a place in row {each.tied} of partition {number}, and ties='error'. Say what a tie "
                "means: ties='unknown-order' or ties='race'."
            )
    sizes = [each.n_rows for each in looks]
    if not any(sizes):
        raise ValueError("there are no rankings.")
    if model.ties == "race":
        return "race", sizes
    return "unknown-order" if any(each.tied is not None for each in looks) else "ranking", sizes


def made_of(cut: Cut) -> list[Part]:
    """Rankings, covariates and weights of the partitions that have rows."""
    import dask

    make, beside = dask.delayed(rankings_in, pure=False), cut.beside
    made = {b: make(cut.pieces[b], beside["counts"][b], cut.spec) for b in cut.filled}
    return [(R, beside["X"][b], beside["sample_weight"][b]) for b, R in made.items()]


def fitted_map(model: Any, client: Any, features: Any, X: Any, parts: list[Part]) -> Any:
    """The map, fitted to the covariates of rankings as `plackett.cluster.fitting` fits that of classes."""
    table, found = looked_at(model, client, X, parts)
    recipe = Recipe(None, found.classes, np.ones(1), found.plain, False, versions())
    return _fitted_map(client, table, found, features, recipe, table.parts)


def looked_at(model: Any, client: Any, X: Any, parts: list[Part]) -> tuple[Partitions, Looked]:
    """Covariates as a table whose rows have no labels, and what they are; what is wrong is told by its place."""
    import dask

    label, count = dask.delayed(no_labels, pure=False), dask.delayed(weighted, pure=False)
    names = list(X.columns) if hasattr(X, "columns") else None
    n_columns = len(names) if names is not None else int(X.shape[1])
    triples = [(X_part, label(R), count(R, weight)) for R, X_part, weight in parts]
    table = Partitions(triples, n_columns, names)
    _know_columns(model, table)
    return table, look_at(table, client)


def no_labels(R: Rankings) -> Any:
    """All rankings alike."""
    return np.zeros(len(R), dtype=np.intp)


def facts_of(R: Rankings, weight: Any, plan: Plan, climbs: bool) -> Facts:
    """Of one partition."""
    counts = weighted(R, weight)
    broken = np.flatnonzero(counts != np.round(counts))
    fraction = (int(broken[0]), float(counts[broken[0]])) if len(broken) else None
    edges = edges_in(R[np.flatnonzero(counts)]) if climbs else None
    return Facts(len(_seen(R, weight, plan)[1]), fraction, edges)


def _check_whole(filled: list[int], facts: list[Facts]) -> None:
    """Refuse fractions, which a sampler does not take."""
    for number, each in zip(filled, facts, strict=True):
        if each.fraction is not None:
            row, count = each.fraction
            raise ValueError(
                f"a sampler takes whole numbers as counts (a count of 2 is two rankings), got {count:g} in row {row} "
                f"of partition {number}; 'em' and 'variational' take any."
            )


def rows_of_parts(client: Any, parts: list[Part], has: list[int], plan: Plan, n_items: int, sampled: bool) -> Rows:
    """Blocks on workers, and sets of those left here."""
    response = make_response(plan.response)
    sets: LeftSets | None = None
    if plan.features is None and not response.absolute:
        untied = [
            R for R in looked(client, "distinct", untied_rankings, [(R, w) for R, _, w in parts]) if R is not None
        ]
        if untied:
            plain = distinct_rankings(joined(untied))
            seen = Observations.of_rankings(plain.outcomes, plain.item, response, n_items)
            sets = left_sets(seen, CompiledLeftSets)
    some = [part for part, n in zip(parts, has, strict=True) if n]
    if not some:
        if sets is None:
            raise ValueError("all rankings have weight 0.")
        return sets
    held = made(client, "block", make_block, [(*part, plan) for part in some], len(some))
    others = together(client, held, n_items, response.absolute, sampled, OneRowEach)
    if plan.features is None:
        others.rows_of = lambda: ONE
    return others if sets is None else Together(sets, others)


def counted(R: Rankings, weight: Any) -> tuple[Rankings, Codes]:
    """The rankings of a partition that have weight, so often, and which they are."""
    counts = weighted(R, weight)
    some = np.flatnonzero(counts)
    R = R[some]
    return Rankings(R.items, R.item, R.outcomes._replace(counts=counts[some]), R.unranked), some


def to_block(R: Rankings, plan: Plan) -> Mask:
    """Which rankings go to a block: of those without covariates, tied ones."""
    return tied(R) if plan.features is None and plan.response != "race" else np.ones(len(R), dtype=bool)


def _seen(R: Rankings, weight: Any, plan: Plan) -> tuple[Rankings, Codes]:
    """The rankings of a partition that go to a block, and which they are."""
    R, some = counted(R, weight)
    kept = np.flatnonzero(to_block(R, plan))
    return R[kept], some[kept]


def tied(R: Rankings) -> Mask:
    """In which rankings items share a place."""
    of_bucket = np.repeat(np.arange(len(R)), np.diff(R.outcomes.bucket_start))
    found: Mask = np.bincount(of_bucket, R.outcomes.sizes > 1, len(R)) > 0
    return found


def untied_rankings(R: Rankings, weight: Any) -> Rankings | None:
    """Those without ties that have weight, each once."""
    R, _ = counted(R, weight)
    some = np.flatnonzero(~tied(R))
    return distinct_rankings(R[some]) if len(some) else None


def situated(R: Rankings, X: Any, plan: Plan) -> tuple[Features, Situations]:
    """Rankings as engines take them, with the features of their covariates."""
    from plackett.ranker import _dense

    if plan.features is None:
        return ONE, Situations(R.outcomes, R.item, np.zeros_like(R.item))
    return _dense(transform(plan.features, X)), Situations(R.outcomes, R.item, R.situation)


def make_block(R: Rankings, X: Any, weight: Any, plan: Plan) -> PlacedSituations:
    """The rankings of a partition, with the features of their covariates."""
    check_versions(plan.versions, address_here())
    R, some = _seen(R, weight, plan)
    W, situations = situated(R, None if plan.features is None else rows_of(X, some), plan)
    seen = Observations.of_situations(situations, make_response(plan.response), len(R.items))
    return place_situations(W, seen, threads_here()).settled()
