"""Columns for learned directions of situations: standardised, or first converted to normal scores."""

from __future__ import annotations

from dataclasses import dataclass

from plackett.features.normal_scores import knots_of, normal_scores
from plackett.features.standardise import average_row, mean_and_scale, standardise
from plackett.model.race import Array


@dataclass(frozen=True)
class Columns:
    """z = (x − mean)/scale, with knots of the normal scores of x.

    Attributes
    ----------
    mean, scale : (d,) arrays
        The scale of a constant column is infinite.
    knots : (2, d, m) array or None
        Values and their scores, if these replace x.
    """

    mean: Array
    scale: Array
    knots: Array | None = None

    def of(self, X: Array) -> Array:
        """Standardise rows of X."""
        return standardise(X, self.mean, self.scale, None, self.knots)

    def reference(self) -> tuple[Array, str]:
        """Return the row where z = 0, and its description."""
        return average_row(self.mean, self.knots)


def designs(X: Array, weight: Array) -> list[Columns]:
    """Return designs with plain columns and with normal scores; held-out situations choose."""
    knots = knots_of(X, weight)
    return [
        Columns(*mean_and_scale(X, weight)),
        Columns(*mean_and_scale(normal_scores(X, knots), weight), knots),
    ]
