"""One fit of nested logit: its maximum, or draws, and the resulting posterior."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from sklearn.exceptions import ConvergenceWarning

from plackett.data.columns import listed
from plackett.inference import EM, Gibbs
from plackett.inference.base import Fit, open_ended
from plackett.inference.driver import Source
from plackett.linear.likelihood import LinearSituations
from plackett.linear.nested import NestedMaximum, NestedSituations, nested_covariance, nested_maximum, nested_scores
from plackett.linear.nested_walk import NestedRun
from plackett.linear.newton import Maximum
from plackett.linear.utility import LENGTH, SPREAD, LinearUtility, iterations
from plackett.model.race import Array
from plackett.posterior.nested_choices import NestedDraws, NestedEstimate
from plackett.responses.base import Whole
from plackett.responses.nests import Nests

LEVEL = 6  # calls between a warning and the call of fit


def estimate_nested(
    inference: EM | Gibbs,
    settings: LinearUtility,
    packed: LinearSituations,
    best: Maximum,
    nests: Nests,
    alternative: Whole,
    person: npt.NDArray[np.intp] | None,
    source: Source,
) -> Fit:
    """Return the maximum with its covariances, or draws from the posterior.

    Parameters
    ----------
    inference : EM or Gibbs
        How.
    settings : LinearUtility
        The prior of the coefficients.
    packed : LinearSituations
        Choices with standardised columns.
    best : Maximum
        That of conditional logit, with the same prior.
    nests : Nests
        Which alternatives share a nest.
    alternative : (entries,) array
        The alternative of each entry, as they are packed.
    person : (T,) array, optional
        Who chose.
    source : Source
        Seed of the chains, and whether to show progress.
    """
    nested = NestedSituations(packed, nests.of_alternative[alternative], len(nests.names))
    _check_choices(nested, nests)
    max_iter = iterations(inference)
    found = nested_maximum(nested, best, max_iter)
    if inference.samples:
        return _sampled(inference, settings, nested, found, nests, source)
    if not found.converged:
        message = f"the climb did not converge in {max_iter} iterations. Raise EM(max_iter=...)."
        warnings.warn(message, ConvergenceWarning, stacklevel=LEVEL)
    if found.bounded.any():
        some = listed(repr(name) for name, bound in zip(nests.names, found.bounded, strict=True) if bound)
        warnings.warn(
            f"the dissimilarity of {some} is at its bound of 1: the alternatives do not substitute for each other more "
            "than for others. Leave the nest out.",
            UserWarning,
            stacklevel=LEVEL,
        )
    d = len(best.beta)
    scores, counts = nested_scores(nested, found.position)[1], packed.outcomes.counts
    robust = scores / np.sqrt(np.where(counts > 0, counts, 1.0))[:, None]
    posterior = NestedEstimate(
        found.position[:d],
        nested_covariance(found),
        nested_covariance(found, robust),
        None if person is None else _by_person(found, scores, person),
        settings.spread,
        found.converged,
        nests=replace(nests, dissimilarity=found.position[d:]),
    )
    return Fit(posterior, 1.0, found.trace, len(found.trace))  # type: ignore[arg-type]


def _by_person(best: NestedMaximum, scores: Array, person: npt.NDArray[np.intp]) -> Array:
    """Return the sandwich with sums of scores over the situations of each of n persons, times n/(n − 1)."""
    n = int(person.max()) + 1
    sums = np.zeros((n, scores.shape[1]))
    np.add.at(sums, person, scores)
    return nested_covariance(best, sums) * n / (n - 1)


def _sampled(
    gibbs: Gibbs, settings: LinearUtility, packed: NestedSituations, best: NestedMaximum, nests: Nests, source: Source
) -> Fit:
    goes_on, gibbs = open_ended(gibbs), gibbs.completed(**LENGTH)
    run = NestedRun(gibbs, packed, best, source, goes_on)
    draws = run.run(stacklevel=LEVEL + 1)
    beta, alpha = np.split(draws["position"], [packed.linear.X.shape[1]], axis=2)
    means = replace(nests, dissimilarity=alpha.mean(axis=(0, 1)))
    posterior = NestedDraws(beta, float(settings.spread or SPREAD), dissimilarity=alpha, nests=means)
    extra = {"diagnostics_": run.diagnose(), "inference_": run.settings}
    return Fit(posterior, 1.0, draws["value"], run.settings.tune + run.store.iterations, extra)  # type: ignore[arg-type]


def _check_choices(packed: NestedSituations, nests: Nests) -> None:
    """Raise for nests without any two alternatives available together: the data say nothing about them."""
    outcomes = packed.linear.outcomes
    situation = np.repeat(np.arange(len(outcomes.counts)), np.diff(outcomes.start))
    for g, name in enumerate(nests.names):
        there = np.bincount(situation[packed.nest == g], minlength=len(outcomes.counts))
        if not (there[outcomes.counts > 0] > 1).any():
            raise ValueError(
                f"nests: no two alternatives of {name!r} are available in the same situation, so that nothing is known "
                "of their dissimilarity. Leave the nest out."
            )
