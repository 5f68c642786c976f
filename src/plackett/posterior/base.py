"""What is asked of every posterior, so that nobody has to ask which one it is.

A posterior predicts rows and tells about itself; where it needs names or settings it is given the fitted model. What
one cannot do it says in a sentence, `no_interval` and the like, which is None where it can.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from plackett.model.diagnostics import Diagnostics
from plackett.model.race import Array

Table = dict[str, npt.NDArray[Any]]  # columns by their names
Codes = npt.NDArray[np.intp]
NO_CHAINS = "only a sampler leaves draws of a Markov chain; fit with inference='gibbs'."
DRAWS = 400  # under which averages over rows are kept, at the most


@dataclass(frozen=True)
class Estimates:
    """The numbers (K, p) that a model is read by, each the `statistic` of its draws.

    `kind` is what they are called, `meaning` what they mean and `reading` the same at length, `measured` are ESS and
    R-hat, and `decimals` is how many are worth reading.
    """

    kind: str
    meaning: str
    reading: str
    names: npt.NDArray[Any]
    statistic: str
    centre: Array
    mean: Array
    draws: Array | None
    active: Array
    measured: tuple[Array, Array] | None
    decimals: int

    @property
    def order(self) -> npt.NDArray[np.intp]:
        """Places in the flattened arrays, the largest first, without those that are exactly zero."""
        size = np.abs(self.centre.ravel())
        order = np.lexsort((-np.abs(self.mean.ravel()), -size.round(self.decimals)))
        return order[size[order] > 0]

    def table(self, labels: tuple[str, npt.NDArray[Any]], prob: float) -> Table:
        """The columns of a summary with intervals of this probability, the largest first.

        `labels` are those of the K, after what they are called.
        """
        tail, (K, p) = (1 - prob) / 2, self.centre.shape
        numbers: Table = {self.statistic: self.centre.round(self.decimals)}
        if self.draws is not None:
            lower, upper = np.quantile(self.draws, [tail, 1 - tail], axis=0).round(self.decimals)
            numbers |= {f"{100 * tail:g}%": lower, f"{100 * (1 - tail):g}%": upper, "active": self.active.round(2)}
        if self.measured is not None:
            ess, rhat = self.measured
            numbers |= {"ess": ess.round().astype(int), "rhat": rhat.round(2)}
        columns = {labels[0]: np.repeat(labels[1][:K], p), "feature": np.tile(self.names, K)}
        columns |= {name: value.ravel() for name, value in numbers.items()}
        places = np.append(self.order, np.setdiff1d(np.arange(K * p), self.order))
        return {name: column[places] for name, column in columns.items()}


class Variables(NamedTuple):
    """Draws (chain, draw, …) by name, the dimensions of each after chain and draw, and labels along dimensions."""

    values: dict[str, Array]
    dims: dict[str, list[str]]
    coords: Table


class Explanation(NamedTuple):
    """Why one row is predicted as it is: the columns of a table, and what belongs to it as a whole, by name."""

    columns: Table
    attributes: dict[str, Any]


class Setting(NamedTuple):
    """Columns of a table, and values (n, columns) that its rows are to have there."""

    places: tuple[int, ...]
    values: npt.NDArray[Any]


class Quantities(NamedTuple):
    """What can be followed along the chains: `scalars` by name, each a title and (chain, draw), and a table.

    The table is (chain, draw, K, p), with `names` of the last axis and a `title` before those of class and feature.
    `ess` (K, p) is that of the table and `scalar_ess` that of the first scalar, where they are known.
    """

    scalars: dict[str, tuple[str, Array]]
    title: str = ""
    table: Array | None = None
    names: npt.NDArray[Any] = np.empty(0, dtype=object)
    ess: Array | None = None
    scalar_ess: float = np.nan


class FittedModel(Protocol):
    """What any posterior reads of the model that it belongs to; some read more, which they declare."""

    posterior_: Posterior[Any]
    classes_: npt.NDArray[Any]
    diagnostics_: Diagnostics | None
    trace_: Array
    n_iter_: int
    n_features_in_: int

    def _labels(self) -> tuple[str, npt.NDArray[Any]]:
        """What has weights, in a word, and their labels."""

    def _predicted(self) -> npt.NDArray[Any]:
        """Labels of what is predicted."""

    def _covariates(self) -> npt.NDArray[np.object_]:
        """Names of the covariates."""

    def _rows(self, X: Any) -> Any:
        """New rows, checked, as the posterior takes them."""


M = TypeVar("M", bound=FittedModel)


class Posterior(ABC, Generic[M]):
    """What a fit leaves behind."""

    model_name: ClassVar[str]  # whose posterior this is, in a sentence
    no_interval: ClassVar[str | None] = None
    no_chains: ClassVar[str | None] = None
    no_estimates: ClassVar[str | None] = None
    no_race: ClassVar[str | None] = None
    no_contributions: ClassVar[str | None] = None
    drawn: ClassVar[tuple[str, ...]] = ()  # attributes with draws (chain, draw, …), or posteriors that have some

    def thinned(self, step: int) -> Self:
        """The same with the first draw of each chain and every `step`-th after it."""
        parts = {name: value for name in self.drawn if (value := getattr(self, name)) is not None}
        thin = {n: part[:, ::step] if isinstance(part, np.ndarray) else part.thinned(step) for n, part in parts.items()}
        found: Self = replace(self, **thin)  # type: ignore[type-var]
        return found

    @property
    @abstractmethod
    def shape_of_estimate(self) -> tuple[int, int]:
        """(K, p) of the weights or coefficients that are read and stored beside this."""

    @abstractmethod
    def probabilities(self, rows: Any) -> Iterator[Array]:
        """Class probabilities (rows, S, K) of runs of rows under every draw."""

    def predict(self, rows: Any) -> Array:
        """Class probabilities (n, K), averaged over the draws."""
        return averaged(self.probabilities(rows))

    def interval(self, rows: Any, prob: float) -> tuple[Array, Array]:
        """Equal-tailed credible interval of each class probability, two arrays (n, K)."""
        refuse(self.no_interval)
        return equal_tailed(self.probabilities(rows), prob)

    def log_predictive(self, rows: Any) -> Iterator[Array]:
        """Logarithms (rows, S, K) of what each draw of the chains makes of the prediction of runs of rows."""
        for block in self.probabilities(rows):
            with np.errstate(divide="ignore"):
                yield np.log(block)

    def log_values(self, rows: Any, seen: Any) -> Array:
        """ln Pr (S, n) of outcomes that are no labels, under every draw of the chains."""
        raise NotImplementedError

    def averages(self, model: M, X: Any, settings: Sequence[Setting]) -> tuple[Array, Array]:
        """If rows were set so: means over the rows of what is predicted, (C, K), and under single draws, (S, C, K).

        X is a pandas data frame that the model takes; settings may be made of it. Draws are at most some hundred.
        """
        point, draws = [], []
        for places, values in settings:
            moved = X.copy()
            for j, column in zip(places, values.T, strict=True):
                moved.isetitem(j, column)
            blocks = self.probabilities(model._rows(for_model(model, moved)))
            mean = np.sum([block.sum(axis=0) for block in blocks], axis=0) / len(X)
            point.append(mean.mean(axis=0))
            draws.append(mean[np.linspace(0, len(mean) - 1, min(len(mean), DRAWS)).round().astype(np.intp)])
        return np.array(point), np.stack(draws, axis=1)

    def step(self, model: M) -> float:
        """By how much of its deviation a number is moved to see what this does to predictions."""
        return 0.01

    @abstractmethod
    def size(self, model: M) -> str:
        """How large the model is, and its prior, in a line."""

    @abstractmethod
    def verdict(self, model: M) -> tuple[bool | None, str]:
        """Whether the fit may be trusted (None: it cannot be told), and what came out of it."""

    def estimates(self, model: M) -> Estimates:
        """What `summary` lists and `plots.weights` draws."""
        raise ValueError(self.no_estimates)

    def table(self, model: M, prob: float) -> Table:
        """The columns of `summary`."""
        return self.estimates(model).table(model._labels(), prob)

    def largest(self, model: M, n: int) -> tuple[str, Table]:
        """What matters most: its name, and the first rows of the summary without weights that are zero."""
        found = self.estimates(model)
        n = min(n, len(found.order))
        columns = found.table(model._labels(), 0.9)
        return f"largest {found.kind}", {name: column[:n] for name, column in columns.items()}

    def wins(self, row: Any) -> tuple[Codes, Array]:
        """Which features compete in one row (1, p), and Pr(C=j, Y=k | x) of them under every draw, (S, K, …)."""
        raise ValueError(self.no_race)

    @abstractmethod
    def explain(self, model: M, row: Any, prob: float) -> Explanation:
        """What `explain` says of one row: its race, or what columns contribute where no feature has a name."""

    def variables(self, model: M, raw: bool) -> Variables:
        """Draws that are identified without any row, for ArviZ; if raw, also those that are not."""
        raise ValueError(self.no_chains)

    def quantities(self, model: M) -> Quantities:
        """What the plots of chains can show."""
        raise ValueError(self.no_chains)


class RacePosterior(Posterior[M]):
    """What a fit of the weights of a race leaves behind."""

    model_name = "Plackett–Luce regression"
    weights: Array  # (K, p): one estimate of the normalised weights; they sum to 1

    @abstractmethod
    def rows(self, features: Any, X: Any) -> Any:
        """Rows of checked covariates, seen through the fitted feature map, as the other methods take them."""

    @property
    def shape_of_estimate(self) -> tuple[int, int]:
        """(K, p)."""
        K, p = self.weights.shape
        return K, p


def refuse(sentence: str | None) -> None:
    """Say why something cannot be had, if there is a reason."""
    if sentence is not None:
        raise ValueError(sentence)


def averaged(blocks: Iterable[Array]) -> Array:
    """Mean over the draws of blocks (rows, S, K)."""
    return np.concatenate([block.mean(axis=1) for block in blocks])


def equal_tailed(blocks: Iterable[Array], prob: float) -> tuple[Array, Array]:
    """Interval over the draws of blocks (rows, S, K) with equal probability on either side."""
    tail = (1 - prob) / 2
    lower, upper = np.concatenate([np.quantile(block, [tail, 1 - tail], axis=1) for block in blocks], axis=1)
    return lower, upper


def around(centre: Array, draws: Array, prob: float, axis: int = 0) -> tuple[Array, Array]:
    """Equal-tailed interval over the draws, widened to hold an estimate that need not be their average."""
    tail = (1 - prob) / 2
    lower, upper = np.quantile(draws, [tail, 1 - tail], axis=axis)
    return np.fmin(lower, centre), np.fmax(upper, centre)


def positive(draws: Array, axis: int = 0) -> Array:
    """The probability of being above 0, rounded."""
    found: Array = ((draws > 0) + (draws == 0) / 2).mean(axis=axis).round(3)
    return found


def for_model(model: FittedModel, frame: Any) -> Any:
    """Rows of a data frame under their names where the model knows names, else as an array."""
    return frame if hasattr(model, "feature_names_in_") else frame.to_numpy()


def significant(numbers: Array, digits: int = 4) -> Array:
    """Rounded to so many digits, each by itself."""
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.where((numbers != 0) & np.isfinite(numbers), np.floor(np.log10(np.abs(numbers))), 0.0)
    factor = 10.0 ** (digits - 1 - size)
    rounded: Array = np.round(numbers * factor) / factor + 0.0
    return rounded


def objects(labels: Any) -> npt.NDArray[np.object_]:
    """Labels of any kind as an array of objects."""
    found = np.empty(len(labels), dtype=object)
    found[:] = list(labels)
    return found
