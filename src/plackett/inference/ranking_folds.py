"""The shape a of EM on rankings, chosen by the log-likelihood of held-out ones along a warm-started path."""

from __future__ import annotations

import gc
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import check_cv

from plackett.engines.base import Rows
from plackett.inference.em import EM
from plackett.inference.folds import Folds
from plackett.model.draws import mixed
from plackett.model.race import Array, Weights
from plackett.output.progress import tracked

Make = Callable[[npt.NDArray[np.intp], npt.NDArray[np.intp]], tuple[Rows, Rows]]


def folds_of(cv: object, order: npt.NDArray[np.intp], groups: npt.NDArray[np.intp] | None) -> Folds:
    """Rankings to train on and to test on; `order` is canonical, so that their own does not matter.

    Those of one group are held out together.
    """
    n = len(order)
    if not isinstance(cv, (int, np.integer)):
        return list(check_cv(cv).split(np.zeros(n), groups=groups))
    unit = np.empty(n, dtype=np.intp)
    unit[order] = np.arange(n)
    if groups is not None:
        turn = np.argsort(np.argsort(mixed(np.arange(groups.max() + 1, dtype=np.uint64))))
        unit = turn[groups]
    if min(int(cv), unit.max() + 1) < 2:
        raise ValueError(
            f"shape='learn' with EM cross-validates, and needs two folds or more: EM(cv={cv}), {unit.max() + 1} to "
            "deal out. Give a number, for example shape=1."
        )
    fold = unit % int(cv)
    return [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in np.unique(fold)]


def held_out_shape(
    em: EM, shapes: Array, folds: Folds, make: Make, rate: float, progress: bool
) -> tuple[float, dict[float, float]]:
    """The shape that predicts held-out rankings best, and −ln Pr of one, on average, of each shape.

    `make` gives rows to train on and rows to test on; those of one fold are let go before the next is made.
    """
    loss, seen = np.zeros(len(shapes)), 0.0
    for train, test in tracked(folds, progress, "EM, cross-validation"):
        of_fold, n_seen = _of_fold(em, shapes, *make(train, test), rate)
        loss, seen = loss + of_fold, seen + n_seen
        gc.collect()  # a climb and its ascent know each other, and the rows
    loss /= seen
    return float(shapes[np.argmin(loss)]), dict(zip(shapes.tolist(), loss.tolist(), strict=True))


def _of_fold(em: EM, shapes: Array, rows: Rows, others: Rows, rate: float) -> tuple[Array, float]:
    """−ln Pr of all that is held out, of each shape, and how much that is."""
    climbs = em.path(rows, shapes.tolist(), rate=rate)
    there = [others.at(climb.rows.values_of_parameters) for climb in climbs]
    values = [rows.value(Weights.point(climb.log_weights)) for rows, climb in zip(there, climbs, strict=True)]
    return -np.array(values), others.n_seen
