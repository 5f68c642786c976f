"""Interpretation of learned directions: relevance of covariates, and summaries of components."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from plackett.features.gates import Gates
from plackett.model.race import Array

Table = dict[str, npt.NDArray[Any]]

READ = 200  # rows
MOST = 100_000  # rows for the shares of components
UNUSED = 5e-4  # share below which a component counts as unused
NAMED = 3  # covariates of a direction in words


def spread_rows(rows: Array, weight: Array) -> Array:
    """Select enough rows for averages, spread over the data; a row of weight 2 counts as two."""
    up_to = np.cumsum(weight)
    middle = (np.arange(READ) + 0.5) / READ * up_to[-1]
    return rows[np.searchsorted(up_to, middle)]


def gate_shares(gates: Gates, rows: Array) -> Array:
    """Return (S, M): the share of each component of each draw in the gates, over these rows."""
    share = np.concatenate([block.sum(axis=0)[None] for block in gates.chunks(rows)]).sum(axis=0)
    return share / share.sum(axis=1, keepdims=True)


def relevances(gates: Gates, shares: Array) -> Array:
    """Return (S, d): average change of the log-odds between gates per standard deviation of each covariate.

    This is the standard deviation of β_jf over the components j of each draw, weighted by their shares of the gates.
    """
    found = np.empty((len(shares), len(gates.mean)))
    for s, (part, directions) in enumerate(zip(shares, gates.directions, strict=True)):
        beta = gates.along_covariates(directions)
        found[s] = np.sqrt(part @ (beta - part @ beta) ** 2)
    return found


@dataclass(frozen=True)
class ReadableDraw:
    """Draw whose predictions for the training rows are nearest to the average.

    Components have no identity across draws, so they are shown for one draw.

    Attributes
    ----------
    draw : int
        Its position among the predicting draws.
    share : (M,) array
        Share of the gates of each component, over the training rows, or evenly spaced ones if there are many.
    """

    draw: int
    share: Array = field(repr=False)


def readable_draw(probability: Array, gates: Gates, rows: Array, weight: Array) -> ReadableDraw:
    """Select the draw from its probabilities (row, draw, class) and the training rows."""
    distance = np.abs(probability - probability.mean(axis=1, keepdims=True)).mean(axis=(0, 2))
    s, step = int(np.argmin(distance)), -(-len(rows) // MOST)
    return ReadableDraw(s, _share(gates, s, rows[::step], weight[::step]))


def _share(gates: Gates, s: int, X: Array, weight: Array) -> Array:
    """Return the average gates of one draw, (M,)."""
    one = Gates(gates.directions[[s]], gates.offsets[[s]], gates.mean, gates.scale, gates.rotation, gates.knots)
    found, row = np.zeros(gates.offsets.shape[1]), 0
    for block in one.chunks(X):
        found += np.einsum("n,nm->m", weight[row : row + len(block)], block[:, 0])
        row += len(block)
    return found / weight.sum()


def _directions(shown: ReadableDraw, gates: Gates) -> Array:
    """Return directions (M, d) minus their weighted mean: a vector common to all components has no effect."""
    beta = gates.along_covariates(gates.directions[shown.draw])
    return beta - shown.share @ beta


def components(
    shown: ReadableDraw, votes: Array, gates: Gates, classes: npt.NDArray[Any], names: npt.NDArray[Any]
) -> Table:
    """Return a row for each component in use, largest share first, with its direction in words."""
    share, votes, directions = shown.share, votes[shown.draw], _directions(shown, gates)
    component = np.argsort(-share, kind="stable")
    component = component[share[component] >= UNUSED]
    return {
        "component": component,
        "share": share[component].round(3),
        "votes for": classes[np.argmax(votes, axis=0)][component],
        "vote": votes.max(axis=0)[component].round(3),
        "direction": np.array([in_words(directions[j], names) for j in component], dtype=object),
    }


def in_words(direction: Array, names: npt.NDArray[Any]) -> str:
    """Return the covariates along which a component rises or falls most, such as ``proline +1.91, ash −1.39``.

    Examples
    --------
    >>> import numpy as np
    >>> from plackett.features.gate_summary import in_words
    >>> in_words(np.array([0.1, -1.39, 1.91, 0.02, 0.3]), np.array(["age", "ash", "proline", "hue", "size"]))
    'proline +1.91, ash −1.39, size +0.30, …'
    """
    order = np.argsort(-np.abs(direction), kind="stable")
    named = [f"{names[f]} {'−' if direction[f] < 0 else '+'}{abs(direction[f]):.2f}" for f in order[:NAMED]]
    return ", ".join(named + ["…"] * (len(order) > NAMED))
