"""What every inference on directions is given: distinct rows, standardised, and their labels."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from plackett.engines import make_engine
from plackett.engines.base import DirectionRows
from plackett.features.normal_scores import knots_of, normal_scores
from plackett.features.standardise import mean_and_scale, standardise
from plackett.model.race import Array

WIDE = 2500  # covariates beyond which, if rows are fewer, principal axes take their place


@dataclass(frozen=True)
class Task:
    """Rows z = (x − mean)/scale in lexicographic order by class; equal rows are one, with the sum of their weights.

    So nothing depends on the order of the rows, and a weight of 2 is two rows, to the last bit.
    """

    Z: Array
    codes: npt.NDArray[np.intp]
    weight: Array
    mean: Array
    scale: Array
    rotation: Array | None  # (d, r): principal axes, where covariates are too many
    rows: Array  # the covariates as they came
    seed: np.random.SeedSequence
    progress: bool = False
    seeded: bool = True  # whether the user chose the seed
    knots: Array | None = None  # of normal scores, if z is made from those
    groups: npt.NDArray[np.intp] | None = None  # rows of one group are held out together
    engine: str = "auto"

    @property
    def n_classes(self) -> int:
        """K."""
        return int(self.codes.max()) + 1

    def prepared(self, dtype: npt.DTypeLike) -> DirectionRows:
        """The rows as the engine holds them, ready for passes: float32 for chains, float64 for modes."""
        return make_engine(self.engine).prepare_directions(self.Z, self.codes, self.weight, dtype)


def make_task(
    X: Array,
    codes: npt.NDArray[np.intp],
    weight: Array | None,
    seed: np.random.SeedSequence,
    progress: bool = False,
    seeded: bool = True,
    groups: npt.NDArray[np.intp] | None = None,
    engine: str = "auto",
) -> Task:
    """Merge equal rows (of one group) and standardise."""
    grouped: Array = np.zeros(len(X)) if groups is None else groups.astype(np.float64)
    found, place = distinct(np.column_stack([codes, X, grouped]))
    rows: Array = found[:, 1:-1].astype(np.float64)
    counted = np.ones(len(X)) if weight is None else weight
    order = np.lexsort((counted, place))  # so that fractions are added in an order of their own
    merged: Array = np.bincount(place[order], weights=counted[order]).astype(np.float64)
    mean, scale = mean_and_scale(rows, merged)
    Z = standardise(rows, mean, scale)
    rotation = principal_axes(Z) if Z.shape[1] > max(len(Z), WIDE) else None
    if rotation is not None:
        Z = Z @ rotation
    kept, labels = None if groups is None else found[:, -1].astype(np.intp), found[:, 0].astype(np.intp)
    return Task(Z, labels, merged, mean, scale, rotation, rows, seed, progress, seeded, groups=kept, engine=engine)


def distinct(table: Array) -> tuple[Array, npt.NDArray[np.intp]]:
    """The distinct rows in lexicographic order, and which of them each row is: `numpy.unique`, and faster.

    Where the first two columns tell all rows apart, the others need not be looked at.
    """
    order = np.lexsort((table[:, 1], table[:, 0]))
    ordered = table[order]
    if (ordered[1:, :2] == ordered[:-1, :2]).all(axis=1).any():
        order = np.lexsort(table.T[::-1])
        ordered = table[order]
    new = np.append(True, (ordered[1:] != ordered[:-1]).any(axis=1))
    place = np.empty(len(table), dtype=np.intp)
    place[order] = np.cumsum(new) - 1
    return ordered[new], place


def with_scores(task: Task) -> Task:
    """The same rows with covariates as normal scores."""
    knots = knots_of(task.rows, task.weight)
    mean, scale = mean_and_scale(normal_scores(task.rows, knots), task.weight)
    return replace(task, Z=standardise(task.rows, mean, scale, None, knots), mean=mean, scale=scale, knots=knots)


def principal_axes(Z: Array) -> Array:
    """(d, r) orthogonal columns that span the rows, of a length that gives z a mean variance of 1.

    The likelihood sees β through Zβ alone and the prior of equal scales is the same on all axes: nothing is lost.
    """
    _, size, axes = np.linalg.svd(Z, full_matrices=False)
    if not size.any():  # rows that are all alike: any axis will do
        return np.eye(Z.shape[1], 1)
    kept = size > 1e-10 * size.max()
    length = np.sqrt(len(Z) * kept.sum() / (size**2).sum())
    rotation: Array = axes[kept].T * length
    return rotation
