"""The shape a of EM by held-out log-loss, where rows are in partitions: the folds of `plackett.inference.folds`.

Rows of a fold are left out of their partitions where they lie; all else is done as for a whole table.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from plackett.cluster.blocks import Recipe, coded, rows_of
from plackett.cluster.fitting import Prepared, prepare
from plackett.cluster.partitions import Partitions, look_at, looked
from plackett.features.mapped import transform
from plackett.inference.em import EM
from plackett.inference.folds import path_of, splits
from plackett.model.race import Array
from plackett.output.progress import tracked
from plackett.output.scores import log_losses
from plackett.posterior.weights import mean_probabilities

Mask = npt.NDArray[np.bool_]


def cross_validated_losses(
    em: EM, client: Any, table: Partitions, data: Prepared, features: Any, progress: bool
) -> tuple[Array, Array]:
    """The shapes of the path, decreasing, and the log-loss of each over all held-out rows."""
    shapes, n = path_of(em), sum(data.sizes)
    codes = np.concatenate([each for each, _ in data.held.each(coded)])
    cuts = np.cumsum(data.sizes)[:-1]
    loss, weight = np.zeros(len(shapes)), 0.0
    folds = splits(em.cv, lambda: data.features, np.empty((n, 0)), codes)
    for train, test in tracked(folds, progress, "EM, cross-validation"):
        inside, outside = (np.split(_mask(n, rows), cuts) for rows in (train, test))
        kept, rest = (_left(data, table, masks) for masks in (inside, outside))
        found = look_at(kept, client)
        if len(found.classes) < 2:
            continue
        factors = data.recipe.factors[np.searchsorted(data.recipe.classes, found.classes)]
        fold = prepare(client, kept, found, features, factors)
        climbs = em.path(fold.rows(), shapes.tolist())
        weights = np.array([np.exp(climb.log_weights) for climb in climbs])
        parts = [(*each, data.recipe, fold.recipe, weights) for each in rest.parts]
        for part_loss, part_weight in looked(client, "held-out", held_out_losses, parts):
            loss, weight = loss + part_loss, weight + part_weight
    if weight == 0:
        raise ValueError("no fold of EM(cv) has two classes to train on; give a number for shape, for example shape=1.")
    return shapes, loss / weight


def _left(data: Prepared, table: Partitions, masks: list[Mask]) -> Partitions:
    """The rows that the masks have, of those that have weight."""
    import dask

    some = dask.delayed(some_of, nout=3)
    parts = [tuple(some(*part, mask)) for part, mask in zip(data.parts, masks, strict=True)]
    return Partitions(parts, table.n_columns, table.names)


def _mask(n: int, rows: npt.NDArray[np.intp]) -> Mask:
    mask = np.zeros(n, dtype=bool)
    mask[rows] = True
    return mask


def some_of(X: Any, y: Any, weight: Any, mask: Mask) -> tuple[Any, Any, Any]:
    """Those rows of a partition, of the ones that have weight, that the mask has."""
    places = np.arange(len(X)) if weight is None else np.flatnonzero(np.asarray(weight))
    places = places[mask]
    return rows_of(X, places), np.asarray(y)[places], None if weight is None else np.asarray(weight)[places]


def held_out_losses(X: Any, y: Any, weight: Any, whole: Recipe, fold: Recipe, weights: Array) -> tuple[Array, float]:
    """Losses (S,) of the rows of a partition under weights (S, K, p), summed, and the weight of these rows."""
    codes = np.searchsorted(whole.classes, np.asarray(y))
    counts = (np.ones(len(codes)) if weight is None else np.asarray(weight)) * whole.factors[codes]
    loss = np.zeros(len(weights))
    if len(codes):
        W = transform(fold.features, X, empty=True)
        present = np.searchsorted(whole.classes, fold.classes)
        for s, each in enumerate(weights):
            probability = np.zeros((len(codes), len(whole.classes)))
            probability[:, present] = mean_probabilities(W, each[None])
            loss[s] = counts @ log_losses(probability, codes)
    return loss, float(counts.sum())
