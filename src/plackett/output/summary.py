"""Text and HTML of a fitted model, for `repr`, notebooks and the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from plackett.output.html import text
from plackett.posterior.base import Table

if TYPE_CHECKING:
    from plackett.estimator import Model

SHOWN = 10  # number of weights in the HTML
TEXT = ("class", "item", "feature", "covariate", "column", "weights of", "law", "segment")  # columns of names


def describe(model: Model) -> tuple[str, str]:
    """Return one line on the size of a fitted model and its prior, and one on how far to trust it."""
    return model.posterior_.size(model), verdict(model)


def verdict(model: Model) -> str:
    """Return one sentence on how far to trust a fit.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from plackett import PlackettLuceClassifier
    >>> from plackett.output.summary import verdict
    >>> verdict(PlackettLuceClassifier("em", shape=0.5, features="exp").fit(*load_iris(return_X_y=True)))
    'EM: 3 of 27 weights are not zero; one estimate without uncertainty'
    """
    return "; ".join([f"{how(model)}: {model.posterior_.verdict(model)[1]}", *getattr(model, "notes_", ())])


def how(model: Model) -> str:
    """Name the inference and the length of its chains."""
    name, tune = model._inference_in_words()
    if model.trace_.ndim < 2:
        return name
    chains, draws = model.trace_.shape
    found = getattr(model, "diagnostics_", None)
    if found is not None and found.independent:
        return f"{name}, {draws:,} independent draws that approximate the posterior"
    made = model.n_iter_ - tune
    thinned = f", thinned from {made:,}," if made > draws else ""
    many = "chain" if chains == 1 else "chains"
    return f"{name}, {chains} {many} of {draws:,} draws{thinned} after {tune:,} of tuning"


def cells(table: Table) -> list[list[str]]:
    """Return the rows of a summary as text, empty for missing numbers."""
    rows = zip(*(column.tolist() for column in table.values()), strict=True)
    return [[_cell(name, value) for name, value in zip(table, row, strict=True)] for row in rows]


def _cell(name: str, value: Any) -> str:
    if name in TEXT:
        return str(value)
    if isinstance(value, bool):
        return name if value else ""
    if np.isnan(value):
        return ""
    if name in ("ess", "rhat", "active"):
        return f"{value:,.0f}" if name == "ess" else f"{value:.2f}"
    return f"{value:.3g}"


def as_html(model: Model) -> str:
    """Return the `repr` and the largest weights; names and labels are escaped."""
    title, table = model._largest(SHOWN)
    head = "".join(f'<th scope="col">{text(name)}</th>' for name in table)
    body = "".join(f"<tr>{''.join(f'<td>{text(cell)}</td>' for cell in row)}</tr>" for row in cells(table))
    lines = "<br>".join(text(line) for line in describe(model))
    return (
        f"<div><p>{lines}</p><details><summary>{title.capitalize()}</summary>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></details></div>"
    )
