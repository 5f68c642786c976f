"""Base levels of text columns: the level whose coefficient is 0 in linear utilities, as in R and most programs.

The base level is the first of the levels that occur in the situations of a fit, in alphabetical order. Knows no model.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from plackett.data.choice_sets import ChoiceSets
from plackett.data.choice_tables import Columns
from plackett.data.columns import Category
from plackett.data.labels import Codes
from plackett.model.race import Array


def base_levels(columns: Columns) -> dict[str, str]:
    """Return the base level of each text column.

    Examples
    --------
    >>> from plackett.data.base_levels import base_levels
    >>> from plackett.data.columns import Category
    >>> base_levels((Category("region", ("east", "north", "west"), (0.5, 0.3, 0.2), False),))
    {'region': 'east'}
    """
    return {column.name: column.levels[0] for column in columns if column.text}


def base_levels_in_words(levels: Mapping[str, str]) -> str:
    """Return base levels as part of a sentence.

    Examples
    --------
    >>> from plackett.data.base_levels import base_levels_in_words
    >>> base_levels_in_words({"region": "east", "home": "farm"})
    'base levels region: east, home: farm'
    """
    many = "base level" if len(levels) == 1 else "base levels"
    return f"{many} {', '.join(f'{name}: {level}' for name, level in levels.items())}"


def level_places(columns: Columns) -> list[tuple[str, dict[str, int]]]:
    """Return the name of each text column, and the place of the indicator of each level among all numbers.

    Of two levels the first has no indicator.
    """
    found, start = list[tuple[str, dict[str, int]]](), 0
    for column in columns:
        names = column.names()
        if column.text:
            shown = column.levels[1:] if len(column.levels) == 2 else column.levels
            found.append((column.name, {level: start + place for place, level in enumerate(shown)}))
        start += len(names)
    return found


def with_levels_named(names: Iterable[str], columns: Columns, known: Iterable[str]) -> list[str]:
    """Return names, with the indicators that are `known` in place of the name of a text column.

    Examples
    --------
    >>> from plackett.data.base_levels import with_levels_named
    >>> from plackett.data.columns import Category
    >>> region = Category("region", ("east", "north", "west"), (0.5, 0.3, 0.2), False)
    >>> with_levels_named(["cost", "region"], (region,), ["region=north", "region=west"])
    ['cost', 'region=north', 'region=west']
    """
    kept = set(known)
    levels = {column.name: [name for name in column.names() if name in kept] for column in columns if column.text}
    return [each for name in names for each in levels.get(name, [name])]


def base_places(columns: Columns) -> Codes:
    """Return the places of indicators of base levels among all numbers of these columns."""
    bases = base_levels(columns)
    return np.array(
        [places[bases[name]] for name, places in level_places(columns) if bases[name] in places], dtype=np.intp
    )


def with_seen_levels(X: ChoiceSets, weight: Array | None = None) -> ChoiceSets:
    """Return X without levels that no situation of positive weight has; a new level is then unknown to a model.

    `ChoiceSets.with_schema` gives an unknown level the shares of the others, with a warning.
    """
    used = X if weight is None else X[np.flatnonzero(weight > 0)]
    attributes = _seen(X.attribute_columns, used.values)
    person = _seen(X.person_columns, used.context)
    if (attributes, person) == (X.attribute_columns, X.person_columns):
        return X
    p, q = (sum(len(column.names()) for column in columns) for columns in (attributes, person))
    none = X[:0]
    held = none.alternatives, none.situations, none.start, none.alternative
    return X.with_schema(ChoiceSets(*held, np.empty((0, p)), np.empty((0, q)), attributes, person))


def _seen(columns: Columns, block: Array) -> Columns:
    """Return the columns with the levels that occur among these rows of numbers."""
    found, start = [], 0
    for column in columns:
        names = column.names()
        found.append(_with_levels(column, block[:, start : start + len(names)]) if column.text else column)
        start += len(names)
    return tuple(found)


def _with_levels(column: Category, indicators: Array) -> Category:
    shares: npt.NDArray[np.float64] = indicators.mean(axis=0) if len(indicators) else np.zeros(indicators.shape[1])
    if len(column.levels) == 2:
        shares = np.append(1 - shares, shares)
    there = np.flatnonzero(shares[: len(column.levels)] > 0)
    if len(there) in (0, len(column.levels)):
        return column
    kept = shares[there] / shares[there].sum()
    return replace(column, levels=tuple(column.levels[k] for k in there), shares=tuple(kept.tolist()))
