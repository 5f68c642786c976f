"""Features and groups of the entries of choice situations, from a fitted design and a fitted map of its columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.base import clone

from plackett.features.choice_design import ChoiceDesign, EntryTable
from plackett.features.exp import ExpFeatures
from plackett.features.mapped import transform
from plackett.model.race import Array

if TYPE_CHECKING:
    from plackett.data.choice_sets import ChoiceSets

LOWEST = -600.0  # ln W of an entry, relative to the largest of its situation
Codes = npt.NDArray[np.intp]


def fit_entries(
    design: ChoiceDesign, features: Any, X: ChoiceSets, weight: Array | None, some: Codes
) -> tuple[ChoiceDesign, Any]:
    """Fit a design and a map of its columns to some of the situations."""
    part = X[some]
    design = clone(design).fit(part, None if weight is None else weight[some])
    return design, clone(features).fit(design.columns(EntryTable.of(part)))


def log_features(design: ChoiceDesign, features: object, table: EntryTable) -> Array:
    """Return ln W (entries, p), comparable within a situation."""
    columns = design.columns(table)
    if isinstance(features, ExpFeatures):
        return features.exponents(columns)
    W = transform(features, columns, empty=True)[:]
    if sparse.issparse(W):
        raise ValueError("features of alternatives must be dense; give a map with dense output.")
    with np.errstate(divide="ignore"):
        return np.log(np.asarray(W, dtype=np.float64))


def features_of_entries(design: ChoiceDesign, features: object, table: EntryTable) -> Array:
    """Return W (entries, p), scaled to a largest entry of 1 per situation."""
    log_W = log_features(design, features, table)
    top = np.maximum.reduceat(log_W.max(axis=1), table.start[:-1])[table.situation]
    W: Array = np.exp(np.maximum(log_W - top[:, None], LOWEST))
    W[np.isneginf(log_W)] = 0.0
    return W


def groups_of_entries(weights: str, table: EntryTable, person: Codes | None) -> Codes:
    """Return the group ("shared", "alternative" or "person") of each entry's weights; −1 for an unknown person."""
    if weights == "person" and person is not None:
        return person[table.situation]
    return table.alternative if weights == "alternative" else np.zeros_like(table.alternative)
