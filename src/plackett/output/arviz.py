"""Export to ArviZ: one adapter for InferenceData (0.x) and DataTree (1.x)."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from copy import copy
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plackett.data.rows import count_rows, take_rows
from plackett.engines.base import check_counts
from plackett.model.race import Array
from plackett.optional import optional
from plackett.posterior.base import Codes, refuse
from plackett.posterior.pool import outcome_log_values
from plackett.posterior.segment_members import mixture_values

if TYPE_CHECKING:
    from plackett.estimator import Model

MOST = 1 << 26  # maximum of draws times rows, 12 bytes each: 768 MiB
FEWEST = 100  # minimum of draws per chain after thinning
SHOWN = 20  # number of rows whose probabilities are listed
PREDICTIVE = 1 << 31  # random stream of predictive draws, beyond those of the chains


@contextmanager
def arviz_for(what: str) -> Iterator[Any]:
    """Yield ArviZ, without its warnings about future changes of itself and its libraries.

    ArviZ 0.23 announces its refactoring on first import, and calls functions that Matplotlib is about to change. Users
    of this package can do nothing about these warnings, which must not stop them where warnings are errors.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        warnings.simplefilter("ignore", DeprecationWarning)
        yield optional("arviz", what)


def arviz_1() -> bool:
    """True for ArviZ 1.x."""
    return int(version("arviz").split(".")[0]) >= 1


def to_arviz(model: Model, X: object = None, y: object = None, raw: bool = False, **of_rows: object) -> Any:
    """Convert draws for ArviZ; with rows also predictions of each draw, and with labels their log-likelihood.

    `of_rows` are further data of the rows, passed to the model. Outcomes that are not labels are converted by the model
    for the posterior, which computes their log-likelihood.
    """
    refuse(model.posterior_.no_chains)
    if X is None and y is not None:
        raise ValueError("to_arviz got labels without their rows; give both, to_arviz(X, y), or neither.")
    if X is not None:
        model = _within_room(model, count_rows(X))
    posterior, trace = model.posterior_, model.trace_
    values, dims, coords = posterior.variables(model, raw)
    groups: dict[str, dict[str, Any]] = {"posterior": values, "sample_stats": {"lp": trace}}
    if X is not None:
        n = count_rows(X)
        rows, seen = (model._rows(X, **of_rows), None) if y is None else model._observed(X, y, **of_rows)
        labelled = isinstance(seen, np.ndarray)
        codes = seen if labelled else None
        found = _predicted(posterior.log_predictive(rows), n, trace.shape, codes, _generator(model))
        values["probability"] = found.probability
        groups["posterior_predictive"] = {"y": found.drawn}
        if labelled:
            groups |= {"log_likelihood": {"y": found.log_likelihood}, "observed_data": {"y": codes}}
        elif seen is not None:
            groups["log_likelihood"] = {"y": posterior.log_values(rows, seen).reshape(*trace.shape, n)}
        dims = dims | {"probability": ["at", "class"], "y": ["row"]}
        coords = coords | {"at": _shown(n), "row": np.arange(n)}
    if not values:
        raise ValueError(
            "nothing but predictions is identified in learned directions: give rows, to_arviz(X, y), for their "
            "probabilities, or raw=True for directions, log-weights and scales as they were drawn."
        )
    with arviz_for("to_arviz") as arviz:
        if arviz_1():
            return arviz.from_dict(groups, coords=coords, dims=dims)
        return arviz.from_dict(**groups, coords=coords, dims=dims)


