"""Text as HTML: the only place where what a user named goes into a page."""

from __future__ import annotations

from html import escape
from typing import Any


def text(value: Any) -> str:
    """Text that cannot become markup, without control characters."""
    return escape("".join(c if c.isprintable() else " " for c in str(value)))
