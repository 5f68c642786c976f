"""Rows and situations that resemble new ones, to measure the error of predictions.

Directions can adapt to their training data, for which they then seem more certain than for new data. Therefore
covariates are mixed with those of a neighbour from another unit.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plackett.model.diagnostics import probed
from plackett.model.mixture import Entries
from plackett.model.race import Array

Numbers = npt.NDArray[np.intp]
SEARCHED = 5000  # rows or situations searched for neighbours
NEIGHBOURS = 5  # nearest neighbours, of which one is chosen
ALONE = -1  # index for no neighbour


def like_new(Z: Array, n_rows: int, units: Numbers | None = None) -> Array:
    """Return at most n_rows rows that take each column from a row of Z or from one of its nearest neighbours."""
    rng, some, others = np.random.default_rng(0), probed(len(Z), n_rows), probed(len(Z), SEARCHED)
    units = np.arange(len(Z)) if units is None else units
    rows, near = Z[some], Z[others]
    chosen = neighbours(rng, rows, near, units[some][:, None] == units[others])
    return np.where((chosen == ALONE)[:, None] | (rng.random(rows.shape) < 0.5), rows, near[chosen])


def neighbours(rng: np.random.Generator, rows: Array, near: Array, same: npt.NDArray[np.bool_]) -> Numbers:
    """Choose one of the nearest rows of `near` for each row, excluding rows of the same unit."""
    distance = (rows**2).sum(axis=1)[:, None] + (near**2).sum(axis=1) - 2 * rows @ near.T
    distance[same] = np.inf
    order = np.argsort(distance, axis=1, kind="stable")[:, :NEIGHBOURS]
    numbers = np.arange(len(rows))
    chosen = order[numbers, rng.integers(order.shape[1], size=len(rows))]
    return np.where(np.isinf(distance[numbers, chosen]), ALONE, chosen)


def situations_like_new(some: Entries, near: Entries, same: npt.NDArray[np.bool_]) -> Entries:
    """Return situations with some columns replaced by those of a neighbour, from its most similar entry.

    The replaced columns are the same for all entries. `same` (situations of `some`, of `near`) is True if two of them
    belong to one unit.
    """
    rng, Z = np.random.default_rng(0), some.Z[some.row]
    for t, u in enumerate(neighbours(rng, middles(some), middles(near), same)):
        taken = rng.random(Z.shape[1]) < 0.5
        if u == ALONE:
            continue
        own, theirs = Z[some.start[t] : some.start[t + 1]], near.Z[near.row[near.start[u] : near.start[u + 1]]]
        alike = ((own[:, None] - theirs) ** 2).sum(axis=2).argmin(axis=1)
        own[:, taken] = theirs[alike][:, taken]
    return some._replace(Z=Z, row=np.arange(len(Z)))


def middles(entries: Entries) -> Array:
    """Average covariates over the entries of each situation."""
    sums: Array = np.add.reduceat(entries.Z[entries.row], entries.start[:-1], axis=0)
    return sums / np.diff(entries.start)[:, None]
