"""One row: the probabilities of its classes, and the race behind them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from plackett.explain import has_intervals, one_row, win_probabilities
from plackett.plots.style import PALETTE, REST, axes, colour, label, marker, of


def probabilities(classifier: Any, row: Any, *, prob: float = 0.9, n: int = 10, ax: Any = None) -> Any:
    """Class probabilities of one row with credible intervals.

    Parameters
    ----------
    classifier : PlackettLuceClassifier or SparseLogitClassifier
        A fitted model.
    row : Series, dict, data frame of one row or (d,) array
        The row.
    prob : float
        Probability of the intervals; EM has none.
    n : int
        Classes drawn at the most: the most probable.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
    """
    check_is_fitted(classifier)
    row = one_row(row)
    centre = classifier.predict_proba(row)[0]
    drawn = np.argsort(-centre, kind="stable")[:n]
    ax = axes(ax)
    uncertain = has_intervals(classifier)
    if uncertain:
        (lower,), (upper,) = classifier.predict_interval(row, prob=prob)
        ax.hlines(range(len(drawn)), lower[drawn], upper[drawn], color=[colour(k) for k in drawn], linewidth=2)
    for y, k in enumerate(drawn):
        ax.plot(centre[k], y, marker(k), color=colour(k))
    ax.set_yticks(range(len(drawn)), [label(classifier.classes_[k]) for k in drawn])
    ax.invert_yaxis()
    band = f", {100 * prob:g} % intervals" if uncertain else ""
    ax.set(xlim=(-0.02, 1.02), xlabel=f"probability{band}", title=of("classes", len(drawn), len(centre)))
    return ax


def race(classifier: Any, row: Any, *, n: int = 6, ax: Any = None) -> Any:
    """One prediction as a race: which competitor (feature) wins for which team (class).

    The bar of a class is as long as its probability and is made of the probabilities Pr(C=j, Y=k | x) that each of its
    competitors arrives first; `plackett.explain.explain` gives the numbers.

    Parameters
    ----------
    classifier : PlackettLuceClassifier
        A fitted model.
    row : Series, dict, data frame of one row or (d,) array
        The row to explain.
    n : int
        Features with a colour of their own, and classes drawn, at the most; further features are grey.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
    """
    wins = win_probabilities(classifier, one_row(row))[0]
    ax = axes(ax)
    teams = np.argsort(-wins.sum(axis=1), kind="stable")[:n]
    shares = wins[teams]
    order = np.argsort(-shares.sum(axis=0), kind="stable")
    named, others = order[: min(n, len(PALETTE))], order[min(n, len(PALETTE)) :]
    names = classifier._feature_names()
    bars = [(shares[:, j], colour(i), label(names[j], 26)) for i, j in enumerate(named)]
    if len(others):
        bars.append((shares[:, others].sum(axis=1), REST, f"{len(others)} others"))
    places, left = range(len(teams)), np.zeros(len(teams))
    for width, fill, name in bars:
        ax.barh(places, width, left=left, color=fill, edgecolor="white", linewidth=0.5, label=name)
        left += width
    for y, end in zip(places, left, strict=True):
        ax.text(end + 0.01, y, f"{end:.2f}", va="center", fontsize="small")
    ax.set_yticks(places, [label(classifier.classes_[k]) for k in teams])
    ax.invert_yaxis()
    ax.set(xlim=(0, 1.1), xlabel="probability of arriving first", title=of("classes", len(teams), len(wins)))
    below = {"loc": "upper center", "bbox_to_anchor": (0.5, 0), "borderaxespad": 4.5}  # of the axis and its label
    ax.legend(fontsize="small", ncols=2, frameon=False, **below)
    return ax
