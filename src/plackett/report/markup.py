"""HTML elements of the report. Text from users is escaped by `text`; nothing here knows the model."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np

from plackett.output.html import text

Cell = Any  # cell of a table: a number in a column of numbers, otherwise any object with a text


@dataclass(frozen=True)
class Head:
    """Head of a column; numbers are aligned to the right and sorted by value."""

    title: str
    number: bool = False


@dataclass(frozen=True)
class Section:
    """A part of the report with its heading."""

    anchor: str
    heading: str
    body: str


def number(value: float) -> str:
    """Number with three significant digits and separated thousands; a dash if it is not finite."""
    if not np.isfinite(value):
        return "–"
    if abs(value) >= 1000 or float(value).is_integer():
        return f"{value:,.0f}"
    if abs(value) < 1e-6:
        return "≈ 0"
    return f"{value:.3g}" if abs(value) >= 1e-3 else f"{value:.1e}"


def paragraph(words: str, kind: str = "") -> str:
    """A paragraph of plain text."""
    return f'<p class="{kind}">{text(words)}</p>' if kind else f"<p>{text(words)}</p>"


def facts(pairs: Sequence[tuple[str, str]]) -> str:
    """Show a few numbers in large type, each with its name."""
    items = "".join(f"<div><dt>{text(name)}</dt><dd>{text(value)}</dd></div>" for name, value in pairs)
    return f'<dl class="facts">{items}</dl>'


def table(
    caption: str,
    columns: Sequence[Head],
    rows: Sequence[Sequence[Cell]],
    *,
    sortable: bool = False,
    sorted_by: int | None = None,
    marked: Sequence[tuple[int, int]] = (),
) -> str:
    """Return a table whose first column names the row; it scrolls if it is too wide or too long.

    In a sortable table every heading is a button; `sorted_by` is the column by which the rows are sorted in descending
    order.
    """
    heads = []
    for j, column in enumerate(columns):
        kind = ' class="number"' if column.number else ""
        title = text(column.title)
        if not sortable:
            heads.append(f'<th scope="col"{kind}>{title}</th>')
        else:
            order = "descending" if j == sorted_by else "none"
            heads.append(f'<th scope="col"{kind} aria-sort="{order}"><button type="button">{title}</button></th>')
    hits = set(marked)
    body = []
    for i, row in enumerate(rows):
        cells = []
        for j, (column, value) in enumerate(zip(columns, row, strict=True)):
            long = j == 0 and len(str(value)) > 14
            kinds = " ".join(["number"] * column.number + ["hit"] * ((i, j) in hits) + ["long"] * long)
            attributes = f' class="{kinds}"' if kinds else ""
            if column.number:
                attributes += f' data-value="{float(value)!r}"' if np.isfinite(value) else ' data-value="0"'
                value = number(value)
            cell = text(value)
            if j == 0:
                cells.append(f'<th scope="row" title="{cell}"{attributes}>{cell}</th>')
            else:
                cells.append(f"<td{attributes}>{cell}</td>")
        body.append(f"<tr>{''.join(cells)}</tr>")
    kind = ' class="sortable"' if sortable else ""
    return (
        f'<div class="scroll" role="region" aria-label="{text(caption)}" tabindex="0"><table{kind}>'
        f"<caption>{text(caption)}</caption><thead><tr>{''.join(heads)}</tr></thead>"
        f"<tbody>{''.join(body)}</tbody></table></div>"
    )


def page(title: str, lead: str, sections: Sequence[Section]) -> str:
    """Return the whole document, with style and script inside, and a policy that forbids other scripts and loading."""
    folder = files(__package__)
    script = folder.joinpath("sort.js").read_text(encoding="utf-8")
    return Template(folder.joinpath("page.html").read_text(encoding="utf-8")).substitute(
        title=text(title),
        lead=lead,
        style=folder.joinpath("style.css").read_text(encoding="utf-8"),
        script=script,
        digest=base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
        contents="\n".join(f'<li><a href="#{s.anchor}">{text(s.heading)}</a></li>' for s in sections),
        body="\n".join(
            f'<section aria-labelledby="{s.anchor}">\n<h2 id="{s.anchor}">{text(s.heading)}</h2>\n{s.body}\n</section>'
            for s in sections
        ),
    )
