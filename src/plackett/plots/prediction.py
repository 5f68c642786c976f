"""How well a model predicts, and where one class gives way to another."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.ndimage import distance_transform_edt
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import check_is_fitted

from plackett.model.race import Array
from plackett.plots.style import PALETTE, REST, axes, colour, dash, label, marker, of


def decision_boundary(
    classifier: Any, X: Any, y: Any = None, *, features: Sequence[int] = (0, 1), grid: int = 100, ax: Any = None
) -> Any:
    """Regions of the most probable class over two columns, the other columns at their medians.

    The stronger the colour, the more probable the class.

    Parameters
    ----------
    classifier : classifier
        A fitted model.
    X : array or data frame (n, d)
        Rows that give the range of the two columns and the medians of the others.
    y : (n,) array, optional
        Labels: the rows are drawn as points.
    features : (int, int)
        Positions of the two columns.
    grid : int
        Points of the grid along each axis.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
    """
    check_is_fitted(classifier)
    table, names = _numeric_table(X)
    first, second = _two_columns(features, table.shape[1])
    x, x2 = (_span(table[:, j], grid) for j in (first, second))
    rows = np.tile(np.median(table, axis=0), (grid * grid, 1))
    rows[:, first], rows[:, second] = (mesh.ravel() for mesh in np.meshgrid(x, x2))
    probability = classifier.predict_proba(_like(X, rows)).reshape(grid, grid, -1)
    winner, best = probability.argmax(axis=2), probability.max(axis=2)
    K = probability.shape[2]

    ax = axes(ax)
    from matplotlib.colors import to_rgb

    colours = np.array([to_rgb(colour(k)) for k in range(K)])[winner]
    opacity = 0.15 + 0.45 * (best - 1 / K) / (1 - 1 / K)
    box = (x[0], x[-1], x2[0], x2[-1])
    ax.imshow(np.dstack([colours, opacity]), origin="lower", extent=box, aspect="auto", interpolation="bilinear")
    if y is not None:
        for k, own in enumerate(classifier.classes_):
            mine = np.asarray(y) == own
            style = {"marker": marker(k), "color": colour(k), "edgecolor": "white", "linewidth": 0.4}
            ax.scatter(table[mine, first], table[mine, second], s=22, **style)
    for k in np.unique(winner):
        ax.contour(x, x2, winner == k, levels=[0.5], colors="black", linewidths=0.6)
        depth = distance_transform_edt(np.pad(winner == k, 1))[1:-1, 1:-1]
        row, column = np.unravel_index(depth.argmax(), depth.shape)
        box_style = {"facecolor": "white", "edgecolor": colour(k), "boxstyle": "round,pad=0.25", "alpha": 0.9}
        text = label(classifier.classes_[k])
        ax.text(x[column], x2[row], text, ha="center", va="center", fontsize="small", color="black", bbox=box_style)
    ax.set(xlabel=label(names[first]), ylabel=label(names[second]))
    if table.shape[1] > 2:
        ax.set_title("other columns at their medians")
    return ax


def roc(classifier: Any, X: Any, y: Any, *, n: int = 6, ax: Any = None) -> Any:
    """Receiver operating characteristic of each class against the rest, by scikit-learn's `RocCurveDisplay`.

    Parameters
    ----------
    classifier : classifier
        A fitted model.
    X, y : arrays
        Rows and labels to judge by; held-out ones, or the curve flatters.
    n : int
        Classes drawn at the most: the most frequent of those that can be (some rows have it, some do not).
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
    """
    from cycler import cycler
    from sklearn.metrics import RocCurveDisplay

    probability, truth = _judged(classifier, X, y)
    possible = np.flatnonzero(truth.any(axis=0) & ~truth.all(axis=0))
    if not len(possible):
        raise ValueError("a ROC curve needs rows of at least two classes that the model knows; y holds one or none.")
    drawn = possible[np.argsort(-truth[:, possible].sum(axis=0), kind="stable")][:n]
    if len(classifier.classes_) == 2:
        drawn = possible[-1:]
    ax = axes(ax)
    ax.set_prop_cycle(cycler(color=[colour(k) for k in drawn]) + cycler(linestyle=[dash(k) for k in drawn]))
    for k in drawn:
        name = label(classifier.classes_[k])
        RocCurveDisplay.from_predictions(truth[:, k], probability[:, k], pos_label=True, name=name, ax=ax)
    ax.plot([0, 1], [0, 1], color=REST, linestyle=":", linewidth=1)
    ax.set(xlabel="false positive rate", ylabel="true positive rate")
    ax.set_title(
        "" if len(classifier.classes_) == 2 else of("classes, each against the rest", len(drawn), len(possible))
    )
    ax.legend(loc="lower right", fontsize="small")
    return ax


def calibration(classifier: Any, X: Any, y: Any, *, n_bins: int = 10, ax: Any = None) -> Any:
    """How often what was given probability q came true, by scikit-learn's `CalibrationDisplay`.

    With two classes the curve is that of the second; with more, the statements "row i is of class k" of all rows and
    classes are pooled.

    Parameters
    ----------
    classifier : classifier
        A fitted model.
    X, y : arrays
        Rows and labels to judge by; held-out ones, or the curve flatters.
    n_bins : int
        Bins of equal width.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
    """
    from sklearn.calibration import CalibrationDisplay

    probability, truth = _judged(classifier, X, y)
    if truth.shape[1] == 2:
        probability, truth = probability[:, 1:], truth[:, 1:]
        what = f"class {label(classifier.classes_[1])}"
    else:
        what = "all classes pooled"
    ax = axes(ax)
    clipped = np.clip(probability.ravel(), 0, 1)
    CalibrationDisplay.from_predictions(
        truth.ravel(), clipped, n_bins=n_bins, pos_label=True, name=what, ax=ax, color=PALETTE[0]
    )
    ax.set(xlabel="predicted probability", ylabel="share that came true", title=what)
    ax.get_legend().remove()
    return ax


def _numeric_table(X: Any) -> tuple[Array, list[Any]]:
    """The values of a table, all numbers, and the names of its columns."""
    try:
        table = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"a decision boundary needs columns of numbers: {error}.") from error
    return table, list(getattr(X, "columns", [f"x{j}" for j in range(table.shape[1])]))


def _like(X: Any, rows: Array) -> Any:
    """Rows under the column names of X where it has any."""
    if not hasattr(X, "columns"):
        return rows
    return type(X)({name: rows[:, j] for j, name in enumerate(X.columns)})


def _two_columns(features: Sequence[int], d: int) -> tuple[int, int]:
    if len(features) != 2 or features[0] == features[1] or not all(0 <= j < d for j in features):
        raise ValueError(f"features must be the positions of two of the {d} columns, got {features!r} instead.")
    return features[0], features[1]


def _span(x: Array, grid: int) -> Array:
    margin = 0.05 * np.ptp(x) or 0.5
    return np.linspace(x.min() - margin, x.max() + margin, grid)


def _judged(classifier: Any, X: Any, y: Any) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Probabilities (n, K) and whether each row is of each class, of the rows whose class the model knows."""
    check_is_fitted(classifier)
    y = np.asarray(y)
    known = np.isin(y, classifier.classes_)
    if not known.any():
        raise ValueError(f"no label in y is a class of the model ({', '.join(map(str, classifier.classes_[:10]))}).")
    if not known.all():
        X, y = _safe_indexing(X, np.flatnonzero(known)), y[known]
        warnings.warn(f"{(~known).sum()} rows of a class that the model does not know were left out.", UserWarning)
    return classifier.predict_proba(X), y[:, None] == classifier.classes_
