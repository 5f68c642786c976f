"""Chains of a sampler, drawn by ArviZ 0.x or 1.x."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from plackett.directions.posterior import DirectionDraws
from plackett.interop import arviz_1, arviz_for
from plackett.logit.posterior import LogitDraws
from plackett.model.race import Array
from plackett.plots.estimates import weights_of
from plackett.plots.style import axes, colour, pair
from plackett.posterior import Draws

LOWEST = -30.0  # ln of a weight that cannot matter


def trace(classifier: Any, quantity: Any = None, *, ax: Any = None) -> Any:
    """Values of one quantity along the chains, by ArviZ.

    Parameters
    ----------
    classifier : PlackettLuceClassifier or SparseLogitClassifier
        A model fitted by sampling.
    quantity : "shape", "penalty", "log-likelihood" or (class, feature), optional
        What to draw: ln a, ln θ, the log-likelihood, or one log-weight (coefficient of a sparse logit) by the label
        of its class and the name of its feature. By default what mixes worst.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes

    Notes
    -----
    The logarithm of a dead weight may be −1000; the picture ends at −30, far below what matters.
    """
    name, values = _chains(classifier, quantity)
    ax = axes(ax)
    with arviz_for("trace plots") as arviz:
        data = arviz.convert_to_dataset({"value": values})
        if arviz_1():
            arviz.plot_trace(data, plot_collection=_collection(data, ax))
        else:
            from matplotlib.figure import Figure

            beside = Figure().subplots()  # ArviZ 0.x draws densities next to the traces
            look: dict[str, Any] = {
                "chain_prop": {"color": [colour(c) for c in range(len(values))]},
                "trace_kwargs": {"alpha": 0.8},
            }
            arviz.plot_trace(data, axes=np.array([[beside, ax]]), legend=False, compact=False, **look)
    ax.set(xlabel="draw", ylabel="")
    if name.startswith("ln weight") and values.min() < LOWEST:
        ax.set(xlabel=f"draw (values below {LOWEST:g} are not shown)", ylim=(LOWEST, 0))
    ax.set_title(name, fontsize="medium")
    return ax


def rank(classifier: Any, quantity: Any = None, *, ax: Any = None) -> Any:
    """Do the chains draw from the same distribution? Ranks of one quantity, by ArviZ.

    ArviZ 0.x draws a histogram for each chain, flat where the chains agree; ArviZ 1.x the difference of each chain's
    distribution of ranks from the uniform one.

    Parameters
    ----------
    classifier : PlackettLuceClassifier or SparseLogitClassifier
        A model fitted by sampling.
    quantity : "shape", "penalty", "log-likelihood" or (class, feature), optional
        As in `trace`.
    ax : Axes, optional
        Where to draw; by default a new figure.

    Returns
    -------
    Axes
    """
    name, values = _chains(classifier, quantity)
    ax = axes(ax)
    with arviz_for("rank plots") as arviz:
        data = arviz.convert_to_dataset({"value": values})
        if arviz_1():
            arviz.plot_rank(data, plot_collection=_collection(data, ax))
        else:
            arviz.plot_rank(data, ax=ax, colors=[colour(c) for c in range(len(values))])
            ax.tick_params(labelsize="medium")
    ax.set_title(name, fontsize="medium")
    ax.set_xlabel("rank among the draws of all chains", fontsize="medium")
    ax.yaxis.label.set_size("medium")
    return ax


def _chains(classifier: Any, quantity: Any) -> tuple[str, Array]:
    """The name of a quantity and its values (chain, draw)."""
    check_is_fitted(classifier)
    posterior = classifier.posterior_
    if isinstance(posterior, Draws):
        scalars: dict[str, tuple[str, Array]] = {"shape": ("ln a", np.log(posterior.shape))}
        table, names, kind = posterior.log_weights, classifier._feature_names(), "ln weight of "
    elif isinstance(posterior, LogitDraws):
        scalars = {"penalty": ("ln θ", np.log(posterior.penalty))}
        table, names, kind = posterior.coef, weights_of(classifier)[0], "coefficient of "
    elif isinstance(posterior, DirectionDraws) and classifier.trace_.ndim == 2:
        scalars, quantity = {}, quantity or "log-likelihood"
        table, names, kind = posterior.log_weights, np.empty(0, dtype=object), ""
    else:
        raise ValueError("trace and rank plots need the chains of a sampler; fit with inference='gibbs'.")
    name = "log-posterior" if isinstance(classifier.posterior_, DirectionDraws) else "log-likelihood"
    scalars["log-likelihood"] = (name, classifier.trace_)
    if quantity is None:
        quantity = _worst(classifier, next(iter(scalars)), names)
    if isinstance(quantity, str) and quantity in scalars:
        return scalars[quantity]
    classes, columns = list(classifier.classes_), list(names)
    if not (isinstance(quantity, tuple) and len(quantity) == 2 and quantity[0] in classes and quantity[1] in columns):
        raise ValueError(
            f"quantity must be one of {', '.join(map(repr, scalars))} or (class, feature) with one of classes_ and one "
            f"of the feature names, got {quantity!r} instead."
        )
    name = kind + pair(*quantity)
    return name, table[:, :, classes.index(quantity[0]), columns.index(quantity[1])]


def _worst(classifier: Any, hyper: str, names: npt.NDArray[Any]) -> Any:
    """The quantity with the smallest effective sample size."""
    found = classifier.diagnostics_
    if found is None:
        return hyper
    table = found.coef if hyper == "penalty" else found
    ess = np.minimum(table.ess_bulk, table.ess_tail)
    single = found.penalty.ess_bulk if hyper == "penalty" else found.shape_ess_bulk
    k, j = np.unravel_index(np.nanargmin(ess), ess.shape)
    return hyper if single < ess[k, j] else (classifier.classes_[k], names[j])


def _collection(data: Any, ax: Any) -> Any:
    """ArviZ 1.x: a collection of plots that consists of a given Axes."""
    import xarray
    from arviz_plots import PlotCollection

    viz = xarray.Dataset({"figure": ((), ax.figure), "plot": ((), ax), "row": ((), 0), "col": ((), 0)})
    colours = [colour(c) for c in range(data.sizes["chain"])]
    return PlotCollection(data, xarray.DataTree(viz), aes={"color": ["chain"]}, backend="matplotlib", color=colours)
