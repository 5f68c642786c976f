"""Text for a terminal, without control characters in names and labels."""

from __future__ import annotations

import re

CONTROL = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ufeff\\ud800-\\udfff]"
)


def printable(text: str) -> str:
    r"""Escape control characters of a line, and those that change the direction of writing.

    Examples
    --------
    >>> from plackett.output.terminal import printable
    >>> print(printable("pay €\x1b[2J\n\u202egnp"))
    pay €\x1b[2J\n\u202egnp
    """
    return CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
