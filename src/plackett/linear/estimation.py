"""One fit of conditional logit: identification, maximum or draws, and the resulting posterior."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from plackett.data.columns import listed
from plackett.data.validation import plain
from plackett.inference import EM, Gibbs
from plackett.inference.base import Fit, open_ended
from plackett.inference.driver import Source
from plackett.linear.covariance import by_person, classical, robust
from plackett.linear.identification import (
    is_doubtful,
    never_chosen,
    separation,
    unidentified,
    words_for_unidentified,
)
from plackett.linear.likelihood import LinearSituations, evaluate
from plackett.linear.logit_walk import LinearRun
from plackett.linear.nested_estimation import estimate_nested
from plackett.linear.newton import Maximum, maximise
from plackett.linear.utility import LENGTH, SPREAD, LinearUtility, iterations
from plackett.posterior.linear_choices import LinearDraws, LinearEstimate
from plackett.responses.nests import Nests

Codes = npt.NDArray[np.intp]
LEVEL = 5  # calls between a warning and the call of fit
CURE = "give the coefficients a prior, features=LinearUtility(spread=10), or draw them, inference='gibbs'"


class LinearTask(NamedTuple):
    """Data and settings of a fit.

    Attributes
    ----------
    packed : LinearSituations
        Situations with standardised columns.
    names : (d,) array
        The columns.
    alternative : (entries,) array
        The alternative of each entry, as they are packed.
    labels : (A,) array
        Alternatives.
    marked : array
        Alternatives with a constant, and the one that they are compared with; none without constants.
    person : (T,) array, optional
        Who chose.
    source : Source
        Seed of the chains, and whether to show progress.
    nests : Nests, optional
        Alternatives that share a nest.
    """

    packed: LinearSituations
    names: npt.NDArray[np.object_]
    alternative: Codes
    labels: npt.NDArray[Any]
    marked: Codes
    person: Codes | None
    source: Source
    nests: Nests | None = None


def estimate(inference: EM | Gibbs, settings: LinearUtility, task: LinearTask) -> Fit:
    """Return the maximum with its covariances, or draws from the posterior."""
    precision = settings.precision(inference.samples)
    at_zero = evaluate(task.packed, np.zeros(task.packed.X.shape[1]))
    _check_columns(task, at_zero.information, precision)
    _check_alternatives(task, precision)
    max_iter = iterations(inference)
    best = maximise(task.packed, precision, max_iter, at_zero)
    if precision == 0.0 and is_doubtful(at_zero.information, best):
        _check_maximum(task)
    if task.nests is not None:
        nested = task.packed, best, task.nests, task.alternative, task.person, task.source
        return estimate_nested(inference, settings, *nested)
    if inference.samples:
        return _sampled(inference, settings, task, best)
    if not best.converged:
        message = f"the climb did not converge in {max_iter} Newton steps. Raise EM(max_iter=...)."
        warnings.warn(message, ConvergenceWarning, stacklevel=LEVEL)
    person = None if task.person is None else by_person(task.packed, best, task.person)
    covariances = classical(best), robust(task.packed, best), person
    found = LinearEstimate(best.beta, *covariances, settings.spread, best.converged)
    return Fit(found, 1.0, best.trace, len(best.trace))  # type: ignore[arg-type]


def _sampled(gibbs: Gibbs, settings: LinearUtility, task: LinearTask, best: Maximum) -> Fit:
    goes_on, gibbs = open_ended(gibbs), gibbs.completed(**LENGTH)
    run = LinearRun(gibbs, task.packed, best, task.source, goes_on)
    draws = run.run(stacklevel=LEVEL + 1)
    found = LinearDraws(draws["position"], float(settings.spread or SPREAD))
    extra = {"diagnostics_": run.diagnose(), "inference_": run.settings}
    return Fit(found, 1.0, draws["value"], run.settings.tune + run.store.iterations, extra)  # type: ignore[arg-type]


def _check_columns(task: LinearTask, information: npt.NDArray[np.float64], precision: float) -> None:
    """Raise for columns whose coefficients are not identified; with a prior, warn."""
    if not len(task.names):
        raise ValueError(
            "there is nothing to fit: no attribute, and no alternative has a constant. Give attributes=[...] to the "
            "choice sets, or LinearUtility(constants=True)."
        )
    n = max(float(task.packed.outcomes.counts.sum()), np.finfo(float).tiny)
    found = unidentified(information, n)
    if not found:
        return
    words, last = words_for_unidentified(found, task.names), [task.names[some[-1]] for some in found]
    if precision == 0.0:
        raise ValueError(f"{words}. Leave {listed(map(repr, last))} out of the choice sets, or {CURE}.")
    warnings.warn(f"{words}; what the data leave open the prior decides.", UserWarning, stacklevel=LEVEL + 1)


def _check_alternatives(task: LinearTask, precision: float) -> None:
    """Raise for alternatives with a constant that were never chosen; with a prior, warn."""
    never = np.intersect1d(never_chosen(task.packed, task.alternative, len(task.labels)), task.marked)
    if not len(never):
        return
    chosen = np.setdiff1d(task.alternative, never)
    if len(chosen) == 1:
        words = f"every situation chose {plain(task.labels[chosen[0]])}"
    else:
        words = f"never chosen, though available: {listed(plain(task.labels[k]) for k in never)}"
    if precision == 0.0:
        raise ValueError(
            f"{words}. The likelihood has no maximum: it rises for ever as constants part. Leave such alternatives out "
            f"of the choice sets, or {CURE}."
        )
    warnings.warn(f"{words}; how large its constant is the prior decides.", UserWarning, stacklevel=LEVEL + 1)


def _check_maximum(task: LinearTask) -> None:
    """Raise if the data are separated, and name the columns responsible."""
    some = separation(task.packed)
    if some:
        raise ValueError(
            f"the choices are separated by {listed(repr(task.names[j]) for j in some)}: along "
            f"{'it' if len(some) == 1 else 'a combination of them'} the likelihood rises for ever, and has no maximum. "
            f"Leave {'it' if len(some) == 1 else 'one of them'} out, or {CURE}."
        )