def rankings_to_arviz(model: Any, X: Any = None, R: Any = None, raw: bool = False) -> Any:
    """Convert draws of a model of rankings for ArviZ: log-worths, and with rankings their log-likelihood."""
    refuse(model.posterior_.no_chains)
    if R is not None:
        counts = check_counts(R.counts, "counts", "rankings").astype(np.intp)
        model = _within_room(model, int(counts.sum()))
    posterior, trace = model.posterior_, model.trace_
    values, dims, coords = posterior.variables(model, raw)
    groups: dict[str, dict[str, Any]] = {"posterior": values, "sample_stats": {"lp": trace}}
    if model._plain and "log_worth" not in values:  # segments have their own
        values |= {"log_worth": model._chain_log_worths(None)[:, :, 0]}
        dims, coords = dims | {"log_worth": ["item"]}, coords | {"item": model.items_}
        if not raw:
            del values["weight"]
    elif X is not None:
        at = _shown(count_rows(X))
        values |= {"log_worth": model._chain_log_worths(take_rows(X, at))}
        dims, coords = dims | {"log_worth": ["at", "item"]}, coords | {"item": model.items_, "at": at}
    if R is not None:
        members = model._members(every=True)
        found = mixture_values(members, outcome_log_values(members, *model._situations(X, R))).reshape(*trace.shape, -1)
        groups["log_likelihood"] = {"ranking": np.repeat(found, counts, axis=2)}
        dims, coords = dims | {"ranking": ["seen"]}, coords | {"seen": np.repeat(np.arange(len(R)), counts)}
    used = {name for name in values} | set(groups.get("log_likelihood", ()))
    dims = {name: of for name, of in dims.items() if name in used}
    coords = {name: labels for name, labels in coords.items() if any(name in of for of in dims.values())}
    if not values:
        raise ValueError("nothing but predictions is identified in learned directions: give rows, to_arviz(X, R).")
    with arviz_for("to_arviz") as arviz:
        if arviz_1():
            return arviz.from_dict(groups, coords=coords, dims=dims)
        return arviz.from_dict(**groups, coords=coords, dims=dims)


class _Predicted(NamedTuple):
    """Predictions of every draw for the rows."""

    probability: Array  # (chain, draw, at, class), for the listed rows
    drawn: npt.NDArray[np.int32]  # (chain, draw, row), a sampled class
    log_likelihood: Array | None  # (chain, draw, row), for the observed class


def _predicted(
    blocks: Iterable[Array], n: int, chains: tuple[int, ...], codes: Codes | None, rng: np.random.Generator
) -> _Predicted:
    """Compute predictions from log-probabilities (rows, S, K) of runs of rows."""
    S, start, shown, probability = math.prod(chains), 0, _shown(n), []
    drawn = np.empty((S, n), np.int32)
    log_likelihood = None if codes is None else np.empty((S, n))
    for block in blocks:
        stop = start + len(block)
        share = np.exp(block)
        probability.append(share[shown[(start <= shown) & (shown < stop)] - start])
        below = rng.random(share.shape[:2])[..., None] * share.sum(axis=2, keepdims=True)
        drawn[:, start:stop] = (np.cumsum(share, axis=2)[..., :-1] <= below).sum(axis=2).T
        if codes is not None and log_likelihood is not None:
            mine = codes[start:stop, None, None]
            log_likelihood[:, start:stop] = np.take_along_axis(block, mine, axis=2)[..., 0].T
        start = stop
    some = np.concatenate(probability).swapaxes(0, 1)
    return _Predicted(
        some.reshape(*chains, *some.shape[1:]),
        drawn.reshape(*chains, n),
        None if log_likelihood is None else log_likelihood.reshape(*chains, n),
    )


def _shown(n: int) -> npt.NDArray[np.intp]:
    """Return the rows, among n, whose probabilities are listed."""
    return np.linspace(0, n - 1, min(SHOWN, n)).round().astype(np.intp)


def _generator(model: Model) -> np.random.Generator:
    """Return a generator from `random_state` that no chain of the fit has used."""
    return np.random.default_rng(np.random.SeedSequence(model._run_settings()[0].entropy, spawn_key=(PREDICTIVE,)))


def _within_room(model: Any, n_rows: int) -> Any:
    """Thin the model to as many draws as can be exported with so many rows."""
    (chains, draws), step = model.trace_.shape, -(-n_rows * model.trace_.size // MOST)
    size = f"predictions and log-likelihoods of {n_rows:,} rows under {model.trace_.size:,} draws take " + (
        f"{12 * n_rows * model.trace_.size / 2**30:,.1f} GiB"
    )
    if step <= 1:
        return model
    if -(-draws // step) < min(FEWEST, draws):
        most = MOST // (chains * min(FEWEST, draws))
        raise ValueError(f"{size}. Give {most:,} rows or fewer, spread over the data, or none for the draws alone.")
    all_of_them = f"{MOST // model.trace_.size:,} rows or fewer"
    warnings.warn(f"{size}: one draw in {step} is exported. All are with {all_of_them}.", UserWarning, stacklevel=4)
    some = copy(model)
    some.posterior_, some.trace_ = model.posterior_.thinned(step), model.trace_[:, ::step]
    return some
