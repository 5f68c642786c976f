"""ArviZ: one adapter for InferenceData (0.x) and DataTree (1.x)."""

from __future__ import annotations

import warnings
from importlib.metadata import version
from typing import Any

import numpy as np
import numpy.typing as npt

from plackett.model.race import Array
from plackett.posterior import Draws, chunks


def to_arviz(classifier: Any, log_likelihood: bool = True) -> Any:
    """Draws of a Gibbs fit in ArviZ's form."""
    posterior = classifier.posterior_
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
    features, codes = classifier._training
    flat = posterior.flat_draws()
    own = np.empty((len(codes), len(flat)))
    start = 0
    for block in chunks(features, flat):
        stop = start + len(block)
        own[start:stop] = np.take_along_axis(block, codes[start:stop, None, None], axis=2)[:, :, 0]
        start = stop
    with np.errstate(divide="ignore"):
        pointwise = np.log(own).T.reshape(*posterior.shape.shape, len(codes))
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
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            import arviz
    except ImportError as error:
        raise ImportError("to_arviz needs ArviZ: pip install 'plackett[arviz]'") from error
    groups: dict[str, dict[str, Any]] = {"posterior": variables, "sample_stats": {"lp": trace}}
    if pointwise is not None:
        groups |= {"log_likelihood": {"y": pointwise}, "observed_data": {"y": labels}}
        dims = dims | {"y": ["row"]}
        coords = coords | {"row": np.arange(pointwise.shape[-1])}
    if int(version("arviz").split(".")[0]) >= 1:
        return arviz.from_dict(groups, coords=coords, dims=dims)
    return arviz.from_dict(**groups, coords=coords, dims=dims)
