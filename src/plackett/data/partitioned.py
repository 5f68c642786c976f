"""Rankings and choice situations in a Dask collection: the table and its layout, without any rows.

`plackett.cluster` reads the partitions where they are stored. Dask itself is imported only when a collection is
derived.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from plackett.data.choice_tables import Spec, long_choices, names_of
from plackett.data.labels import Labels, given
from plackett.data.types import Label

if TYPE_CHECKING:
    import pandas as pd


def is_dask(X: object) -> bool:
    """True if X is a Dask collection; does not import Dask."""
    return hasattr(X, "__dask_graph__") and hasattr(X, "to_delayed")


@dataclass(frozen=True, eq=False, repr=False)
class PartitionedRankings:
    """Rankings in partitions, made by `Rankings.from_ranks` and `Rankings.from_orders`.

    Attributes
    ----------
    table : Dask array or data frame
        Ranks or orders, one row per ranking.
    kind : {"ranks", "orders"}
        Content of the table.
    unranked, items, counts
        As in `Rankings.from_ranks`; counts may be a Dask array or series with the partitions of the table.
    """

    table: Any
    kind: str
    unranked: str | None
    items: Labels | None
    counts: Any

    @classmethod
    def of(
        cls, table: Any, kind: str, unranked: str | None, items: Iterable[Label] | None, counts: Any
    ) -> PartitionedRankings:
        """Build from a Dask collection; the columns of ranks are the items."""
        if kind == "ranks" and items is None:
            columns = table.columns if hasattr(table, "columns") else range(table.shape[1])
            return cls(table, kind, unranked, given(columns, "the table", "an item"), counts)
        return cls(table, kind, unranked, None if items is None else given(items, "items", "an item"), counts)

    def __repr__(self) -> str:
        return f"Rankings({self.table.npartitions} partitions of {self.kind}, unranked={self.unranked!r})"


@dataclass(frozen=True, eq=False, repr=False)
class PartitionedChoices:
    """Choice situations in partitions, made by `ChoiceSets.from_long` and `ChoiceSets.read_choices`.

    Attributes
    ----------
    table : Dask data frame
        One row for each alternative of each situation.
    spec : Spec
        Names of the columns by role.
    """

    table: Any
    spec: Spec

    @classmethod
    def of(cls, table: Any, spec: Spec) -> PartitionedChoices:
        """Build from a Dask data frame; iterables of column names are stored as tuples."""
        named = None if spec.attributes is None else tuple(names_of(spec.attributes, "attributes"))
        return cls(table, spec._replace(attributes=named, person=tuple(names_of(spec.person))))

    def labels(self) -> Any:
        """Return the chosen alternative of each situation: a Dask array with the partitions of the table."""
        import dask
        import dask.array as da

        ask = dask.delayed(chosen_labels, pure=False)
        parts = [ask(part, self.spec) for part in self.table.to_delayed()]
        return da.concatenate([da.from_delayed(part, shape=(np.nan,), dtype=object) for part in parts])

    def __repr__(self) -> str:
        return f"ChoiceSets({self.table.npartitions} partitions, situations: {self.spec.situation})"


def chosen_labels(part: pd.DataFrame, spec: Spec) -> Labels:
    """Return the chosen alternative of each situation of one partition."""
    if not len(part):
        return np.empty(0, dtype=object)
    assert spec.choice is not None
    return long_choices(part, spec.situation, spec.alternative, spec.choice).astype(object)
