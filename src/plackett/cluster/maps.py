"""Feature maps fitted to rows in partitions.

Up to `EXACT` numbers the columns come to the client, which computes the means and deviations of the whole table to the
last bit; beyond, they are computed from sums over partitions.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np
from sklearn.base import clone

from plackett.cluster.class_parts import ClassRecipe, ClassTable
from plackett.cluster.moments import Moments
from plackett.cluster.parts import ask
from plackett.features import ExpFeatures
from plackett.features.exp import KnownColumns
from plackett.features.mapped import fit_features
from plackett.features.standardise import mean_and_scale
from plackett.model.race import Array

EXACT = 1 << 24  # maximum of numbers of X on the client


def check_learns_nothing(features: Any, of: str, advice: str) -> None:
    """Raise for a map that would have to see all rows."""
    if features.__sklearn_tags__().requires_fit:
        raise ValueError(
            f"features={features!r} must be fitted to all {of} at once, which a Dask collection does not allow. "
            f"Use features='exp', {advice}"
        )


def fitted_map(table: ClassTable, features: object, recipe: ClassRecipe) -> Any:
    """Return the map, fitted to the rows of all partitions as counted by the recipe."""
    features = clone(features)
    if not isinstance(features, ExpFeatures):
        check_learns_nothing(
            features, "rows", "a map that learns nothing, such as FunctionTransformer, or map X before."
        )
        first = ask(table.client, "first", counted_rows, table.parts[:1], recipe)[0]
        return fit_features(features, first.X, first.codes, None)
    if table.n_rows * table.n_columns <= EXACT and features.standardize:
        come = ask(table.client, "columns", columns_of, table.parts, recipe._replace(repeat=False))
        mean, scale = mean_and_scale(*(np.concatenate(each) for each in zip(*come, strict=True)))
    else:
        each = (m.times(f) for m, f in zip(table.moments, recipe.factors.tolist(), strict=True))
        mean, scale = reduce(Moments.__add__, each).scale(table.low, table.high)
    return features.fit_columns(KnownColumns(table.n_rows, table.names, table.low, table.high, mean, scale))


def counted_rows(part: Any, recipe: ClassRecipe) -> Any:
    """Return rows of one part with positive weight, in input order."""
    return part.covariates().counted(recipe)


def columns_of(part: Any, recipe: ClassRecipe) -> tuple[Array, Array]:
    """Return the numbers of one part, and the weights of its rows."""
    counted = part.covariates().counted(recipe)
    return counted.numbers, np.ones(len(counted.codes)) if counted.weight is None else counted.weight
