"""Explanations as tables: contributions of columns to the log-odds of the prediction, or the race of features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from plackett.data.covariates import covariates_of, summed
from plackett.model.race import Array
from plackett.posterior.base import Explanation, FittedModel, Table, around
from plackett.posterior.contributions import Contributions


def reasons(
    model: FittedModel, found: Contributions, k: int, x: Array, reference: tuple[Array, str], prob: float
) -> Explanation:
    """Return contributions of the columns of a row x; `reference` is a row, with its description."""
    columns = covariates_of(model)
    names: Table = {"feature": np.array([column.name for column in columns], dtype=object)}
    told = {
        "class": model._predicted()[k : k + 1].tolist()[0],
        "reference_row": dict(zip(map(str, model._covariates()), reference[0].tolist(), strict=True)),
        "reference_is": reference[1],
    }
    by_column = found._replace(centre=summed(found.centre, columns), draws=summed(found.draws, columns))
    return by_contribution(names, [column.value(x) for column in columns], by_column, told, prob, _certain(model))


def by_contribution(
    names: Table, values: Sequence[Any], found: Contributions, told: dict[str, Any], prob: float, certain: bool
) -> Explanation:
    """Return lines of the columns `names` with their values, largest contribution first; `told` goes to the attributes.

    A certain model has one estimate and no intervals.
    """
    centre = found.centre
    lower, upper = np.full((2, len(centre)), np.nan) if certain else around(centre, found.draws, prob)
    columns = names | {
        "value": np.array(values, dtype=object if any(type(value) is str for value in values) else np.float64),
        "contribution": centre,
        "lower": lower,
        "upper": upper,
    }
    order = np.argsort(-np.abs(centre), kind="stable")
    attributes = told | {"reference": found.reference, "prediction": found.prediction, "prob": prob}
    return Explanation({name: column[order] for name, column in columns.items()}, attributes)


def by_winner(names: Table, shares: Array, prob: float, certain: bool) -> Explanation:
    """Return competitors, with the columns `names`, by their probability (S, …) to win the race, largest first."""
    shares, tail = shares.reshape(len(shares), -1), (1 - prob) / 2
    columns = names | {"probability": shares.mean(axis=0)}
    if not certain:
        lower, upper = np.quantile(shares, [tail, 1 - tail], axis=0)
        columns |= {"lower": lower, "upper": upper}
    order = np.argsort(-columns["probability"], kind="stable")
    return Explanation({name: column[order] for name, column in columns.items()}, {})


def _certain(model: FittedModel) -> bool:
    return model.posterior_.no_interval is not None
