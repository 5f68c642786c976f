"""PrefLib files with orders of alternatives: soc, soi, toc, toi. Errors name the line.

A file has a header, which names the alternatives, followed by one order per line with its count, where alternatives are
numbers and ties are in braces. The newer header consists of lines ``# NUMBER ALTERNATIVES: 3`` and ``# ALTERNATIVE NAME
1: a``, before orders ``7: 2,{1,3}``. The older one is the number of alternatives, a line ``1,a`` for each, and a line
with the numbers of voters, of all counts and of orders, before orders ``7,2,{1,3}``.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np

from plackett.data.labels import Codes, Labels, label_array
from plackett.model.race import Array

KINDS = {"soc": (True, True), "soi": (True, False), "toc": (False, True), "toi": (False, False)}  # strict, complete
PLACE = re.compile(r"\{([^{}]*)\}|([^,{}]+)")
ORDER = re.compile(r"(?:\{[^{}]*\}|[^,{}]+)(?:,(?:\{[^{}]*\}|[^,{}]+))*")


class Orders(NamedTuple):
    """Content of a file: the items, and buckets as arguments of `Rankings`."""

    items: Labels
    code: Codes
    sizes: Codes
    length: Codes
    counts: Array
    lines: Codes  # line of each order, from 1 on


class _Lines:
    """Lines of a file, whose numbers appear in errors."""

    def __init__(self, path: str | os.PathLike[str]):
        self.name = Path(path).name
        self.lines = Path(path).read_text(encoding="utf-8-sig").splitlines()

    def wrong(self, number: int | None, what: str) -> NoReturn:
        where = self.name if number is None else f"{self.name}, line {number + 1}"
        raise ValueError(f"{where}: {what}")

    def whole(self, number: int, text: str, what: str, least: int = 0) -> int:
        """Return a whole number that is at least `least`."""
        if not text.strip().isdecimal() or int(text) < least:
            self.wrong(number, f"{what} must be a whole number of {least} or more, got {text.strip()!r}.")
        return int(text)


class _Head(NamedTuple):
    kind: str
    names: list[str]
    first: int  # line of the first order
    between: str  # separator after the count of an order
    orders: int | None  # expected number of orders
    voters: int | None  # expected sum of counts


def read(path: str | os.PathLike[str]) -> Orders:
    """Read the orders of a file."""
    file = _Lines(path)
    suffix = Path(path).suffix.removeprefix(".").lower()
    if not any(line.strip() for line in file.lines):
        file.wrong(None, "the file is empty.")
    newer = file.lines[0].startswith("#")
    head = _newer_head(file, suffix) if newer else _older_head(file, suffix)
    if head.kind not in KINDS:
        file.wrong(None, f"orders are in files of the kinds {', '.join(KINDS)}, got {head.kind or 'none'!r}.")
    twice = [name for name in head.names if head.names.count(name) > 1]
    if twice:
        file.wrong(None, f"two alternatives are called {twice[0]!r}: rename one of them.")
    return _orders(file, head)


def _newer_head(file: _Lines, suffix: str) -> _Head:
    fields: dict[str, tuple[int, str]] = {}
    first = 0
    while first < len(file.lines) and (file.lines[first].startswith("#") or not file.lines[first].strip()):
        field, colon, value = file.lines[first].removeprefix("#").partition(":")
        if colon:
            fields[field.strip().upper()] = first, value.strip()
        first += 1
    if "NUMBER ALTERNATIVES" not in fields:
        file.wrong(None, "the head has no line '# NUMBER ALTERNATIVES: …'.")
    n = file.whole(*fields["NUMBER ALTERNATIVES"], "the number of alternatives", 1)
    named = [fields.get(f"ALTERNATIVE NAME {k + 1}") for k in range(n)]
    if None in named:
        file.wrong(None, f"the head has no line '# ALTERNATIVE NAME {named.index(None) + 1}: …', of {n} alternatives.")
    number, kind = fields.get("DATA TYPE", (0, suffix))
    orders, voters = (
        file.whole(*fields[name], f"the {name.lower()}") if fields.get(name, (0, ""))[1] else None
        for name in ("NUMBER UNIQUE ORDERS", "NUMBER VOTERS")
    )
    return _Head(kind.lower(), [name for _, name in filter(None, named)], first, ":", orders, voters)


def _older_head(file: _Lines, suffix: str) -> _Head:
    n = file.whole(0, file.lines[0], "the first line, the number of alternatives,", 1)
    if len(file.lines) < n + 2:
        file.wrong(None, f"the head of {n} alternatives takes {n + 2} lines, and the file has {len(file.lines)}.")
    names = []
    for k in range(1, n + 1):
        number, comma, name = file.lines[k].partition(",")
        if not comma or number.strip() != str(k):
            file.wrong(k, f"expected '{k},' and the name of alternative {k} of {n}, got {file.lines[k]!r}.")
        names.append(name.strip())
    fields = file.lines[n + 1].split(",")
    if len(fields) != 3:
        file.wrong(n + 1, f"expected the numbers of voters, counts and orders, got {file.lines[n + 1]!r}.")
    _, voters, orders = (file.whole(n + 1, field, "each of voters, counts and orders") for field in fields)
    return _Head(suffix, names, n + 2, ",", orders, voters)


def _orders(file: _Lines, head: _Head) -> Orders:
    strict, complete = KINDS[head.kind]
    n, known = len(head.names), {str(k + 1): k for k in range(len(head.names))}
    code: list[int] = []
    sizes: list[int] = []
    length, counts, lines = [], [], []
    for number in range(head.first, len(file.lines)):
        line = file.lines[number].replace(" ", "")
        if not line:
            continue
        count, between, order = line.partition(head.between)
        if not between or not ORDER.fullmatch(order):
            shown = f"'count{head.between} number,number,…' with tied numbers in braces"
            file.wrong(number, f"an order must be {shown}, got {file.lines[number]!r}.")
        places = [(tied or alone).split(",") for tied, alone in PLACE.findall(order)]
        named = [field for place in places for field in place]
        strange = next((field for field in named if field not in known), None)
        if strange is not None:
            file.wrong(number, f"alternatives have the numbers 1 to {n}, got {strange!r}.")
        if len(set(named)) < len(named):
            again = next(field for field in named if named.count(field) > 1)
            file.wrong(number, f"alternative {again} occurs twice.")
        if strict and len(places) < len(named):
            file.wrong(number, f"a file of the kind {head.kind!r} has no ties.")
        if complete and len(named) < n:
            file.wrong(number, f"a file of the kind {head.kind!r} ranks all {n} alternatives, got {len(named)}.")
        counts.append(file.whole(number, count, "the count", 1))
        code += [known[field] for field in named]
        sizes += map(len, places)
        length.append(len(places))
        lines.append(number + 1)
    _check_complete(file, head, len(counts), sum(counts))
    times = np.array(counts, dtype=np.float64)
    held = np.array(code), np.array(sizes), np.array(length), times, np.array(lines)
    return Orders(label_array(head.names), *held)


def _check_complete(file: _Lines, head: _Head, orders: int, voters: int) -> None:
    """Raise if there are fewer orders than the header says, as in a truncated file."""
    if not orders:
        file.wrong(None, "there are no orders after the head.")
    for what, said, found in (("orders", head.orders, orders), ("voters", head.voters, voters)):
        if said is not None and said != found:
            file.wrong(None, f"the head tells of {said} {what}, and there are {found}. Is the file complete?")
