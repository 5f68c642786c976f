"""Rankings and choices in partitions that come to the client, where they are few: learned directions need them there.

Held-out situations, designs, starts and diagnoses are those of one machine; passes go back to the workers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plackett.cluster.choice_parts import ChoicePart, ChoiceTable, joined_sets
from plackett.cluster.parts import ask
from plackett.cluster.ranking_parts import RankingPart, RankingTable, joined

MOST = 1 << 26  # numbers: half a gigabyte for each copy of them


def check_few(numbers: int, what: str, told: str) -> None:
    """Refuse more than can come here."""
    if numbers > MOST:
        raise ValueError(
            f"learned directions bring {what} in partitions to the client, up to {MOST:,} numbers, and these are "
            f"{told}: {numbers:,}. Take a sample of the {what}, or features='exp', for which they stay where they are."
        )


def gather_rankings(table: RankingTable) -> dict[str, Any]:
    """The arguments of `PlackettLuceRanker.fit`, in memory."""
    n, K, d = table.n_rows, len(table.items), 0 if table.covariates is None else table.covariates.n_columns
    check_few(n * (K + d), "rankings", f"{n:,} of {K} items with {d} covariates")
    found = list(zip(*ask(table.client, "rankings", RankingPart.in_memory, table.parts), strict=True))
    return {"X": _rows(found[1]), "R": joined(list(found[0]))} | _beside(*found[2:])


def gather_choices(table: ChoiceTable, constants: bool) -> dict[str, Any]:
    """The arguments of `PlackettLuceChooser.fit`, in memory; `constants`: whether alternatives have them."""
    entries, columns, n = table.totals.n_entries, len(table.straight_design(constants).names_), sum(table.sizes)
    check_few(entries * columns, "choices", f"{n:,} situations with {entries:,} alternatives of {columns} columns")
    found = list(zip(*ask(table.client, "situations", ChoicePart.in_memory, table.parts), strict=True))
    return {"X": joined_sets(found[0]), "y": np.concatenate(found[1])} | _beside(found[3], found[2])


def _rows(parts: Any) -> Any:
    """Rows of arrays or of data frames, one below the other."""
    if not hasattr(parts[0], "columns"):
        return np.concatenate(parts)
    import pandas as pd

    return pd.concat(parts, ignore_index=True)


def _beside(weights: Any, groups: Any) -> dict[str, Any]:
    """Weights and groups, where they were given."""
    both = {"sample_weight": weights, "groups": groups}
    return {
        name: None if each[0] is None else np.concatenate([np.asarray(e) for e in each]) for name, each in both.items()
    }
