"""Reading learned directions: which covariates matter, what the components say, and why a row is predicted so."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from plackett.directions.gates import Gates
from plackett.directions.posterior import DirectionDraws
from plackett.directions.task import Task
from plackett.features.standardise import standardise
from plackett.model.race import Array

READ = 200  # rows


def some_rows(task: Task) -> Array:
    """Enough rows to take averages over, spread over the data; one of weight 2 counts as two."""
    up_to = np.cumsum(task.weight)
    middle = (np.arange(READ) + 0.5) / READ * up_to[-1]
    return task.rows[np.searchsorted(up_to, middle)]


def relevance(gates: Gates, task: Task) -> Array:
    """(d,): by how much a standard deviation of each covariate moves the log-odds between gates, on average.

    The posterior mean of the deviation of β_jf over the components j, each taken with its share of the gates.
    """
    share = np.concatenate([block.sum(axis=0)[None] for block in gates.chunks(some_rows(task))]).sum(axis=0)
    share /= share.sum(axis=1, keepdims=True)
    total = np.zeros(len(gates.mean))
    for part, directions in zip(share, gates.directions, strict=True):
        beta = along_covariates(directions, gates)
        total += np.sqrt(part @ (beta - part @ beta) ** 2)
    return total / len(share)


def along_covariates(directions: Array, gates: Gates) -> Array:
    """Directions (M, r) for the standardised covariates, (M, d)."""
    beta = directions if gates.rotation is None else directions @ gates.rotation.T
    return np.where(np.isfinite(gates.scale), beta, 0.0)


@dataclass(frozen=True)
class Portrait:
    """The draw to read: the one whose predictions for the training rows are nearest to the average.

    Components have no identity from draw to draw, so they are shown as they stand together in one.

    Attributes
    ----------
    draw : int
        Its place among those that predict.
    share : (M,) array
        Share of the gates of each component, over the training rows.
    """

    draw: int
    share: Array = field(repr=False)


def portrait(draws: DirectionDraws, gates: Gates, task: Task) -> Portrait:
    """The draw to read, from the training rows."""
    probability = np.concatenate(list(draws.probabilities(gates.chunks(some_rows(task)))))
    distance = np.abs(probability - probability.mean(axis=1, keepdims=True)).mean(axis=(0, 2))
    s = int(np.argmin(distance))
    return Portrait(s, np.average(_gate(gates, s, task.rows), axis=0, weights=task.weight))


def _gate(gates: Gates, s: int, X: Array) -> Array:
    """The gates of one draw, (n, M)."""
    one = Gates(gates.directions[[s]], gates.offsets[[s]], gates.mean, gates.scale, gates.rotation, gates.knots)
    return np.concatenate([block[:, 0] for block in one.chunks(X)])


def _directions(seen: Portrait, gates: Gates) -> Array:
    """(M, d), from their mean by share: a vector common to all components changes nothing."""
    beta = along_covariates(gates.directions[seen.draw], gates)
    return beta - seen.share @ beta


def components(
    seen: Portrait, draws: DirectionDraws, gates: Gates, classes: npt.NDArray[Any], names: npt.NDArray[Any]
) -> Any:
    """A row for each component and covariate: the largest share first, and of a component what moves it most."""
    votes, directions = draws.votes[seen.draw], _directions(seen, gates)
    return _by_covariate("share", seen.share, votes, classes, names, "direction", directions)


def explanation(
    seen: Portrait, draws: DirectionDraws, gates: Gates, x: Array, classes: npt.NDArray[Any], names: npt.NDArray[Any]
) -> Any:
    """The same for one row: how far each gate is open, and how much each covariate opens it, z_f (β_jf − mean)."""
    gate, votes, directions = _gate(gates, seen.draw, x[None])[0], draws.votes[seen.draw], _directions(seen, gates)
    z = np.nan_to_num(standardise(x[None], gates.mean, gates.scale, knots=gates.knots)[0])
    return _by_covariate("gate", gate, votes, classes, names, "opens", z * directions)


def _by_covariate(
    size: str,
    sizes: Array,
    votes: Array,
    classes: npt.NDArray[Any],
    names: npt.NDArray[Any],
    effect: str,
    effects: Array,
) -> Any:
    """A row for each component and covariate: what users named are entries, so that no heading can meet another."""
    import pandas as pd

    M, d = effects.shape
    component, covariate = np.repeat(np.arange(M), d), np.tile(np.arange(d), M)
    order = np.lexsort((-np.abs(effects.ravel()), component, -sizes[component]))
    component, covariate = component[order], covariate[order]
    return pd.DataFrame(
        {
            "component": component,
            size: sizes[component].round(3),
            "votes for": classes[np.argmax(votes, axis=0)][component],
            "vote": votes.max(axis=0)[component].round(3),
            "covariate": names[covariate],
            effect: effects[component, covariate].round(3),
        }
    )
