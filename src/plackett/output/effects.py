"""Average marginal effects: change of class probabilities, averaged over rows, when one column changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from plackett.data.columns import as_frame, is_text, texts
from plackett.data.covariates import Covariate, covariates_of
from plackett.data.model_input import taken
from plackett.data.validation import is_bool, is_whole
from plackett.features import ExpFeatures
from plackett.features.gates import Gates
from plackett.model.race import Array
from plackett.optional import optional
from plackett.output.what_if import Average, a_little, spread_out
from plackett.posterior.base import Setting, for_model, significant

if TYPE_CHECKING:
    import pandas as pd

DIGITS = 3  # significant digits of the largest number of a feature
OTHER = "none of these"  # level of a row whose indicators are all zero


@dataclass(frozen=True)
class Effects:
    """Differences of averages over the rows: (L, K) of the prediction, (S, L, K) of single draws."""

    features: list[str]
    average: Average
    column: list[int]  # position of the column of each feature
    deviation: Array  # standard deviation of each number over the rows, 1 for differences

    @property
    def order(self) -> list[int]:
        """Positions of the features: by the largest effect per standard deviation of their column."""
        size = np.abs(self.average.point * self.deviation[:, None]).max(axis=1, initial=0.0)
        largest = np.zeros(max(self.column, default=-1) + 1)
        np.maximum.at(largest, self.column, size)
        return sorted(range(len(self.features)), key=lambda i: -largest[self.column[i]])

    def table(self, classes: npt.NDArray[Any], prob: float, certain: bool) -> dict[str, npt.NDArray[Any]]:
        """Return the columns of `effects`, by class; without intervals for a point estimate."""
        centre, (lower, upper, positive) = self.average.point, self.average.judged(prob, certain)
        order, per_sd = self.order, significant(centre * self.deviation[:, None], DIGITS)
        size = np.nanmax(np.abs([centre, lower, upper]), axis=(0, 2)) if len(centre) else np.empty(0)
        places = DIGITS - 1 - np.floor(np.log10(np.where(size > 0, size, 1.0))).astype(int)
        L, K = centre.shape
        centre, lower, upper = (_rounded(part, places) for part in (centre, lower, upper))
        return {
            "class": np.repeat(classes, L),
            "feature": np.tile(np.array(self.features, dtype=object)[order], K),
            **{
                name: part[order].T.ravel()
                for name, part in (
                    ("effect", centre),
                    ("lower", lower),
                    ("upper", upper),
                    ("positive", positive),
                    ("effect_per_sd", per_sd),
                )
            },
        }


def _rounded(numbers: Array, places: npt.NDArray[np.intp]) -> Array:
    """Round rows of numbers, each to its number of decimals."""
    rounded = [np.round(row, int(n)) + 0.0 for row, n in zip(numbers, places, strict=True)]  # −0 becomes 0
    return np.array(rounded).reshape(numbers.shape)


def average_effects(model: Any, X: Any) -> Effects:
    """Return effects of all columns of X: numbers per unit, 0/1 as a difference, texts against the usual level."""
    table = Rows.of(model, X)
    features, settings, steps = list[str](), list[Setting](), list[float]()
    places, deviation = list[int](), list[float]()
    for place, column in enumerate(table.columns):
        levels = table.levels(column)
        if levels is None:
            j = column.places[0]
            low, high = table.about(j)
            features.append(column.name)
            settings += [Setting(column.places, low), Setting(column.places, high)]
            steps.append(float((high - low).mean()))
            places.append(place)
            deviation.append(table.deviation(j))
            continue
        base, *others = levels
        for level in others:
            features.append(column.name if column.levels is None else f"{column.name}: {level} vs {base}")
            settings += [table.all_at(column, levels[base]), table.all_at(column, levels[level])]
            steps.append(1.0)
            places.append(place)
            deviation.append(1.0)
    found = Average(*model.posterior_.averages(model, table.some, settings))
    down, up = (Average(found.point[some], found.draws[:, some]) for some in (slice(0, None, 2), slice(1, None, 2)))
    return Effects(features, up.minus(down).over(np.array(steps)[:, None]), places, np.array(deviation))


@dataclass(frozen=True)
class Rows:
    """Table as input of a fitted model, its columns as users know them, and the rows to average over."""

    model: Any
    frame: pd.DataFrame
    some: pd.DataFrame
    columns: list[Covariate]

    @classmethod
    def of(cls, model: Any, X: Any) -> Rows:
        """Convert rows for the model: numbers, a table with known schema, or a data frame for its feature map."""
        pd = optional("pandas", "effects")
        if sparse.issparse(X) or (not hasattr(X, "columns") and np.ndim(X) != 2):
            raise ValueError(
                f"effects are of the columns of a table: expected an array of rows and columns or a data frame, got "
                f"{type(X).__name__}{f' of shape {np.shape(X)}' if np.ndim(X) else ''} instead."
            )
        if len(X) == 0:
            raise ValueError("effects are averages over rows, and X has none; give the rows of the fit, or others.")
        if hasattr(X, "columns"):
            frame = as_frame(taken(model, X))
        else:
            X = np.asarray(X)
            known = X.shape[1] == model.n_features_in_
            frame = pd.DataFrame(X, columns=list(map(str, model._covariates())) if known else None)
        model._rows(for_model(model, frame.iloc[:1]))  # raises for invalid columns
        return cls(model, frame, frame.iloc[spread_out(len(frame))], _columns(model, frame))

    def levels(self, column: Covariate) -> dict[str, tuple[Any, ...]] | None:
        """Return the levels of a column, the reference first; None for a varying number."""
        held = self.frame.iloc[:, list(column.places)]
        if column.levels is None:
            return {"0": (0.0,), "1": (1.0,)} if held.iloc[:, 0].isin([0, 1]).all() else None
        levels = dict(column.levels)
        counts = {level: int((held == list(numbers)).all(axis=1).sum()) for level, numbers in levels.items()}
        if column.usual is None and len(column.places) > 1 and (held == 0).all(axis=1).any():
            levels[OTHER] = (0.0,) * len(column.places)
            counts[OTHER] = int((held == 0).all(axis=1).sum())
        usual = column.usual or max(counts, key=lambda level: counts[level])
        return {usual: levels[usual], **levels}

    def deviation(self, j: int) -> float:
        """Return the standard deviation of a number over the rows."""
        return float(np.asarray(self.frame.iloc[:, j], dtype=np.float64).std())

    def about(self, j: int) -> tuple[Array, Array]:
        """Return a number changed slightly down and up in each row, (n, 1); within the data's range for users' maps."""
        x, some = (np.asarray(part.iloc[:, [j]], dtype=np.float64) for part in (self.frame, self.some))
        h = a_little(x, self.model.posterior_.step(self.model))
        given = not isinstance(getattr(self.model, "features_", None), (ExpFeatures, Gates, type(None)))
        if not given or np.ptp(x) == 0:
            return some - h, some + h
        return np.maximum(some - h, x.min()), np.minimum(some + h, x.max())

    def all_at(self, column: Covariate, numbers: Sequence[Any]) -> Setting:
        """Set all rows to one value or level."""
        kind = np.float64 if all(isinstance(number, (int, float)) for number in numbers) else object
        return Setting(column.places, np.tile(np.array(numbers, dtype=kind), (len(self.some), 1)))

    def find(self, feature: object) -> Covariate:
        """Find a column by name or by position."""
        names = [column.name for column in self.columns]
        if is_whole(feature) and not is_bool(feature) and 0 <= feature < len(names):
            return self.columns[int(feature)]
        if isinstance(feature, str) and feature in names:
            return self.columns[names.index(feature)]
        raise ValueError(
            f"feature must be one of the {len(names)} columns, by name or by position from 0, got {feature!r} instead. "
            f"The columns are {', '.join(names[:10])}{', …' if len(names) > 10 else ''}."
        )


def _columns(model: object, frame: pd.DataFrame) -> list[Covariate]:
    """Group columns of numbers; where a feature map takes texts, these have levels of their own."""
    found = []
    for column in covariates_of(model):
        values = frame.iloc[:, column.places[0]]
        if column.levels is None and is_text(values):
            levels = texts(values).dropna().value_counts().index
            originals = dict(zip(texts(values), values, strict=True))
            found.append(Covariate(column.name, column.places, {level: (originals[level],) for level in levels}))
        else:
            found.append(column)
    return found
