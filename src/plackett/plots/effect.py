"""Partial dependence of a column: average predictions over rows if all rows had one value in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from plackett.data.model_input import of_pipeline
from plackett.data.types import MatrixLike
from plackett.data.validation import check_prob
from plackett.output.effects import Rows
from plackett.plots.style import NARROW, REST, axes, below, beside, colour, dash, keys_of, label, marker, of, size_of
from plackett.posterior.base import around

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

    from plackett.estimator import Classifier


CLOSE = 0.5  # probability below which the vertical axis ends near the largest
LOW = 2.6  # inches of height below which the vertical axis has a short label
MARKED = 200  # number of row values marked below


def effect(
    classifier: Classifier,
    X: MatrixLike,
    feature: str | int,
    *,
    prob: float = 0.9,
    grid: int = 30,
    n: int = 6,
    ax: Axes | None = None,
) -> Axes:
    """Plot class probabilities as a function of one column, averaged over the rows of X, with bands over the draws.

    All rows get one value in this column and keep their own in the others; `effects` has the average slopes. Marks
    below show the values of rows: far from them the curve reflects assumptions of the model, not data.

    Parameters
    ----------
    classifier : PlackettLuceClassifier or SparseLogitClassifier
        A fitted model.
    X : array or data frame (n, d)
        Rows to average over, for instance those of the fit; at most 400, evenly spaced.
    feature : str or int
        The column, by name or position. A text column is known by the model's table, or by indicators with names such
        as ``home=town``; its levels, and 0 and 1, are drawn as points.
    prob : float
        Probability of the bands; EM has none.
    grid : int
        Values of a number, from its lowest in X to its highest.
    n : int
        Maximum number of classes: those whose probability changes most.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
    """
    check_is_fitted(classifier)
    check_prob(prob)
    classifier, X = of_pipeline(classifier, X)
    table = Rows.of(classifier, X)
    column = table.find(feature)
    levels, held = table.levels(column), table.frame.iloc[:, column.places[0]]
    values: list[tuple[Any, ...]]
    if levels is None:
        values = [(value,) for value in np.linspace(float(held.min()), float(held.max()), grid).tolist()]
    else:
        values = list(levels.values())
    posterior = classifier.posterior_
    centre, draws = posterior.averages(classifier, table.some, [table.all_at(column, value) for value in values])
    lower, upper = around(centre, draws, prob)
    certain = posterior.no_interval is not None
    ax = axes(ax)
    longest = beside(ax, 0.8)
    most = keys_of(ax, min(n, centre.shape[1]), min(longest, 22))
    drawn, named = np.sort(np.argsort(-np.ptp(centre, axis=0), kind="stable")[:most]), list["Line2D"]()
    for i, k in enumerate(drawn):
        name, own = label(classifier.classes_[k], min(longest, 22)), colour(k)
        if levels is None:
            x = [value for (value,) in values]
            named += ax.plot(x, centre[:, k], linestyle=dash(i), label=name, color=own)
            if not certain:
                ax.fill_between(x, lower[:, k], upper[:, k], alpha=0.18, linewidth=0, color=own)
        else:
            places = np.arange(len(values)) + 0.5 * ((i + 0.5) / len(drawn) - 0.5)
            named += ax.plot(places, centre[:, k], marker(k), label=name, color=own)
            if not certain:
                ax.vlines(places, lower[:, k], upper[:, k], linewidth=2, color=own)
    highest = float(np.max((centre if certain else upper)[:, drawn]))
    top = 1.02 if highest > CLOSE else 1.1 * highest  # many classes: small probabilities fill the picture
    if levels is None:
        some = np.sort(held.to_numpy(dtype=np.float64))[
            np.linspace(0, len(held) - 1, min(len(held), MARKED)).astype(int)
        ]
        ax.plot(some, np.full(len(some), -0.03 * top), "|", color=REST, markersize=6, alpha=0.5)
    else:
        ax.set_xticks(range(len(values)), [label(level, 12) for level in levels])
        if len(levels) > 4 or size_of(ax)[0] < NARROW:
            ax.tick_params(axis="x", rotation=45)
    band, title = "" if certain else f"{100 * prob:g} % intervals", of("classes", len(drawn), centre.shape[1])
    ax.set(ylim=(-0.06 * top, top), xlabel=label(column.name, longest))
    if size_of(ax)[1] < LOW:
        ax.set_ylabel("probability")
        title = ", ".join(filter(None, [title, band]))
    else:
        ax.set_ylabel(",\n".join(filter(None, ["average probability", band])))
    ax.set_title(title, fontsize="medium")
    below(ax, named)
    return ax
