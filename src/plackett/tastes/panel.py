"""Situations of persons for passes: sorted by person, in canonical order, with columns of one scale."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from plackett.data.observations import Situations
from plackett.engines.situations import canonical
from plackett.linear.identification import unidentified, words_for_unidentified
from plackett.linear.likelihood import LinearSituations, evaluate, pack_linear
from plackett.model.race import Array
from plackett.responses.base import Outcomes, Whole

LEVEL = 6  # calls between a warning and the call of fit
PIECE = 1 << 9  # approximate number of situations per piece
Codes = npt.NDArray[np.intp]


class Panel(NamedTuple):
    """Choices by person.

    Attributes
    ----------
    packed : LinearSituations
        Situations by person, in an order that depends on their content; columns are divided by `scale`.
    owned : (N + 1,) array
        First situation of each person, and the number of situations.
    pieces : (C + 1,) array
        First person of each piece (the unit of summation), and the number of persons.
    scale : (p,) array
        Root mean square deviation of each column from its mean in the situation.
    order : (T,) array
        Input position of each situation.
    """

    packed: LinearSituations
    owned: Whole
    pieces: Whole
    scale: Array
    order: Codes

    @property
    def n_persons(self) -> int:
        """Number of persons N."""
        return len(self.owned) - 1

    @property
    def n_columns(self) -> int:
        """Number of columns p."""
        return self.packed.X.shape[1]


def make_panel(Z: Array, outcomes: Outcomes, entry: Codes, person: Codes | None, scale: Array | None = None) -> Panel:
    """Make a panel from rows of Z by the entries of outcomes, and the person of each situation.

    Without persons each situation has its own, numbered in the final order. Columns are divided by their standard
    deviations unless a scale is given.
    """
    situations = Situations(outcomes, np.zeros(len(entry), dtype=np.int64), np.asarray(entry, dtype=np.int64))
    found, order, used = canonical(Z, situations)
    owner = np.arange(len(order)) if person is None else person[order]
    by_person = np.argsort(owner, kind="stable")
    found, order, owner = found.part(by_person), order[by_person], owner[by_person]
    X, start = Z[used][found.row], found.outcomes.start
    if scale is None:
        scale = spread_within(X, start)
        scale = np.where(scale > 0, scale, 1.0)
    owned = np.searchsorted(owner, np.arange(owner[-1] + 2)).astype(np.int64)
    packed = pack_linear(X / scale, found.outcomes)
    return Panel(packed, owned, pieces_of(owned), scale, order)


def check_panel(panel: Panel, names: npt.NDArray[np.object_], random: Codes) -> Codes:
    """Return fixed columns whose coefficients are not identified, with a warning; raise for random ones.

    The prior decides about such a fixed coefficient, for instance about a level of which nobody had an alternative.
    """
    packed = panel.packed
    flat = unidentified(evaluate(packed, np.zeros(panel.n_columns)).information, float(len(packed.stages)))
    if not flat:
        return np.empty(0, dtype=np.intp)
    with_random = [some for some in flat if np.isin(some, random).any()]
    if with_random:
        raise ValueError(f"{words_for_unidentified(with_random, names)}; constants go with Tastes(constants=False).")
    words = f"{words_for_unidentified(flat, names)}; what the data leave open the prior decides."
    warnings.warn(words, UserWarning, stacklevel=LEVEL)
    return np.unique(np.concatenate(flat)).astype(np.intp)


def spread_within(X: Array, start: Whole) -> Array:
    """Return the root mean square deviation of columns from their mean in each situation; 0 for constant columns."""
    length = np.diff(start)
    mean = np.add.reduceat(X, start[:-1], axis=0) / length[:, None]
    deviation = X - np.repeat(mean, length, axis=0)
    found: Array = np.sqrt((deviation**2).mean(axis=0))
    size = np.abs(X).max(axis=0, initial=0.0)
    return np.where(found > 1e-12 * size, found, 0.0)


def pieces_of(owned: Whole) -> Whole:
    """Return the first persons of pieces of about PIECE situations, and the number of persons."""
    cuts, N = [0], len(owned) - 1
    while cuts[-1] < N:
        after = int(np.searchsorted(owned, owned[cuts[-1]] + PIECE))
        cuts.append(min(max(after, cuts[-1] + 1), N))
    return np.array(cuts, dtype=np.int64)
