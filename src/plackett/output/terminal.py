"""Text for a terminal: nothing in a name or a label steers it."""

from __future__ import annotations

import re

CONTROL = re.compile(
    "[\\x00-\\x1f\\x7f-\\x9f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ufeff\\ud800-\\udfff]"
)


def printable(text: str) -> str:
    r"""A line in which control characters, and those that turn the direction of writing, are escaped.

    Examples
    --------
    >>> from plackett.output.terminal import printable
    >>> print(printable("pay €\x1b[2J\n\u202egnp"))
    pay €\x1b[2J\n\u202egnp
    """
    return CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
