"""Files of rankings: PrefLib's kinds, known by their names, and tables of ranks or of orders."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from plackett.data.columns import check_column
from plackett.data.preflib import KINDS
from plackett.data.rankings import Rankings
from plackett.data.tablefile import read_table

if TYPE_CHECKING:
    import pandas as pd


TABLES = ("ranks", "orders")


@dataclass(frozen=True)
class Ballots:
    """What a model of rankings must know of the file it was fitted to.

    Attributes
    ----------
    table : {"ranks", "orders"} or None
        Of a table, whether it has a column an item, with its rank; or a column a place, with the item there. None: a
        file of PrefLib.
    unranked : {"absent", "last"} or None
        What an item is that a row does not rank.
    counts : str or None
        Of a table, the column that tells how often a row was seen.
    drop : tuple of str
        Of a table, columns that are not read.
    rankings : float
        How many rankings there were in the fit.
    """

    table: str | None = None
    unranked: str | None = None
    counts: str | None = None
    drop: tuple[str, ...] = field(default=())
    rankings: float = 0.0

    def read(self, path: str, sep: str | None = None, decimal: str | None = None) -> Rankings:
        """The rankings of a file."""
        preflib = Path(path).suffix.removeprefix(".").lower() in KINDS
        if self.table is None:
            if not preflib:
                kinds = ", ".join(KINDS)
                raise ValueError(
                    f"{path} is no file of PrefLib ({kinds}) by its name: say table='ranks' for a table with a column "
                    "an item, or table='orders' for one with a column a place, the best first."
                )
            return Rankings.read_preflib(path, unranked=self.unranked)
        if preflib:
            raise ValueError(f"{path} is a file of PrefLib by its name; leave out table={self.table!r}.")
        return self.of(read_table(path, sep, decimal))

    def of(self, frame: pd.DataFrame) -> Rankings:
        """The rankings of a table.

        Examples
        --------
        >>> import pandas as pd
        >>> from plackett.data.ballots import Ballots
        >>> frame = pd.DataFrame({"a": [1, 2], "b": [2, 1], "n": [5, 3]})
        >>> Ballots("ranks", counts="n").of(frame)
        Rankings(2 rows, 8 rankings, 2 items, unranked='absent')
        """
        for name in (*self.drop, *(() if self.counts is None else (self.counts,))):
            check_column(frame, name)
        counts = None if self.counts is None else frame[self.counts].to_numpy(dtype=np.float64, na_value=np.nan)
        frame = frame.drop(columns=[*self.drop, *(() if self.counts is None else (self.counts,))])
        make = Rankings.from_ranks if self.table == "ranks" else Rankings.from_orders
        return make(frame, unranked=self.unranked, counts=counts)
