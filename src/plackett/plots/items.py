"""Plots of items of rankings: worths, comparisons and places."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from plackett.data.types import MatrixLike, RowLike
from plackett.plots.style import LETTER, REST, across, axes, beside, colour, label, of, size_of, wrapped

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from plackett.ranking import RankingModel
    from plackett.tiering import TieringRankings


MOST = 30  # maximum number of items of a table
ROOM, MARGIN = 0.22, 1.3  # inches per item on a new figure, and of its margins
TICK = 0.16  # inches per label
BESIDES, HIGH = 2.1, 0.3  # inches for shades and their key, and share of the height for upright labels
CELL = 0.27, 0.15  # inches of a cell in which a number is readable
FOOT = 0.95  # inches of a title, and of what is below the horizontal axis
SMALLEST, TALLEST = 4.8, 200.0  # height limits of a new figure in inches


def worth(
    ranker: RankingModel, X: MatrixLike | None = None, *, prob: float = 0.9, n: int = 40, ax: Axes | None = None
) -> Axes:
    """Plot log-worths of the items with credible intervals, the best first; grey marks the average item.

    With segments those of each segment in turn, whose number stands behind the item.

    Parameters
    ----------
    ranker : PlackettLuceRanker
        A fitted model.
    X : array or data frame (n, d), optional
        Rows to average over, for a model with covariates.
    prob : float
        Probability of the intervals; EM has none.
    n : int
        Maximum number of items: the best ones.
    ax : Axes, optional
        Where to draw; by default a new figure, as high as the items need. Labels that do not fit are omitted.

    Returns
    -------
    Axes
    """
    check_is_fitted(ranker)
    table = ranker.worth(prob, X)
    drawn, band = table.iloc[:n], ""
    ax = _axes(ax, 6.4, len(drawn))
    places = np.arange(len(drawn))
    if ranker.posterior_.no_interval is None:
        ax.hlines(places, drawn["lower"], drawn["upper"], color=colour(0), linewidth=2)
        band = f", {100 * prob:g} % intervals"
    ax.plot(drawn["log_worth"], places, "o", color=colour(0))
    ax.axvline(0, color=REST, linewidth=0.8, zorder=0)
    _name(ax, "y", [label(item, beside(ax)) for item in named(drawn)])
    ax.set_ylim(len(drawn) - 0.4, -0.6)
    ax.set_xlabel(wrapped(f"log-worth{band}", across(ax)))
    ax.set_title(wrapped(of("items", len(drawn), len(table)), across(ax)))
    return ax


def named(table: pd.DataFrame) -> list[Any]:
    """Return the items of a table of worths, with their segment, and marked if they were never ranked."""
    if table.index.nlevels == 2:
        return [f"{item} ({segment})" for segment, item in table.index]
    new = table["new"] if "new" in table else [False] * len(table)
    return [f"{item} (new)" if mark else item for item, mark in zip(table.index, new, strict=True)]


def tiers(ranker: TieringRankings, *, prob: float = 0.9, n: int | None = None, ax: Axes | None = None) -> Axes:
    """Plot log-worths of the items with credible intervals, the best first, on one band for each tier.

    Between two items, where they are drawn far enough apart, stands the probability that they share a tier.

    Parameters
    ----------
    ranker : PlackettLuceRanker
        A model fitted with ``tiers=True``.
    prob : float
        Probability of the intervals.
    n : int, optional
        Maximum number of items: the best ones. None: all.
    ax : Axes, optional
        Where to draw; by default a new figure, as high as the items need. Labels that do not fit are omitted.

    Returns
    -------
    Axes
    """
    check_is_fitted(ranker)
    found, whole = ranker.tiers(prob), len(ranker.items_)
    found = found.iloc[: whole if n is None else n]
    ax = worth(ranker, prob=prob, n=len(found), ax=ax)
    of_items = found["tier"].to_numpy()
    edges = np.append(np.flatnonzero(np.diff(of_items, prepend=0)), len(found)) - 0.5
    for tier, (low, high) in enumerate(itertools.pairwise(edges)):
        if tier % 2 == 0:
            ax.axhspan(low, high, color=REST, alpha=0.15, linewidth=0, zorder=-1)
    at_side = ax.get_yaxis_transform()
    for tier, middle in _spread(edges, ax):
        ax.text(1.01, middle, str(tier), transform=at_side, va="center", fontsize="small")
    ax.text(1.01, -0.6, "tier", transform=at_side, va="bottom", fontsize="small", color=REST)
    if _inches(ax, "y") / len(found) >= TICK:
        low, high = ax.get_xlim()
        ax.set_xlim(low, high + 0.08 * (high - low))
        for place, chance in enumerate(found["prob_same_as_next"].iloc[:-1]):
            ax.text(0.995, place + 0.5, f"{chance:.2f}".lstrip("0"), transform=at_side, ha="right", va="center",
                    fontsize="x-small", color=REST)  # fmt: skip
        ax.set_xlabel(f"{ax.get_xlabel()};\n{wrapped('right: probability of one tier', across(ax))}")
    return ax


def _marked(ranker: RankingModel, items: Any) -> list[Any]:
    """Return the items, with those that were never ranked marked as new."""
    known = set(ranker.items_.tolist())
    return [item if item in known else f"{item} (new)" for item in items]


def _spread(edges: Any, ax: Axes) -> list[tuple[int, float]]:
    """Return the tiers whose numbers do not overlap, and the middles of their bands."""
    room, last, found = TICK * (edges[-1] - edges[0]) / max(_inches(ax, "y"), TICK), -np.inf, []
    for tier, (low, high) in enumerate(itertools.pairwise(edges), start=1):
        if (low + high) / 2 - last >= 0.8 * room:
            last = (low + high) / 2
            found.append((tier, last))
    return found


def rank_distribution(
    ranker: RankingModel, row: RowLike | None = None, *, of: str = "worth", n: int = MOST, ax: Axes | None = None
) -> Axes:
    """Plot the probability of every place of each item as a heat map, the best item first.

    Parameters
    ----------
    ranker : PlackettLuceRanker
        A fitted model.
    row : array or data frame of one row, optional
        The row, for a model with covariates.
    of : {"worth", "ranking"}
        As in `PlackettLuceRanker.rank_distribution`.
    n : int
        Maximum number of items: the best ones.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
    """
    table = ranker.rank_distribution(row, of=of)
    what = "place by worth" if of == "worth" else "place in a new ranking"
    return _shades(ranker, row, table, n, what, False, ax)


def prob_better(
    ranker: RankingModel, row: RowLike | None = None, *, of: str = "worth", n: int = MOST, ax: Axes | None = None
) -> Axes:
    """Plot the probability that an item (row) is better than another (column) as a heat map, the best first.

    Parameters
    ----------
    ranker : PlackettLuceRanker
        A fitted model.
    row : array or data frame of one row, optional
        The row, for a model with covariates.
    of : {"worth", "ranking"}
        As in `PlackettLuceRanker.prob_better`.
    n : int
        Maximum number of items: the best ones.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
    """
    table = ranker.prob_better(row, of=of)
    what = "has the larger worth than" if of == "worth" else "comes before"
    table = table.rename(columns=dict(zip(table.columns, _marked(ranker, table.columns), strict=True)))
    ax = _shades(ranker, row, table, n, what, True, ax)
    ax.tick_params(axis="x", rotation=90)
    return ax


def _shades(
    ranker: RankingModel,
    row: RowLike | None,
    table: Any,
    n: int,
    what: str,
    turned: bool,
    ax: Axes | None,
) -> Axes:
    """Draw numbers between 0 and 1 by item and column, darker for larger ones, written where there is room."""
    if row is not None:
        if len(table.index.levels[0]) != 1:
            raise ValueError("one row is drawn at a time: give one row of X.")
        table = table.droplevel("row")
    from matplotlib.colors import to_rgb

    columns, items = table.columns[:n], _marked(ranker, table.index[:n])
    values = table.iloc[:n, :n].to_numpy()
    ax = _axes(ax, max(6.4, MARGIN + 1.6 + ROOM * len(columns)), len(values))
    image = ax.imshow(values, vmin=0, vmax=1, cmap="Blues", aspect="auto")
    image.set_cmap(image.cmap.with_extremes(bad=(*to_rgb(REST), 0.2)))
    width, height = size_of(ax)
    if len(columns) * CELL[0] <= width - BESIDES and len(values) * CELL[1] <= height - FOOT:
        for (i, j), value in np.ndenumerate(values):
            if np.isfinite(value) and value >= 0.005:
                ink = "white" if value > 0.6 else "black"
                ax.text(j, i, f"{value:.2f}".lstrip("0"), ha="center", va="center", fontsize="small", color=ink)
    high = int(np.clip(HIGH * size_of(ax)[1] / LETTER, 8, 20))
    names = [label(column, high) for column in columns]
    foot = FOOT + LETTER * max(map(len, names)) * turned
    _name(ax, "y", [label(item, beside(ax, BESIDES)) for item in items], below=foot)
    _name(ax, "x", names, turned)
    ax.set_xlabel(wrapped(what, across(ax)))
    ax.set_title(wrapped(of("items", len(values), len(table)), across(ax)))
    ax.figure.colorbar(image, ax=ax, label="probability")
    return ax


def _axes(ax: Axes | None, width: float, items: int) -> Axes:
    """Return the given Axes, or those of a new figure that is high enough for the items."""
    if ax is None:
        ax = axes(None)
        ax.figure.set_size_inches(min(width, TALLEST), float(np.clip(MARGIN + ROOM * items, SMALLEST, TALLEST)))  # type: ignore[union-attr]
    return ax


def _inches(ax: Axes, axis: str) -> float:
    """Return the length of an axis."""
    box = ax.get_window_extent()
    return float((box.height if axis == "y" else box.width) / ax.figure.dpi)


def _name(ax: Axes, axis: str, labels: list[str], turned: bool = True, below: float = FOOT) -> None:
    """Label positions 0, 1, … of an axis: all, every second, or fewer where labels would overlap.

    Labels of the horizontal axis are `turned` upright, or lie beside each other. Title, labels and so on take the
    inches `below`.
    """
    inches = _inches(ax, axis)
    if axis == "y":
        inches = min(inches, size_of(ax)[1] - below)
    each = TICK if turned else TICK + LETTER * (max(map(len, labels)) - 1)
    step = max(1, int(np.ceil(len(labels) * each / max(inches, each))))
    places = range(0, len(labels), step)
    (ax.set_yticks if axis == "y" else ax.set_xticks)(list(places), labels[::step])
