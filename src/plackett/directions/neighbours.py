"""Rows and situations like new ones, by which the error of predictions is measured.

Directions can fit themselves to what they were learned from, of which they then seem surer than of anything else. So
covariates are mixed with those of a neighbour that belongs to another unit.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plackett.model.diagnostics import probed
from plackett.model.mixture import Entries
from plackett.model.race import Array

Numbers = npt.NDArray[np.intp]
SEARCHED = 5000  # rows or situations among which neighbours are found
NEIGHBOURS = 5  # of which one is taken
ALONE = -1  # instead of a neighbour


def like_new(Z: Array, n_rows: int, units: Numbers | None = None) -> Array:
    """At most so many rows, each column of which is that of a row of Z or of one of its nearest neighbours."""
    rng, some, others = np.random.default_rng(0), probed(len(Z), n_rows), probed(len(Z), SEARCHED)
    units = np.arange(len(Z)) if units is None else units
    rows, near = Z[some], Z[others]
    chosen = neighbours(rng, rows, near, units[some][:, None] == units[others])
    return np.where((chosen == ALONE)[:, None] | (rng.random(rows.shape) < 0.5), rows, near[chosen])


def neighbours(rng: np.random.Generator, rows: Array, near: Array, same: npt.NDArray[np.bool_]) -> Numbers:
    """One of the nearest rows of `near` for each row, among those that are not of the same unit."""
    distance = (rows**2).sum(axis=1)[:, None] + (near**2).sum(axis=1) - 2 * rows @ near.T
    distance[same] = np.inf
    order = np.argsort(distance, axis=1, kind="stable")[:, :NEIGHBOURS]
    numbers = np.arange(len(rows))
    chosen = order[numbers, rng.integers(order.shape[1], size=len(rows))]
    return np.where(np.isinf(distance[numbers, chosen]), ALONE, chosen)


def situations_like_new(some: Entries, near: Entries, same: npt.NDArray[np.bool_]) -> Entries:
    """The situations with some columns of a neighbour's, the same for all entries: of the entry that is most alike.

    `same` (situations of `some`, of `near`) is whether two of them are of one unit.
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
    """Average covariates of the entries of each situation."""
    sums: Array = np.add.reduceat(entries.Z[entries.row], entries.start[:-1], axis=0)
    return sums / np.diff(entries.start)[:, None]
