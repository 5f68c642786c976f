"""What EM holds out of rankings and choices in partitions: the folds of `plackett.inference.ranking_folds`.

Digests and counts of the situations come here, and their numbers go back; situations of a fold are taken out of their
partitions, or blocks, where they lie. All else is done as for a whole table: of rankings, maps are fitted anew to those
that a fold trains on, of choices the map of all is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plackett.cluster.blocks import rows_of
from plackett.cluster.client import in_use
from plackett.cluster.fit_choices import no_rows
from plackett.cluster.fit_rankings import Part, Plan, Ranked, counted, fitted_map, rows_of_parts, situated, to_block
from plackett.cluster.held import made, threads_here
from plackett.cluster.partitions import looked
from plackett.cluster.rankings import weighted
from plackett.cluster.situations import together, told
from plackett.data.rankings import Rankings
from plackett.engines.base import Rows
from plackett.engines.dask import ClusterSituations
from plackett.engines.placed import PlacedSituations, place_situations
from plackett.engines.situations import digests, order_of
from plackett.inference.ranking_folds import Make
from plackett.model.race import Array

Codes = npt.NDArray[np.intp]


def within(numbers: Codes, sizes: Sequence[int]) -> list[Codes]:
    """Numbers among all situations as numbers within each of the parts, of these sizes, in which they lie."""
    ends = np.cumsum(sizes)
    numbers = np.arange(ends[-1])[numbers]  # a splitter may also give a mask
    owner = np.searchsorted(ends, numbers, side="right")
    by_part = np.argsort(owner, kind="stable")
    places = (numbers - (ends - sizes)[owner])[by_part]
    return np.split(places, np.cumsum(np.bincount(owner, minlength=len(ends)))[:-1])


def choice_folds(rows: ClusterSituations) -> tuple[Codes, Make]:
    """The canonical order of all situations, and what makes blocks of some of them."""
    client, blocks = rows.blocks.client, rows.blocks.blocks
    found = rows.blocks.each(told)
    digest, counts = (np.concatenate([each[i] for each in found]) for i in range(2))
    sizes = [len(each[0]) for each in found]

    def some(numbers: Codes) -> ClusterSituations:
        parts = [(block, each) for block, each in zip(blocks, within(numbers, sizes), strict=True) if len(each)]
        held = made(client, "fold", part_of_block, parts, len(parts))
        return together(client, held, rows.n_groups, rows.absolute, False, no_rows)

    return order_of(digest, counts), lambda train, test: (some(train), some(test))


def part_of_block(rows: PlacedSituations, numbers: Codes) -> PlacedSituations:
    """Some situations of a block, by the order in which they came."""
    some = rows.seen.part(np.argsort(rows.order)[numbers])
    block = place_situations(rows.features, some, threads_here()).settled()
    rows.give_back()
    return block


class Told(NamedTuple):
    """Of each ranking of a partition that has weight."""

    digest: npt.NDArray[np.uint64]
    counts: Array
    blocked: npt.NDArray[np.bool_]  # whether it is held in a block, and not by the sets of those left
    group: Codes | None


def ranking_folds(model: Any, features: Any, X: Any, found: Ranked) -> tuple[Codes, Codes | None, Make]:
    """The canonical order of all rankings, their groups, and what makes rows of some of them."""
    client, plan, n_items = in_use(), found.plan, len(found.items)
    who, labels = _groups(client, found)
    asked = [(*part, each, plan, labels) for part, each in zip(found.parts, who, strict=True)]
    parts: list[Told] = looked(client, "digests", told_of, asked)
    digest, counts, blocked = (np.concatenate([part[i] for part in parts]) for i in range(3))
    groups = None if labels is None else np.concatenate([part.group for part in parts])
    sizes = [len(part.digest) for part in parts]

    def some(numbers: Codes) -> tuple[list[Part], list[int]]:
        """Those rankings in their partitions, and how many of each go to a block."""
        kept = [(b, which) for b, which in enumerate(within(numbers, sizes)) if len(which)]
        to_blocks = [int(parts[b].blocked[which].sum()) for b, which in kept]
        return [_taken(found.parts[b], which) for b, which in kept], to_blocks

    def make(train: Codes, test: Codes) -> tuple[Rows, Rows]:
        inside, outside = some(train), some(test)
        fitted = None if X is None else fitted_map(model, client, features, X, inside[0])
        rows, others = (
            rows_of_parts(client, *each, plan._replace(features=fitted), n_items, False) for each in (inside, outside)
        )
        return rows, others

    kinds = np.flatnonzero(~blocked), np.flatnonzero(blocked)  # as `plain_rows` has them
    return np.concatenate([kind[order_of(digest[kind], counts[kind])] for kind in kinds]), groups, make


def _groups(client: Any, found: Ranked) -> tuple[list[Any], npt.NDArray[Any] | None]:
    """Groups of the partitions that have rankings, and the labels of all."""
    who = [found.cut.beside["groups"][b] for b in found.cut.filled]
    if who[0] is None:
        return who, None
    return who, np.unique(np.concatenate(looked(client, "groups", labels_of, [(each,) for each in who])))


def labels_of(groups: Any) -> npt.NDArray[Any]:
    """The labels of a partition, each once."""
    return np.unique(np.asarray(groups))


def told_of(R: Rankings, X: Any, weight: Any, groups: Any, plan: Plan, labels: npt.NDArray[Any] | None) -> Told:
    """Of one partition; a group is the place of its label among all."""
    R, some = counted(R, weight)
    group = None if labels is None else np.searchsorted(labels, np.asarray(groups)[some])
    if not len(some):
        return Told(np.empty(0, dtype=np.uint64), R.counts, np.empty(0, dtype=bool), group)
    seen = situated(R, None if plan.features is None else rows_of(X, some), plan)
    return Told(digests(*seen)[0], R.counts, to_block(R, plan), group)


def _taken(part: Part, numbers: Codes) -> Part:
    """Those rankings of a partition, of the ones that have weight, that have these numbers; taken where they lie."""
    import dask

    R, X, weight = dask.delayed(taken, nout=3, pure=False)(*part, numbers)
    return R, X, weight


def taken(R: Rankings, X: Any, weight: Any, numbers: Codes) -> Part:
    """The same, of one partition."""
    some = np.flatnonzero(weighted(R, weight))[numbers]
    return R[some], None if X is None else rows_of(X, some), None if weight is None else np.asarray(weight)[some]
