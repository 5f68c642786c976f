"""Section of effects: average marginal effects and partial dependence of the columns with the largest ones."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np

from plackett import plots
from plackett.data.columns import TableWarning
from plackett.output.effects import Rows
from plackett.report import words
from plackett.report.figures import figure
from plackett.report.markup import Head, Section, paragraph, table

if TYPE_CHECKING:
    import pandas as pd

    from plackett.estimator import Classifier

PROB = 0.9  # of intervals
MOST_COLUMNS = 60  # maximum number of columns whose effects are computed
LISTED = 300  # rows of the table
CURVES, GRID = 4, 15  # number of columns whose effect is drawn, and values of each
HEADS = {
    "effect_per_sd": "Per standard deviation",
    "effect": "Per unit",
    "lower": "5%",
    "upper": "95%",
    "positive": "Above 0",
}


def effects(classifier: Classifier, X: pd.DataFrame) -> Section:
    """Average marginal effects as a table, and curves of the columns with the largest effects."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TableWarning)  # given once, for the predicted rows
        return _effects(classifier, X)


def _effects(classifier: Classifier, X: pd.DataFrame) -> Section:
    if X.shape[1] > MOST_COLUMNS:
        told = f"There are {X.shape[1]:,} columns, whose effects would take long; clf.effects(X) gives them."
        return Section("effects", "Effects", paragraph(told))
    try:
        found = classifier.effects(X, PROB)
    except ValueError as error:  # texts or another table without columns of numbers
        return Section("effects", "Effects", paragraph(f"There are none: {error}"))
    certain = classifier.posterior_.no_interval is not None
    numbers = list(HEADS)[: 2 if certain else len(HEADS)]
    heads = [Head("Column"), Head("Class"), *(Head(HEADS[name], True) for name in numbers)]
    place = {name: i for i, name in enumerate(found["feature"].unique())}  # the largest effects first
    by_feature = found.sort_values("feature", key=lambda names: names.map(place), kind="stable")
    rows = [list(row) for row in by_feature[["feature", "class", *numbers]].itertuples(index=False, name=None)]
    caption = "Average marginal effects" + (f", {LISTED} of {len(rows)}" if len(rows) > LISTED else "")
    drawn = _most_moving(Rows.of(classifier, X), found)
    curves = [_curve(classifier, X, j, name) for j, name in drawn]
    body = [
        paragraph(words.effects(certain)),
        f'<div class="figures">{"".join(curves)}</div>',
        paragraph("Press a heading to sort by it."),
        table(caption, heads, rows[:LISTED], sortable=True),
    ]
    return Section("effects", "Effects", "\n".join(body))


def _curve(classifier: Classifier, X: pd.DataFrame, place: int, name: str) -> str:
    return figure(
        f"effect{place}",
        lambda ax: plots.effect(classifier, X, place, prob=PROB, grid=GRID, ax=ax),
        f"Average class probabilities along {name}; the table below has their average slopes.",
        f"{name}: average probability of each class if all rows had this value.",
        3.2,
    )


def _most_moving(table_of: Rows, found: pd.DataFrame) -> list[tuple[int, str]]:
    """Positions and names of the columns with the largest effects, per standard deviation for numbers."""
    largest = found["effect_per_sd"].abs().groupby(found["feature"], sort=False).max()
    moved = []
    for column in table_of.columns:
        own = largest[[name == column.name or name.startswith(f"{column.name}: ") for name in largest.index]]
        moved.append(own.max() if len(own) else 0.0)
    return [(int(j), table_of.columns[j].name) for j in np.argsort(-np.array(moved), kind="stable")[:CURVES]]
