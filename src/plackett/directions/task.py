"""Task of every inference on directions: observations, covariates of their rows, and where passes run.

The reader of the task holds what differs between classes and situations: `plackett.directions.class_task` and
`plackett.directions.situation_task`. Passes run in this process, or on the workers of a cluster (`Remote`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import numpy.typing as npt

from plackett.data.observations import Observations
from plackett.directions.positions import directions_and_weights
from plackett.directions.prior import Prior
from plackett.directions.settings import LearnedDirections
from plackett.engines.base import Gradient
from plackett.engines.factory import make_engine
from plackett.inference.driver import Source
from plackett.inference.folds import Folds
from plackett.model.mixture import Stacked, normalised
from plackett.model.race import Array
from plackett.responses.base import between_bounds

Numbers = npt.NDArray[np.intp]


class Remote(Protocol):
    """Observations, or a part of them, on the workers of a cluster, which run the passes."""

    @property
    def n_rows(self) -> int:
        """Number of distinct rows, or of situations."""
        ...

    @property
    def n_seen(self) -> float:
        """Total weight of this part."""
        ...

    def identity(self, design: Any) -> tuple[Any, ...]:
        """Return what identifies the data in checkpoints."""
        ...

    def gradient(self, design: Any, dtype: npt.DTypeLike) -> Gradient:
        """Return the passes with the covariates of a design."""
        ...

    def part(self, train: Any) -> tuple[Numbers, Self]:
        """Return the training part of a fold: indices of local observations, and the part on the workers."""
        ...

    def reweighted(self, seen: Observations, rng: np.random.Generator) -> Self:
        """Return the same observations with random weights; `seen` has the weights of those in this process."""
        ...


class Reader(ABC):
    """Differences between classes and situations.

    Attributes
    ----------
    noun : str
        User's word for the observations.
    fold_tolerance : float
        Tolerance per observation of the objective and the gradient of modes that predict a fold.
    mode_tolerance : float
        Tolerance per observation of the objective and the gradient of EM's final mode, if there is only one.
    weakest : float
        Largest σ of EM's path with several components per owner.
    folds_if_wide : int or None
        Number of folds if covariates outnumber observations; None: the same as otherwise.
    error_by_unit : bool
        True if standard errors of held-out losses come from sums over units.
    em_compares_designs : bool
        True if EM compares all designs by cross-validation; False if it uses the first.
    em_skips_constant_rows : bool
        True if EM skips cross-validation if no covariate varies.
    mixes_on_gpu : bool
        True if the weight of the mode and κ are computed on the GPU if passes run there.
    """

    noun: ClassVar[str]
    fold_tolerance: ClassVar[float]
    mode_tolerance: ClassVar[float]
    weakest: ClassVar[float]
    folds_if_wide: ClassVar[int | None]
    error_by_unit: ClassVar[bool]
    em_compares_designs: ClassVar[bool]
    em_skips_constant_rows: ClassVar[bool]
    mixes_on_gpu: ClassVar[bool]

    @property
    @abstractmethod
    def totals(self) -> bool:
        """True if chains have the totals of each group's weights as separate coordinates."""

    @abstractmethod
    def candidates(self, task: Task) -> list[Task]:
        """Return the task with each of its designs, the simplest first."""

    def deciding(self, task: Task, most: int) -> Task:
        """Return the local task with at most `most` observations, which decide for all; units stay together."""
        here = task if task.remote is None else replace(task, remote=None)
        return here if len(here.seen) <= most else here.part(self.some(here, most))

    def some(self, task: Task, most: int) -> Numbers:
        """Return about `most` observations: evenly spaced in an order by their content, or whole units."""
        n = len(task.seen)
        if task.seen.units is None:
            return np.linspace(0, n - 1, min(most, n)).astype(np.intp)
        return self.folds(task, -(-n // most))[0][1]

    @abstractmethod
    def n_units(self, task: Task) -> int:
        """Return the number of units, which decides whether there is enough to hold out."""

    @abstractmethod
    def n_predicted(self, task: Task) -> int:
        """Return the length of a prediction of `predicted`."""

    @abstractmethod
    def identity(self, task: Task) -> tuple[Any, ...]:
        """Return what must be unchanged for a checkpoint to continue, besides prior and settings."""

    @abstractmethod
    def prepared(self, task: Task, dtype: npt.DTypeLike) -> Gradient:
        """Return passes in this process."""

    @abstractmethod
    def precision(self, task: Task) -> npt.DTypeLike:
        """Precision of the passes of chains, if they are compiled or remote."""

    @abstractmethod
    def prior(
        self, task: Task, settings: LearnedDirections, shape: float, components: int | None = None, few: bool = False
    ) -> Prior:
        """Return the prior: owners of components and shapes of the weights; `shape` is for groups that are not owners.

        `few` if there is too little to hold out.
        """

    @abstractmethod
    def starts(self, task: Task, prior: Prior, rngs: Sequence[np.random.Generator]) -> list[Array]:
        """Return a starting position for each generator."""

    @abstractmethod
    def folds(self, task: Task, n_folds: int) -> Folds:
        """Return at most this number of folds."""

    @abstractmethod
    def splits(self, task: Task, cv: Any) -> Folds:
        """Return the folds of `EM(cv)`."""

    @abstractmethod
    def training(self, task: Task, train: Any) -> tuple[Task, Numbers | None]:
        """Return the training part of a fold, and the groups with weights there (None: all)."""

    @abstractmethod
    def predicted(self, task: Task, positions: Array, prior: Prior, some: Numbers) -> Array:
        """Average predictions for some observations (n, n_predicted) over positions (draw, D)."""

    @abstractmethod
    def observed(self, task: Task) -> Numbers | None:
        """Return the observed column of `predicted`, or None for one column, Pr(outcome) over a guess's."""

    @abstractmethod
    def probed(self, task: Task, draws: Stacked, most: int) -> Array:
        """Return probabilities (chain, draw, observation, …) of some observations, for the comparison of chains.

        Returns at most `most` per draw, or those of 20 observations.
        """


def random_weights(seen: Observations, rng: np.random.Generator) -> Array:
    """Draw Gam(c, 1) for an observation with count c, or c·Exp(1), one exponential per unit; scaled to sum to Σ c."""
    counts = seen.weights
    if seen.units is None and (counts == 1).all():
        found: Array = rng.standard_exponential(len(counts))  # the same numbers, faster
    elif seen.units is None:
        found = rng.standard_gamma(counts)
    else:
        found = counts * rng.standard_exponential(int(seen.units.max()) + 1)[seen.units]
    return found * (counts.sum() / found.sum())


@dataclass(frozen=True)
class Task:
    """Observations in an order that depends only on their content, with standardised covariates.

    Attributes
    ----------
    seen : Observations
        Observations in this process: all, or a subset to start, choose, diagnose and summarise with.
    Z : (rows, d) array
        Covariates in the current design: rows of classes, or the rows of situations.
    reader : Reader
        Differences between classes and situations.
    source : Source
        Seed of the chains, its origin, and the setting of progress bars.
    engine : str
        Engine of the passes in this process.
    remote : Remote, optional
        Observations on workers, if these run the passes.
    design : object
        The caller's name for the design.
    """

    seen: Observations
    Z: Array
    reader: Reader
    source: Source
    engine: str = "auto"
    remote: Remote | None = None
    design: Any = None

    @property
    def seed(self) -> np.random.SeedSequence:
        """Seed of the chains."""
        return self.source.seed

    @property
    def progress(self) -> bool:
        """True to show progress bars."""
        return self.source.progress

    @property
    def seeded(self) -> bool:
        """True if the user chose the seed."""
        return self.source.seeded

    @property
    def n_rows(self) -> int:
        """Number of distinct rows, or of situations."""
        return len(self.seen) if self.remote is None else self.remote.n_rows

    @property
    def n_seen(self) -> float:
        """Total count of observations."""
        return float(self.seen.weights.sum()) if self.remote is None else self.remote.n_seen

    @property
    def n_columns(self) -> int:
        """Number of columns d."""
        return self.Z.shape[1]

    @property
    def n_predicted(self) -> int:
        """Length of a prediction of `predicted`."""
        return self.reader.n_predicted(self)

    @property
    def wide(self) -> bool:
        """True if covariates outnumber observations."""
        return self.n_columns > self.n_rows

    @property
    def on_gpu(self) -> bool:
        """True if one pass serves several chains, on the GPU of this process."""
        return self.engine == "cupy"

    @property
    def is_remote(self) -> bool:
        """True if passes run on workers; chains and folds then run concurrently to hide latency."""
        return self.remote is not None

    @property
    def identity(self) -> tuple[Any, ...]:
        """What must be unchanged for a checkpoint to continue, besides prior and settings."""
        return self.reader.identity(self)

    @cached_property
    def local(self) -> Gradient:
        """Passes in this process over its observations, in float64."""
        return make_engine(self.engine).gradient(self.Z, self.seen, np.float64)

    @property
    def precision(self) -> npt.DTypeLike:
        """Precision of the passes of chains, if they are compiled or remote."""
        return self.reader.precision(self)

    def prepared(self, dtype: npt.DTypeLike) -> Gradient:
        """Return prepared rows, in `precision` for chains and in float64 for modes."""
        return self.reader.prepared(self, dtype) if self.remote is None else self.remote.gradient(self.design, dtype)

    def part(self, train: Any) -> Self:
        """Return the task with the training part of a fold."""
        some, remote = (train, None) if self.remote is None else self.remote.part(train)
        Z = self.Z if self.seen.codes is None else self.Z[some]
        return replace(self, seen=self.seen.part(some), Z=Z, remote=remote)

    def reweighted(self, rng: np.random.Generator) -> Self:
        """Return the same observations with random weights, whose expectations are their counts."""
        seen = self.seen.weighted(random_weights(self.seen, rng))
        if self.remote is None:
            return replace(self, seen=seen)
        return replace(self, seen=seen, remote=self.remote.reweighted(seen, rng))

    def starts(self, prior: Prior, rngs: Sequence[np.random.Generator]) -> list[Array]:
        """Return a starting position for each generator."""
        return self.reader.starts(self, prior, rngs)

    def predicted(self, positions: Array, prior: Prior, some: Numbers) -> Array:
        """Average predictions for some observations (n, n_predicted) over positions (draw, D)."""
        return self.reader.predicted(self, positions, prior, some)

    def unpacked(self, positions: Array, prior: Prior) -> Stacked:
        """Return draws from positions (chain, draw, D)."""
        beta, log_weights, scales = directions_and_weights(positions, prior, self.n_columns)
        log_weights = log_weights if self.seen.response.absolute else normalised(log_weights)
        values = between_bounds(positions[..., -prior.parameters :]) if prior.parameters else None
        return Stacked(beta, log_weights, scales, parameters=values)
