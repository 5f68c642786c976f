"""ArviZ: one adapter for InferenceData (0.x) and DataTree (1.x)."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

import numpy as np
import numpy.typing as npt

from plackett.directions.posterior import DirectionDraws, probabilities
from plackett.model.race import Array
from plackett.posterior.weights import CHUNK, Draws, chunks


@contextmanager
def arviz_for(what: str) -> Iterator[Any]:
    """ArviZ, without the warnings it raises about its own future and that of the libraries it calls.

    ArviZ 0.23 announces its refactoring when it is first imported on a day, and calls what Matplotlib is about to
    change: nothing that a user of this package could mend, nor should be stopped by where warnings are errors.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            import arviz
        except ImportError as error:
            raise ImportError(f"{what} needs ArviZ: pip install 'plackett[arviz]'") from error
        yield arviz


def arviz_1() -> bool:
    """Is this ArviZ 1.x?"""
    return int(version("arviz").split(".")[0]) >= 1


def to_arviz(classifier: Any, log_likelihood: bool = True) -> Any:
    """Draws of a Gibbs fit in ArviZ's form."""
    posterior = classifier.posterior_
    if type(posterior) is DirectionDraws:
        return directions_to_arviz(classifier, log_likelihood)
    if not isinstance(posterior, Draws):
        raise ValueError("to_arviz needs draws of a Markov chain; fit with inference='gibbs'.")
    variables = {
        "log_weight": posterior.log_weights,
        "weight": np.exp(posterior.log_weights),
        "shape": posterior.shape,
    }
    dims = {"log_weight": ["class", "feature"], "weight": ["class", "feature"]}
    coords = {"class": classifier.classes_, "feature": classifier._feature_names()}
    if not log_likelihood:
        return assemble(variables, classifier.trace_, dims, coords)
    if not hasattr(classifier, "_training"):
        raise ValueError("a model file does not hold the training rows; use to_arviz(log_likelihood=False).")
    features, codes, weight = classifier._training
    flat = posterior.flat_draws()
    own = np.empty((len(codes), len(flat)))
    start = 0
    for block in chunks(features, flat):
        stop = start + len(block)
        own[start:stop] = np.take_along_axis(block, codes[start:stop, None, None], axis=2)[:, :, 0]
        start = stop
    with np.errstate(divide="ignore"):
        pointwise = np.log(own).T.reshape(*posterior.shape.shape, len(codes)) * (1.0 if weight is None else weight)
    return assemble(variables, classifier.trace_, dims, coords, pointwise, classifier.classes_[codes])


def directions_to_arviz(classifier: Any, log_likelihood: bool) -> Any:
    """Draws of learned directions: for the columns that they are sampled on, covariates or principal axes."""
    posterior, gates = classifier.posterior_, classifier.features_
    variables = {
        "direction": posterior.directions,
        "log_weight": posterior.log_weights,
        "scale": posterior.scales,
    }
    dims = {"direction": ["component", "column"], "log_weight": ["class", "component"], "scale": ["column"]}
    n_components, n_columns = posterior.directions.shape[2:]
    columns = classifier._covariates() if gates.rotation is None else np.arange(n_columns)
    coords = {"class": classifier.classes_, "component": np.arange(n_components), "column": columns}
    if not log_likelihood:
        return assemble(variables, classifier.trace_, dims, coords)
    if not hasattr(classifier, "_training"):
        raise ValueError("a model file does not hold the training rows; use to_arviz(log_likelihood=False).")
    X, codes, weight = classifier._training
    Z = gates.standardised(X)
    step = max(1, CHUNK // (posterior.log_weights[..., 0, :].size))
    own = [
        np.take_along_axis(probabilities(posterior, Z[i : i + step]), codes[None, None, i : i + step, None], axis=3)
        for i in range(0, len(Z), step)
    ]
    pointwise = np.log(np.concatenate(own, axis=2)[..., 0]) * (1.0 if weight is None else weight)
    return assemble(variables, classifier.trace_, dims, coords, pointwise, classifier.classes_[codes])


def assemble(
    variables: dict[str, Array],
    trace: Array,
    dims: dict[str, list[str]],
    coords: dict[str, npt.NDArray[Any]],
    pointwise: Array | None = None,
    labels: npt.NDArray[Any] | None = None,
) -> Any:
    """ArviZ's container: draws, log-likelihoods (chain, draw) and, where given, those of each row with its label."""
    groups: dict[str, dict[str, Any]] = {"posterior": variables, "sample_stats": {"lp": trace}}
    if pointwise is not None:
        groups |= {"log_likelihood": {"y": pointwise}, "observed_data": {"y": labels}}
        dims = dims | {"y": ["row"]}
        coords = coords | {"row": np.arange(pointwise.shape[-1])}
    with arviz_for("to_arviz") as arviz:
        if arviz_1():
            return arviz.from_dict(groups, coords=coords, dims=dims)
        return arviz.from_dict(**groups, coords=coords, dims=dims)
