"""Observations: classes, or outcomes of situations. The module knows neither features nor where passes run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from plackett.model.race import Array
from plackett.responses.base import Outcomes, Response, Whole, in_order
from plackett.responses.choice import Choice

Codes = npt.NDArray[np.intp]


class Situations(NamedTuple):
    """Outcomes of choice situations, and the weights and features of their entries.

    Attributes
    ----------
    outcomes : Outcomes
        Entries in order of the outcome, situation by situation.
    group : (entries,) array
        g(e): the row of λ that the entry uses.
    row : (entries,) array
        Row of W that the entry uses.
    """

    outcomes: Outcomes
    group: Whole
    row: Whole

    def part(self, some: npt.NDArray[np.integer]) -> Situations:
        """Select situations by number, in this order; rows of W keep their numbers."""
        (start, bucket_start, sizes, count), group, row = self
        entries = in_order(some, start)
        outcomes = Outcomes(
            np.append(0, np.cumsum(np.diff(start)[some])),
            np.append(0, np.cumsum(np.diff(bucket_start)[some])),
            sizes[in_order(some, bucket_start)],
            count[some],
        )
        return Situations(outcomes, group[entries], row[entries])


@dataclass(frozen=True)
class Observations:
    """One class per row, or the outcome of each situation.

    Attributes
    ----------
    n_groups : int
        K, rows of the weights λ: classes, items, alternatives, persons or 1.
    response : Response
        Response of the outcomes; `Choice` for classes.
    codes : (n,) array, optional
        Class of each row, 0 … K−1; None for situations.
    situations : Situations, optional
        Outcomes of situations; None for classes.
    counts : array, optional
        Number of observations of each row or situation; None: once each.
    units : (n,) array, optional
        Rows or situations with the same number are held out together; None: all separately.
    differences : (n, d) array, optional
        Attributes of pairs: of the first of both entries, minus those of the second.
    """

    n_groups: int
    response: Response
    codes: Codes | None = None
    situations: Situations | None = None
    counts: Array | None = None
    units: Codes | None = None
    differences: Array | None = None

    @classmethod
    def of_classes(cls, codes: Codes, n_groups: int, counts: Array | None = None, units: Codes | None = None) -> Self:
        """Build observations of one class per row."""
        return cls(n_groups, Choice(), codes=codes, counts=counts, units=units)

    @classmethod
    def of_situations(
        cls, situations: Situations, response: Response, n_groups: int, units: Codes | None = None
    ) -> Self:
        """Build observations of situations, with the counts of the outcomes."""
        return cls(n_groups, response, situations=situations, counts=situations.outcomes.counts, units=units)

    @classmethod
    def of_rankings(
        cls, outcomes: Outcomes, item: Whole, response: Response, n_items: int, units: Codes | None = None
    ) -> Self:
        """Build rankings of items: each item is a group, and each ranking has its own row of W."""
        row = np.repeat(np.arange(len(outcomes.counts)), np.diff(outcomes.start))
        return cls.of_situations(Situations(outcomes, item, row), response, n_items, units)

    def __len__(self) -> int:
        """Number of rows, or of situations."""
        return len(self.class_codes) if self.situations is None else len(self.situations.outcomes.counts)

    @property
    def class_codes(self) -> Codes:
        """`codes` of observations of classes; raises for others."""
        assert self.codes is not None
        return self.codes

    @property
    def all_situations(self) -> Situations:
        """`situations` of observations of situations; raises for others."""
        assert self.situations is not None
        return self.situations

    @property
    def weights(self) -> Array:
        """`counts`, or ones."""
        return np.ones(len(self)) if self.counts is None else self.counts

    def part(self, some: npt.NDArray[np.integer]) -> Self:
        """Select rows or situations by number, in this order."""
        if self.situations is not None:
            situations = self.situations.part(some)
            differences = None if self.differences is None else self.differences[some]
            found = replace(self, situations=situations, counts=situations.outcomes.counts, differences=differences)
        else:
            counts = None if self.counts is None else self.counts[some]
            found = replace(self, codes=self.class_codes[some], counts=counts)
        return found if self.units is None else replace(found, units=self.units[some])

    def weighted(self, weights: Array) -> Self:
        """Replace the counts of rows or situations."""
        if self.situations is None:
            return replace(self, counts=weights)
        outcomes = self.situations.outcomes._replace(counts=weights)
        return replace(self, situations=self.situations._replace(outcomes=outcomes), counts=weights)
