"""Partitions of rankings: each becomes ordinary `Rankings` on its worker.

Without covariates, distinct rankings without ties come to the client with their counts, and the sets of remaining items
of all stages are counted there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plackett.cluster.blocks import block_of, hold_situations, make_blocks
from plackett.cluster.class_parts import ClassPart, ClassTable, first_fraction, look_at_rows, wrong_weight
from plackett.cluster.cutting import cut, local_only, split
from plackett.cluster.maps import fitted_map
from plackett.cluster.parts import Codes, ask, optional_rows, raise_first, rows_of
from plackett.data.components import above
from plackett.data.labels import Labels, distinct, is_missing, listed_rows
from plackett.data.observations import Observations, Situations
from plackett.data.partitioned import PartitionedRankings, is_dask
from plackett.data.rankings import Rankings
from plackett.engines.base import Rows
from plackett.engines.merged import merged_rankings
from plackett.engines.plain_rankings import ONE, CombinedRows, CompiledLeftSets, LeftSets, left_sets
from plackett.features.mapped import dense, transform
from plackett.model.features import Features
from plackett.model.race import Array
from plackett.responses import make_response

if TYPE_CHECKING:
    from distributed import Client

MAKE = {"ranks": Rankings.from_ranks, "orders": Rankings.from_orders}
Mask = npt.NDArray[np.bool_]
Pairs = npt.NDArray[np.intp]  # (2, pairs): items placed directly above others


class Reading(NamedTuple):
    """How a partition becomes rankings."""

    kind: str
    unranked: str | None
    items: Labels


class RankingRecipe(NamedTuple):
    """How rankings become features and situations."""

    features: Any  # fitted map; None without covariates
    response: str

    @property
    def by_sets(self) -> bool:
        """True if rankings without ties are counted by sets of remaining items, and only the others go to blocks."""
        return self.features is None and self.response != "race"


class RankingLook(NamedTuple):
    """Summary of one partition."""

    n_rows: int
    problem: str | None = None
    tied: int | None = None  # first row in which items share a place
    counted: int = 0  # number of rankings with positive weight
    counted_ties: int = 0  # number of those with ties
    fraction: tuple[int, float] | None = None  # first row with a fractional count, and the count
    pairs: Pairs | None = None  # pairs of items, one placed directly above the other


@dataclass(frozen=True)
class RankingPart:
    """Ranks or orders (`Rankings` if `reading` is None), with what belongs to them (None where absent)."""

    table: Any
    counts: Any
    X: Any
    weight: Any
    groups: Any
    reading: Reading | None

    def rankings(self) -> Rankings:
        """Return all rankings, with the counts of the table."""
        if self.reading is None:
            read: Rankings = self.table
            return read
        kind, unranked, items = self.reading
        made: Rankings = MAKE[kind](self.table, unranked=unranked, items=items, counts=self.counts)
        return made

    def look(self, pairs: bool = False) -> RankingLook:
        """Return ties and counts of the rankings, or a problem; on request, who was placed above whom."""
        n = len(self.table)
        if not n:
            return RankingLook(0)
        try:
            R = self.rankings()
        except (TypeError, ValueError) as error:
            return RankingLook(n, self._where(error))
        for name, what in (("sample_weight", self.weight), ("groups", self.groups)):
            if what is not None and np.shape(what) != (n,):
                words = f"{name} must have one entry for each of the {n} rankings, got shape {np.shape(what)}."
                return RankingLook(n, words)
        wrong = None if self.weight is None else wrong_weight(np.asarray(self.weight, dtype=np.float64))
        if wrong is not None:
            return RankingLook(n, wrong)
        ties, counts = tied(R), self._weighted(R)
        first, some = np.flatnonzero(ties)[:1].tolist(), counts > 0
        found = np.array(above((seen := R[some]).outcomes, seen.item, len(R.items)).nonzero()) if pairs else None
        fraction, n_some = first_fraction(counts), int(some.sum())
        return RankingLook(n, None, first[0] if first else None, n_some, int((ties & some).sum()), fraction, found)

    def _where(self, error: Exception) -> str:
        """Describe the problem, with its row."""
        words = str(error)
        if "row " in words:
            return words
        for t in range(len(self.table)):
            try:
                RankingPart(rows_of(self.table, slice(t, t + 1)), None, None, None, None, self.reading).rankings()
            except (TypeError, ValueError) as one:
                return f"row {t}: {one}"
        return words

    def _weighted(self, R: Rankings) -> Array:
        """Return counts multiplied by weights."""
        return R.counts if self.weight is None else R.counts * np.asarray(self.weight, dtype=np.float64)

    def counted(self) -> tuple[Rankings, Codes]:
        """Return rankings with positive weight, which multiplies their counts, and their row numbers."""
        R = self.rankings()
        counts = self._weighted(R)
        some = np.flatnonzero(counts)
        R = R[some]
        return Rankings(R.items, R.item, R.outcomes._replace(counts=counts[some]), R.unranked), some

    def untied(self) -> Rankings | None:
        """Return distinct rankings without ties and with positive weight."""
        R, _ = self.counted()
        some = np.flatnonzero(~tied(R))
        return merged_rankings(R[some]) if len(some) else None

    def situations(self, R: Rankings, rows: Codes, recipe: RankingRecipe) -> tuple[Features, Situations]:
        """Return the rankings of these rows, with the features of their covariates."""
        if recipe.features is None:
            return ONE, Situations(R.outcomes, R.item, np.zeros_like(R.item))
        W = dense(transform(recipe.features, rows_of(self.X, rows)))
        return W, Situations(R.outcomes, R.item, R.situation)

    def observe(self, recipe: RankingRecipe) -> tuple[Features, Observations]:
        """Return features and outcomes of the rankings with positive weight that go to a block."""
        R, some = self.counted()
        kept = np.flatnonzero(in_block(R, recipe))
        R, some = R[kept], some[kept]
        W, situations = self.situations(R, some, recipe)
        return W, Observations.of_situations(situations, make_response(recipe.response), len(R.items))

    def take(self, numbers: Codes) -> RankingPart:
        """Select rankings by their number among those with positive weight."""
        R = self.rankings()
        some = np.flatnonzero(self._weighted(R))[numbers]
        X = None if self.X is None else rows_of(self.X, some)
        weight, groups = optional_rows(self.weight, some), optional_rows(self.groups, some)
        return RankingPart(R[some], None, X, weight, groups, None)

    def covariates(self) -> ClassPart:
        """Return the rows whose columns a map is fitted to, as one class."""
        R = self.rankings()
        return ClassPart(self.X, np.zeros(len(R), dtype=np.intp), self._weighted(R))

    def in_memory(self) -> tuple[Rankings, Any, Any, Any]:
        """Return rankings, covariates, weights and groups."""
        return self.rankings(), self.X, self.weight, self.groups


def tied(R: Rankings) -> Mask:
    """True for rankings in which items share a place."""
    of_bucket = np.repeat(np.arange(len(R)), np.diff(R.outcomes.bucket_start))
    found: Mask = np.bincount(of_bucket, R.outcomes.sizes > 1, len(R)) > 0
    return found


def in_block(R: Rankings, recipe: RankingRecipe) -> Mask:
    """True for rankings that go to a block."""
    return tied(R) if recipe.by_sets else np.ones(len(R), dtype=bool)


def joined(parts: list[Rankings]) -> Rankings:
    """Concatenate rankings of the same items."""
    outcomes = [R.outcomes for R in parts]
    start, bucket_start = (
        np.append(0, np.cumsum(np.concatenate([np.diff(getattr(each, name)) for each in outcomes])))
        for name in ("start", "bucket_start")
    )
    sizes, counts = (np.concatenate([getattr(each, name) for each in outcomes]) for name in ("sizes", "counts"))
    whole = type(outcomes[0])(start, bucket_start, sizes, counts)
    return Rankings(parts[0].items, np.concatenate([R.item for R in parts]), whole, parts[0].unranked)


@dataclass(frozen=True)
class RankingTable:
    """Non-empty partitions of rankings, with the results of a look."""

    client: Client
    parts: list[RankingPart]
    numbers: list[int]  # numbers of these partitions
    looks: list[RankingLook]
    items: Labels
    response: str
    covariates: ClassTable | None
    grouped: bool

    @property
    def n_rows(self) -> int:
        """Number of rankings, including those of weight 0."""
        return sum(look.n_rows for look in self.looks)

    def network(self) -> Rankings:
        """Return rankings of two items with the same components as all rankings."""
        found = [look.pairs for look in self.looks if look.pairs is not None]
        upper, lower = np.unique(np.concatenate(found, axis=1), axis=1)
        return Rankings.from_pairs(self.items[upper], self.items[lower], items=self.items)

    def recipe(self, features: Any) -> RankingRecipe:
        """Return the recipe of all parts, with a map fitted to their covariates if there are any."""
        if self.covariates is None:
            return RankingRecipe(None, self.response)
        return RankingRecipe(fitted_map(self.covariates, features, self.covariates.recipe()), self.response)

    def hold(self, recipe: RankingRecipe, sampled: bool) -> Rows:
        """Hold all rankings as blocks on workers; without covariates, those without ties as sets."""
        if sampled:
            self._check_whole()
        has = [look.counted_ties if recipe.by_sets else look.counted for look in self.looks]
        return hold_rankings(self.client, self.parts, has, recipe, len(self.items), sampled)

    def _check_whole(self) -> None:
        """Raise for fractional counts, which a sampler does not take."""
        for number, look in zip(self.numbers, self.looks, strict=True):
            if look.fraction is not None:
                row, count = look.fraction
                raise ValueError(
                    f"a sampler takes whole numbers as counts (a count of 2 is two rankings), got {count:g} in row "
                    f"{row} of partition {number}; 'em' and 'variational' take any."
                )


def read_rankings(
    client: Client,
    X: object,
    R: PartitionedRankings,
    sample_weight: object,
    groups: object,
    ties: str,
    pairs: bool = False,
) -> RankingTable:
    """Partition covariates, weights and groups like the rankings, and look at all partitions.

    `ties` is the setting of the ranker; `pairs` requests pairs of items, one placed above the other.
    """
    if X is not None and not is_dask(X):
        raise ValueError("the rankings are in partitions: X must be a Dask collection with the same partitions.")
    given = {"counts": R.counts, "X": X, "sample_weight": sample_weight, "groups": groups}
    pieces, beside, _ = cut(R.table, "the rankings have", given)
    reading = Reading(R.kind, R.unranked, _items(client, pieces) if R.items is None else R.items)
    here = local_only(given)
    sizes = ask(client, "sizes", len, pieces) if here else []
    for key, what in here.items():
        beside[key] = split(what, sizes, key, "rankings")
    columns = zip(pieces, *(beside[key] for key in given), strict=True)
    parts = [RankingPart(table, n, x, weight, who, reading) for table, n, x, weight, who in columns]
    looks = ask(client, "look", RankingPart.look, parts, pairs)
    response = _response(looks, ties)
    filled = [number for number, look in enumerate(looks) if look.n_rows]
    if not filled:
        raise ValueError("there are no rankings.")
    parts, covariates = [parts[number] for number in filled], None
    if X is not None:
        covariates = look_at_rows(client, parts, list(X.columns) if hasattr(X, "columns") else None)
    looks, items = [looks[number] for number in filled], reading.items
    return RankingTable(client, parts, filled, looks, items, response, covariates, groups is not None)


def _response(looks: list[RankingLook], ties: str) -> str:
    """Return the response; raises the first problem, or the first tie if ties are errors."""
    for number, look in enumerate(looks):
        raise_first([look], first=number)
        if look.tied is not None and ties == "error":
            raise ValueError(
                f"items share a place in row {look.tied} of partition {number}, and ties='error'. Say what a tie "
                "means: ties='unknown-order' or ties='race'."
            )
    if ties == "race":
        return "race"
    return "unknown-order" if any(look.tied is not None for look in looks) else "ranking"


class ItemLook(NamedTuple):
    """Items of one partition of orders."""

    problem: str | None
    labels: Labels


def look_for_items(piece: object) -> ItemLook:
    """Return the distinct items of one partition of orders, or a problem."""
    flat: list[Any] = []
    try:
        for row in listed_rows(piece):
            for place in row:
                flat.extend(place if isinstance(place, (set, frozenset)) else () if is_missing(place) else (place,))
        return ItemLook(None, distinct(flat, "an item") if flat else np.empty(0, dtype=object))
    except (TypeError, ValueError) as error:
        return ItemLook(str(error), np.empty(0, dtype=object))


def _items(client: Client, pieces: list[Any]) -> Labels:
    """Return the items of all partitions of orders, sorted."""
    looks = ask(client, "items", look_for_items, pieces)
    raise_first(looks)
    return distinct([label for look in looks for label in look.labels.tolist()], "an item")


def hold_rankings(
    client: Client, parts: list[Any], has: list[int], recipe: RankingRecipe, n_items: int, sampled: bool
) -> Rows:
    """Return blocks on workers, with the number of rankings of each part, and sets of remaining items on the client."""
    response = make_response(recipe.response)
    sets: LeftSets | None = None
    if recipe.by_sets:
        untied = [R for R in ask(client, "distinct", RankingPart.untied, parts) if R is not None]
        if untied:
            plain = merged_rankings(joined(untied))
            seen = Observations.of_rankings(plain.outcomes, plain.item, response, n_items)
            sets = left_sets(seen, CompiledLeftSets)
    some = [part for part, n in zip(parts, has, strict=True) if n]
    if not some:
        if sets is None:
            raise ValueError("all rankings have weight 0.")
        return sets
    held = make_blocks(client, block_of, some, recipe)
    others = hold_situations(held, n_items, response.absolute, sampled, ONE if recipe.features is None else None)
    return others if sets is None else CombinedRows(sets, others)
