"""Columns as users know them: a number, or the indicators of one text column together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from plackett.data.columns import Category, Number
from plackett.data.model_input import known_columns
from plackett.model.race import Array

OTHER = "other"  # name of an unknown level
MISSING = "missing"


@dataclass(frozen=True)
class Covariate:
    """Column that was a number or a text, and the positions of its numbers in the input of a classifier.

    Attributes
    ----------
    name : str
        Name of the column.
    places : tuple of int
        Positions of its numbers.
    levels : dict, optional
        Numbers of each level of a text column.
    usual : str, optional
        Most frequent level of a text column in training, if known.
    """

    name: str
    places: tuple[int, ...]
    levels: dict[str, tuple[float, ...]] | None = None
    usual: str | None = None

    def value(self, x: Array) -> Any:
        """Return the value of this column in one row (d,) of numbers."""
        held = x[list(self.places)]
        if self.levels is None:
            return float(held[0])
        return next((level for level, numbers in self.levels.items() if np.allclose(held, numbers)), OTHER)


def covariates_of(model: Any) -> list[Covariate]:
    """Return the columns of a fitted model's table if it has one; else indicators are names ``column=level``."""
    columns = known_columns(model)
    if columns is None:
        return by_names([str(name) for name in model._covariates()])
    return of_columns(columns)


def of_columns(columns: Sequence[Number | Category]) -> list[Covariate]:
    """Return fitted columns whose numbers are adjacent."""
    found, start = list[Covariate](), 0
    for column in columns:
        names = column.names()
        if column.text:
            found.append(_category(column, start))
        else:
            found += [Covariate(name, (start + j,)) for j, name in enumerate(names)]
        start += len(names)
    return found


def _category(column: Category, start: int) -> Covariate:
    """Return levels as `Category.encode` writes them; "missing" is a level if training had missing values."""
    shown = dict(zip(column.levels, column.shares, strict=True))
    if len(shown) == 2:
        del shown[column.levels[0]]
    marked = (0.0,) * column.indicator
    levels = {level: (*(float(level == other) for other in shown), *marked) for level in column.levels}
    if column.indicator:
        levels[MISSING] = (*shown.values(), 1.0)
    usual = column.levels[int(np.argmax(column.shares))]
    return Covariate(column.name, tuple(range(start, start + len(shown) + len(marked))), levels, usual)


def by_names(names: Sequence[str]) -> list[Covariate]:
    """Group two or more columns like ``home=town``, ``home=farm`` as levels of one; all others are numbers."""
    groups: dict[str, list[int]] = {}
    for j, name in enumerate(names):
        column, equals, level = name.partition("=")
        if equals and column and level:
            groups.setdefault(column, []).append(j)
    together = {places[0]: (column, places) for column, places in groups.items() if len(places) > 1}
    members = {j for _, places in together.values() for j in places}
    found = []
    for j, name in enumerate(names):
        if j in together:
            column, places = together[j]
            found.append(Covariate(column, tuple(places), _one_hot([names[i].partition("=")[2] for i in places])))
        elif j not in members:
            found.append(Covariate(name, (j,)))
    return found


def _one_hot(levels: Sequence[str]) -> dict[str, tuple[float, ...]]:
    return {level: tuple(float(level == other) for other in levels) for level in levels}


def summed(parts: Array, covariates: Sequence[Covariate]) -> Array:
    """Add contributions (…, d) of numbers by column."""
    return np.stack([parts[..., list(column.places)].sum(axis=-1) for column in covariates], axis=-1)
