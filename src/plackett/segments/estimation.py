"""One fit of segments: how many, their maximum by EM or draws, and what these leave."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from plackett.inference import EM, Gibbs
from plackett.inference.base import Fit, open_ended
from plackett.inference.driver import Source
from plackett.inference.em import SHAPES
from plackett.inference.worth_mode import covariance_of
from plackett.linear.newton import solved
from plackett.model.race import Array
from plackett.posterior.segment_members import SegmentDraws
from plackett.posterior.segmented_choices import SegmentedChoices
from plackett.posterior.segmented_worths import SegmentedWorths
from plackett.priors import as_prior
from plackett.segments.chances import Chances, chances_of_choices, chances_of_rankings
from plackett.segments.choices import ChoicesOfPersons
from plackett.segments.choices import observed_information as information_of_choices
from plackett.segments.em import Climbed, maximum
from plackett.segments.movers import ChoiceMover, Mover, WorthMover
from plackett.segments.number import folds_of, held_out_loss, losses_of_numbers
from plackett.segments.persons import Codes, Persons
from plackett.segments.ranking_information import MOST, observed_information
from plackett.segments.rankings import RankingsOfPersons
from plackett.segments.segment_chains import SegmentRun, SegmentSampler, in_common_order, kept_memberships
from plackett.segments.segments import Segments

CHOICES = 1e-7  # what may still move of a standardised coefficient
FLAT = 1e-10  # of the largest eigenvalue of the information, what counts as none
START = 1.1  # least shape of the prior of the climb from which chains begin
LENGTH = {"draws": 500, "tune": 200, "max_draws": 10_000}  # of a chain, where Gibbs leaves them open


class SegmentTask(NamedTuple):
    """What is common to fits of all kinds of data.

    Attributes
    ----------
    inference : EM or Gibbs
        How.
    settings : Segments
        How many segments, and from how many starts.
    source : Source
        Seed, and whether to show progress.
    named : bool
        Whether persons have labels, by which they are predicted.
    level : int
        Frames from an estimate to the caller of fit, whose line warnings name.
    """

    inference: EM | Gibbs
    settings: Segments
    source: Source
    named: bool
    level: int

    @property
    def em(self) -> EM:
        """Settings of the climbs, from which chains start as well."""
        em = self.inference if self.inference.maximises else EM()
        em._check()
        return em

    def number(self, persons: Persons, rng: np.random.Generator) -> tuple[int, dict[str, Any]]:
        """How many segments, and the held-out losses where this was to be found out."""
        if self.settings.count != "auto":
            return int(self.settings.count), {}
        losses = losses_of_numbers(persons, self.settings, rng, self.em.max_iter, self.source.progress)
        return min(losses, key=lambda segments: losses[segments]), {"segment_log_loss_": losses}

    def warn(self, best: Climbed) -> None:
        """Warn where EM did not converge."""
        if not best.converged:
            message = f"EM did not converge in {self.em.max_iter} cycles. Raise EM(max_iter=...)."
            warnings.warn(message, ConvergenceWarning, stacklevel=self.level + 1)


def estimate_choices(task: SegmentTask, persons: ChoicesOfPersons, spread: float | None) -> Fit:
    """Segments of persons with linear utilities."""
    rng = np.random.default_rng(task.source.seed)
    segments, found = task.number(persons, rng)
    best = maximum(persons, segments, task.settings.starts, rng, CHOICES, task.em.max_iter)
    places = persons.layout(segments).places
    if task.inference.maximises:
        task.warn(best)
        scores, information = information_of_choices(persons, *best.place, best.member)
        values = np.linalg.eigvalsh(information)
        if values[0] <= FLAT * values[-1]:
            warnings.warn(
                f"{segments} segments are more than these choices tell apart, or a coefficient of one of them runs "
                "away: the log-likelihood is flat at its maximum, and standard errors mean nothing. Ask for fewer "
                "segments, let fewer columns differ, Segments(by=[...]), or give coefficients a prior, "
                "features=LinearUtility(spread=10).",
                UserWarning,
                stacklevel=task.level,
            )
        draws, order = _of_estimate(best, task.named)
        covariances = _covariances(scores, information, order, persons.layout(segments).size)
        posterior = SegmentedChoices(draws, places[order], *covariances, spread, best.converged)
        return Fit(posterior, 1.0, np.array(best.trace), len(best.trace), found)  # type: ignore[arg-type]
    mover = ChoiceMover(persons, best, _completed(task).tune)
    packed, apart = persons.packed, bool(persons.ignored.any()) and segments > 1
    held = packed.X, *packed.outcomes, persons.owned, persons.precision, persons.own, persons.ignored
    run = _run(task, persons, mover, best, chances_of_choices(persons), held)
    drawn, order, _ = _sampled(run, task, persons, apart)
    posterior = SegmentedChoices(drawn, places[order], spread=spread)
    return _fit_of(run, posterior, 1.0, found)


def estimate_rankings(task: SegmentTask, persons: RankingsOfPersons, shape: float | None) -> Fit:
    """Segments of rankers with worths of their own; shape None: it is learned."""
    rng = np.random.default_rng(task.source.seed)
    climbed = START if shape is None else max(shape, 1.0 if task.inference.maximises else START)
    persons = replace(persons, shape=climbed)
    segments, found = task.number(persons, rng)
    if task.inference.maximises:
        if shape is None:
            shape, found["cv_log_loss_"] = _held_out_shape(task, persons, segments, rng)
            persons = replace(persons, shape=shape)
        best = maximum(persons, segments, task.settings.starts, rng, task.em.tol, task.em.max_iter)
        task.warn(best)
        draws, order = _of_estimate(best, task.named)
        covariance = _covariance_of_worths(task, persons, best, order)
        posterior = SegmentedWorths(draws, np.full((1, 1), shape), True, best.converged, covariance)
        return Fit(posterior, shape, np.array(best.trace), len(best.trace), found)  # type: ignore[arg-type]
    best = maximum(persons, segments, task.settings.starts, rng, task.em.tol, task.em.max_iter)
    persons = replace(persons, shape=climbed if shape is None else shape)
    prior = as_prior(task.inference.shape_prior) if shape is None else None
    settings = persons.shape, repr(prior), type(persons.response).__name__
    held = *persons.outcomes, persons.item, persons.owned, persons.counts, *settings
    mover, chances = WorthMover(persons, best, prior), chances_of_rankings(persons.base())
    run = _run(task, persons, mover, best, chances, held)
    drawn, _, shapes = _sampled(run, task, persons, False)
    return _fit_of(run, SegmentedWorths(drawn, shapes), float(shapes.mean()), found)


def _covariance_of_worths(task: SegmentTask, persons: RankingsOfPersons, best: Climbed, order: Codes) -> Array | None:
    """Return the covariance of log-worths and share logits of the segments in this order, or None."""
    (C, K), (log_worths, log_shares) = best.place.parameters.shape, best.place
    if C * K + C - 1 > MOST:
        return None
    found = covariance_of(observed_information(persons, log_worths[order], log_shares[order], best.member[:, order]))
    if found is None:
        warnings.warn(
            f"{C} segment{'' if C == 1 else 's'} are more than these rankings tell apart, or the worth of an item runs "
            "away: the log-likelihood is flat at its maximum, so that there are no intervals. Ask for fewer segments, "
            "or give worths a prior, shape=2.",
            UserWarning,
            stacklevel=task.level + 1,
        )
    return found


def _held_out_shape(
    task: SegmentTask, persons: RankingsOfPersons, segments: int, rng: np.random.Generator
) -> tuple[float, dict[float, float]]:
    """The shape a ≥ 1 under which held-out persons are predicted best, and the losses of all."""
    em = task.em
    shapes = [float(a) for a in em.shapes if em.shapes != SHAPES or a >= 1.0]
    if min(shapes) < 1.0:
        raise ValueError(
            f"EM with segments takes shapes of at least 1, got EM(shapes=...) with {min(shapes):g}: below 1 worths go "
            "to 0. Leave them out, or use inference='gibbs'."
        )
    fold = folds_of(persons, em.cv, rng)
    starts, losses = task.settings.starts, dict[float, float]()
    for a in shapes:
        losses[a] = held_out_loss(replace(persons, shape=a), segments, fold, starts, rng, em.max_iter)
    return min(losses, key=lambda a: losses[a]), losses


def _of_estimate(best: Climbed, named: bool) -> tuple[SegmentDraws, Codes]:
    """One draw of one chain, segments by their shares; and which segment of the climb is which."""
    order = np.argsort(-best.place.log_shares, kind="stable")
    member: Any = best.member[None, None, :, order].astype(np.float32) if named else None
    parameters, shares = best.place.parameters[order], np.exp(best.place.log_shares[order])
    return SegmentDraws(parameters[None, None], shares[None, None], member), order


def _covariances(scores: Array, information: Array, order: Codes, n_free: int) -> tuple[Array, Array]:
    """Inverse information, and the sandwich of persons, in ln π_c − ln π_1 of the segments in this order."""
    Q = len(information)
    inverse = solved(information, np.eye(Q))
    logits = np.zeros((Q - n_free + 1, Q))
    logits[1:, n_free:] = np.eye(Q - n_free)
    turned = np.eye(Q)
    turned[n_free:] = (logits[order] - logits[order[0]])[1:]
    inverse, sandwich = (inverse + inverse.T) / 2, inverse @ scores.T @ scores @ inverse
    return turned @ inverse @ turned.T, turned @ ((sandwich + sandwich.T) / 2) @ turned.T


def _completed(task: SegmentTask) -> Gibbs:
    assert task.inference.samples
    return task.inference.completed(**LENGTH)


def _run(
    task: SegmentTask, persons: Persons, mover: Mover, best: Climbed, chances: Chances, held: tuple[Any, ...]
) -> SegmentRun:
    """A run of the chains, which goes on until predictions are settled if it has no given length."""
    sampler = SegmentSampler(persons, mover, best, float(task.settings.concentration))
    goes_on = open_ended(task.inference)
    return SegmentRun(_completed(task), task.source, sampler, best, chances, held, goes_on)


def _sampled(run: SegmentRun, task: SegmentTask, persons: Persons, apart: bool) -> tuple[SegmentDraws, Codes, Array]:
    """Draws in a common order of segments, which is which, and draws of the shape."""
    draws = run.run(stacklevel=task.level + 1)
    parameters, shares, order = in_common_order(draws, apart)
    known = kept_memberships(persons, parameters, shares) if task.named else ()
    return SegmentDraws(parameters, shares, *known), order, draws["shape"]


def _fit_of(run: SegmentRun, posterior: Any, shape: float, found: dict[str, Any]) -> Fit:
    extra = {"diagnostics_": run.diagnose(), "inference_": run.settings}
    n_iter = run.settings.tune + run.store.iterations
    return Fit(posterior, shape, run.draws()["value"], n_iter, found | extra)
