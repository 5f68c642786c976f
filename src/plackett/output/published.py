"""Tables for publication: data frames with LaTeX output, escaped names and aligned numbers."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from plackett.optional import optional
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


def latex_of(columns: Table) -> str:
    """Return the columns of a table of coefficients as LaTeX."""
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    heads = [HEADS.get(name, name) for name in columns]
    return latex(heads, [[written(*cell) for cell in zip(columns, row, strict=True)] for row in rows])


@cache
def _frame_class() -> Any:
    pandas = optional("pandas", "coefficients")

    class Coefficients(pandas.DataFrame):  # type: ignore[name-defined]
        """A data frame whose `to_latex` needs no other package."""

        @property
        def _constructor(self) -> Any:
            return pandas.DataFrame

        def to_latex(self, *args: Any, **kwargs: Any) -> str:
            """Return a tabular with rules as in booktabs; with arguments, the result of pandas."""
            if args or kwargs:
                return str(super().to_latex(*args, **kwargs))
            return latex_of({name: self[name].to_numpy() for name in self.columns})

        def __reduce__(self) -> Any:
            return pandas.DataFrame, ({name: self[name].to_numpy() for name in self.columns},)

    return Coefficients


def coefficients_frame(columns: Table) -> Any:
    """Return a data frame of coefficients."""
    return _frame_class()(columns)
