"""The rows as JSON, and as Markdown for the page of each program."""

import json
import platform
import re
from importlib.metadata import version
from pathlib import Path

from plackett.output.files import write_whole

HEADS = ("quantity", "theirs", "here", "difference")


def signed(text):
    """A number with a minus sign instead of a hyphen, and a digit before the point."""
    return re.sub(r"^(−?)\.", r"\g<1>0.", text.replace("-", "−"))


def cells(row):
    """Theirs, ours with as many decimals, and the difference: 0 where only the digits that they left out differ."""
    decimals = len(row["theirs"].partition(".")[2])
    far = abs(row["difference"]) > 0.5001 * 10.0**-decimals
    ours = f"{row['ours'] + 0.0:.{decimals}f}"
    difference = f"{row['difference']:+.{decimals}f}" if far else "0"
    return signed(row["theirs"]), signed(ours if float(ours) else ours.lstrip("-")), signed(difference)


def by_study(rows):
    """Rows of the same study together, in their order."""
    found = {}
    for row in rows:
        found.setdefault((row["tool"], row["data"], row["model"], row["source"], row["kind"]), []).append(row)
    return found


def table_of(rows, name):
    """The studies of one program: source, and a table each."""
    parts = []
    for (tool, data, model, source, kind), some in by_study(rows).items():
        if tool == name:
            ours = "; ours are posterior means" if kind == "posterior mean" else ""
            lines = [f"**{data}**, {model} ({source}){ours}:", "", f"| {' | '.join(HEADS)} |", "|---|---:|---:|---:|"]
            parts.append("\n".join([*lines, *(f"| {' | '.join((row['quantity'], *cells(row)))} |" for row in some)]))
    return "\n\n".join(parts) + "\n"


def whole(rows, left_out):
    """All numbers in one table, and what was left out."""
    lines = ["| program | data | model | quantity | theirs | here | difference |", "|---|---|---|---|---:|---:|---:|"]
    lines += [
        f"| {' | '.join((row['tool'], row['data'], row['model'], row['quantity'], *cells(row)))} |" for row in rows
    ]
    if left_out:
        lines += ["", f"Left out, for want of their data: {'; '.join(left_out)}."]
    return "\n".join(lines) + "\n"


def write_pages(rows, left_out, folder: Path):
    """Write ``table.json``, ``numbers/all.md`` and ``numbers/<program>.md``."""
    packages = ("plackett", "numpy", "scipy", "numba", "scikit-learn")
    made = {package: version(package) for package in packages} | {"Python": platform.python_version()}
    content = {"made with": made, "left out": left_out, "rows": rows}
    write_whole(folder / "table.json", json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    write_whole(folder / "numbers" / "all.md", whole(rows, left_out))
    for name in dict.fromkeys(row["tool"] for row in rows):
        write_whole(folder / "numbers" / f"{name}.md", table_of(rows, name))
