"""Check that draws fit into memory before they are made."""

from __future__ import annotations

import os

COPIES = 6  # maximum number of copies while draws are made, normalised and averaged


def at_hand() -> float:
    """Return available memory in bytes; total memory if the system does not report it, or infinity."""
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
    """Raise if so many draws of K×p weights would not fit in memory; `fewer` names the remedy."""
    K, p = size
    one, there = 8.0 * K * p, at_hand()
    if COPIES * n_draws * one > there:
        raise ValueError(
            f"{n_draws:,} draws of {K} × {p:,} weights take {_readable_size(n_draws * one)}, up to {COPIES} times that "
            f"during computations, and {_readable_size(there)} of memory are free: enough for about "
            f"{int(there / (COPIES * one)):,}. {fewer} Or use inference='em', which keeps one estimate, or fewer "
            "features."
        )


def _readable_size(size: float) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 1e8 else f"{size / 1e6:,.1f} MB"
