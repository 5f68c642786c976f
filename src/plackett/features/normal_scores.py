"""Covariates as normal scores: Φ⁻¹ of the fraction of rows below, linear between observed values."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from plackett.compute.pieces import over_columns
from plackett.model.race import Array

MOST = 256  # maximum of stored values per covariate
SMALLEST = 2.0**-53  # fraction of rows; smaller ones are rounding


def knots_of(X: Array, weight: Array) -> Array:
    """Return values of each covariate and their scores (2, d, m), padded by infinities with the last score."""

    def of_column(x: Array) -> tuple[Array, Array]:
        values, place = np.unique(x, return_inverse=True)
        mass = np.bincount(place.ravel(), weights=weight)
        scores = ndtri(np.clip((np.cumsum(mass) - mass / 2) / mass.sum(), SMALLEST, 1 - SMALLEST))
        some = np.unique(np.linspace(0, len(values) - 1, MOST).astype(int))
        return values[some], scores[some]

    found = over_columns(of_column, X)
    knots = np.full((2, len(found), max(len(values) for values, _ in found)), np.inf)
    for f, (values, scores) in enumerate(found):
        knots[0, f, : len(values)] = values
        knots[1, f] = scores[-1]
        knots[1, f, : len(values)] = scores
    return knots


def normal_scores(X: Array, knots: Array) -> Array:
    """Return scores of new rows; beyond the observed values the outermost scores."""
    return np.column_stack(over_columns(np.interp, X, *knots))


def values_at(scores: Array, knots: Array) -> Array:
    """Return the value (d,) of each covariate with this score."""
    known = np.isfinite(knots[0])
    found = [np.interp(s, at[some], x[some]) for s, x, at, some in zip(scores, *knots, known, strict=True)]
    return np.array(found)
