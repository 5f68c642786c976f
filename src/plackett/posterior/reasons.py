"""Why a row is predicted as it is, as a table: what each column contributes to the log-odds of what is predicted."""

from __future__ import annotations

from typing import Any

import numpy as np

from plackett.data.covariates import covariates_of, summed
from plackett.model.race import Array
from plackett.posterior.base import Explanation
from plackett.posterior.contributions import Contributions


def reasons(
    model: Any, found: Contributions, k: int, x: Array, reference: tuple[Array, str], prob: float
) -> Explanation:
    """The columns of `explain`, the largest contribution first; the reference is a row, and which it is in words."""
    columns = covariates_of(model)
    centre, draws = summed(found.centre, columns), summed(found.draws, columns)
    if model.posterior_.no_interval is None:
        tail = (1 - prob) / 2
        lower, upper = np.quantile(draws, [tail, 1 - tail], axis=0)
        lower, upper = np.minimum(lower, centre), np.maximum(upper, centre)
    else:
        lower = upper = np.full(len(centre), np.nan)
    values = [column.value(x) for column in columns]
    kind = np.float64 if all(column.levels is None for column in columns) else object
    order = np.argsort(-np.abs(centre), kind="stable")
    table = {
        "feature": np.array([column.name for column in columns], dtype=object),
        "value": np.array(values, dtype=kind),
        "contribution": centre,
        "lower": lower,
        "upper": upper,
    }
    attributes = {
        "class": model._predicted()[k : k + 1].tolist()[0],
        "reference": found.reference,
        "prediction": found.prediction,
        "reference_row": dict(zip(map(str, model._covariates()), reference[0].tolist(), strict=True)),
        "reference_is": reference[1],
        "prob": prob,
    }
    return Explanation({name: column[order] for name, column in table.items()}, attributes)
