"""Weights and their path: which features speak for which class."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from plackett.directions.posterior import DirectionDraws
from plackett.logit.posterior import LogitDraws
from plackett.model.race import Array
from plackett.plots.style import REST, axes, colour, dash, interval, label, marker, of, pair


def weights(classifier: Any, *, n: int = 15, prob: float = 0.9, ax: Any = None) -> Any:
    """Which features speak for which class: the n largest weights, with credible intervals.

    Parameters
    ----------
    classifier : PlackettLuceClassifier or SparseLogitClassifier
        A fitted model. Of a sparse logit the coefficients are drawn, per standard deviation of their column.
    n : int
        Weights drawn at the most.
    prob : float
        Probability of the intervals; EM has none.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
    """
    names, centre, draws, meaning = weights_of(classifier)
    ax = axes(ax)
    places = np.argsort(-np.abs(centre), axis=None, kind="stable")[:n]
    places = places[centre.ravel()[places] != 0]
    pairs = [np.unravel_index(place, centre.shape) for place in places]
    lower, upper = interval(draws.reshape(len(draws), -1)[:, places], prob)
    for y, (k, j) in enumerate(pairs):
        if len(draws) > 1:
            ax.hlines(y, lower[y], upper[y], color=colour(k), linewidth=2)
        ax.plot(centre[k, j], y, marker(k), color=colour(k))
    ax.set_yticks(range(len(pairs)), [pair(classifier.classes_[k], names[j]) for k, j in pairs])
    ax.invert_yaxis()
    ax.axvline(0, color=REST, linewidth=0.8, zorder=0)
    band = f", {100 * prob:g} % intervals" if len(draws) > 1 else ""
    ax.set(xlabel=f"{meaning}{band}", title=of("weights", len(places), centre.size))
    return ax


def relevance(classifier: Any, *, n: int = 15, ax: Any = None) -> Any:
    """How much each column matters to learned directions.

    Parameters
    ----------
    classifier : PlackettLuceClassifier
        A model fitted with ``features="learned"``.
    n : int
        Columns drawn at the most: those that matter most.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
    """
    check_is_fitted(classifier)
    if not hasattr(classifier, "relevance_"):
        raise ValueError("only learned directions have a relevance of columns: fit with features='learned'.")
    ax = axes(ax)
    drawn = np.argsort(-classifier.relevance_, kind="stable")[:n]
    names = classifier._covariates()
    ax.barh(range(len(drawn)), classifier.relevance_[drawn], color=colour(0))
    ax.set_yticks(range(len(drawn)), [label(names[f]) for f in drawn])
    ax.invert_yaxis()
    ax.set(xlabel="change of log-odds per standard deviation", title=of("columns", len(drawn), len(names)))
    return ax


def path(path: Any, *, n: int = 6, ax: Any = None) -> Any:
    """Weights against the shape a: a regularisation path (Figure 2).

    Parameters
    ----------
    path : Bunch
        What `plackett.regularization_path` returned.
    n : int
        Weights in colour and named: those that grow largest. The others are drawn in grey.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
    """
    ax = axes(ax)
    curves = path.weights.reshape(len(path.shapes), -1)
    order = np.argsort(-curves.max(axis=0), kind="stable")
    for place in order[n:]:
        ax.plot(path.shapes, curves[:, place], color=REST, linewidth=0.6, alpha=0.6)
    for i, place in enumerate(order[:n]):
        k, j = np.unravel_index(place, path.weights.shape[1:])
        name = pair(path.classes[k], path.feature_names[j])
        ax.plot(path.shapes, curves[:, place], color=colour(i), linestyle=dash(i), label=name)
    ax.set(xscale="log", xlabel="shape a", ylabel=f"weight ({path.statistic})")
    ax.set_title(of("weights named", min(n, len(order)), len(order)))
    ax.legend(fontsize="small")
    return ax


def weights_of(classifier: Any) -> tuple[npt.NDArray[Any], Array, Array, str]:
    """Names (p,), estimates (K, p), draws (S, K, p), and what the numbers are."""
    check_is_fitted(classifier)
    posterior = classifier.posterior_
    if isinstance(posterior, LogitDraws):
        scale = np.where(np.isfinite(classifier.scale_), classifier.scale_, 0.0)
        draws = posterior.coef.reshape(-1, *posterior.coef.shape[2:]) * scale
        names = getattr(classifier, "feature_names_in_", [f"x{j}" for j in range(len(scale))])
        return np.asarray(names, dtype=object), draws.mean(axis=0), draws, "log-odds per standard deviation"
    if isinstance(posterior, DirectionDraws):
        raise ValueError(
            "the components of learned directions have no identity from draw to draw, so there are no weights to "
            "compare. plots.relevance draws how much each column matters, and summary() lists the components."
        )
    return classifier._feature_names(), classifier.weights_, posterior.flat_draws(), "weight"
