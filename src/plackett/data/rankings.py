"""Rankings as flat arrays: complete, partial, tied, counted. Knows no model; responses interpret outcomes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from plackett.data import preflib
from plackett.data.best_worst import best_worst_orders
from plackett.data.comparisons import read_differences, turned
from plackett.data.components import components
from plackett.data.labels import (
    Codes,
    Labels,
    coded,
    codes_of,
    counted,
    distinct,
    given,
    is_missing,
    listed_rows,
    locked,
    numbers_of,
    row_numbers,
)
from plackett.data.partitioned import PartitionedRankings, is_dask
from plackett.data.types import Label, MatrixLike
from plackett.data.validation import plain
from plackett.model.race import Array
from plackett.responses.base import Outcomes, checked, in_order, places_of

__all__ = ["Rankings"]

UNRANKED = ("absent", "last")


@dataclass(frozen=True, eq=False, repr=False)
class Rankings:
    """Rankings of items, one per row, made by a method whose name begins with ``from`` or ``read``.

    A row has a set of available items, and places some of them in buckets, the best first: a bucket is one item, or
    several tied ones. The other available items are *left*: they come after all buckets, in no order.

    An item that a row does not rank was either ``"absent"``, so that the row has no information about it, or it came
    ``"last"``, behind all ranked items (a ballot that names the best few). Since the same file can mean either,
    `unranked` must be given; it may be omitted only if every row ranks every item.

    Equivalent rows have the same form: a single item in the last place, with nothing left, is stored as left. Items
    tied in the last place stay a bucket. If ties mean an unknown order this bucket carries no information, in a race
    with ties it does.

    Rows are indexed by numbers, slices, lists and masks, and keep the items, so that scikit-learn's splitters and
    cross-validation accept rankings as `y`. Instances are immutable.

    Attributes
    ----------
    items : (K,) array
        Labels of the items, sorted unless given.
    item : (entries,) array
        Code of each entry, row by row: its buckets in order, then the items left.
    outcomes : Outcomes
        Starts of rows and buckets, and the `counts` of rows.
    unranked : {"absent", "last"}
        Status of unranked items.
    first : (n,) array, optional
        Code of the item that was shown first, or played at home, −1 for none; None if not given.
    attributes : (n, d) array, optional
        Attributes of comparisons: of the first of both entries of each row, minus those of the second.
    attribute_names : tuple of str
        Names of the attributes.

    Examples
    --------
    >>> from plackett import Rankings
    >>> R = Rankings.from_orders([["b", "a", "c"], [{"a", "c"}, "b"], ["c", "b"]], unranked="absent", counts=[2, 1, 1])
    >>> R
    Rankings(3 rows, 4 rankings, 3 items, ties, unranked='absent')
    >>> R[1:].to_orders() == [[{"a", "c"}, "b"], ["c", "b"]]
    True
    >>> R.components()
    [['a', 'b', 'c']]
    """

    items: Labels
    item: Codes
    outcomes: Outcomes
    unranked: str
    first: Codes | None = None
    attributes: Array | None = None
    attribute_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        checked(self.outcomes)
        for array in self._arrays:
            if array is not None:
                locked(array)

    @classmethod
    def from_orders(
        cls,
        orders: object,
        *,
        unranked: str | None = None,
        items: Iterable[Label] | None = None,
        counts: npt.ArrayLike | None = None,
    ) -> Rankings:
        """Build rankings from lists of items, the best first, where a set is a bucket of tied items.

        Parameters
        ----------
        orders : sequence of sequences, data frame or 2-D array
            One order per row. Missing values at the end of a row are ignored: rows of a table may differ in length. A
            Dask collection stays in its partitions; `PlackettLuceRanker.fit` accepts the result.
        unranked : {"absent", "last"}
            Status of items that a row does not name; may be omitted only if every row names all of them.
        items : sequence, optional
            All items, in this order; by default those that occur, sorted.
        counts : sequence of numbers, optional
            Number of observations of each row.

        Examples
        --------
        >>> R = Rankings.from_orders([["b"], ["c", "b", "a"]], unranked="last")
        >>> R.outcomes.sizes, R.items[R.item]
        (array([1, 1, 1]), array(['b', 'a', 'c', 'c', 'b', 'a'], dtype='<U1'))
        """
        if is_dask(orders):
            return _in_partitions(orders, "orders", unranked, items, counts)
        labels, sizes, length = _flat(listed_rows(orders))
        known = distinct(labels, "an item") if items is None else given(items, "items", "an item")
        return _ranked(known, codes_of(labels, known, "item"), sizes, length, counts, unranked)

    @classmethod
    def from_ranks(
        cls,
        ranks: Any,
        *,
        unranked: str | None = None,
        items: Iterable[Label] | None = None,
        counts: npt.ArrayLike | None = None,
    ) -> Rankings:
        """Build rankings from a table with one row per ranking and one column per item.

        Parameters
        ----------
        ranks : data frame or (n, items) array
            The lowest number is the best; equal numbers are a bucket; 0 or NaN is unranked. Only the order of the
            numbers matters: 1, 1, 3 and 1, 1, 2 are equivalent. A Dask collection is handled as in `from_orders`.
        unranked : {"absent", "last"}
            Status of items that a row does not rank; may be omitted only if every row ranks all of them.
        items : sequence, optional
            Labels of the columns of an array (by default 0, 1, …). For a data frame, which names its items, all items
            in this order.
        counts : sequence of numbers, optional
            Number of observations of each row.

        Examples
        --------
        >>> Rankings.from_ranks([[2, 1, 3], [1, 2, 1]], items=["a", "b", "c"]).to_orders() == [
        ...     ["b", "a", "c"],
        ...     [{"a", "c"}, "b"],
        ... ]
        True
        """
        if is_dask(ranks):
            return _in_partitions(ranks, "ranks", unranked, items, counts)
        named = hasattr(ranks, "columns")
        table = _rank_table(ranks)
        columns = given(ranks.columns if named else range(table.shape[1]), "the table", "an item")
        known = columns if items is None else given(items, "items", "an item")
        if not named and len(known) != len(columns):
            raise ValueError(f"items must name the {len(columns)} columns of the array, got {len(known)} labels.")
        code = codes_of(columns.tolist(), known, "item") if named else np.arange(len(known))
        row, column = np.nonzero(table > 0)
        length = np.bincount(row, minlength=len(table))
        if not length.all():
            raise ValueError(f"row {int(np.argmin(length))} is an empty ranking: it ranks no item.")
        order = np.lexsort((column, table[row, column], row))
        row, column = row[order], column[order]
        rank = table[row, column]
        new = np.append(True, (np.diff(row) > 0) | (np.diff(rank) > 0))
        sizes = np.diff(np.append(np.flatnonzero(new), len(row)))
        return _ranked(known, code[column], sizes, np.bincount(row[new]), counts, unranked)

    @classmethod
    def from_pairs(
        cls,
        winners: Iterable[Label],
        losers: Iterable[Label],
        ties: npt.ArrayLike | None = None,
        counts: npt.ArrayLike | None = None,
        items: Iterable[Label] | None = None,
        first: Iterable[Label] | None = None,
        attributes: Any = None,
    ) -> Rankings:
        """Build rankings of two items each.

        Parameters
        ----------
        winners, losers : sequences of labels
            The two items of each pair.
        ties : sequence of bool, optional
            True where neither of the two won.
        counts : sequence of numbers, optional
            Number of observations of each row.
        items : sequence, optional
            All items, in this order; by default those that occur, sorted.
        first : sequence of labels, optional
            Item that was shown first, or played at home; None or NaN for neither.
            ``PlackettLuceRanker(order_effect=True)`` estimates the effect.
        attributes : data frame or (n, d) array, optional
            Numbers that belong to a comparison and may decide it, such as the lengths of both answers or a handicap:
            those of the item in `winners` minus those of the item in `losers`, also where the two tie.
            `PlackettLuceRanker` then learns a coefficient of each with the worths.

        Examples
        --------
        >>> R = Rankings.from_pairs(["a", "a", "b"], ["b", "b", "a"], ties=[False, True, False], counts=[19, 16, 22])
        >>> R.to_orders() == [["a", "b"], [{"a", "b"}], ["b", "a"]]
        True

        Answers whose length differs by so many words, the winner's minus the loser's:

        >>> R = Rankings.from_pairs(["a", "b"], ["b", "a"], attributes=[[120.0], [-40.0]])
        >>> R.attribute_names, R.attributes.tolist()
        (('x0',), [[120.0], [-40.0]])
        """
        (upper_labels, upper), (lower_labels, lower) = (coded(labels, "an item") for labels in (winners, losers))
        tied = np.zeros(len(upper), dtype=bool) if ties is None else np.asarray(ties)
        if not len(upper) == len(lower) == len(tied):
            raise ValueError(
                f"winners, losers and ties must be equally long, got {len(upper)}, {len(lower)} and {len(tied)}."
            )
        if tied.dtype != bool:
            raise ValueError(f"ties must be true or false for each pair, got {plain(tied.ravel()[0])} instead.")
        if not len(upper):
            raise ValueError("there are no rankings.")
        labels = upper_labels + lower_labels
        known = distinct(labels, "an item") if items is None else given(items, "items", "an item")
        pairs = codes_of(labels, known, "item")[np.column_stack([upper, lower + len(upper_labels)])]
        made = _pairs(known, pairs, tied, counts)
        if first is not None:
            made = replace(made, first=_shown_first(first, pairs, known))
        if attributes is None:
            return made
        differences, names = read_differences(attributes, len(pairs))
        return replace(made, attributes=turned(differences, made.item[::2] != pairs[:, 0]), attribute_names=names)

    @classmethod
    def from_best_worst(
        cls,
        sets: Any,
        best: Iterable[Label],
        worst: Iterable[Label],
        *,
        counts: npt.ArrayLike | None = None,
        items: Iterable[Label] | None = None,
    ) -> Rankings:
        """Build rankings from best–worst tasks (MaxDiff): the best and the worst of each set of items.

        A task shows that the best comes before all others and the worst after all others, whose order is unknown. It is
        the ranking [best, {others}, worst]; with ``ties="unknown-order"`` its likelihood is the exact probability that
        the race begins with the best and ends with the worst.

        Parameters
        ----------
        sets : sequence of sequences, data frame or 2-D array
            Items of each task, two or more; missing values at the end of a row are ignored.
        best, worst : sequences of labels
            Best and worst item of each task.
        counts : sequence of numbers, optional
            Number of observations of each row.
        items : sequence, optional
            All items, in this order; by default those that occur, sorted.

        Examples
        --------
        >>> R = Rankings.from_best_worst([["a", "b", "c", "d"], ["d", "b", "c"]], best=["b", "b"], worst=["a", "d"])
        >>> R.to_orders() == [["b", {"c", "d"}, "a"], ["b", "c", "d"]]
        True
        """
        return cls.from_orders(
            best_worst_orders(listed_rows(sets), list(best), list(worst)), unranked="absent", items=items, counts=counts
        )

    @classmethod
    def read_preflib(cls, path: str | os.PathLike[str], *, unranked: str | None = None) -> Rankings:
        """Read rankings from a PrefLib file: soc, soi, toc or toi, with the older or newer header.

        Parameters
        ----------
        path : path
            The file.
        unranked : {"absent", "last"}
            Status of items that an order does not name; may be omitted only for soc and toc, which name all.
        """
        found = preflib.read(path)
        held = found.items, found.code, found.sizes, found.length, found.counts, unranked
        return _ranked(*held, where=lambda t: f"{Path(path).name}, line {found.lines[t]}: this order")

    @property
    def counts(self) -> Array:
        """Number of observations of each row, (n,)."""
        return self.outcomes.counts

    @property
    def situation(self) -> Codes:
        """Row of each entry, (entries,)."""
        return np.repeat(np.arange(len(self)), np.diff(self.outcomes.start))

    @property
    def tied(self) -> bool:
        """True if any bucket holds more than one item."""
        return bool((self.outcomes.sizes > 1).any())

    @property
    def shape(self) -> tuple[int]:
        """(n,), for scikit-learn."""
        return (len(self),)

    def __len__(self) -> int:
        return len(self.outcomes.counts)

    def __getitem__(self, key: Any) -> Rankings:
        rows = row_numbers(key, len(self))
        start, bucket_start, sizes, counts = self.outcomes
        outcomes = Outcomes(
            np.append(0, np.cumsum(np.diff(start)[rows])),
            np.append(0, np.cumsum(np.diff(bucket_start)[rows])),
            sizes[in_order(rows, bucket_start)],
            counts[rows],
        )
        first = None if self.first is None else self.first[rows]
        attributes = None if self.attributes is None else self.attributes[rows]
        item = self.item[in_order(rows, start)]
        return Rankings(self.items, item, outcomes, self.unranked, first, attributes, self.attribute_names)

    def __eq__(self, other: object) -> bool:
        """Return True if both hold the same rankings of the same items."""
        if not isinstance(other, Rankings):
            return NotImplemented
        if self.attribute_names != other.attribute_names:
            return False
        return all(
            (one is None) == (another is None) and np.array_equal(one, another)  # type: ignore[arg-type]
            for one, another in zip(self._arrays, other._arrays, strict=True)
        )

    @property
    def _arrays(self) -> tuple[npt.NDArray[Any] | None, ...]:
        return self.items, self.item, *self.outcomes, self.first, self.attributes

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        more = self.first, self.attributes, self.attribute_names
        return Rankings, (self.items, self.item, self.outcomes, self.unranked, *more)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        raise TypeError("rankings are no array: take .item and .outcomes, or .to_orders().")

    def __repr__(self) -> str:
        n, total = len(self), self.counts.sum()
        seen = "" if (self.counts == 1).all() else f"{total:.12g} rankings, "
        ties = "ties, " if self.tied else ""
        return f"Rankings({n} rows, {seen}{len(self.items)} items, {ties}unranked={self.unranked!r})"

    def to_orders(self) -> list[list[Any]]:
        """Return one list of items per row, the best first, with a set for a bucket of tied items.

        Several items left are omitted, being unranked; a single one is listed in the last place. Therefore
        ``Rankings.from_orders(R.to_orders(), unranked=R.unranked, items=R.items, counts=R.counts) == R``.
        """
        start, bucket_start, sizes = (part.tolist() for part in self.outcomes[:3])
        labels = self.items[self.item].tolist()
        orders = []
        for t in range(len(self)):
            order, place = [], start[t]
            for size in sizes[bucket_start[t] : bucket_start[t + 1]]:
                order.append(labels[place] if size == 1 else set(labels[place : place + size]))
                place += size
            if start[t + 1] - place == 1:
                order.append(labels[place])
            orders.append(order)
        return orders

    def with_items(self, items: Iterable[Label]) -> Rankings:
        """Return the same rankings in the codes of other items, such as those of a model.

        The available items of a row do not change: new items are absent from all rows.

        Examples
        --------
        >>> Rankings.from_pairs(["b"], ["c"]).with_items(["a", "b", "c"]).item
        array([1, 2])
        """
        known = given(items, "items", "an item")
        used, place = np.unique(self.item, return_inverse=True)
        new = codes_of(self.items[used].tolist(), known, "item")
        code, first = new[place], self.first
        if first is not None:
            first = np.where(first < 0, -1, new[np.minimum(np.searchsorted(used, first), len(used) - 1)])
        order = np.lexsort((code, places_of(self.outcomes)))
        made = Rankings(known, code[order], self.outcomes, self.unranked, first)
        if self.attributes is None:
            return made
        attributes = turned(self.attributes, order[::2] % 2 == 1)
        return replace(made, attributes=attributes, attribute_names=self.attribute_names)

    def components(self) -> list[list[Label]]:
        """Return the strongly connected components of the network with i → j if i was placed above j.

        A maximum of the likelihood exists only for a single component. Between two components there are results in one
        direction at most; a component whose items were placed above those of another comes first.

        Examples
        --------
        >>> Rankings.from_orders([["a", "b", "z"], ["b", "a"]], unranked="absent").components()
        [['a', 'b'], ['z']]
        """
        seen, labels = self if self.counts.all() else self[self.counts > 0], self.items.tolist()
        found = components(seen.outcomes, seen.item, len(labels))
        return [[labels[k] for k in part] for part in found]


def _pairs(items: Labels, pairs: Codes, tied: npt.NDArray[np.bool_], counts: npt.ArrayLike | None) -> Rankings:
    """Build rankings of two items each from their codes (n, 2), the winner first unless they tied."""
    _check_items(items)
    twice = pairs[:, 0] == pairs[:, 1]
    if twice.any():
        t = int(np.argmax(twice))
        raise ValueError(_names_twice(t, items[pairs[t, 0]]))
    held = np.where(tied[:, None], np.sort(pairs, axis=1), pairs) if tied.any() else pairs
    return Rankings(items, held.ravel(), Outcomes.pairs(tied, counted(counts, len(pairs))), "absent")


def _check_items(items: Labels) -> None:
    if len(items) < 2:
        raise ValueError(f"rankings need two items or more, got {plain(items.tolist())}.")


def _names_twice(row: int, item: Any) -> str:
    return f"row {row} ranks item {plain(item)} twice."


def _shown_first(first: Iterable[Label], pairs: Codes, items: Labels) -> Codes:
    """Return the code of the item shown first in each pair, −1 for none."""
    labels, codes = coded(first, "an item")
    if len(codes) != len(pairs):
        raise ValueError(f"first must have one label for each of the {len(pairs)} pairs, got {len(codes)}.")
    place = {label: code for code, label in enumerate(items.tolist())}
    found = np.array([-1 if is_missing(label) else place.get(label, len(items)) for label in labels])[codes]
    wrong = (found >= 0) & (found[:, None] != pairs).all(axis=1)
    if wrong.any():
        t = int(np.argmax(wrong))
        both = " and ".join(plain(label) for label in items[pairs[t]].tolist())
        raise ValueError(
            f"first must be one of the two items, {both} in row {t}, got {plain(labels[codes[t]])} instead."
        )
    return found


def _in_partitions(table: Any, kind: str, unranked: str | None, items: Any, counts: Any) -> Any:
    """Return rankings in a Dask collection."""
    return PartitionedRankings.of(table, kind, unranked, items, counts)


def _flat(orders: Sequence[Any]) -> tuple[list[Label], Codes, Codes]:
    """Return all labels in turn, the sizes of the buckets, and the number of buckets of each row."""
    labels: list[Label] = []
    sizes: list[int] = []
    length = []
    for t, order in enumerate(orders):
        if isinstance(order, (str, bytes, set, frozenset, dict)) or not hasattr(order, "__iter__"):
            raise ValueError(f"an order is a list of items, the best first, got {plain(order)} in row {t} instead.")
        places = list(order)
        while places and is_missing(places[-1]):
            places.pop()
        if not places:
            raise ValueError(f"row {t} is an empty ranking: it names no item.")
        for number, place in enumerate(places):
            tied = isinstance(place, (set, frozenset))
            if not (place if tied else not isinstance(place, (list, tuple, np.ndarray)) and not is_missing(place)):
                raise ValueError(
                    f"place {number + 1} of row {t} must be an item, or a set of tied items, got {plain(place)}."
                )
            labels.extend(place if tied else (place,))
            sizes.append(len(place) if tied else 1)
        length.append(len(places))
    if not length:
        raise ValueError("there are no rankings.")
    return labels, np.array(sizes), np.array(length)


def _rank_table(ranks: MatrixLike) -> Array:
    """Return ranks as numbers (n, items), 0 for missing ones."""
    if hasattr(ranks, "columns"):
        table = np.column_stack([numbers_of(ranks[name], name) for name in ranks.columns])
    else:
        table = np.array(ranks, dtype=np.float64)
    if table.ndim != 2 or not table.size:
        raise ValueError(f"ranks must be a table of rankings and items, got shape {table.shape} instead.")
    wrong = (table < 0) | np.isinf(table)
    if wrong.any():
        t, k = np.argwhere(wrong)[0]
        raise ValueError(f"a rank must be positive and finite, or 0 or NaN for none, got {table[t, k]:g} in row {t}.")
    return np.where(np.isnan(table), 0.0, table)


def _ranked(
    items: Labels,
    code: Codes,
    sizes: Codes,
    length: Codes,
    counts: npt.ArrayLike | None,
    unranked: str | None,
    where: Callable[[int], str] = "row {}".format,
) -> Rankings:
    """Build rankings from consecutive buckets: codes of entries, sizes of buckets, and bucket numbers of rows."""
    if unranked is not None and unranked not in UNRANKED:
        raise ValueError(f"unranked must be one of {list(UNRANKED)}, got {plain(unranked)} instead.")
    _check_items(items)
    n, K = len(length), len(items)
    bucket = np.repeat(np.arange(len(sizes)), sizes)
    row = np.repeat(np.arange(n), length)[bucket]
    code = code[np.lexsort((code, bucket))]
    entry = np.sort(row * K + code)
    twice = entry[1:][np.diff(entry) == 0]
    if len(twice):
        raise ValueError(_names_twice(twice[0] // K, items[twice[0] % K]))
    placed = np.bincount(row, minlength=n)
    if unranked is None and (placed < K).any():
        t = int(np.argmax(placed < K))
        raise ValueError(
            f"{where(t)} ranks {placed[t]} of {K} items: say unranked='absent' if the others were not there, or "
            "unranked='last' if they came behind those that are ranked."
        )
    entries = placed
    if unranked == "last":
        present = np.zeros((n, K), dtype=bool)
        present[row, code] = True
        other_row, other = np.nonzero(~present)
        code = np.append(code, other)[np.argsort(np.append(row, other_row), kind="stable")]
        entries = np.full(n, K)
    last = np.cumsum(length) - 1
    known = (entries == placed) & (sizes[last] == 1)  # the last place is implied by the others
    outcomes = Outcomes(
        np.append(0, np.cumsum(entries)),
        np.append(0, np.cumsum(length - known)),
        np.delete(sizes, last[known]),
        counted(counts, n),
    )
    return Rankings(items, code, outcomes, unranked or "absent")
