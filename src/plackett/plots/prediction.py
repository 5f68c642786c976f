"""Plots of prediction quality, and of decision boundaries."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.ndimage import distance_transform_edt
from scipy.signal import fftconvolve
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from plackett.data.model_input import of_pipeline, taken
from plackett.data.rows import take_rows
from plackett.data.types import LabelsLike, MatrixLike
from plackett.data.validation import check_prob
from plackett.model.race import Array
from plackett.plots.style import (
    LETTER,
    LONGEST,
    NARROW,
    PART,
    REST,
    SMALL_LETTER,
    across,
    axes,
    below,
    colour,
    dash,
    keys_of,
    label,
    marker,
    of,
    size_of,
    wrapped,
)

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


POINTS = 1000  # maximum number of rows drawn
NEAR = 0.1  # largest change of probabilities for which a slice represents a row
SHUFFLED = 100  # rows used to compare columns
SHORTEST = 6  # letters of a label
FEW = 10  # rows of a class below which a ROC curve says how many


def decision_boundary(
    classifier: ClassifierMixin,
    X: MatrixLike,
    y: LabelsLike | None = None,
    *,
    features: Sequence[str | int] | None = None,
    grid: int = 100,
    ax: Axes | None = None,
) -> Axes:
    """Plot regions of the most probable class over two columns, with the other columns at their medians.

    Stronger colours mean larger probabilities. The regions are a slice through the model: they represent a row only if
    the model predicts nearly the same with the row's own values in the other columns. Such rows are drawn in full, the
    others pale; this does not depend on the true class, so that errors of the model stay visible.

    Parameters
    ----------
    classifier : classifier
        A fitted model.
    X : array or data frame (n, d)
        Rows that give the range of the two columns and the medians of the others.
    y : (n,) array, optional
        Labels; the rows are then drawn as points, at most a thousand of them.
    features : (str, str) or (int, int), optional
        The two columns, by name or position. By default the most relevant ones.
    grid : int
        Points of the grid along each axis.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
    """
    check_is_fitted(classifier)
    classifier, X = of_pipeline(classifier, X)
    X = taken(classifier, X)
    table, names = _numeric_table(X)
    first, second = _two_columns(_most_relevant(classifier, X, table) if features is None else features, names)
    x, x2 = (_span(table[:, j], grid) for j in (first, second))
    middle = np.median(table, axis=0)
    rows = np.tile(middle, (grid * grid, 1))
    rows[:, first], rows[:, second] = (mesh.ravel() for mesh in np.meshgrid(x, x2))
    probability = classifier.predict_proba(_like(X, rows)).reshape(grid, grid, -1)
    winner, best = probability.argmax(axis=2), probability.max(axis=2)
    K = probability.shape[2]
    words = ["other columns at their medians"] if table.shape[1] > 2 else []

    ax = axes(ax)
    from matplotlib.colors import to_rgb

    colours = np.array([to_rgb(colour(k)) for k in range(K)])[winner]
    opacity = 0.15 + 0.45 * (best - 1 / K) / (1 - 1 / K)
    box = (x[0], x[-1], x2[0], x2[-1])
    ax.imshow(np.dstack([colours, opacity]), origin="lower", extent=box, aspect="auto", interpolation="bilinear")
    if y is not None:
        some = _spread(len(table), POINTS)
        table, labels = table[some], np.asarray(y)[some]
        near = _spoken_for(classifier, X, table, middle, (first, second))
        for k, own in enumerate(classifier.classes_):
            style: dict[str, Any] = {"marker": marker(k), "color": colour(k), "edgecolor": "white", "linewidth": 0.4}
            for mine, size, alpha in ((~near, 14, 0.3), (near, 24, None)):
                drawn = mine & (labels == own)
                ax.scatter(table[drawn, first], table[drawn, second], s=size, alpha=alpha, **style)
        if len(some) < len(y):
            words.append(f"{len(some):,} of {len(y):,} rows")
        if not near.all():
            words.append(f"{(~near).sum():,} rows are pale: the slice does not speak for them")
    for k in np.unique(winner):
        ax.contour(x, x2, winner == k, levels=[0.5], colors=ax.xaxis.label.get_color(), linewidths=0.6)
        depth = distance_transform_edt(np.pad(winner == k, 1))[1:-1, 1:-1]
        row, column = np.unravel_index(depth.argmax(), depth.shape)
        run = depth[row] > 0  # the region in this line, from one border to the other
        room = int(size_of(ax)[0] * PART[0] * _around(run, int(column)) / grid / SMALL_LETTER)
        box_style = {"facecolor": "white", "edgecolor": colour(k), "boxstyle": "round,pad=0.25", "alpha": 0.9}
        text = label(classifier.classes_[k], int(np.clip(room, SHORTEST, LONGEST)))
        ax.text(
            float(x[column]),
            float(x2[row]),
            text,
            ha="center",
            va="center",
            fontsize="small",
            color="black",
            bbox=box_style,
            clip_on=True,
        )
    width, height = size_of(ax)
    upright = int(np.clip(0.8 * height / LETTER, SHORTEST, LONGEST))
    ax.set(xlabel=label(names[first], across(ax, 0.8)), ylabel=label(names[second], upright))
    longest = int(np.clip(0.8 * width / LETTER, 12, 50))
    ax.set_title(wrapped("; ".join(words), longest), fontsize="medium" if width >= NARROW else "small")
    return ax


def roc(classifier: ClassifierMixin, X: MatrixLike, y: LabelsLike, *, n: int = 6, ax: Axes | None = None) -> Axes:
    """Plot the ROC curve of each class against the rest, by scikit-learn's `RocCurveDisplay`.

    Parameters
    ----------
    classifier : classifier
        A fitted model.
    X, y : arrays
        Rows and labels, held out to avoid an optimistic curve.
    n : int
        Maximum number of classes: the most frequent ones that some rows have and some do not.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
    """
    from sklearn.metrics import RocCurveDisplay

    probability, truth = _judged(classifier, X, y)
    possible = np.flatnonzero(truth.any(axis=0) & ~truth.all(axis=0))
    if not len(possible):
        raise ValueError("a ROC curve needs rows of at least two classes that the model knows; y holds one or none.")
    ax = axes(ax)
    narrow = size_of(ax)[0] < NARROW
    drawn = possible[np.argsort(-truth[:, possible].sum(axis=0), kind="stable")][: keys_of(ax, n, 32) if narrow else n]
    if len(classifier.classes_) == 2:
        drawn = possible[-1:]
    ax.set_prop_cycle(color=[colour(k) for k in drawn], linestyle=[dash(k) for k in drawn])
    for k in drawn:
        n = int(truth[:, k].sum())
        name = label(classifier.classes_[k], 20) + (f", {n} row{'s' * (n > 1)}" if n < FEW else "")
        RocCurveDisplay.from_predictions(truth[:, k], probability[:, k], pos_label=True, name=name, ax=ax)
    ax.plot([0, 1], [0, 1], color=REST, linestyle=":", linewidth=1)
    ax.set(xlabel="false positive rate", ylabel="true positive rate")
    title = "" if len(classifier.classes_) == 2 else of("classes, each against the rest", len(drawn), len(possible))
    ax.set_title(wrapped(title, 2 * across(ax)), fontsize="medium" if narrow else None)
    if narrow:
        below(ax, ax.get_lines()[: len(drawn)])
    else:
        ax.legend(loc="lower right", fontsize="small")
    return ax


def calibration(
    classifier: ClassifierMixin,
    X: MatrixLike,
    y: LabelsLike,
    *,
    n_bins: int = 10,
    prob: float = 0.9,
    ax: Axes | None = None,
) -> Axes:
    """Plot observed frequencies against predicted probabilities, with bands of the variation by chance.

    With two classes the predictions are those of the second; with more, the predictions "row i is of class k" of all
    rows and classes are pooled. They are binned by probability; a point is the observed frequency of a bin. The band of
    a bin contains this frequency with probability `prob` if all the probabilities are right (consistency bars of
    Bröcker & Smith, 2007; the distribution is exact). The number of predictions in each bin is printed below.

    Parameters
    ----------
    classifier : classifier
        A fitted model.
    X, y : arrays
        Rows and labels, held out to avoid an optimistic curve.
    n_bins : int
        Bins of equal width.
    prob : float
        Probability of the bands.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
    """
    probability, truth = _judged(classifier, X, y)
    if truth.shape[1] == 2:
        probability, truth = probability[:, 1:], truth[:, 1:]
        what = f"class {label(classifier.classes_[1])}"
    else:
        what = "all classes pooled"
    probability = np.clip(probability, 0, 1)
    place = np.searchsorted(np.linspace(0, 1, n_bins + 1)[1:-1], probability)
    used = np.unique(place)
    inside = [place == b for b in used]
    size = np.array([part.sum() for part in inside])
    said, came = (np.array([values[part].mean() for part in inside]) for values in (probability, truth))
    # of the predicted classes of one row in this bin, at most one is true
    expected = [(probability * part).sum(axis=1)[part.any(axis=1)] for part in inside]
    bands = np.array([poisson_binomial_interval(p, prob) for p in expected]) / size[:, None]

    ax = axes(ax)
    ax.plot([0, 1], [0, 1], color=REST, linestyle=":", linewidth=1)
    ax.bar(said, np.diff(bands)[:, 0], 0.3 / n_bins, bottom=bands[:, 0], color=REST, alpha=0.35)
    ink = ax.xaxis.label.get_color()
    ax.plot(said, came, "s", color=ink, markersize=4)
    turned = 90 if n_bins > 10 else 0
    for b, count in zip(used, size, strict=True):
        ax.text((b + 0.5) / n_bins, -0.09, _short(count), ha="center", va="center", fontsize="x-small", rotation=turned)
    ax.axhline(-0.03, color=REST, linewidth=0.6)
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.15, 1.03), yticks=np.linspace(0, 1, 6))
    xlabel = "predicted probability (at the foot: number of statements)"
    ax.set(xlabel=wrapped(xlabel, int(0.75 * size_of(ax)[0] / LETTER)), ylabel="share that came true")
    ax.set_title(wrapped(f"{what}, {100 * prob:g} % bands", 2 * across(ax)), fontsize="medium")
    return ax


def poisson_binomial_interval(p: Array, prob: float) -> tuple[int, int]:
    """Return the equal-tailed interval of the number of successes in independent trials of probabilities p."""
    mass = np.column_stack([1 - p, p])
    while len(mass) > 1:
        if len(mass) % 2:
            mass = np.vstack([mass, np.eye(1, mass.shape[1])])
        mass = np.maximum(fftconvolve(mass[::2], mass[1::2], axes=1), 0)
    below = mass[0].cumsum()
    tail = (1 - check_prob(prob)) / 2
    lower, upper = np.searchsorted(below / below[-1], [tail, 1 - tail])
    return int(lower), int(upper)


def _short(count: int) -> str:
    """Format a count in about four characters."""
    if count < 10_000:
        return str(count)
    return f"{count / 1e3:.0f}k" if count < 1e6 else f"{count / 1e6:.1f}M"


def _numeric_table(X: MatrixLike) -> tuple[Array, list[str]]:
    """Return the values of a table, all numbers, and the names of its columns."""
    try:
        table = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"a decision boundary needs columns of numbers: {error}.") from error
    return table, list(getattr(X, "columns", [f"x{j}" for j in range(table.shape[1])]))


def _like(X: MatrixLike, rows: Array) -> MatrixLike:
    """Return rows with the column names of X, if any."""
    if not hasattr(X, "columns"):
        return rows
    frame: type[pd.DataFrame] = type(X)
    return frame({name: rows[:, j] for j, name in enumerate(X.columns)})


def _two_columns(features: Sequence[str | int], names: list[Any]) -> tuple[int, int]:
    """Return the positions of two columns; whole numbers are positions, anything else names."""
    d = len(names)
    places = [int(f) if isinstance(f, Integral) else names.index(f) if names.count(f) == 1 else -1 for f in features]
    if isinstance(features, str) or len(set(places)) != 2 or len(places) != 2 or not all(0 <= j < d for j in places):
        raise ValueError(
            f"features must be two of the {d} columns, by name or by position from 0, got {features!r} instead. "
            f"The columns are {', '.join(map(str, names[:10]))}{', …' if d > 10 else ''}."
        )
    return places[0], places[1]


def _most_relevant(classifier: ClassifierMixin, X: MatrixLike, table: Array) -> tuple[int, int]:
    """Return the two most relevant columns: by `relevance_`, or by the effect of shuffling on predictions."""
    d = table.shape[1]
    if d < 2:
        raise ValueError(f"a decision boundary needs two columns, X has {d}.")
    if hasattr(classifier, "gate_shares_"):
        relevance = classifier._relevance_interval()[0]
    else:
        rows = table[_spread(len(table), SHUFFLED)]
        shuffled = np.random.default_rng(0).permutation(len(rows))
        as_it_is, relevance = classifier.predict_proba(_like(X, rows)), np.zeros(d)
        for j in range(d if d > 2 else 0):
            other = rows.copy()
            other[:, j] = rows[shuffled, j]
            relevance[j] = np.abs(classifier.predict_proba(_like(X, other)) - as_it_is).mean()
    first, second = np.sort(np.argsort(-np.asarray(relevance), kind="stable")[:2]).tolist()
    return first, second


def _spoken_for(
    classifier: ClassifierMixin, X: MatrixLike, rows: Array, middle: Array, drawn: tuple[int, int]
) -> npt.NDArray[np.bool_]:
    """True for rows with nearly the same prediction when the other columns are at their medians."""
    moved = np.tile(middle, (len(rows), 1))
    moved[:, drawn] = rows[:, drawn]
    own, at_medians = (classifier.predict_proba(_like(X, part)) for part in (rows, moved))
    near: npt.NDArray[np.bool_] = np.abs(own - at_medians).sum(axis=1) / 2 <= NEAR
    return near


def _spread(n: int, most: int) -> npt.NDArray[np.intp]:
    """Return at most `most` of n positions, evenly spaced."""
    return np.linspace(0, n - 1, min(n, most)).round().astype(np.intp)


def _around(run: npt.NDArray[np.bool_], place: int) -> int:
    """Return the length of the run of True about a place."""
    ends = np.flatnonzero(~np.concatenate([[False], run, [False]]))
    after = np.searchsorted(ends, place + 1)
    return int(ends[after] - ends[after - 1] - 1)


def _span(x: Array, grid: int) -> Array:
    margin = 0.05 * np.ptp(x) or 0.5
    return np.linspace(x.min() - margin, x.max() + margin, grid)


def _judged(classifier: ClassifierMixin, X: MatrixLike, y: LabelsLike) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Return probabilities (n, K) and true classes as booleans, for rows whose class the model knows."""
    check_is_fitted(classifier)
    y = np.asarray(y)
    known = np.isin(y, classifier.classes_)
    if not known.any():
        raise ValueError(f"no label in y is a class of the model ({', '.join(map(str, classifier.classes_[:10]))}).")
    if not known.all():
        X, y = take_rows(X, np.flatnonzero(known)), y[known]
        warnings.warn(f"{(~known).sum()} rows of a class that the model does not know were left out.", UserWarning)
    return classifier.predict_proba(X), y[:, None] == classifier.classes_
