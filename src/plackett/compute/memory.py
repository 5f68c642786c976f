"""A word before draws are made that would not fit into memory."""

from __future__ import annotations

import os

COPIES = 6  # of the draws, at the most, while they are made, normalised and averaged


def at_hand() -> float:
    """Bytes that can still be had; where the system does not tell, those of the machine, or infinity."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            held = dict(line.split(":") for line in lines)
        return 1024.0 * int(held["MemAvailable"].split()[0])
    except (OSError, KeyError):
        pass
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return float("inf")


def check_draws_fit(n_draws: int, size: tuple[int, int], fewer: str) -> None:
    """Refuse so many draws of K×p weights where they would not fit; `fewer` says what to ask for instead."""
    K, p = size
    one, there = 8.0 * K * p, at_hand()
    if COPIES * n_draws * one > there:
        raise ValueError(
            f"{n_draws:,} draws of {K} × {p:,} weights take {_told(n_draws * one)}, up to {COPIES} times that while "
            f"they are worked with, and {_told(there)} of memory are free: enough for about "
            f"{int(there / (COPIES * one)):,}. {fewer} Or use inference='em', which keeps one estimate, or fewer "
            "features."
        )


def _told(size: float) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 1e8 else f"{size / 1e6:,.1f} MB"
