"""Tables for publication: data frames with LaTeX output, escaped names and aligned numbers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from plackett.data.base_levels import base_levels_in_words
from plackett.optional import optional
from plackett.output.html import text
from plackett.posterior.base import Table

SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    **{sign: f"\\{sign}" for sign in "&%$#_{}"},
}
DIGITS = {"p": 3, "z": 2, "positive": 3, "ess": 0, "rhat": 3}  # number of decimals; four for others
HEADS = {"std_error": "std. error", "rhat": "R-hat", "ess": "ESS", "positive": "Pr(> 0)"}


def escaped(text: object) -> str:
    r"""Escape a text for LaTeX.

    Examples
    --------
    >>> print(escaped("cost_car & 5 %"))
    cost\_car \& 5 \%
    """
    return "".join(SPECIAL.get(sign, sign) for sign in str(text))


def latex(heads: list[str], rows: list[list[str]], n_texts: int = 1) -> str:
    r"""Return a tabular of formatted cells with rules as in booktabs; the first columns are texts.

    Examples
    --------
    >>> print(latex(["a", "b"], [["x_1", "2"]]))
    \begin{tabular}{lr}
    \toprule
    a & b \\
    \midrule
    x\_1 & 2 \\
    \bottomrule
    \end{tabular}
    """
    columns = "l" * n_texts + "r" * (len(heads) - n_texts)
    lines = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", _line(heads), r"\midrule"]
    return "\n".join([*lines, *map(_line, rows), r"\bottomrule", r"\end{tabular}"])


def _line(cells: list[str]) -> str:
    return " & ".join(map(escaped, cells)) + r" \\"


def written(name: str, value: Any) -> str:
    """Format a number with the decimals of its column; empty for missing ones."""
    if isinstance(value, str) or not isinstance(value, (float, np.floating)):
        return str(value)
    return "" if np.isnan(value) else f"{value:.{DIGITS.get(name, 4)}f}"


def latex_of(columns: Table, note: str = "") -> str:
    """Return the columns of a table of coefficients as LaTeX, with a note in its last line."""
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    heads = [HEADS.get(name, name) for name in columns]
    found = latex(heads, [[written(*cell) for cell in zip(columns, row, strict=True)] for row in rows])
    if not note:
        return found
    line = rf"\multicolumn{{{len(heads)}}}{{l}}{{{escaped(note)}}} \\"
    return found.replace(r"\bottomrule", rf"\midrule{chr(10)}{line}{chr(10)}\bottomrule")


@cache
def _frame_class() -> Any:
    pandas = optional("pandas", "coefficients")

    class Coefficients(pandas.DataFrame):  # type: ignore[name-defined]
        """A data frame that prints its base levels above, and whose `to_latex` needs no other package."""

        def note(self) -> str:
            """Return the base levels in words."""
            levels = self.attrs.get("base_levels")
            return note_of(levels) if levels else ""

        def __repr__(self) -> str:
            return "\n".join(line for line in (self.note(), super().__repr__()) if line)

        def _repr_html_(self) -> Any:
            head = f"<p>{text(self.note())}</p>" if self.note() else ""
            return head + str(super()._repr_html_())

        @property
        def _constructor(self) -> Any:
            return pandas.DataFrame

        def to_latex(self, *args: Any, **kwargs: Any) -> str:
            """Return a tabular with rules as in booktabs; with arguments, the result of pandas."""
            if args or kwargs:
                return str(super().to_latex(*args, **kwargs))
            index = {} if self.index.name is None else {self.index.name: self.index.to_numpy()}
            return latex_of(index | {name: self[name].to_numpy() for name in self.columns}, self.note())

        def __reduce__(self) -> Any:
            return pandas.DataFrame, ({name: self[name].to_numpy() for name in self.columns}, self.index)

    return Coefficients


def coefficients_frame(columns: Table, base_levels: Mapping[str, str], index: str | None = None) -> Any:
    """Return a data frame of coefficients with the base levels in its `attrs`; one column may be the index."""
    others = {name: column for name, column in columns.items() if name != index}
    pandas = optional("pandas", "coefficients")
    found = _frame_class()(others, None if index is None else pandas.Index(columns[index], name=index))
    found.attrs["base_levels"] = dict(base_levels)
    return found


def note_of(base_levels: Mapping[str, str]) -> str:
    """Return base levels as a sentence.

    Examples
    --------
    >>> note_of({"region": "east"})
    'Coefficients of texts are differences from the base level region: east'
    """
    return f"Coefficients of texts are differences from the {base_levels_in_words(base_levels)}"
