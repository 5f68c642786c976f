"""Output of sections: index.html (self-contained), index.md, tables/*.json, figures/*.svg and *.png."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from plackett.output.files import write_whole
from plackett.output.html import text
from plackett.paper.document import Figure, PaperSection, PaperTable, plain
from plackett.paper.verdicts import BETTER, WORSE

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawn


STYLE = """
:root { --ink: #1b1f24; --quiet: #57606a; --line: #d0d7de; --band: #f6f8fa; --link: #0b5394; }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem; max-width: 75rem; color: var(--ink); background: #fff;
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.2; } h2 { font-size: 1.25rem; margin-top: 2.5rem; }
p, li, dd { max-width: 48rem; overflow-wrap: anywhere; } a { color: var(--link); }
.outcome { border-left: .3rem solid #0072b2; padding-left: .8rem; font-weight: 600; }
.scroll { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--quiet); padding: .3rem 0; }
th, td { padding: .3rem .6rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
td { white-space: nowrap; } td.long { white-space: normal; min-width: 12rem; }
thead th { border-bottom: 2px solid var(--ink); vertical-align: bottom; }
tbody tr:nth-child(even) { background: var(--band); } .n { text-align: right; }
.better { color: #005a46; font-weight: 600; } .worse { color: #9c3300; font-weight: 600; }
figure { margin: 1.5rem 0; } figure img { max-width: 100%; height: auto; }
figcaption { color: var(--quiet); font-size: .875rem; max-width: 48rem; }
dt { font-weight: 600; } footer { margin-top: 3rem; border-top: 1px solid var(--line); font-size: .875rem; }
@media screen and (max-width: 40rem) { body { padding: .75rem; } figure img { max-width: none; width: 44rem; }
  th, td { padding: .25rem .4rem; } table { font-size: .8rem; } }
@media print { @page { margin: 1.5cm; } body { max-width: none; font-size: 9pt; padding: 0; }
  h2 { break-after: avoid; } table, figure { break-inside: avoid; } .scroll { overflow: visible; }
  table { font-size: 6.5pt; } td.long { min-width: 0; } th, td { padding: .15rem .3rem; }
  a { color: inherit; text-decoration: none; } }
"""


def write(
    out: Path, title: str, intro: Sequence[str], sections: Sequence[PaperSection], facts: Mapping[str, str]
) -> Path:
    """Write all files below a folder; return the path of the page."""
    pictures: dict[str, bytes] = {}
    for section in sections:
        for block in section.blocks:
            match block:
                case PaperTable():
                    content = {"caption": block.caption, "columns": {c.key: c.heading for c in block.columns}}
                    content["rows"] = [plain(row) for row in block.rows]
                    write_whole(
                        out / "tables" / f"{block.name}.json", json.dumps(content, indent=1, ensure_ascii=False)
                    )
                case Figure():
                    for kind, picture in drawn(block.drawn).items():
                        write_whole(out / "figures" / f"{block.name}.{kind}", picture)
                        if kind == "svg":
                            pictures[block.name] = picture
    write_whole(out / "index.md", markdown(title, intro, sections, facts))
    write_whole(out / "index.html", html(title, intro, sections, facts, pictures))
    return out / "index.html"


def drawn(figure: Drawn) -> dict[str, bytes]:
    """Render a matplotlib figure as SVG and PNG."""
    from matplotlib import rc_context

    found = {}
    with rc_context({"svg.hashsalt": "plackett"}):
        for kind, metadata in (("svg", {"Date": None}), ("png", None)):
            buffer = io.BytesIO()
            figure.savefig(buffer, format=kind, dpi=160, metadata=metadata)
            found[kind] = buffer.getvalue()
    return found


def html(
    title: str,
    intro: Sequence[str],
    sections: Sequence[PaperSection],
    facts: Mapping[str, str],
    pictures: Mapping[str, bytes],
) -> str:
    """Return the page, which loads nothing from other files or hosts."""

    def block_html(block: str | PaperTable | Figure) -> str:
        match block:
            case PaperTable():
                return table_html(block)
            case Figure():
                data = base64.b64encode(pictures[block.name]).decode("ascii")
                return (
                    f'<figure><div class="scroll" tabindex="0"><img src="data:image/svg+xml;base64,{data}" '
                    f'alt="{text(block.alt)}"></div><figcaption>{text(block.caption)}</figcaption></figure>'
                )
            case _:
                return f"<p>{text(block)}</p>"

    contents = "".join(f'<li><a href="#{text(s.name)}">{text(s.title)}</a>: {text(s.outcome)}</li>' for s in sections)
    body = "".join(
        f'<section id="{text(s.name)}"><h2>{text(s.title)}</h2><p class="outcome">{text(s.outcome)}</p>'
        + "".join(block_html(block) for block in s.blocks)
        + "</section>"
        for s in sections
    )
    made = "".join(f"<dt>{text(name)}</dt><dd>{text(value)}</dd>" for name, value in facts.items())
    return (
        f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{text(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style></head><body><header><h1>{text(title)}</h1>"
        + "".join(f"<p>{text(words)}</p>" for words in intro)
        + f"</header><main><h2>What came out</h2><ul>{contents}</ul>{body}</main>"
        f"<footer><h2>How this was made</h2><dl>{made}</dl></footer></body></html>\n"
    )


def table_html(table: PaperTable) -> str:
    """Return one table, in a box that scrolls on a narrow screen."""
    right = [table.numeric(column) for column in table.columns]
    head = "".join(
        cell("th", column.heading, "n" if numeric else "") for column, numeric in zip(table.columns, right, strict=True)
    )
    lines = [
        "".join(cell("td", words, kind(words, numeric)) for words, numeric in zip(texts, right, strict=True))
        for texts in table.texts()
    ]
    rows = "".join(f"<tr>{line}</tr>" for line in lines)
    return (
        f'<div class="scroll" tabindex="0"><table><caption>{text(table.caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def cell(tag: str, words: str, kind: str) -> str:
    """Return one cell."""
    return f'<{tag} class="{kind}">{text(words)}</{tag}>' if kind else f"<{tag}>{text(words)}</{tag}>"


def kind(words: str, numeric: bool) -> str:
    """Return the style of a cell: numbers right-aligned, some verdicts in colour as well, long texts broken."""
    return "n" if numeric else words if words in (BETTER, WORSE) else "long" if len(words) > 30 else ""


def markdown(title: str, intro: Sequence[str], sections: Sequence[PaperSection], facts: Mapping[str, str]) -> str:
    """Return the page in Markdown, with figures linked as PNG."""
    parts = [f"# {_safe(title)}", *map(_safe, intro)]
    for section in sections:
        parts += [f"## {_safe(section.title)}", f"**{_safe(section.outcome)}**"]
        for block in section.blocks:
            match block:
                case PaperTable():
                    parts.append(table_markdown(block))
                case Figure():
                    parts.append(f"![{_safe(block.alt)}](figures/{block.name}.png)\n\n*{_safe(block.caption)}*")
                case _:
                    parts.append(_safe(block))
    parts += ["## How this was made", *(f"- **{_safe(name)}**: {_safe(value)}" for name, value in facts.items())]
    return "\n\n".join(parts) + "\n"


def table_markdown(table: PaperTable) -> str:
    """Return one table in Markdown."""
    head = [_safe(column.heading) for column in table.columns]
    rule = ["---:" if table.numeric(column) else "---" for column in table.columns]
    lines = [head, rule, *([_safe(words) for words in texts] for texts in table.texts())]
    return f"{_safe(table.caption)}\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _safe(words: str) -> str:
    for sign in "\\|*_<>`[]":
        words = words.replace(sign, f"\\{sign}")
    return words
