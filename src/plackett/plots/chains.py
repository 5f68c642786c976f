"""Chains of a sampler: traces and ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import rankdata
from sklearn.utils.validation import check_is_fitted

from plackett.data.model_input import of_pipeline
from plackett.model.race import Array
from plackett.plots.style import REST, across, axes, below, chain_colour, label, lines_of, pair, wrapped
from plackett.posterior.base import Quantities, refuse

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from plackett.estimator import Classifier


LOWEST = -30.0  # ln of a negligible weight
BINS = 20  # bins of the ranks
LANE = 0.9  # fraction of the distance between lanes filled by the highest bar
LANES = 20  # number of lanes with numbers
NAMED = 10  # maximum number of chains in a legend


def trace(
    classifier: Classifier, quantity: str | tuple[object, object] | None = None, *, ax: Axes | None = None
) -> Axes:
    """Plot the values of one quantity along the chains.

    Parameters
    ----------
    classifier : PlackettLuceClassifier or SparseLogitClassifier
        A model fitted by sampling.
    quantity : "probability", "shape", "penalty", "log-likelihood" or (class, feature), optional
        Quantity to draw: the worst-mixing class probability among those used for diagnostics, ln a, ln θ, the
        log-likelihood (for learned directions the log-posterior), or one log-weight (coefficient of a sparse logit) by
        the label of its class and the name of its feature. By default the worst-mixing one.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes

    Notes
    -----
    The logarithm of an inactive weight may be −1000; the plot ends at −30, where weights are negligible.
    """
    name, values = _chains(classifier, quantity)
    ax = axes(ax)
    for c, drawn in enumerate(values):
        ax.plot(drawn, color=chain_colour(c, len(values)), alpha=0.8, linewidth=1.0, label=f"chain {c + 1}")
    ax.set(xlabel="draw", xlim=(0, max(1, values.shape[1] - 1)))
    if name.startswith("ln weight") and values.min() < LOWEST:
        xlabel = wrapped(f"draw (values below {LOWEST:g} are not shown)", 2 * across(ax))
        ax.set(xlabel=xlabel, ylim=(LOWEST, 0))
    ax.set_title(wrapped(name, 2 * across(ax)), fontsize="medium")
    if 1 < len(values) <= NAMED:
        below(ax, ax.get_lines())
    return ax


def rank(
    classifier: Classifier, quantity: str | tuple[object, object] | None = None, *, ax: Axes | None = None
) -> Axes:
    """Plot ranks of one quantity, with a histogram in a lane for each chain, to see whether the chains agree.

    If the chains agree, the histograms are flat, at the dashed line of their lane. All lanes have one scale, on which
    the highest bar fills its lane.

    Parameters
    ----------
    classifier : PlackettLuceClassifier or SparseLogitClassifier
        A model fitted by sampling.
    quantity : "probability", "shape", "penalty", "log-likelihood" or (class, feature), optional
        As in `trace`.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
    """
    name, values = _chains(classifier, quantity)
    ax = axes(ax)
    chains, draws = values.shape
    ranks = rankdata(values).reshape(values.shape)
    edges = np.linspace(0.5, values.size + 0.5, min(BINS, draws) + 1)
    counts = np.stack([np.histogram(row, edges)[0] for row in ranks])
    lane = LANE / counts.max()
    for c, row in enumerate(counts):
        ax.bar(edges[:-1], row * lane, np.diff(edges), bottom=c, align="edge", color=REST, edgecolor="none")
    level = np.arange(chains) + draws / (len(edges) - 1) * lane
    ax.hlines(level, edges[0], edges[-1], color=ax.xaxis.label.get_color(), linestyle="--", linewidth=0.8)
    ticks = np.arange(0, chains, -(-chains // lines_of(ax, LANES)))
    ax.set_yticks(ticks + LANE / 2, ticks + 1)
    xlabel = wrapped("rank among the draws of all chains", 2 * across(ax))
    ax.set(xlim=(edges[0], edges[-1]), ylim=(0, chains), ylabel="chain", xlabel=xlabel)
    ax.set_title(wrapped(name, 2 * across(ax)), fontsize="medium")
    return ax


def _chains(classifier: Classifier, quantity: str | tuple[object, object] | None) -> tuple[str, Array]:
    """Return the name of a quantity and its values (chain, draw)."""
    check_is_fitted(classifier)
    (classifier,) = of_pipeline(classifier)
    refuse(classifier.posterior_.no_chains)
    found = classifier.posterior_.quantities(classifier)
    classes, names = list(classifier._labels()[1]), list(found.names)
    if quantity is None:
        quantity = _worst(found, classes)
    if isinstance(quantity, str) and quantity in found.scalars:
        title, values = found.scalars[quantity]
        return label(title), values
    known = isinstance(quantity, tuple) and len(quantity) == 2 and quantity[0] in classes and quantity[1] in names
    if not known or found.table is None:
        raise ValueError(
            f"quantity must be one of {', '.join(map(repr, found.scalars))} or (class, feature) with one of classes_ "
            f"and one of the feature names, got {quantity!r} instead."
        )
    return found.title + pair(*quantity), found.table[:, :, classes.index(quantity[0]), names.index(quantity[1])]


def _worst(found: Quantities, classes: list[Any]) -> str | tuple[object, object]:
    """Return the quantity with the smallest effective sample size; the first if it is unknown."""
    first = next(iter(found.scalars))
    if found.ess is None:
        return first
    k, j = np.unravel_index(np.nanargmin(found.ess), found.ess.shape)
    return first if found.scalar_ess < found.ess[k, j] else (classes[k], found.names[j])
