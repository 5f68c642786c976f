"""Protocol of all posteriors, so that no caller needs to know the type of posterior.

A posterior predicts rows and describes itself; where it needs names or settings it receives the fitted model. For what
it cannot do it has a sentence, such as `no_interval`, which is None if it can.
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

Table = dict[str, npt.NDArray[Any]]  # columns by name
Codes = npt.NDArray[np.intp]
NO_CHAINS = "only a sampler leaves draws of a Markov chain; fit with inference='gibbs'."
DRAWS = 400  # maximum number of draws for averages over rows


@dataclass(frozen=True)
class Estimates:
    """Readable numbers (K, p) of a model, each the `statistic` of its draws.

    `kind` is their name, `meaning` their short and `reading` their long description, `measured` are ESS and R-hat, and
    `decimals` is the number of digits to show.
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
        """Positions in the flattened arrays, largest first, without exact zeros."""
        size = np.abs(self.centre.ravel())
        order = np.lexsort((-np.abs(self.mean.ravel()), -size.round(self.decimals)))
        return order[size[order] > 0]

    def table(self, labels: tuple[str, npt.NDArray[Any]], prob: float) -> Table:
        """Return the columns of a summary with intervals of this probability, largest first.

        `labels` is the name of the K groups, followed by their labels.
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
    """Draws (chain, draw, …) by name, their dimensions after chain and draw, and labels along dimensions."""

    values: dict[str, Array]
    dims: dict[str, list[str]]
    coords: Table


class Explanation(NamedTuple):
    """Explanation of the prediction of one row: the columns of a table, and attributes of the whole by name."""

    columns: Table
    attributes: dict[str, Any]


class Setting(NamedTuple):
    """Columns of a table, and the values (n, columns) to set there."""

    places: tuple[int, ...]
    values: npt.NDArray[Any]


class Quantities(NamedTuple):
    """Quantities to follow along the chains: `scalars` by name, each a title and (chain, draw), and a table.

    The table is (chain, draw, K, p), with `names` of the last axis and a `title` for the combination of class and
    feature. `ess` (K, p) belongs to the table and `scalar_ess` to the first scalar, where they are known.
    """

    scalars: dict[str, tuple[str, Array]]
    title: str = ""
    table: Array | None = None
    names: npt.NDArray[Any] = np.empty(0, dtype=object)
    ess: Array | None = None
    scalar_ess: float = np.nan


class FittedModel(Protocol):
    """What any posterior reads of its model; some declare more."""

    posterior_: Posterior[Any]
    classes_: npt.NDArray[Any]
    diagnostics_: Diagnostics | None
    trace_: Array
    n_iter_: int
    n_features_in_: int

    def _labels(self) -> tuple[str, npt.NDArray[Any]]:
        """Return the name of what has weights, and its labels."""

    def _predicted(self) -> npt.NDArray[Any]:
        """Labels of the predictions."""

    def _covariates(self) -> npt.NDArray[np.object_]:
        """Names of the covariates."""

    def _rows(self, X: Any) -> Any:
        """Check new rows and convert them for the posterior."""


M = TypeVar("M", bound=FittedModel)


class Posterior(ABC, Generic[M]):
    """Posterior of a fitted model."""

    model_name: ClassVar[str]  # name of the model in sentences
    no_interval: ClassVar[str | None] = None
    no_chains: ClassVar[str | None] = None
    no_estimates: ClassVar[str | None] = None
    no_race: ClassVar[str | None] = None
    no_contributions: ClassVar[str | None] = None
    unit: ClassVar[str] = ""  # sentence on the numbers of `summary`
    drawn: ClassVar[tuple[str, ...]] = ()  # attributes with draws (chain, draw, …), or nested posteriors

    def thinned(self, step: int) -> Self:
        """Keep the first draw of each chain and every `step`-th after it."""
        parts = {name: value for name in self.drawn if (value := getattr(self, name)) is not None}
        thin = {n: part[:, ::step] if isinstance(part, np.ndarray) else part.thinned(step) for n, part in parts.items()}
        found: Self = replace(self, **thin)  # type: ignore[type-var]
        return found

    @property
    @abstractmethod
    def shape_of_estimate(self) -> tuple[int, int]:
        """Shape (K, p) of the readable and stored weights or coefficients."""

    @abstractmethod
    def probabilities(self, rows: Any) -> Iterator[Array]:
        """Yield class probabilities (rows, S, K) of runs of rows under every draw."""

    def predict(self, rows: Any) -> Array:
        """Return class probabilities (n, K), averaged over the draws."""
        return averaged(self.probabilities(rows))

    def interval(self, rows: Any, prob: float) -> tuple[Array, Array]:
        """Return equal-tailed credible intervals of each class probability, two arrays (n, K)."""
        refuse(self.no_interval)
        return equal_tailed(self.probabilities(rows), prob)

    def log_predictive(self, rows: Any) -> Iterator[Array]:
        """Yield logarithms (rows, S, K) of each draw's contribution to predictions, for runs of rows."""
        for block in self.probabilities(rows):
            with np.errstate(divide="ignore"):
                yield np.log(block)

    def log_values(self, rows: Any, seen: Any) -> Array:
        """Return ln Pr (S, n) of outcomes that are not labels, under every draw of the chains."""
        raise NotImplementedError

    def averages(self, model: M, X: Any, settings: Sequence[Setting]) -> tuple[Array, Array]:
        """Average predictions over rows after setting columns: overall (C, K), and under single draws (S, C, K).

        X is a pandas data frame accepted by the model; settings may contain copies of it. At most some hundred draws
        are used.
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
        """Step, in standard deviations of a number, for numerical effects on predictions."""
        return 0.01

    @abstractmethod
    def size(self, model: M) -> str:
        """Describe the size of the model and its prior in one line."""

    @abstractmethod
    def verdict(self, model: M) -> tuple[bool | None, str]:
        """Return whether the fit may be trusted (None: unknown), and a sentence."""

    def estimates(self, model: M) -> Estimates:
        """Return what `summary` lists and `plots.weights` draws."""
        raise ValueError(self.no_estimates)

    def table(self, model: M, prob: float) -> Table:
        """Return the columns of `summary`."""
        return self.estimates(model).table(model._labels(), prob)

    def largest(self, model: M, n: int) -> tuple[str, Table]:
        """Return a title, and the first rows of the summary without zero weights."""
        found = self.estimates(model)
        n = min(n, len(found.order))
        columns = found.table(model._labels(), 0.9)
        return f"largest {found.kind}", {name: column[:n] for name, column in columns.items()}

    def wins(self, row: Any) -> tuple[Codes, Array]:
        """Return the competing features of one row (1, p), and their Pr(C=j, Y=k | x) under every draw, (S, K, …)."""
        raise ValueError(self.no_race)

    @abstractmethod
    def explain(self, model: M, row: Any, prob: float) -> Explanation:
        """Explain one row: its race, or the contributions of columns if features have no names."""

    def variables(self, model: M, raw: bool) -> Variables:
        """Return draws that are identified without rows, for ArviZ; if raw, also unidentified ones."""
        raise ValueError(self.no_chains)

    def quantities(self, model: M) -> Quantities:
        """Return what the plots of chains can show."""
        raise ValueError(self.no_chains)


class RacePosterior(Posterior[M]):
    """Posterior of the weights of a race."""

    model_name = "Plackett–Luce regression"
    weights: Array  # (K, p): estimate of the normalised weights, which sum to 1

    @abstractmethod
    def rows(self, features: Any, X: Any) -> Any:
        """Transform rows of checked covariates by the fitted feature map, for the other methods."""

    @property
    def shape_of_estimate(self) -> tuple[int, int]:
        """(K, p)."""
        K, p = self.weights.shape
        return K, p


def refuse(sentence: str | None) -> None:
    """Raise ValueError with this sentence, unless it is None."""
    if sentence is not None:
        raise ValueError(sentence)


def averaged(blocks: Iterable[Array]) -> Array:
    """Average blocks (rows, S, K) over the draws."""
    return np.concatenate([block.mean(axis=1) for block in blocks])


def equal_tailed(blocks: Iterable[Array], prob: float) -> tuple[Array, Array]:
    """Equal-tailed interval over the draws of blocks (rows, S, K)."""
    tail = (1 - prob) / 2
    lower, upper = np.concatenate([np.quantile(block, [tail, 1 - tail], axis=1) for block in blocks], axis=1)
    return lower, upper


def around(centre: Array, draws: Array, prob: float, axis: int = 0) -> tuple[Array, Array]:
    """Equal-tailed interval over the draws, widened to contain an estimate that may not be their average."""
    tail = (1 - prob) / 2
    lower, upper = np.quantile(draws, [tail, 1 - tail], axis=axis)
    return np.fmin(lower, centre), np.fmax(upper, centre)


def mean_and_bounds(draws: Array, prob: float) -> Table:
    """Return columns ``mean``, ``lower`` and ``upper`` of draws (S, n); NaN for the interval of a single estimate."""
    tail = (1 - prob) / 2
    lower, upper = np.full((2, draws.shape[1]), np.nan)
    if len(draws) > 1:
        lower, upper = np.quantile(draws, [tail, 1 - tail], axis=0)
    return {"mean": draws.mean(axis=0), "lower": lower, "upper": upper}


def positive(draws: Array, axis: int = 0) -> Array:
    """Probability of being above 0, rounded."""
    found: Array = ((draws > 0) + (draws == 0) / 2).mean(axis=axis).round(3)
    return found


def for_model(model: FittedModel, frame: Any) -> Any:
    """Return rows of a data frame with their names if the model knows names, else as an array."""
    return frame if hasattr(model, "feature_names_in_") else frame.to_numpy()


def significant(numbers: Array, digits: int = 4) -> Array:
    """Round each number to so many significant digits."""
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.where((numbers != 0) & np.isfinite(numbers), np.floor(np.log10(np.abs(numbers))), 0.0)
    factor = 10.0 ** (digits - 1 - size)
    found: Array = np.round(numbers * factor) / factor + 0.0
    return found


def rounded(table: Table) -> Table:
    """Round the columns of fractions."""
    return {name: significant(column) if column.dtype.kind == "f" else column for name, column in table.items()}


def objects(labels: Any) -> npt.NDArray[np.object_]:
    """Return labels of any kind as an array of objects."""
    found = np.empty(len(labels), dtype=object)
    found[:] = list(labels)
    return found
