"""Outcomes of choice sets (a chosen alternative, or a ranking of the available ones), with weights and persons."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from plackett.data.choice_sets import ChoiceSets
from plackett.data.rankings import Rankings
from plackett.data.types import Labels, LabelsLike
from plackett.data.validation import coded_groups, plain
from plackett.model.race import Array
from plackett.responses.base import Outcomes

Codes = npt.NDArray[np.intp]


class Chosen(NamedTuple):
    """Outcomes, the entry of the choice sets for each of their entries, and the response."""

    outcomes: Outcomes
    entry: Codes
    response: str

    @property
    def first(self) -> Codes:
        """Chosen, or first-ranked, entry of each situation."""
        return self.entry[self.outcomes.start[:-1]]


def chosen(X: ChoiceSets, y: LabelsLike | Rankings | None, weight: Array | None = None) -> Chosen:
    """Convert one label per situation, or `Rankings` of alternatives, to outcomes; weights multiply counts."""
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    if isinstance(y, Rankings):
        return _ranked(X, y, weight)
    others = np.arange(len(X.alternative)) != X.chosen(y)[X.situation]
    return Chosen(Outcomes.choices(np.diff(X.start), weight), np.lexsort((others, X.situation)), "choice")


def _ranked(X: ChoiceSets, rankings: Rankings, weight: Array | None) -> Chosen:
    """Convert rankings entry by entry, without unavailable alternatives in the last place."""
    if len(rankings) != len(X):
        raise ValueError(f"there must be one ranking for each of {len(X)} situations, got {len(rankings)}.")
    rankings = rankings.with_items(X.alternatives.tolist())
    (start, bucket_start, sizes, counts), t = rankings.outcomes, rankings.situation
    place = np.full((len(X), len(X.alternatives)), -1, dtype=np.intp)
    place[X.situation, X.alternative] = np.arange(len(X.alternative))
    entry = place[t, rankings.item]
    ranked = np.diff(np.append(0, np.cumsum(sizes))[bucket_start])  # number of placed entries of each situation
    missing, left = entry < 0, np.arange(len(entry)) - start[t] >= ranked[t]
    if (missing & ~left).any():
        e = int(np.argmax(missing & ~left))
        label, situation = plain(X.alternatives[rankings.item[e]]), plain(X.situations[t[e]])
        raise ValueError(f"{label} is ranked in situation {situation}, where it is not available.")
    kept = np.bincount(t[~missing], minlength=len(counts))
    counts = counts if weight is None else counts * weight
    outcomes = Outcomes(np.append(0, np.cumsum(kept)), bucket_start, sizes, counts)
    return Chosen(outcomes, entry[~missing], "unknown-order" if rankings.tied else "ranking")


def situation_weights(sample_weight: npt.ArrayLike | None, n: int) -> Array | None:
    """Return finite, non-negative weights of n situations; None if all are 1."""
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (n,):
        raise ValueError(f"sample_weight must have one number for each of the {n} situations, got {weight.shape}.")
    if not (np.isfinite(weight).all() and (weight >= 0).all() and weight.any()):
        raise ValueError("sample_weight must be finite and not negative, and not all of it zero.")
    return None if (weight == 1).all() else weight


def coded_persons(groups: LabelsLike | None, n: int) -> tuple[Labels, Codes | None]:
    """Return labels of persons and the person of each of n situations; None without persons."""
    if groups is None:
        return np.array([]), None
    return coded_groups(groups, n, "situations")
