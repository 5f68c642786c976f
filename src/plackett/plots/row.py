"""One row: the probabilities of its classes, and the race behind them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from plackett.explain import one_row, win_probabilities
from plackett.plots.style import HATCHES, REST, axes, colour, label, marker, of

if TYPE_CHECKING:
    from plackett.estimator import Classifier


def probabilities(classifier: Any, row: Any, *, prob: float = 0.9, n: int = 10, ax: Any = None) -> Any:
    """Class probabilities of one row with credible intervals.

    Parameters
    ----------
    classifier : classifier
        A fitted model; intervals are drawn of those here.
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
    posterior = getattr(classifier, "posterior_", None)  # any classifier has probabilities
    uncertain = posterior is not None and posterior.no_interval is None
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


def race(classifier: Classifier, row: Any, *, n: int = 6, ax: Any = None) -> Any:
    """One prediction as a race: which competitor (feature) wins for which team (class).

    The bar of a class is as long as its probability and is made of the probabilities Pr(C=j, Y=k | x) that each of its
    competitors arrives first; `plackett.explain.explain` gives the numbers. The colour is that of the class; features
    differ by hatching.

    Parameters
    ----------
    classifier : PlackettLuceClassifier
        A fitted model.
    row : Series, dict, data frame of one row or (d,) array
        The row to explain.
    n : int
        Features with a hatching of their own, eight at the most, and classes drawn; further features are pale.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
    """
    wins = win_probabilities(classifier, one_row(row))[0]
    ax = axes(ax)
    from matplotlib.patches import Patch

    teams = np.argsort(-wins.sum(axis=1), kind="stable")[:n]
    shares = wins[teams]
    order = np.argsort(-shares.sum(axis=0), kind="stable")
    named, others = np.split(order, [min(n, len(HATCHES))])
    names = classifier._feature_names()
    looks: list[dict[str, Any]] = [{"hatch": hatch} for hatch in HATCHES[: len(named)]]
    parts = [(shares[:, j], look, label(names[j], 26)) for j, look in zip(named, looks, strict=True)]
    if len(others):
        parts.append((shares[:, others].sum(axis=1), {"alpha": 0.35}, f"{len(others)} others"))
    places, left, keys = range(len(teams)), np.zeros(len(teams)), []
    for width, look, name in parts:
        style = look | {"edgecolor": "white", "linewidth": 0.5, "label": name}
        ax.barh(places, width, left=left, color=[colour(k) for k in teams], **style)
        keys.append(Patch(facecolor=REST, **style))
        left += width
    for y, end in zip(places, left, strict=True):
        ax.annotate(f"{end:.2f}", (end, y), (4, 0), textcoords="offset points", va="center", fontsize="small")
    ax.set_yticks(places, [label(classifier.classes_[k], 22) for k in teams])
    ax.invert_yaxis()
    ax.set(
        xlim=(0, 1.1 * left.max()), xlabel="probability of arriving first", title=of("classes", len(teams), len(wins))
    )
    below = {"loc": "upper center", "bbox_to_anchor": (0.5, 0), "borderaxespad": 4.5}  # of the axis and its label
    columns = 2 if max(len(name) for *_, name in parts) <= 16 else 1
    ax.legend(handles=keys, fontsize="small", ncols=columns, frameon=False, handleheight=1.2, **below)
    return ax
