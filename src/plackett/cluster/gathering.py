"""Transfer of few rankings and choices in partitions to the client, where learned directions need them.

Held-out situations, designs, starting points and diagnostics are computed on the client; passes run on the workers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plackett.cluster.choice_parts import ChoicePart, ChoiceTable, joined_sets
from plackett.cluster.parts import ask
from plackett.cluster.ranking_parts import RankingPart, RankingTable, joined

MOST = 1 << 26  # maximum of numbers: half a gigabyte per copy


def check_few(numbers: int, what: str, size: str) -> None:
    """Raise if there are too many numbers for the client."""
    if numbers > MOST:
        raise ValueError(
            f"learned directions bring {what} in partitions to the client, up to {MOST:,} numbers, and these are "
            f"{size}: {numbers:,}. Take a sample of the {what}, or features='exp', which leaves them in partitions."
        )


def gather_rankings(table: RankingTable) -> dict[str, Any]:
    """Return the arguments of `PlackettLuceRanker.fit`, in memory."""
    n, K, d = table.n_rows, len(table.items), 0 if table.covariates is None else table.covariates.n_columns
    check_few(n * (K + d), "rankings", f"{n:,} of {K} items with {d} covariates")
    found = list(zip(*ask(table.client, "rankings", RankingPart.in_memory, table.parts), strict=True))
    return {"X": _rows(found[1]), "R": joined(list(found[0]))} | _beside(*found[2:])


def gather_choices(table: ChoiceTable, constants: bool) -> dict[str, Any]:
    """Return the arguments of `PlackettLuceChooser.fit`, in memory; `constants`: True if alternatives have them."""
    entries, columns, n = table.totals.n_entries, len(table.straight_design(constants).names_), sum(table.sizes)
    check_few(entries * columns, "choices", f"{n:,} situations with {entries:,} alternatives of {columns} columns")
    found = list(zip(*ask(table.client, "situations", ChoicePart.in_memory, table.parts), strict=True))
    return {"X": joined_sets(found[0]), "y": np.concatenate(found[1])} | _beside(found[3], found[2])


def _rows(parts: Any) -> Any:
    """Concatenate rows of arrays or of data frames."""
    if not hasattr(parts[0], "columns"):
        return np.concatenate(parts)
    import pandas as pd

    return pd.concat(parts, ignore_index=True)


def _beside(weights: Any, groups: Any) -> dict[str, Any]:
    """Return weights and groups, if given."""
    both = {"sample_weight": weights, "groups": groups}
    return {
        name: None if each[0] is None else np.concatenate([np.asarray(e) for e in each]) for name, each in both.items()
    }
