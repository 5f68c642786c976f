"""Identification of coefficients by the columns, and existence of a maximum of the likelihood.

Columns are not identified where a combination of them is constant within every situation. A maximum does not exist
where the data are separated (Albert & Anderson 1984): there is a direction δ ≠ 0 along which no entry that was left has
a larger utility than the one that was chosen before it, (x_chosen − x_left)·δ ≥ 0 in every stage, and not all are
equal. A linear program finds it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.optimize import linprog

from plackett.data.columns import listed
from plackett.linear.likelihood import LinearSituations
from plackett.linear.newton import Maximum
from plackett.model.race import Array

DEPENDENT = 1e-9  # of the variance of a column within situations, what others leave of it if it is their combination
SILENT = 1e-16  # variance within situations, of a standardised column, below which it counts as constant
INVOLVED = 1e-6  # of the largest coefficient of a combination, or of a direction
FLAT = 1e-4  # of the information at β = 0, below which a maximum is looked at
APART = 1e-7  # of the sum of utilities that a direction must tell apart


def unidentified(information: Array, n: float) -> list[list[int]]:
    """Find columns that do not vary within any of n situations, and combinations of columns that do not.

    `information` is that of standardised columns at β = 0. A combination is a column with those before it that make it
    up.
    """
    size = np.diag(information) / n
    found, kept = list[list[int]](), list[int]()
    for j in range(len(size)):
        if size[j] <= SILENT:
            found.append([j])
            continue
        scale = np.sqrt(np.diag(information)[[*kept, j]])
        within = information[np.ix_([*kept, j], [*kept, j])] / np.outer(scale, scale)
        made = np.linalg.lstsq(within[:-1, :-1], within[:-1, -1], rcond=None)[0]
        left = 1.0 - within[-1, :-1] @ made
        if kept and left <= DEPENDENT:
            involved = np.abs(made) > INVOLVED * np.abs(made).max()
            found.append([*np.array(kept)[involved].tolist(), j])
        else:
            kept.append(j)
    return found


def words_for_unidentified(found: Sequence[list[int]], names: npt.NDArray[np.object_]) -> str:
    """Describe what is wrong with these columns."""
    alone = [names[some[0]] for some in found if len(some) == 1]
    together = [[names[j] for j in some] for some in found if len(some) > 1]
    told = []
    if alone:
        told.append(f"{listed(map(repr, alone))} {'does' if len(alone) == 1 else 'do'} not vary within any situation")
    told += [f"a combination of {listed(map(repr, some))} is constant within every situation" for some in together]
    return f"some coefficients are not identified: {'; '.join(told)}"


def is_doubtful(before: Array, best: Maximum) -> bool:
    """True if the iteration may have diverged: `before` is the information at β = 0, of which little is left."""
    if not best.converged:
        return True
    root = np.linalg.cholesky(before)
    inner = np.linalg.solve(root, np.linalg.solve(root, best.found.information).T)
    return bool(np.linalg.eigvalsh((inner + inner.T) / 2)[0] < FLAT)


def differences(packed: LinearSituations) -> Array:
    """Return x_chosen − x_left of every stage and every remaining entry, without duplicates."""
    start, found = packed.outcomes.start, []
    for t in np.flatnonzero(packed.outcomes.counts > 0):
        for s in range(start[t], start[t] + packed.stages[t]):
            found.append(packed.X[s] - packed.X[s + 1 : start[t + 1]])
    if not found:
        return np.empty((0, packed.X.shape[1]))
    return np.unique(np.concatenate(found), axis=0)


def separation(packed: LinearSituations) -> list[int]:
    """Return a minimal set of columns that separates the choices; empty if a maximum exists."""
    away = differences(packed)
    some = list(range(away.shape[1]))
    delta = _direction(away, some)
    if delta is None:
        return []
    some = [j for j in some if abs(delta[j]) > INVOLVED * np.abs(delta).max()]
    for j in list(some):
        fewer = [k for k in some if k != j]
        if fewer and _direction(away, fewer) is not None:
            some = fewer
    return some


def _direction(away: Array, some: list[int]) -> Array | None:
    """Return δ in [−1, 1]ᵈ, zero except for some columns, with away·δ ≥ 0 and the largest sum; None if that is 0."""
    part = away[:, some]
    scale = np.abs(part).max(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    found = linprog(
        -(part / scale).sum(axis=0), A_ub=-part / scale, b_ub=np.zeros(len(part)), bounds=(-1, 1), method="highs"
    )
    if found.x is None or -found.fun <= APART * max(len(part), 1):
        return None
    delta = np.zeros(away.shape[1])
    delta[some] = found.x / scale
    return delta


def never_chosen(
    packed: LinearSituations, alternative: npt.NDArray[np.intp], n_alternatives: int
) -> npt.NDArray[np.intp]:
    """Return alternatives that were available and never came before another."""
    start = packed.outcomes.start[:-1]
    counted = packed.outcomes.counts > 0
    place = np.arange(len(alternative)) - np.repeat(start, np.diff(packed.outcomes.start))
    won = place < np.repeat(np.where(counted, packed.stages, 0), np.diff(packed.outcomes.start))
    there = np.repeat(counted, np.diff(packed.outcomes.start))
    seen, chosen = (np.bincount(alternative[some], minlength=n_alternatives) for some in (there, won))
    return np.flatnonzero((seen > 0) & (chosen == 0))
