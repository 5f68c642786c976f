"""Plots of one row: class probabilities, and their explanation by a race or by contributions of columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, logit
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from plackett.data.model_input import of_pipeline
from plackett.data.types import RowLike
from plackett.explaining import explain, one_row, win_probabilities
from plackett.output.printed import cell
from plackett.output.sheets import names_of
from plackett.plots.style import (
    HATCHES,
    LETTER,
    LINE,
    NARROW,
    REST,
    across,
    axes,
    below,
    beside,
    colour,
    keys_of,
    label,
    lines_of,
    marker,
    of,
    size_of,
    wrapped,
)
from plackett.posterior.base import refuse

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from plackett.estimator import Classifier


PROBABILITIES = (1e-9, 1e-6, 1e-4, 1e-3, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999)  # marked on the axis of log-odds
CLOSE = 0.5  # probability below which the axis ends near the largest
LOW = 2.6  # inches of height below which contributions have no second axis and no legend
BESIDE = 1.9  # inches for bars and a title next to labels
APART = 0.24  # smallest distance of marks as a fraction of the width


def probabilities(
    classifier: ClassifierMixin, row: RowLike, *, prob: float = 0.9, n: int = 10, ax: Axes | None = None
) -> Axes:
    """Plot class probabilities of one row with credible intervals.

    Parameters
    ----------
    classifier : classifier
        A fitted model; intervals exist for models of this package.
    row : Series, dict, data frame of one row or (d,) array
        The row.
    prob : float
        Probability of the intervals; EM has none.
    n : int
        Maximum number of classes: the most probable ones.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
    """
    check_is_fitted(classifier)
    classifier, row = of_pipeline(classifier, one_row(row))
    centre = classifier.predict_proba(row)[0]
    ax = axes(ax)
    drawn = np.argsort(-centre, kind="stable")[: lines_of(ax, n)]
    top = centre[drawn[0]]
    posterior = getattr(classifier, "posterior_", None)  # other classifiers have probabilities only
    uncertain = posterior is not None and posterior.no_interval is None
    if uncertain:
        (lower,), (upper,) = classifier.predict_interval(row, prob=prob)
        top = upper[drawn].max()
        ax.hlines(range(len(drawn)), lower[drawn], upper[drawn], color=[colour(k) for k in drawn], linewidth=2)
    for y, k in enumerate(drawn):
        ax.plot(centre[k], y, marker(k), color=colour(k))
    ax.set_yticks(range(len(drawn)), [label(classifier.classes_[k], beside(ax)) for k in drawn])
    ax.invert_yaxis()
    band = f", {100 * prob:g} % intervals" if uncertain else ""
    end = 1.0 if top > CLOSE else 1.1 * top  # many classes: small probabilities fill the picture
    ax.set(xlim=(-0.02 * end, 1.02 * end), xlabel=wrapped(f"probability{band}", across(ax)))
    ax.set_title(wrapped(of("classes", len(drawn), len(centre)), across(ax)))
    return ax


def race(classifier: Classifier, row: RowLike, *, n: int = 6, ax: Axes | None = None) -> Axes:
    """Plot one prediction as a race: which competitor (feature) wins for which group (class).

    The length of a class's bar is its probability, divided into the probabilities Pr(C=j, Y=k | x) that each of its
    competitors arrives first; `plackett.explain` returns the numbers. Colours denote classes, hatching denotes
    features.

    Parameters
    ----------
    classifier : PlackettLuceClassifier or PlackettLuceRanker
        A fitted model.
    row : Series, dict, data frame of one row or (d,) array
        The row to explain.
    n : int
        Maximum number of classes, and of features with their own hatching (at most eight); further features are pale.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
    """
    check_is_fitted(classifier)
    refuse(of_pipeline(classifier)[0]._no_explanation())
    classifier, row = of_pipeline(classifier, one_row(row))
    wins, (what, labels) = win_probabilities(classifier, row)[0], classifier._labels()
    ax = axes(ax)
    from matplotlib.patches import Patch

    longest = min(beside(ax, 0.8), 26)
    keys = keys_of(ax, min(n, len(HATCHES)) + 1, longest)
    teams = np.argsort(-wins.sum(axis=1), kind="stable")[: lines_of(ax, n, 1.3 + keys * LINE)]
    shares = wins[teams]
    order = np.argsort(-shares.sum(axis=0), kind="stable")
    named, others = np.split(order, [min(max(keys - 1, 1), n, len(HATCHES))])
    names = classifier._feature_names()
    looks: list[dict[str, Any]] = [{"hatch": hatch} for hatch in HATCHES[: len(named)]]
    parts = [(shares[:, j], look, label(names[j], longest)) for j, look in zip(named, looks, strict=True)]
    if len(others):
        parts.append((shares[:, others].sum(axis=1), {"alpha": 0.35}, f"{len(others)} others"))
    places, left, handles = range(len(teams)), np.zeros(len(teams)), []
    for width, look, name in parts:
        style = look | {"edgecolor": "white", "linewidth": 0.5, "label": name}
        ax.barh(places, width, left=left, color=[colour(k) for k in teams], **style)
        handles.append(Patch(facecolor=REST, **style))
        left += width
    for y, end in zip(places, left, strict=True):
        ax.annotate(f"{end:.2f}", (end, y), (4, 0), textcoords="offset points", va="center", fontsize="small")
    ax.set_yticks(places, [label(labels[k], min(beside(ax), 22)) for k in teams])
    ax.invert_yaxis()
    several = "items" if what == "item" else "classes"
    reach = 1.1 if size_of(ax)[0] >= NARROW else 1.4  # room for the numbers
    ax.set(xlim=(0, reach * left.max()), xlabel=wrapped("probability of arriving first", across(ax)))
    ax.set_title(wrapped(of(several, len(teams), len(wins)), across(ax)))
    if size_of(ax)[0] < NARROW:
        ax.locator_params(axis="x", nbins=2)
    below(ax, handles)
    return ax


def contributions(
    classifier: Classifier, row: RowLike, *, prob: float = 0.9, n: int = 10, ax: Axes | None = None
) -> Axes:
    """Plot the contribution of each column to the log-odds of the prediction, starting from a reference row.

    Bars follow each other from the log-odds of the reference row, at the top, to those of the prediction;
    `plackett.explain` returns the numbers. Bars in the colour of the class are in favour of it, grey ones against it.
    Lines are intervals of single contributions.

    Parameters
    ----------
    classifier : PlackettLuceClassifier, SparseLogitClassifier, PlackettLuceChooser or PlackettLuceRanker
        A fitted model with learned directions, or a logit; `race` is for fixed features.
    row : Series, dict, data frame of one row or (d,) array
        The row to explain; for a chooser, `ChoiceSets` of one situation.
    prob : float
        Probability of the intervals; EM has none.
    n : int
        Number of columns with their own bar: the largest contributions. The others share one.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
    """
    check_is_fitted(classifier)
    (model,) = of_pipeline(classifier)
    refuse(model._no_explanation() or model.posterior_.no_contributions)
    classifier, row = of_pipeline(classifier, one_row(row))
    why = explain(classifier, row, prob)
    ax = axes(ax)
    from matplotlib.patches import Patch

    own, said = why.attrs["class"], label(why.attrs["class"], 22)
    k = classifier._predicted().tolist().index(own)
    width, height = size_of(ax)
    low = height < LOW
    n = min(n, lines_of(ax, n + 1, 1.3 if low else 2.0, 3) - 1)
    drawn = why.head(n if len(why) > n + 1 else len(why))
    parts = drawn["contribution"].to_numpy()
    longest = int(np.clip((width - BESIDE) / LETTER, 10, 24))
    names = [_with_value(*pair, longest) for pair in zip(names_of(drawn), drawn["value"], strict=True)]
    if len(drawn) < len(why):
        parts = np.append(parts, why["contribution"][len(drawn) :].sum())
        names.append(f"{len(why) - len(drawn)} others")
    starts, places = why.attrs["reference"] + np.append(0, np.cumsum(parts[:-1])), np.arange(len(parts))
    ax.barh(places, parts, left=starts, height=0.6, color=[colour(k) if part > 0 else REST for part in parts])
    ends, band = np.append(starts, why.attrs["prediction"]), ""
    reach = [ends.min(), ends.max()]
    if not drawn["lower"].isna().any():
        left, right = (starts[: len(drawn)] + drawn[side] for side in ("lower", "upper"))
        ax.hlines(places[: len(drawn)], left, right, color=ax.xaxis.label.get_color(), linewidth=1.2)
        reach, band = [min(reach[0], left.min()), max(reach[1], right.max())], f",\n{100 * prob:g} % intervals"
    ax.vlines(ends[1:-1], places[:-1], places[1:], color=REST, linewidth=0.8)
    for end, style in ((ends[0], ":"), (ends[-1], "-")):
        ax.axvline(end, color=REST, linestyle=style, linewidth=1.0, zorder=0)
    ax.set_yticks(places, names)
    ax.set_ylim(len(parts) - 0.4, -0.6)
    margin = 0.04 * (reach[1] - reach[0]) or 1.0
    ax.set_xlim(reach[0] - margin, reach[1] + margin)
    first, last = 1 / (1 + np.exp(-ends[[0, -1]]))
    ax.set_xlabel(wrapped(f"log-odds of {said}{band}", across(ax)) if low else f"log-odds of {said}{band}")
    if low:
        ax.set_title(f"{first:.3f} (dotted) → {last:.3f}", fontsize="small")
        return ax
    apart = " " if longest == 24 else "\n"
    ax.set_title(f"predicted {last:.3f}\nreference {first:.3f}{apart}(dotted)", fontsize="medium")
    _mark_probabilities(ax)
    keys = [Patch(color=colour(k), label=f"for {said}")] if (parts > 0).any() else []
    keys += [Patch(color=REST, label=f"against {said}")] if (parts < 0).any() else []
    if keys:
        below(ax, keys)
    return ax


def _with_value(name: object, value: object, longest: int) -> str:
    """Return one label with a column and its value in the row."""
    held = cell(value, 4) if isinstance(value, float) else label(value, 10)
    return f"{label(name, max(longest - len(held), 5))} = {held}"


def _mark_probabilities(ax: Axes) -> None:
    """Mark round probabilities above an axis of log-odds, as far apart as legibility requires; at least two."""
    low, high = ax.get_xlim()
    marks: list[float] = []
    for p in sorted(PROBABILITIES, key=lambda p: abs(p - 0.5)):
        place = logit(p)
        if low <= place <= high and all(abs(place - logit(q)) > APART * (high - low) for q in marks):
            marks.append(p)
    if len(marks) < 2:
        marks = [_two_digits(expit(low + part * (high - low))) for part in (0.2, 0.8)]
        marks = [p for p in marks if low <= logit(p) <= high]
    top = ax.secondary_xaxis("top")
    top.set_xticks([logit(p) for p in marks], [f"{p:.12g}" for p in marks])
    top.set_xlabel("probability")


def _two_digits(p: float) -> float:
    """Round a probability to two digits of its distance from 0 or 1.

    Examples
    --------
    >>> from plackett.plots.row import _two_digits
    >>> _two_digits(0.93412), _two_digits(0.00123), _two_digits(0.999956)
    (0.934, 0.0012, 0.999956)
    """
    return round(p, 1 - int(np.floor(np.log10(max(min(p, 1 - p), 1e-12)))))
