"""The task of every inference on directions: observations, covariates of their rows, and where passes run.

What differs between classes and situations is in the reader of the task: `plackett.directions.class_task` and
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
    """All observations, or a part of them, on the workers of a cluster, which make the passes."""

    @property
    def n_rows(self) -> int:
        """Distinct rows, or situations."""
        ...

    @property
    def n_seen(self) -> float:
        """Total weight of this part."""
        ...

    def identity(self, design: Any) -> tuple[Any, ...]:
        """What distinguishes the fit from others, for checkpoints."""
        ...

    def gradient(self, design: Any, dtype: npt.DTypeLike) -> Gradient:
        """The passes, with the covariates of a design."""
        ...

    def part(self, train: Any) -> tuple[Numbers, Self]:
        """What a fold trains on: numbers of the observations in this process, and the part on the workers."""
        ...

    def reweighted(self, seen: Observations, rng: np.random.Generator) -> Self:
        """The same with random weights; `seen` has those of the observations in this process."""
        ...


class Reader(ABC):
    """What differs between classes and situations.

    Attributes
    ----------
    noun : str
        What the user calls the observations.
    fold_tolerance : float
        Tolerance per observation of the objective and the gradient of modes that predict a fold.
    mode_tolerance : float
        Tolerance per observation of the objective and the gradient of EM's last climb.
    folds_if_wide : int or None
        Folds if covariates outnumber observations; None: as many as otherwise.
    error_by_unit : bool
        Whether standard errors of held-out losses are those of sums over units.
    em_compares_designs : bool
        Whether EM compares all designs by cross-validation, or takes the first.
    em_skips_constant_rows : bool
        Whether EM does without cross-validation if no covariate varies.
    mixes_on_gpu : bool
        Whether the weight of the mode and κ are found on the GPU if passes run there.
    """

    noun: ClassVar[str]
    fold_tolerance: ClassVar[float]
    mode_tolerance: ClassVar[float]
    folds_if_wide: ClassVar[int | None]
    error_by_unit: ClassVar[bool]
    em_compares_designs: ClassVar[bool]
    em_skips_constant_rows: ClassVar[bool]
    mixes_on_gpu: ClassVar[bool]

    @property
    @abstractmethod
    def totals(self) -> bool:
        """Whether chains have the totals of the weights of each group as coordinates of their own."""

    @abstractmethod
    def candidates(self, task: Task) -> list[Task]:
        """The task with each of its designs, the simplest first."""

    def deciding(self, task: Task, most: int) -> Task:
        """The task in this process with at most so many observations, which decide for all; units stay together."""
        here = task if task.remote is None else replace(task, remote=None)
        return here if len(here.seen) <= most else here.part(self.some(here, most))

    def some(self, task: Task, most: int) -> Numbers:
        """About `most` observations: at equal distances in an order by what they hold, or whole units."""
        n = len(task.seen)
        if task.seen.units is None:
            return np.linspace(0, n - 1, min(most, n)).astype(np.intp)
        return self.folds(task, -(-n // most))[0][1]

    @abstractmethod
    def n_units(self, task: Task) -> int:
        """What is counted to decide whether there is enough to hold some out."""

    @abstractmethod
    def n_predicted(self, task: Task) -> int:
        """Numbers that `predicted` gives for an observation."""

    @abstractmethod
    def identity(self, task: Task) -> tuple[Any, ...]:
        """All that must be the same for a checkpoint to be continued, besides prior and settings."""

    @abstractmethod
    def prepared(self, task: Task, dtype: npt.DTypeLike) -> Gradient:
        """Passes in this process."""

    @abstractmethod
    def precision(self, task: Task) -> npt.DTypeLike:
        """Of the passes of chains, if they are compiled or on workers."""

    @abstractmethod
    def prior(
        self, task: Task, settings: LearnedDirections, shape: float, components: int | None = None, few: bool = False
    ) -> Prior:
        """Who owns which component, and the shapes of the weights: `shape` for a group that does not own it.

        `few` if there is too little to hold some out.
        """

    @abstractmethod
    def starts(self, task: Task, prior: Prior, rngs: Sequence[np.random.Generator]) -> list[Array]:
        """A position for each chain or climb to begin with."""

    @abstractmethod
    def folds(self, task: Task, n_folds: int) -> Folds:
        """At most so many folds."""

    @abstractmethod
    def splits(self, task: Task, cv: Any) -> Folds:
        """The folds of `EM(cv)`."""

    @abstractmethod
    def training(self, task: Task, train: Any) -> tuple[Task, Numbers | None]:
        """The part that a fold trains on, and which groups have weights there; None: all."""

    @abstractmethod
    def predicted(self, task: Task, positions: Array, prior: Prior, some: Numbers) -> Array:
        """Average over positions (draw, D) of what they predict for some observations, (n, n_predicted)."""

    @abstractmethod
    def observed(self, task: Task) -> Numbers | None:
        """The column of `predicted` that was observed; None if there is one column, Pr(outcome) over a guess's."""

    @abstractmethod
    def probed(self, task: Task, draws: Stacked, most: int) -> Array:
        """Probabilities (chain, draw, observation, …) of some observations, by which chains are compared.

        At most so many of each draw, or those of 20 observations.
        """


