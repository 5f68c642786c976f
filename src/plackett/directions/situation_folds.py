"""What held-out situations decide, by person: the design, how much to trust a mode beside the draws, and EM's penalty.

The same as `stacking.py` and `map.py` do for classes. Of choices the probabilities of all alternatives are mixed and
raised to a power κ; of rankings the probabilities of whole outcomes are mixed, and there is no κ.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_expit
from sklearn.model_selection import check_cv

from plackett.directions.learning import lengths
from plackett.directions.map import COARSE, last_of, path, scales_for
from plackett.directions.sampler import DirectionRun, drawn
from plackett.directions.situations import MOST, SituationTask
from plackett.directions.stacking import (
    CAUTION,
    CLEARLY,
    FEWEST,
    FOLDS,
    ITERATIONS,
    LONGEST,
    TOLERANCE,
    TUNE,
    HeldOut,
    best_mixture,
    held_out_averages,
)
from plackett.inference.base import Fit, open_ended
from plackett.inference.em import EM
from plackett.inference.folds import Folds, as_folds
from plackett.inference.gibbs import Gibbs
from plackett.inference.limits import Clock
from plackett.model.draws import mixed
from plackett.model.race import Array
from plackett.output.progress import tracked
from plackett.output.scores import log_losses
from plackett.posterior.situations import SituationDraws, SituationPoint

FINE = 1e-13  # tolerance of objective and gradient for a situation: coefficients are right to 1e-5
Found = dict[tuple[int, int, float], Array]  # what was predicted, by design, components and σ


def dealt(task: SituationTask, n_folds: int) -> npt.NDArray[np.intp]:
    """The fold of each situation; those of one person share one. Dealt out in an order that means nothing."""
    if task.persons is None:
        return np.arange(task.n_situations) % n_folds  # by a digest of what they hold
    n_persons = int(task.persons.max()) + 1
    turn = np.empty(n_persons, dtype=np.intp)
    turn[np.argsort(mixed(np.arange(n_persons, dtype=np.uint64)), kind="stable")] = np.arange(n_persons)
    return turn[task.persons] % n_folds


def n_units(task: SituationTask) -> int:
    """Persons, or situations where nobody is named."""
    return task.n_situations if task.persons is None else int(task.persons.max()) + 1


def losses(predicted: Array, task: SituationTask) -> Array:
    """−ln Pr(outcome) of each situation, up to that of a guess where outcomes are no choices."""
    if task.chosen:
        return log_losses(predicted, np.zeros(len(predicted), dtype=np.intp))
    found: Array = -np.log(np.maximum(predicted[:, 0], np.exp(-MOST)))
    return found


def mean_and_error(gain: Array, task: SituationTask) -> tuple[float, float]:
    """Mean over situations, and its standard error from the sums of persons."""
    total = task.weight.sum()
    mean = float(task.weight @ gain / total)
    away = task.weight * (gain - mean)
    squares = task.weight * (gain - mean) ** 2 if task.persons is None else np.bincount(task.persons, away) ** 2
    return mean, float(np.sqrt(squares.sum()) / total)


def choose_design(
    task: SituationTask, settings: Any, shape: float, tune: int, clock: Clock
) -> tuple[int, HeldOut | None]:
    """The design that predicts held-out situations best, if clearly better than the first; nothing held out if few."""
    if n_units(task) < FEWEST:
        return 0, None
    n_folds = next(folds for many, folds in FOLDS.items() if task.n_situations < many)
    folds = as_folds(dealt(task, min(n_folds, n_units(task))))
    tasks = [task.with_design(which) for which in range(len(task.designs))]
    priors = [each.chain_prior(settings, shape) for each in tasks]
    found = held_out_averages(tasks, priors, folds, min(settings.longest(task.wide), LONGEST), min(tune, TUNE), clock)
    lost = [losses(predicted, task) for predicted in found]
    gains = [mean_and_error(lost[0] - each, task) for each in lost]
    clear = [which for which, (mean, error) in enumerate(gains) if mean > CLEARLY * error]
    which = max(clear, key=lambda which: gains[which][0], default=0)
    return which, HeldOut(folds, found[which])


def mode_at(task: SituationTask, prior: Any, position: Array) -> SituationPoint:
    """A position as the posterior of a fit."""
    return SituationPoint(**vars(task.unpacked(position[None, None], prior)))


def held_out_modes(
    task: SituationTask,
    settings: Any,
    shape: float,
    designs: list[int],
    components: list[int],
    folds: Folds,
    max_iter: int,
    clock: Clock,
) -> Found:
    """What modes predict for held-out situations, by design, components and σ; NaN where nothing was held out."""
    tasks = {which: task.with_design(which) for which in designs}
    found: Found = {
        (which, m, scale): np.full((task.n_situations, task.n_predicted), np.nan)
        for which in designs
        for m in components
        for scale in scales_for(tasks[which].n_columns)
    }
    for done, (train, test) in enumerate(tracked(folds, task.progress, "held-out situations, modes")):
        clock.check("while situations were held out", (1 + done / len(folds)) / 4)
        for which in designs:
            part = tasks[which].part(train)
            for m in components:
                prior = part.prior(settings, shape, m)
                climbs = path(part, prior, max_iter, COARSE)
                for scale, (position, *_) in zip(scales_for(part.n_columns), climbs, strict=True):
                    found[which, m, scale][test] = tasks[which].predicted(position[None], prior, test)
    return found


def best_choice(
    found: Found, task: SituationTask
) -> tuple[tuple[int, int, float], dict[tuple[int, int, float], float]]:
    """The choice of the lowest held-out loss, and the losses."""
    lost = {}
    for choice, predicted in found.items():
        told = np.isfinite(predicted[:, 0])
        lost[choice] = float(np.average(losses(predicted[told], task), weights=task.weight[told]))
    return min(lost, key=lambda choice: lost[choice]), lost


def best_weight(mode: Array, average: Array, weight: Array) -> float:
    """w of mixtures w·mode + (1 − w)·average of probabilities of outcomes, w ~ Beta(2, 2)."""

    def loss(x: float) -> float:
        mixture = np.log(np.maximum(expit(x) * mode + expit(-x) * average, np.exp(-MOST)))
        return -float(weight @ mixture + (CAUTION - 1) * (log_expit(x) + log_expit(-x)))

    return float(expit(minimize_scalar(loss, bounds=(-12.0, 12.0), method="bounded").x))


def stacked_mode(
    task: SituationTask, settings: Any, shape: float, which: int, held_out: HeldOut, clock: Clock
) -> tuple[SituationDraws, float, float]:
    """The mode with one component an owner to go beside the draws, its weight, and κ."""
    folds, average = held_out
    modes = held_out_modes(task, settings, shape, [which], [1], folds, ITERATIONS, clock)
    (_, _, scale), _ = best_choice(modes, task)
    mode, power = modes[which, 1, scale], 1.0
    if task.chosen:
        first = np.zeros(task.n_situations, dtype=np.intp)
        weight, power = best_mixture(mode, average, first, task.weight)
    else:
        weight = best_weight(mode[:, 0], average[:, 0], task.weight)
    task = task.with_design(which)
    single = task.prior(settings, shape, 1)
    position = path(task, single, ITERATIONS, TOLERANCE)[scales_for(task.n_columns).index(scale)][0]
    return mode_at(task, single, position), weight, power


def sample(settings: Gibbs, task: SituationTask, learned: Any, shape: float) -> Fit:
    """The posterior of directions and weights, with a mode stacked beside it."""
    goes_on, settings = open_ended(settings), settings.completed(**lengths(task.wide, task.weight.sum()))
    clock = Clock(settings.max_seconds)
    which, held_out = choose_design(task, learned, shape, settings.tune, clock)
    mode = None if held_out is None else stacked_mode(task, learned, shape, which, held_out, clock)
    task = task.with_design(which)
    run = DirectionRun(settings, task, task.chain_prior(learned, shape), learned.longest(task.wide), clock, goes_on)
    fit = drawn(run, mode, shape)
    return Fit(fit.posterior, fit.shape, fit.trace, fit.n_iter, fit.extra | {"design_": which})


def splits(cv: Any, task: SituationTask) -> Folds:
    """Situations to train on and to test on: so many folds of persons, or what a splitter of scikit-learn says."""
    if not isinstance(cv, (int, np.integer)):
        return list(check_cv(cv).split(np.zeros(task.n_situations), groups=task.persons))
    if min(cv, n_units(task)) < 2:
        raise ValueError(f"cross-validation needs two folds or more: EM(cv={cv}), {n_units(task)} to deal out.")
    return as_folds(dealt(task, min(int(cv), n_units(task))))


def climb(em: EM, task: SituationTask, settings: Any, shape: float) -> Fit:
    """The mode with the design, the penalty and the components of the lowest held-out log-loss."""
    em._check()
    many = len(task.prior(settings, shape).owner) // (task.n_groups if task.owned else 1)
    folds, designs = splits(em.cv, task), list(range(len(task.designs)))
    found = held_out_modes(task, settings, shape, designs, sorted({1, many}), folds, em.max_iter, Clock())
    (which, m, scale), lost = best_choice(found, task)
    task = task.with_design(which)
    prior = task.prior(settings, shape, m)
    climbs = path(task, prior, em.max_iter, FINE)[: scales_for(task.n_columns).index(scale) + 1]
    position, trace, _ = last_of(climbs, em)
    return Fit(
        mode_at(task, prior, position),  # type: ignore[arg-type]
        shape=shape,
        trace=np.array(trace),
        n_iter=sum(len(steps) for _, steps, _ in climbs),
        extra={"cv_log_loss_": lost, "design_": which},
    )
