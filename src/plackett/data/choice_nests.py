"""Nests of alternatives, as named by the user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from plackett.data.validation import plain
from plackett.responses.nests import ALONE, START, Nests

EXAMPLE = "{'existing': ['train', 'car']}"


def check_nests(nests: Any) -> None:
    """Raise ValueError unless this is a dictionary of disjoint nests of two or more alternatives."""
    if not isinstance(nests, Mapping) or not nests:
        raise ValueError(
            f"nests must be a dictionary of the alternatives in each nest, such as {EXAMPLE}, got {plain(nests)} "
            "instead."
        )
    seen = dict[Any, str]()
    for name, members in nests.items():
        if not isinstance(name, str) or not isinstance(members, (list, tuple)):
            raise ValueError(
                f"nests must have names and lists of alternatives, such as {EXAMPLE}, got {plain(name)}: "
                f"{plain(members)} instead."
            )
        if len(set(members)) < 2:
            raise ValueError(
                f"nests: {name!r} needs two alternatives or more, got {list(members)}. Leave it out: alternatives "
                "that are not named stand alone."
            )
        for label in dict.fromkeys(members):
            if label in seen:
                raise ValueError(
                    f"nests: {plain(label)} is in {seen[label]!r} and in {name!r}, and an alternative can be in one "
                    "nest alone."
                )
            seen[label] = name


def nests_of(nests: Any, alternatives: npt.NDArray[Any]) -> Nests:
    """Return the nest of each alternative; raises ValueError for invalid nests.

    Examples
    --------
    >>> nests_of({"existing": ["train", "car"]}, np.array(["car", "metro", "train"])).of_alternative
    array([ 0, -1,  0])
    """
    check_nests(nests)
    known = alternatives.tolist()
    found = np.full(len(known), ALONE, dtype=np.int64)
    for g, (name, members) in enumerate(nests.items()):
        for label in members:
            if label not in known:
                raise ValueError(
                    f"nests: {plain(label)} of {name!r} is none of the alternatives, which are {known[:20]}."
                )
            found[known.index(label)] = g
    return Nests(tuple(nests), found, np.full(len(nests), START))
