"""Rankings in partitions: each becomes ordinary `Rankings` on the worker that has it, by the same code.

What is wrong with a partition is told by its number and the row in it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plackett.cluster.partitions import looked
from plackett.data.components import above
from plackett.data.labels import Labels, distinct, is_missing, listed_rows
from plackett.data.rankings import Rankings
from plackett.model.race import Array

MAKE = {"ranks": Rankings.from_ranks, "orders": Rankings.from_orders}


class Spec(NamedTuple):
    """How a partition becomes rankings."""

    kind: str
    unranked: str | None
    items: Labels | None


class Look(NamedTuple):
    """What one partition holds."""

    n_rows: int
    problem: str | None
    tied: int | None  # the first row in which items share a place


def rankings_in(part: Any, counts: Any, spec: Spec) -> Rankings:
    """The rankings of a partition."""
    made: Rankings = MAKE[spec.kind](part, unranked=spec.unranked, items=spec.items, counts=counts)
    return made


def labels_in(part: Any) -> Labels:
    """The items of a partition of orders, each once."""
    flat: list[Any] = []
    for row in listed_rows(part):
        for place in row:
            flat.extend(place if isinstance(place, (set, frozenset)) else () if is_missing(place) else (place,))
    return distinct(flat, "an item") if flat else np.empty(0, dtype=object)


def items_in(part: Any) -> tuple[Labels | None, str | None]:
    """The same, or what is wrong with them."""
    try:
        return labels_in(part), None
    except (TypeError, ValueError) as error:
        return None, str(error)


def look(part: Any, counts: Any, weight: Any, groups: Any, spec: Spec) -> Look:
    """What a partition holds, and what is wrong with it; nothing is raised, so that the first can be told."""
    if not len(part):
        return Look(0, None, None)
    try:
        R = rankings_in(part, counts, spec)
    except (TypeError, ValueError) as error:
        return Look(len(part), _where(part, spec, error), None)
    for name, what in (("sample_weight", weight), ("groups", groups)):
        if what is not None and np.shape(what) != (len(R),):
            words = f"{name} must have one entry for each of the {len(R)} rankings, got shape {np.shape(what)}."
            return Look(len(R), words, None)
    weights = np.ones(0) if weight is None else np.asarray(weight, dtype=np.float64)
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        words = f"row {bad[0]} has a weight that is negative or not finite: {weights[bad[0]]}."
        return Look(len(R), words, None)
    first = np.searchsorted(R.outcomes.bucket_start, np.flatnonzero(R.outcomes.sizes > 1)[:1], side="right") - 1
    return Look(len(R), None, int(first[0]) if len(first) else None)


def _where(part: Any, spec: Spec, error: Exception) -> str:
    """What is wrong, from its row on."""
    words = str(error)
    if "row " in words:
        return words
    for t in range(len(part)):
        try:
            rankings_in(part.iloc[t : t + 1] if hasattr(part, "iloc") else part[t : t + 1], None, spec)
        except (TypeError, ValueError) as one:
            return f"row {t}: {one}"
    return words


def items_of(client: Any, parts: list[Any]) -> Labels:
    """The items of all partitions of orders, in order."""
    found = looked(client, "items", items_in, [(part,) for part in parts])
    for number, (_, problem) in enumerate(found):
        if problem is not None:
            raise ValueError(f"partition {number} of the data: {problem}")
    return distinct([label for labels, _ in found for label in labels.tolist()], "an item")


def edges_in(R: Rankings) -> npt.NDArray[np.intp]:
    """(2, pairs): who was placed right above whom."""
    seen = R[R.counts > 0]
    return np.array(above(seen.outcomes, seen.item, len(R.items)).nonzero())


def network(items: Labels, edges: list[npt.NDArray[np.intp]]) -> Rankings:
    """Rankings of two that have the components of all rankings."""
    upper, lower = np.unique(np.concatenate(edges, axis=1), axis=1)
    return Rankings.from_pairs(items[upper], items[lower], items=items)


def weighted(R: Rankings, weight: Any) -> Array:
    """The counts of rankings, multiplied by weights."""
    return R.counts if weight is None else R.counts * np.asarray(weight, dtype=np.float64)


def distinct_rankings(R: Rankings) -> Rankings:
    """Each ranking without ties once, with the counts of all that are the same."""
    start, bucket_start, _, counts = R.outcomes
    places = np.arange(len(R.item)) - start[R.situation]
    table = np.full((len(R), len(R.items) + 1), -1, dtype=np.int32)
    table[R.situation, places] = R.item
    table[:, -1] = np.diff(bucket_start)
    _, first, which = np.unique(table, axis=0, return_index=True, return_inverse=True)
    once = R[first]
    total = np.bincount(which.ravel(), counts, len(first)).astype(np.float64)
    return Rankings(once.items, once.item, once.outcomes._replace(counts=total), once.unranked)


def joined(parts: list[Rankings]) -> Rankings:
    """Rankings of the same items, one after the other."""
    outcomes = [R.outcomes for R in parts]
    start, bucket_start = (
        np.append(0, np.cumsum(np.concatenate([np.diff(getattr(each, name)) for each in outcomes])))
        for name in ("start", "bucket_start")
    )
    sizes, counts = (np.concatenate([getattr(each, name) for each in outcomes]) for name in ("sizes", "counts"))
    whole = type(outcomes[0])(start, bucket_start, sizes, counts)
    return Rankings(parts[0].items, np.concatenate([R.item for R in parts]), whole, parts[0].unranked)
