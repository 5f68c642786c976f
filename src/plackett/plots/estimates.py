"""Plots of weights, of relevance and of regularisation paths."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from plackett.data.model_input import of_pipeline
from plackett.data.validation import check_prob
from plackett.plots.style import (
    NARROW,
    REST,
    across,
    axes,
    below,
    beside,
    colour,
    dash,
    interval,
    keys_of,
    label,
    lines_of,
    marker,
    of,
    pair,
    size_of,
    wrapped,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from plackett.classifier import PlackettLuceClassifier
    from plackett.estimator import Classifier


WORDY = 5.5  # inches from which relevance is explained below its axis


def weights(classifier: Classifier, *, n: int = 15, prob: float = 0.9, ax: Axes | None = None) -> Axes:
    """Plot the n largest weights, with credible intervals about their medians.

    Parameters
    ----------
    classifier : PlackettLuceClassifier or SparseLogitClassifier
        A fitted model. For a sparse logit the plot shows coefficients, per standard deviation of their column, and
        intercepts, the log-odds of an average row. `summary` has the same numbers.
    n : int
        Maximum number of weights.
    prob : float
        Probability of the intervals; EM has none.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
    """
    check_is_fitted(classifier)
    (classifier,) = of_pipeline(classifier)
    found = classifier.posterior_.estimates(classifier)
    ax = axes(ax)
    places = found.order[: lines_of(ax, n)]
    centre = found.centre.ravel()[places]
    pairs = [np.unravel_index(place, found.centre.shape) for place in places]
    band = ""
    if found.draws is not None:
        lower, upper = interval(found.draws.reshape(len(found.draws), -1)[:, places], prob)
        ax.hlines(range(len(places)), lower, upper, color=[colour(k) for k, _ in pairs], linewidth=2)
        band = f", {100 * prob:g} % intervals"
    for y, (k, _) in enumerate(pairs):
        ax.plot(centre[y], y, marker(k), color=colour(k))
    ax.set_yticks(range(len(pairs)), [pair(classifier._labels()[1][k], found.names[j], beside(ax)) for k, j in pairs])
    ax.invert_yaxis()
    ax.axvline(0, color=REST, linewidth=0.8, zorder=0)
    ax.set_xlabel(wrapped(f"{found.meaning}: {found.statistic}{band}", across(ax)))
    ax.set_title(wrapped(of(found.kind, len(places), len(found.order)), across(ax)))
    return ax


def relevance(classifier: PlackettLuceClassifier, *, n: int = 15, prob: float = 0.9, ax: Axes | None = None) -> Axes:
    """Plot how much each column matters to learned directions, with intervals; `effect` shows in which direction.

    Relevance is the change of the log-odds between components, not between classes: it orders the columns, and
    `effects` has changes of class probabilities.

    Parameters
    ----------
    classifier : PlackettLuceClassifier
        A model fitted with ``features="learned"``.
    n : int
        Maximum number of columns: the most relevant ones.
    prob : float
        Probability of the intervals; EM has none.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
    """
    check_is_fitted(classifier)
    (classifier,) = of_pipeline(classifier)
    if not (hasattr(classifier, "gate_shares_") or hasattr(classifier, "mean_relevance_")):
        raise ValueError("only learned directions have a relevance of columns: fit with features='learned'.")
    centre, lower, upper = classifier._relevance_interval(check_prob(prob))
    ax = axes(ax)
    drawn = np.argsort(-centre, kind="stable")[: lines_of(ax, n, 1.3)]
    names, band = classifier._covariates(), ""
    ax.barh(range(len(drawn)), centre[drawn], color=REST)
    if not np.isnan(lower).any():
        ax.hlines(range(len(drawn)), lower[drawn], upper[drawn], color=ax.xaxis.label.get_color(), linewidth=1.2)
        band = f", {100 * prob:g} % intervals"
    ax.set_yticks(range(len(drawn)), [label(names[f], beside(ax)) for f in drawn])
    ax.invert_yaxis()
    what = "relevance: change of the log-odds between components per standard deviation"
    ax.set_xlabel(wrapped(f"{what if size_of(ax)[0] >= WORDY else 'relevance'}{band}", across(ax)))
    ax.set_title(wrapped(of("columns", len(drawn), len(names)), across(ax)))
    return ax


def path(path: Bunch, *, n: int = 6, ax: Axes | None = None) -> Axes:
    """Plot weights against the shape a: a regularisation path (Figure 2).

    Parameters
    ----------
    path : Bunch
        Result of `plackett.regularization_path`.
    n : int
        Number of largest weights, which have names and the colours of their classes. The others are grey.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
    """
    ax = axes(ax)
    curves = path.weights.reshape(len(path.shapes), -1)
    order, longest = np.argsort(-curves.max(axis=0), kind="stable"), beside(ax, 0.8)
    n = keys_of(ax, min(n, len(order)), longest)
    for place in order[n:]:
        ax.plot(path.shapes, curves[:, place], color=REST, linewidth=0.6, alpha=0.6)
    named = []
    for i, place in enumerate(order[:n]):
        k, j = np.unravel_index(place, path.weights.shape[1:])
        name = pair(path.classes[k], path.feature_names[j], longest)
        named += ax.plot(path.shapes, curves[:, place], color=colour(k), linestyle=dash(i), label=name)
    ax.set(xscale="log", xlabel="shape a", ylabel=f"weight ({path.statistic})")
    if size_of(ax)[0] < NARROW:
        ends = [min(path.shapes), max(path.shapes)]
        ax.set_xticks(ends, [f"{a:g}" for a in ends])
        ax.set_xticks([], minor=True)
    ax.set_title(wrapped(of("weights named", len(named), len(order)), across(ax, 0.7)))
    below(ax, named)
    return ax
