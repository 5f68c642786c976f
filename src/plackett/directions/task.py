"""What every inference on directions is given: distinct rows, standardised, and their labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from plackett.data.observations import Observations
from plackett.directions.density import make_density
from plackett.directions.positions import directions_and_weights, unpacked
from plackett.directions.prior import Prior
from plackett.directions.starts import start
from plackett.directions.walk import walk_on
from plackett.engines.base import RUN, Gradient
from plackett.engines.cupy_directions import mean_votes_on_gpu
from plackett.engines.exponential import ExponentialRows
from plackett.engines.factory import make_engine
from plackett.features.normal_scores import knots_of, normal_scores
from plackett.features.standardise import mean_and_scale, standardise
from plackett.inference.folds import Folds, as_folds, grouped_folds, splits
from plackett.model.diagnostics import probed
from plackett.model.mixture import probabilities
from plackett.model.race import Array
from plackett.posterior.directions import DirectionDraws

ENOUGH = 50_000  # rows that show where to start
WIDE = 2500  # covariates beyond which, if rows are fewer, principal axes take their place


class DirectionTask(Protocol):
    """Observations, each with the weight that it counts: classes of rows, or outcomes of situations."""

    @property
    def n_seen(self) -> float:
        """All observations, each as often as it counts."""
        ...

    @property
    def seed(self) -> np.random.SeedSequence:
        """Of the chains."""
        ...

    @property
    def progress(self) -> bool:
        """Whether to show bars."""
        ...

    @property
    def n_columns(self) -> int:
        """d."""
        ...

    @property
    def n_predicted(self) -> int:
        """Numbers that predict an observation."""
        ...

    @property
    def identity(self) -> tuple[Any, ...]:
        """All that must be the same for a checkpoint to be continued, besides prior and settings."""
        ...

    @property
    def flies(self) -> bool:
        """Whether one pass over the rows of the engine serves several chains."""
        ...

    @property
    def waits(self) -> bool:
        """Whether passes are waited for, as they run elsewhere: chains had better be under way side by side."""
        ...

    def prepared(self, dtype: npt.DTypeLike) -> Gradient:
        """The observations as the engine holds them, ready for passes: float32 for chains, float64 for modes."""
        ...

    def compiled_walk(self, rows: Any, prior: Prior) -> Callable[..., None] | None:
        """What advances a chain on prepared rows without Python; None where threads had better share the rows."""
        ...

    def part(self, some: Any) -> Self:
        """The same with some of the observations: by their numbers, or by what folds say to train on."""
        ...

    def start(self, prior: Prior, rng: np.random.Generator) -> Array:
        """A position for a chain or a climb to begin with."""
        ...

    def unpacked(self, positions: Array, prior: Prior) -> Any:
        """Draws from positions (chain, draw, D)."""
        ...

    def probed(self, draws: Any) -> Array:
        """Probabilities (chain, draw, observation, …) of some observations, by which chains are compared."""
        ...

    def predicted(self, positions: Array, prior: Prior, some: npt.NDArray[Any]) -> Array:
        """What positions (draw, D) say on average of some observations: (n, n_predicted)."""
        ...


class ClassTask(DirectionTask, Protocol):
    """Rows of classes, here or elsewhere."""

    @property
    def here(self) -> Task:
        """Rows that are here: all of them, or some by which to choose, to start, to diagnose and to sum up."""
        ...

    @property
    def n_rows(self) -> int:
        """n."""
        ...

    @property
    def n_classes(self) -> int:
        """K."""
        ...

    @property
    def wide(self) -> bool:
        """Whether covariates outnumber rows."""
        ...

    def dealt(self, n_folds: int) -> Folds:
        """So many folds: what to train on, for `part`, and which of the rows here to predict."""
        ...

    def splits(self, cv: Any) -> Folds:
        """The same as `EM(cv)` has them."""
        ...

    def with_classes_of(self, train: Any) -> tuple[Self, npt.NDArray[np.intp]]:
        """The part to train on with the classes that it has alone, and which these are."""
        ...

    def with_scores(self) -> Self:
        """The same rows with covariates as normal scores."""
        ...


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
    def here(self) -> Task:
        """All rows are."""
        return self

    @property
    def n_rows(self) -> int:
        """n."""
        return len(self.Z)

    @property
    def n_seen(self) -> float:
        """Rows, each as often as it counts."""
        return float(self.weight.sum())

    @property
    def wide(self) -> bool:
        """Whether covariates outnumber rows."""
        return self.Z.shape[1] > len(self.Z)

    @property
    def n_classes(self) -> int:
        """K."""
        return int(self.codes.max()) + 1

    @property
    def n_columns(self) -> int:
        """d."""
        return self.Z.shape[1]

    @property
    def n_predicted(self) -> int:
        """A probability for each class."""
        return self.n_classes

    @property
    def identity(self) -> tuple[Any, ...]:
        """All that the posterior depends on, besides the prior."""
        return self.Z, self.codes, self.weight

    @property
    def flies(self) -> bool:
        """On a GPU."""
        return self.engine == "cupy"

    @property
    def waits(self) -> bool:
        """All rows are here."""
        return False

    def prepared(self, dtype: npt.DTypeLike) -> Gradient:
        """The rows as the engine holds them, ready for passes: float32 for chains, float64 for modes."""
        seen = Observations.of_classes(self.codes, self.n_classes, self.weight)
        return make_engine(self.engine).gradient(self.Z, seen, dtype)

    def compiled_walk(self, rows: Any, prior: Prior) -> Callable[..., None] | None:
        """Chains side by side, unless rows are many or the engine has other plans."""
        if not isinstance(rows, ExponentialRows) or rows.large(len(prior.owner)):
            return None
        return lambda *how: walk_on(make_density(rows.packed, prior), *how)

    def part(self, some: Any) -> Task:
        """The same with some of the rows."""
        return replace(self, Z=self.Z[some], codes=self.codes[some], weight=self.weight[some])

    def with_classes_of(self, train: Any) -> tuple[Task, npt.NDArray[np.intp]]:
        """Some of the rows, whose classes are numbered anew, and which these are."""
        present, codes = np.unique(self.codes[train], return_inverse=True)
        return replace(self.part(train), codes=codes), present

    def dealt(self, n_folds: int) -> Folds:
        """Folds with as many of each class in all."""
        return as_folds(grouped_folds(self.Z, self.codes, self.groups, n_folds))

    def splits(self, cv: Any) -> Folds:
        """So many folds, or what a splitter says."""
        return splits(cv, lambda: self.Z, self.Z, self.codes)

    def with_scores(self) -> Task:
        """The same rows with covariates as normal scores."""
        knots = knots_of(self.rows, self.weight)
        return self.on_scale(*mean_and_scale(normal_scores(self.rows, knots), self.weight), knots)

    def on_scale(self, mean: Array, scale: Array, knots: Array) -> Task:
        """The same rows as normal scores of these knots, with this mean and scale."""
        return replace(self, Z=standardise(self.rows, mean, scale, knots=knots), mean=mean, scale=scale, knots=knots)

    def start(self, prior: Prior, rng: np.random.Generator) -> Array:
        """Sub-classes of each class; on a GPU those of some rows, since it takes a processor longer than a climb."""
        if self.flies and len(self.Z) > ENOUGH:
            return start(self.part(np.linspace(0, len(self.Z) - 1, ENOUGH).astype(np.intp)), prior, rng)
        return start(self, prior, rng)

    def unpacked(self, positions: Array, prior: Prior) -> DirectionDraws:
        """Draws from positions (chain, draw, D)."""
        return unpacked(positions, prior, self.n_columns)

    def probed(self, draws: DirectionDraws) -> Array:
        """Class probabilities of some rows."""
        return probabilities(draws, self.Z[probed(len(self.Z))])

    def predicted(self, positions: Array, prior: Prior, some: npt.NDArray[Any]) -> Array:
        """Class probabilities (n, K)."""
        if self.flies:
            return mean_votes_on_gpu(self.Z[some], *directions_and_weights(positions, prior, self.n_columns)[:2])
        draws, Z = self.unpacked(positions[None], prior), self.Z[some]
        runs = (Z[start : start + RUN] for start in range(0, len(Z), RUN))
        return np.concatenate([probabilities(draws, run).mean(axis=(0, 1)) for run in runs])


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
    rows, labels, merged, kept = merge(X, codes, weight, groups)
    mean, scale = mean_and_scale(rows, merged)
    Z = standardise(rows, mean, scale)
    rotation = principal_axes(Z) if Z.shape[1] > max(len(Z), WIDE) else None
    if rotation is not None:
        Z = Z @ rotation
    return Task(Z, labels, merged, mean, scale, rotation, rows, seed, progress, seeded, groups=kept, engine=engine)


def merge(
    X: Array, codes: npt.NDArray[np.intp], weight: Array | None, groups: npt.NDArray[np.intp] | None = None
) -> tuple[Array, npt.NDArray[np.intp], Array, npt.NDArray[np.intp] | None]:
    """Distinct rows, classes and groups in lexicographic order, and the weight of each."""
    grouped: Array = np.zeros(len(X)) if groups is None else groups.astype(np.float64)
    found, place = distinct(np.column_stack([codes, X, grouped]))
    counted = np.ones(len(X)) if weight is None else weight
    order = np.lexsort((counted, place))  # so that fractions are added in an order of their own
    merged: Array = np.bincount(place[order], weights=counted[order]).astype(np.float64)
    kept = None if groups is None else found[:, -1].astype(np.intp)
    return found[:, 1:-1].astype(np.float64), found[:, 0].astype(np.intp), merged, kept


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
