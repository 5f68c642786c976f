"""Data frames that print for readers: with a heading, in units, without empty parts, and with a total."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from plackett.optional import optional
from plackett.output.html import text
from plackett.posterior.base import Table

if TYPE_CHECKING:
    import pandas as pd

LONG = 1e9  # numbers below it have no exponent
LINES = 60  # lines of a printed table; the rest are counted below


class Sheet(NamedTuple):
    """Printed form of a table: lines above, cells as texts by heading, and lines below; names stand on the left."""

    head: list[str]
    cells: dict[str, list[str]]
    foot: list[str]
    left: tuple[str, ...] = ()


Layout = Callable[[Any], Sheet]


def printed(columns: Table, layout: Layout, what: str) -> pd.DataFrame:
    """Return a data frame of these columns that prints as `layout` lays it out; what is derived from it is plain.

    Examples
    --------
    >>> import numpy as np
    >>> from plackett.output.printed import Sheet, printed
    >>> layout = lambda table: Sheet(["Numbers"], {"x": [f"{value:g}" for value in table["x"]]}, ["3 in all"])
    >>> printed({"x": np.array([1.0, 2.0])}, layout, "a table")
    Numbers
    x
    1
    2
    3 in all
    """
    optional("pandas", what)
    return _kind()(columns, layout)


@cache
def _kind() -> Any:
    """Return the class, which is made when pandas is first needed."""
    import pandas as pd

    class Printed(pd.DataFrame):
        """Data frame with a layout; copies, parts and pickles of it are plain data frames."""

        _metadata = ["_layout", "_shape"]  # noqa: RUF012

        def __init__(self, columns: Table, layout: Layout) -> None:
            super().__init__(columns)
            self._layout, self._shape = layout, (list(self.columns), len(self))

        @property
        def _constructor(self) -> Any:
            return pd.DataFrame

        def __reduce__(self) -> Any:
            return pd.DataFrame(self).__reduce__()

        def _sheet(self) -> Sheet | None:
            """Return the printed form, or None if columns or rows were changed in place."""
            return self._layout(self) if (list(self.columns), len(self)) == self._shape else None

        def __repr__(self) -> str:
            sheet = self._sheet()
            return super().__repr__() if sheet is None else as_text(sheet)

        def _repr_html_(self) -> Any:
            sheet = self._sheet()
            return super()._repr_html_() if sheet is None else as_html(sheet)

    return Printed


def as_text(sheet: Sheet) -> str:
    """Return lines for a terminal: names on the left, numbers on the right."""
    columns = []
    for name, cells in sheet.cells.items():
        size = max(map(len, (name, *cells)), default=0)
        columns.append([f"{cell:{'<' if name in sheet.left else '>'}{size}}" for cell in (name, *cells)])
    lines = ["  ".join(line).rstrip() for line in zip(*columns, strict=True)]
    return "\n".join([*sheet.head, *lines, *sheet.foot])


def as_html(sheet: Sheet) -> str:
    """Return a table for notebooks; names and labels are escaped."""
    head = "".join(f'<th scope="col">{text(name)}</th>' for name in sheet.cells)
    rows = "".join(
        f"<tr>{''.join(f'<td>{text(cell)}</td>' for cell in row)}</tr>"
        for row in zip(*sheet.cells.values(), strict=True)
    )
    above, below = ("".join(f"<p>{text(line)}</p>" for line in lines) for lines in (sheet.head, sheet.foot))
    return f"<div>{above}<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{below}</div>"


def cells(table: Any, digits: int = 3) -> dict[str, list[str]]:
    """Return the columns of a data frame as texts, without columns that are empty.

    Texts are given as they are, whole numbers without decimals, and others with so many significant digits.
    """
    found = {}
    for name in table.columns:
        values = table[name].tolist()
        if len(values) and all(isinstance(value, float) and np.isnan(value) for value in values):
            continue
        found[str(name)] = [cell(value, digits) for value in values]
    return found


def cell(value: object, digits: int = 3) -> str:
    """Return one value as a text: numbers with so many significant digits, empty where there is none."""
    if isinstance(value, float):
        whole = 10**digits <= abs(value) < LONG
        return "" if np.isnan(value) else f"{value:.0f}" if whole else f"{value:.{digits}g}"
    return str(value)


def signed(values: Any, decimals: int = 2) -> list[str]:
    """Return numbers with their sign and the same number of decimals, empty where there is none."""
    return ["" if np.isnan(value) else f"{value:+.{decimals}f}" for value in np.asarray(values).tolist()]


def percents(prob: float) -> tuple[str, str]:
    """Return headings of the bounds of an equal-tailed interval, such as 5% and 95%."""
    tail = 50 * (1 - prob)
    return f"{tail:.3g}%", f"{100 - tail:.3g}%"
