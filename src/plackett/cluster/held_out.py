"""Folds of data in partitions, for the shape a of EM: training and held-out rows are made where the data are stored.

Digests, codes and counts come to the client, and the row numbers of a fold go back. Maps are refitted to the training
rows of each fold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from plackett.cluster.blocks import ClassBlocks, coded, hold_classes, marks
from plackett.cluster.choice_parts import ChoiceRecipe, ChoiceTable
from plackett.cluster.class_parts import ClassPart, ClassRecipe, ClassTable, look_at_rows
from plackett.cluster.maps import fitted_map
from plackett.cluster.parts import Codes, ask, numbers_within, take_from
from plackett.cluster.ranking_parts import RankingPart, RankingRecipe, RankingTable, hold_rankings, in_block
from plackett.engines.dask import ClusterSituations
from plackett.engines.situations import digests, order_of
from plackett.features.mapped import transform
from plackett.inference.folds import Fold, MakeFold, fold_losses, situation_fold
from plackett.model.race import Array

Mask = npt.NDArray[np.bool_]


def class_folds(
    table: ClassTable, blocks: ClassBlocks, features: object, recipe: ClassRecipe
) -> tuple[Codes, MakeFold]:
    """Return the class of each row, and a function that makes folds; `blocks` were made by the recipe."""
    codes = np.concatenate([each for each, _ in blocks.held.each(coded)])

    def some(numbers: Codes) -> list[Any]:
        ascending = np.sort(np.arange(len(codes))[numbers])
        return take_from(table.parts, numbers_within(ascending, blocks.sizes))

    def make(train: Codes, test: Codes) -> Fold | None:
        kept = look_at_rows(table.client, some(train), table.names)
        if len(kept.classes) < 2:
            return None
        own = kept.recipe(recipe.factors[np.searchsorted(recipe.classes, kept.classes)])
        own = own._replace(features=fitted_map(kept, features, own))
        rows, rest = hold_classes(table.client, kept.parts, own).rows, some(test)

        def losses(weights: Sequence[Array]) -> list[tuple[Array, float]]:
            return ask(table.client, "held-out", losses_of_part, rest, recipe, own, np.array(weights))

        return Fold(rows, losses)

    return codes, make


def losses_of_part(
    part: ClassPart, whole: ClassRecipe, fold: ClassRecipe, log_weights: Sequence[Array]
) -> tuple[Array, float]:
    """Return log-losses (S,) of the rows of a part under S arrays ln λ (K, p), summed, and their total weight."""
    codes = np.searchsorted(whole.classes, np.asarray(part.y))
    counts = (np.ones(len(codes)) if part.weight is None else np.asarray(part.weight)) * whole.factors[codes]
    W, present = transform(fold.features, part.X, empty=True), np.searchsorted(whole.classes, fold.classes)
    return fold_losses(W, codes, counts, present, len(whole.classes), log_weights), float(counts.sum())


def choice_folds(
    table: ChoiceTable, rows: ClusterSituations, features: object, recipe: ChoiceRecipe
) -> tuple[Codes, MakeFold]:
    """Return the canonical order of all situations, and a function that makes folds; `rows` were made by the recipe."""
    found = rows.blocks.each(marks)
    digest, counts = (np.concatenate([each[i] for each in found]) for i in range(2))

    def make(train: Codes, test: Codes) -> Fold:
        inside, outside = (table.part(numbers) for numbers in (train, test))
        own = inside.looked_at().recipe(clone(features), recipe.weights, sampled=False)
        return situation_fold(*(each.hold(own, sampled=False) for each in (inside, outside)))

    return order_of(digest, counts), make


class RankingMarks(NamedTuple):
    """Data that determine the folds of one part's rankings with positive weight."""

    digest: npt.NDArray[np.uint64]
    counts: Array
    blocked: Mask  # True for rankings in a block, False for those in sets of remaining items
    group: Codes | None


def ranking_folds(table: RankingTable, features: object, recipe: RankingRecipe) -> tuple[Codes, Codes | None, MakeFold]:
    """Return the canonical order of all rankings, their groups, and a function that makes folds."""
    client, n_items, labels = table.client, len(table.items), None
    if table.grouped:
        labels = np.unique(np.concatenate(ask(client, "groups", labels_of, table.parts)))
    found = ask(client, "digests", marks_of_rankings, table.parts, recipe, labels)
    digest, counts, blocked = (np.concatenate([part[i] for part in found]) for i in range(3))
    groups = None if labels is None else np.concatenate([part.group for part in found])
    sizes = [len(part.digest) for part in found]

    def some(numbers: Codes) -> tuple[list[Any], list[int]]:
        """Return parts with these rankings, and how many of each go to a block."""
        within = numbers_within(numbers, sizes)
        has = [int(part.blocked[which].sum()) for part, which in zip(found, within, strict=True) if len(which)]
        return take_from(table.parts, within), has

    def make(train: Codes, test: Codes) -> Fold:
        inside, outside = some(train), some(test)
        own = recipe
        if table.covariates is not None:
            kept = look_at_rows(client, inside[0], table.covariates.names)
            own = recipe._replace(features=fitted_map(kept, features, kept.recipe()))
        rows, others = (hold_rankings(client, *each, own, n_items, False) for each in (inside, outside))
        return situation_fold(rows, others)

    kinds = np.flatnonzero(~blocked), np.flatnonzero(blocked)  # in the order of `CombinedRows`
    return np.concatenate([kind[order_of(digest[kind], counts[kind])] for kind in kinds]), groups, make


def labels_of(part: RankingPart) -> npt.NDArray[Any]:
    """Return the distinct groups of one part."""
    return np.unique(np.asarray(part.groups))


def marks_of_rankings(part: RankingPart, recipe: RankingRecipe, labels: npt.NDArray[Any] | None) -> RankingMarks:
    """Return digests of one part; a group is the position of its label among all."""
    R, some = part.counted()
    group = None if labels is None else np.searchsorted(labels, np.asarray(part.groups)[some])
    if not len(some):
        return RankingMarks(np.empty(0, dtype=np.uint64), R.counts, np.empty(0, dtype=bool), group)
    return RankingMarks(digests(*part.situations(R, some, recipe))[0], R.counts, in_block(R, recipe), group)