def random_weights(seen: Observations, rng: np.random.Generator) -> Array:
    """Gam(c, 1) for an observation that counts c times, c·Exp(1) for all of one unit, scaled to sum to Σ c."""
    counts = seen.weights
    if seen.units is None:
        found: Array = rng.standard_gamma(counts)
    else:
        found = counts * rng.standard_exponential(int(seen.units.max()) + 1)[seen.units]
    return found * (counts.sum() / found.sum())


@dataclass(frozen=True)
class Task:
    """Observations in an order that depends on what they hold, with their covariates, standardised.

    Attributes
    ----------
    seen : Observations
        Those in this process: all, or some by which to start, to choose, to diagnose and to sum up.
    Z : (rows, d) array
        Covariates in the design that is looked at: a row for each class, or those that situations refer to.
    reader : Reader
        What differs between classes and situations.
    source : Source
        Seed of the chains, whether the user chose it, and whether to show progress bars.
    engine : str
        Of the passes in this process.
    remote : Remote, optional
        The observations on workers, if these make the passes.
    design : object
        What the caller calls the design.
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
        """Of the chains."""
        return self.source.seed

    @property
    def progress(self) -> bool:
        """Whether to show bars."""
        return self.source.progress

    @property
    def seeded(self) -> bool:
        """Whether the user chose the seed."""
        return self.source.seeded

    @property
    def n_rows(self) -> int:
        """Distinct rows, or situations."""
        return len(self.seen) if self.remote is None else self.remote.n_rows

    @property
    def n_seen(self) -> float:
        """Observations, each as often as it counts."""
        return float(self.seen.weights.sum()) if self.remote is None else self.remote.n_seen

    @property
    def n_columns(self) -> int:
        """d."""
        return self.Z.shape[1]

    @property
    def n_predicted(self) -> int:
        """Numbers that `predicted` gives for an observation."""
        return self.reader.n_predicted(self)

    @property
    def wide(self) -> bool:
        """Whether covariates outnumber observations."""
        return self.n_columns > self.n_rows

    @property
    def on_gpu(self) -> bool:
        """Whether one pass serves several chains, on the GPU of this process."""
        return self.engine == "cupy"

    @property
    def is_remote(self) -> bool:
        """True if passes run on workers; chains and folds then run concurrently to hide latency."""
        return self.remote is not None

    @property
    def identity(self) -> tuple[Any, ...]:
        """All that must be the same for a checkpoint to be continued, besides prior and settings."""
        return self.reader.identity(self)

    @cached_property
    def local(self) -> Gradient:
        """Passes in this process over the observations in it, in doubles."""
        return make_engine(self.engine).gradient(self.Z, self.seen, np.float64)

    @property
    def precision(self) -> npt.DTypeLike:
        """Of the passes of chains, if they are compiled or on workers."""
        return self.reader.precision(self)

    def prepared(self, dtype: npt.DTypeLike) -> Gradient:
        """Ready for passes, in `precision` for chains and in doubles for modes."""
        return self.reader.prepared(self, dtype) if self.remote is None else self.remote.gradient(self.design, dtype)

    def part(self, train: Any) -> Self:
        """The same with what a fold trains on."""
        some, remote = (train, None) if self.remote is None else self.remote.part(train)
        Z = self.Z if self.seen.codes is None else self.Z[some]
        return replace(self, seen=self.seen.part(some), Z=Z, remote=remote)

    def reweighted(self, rng: np.random.Generator) -> Self:
        """The same observations with random weights, whose expectations are their counts."""
        seen = self.seen.weighted(random_weights(self.seen, rng))
        if self.remote is None:
            return replace(self, seen=seen)
        return replace(self, seen=seen, remote=self.remote.reweighted(seen, rng))

    def starts(self, prior: Prior, rngs: Sequence[np.random.Generator]) -> list[Array]:
        """A position for each chain or climb to begin with."""
        return self.reader.starts(self, prior, rngs)

    def predicted(self, positions: Array, prior: Prior, some: Numbers) -> Array:
        """Average over positions (draw, D) of what they predict for some observations, (n, n_predicted)."""
        return self.reader.predicted(self, positions, prior, some)

    def unpacked(self, positions: Array, prior: Prior) -> Stacked:
        """Draws from positions (chain, draw, D)."""
        beta, log_weights, scales = directions_and_weights(positions, prior, self.n_columns)
        log_weights = log_weights if self.seen.response.absolute else normalised(log_weights)
        values = between_bounds(positions[..., -prior.parameters :]) if prior.parameters else None
        return Stacked(beta, log_weights, scales, parameters=values)
