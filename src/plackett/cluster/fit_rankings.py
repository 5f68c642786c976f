"""A ranker fitted to rankings in partitions: what its `fit` does, without ever seeing the rankings.

Without covariates, rankings without ties come here, each distinct one once: their sets of those left are counted here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from plackett.cluster.alike import apart, parts_of, split
from plackett.cluster.blocks import Recipe, rows_of
from plackett.cluster.client import Versions, check_versions, in_use, versions
from plackett.cluster.fitting import _fitted_map, _know_columns
from plackett.cluster.held import address_here, made, threads_here
from plackett.cluster.partitions import Looked, Partitions, look_at, looked
from plackett.cluster.rankings import (
    PartedRankings,
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
from plackett.data.rankings import Rankings
from plackett.engines.base import SituationRows
from plackett.engines.left_sets import ONE, LeftSets, Together, left_sets
from plackett.engines.placed_situations import PlacedSituations, place_situations
from plackett.engines.situations import Situations
from plackett.features.mapped import transform
from plackett.inference import EM, Gibbs
from plackett.responses import make_response


class Plan(NamedTuple):
    """What a worker needs to know to make a block of a partition."""

    features: Any  # the fitted map, None without covariates
    response: str
    versions: Versions


@dataclass(frozen=True)
class Ranked:
    """Rankings on workers, and what all of them are."""

    rows: SituationRows
    items: Labels
    features: Any
    above: Rankings | None  # for EM, rankings of two that have the components of all


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


def cut_alike(model: Any, X: Any, R: PartedRankings, sample_weight: Any, groups: Any = None) -> Cut:
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
    response, sizes = _look(model, client, list(zip(pieces, beside["counts"], strict=True)), spec)
    return Cut(pieces, beside, spec, sizes, response)


def prepare_rankings(
    model: Any, features: Any, inference: Any, X: Any, R: PartedRankings, sample_weight: Any
) -> Ranked:
    """Look at all partitions, fit the map and make blocks; within `cluster()`."""
    client, cut = in_use(), cut_alike(model, X, R, sample_weight)
    parts = made_of(cut)
    items, found = cut.spec.items, None
    assert items is not None
    if X is not None:
        found = _fitted(model, client, features, X, parts)
    else:
        model.n_features_in_ = 0
        model.__dict__.pop("feature_names_in_", None)
    plan, climbs = Plan(found, cut.response, versions()), isinstance(inference, EM)
    facts: list[Facts] = looked(client, "facts", facts_of, [(R, weight, plan, climbs) for R, _, weight in parts])
    sampled = isinstance(inference, Gibbs)
    if sampled:
        _check_whole(cut.filled, facts)
    rows = _rows(client, parts, [each.n for each in facts], plan, len(items), sampled)
    return Ranked(rows, items, found, network(items, [each.edges for each in facts]) if climbs else None)


def _look(model: Any, client: Any, parts: list[tuple[Any, Any]], spec: Spec) -> tuple[str, list[int]]:
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


def made_of(cut: Cut) -> list[tuple[Any, Any, Any]]:
    """Rankings, covariates and weights of the partitions that have rows."""
    import dask

    make, beside = dask.delayed(rankings_in, pure=False), cut.beside
    made = {b: make(cut.pieces[b], beside["counts"][b], cut.spec) for b in cut.filled}
    return [(R, beside["X"][b], beside["sample_weight"][b]) for b, R in made.items()]


def _fitted(model: Any, client: Any, features: Any, X: Any, parts: list[tuple[Any, Any, Any]]) -> Any:
    """The map, fitted to the covariates of rankings as `plackett.cluster.fitting` fits that of classes."""
    table, found = looked_at(model, client, X, parts)
    recipe = Recipe(None, found.classes, np.ones(1), found.plain, False, versions())
    return _fitted_map(client, table, found, features, recipe, table.parts)


def looked_at(model: Any, client: Any, X: Any, parts: list[tuple[Any, Any, Any]]) -> tuple[Partitions, Looked]:
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


def _rows(
    client: Any, parts: list[tuple[Any, Any, Any]], has: list[int], plan: Plan, n_items: int, sampled: bool
) -> SituationRows:
    """Blocks on workers, and sets of those left here."""
    response = make_response(plan.response)
    counted: LeftSets | None = None
    if plan.features is None and not response.absolute:
        untied = [
            R for R in looked(client, "distinct", untied_rankings, [(R, w) for R, _, w in parts]) if R is not None
        ]
        if untied:
            plain = distinct_rankings(joined(untied))
            counted = left_sets(Situations(plain.outcomes, plain.item, np.zeros_like(plain.item)), n_items)
    some = [part for part, n in zip(parts, has, strict=True) if n]
    if not some:
        if counted is None:
            raise ValueError("all rankings have weight 0.")
        return counted
    held = made(client, "block", make_block, [(*part, plan) for part in some], len(some))
    others = together(client, held, n_items, response.absolute, sampled, OneRowEach)
    if plan.features is None:
        others.rows_of = lambda: ONE
    return others if counted is None else Together(counted, others)


def _seen(R: Rankings, weight: Any, plan: Plan) -> tuple[Rankings, Any]:
    """The rankings of a partition that go to a block, and which they are: of those without covariates, tied ones."""
    counts = weighted(R, weight)
    kept = counts > 0
    if plan.features is None and plan.response != "race":
        kept &= _tied(R)
    some = np.flatnonzero(kept)
    R = R[some]
    return Rankings(R.items, R.item, R.outcomes._replace(counts=counts[some]), R.unranked), some


def _tied(R: Rankings) -> Any:
    of_bucket = np.repeat(np.arange(len(R)), np.diff(R.outcomes.bucket_start))
    return np.bincount(of_bucket, R.outcomes.sizes > 1, len(R)) > 0


def untied_rankings(R: Rankings, weight: Any) -> Rankings | None:
    """Those without ties that have weight, each once."""
    counts = weighted(R, weight)
    some = np.flatnonzero((counts > 0) & ~_tied(R))
    if not len(some):
        return None
    R = R[some]
    return distinct_rankings(Rankings(R.items, R.item, R.outcomes._replace(counts=counts[some]), R.unranked))


def make_block(R: Rankings, X: Any, weight: Any, plan: Plan) -> PlacedSituations:
    """The rankings of a partition, with the features of their covariates."""
    from plackett.ranker import _dense

    check_versions(plan.versions, address_here())
    R, some = _seen(R, weight, plan)
    response, n_items = make_response(plan.response), len(R.items)
    if plan.features is None:
        situations = Situations(R.outcomes, R.item, np.zeros_like(R.item))
        return place_situations(ONE, situations, response, n_items, threads_here()).settled()
    W = _dense(transform(plan.features, rows_of(X, some)))
    return place_situations(W, Situations(R.outcomes, R.item, R.situation), response, n_items, threads_here()).settled()
