"""Settings of segments."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from plackett.data.base_levels import with_levels_named
from plackett.data.choice_tables import Columns
from plackett.data.columns import listed
from plackett.data.validation import check_names, is_bool, is_whole, plain, positive
from plackett.inference.base import check_count


class Segments(BaseEstimator):
    """Settings of segments (latent classes): every person belongs to one of some segments, which have shares.

    Parameters
    ----------
    count : int or "auto"
        Number of segments; "auto" takes the one from 1 to `most` that predicts held-out persons best.
    by : list of str, optional
        Attributes, or other columns, whose coefficients differ between segments; the others are the same in all. The
        name of a text stands for all its levels. None: all of them. For choices.
    ignored : list of str, optional
        Columns, of those that differ, whose coefficients are 0 in one of the segments: its persons do not attend to
        them. For choices.
    concentration : float
        Of the Dirichlet prior of the shares, where draws are made; EM has none.
    starts : int
        Starts of EM, from which also the chains begin.
    most : int
        Largest number that "auto" tries.
    folds : int
        Folds of persons by which "auto" compares.

    Examples
    --------
    >>> from plackett import PlackettLuceChooser, Segments
    >>> PlackettLuceChooser("em", features="linear", segments=Segments(2, by=["time"]))
    PlackettLuceChooser(features='linear', inference='em', segments=Segments(by=['time']))
    """

    def __init__(
        self,
        count: int | str = 2,
        by: Sequence[str] | None = None,
        ignored: Sequence[str] | None = None,
        concentration: float = 1.0,
        starts: int = 10,
        most: int = 4,
        folds: int = 5,
    ):
        self.count = count
        self.by = by
        self.ignored = ignored
        self.concentration = concentration
        self.starts = starts
        self.most = most
        self.folds = folds

    def check(self) -> None:
        """Raise for values that make no sense, or would be ignored."""
        if self.count != "auto":
            _check_number(self.count)
        for name, least in (("starts", 1), ("most", 2), ("folds", 2)):
            check_count(f"Segments({name})", getattr(self, name), least)
        positive("Segments(concentration)", self.concentration)
        for name in ("by", "ignored"):
            check_names(f"Segments({name})", getattr(self, name))
        for name in ("most", "folds"):
            usual, value = getattr(Segments(), name), getattr(self, name)
            if self.count != "auto" and value != usual:
                raise ValueError(
                    f"Segments({name}={value!r}) would be ignored: it is for count='auto', and count={self.count!r} is "
                    "given. Leave one of the two out."
                )

    def with_levels(self, columns: Columns, source: Iterable[str]) -> Segments:
        """Return these settings with the levels of a text, by their columns' `source`, in place of its name."""
        known, found = list(source), Segments(**self.get_params())
        for name in ("by", "ignored"):
            given = getattr(self, name)
            setattr(found, name, None if given is None else with_levels_named(given, columns, known))
        return found

    def own_columns(self, names: Any, source: Any) -> tuple[Any, Any]:
        """Which columns of a design differ between segments, and which of them one segment ignores."""
        own = self._named("by", names, source) if self.by is not None else np.ones(len(names), dtype=bool)
        ignored = self._named("ignored", names, source) if self.ignored is not None else np.zeros_like(own)
        if (ignored & ~own).any():
            raise ValueError(
                f"Segments(ignored) has {plain(names[ignored & ~own][0])}, whose coefficient is the same in all "
                "segments. Name it in Segments(by=...) too."
            )
        if self.by is not None and not own.any():
            raise ValueError(
                "Segments(by=[]) leaves nothing that differs between segments: name a column, or leave it out."
            )
        return own, ignored

    def _named(self, setting: str, names: Any, source: Any) -> Any:
        found = np.zeros(len(names), dtype=bool)
        for name in getattr(self, setting):
            some = (names == name) | (source == name)
            if not some.any():
                raise ValueError(f"Segments({setting}) names {name!r}, and the columns are {listed(map(str, names))}.")
            found |= some
        return found


def _check_number(value: Any) -> None:
    if is_bool(value) or not is_whole(value) or value < 1:
        raise ValueError(
            f"segments must be a whole number of at least 1, 'auto' or Segments(...), got {plain(value)} instead."
        )


def as_segments(value: Any) -> Segments | None:
    """The settings, checked, from what a user may pass; None for a single segment."""
    if isinstance(value, Segments):
        found = value
    else:
        if not (isinstance(value, str) and value == "auto"):
            _check_number(value)
        found = Segments(value)
    found.check()
    return None if found.count == 1 else found
