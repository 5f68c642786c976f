"""Files of rankings: PrefLib's formats, recognised by file name, and tables of ranks, orders or pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from plackett.data.columns import check_column, listed
from plackett.data.labels import Labels, label_array
from plackett.data.preflib import KINDS
from plackett.data.rankings import Rankings
from plackett.data.tablefile import read_table
from plackett.data.validation import plain
from plackett.model.race import Array

if TYPE_CHECKING:
    import pandas as pd


TABLES = ("ranks", "orders", "pairs")
WINNER, LOSER, TIE, FIRST, COUNT = "winner", "loser", "tie", "first", "count"  # columns of a table of pairs
TRUE, FALSE = ("1", "1.0", "true", "yes"), ("0", "0.0", "false", "no", "")  # of ties, in any letter case


@dataclass(frozen=True)
class Ballots:
    """What a model of rankings stores about its training file.

    Attributes
    ----------
    table : {"ranks", "orders", "pairs"} or None
        Layout of a table: a column per item with its rank; a column per place with its item; or the columns ``winner``
        and ``loser``, and perhaps ``tie``, ``first`` and ``count``. None: a file of PrefLib.
    unranked : {"absent", "last"} or None
        Status of items that a row does not rank.
    counts : str or None
        Column of a table that counts each row.
    drop : tuple of str
        Columns of a table to ignore.
    rankings : float
        Number of rankings in the fit.
    attributes : tuple of str
        Columns of a table of pairs with attributes of the comparison: the winner's minus the loser's.
    """

    table: str | None = None
    unranked: str | None = None
    counts: str | None = None
    drop: tuple[str, ...] = field(default=())
    rankings: float = 0.0
    attributes: tuple[str, ...] = field(default=())

    def _check_name(self, path: str) -> None:
        """Raise where the name of a file is not that of its layout."""
        preflib = _is_preflib(path)
        if self.table is None and not preflib:
            kinds = ", ".join(KINDS)
            raise ValueError(
                f"the name of {path} does not end as those of PrefLib files do ({kinds}). If it is a table, give "
                "table='ranks' (one column per item), table='orders' (one column per place, the best first) or "
                "table='pairs' (columns winner and loser)."
            )
        if self.table is not None and preflib:
            raise ValueError(f"{path} has the name of a PrefLib file; omit table={self.table!r}.")

    def read(self, path: str, sep: str | None = None, decimal: str | None = None) -> Rankings:
        """Read the rankings of a file."""
        if self.table is None:
            self._check_name(path)
            return Rankings.read_preflib(path, unranked=self.unranked)
        return self.of(self.frame(path, sep, decimal))

    def frame(self, path: str, sep: str | None = None, decimal: str | None = None) -> pd.DataFrame:
        """Read the table of a file."""
        self._check_name(path)
        return read_table(path, sep, decimal)

    def with_persons(self, frame: pd.DataFrame, persons: str) -> tuple[Rankings, Labels]:
        """Return the rankings of a table, and the label of the person of each, from a column that is dropped."""
        check_column(frame, persons)
        if frame[persons].isna().any():
            row = int(frame[persons].isna().to_numpy().argmax())
            raise ValueError(f"column {persons!r} has no person in row {row}, counted from 0.")
        return self.of(frame), label_array(frame[persons].tolist())

    def of(self, frame: pd.DataFrame) -> Rankings:
        """Convert a table to rankings.

        Examples
        --------
        >>> import pandas as pd
        >>> from plackett.data.ballots import Ballots
        >>> frame = pd.DataFrame({"a": [1, 2], "b": [2, 1], "n": [5, 3]})
        >>> Ballots("ranks", counts="n").of(frame)
        Rankings(2 rows, 8 rankings, 2 items, unranked='absent')
        """
        named = COUNT if self.counts is None and self.table == "pairs" and COUNT in frame else self.counts
        for name in (*self.drop, *(() if named is None else (named,))):
            check_column(frame, name)
        counts = None if named is None else frame[named].to_numpy(dtype=np.float64, na_value=np.nan)
        frame = frame.drop(columns=[*self.drop, *(() if named is None else (named,))])
        if self.table == "pairs":
            return pairs_of(frame, counts, self.unranked, self.attributes)
        make = Rankings.from_ranks if self.table == "ranks" else Rankings.from_orders
        return make(frame, unranked=self.unranked, counts=counts)


def ballots_of(
    path: str, sep: str | None = None, decimal: str | None = None, attributes: Sequence[str] = ()
) -> Ballots:
    """Infer the layout of a file of rankings: PrefLib's formats by name, tables of pairs by their columns."""
    if _is_preflib(path):
        return Ballots()
    if {WINNER, LOSER} <= set(read_table(path, sep, decimal).columns):
        return Ballots("pairs", attributes=tuple(attributes))
    raise ValueError(
        f"{path} is neither a file of PrefLib nor a table of pairs with the columns {WINNER!r} and {LOSER!r}, and the "
        "model was saved in Python, so that it does not know the table it was fitted to. Use "
        "plackett.report.write_report."
    )


def _is_preflib(path: str) -> bool:
    return Path(path).suffix.removeprefix(".").lower() in KINDS


def pairs_of(
    frame: pd.DataFrame, counts: Array | None, unranked: str | None, attributes: Sequence[str] = ()
) -> Rankings:
    """Convert a table of pairs, some of whose columns may be attributes of the comparison, to rankings.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"winner": ["a", "b"], "loser": ["b", "c"], "tie": [0, 1]})
    >>> pairs_of(frame, None, None).to_orders() == [["a", "b"], [{"b", "c"}]]
    True
    """
    if unranked is not None:
        raise ValueError(f"unranked={unranked!r} is for rankings of several items; of pairs all others are absent.")
    for name in (WINNER, LOSER):
        if name not in frame:
            raise ValueError(
                f"a table of pairs has the columns {WINNER!r} and {LOSER!r}, and may have {TIE!r}, {FIRST!r} and "
                f"{COUNT!r}; there is no {name!r} among {listed(frame.columns)}."
            )
    for name in attributes:
        if name in (WINNER, LOSER, TIE, FIRST):
            raise ValueError(f"column {name!r} of a table of pairs has a meaning of its own and is no attribute.")
        check_column(frame, name, "attribute")
    others = [name for name in frame if name not in (WINNER, LOSER, TIE, FIRST, *attributes)]
    if others:
        raise ValueError(
            f"column {plain(others[0])} of a table of pairs is not read: drop it, or name it as counts or attribute."
        )
    for name in (WINNER, LOSER):
        if frame[name].isna().any():
            row = int(frame[name].isna().to_numpy().argmax())
            raise ValueError(f"column {name!r} has no item in row {row}, counted from 0.")
    tied = _truths(frame[TIE]) if TIE in frame else None
    first = frame.get(FIRST)
    differences = frame[list(attributes)] if attributes else None
    return Rankings.from_pairs(frame[WINNER], frame[LOSER], tied, counts, first=first, attributes=differences)


def _truths(column: pd.Series[Any]) -> npt.NDArray[np.bool_]:
    """Return booleans from 0 and 1, true and false or yes and no, in any letter case; empty is false."""
    code, distinct = column.factorize(use_na_sentinel=False)
    words = distinct.astype("string").str.strip().str.lower().fillna("0")
    wrong = ~words.isin([*TRUE, *FALSE])
    if wrong.any():
        row = int(wrong[code].argmax())
        raise ValueError(f"column {TIE!r} must be true or false, got {plain(column.iloc[row])} in row {row}.")
    found: npt.NDArray[np.bool_] = words.isin(TRUE)[code]
    return found
