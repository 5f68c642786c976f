"""ArviZ: one adapter for InferenceData (0.x) and DataTree (1.x)."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from plackett.posterior.base import refuse

if TYPE_CHECKING:
    from plackett.estimator import Model

MOST = 1 << 29  # log-likelihoods held at a time: 4 GiB


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


def to_arviz(model: Model, X: Any = None, y: Any = None) -> Any:
    """Draws in ArviZ's form; with rows and labels also the log-likelihood of each under every draw."""
    posterior, trace = model.posterior_, model.trace_
    refuse(posterior.no_chains)
    if (X is None) != (y is None):
        raise ValueError("to_arviz takes rows and their labels together, for their log-likelihood, or neither.")
    values, dims, coords = posterior.variables(model)
    groups: dict[str, dict[str, Any]] = {"posterior": values, "sample_stats": {"lp": trace}}
    if X is not None:
        rows, codes, labels = model._observed(X, y)
        _check_room(len(codes), trace.size)
        pointwise = posterior.log_likelihood(rows, codes).reshape(*trace.shape, len(codes))
        groups |= {"log_likelihood": {"y": pointwise}, "observed_data": {"y": labels}}
        dims, coords = dims | {"y": ["row"]}, coords | {"row": np.arange(len(codes))}
    with arviz_for("to_arviz") as arviz:
        if arviz_1():
            return arviz.from_dict(groups, coords=coords, dims=dims)
        return arviz.from_dict(**groups, coords=coords, dims=dims)


def _check_room(n_rows: int, n_draws: int) -> None:
    """Refuse a log-likelihood that no machine should be asked to hold without notice."""
    if n_rows * n_draws > MOST:
        raise ValueError(
            f"the log-likelihood of {n_rows:,} rows under {n_draws:,} draws takes {n_rows * n_draws / 2**27:,.1f} GiB. "
            f"Give {MOST // n_draws:,} rows or fewer, spread over the data, or none for the draws alone."
        )
