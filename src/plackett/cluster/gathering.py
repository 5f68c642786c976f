"""Rankings and choices in partitions that come to the client, where they are few: learned directions need them there.

Held-out situations, designs, starts and diagnoses are those of one machine; passes go back to the workers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plackett.cluster import fit_choices, fit_rankings
from plackett.cluster.choices import joined_sets
from plackett.cluster.client import in_use
from plackett.cluster.partitions import looked
from plackett.cluster.rankings import joined
from plackett.data.choice_sets import ChoiceSets
from plackett.data.partitioned import PartitionedChoices, PartitionedRankings
from plackett.data.rankings import Rankings

MOST = 1 << 26  # numbers: half a gigabyte for each copy of them


def check_few(numbers: int, what: str, told: str) -> None:
    """Refuse more than can come here."""
    if numbers > MOST:
        raise ValueError(
            f"learned directions bring {what} in partitions to the client, up to {MOST:,} numbers, and these are "
            f"{told}: {numbers:,}. Take a sample of the {what}, or features='exp', for which they stay where they are."
        )


def gather_rankings(model: Any, X: Any, R: PartitionedRankings, sample_weight: Any, groups: Any) -> dict[str, Any]:
    """What `PlackettLuceRanker.fit` takes, in memory."""
    client, cut = in_use(), fit_rankings.cut_alike(model, X, R, sample_weight, groups)
    assert cut.spec.items is not None
    n, K, d = sum(cut.sizes), len(cut.spec.items), int(X.shape[1])
    check_few(n * (K + d), "rankings", f"{n:,} of {K} items with {d} covariates")
    parts = fit_rankings.made_of(cut)
    fit_rankings.looked_at(model, client, X, parts)
    of_groups = [part for part, size in zip(cut.beside["groups"], cut.sizes, strict=True) if size]
    asked = [(*part, who) for part, who in zip(parts, of_groups, strict=True)]
    found = list(zip(*looked(client, "rankings", as_they_are, asked), strict=True))
    rankings: list[Rankings] = list(found[0])
    return {"X": _rows(found[1]), "R": joined(rankings)} | _beside(*found[2:])


def gather_choices(model: Any, X: PartitionedChoices, y: Any, groups: Any, sample_weight: Any) -> dict[str, Any]:
    """What `PlackettLuceChooser.fit` takes, in memory."""
    client, cut = in_use(), fit_choices.cut_alike(X, y, groups, sample_weight)
    entries, columns = cut.totals.n_entries, len(fit_choices.straight_design(model, cut).names_)
    n = sum(cut.sizes)
    check_few(entries * columns, "choices", f"{n:,} situations with {entries:,} alternatives of {columns} columns")
    asked = [(*part, cut.spec, cut.schema) for part in cut.parts]
    found = list(zip(*looked(client, "situations", fit_choices.gathered_in, asked), strict=True))
    sets: list[ChoiceSets] = list(found[0])
    return {"X": joined_sets(sets), "y": np.concatenate(found[1])} | _beside(found[3], found[2])


def as_they_are(*part: Any) -> tuple[Any, ...]:
    """Of one partition."""
    return part


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
