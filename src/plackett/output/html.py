"""Escaping of text for HTML: the only place where users' text enters a page."""

from __future__ import annotations

from html import escape


def text(value: object) -> str:
    """Escape text so that it cannot become markup, and replace control characters."""
    return escape("".join(c if c.isprintable() else " " for c in str(value)))
