"""Content of the reproduction: tables, figures and paragraphs, before they become HTML, Markdown and JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from plackett.paper.values import Spread

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawn

MISSING = "–"
Row = dict[str, Any]  # values of a table's row by key: numbers, texts, spreads or None
Value = str | int | float | Spread | None


@dataclass(frozen=True)
class PaperColumn:
    """Key of a value in each row, its heading, and its number format."""

    key: str
    heading: str
    spec: str = ".3f"


@dataclass(frozen=True)
class PaperTable:
    """Rows of raw values; `name` is the name of its JSON file."""

    name: str
    caption: str
    columns: Sequence[PaperColumn]
    rows: Sequence[Row]

    def texts(self) -> list[list[str]]:
        """Format the rows for readers."""
        return [[written(row.get(column.key), column.spec) for column in self.columns] for row in self.rows]

    def numeric(self, column: PaperColumn) -> bool:
        """True if a column holds numbers (or nothing)."""
        return not any(isinstance(row.get(column.key), str) for row in self.rows)


@dataclass(frozen=True)
class Figure:
    """A matplotlib figure; `name` is the name of its files, `alt` describes it in words."""

    name: str
    caption: str
    alt: str
    drawn: Drawn


@dataclass(frozen=True)
class PaperSection:
    """One part: name, title, outcome in a sentence or two, and paragraphs, tables and figures in order."""

    name: str
    title: str
    outcome: str
    blocks: Sequence[str | PaperTable | Figure] = field(default_factory=tuple)


def written(value: Value, spec: str = ".3f") -> str:
    """Format a value for readers; a Spread as mean (deviation).

    Examples
    --------
    >>> from plackett.paper.document import written
    >>> written(None), written(0.1234), written(-0.04, "+.1f"), written(1000)
    ('–', '0.123', '0.0', '1,000')
    """
    match value:
        case Spread(mean=mean, sd=sd):
            return f"{written(mean, spec)} ({written(sd, spec)})"
        case str():
            return value
        case None | bool():
            return MISSING
        case int():
            text = f"{value:,}"
        case _ if math.isfinite(value):
            text = format(value, spec)
        case _:
            return MISSING
    negative = text.startswith("-") and text.strip("-0.,") != ""
    return f"−{text[1:]}" if negative else text.removeprefix("-")


def plain(value: Any) -> Any:
    """Convert a value for JSON: a Spread to an object, an infinite number to null."""
    match value:
        case Spread(mean=mean, sd=sd):
            return {"mean": plain(mean), "sd": plain(sd)}
        case dict():
            return {key: plain(entry) for key, entry in value.items()}
        case list() | tuple():
            return [plain(entry) for entry in value]
        case float() if not math.isfinite(value):
            return None
        case _:
            return value


def listed(words: Sequence[str]) -> str:
    """Join words, with "and" before the last."""
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)
