"""Rows of a partition for learned directions, on a worker: raw covariates, classes, weights and keys.

The key of a row is a function of its content. It determines the fold, and whether the row comes to the client, so that
neither depends on the division of rows among workers.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from plackett.cluster.class_parts import ClassPart, ClassRecipe
from plackett.cluster.client import Versions, check_versions
from plackett.cluster.held import address_here
from plackett.cluster.moments import Moments, moments_of
from plackett.cluster.parts import Codes
from plackett.cluster.storage import Block
from plackett.directions.class_task import merge
from plackett.features.normal_scores import normal_scores
from plackett.model.draws import STEP, mixed
from plackett.model.race import Array

Keys = npt.NDArray[np.uint64]


class Observed(Block):
    """Distinct rows of a partition."""

    def __init__(self, rows: Array, codes: Codes, weight: Array):
        self.rows, self.codes, self.weight = rows, codes, weight
        self.key = keys_of(rows, codes)


def keys_of(rows: Array, codes: Codes) -> Keys:
    """Return 64 uniform bits for each row and its class."""
    step = np.uint64(STEP)
    key: Keys = mixed(codes.astype(np.uint64) + step)
    for column in rows.T:
        key = mixed((key ^ (column + 0.0).view(np.uint64)) + step)  # −0 is 0
    return key


def observe(part: ClassPart, recipe: ClassRecipe, here: Versions) -> Observed:
    """Return the rows of a partition with positive weight."""
    check_versions(here, address_here())
    counted = part.counted(recipe)
    return observed(counted.numbers, counted.codes, counted.weight)


def observed(X: Array, codes: Codes, weight: Array | None) -> Observed:
    """Merge equal rows, with the sum of their weights."""
    rows, codes, counts, _ = merge(X, codes, weight)
    return Observed(rows, codes, counts).settled()


class Tally(NamedTuple):
    """Number of rows, total weight and smallest key per class, up to the last class in the block."""

    n_columns: int
    rows: Codes
    weight: Array
    least: Keys


def tally(block: Observed) -> Tally:
    """Return number of columns, and number of rows, total weight and smallest key per class in this block."""
    least = np.full(block.codes.max() + 1, np.iinfo(np.uint64).max, dtype=np.uint64)
    np.minimum.at(least, block.codes, block.key)
    return Tally(
        block.rows.shape[1], np.bincount(block.codes), np.bincount(block.codes, block.weight).astype(np.float64), least
    )


def some_rows(block: Observed, limits: Keys) -> tuple[Array, Codes, Array]:
    """Return rows, classes and weights of the rows whose key is within the limit of their class."""
    some = block.key <= limits[block.codes]
    return block.rows[some], block.codes[some], block.weight[some]


def weights_by_fold(block: Observed, n_folds: int, n_classes: int) -> Array:
    """Return weights (fold, class)."""
    place = folds_of(block.key, n_folds) * n_classes + block.codes
    found: Array = np.bincount(place, block.weight, n_folds * n_classes).astype(np.float64)
    return found.reshape(n_folds, n_classes)


def folds_of(key: Keys, n_folds: int) -> Codes:
    """Return the fold of each row."""
    return (key % np.uint64(n_folds)).astype(np.intp)


def moments(block: Observed, knots: Array | None) -> tuple[Moments, Array, Array]:
    """Return moments of the covariates or their normal scores, with minima and maxima."""
    values = block.rows if knots is None else normal_scores(block.rows, knots)
    return moments_of(values, block.weight), values.min(axis=0), values.max(axis=0)


def masses(block: Observed, values: Array) -> Array:
    """Return (2, d, m): the weight of rows with covariates below, and equal to, each of these values (d, m)."""
    found = np.empty((2, *values.shape))
    for f, (column, asked) in enumerate(zip(block.rows.T, values, strict=True)):
        order = np.argsort(column, kind="stable")
        up_to, x = np.append(0.0, np.cumsum(block.weight[order])), column[order]
        below, beyond = (up_to[np.searchsorted(x, asked, side)] for side in ("left", "right"))
        found[:, f] = below, beyond - below
    return found


def identity(block: Observed) -> str:
    """Return a digest of all data of a block."""
    found = hashlib.sha256()
    for part in (block.rows, block.codes, block.weight):
        found.update(np.ascontiguousarray(part))  # type: ignore[arg-type]
    return found.hexdigest()
