"""What held-out rows decide: the scale of covariates, and how much to trust the average and how much a logit's mode.

Covariates are taken as they are, or as normal scores where short chains on all rows but a fold predict that fold
clearly better so: by two standard errors.

An average over directions that few rows leave open can be too soft, where the mode is not. Short chains on all rows
but a fold predict that fold, and so do modes with one component for each class along the path of penalties. The
predictions are p ∝ (w·mode + (1 − w)·average)^κ with the w and κ under which the held-out labels are most probable
(stacking: Yao, Vehtari, Simpson & Gelman 2018), and w ~ Beta(2, 2), ln κ ~ N(0, 0.3²).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor, wait
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from plackett.compute.pieces import cores
from plackett.directions.map import best_choice, held_out_modes, path, point, scales_for
from plackett.directions.prior import Prior, size
from plackett.directions.task import DirectionTask, Task, with_scores
from plackett.directions.walk import HamiltonianSampler, load_kernels
from plackett.inference.driver import Chain
from plackett.inference.folds import grouped_folds
from plackett.inference.hmc import begin
from plackett.inference.limits import Clock
from plackett.model.race import Array
from plackett.output.progress import progress_bar
from plackett.output.scores import log_losses
from plackett.posterior.directions import DirectionPoint, sharpened

CHAINS, TUNE, DRAWS, LONGEST = 2, 100, 60, 24  # of the short chains that have not seen a fold
CLEARLY = 2.0  # standard errors
FEWEST = 20  # rows, to hold some out
FOLDS = {500: 10, 5000: 5, np.inf: 2}  # of fewer rows than so many
WIDE_FOLDS = 5  # where covariates outnumber rows
CAUTION, SPREAD = 2.0, 0.3  # of the priors of w and ln κ
ITERATIONS, TOLERANCE = 300, 1e-8  # of a mode
ROUND = 10  # iterations after which a short chain looks whether it is still wanted


class HeldOut(NamedTuple):
    """Folds, and probabilities (n, K) of each row by chains that have not seen its fold."""

    fold: npt.NDArray[np.intp]
    average: Array


def held_out_averages(
    tasks: Sequence[DirectionTask],
    priors: Sequence[Prior],
    fold: npt.NDArray[np.intp],
    longest: int,
    tune: int,
    clock: Clock,
) -> list[Array]:
    """What short chains that have not seen its fold predict for each row, for each scale of covariates."""
    load_kernels(tasks[0], priors[0])
    clock.start()
    given_up = threading.Event()

    def predict(which: int, f: int, seed: np.random.SeedSequence) -> Array:
        task, prior, part = tasks[which], priors[which], tasks[which].part(fold != f)
        runner = HamiltonianSampler(part, prior, tune, longest)
        rng = np.random.default_rng(seed)
        chain = Chain(begin(part.start(prior, rng), prior.totals), rng)
        for tuning, length in ((True, tune), (False, DRAWS)):
            positions, values = np.empty((length, size(prior, task.n_columns))), np.empty(length)
            for i in range(0, length, ROUND):
                if given_up.is_set():
                    raise CancelledError
                runner.advance(chain, tuning, positions[i : i + ROUND], values[i : i + ROUND])
        return task.predicted(positions, prior, fold == f)

    places = [(which, f) for which in range(len(tasks)) for f in range(fold.max() + 1)] * CHAINS
    seeds = np.random.SeedSequence(0).spawn(len(places))  # what is decided is a function of the data alone
    found = [np.zeros((len(fold), task.n_predicted)) for task in tasks]
    pool = ThreadPoolExecutor(min(len(places), cores()))
    try:
        with progress_bar(tasks[0].progress, "held-out rows", len(places)) as report:
            jobs = [pool.submit(predict, *place, seed) for place, seed in zip(places, seeds, strict=True)]
            for done, ((which, f), job) in enumerate(zip(places, jobs, strict=True)):
                wait([job], clock.left)
                if not job.done():
                    clock.check("while rows were held out", done / len(jobs) / 4)  # a quarter of the work, or so
                found[which][fold == f] += job.result() / CHAINS
                report(done + 1)
    finally:
        given_up.set()
        pool.shutdown(wait=False, cancel_futures=True)
    return found


def choose_scale(task: Task, settings: Any, shape: float, tune: int, clock: Clock) -> tuple[Task, HeldOut | None]:
    """The task with covariates as they are or as normal scores; nothing is held out where rows are too few to tell."""
    if len(task.Z) < FEWEST:
        return task, None
    n_folds = next(folds for many, folds in FOLDS.items() if len(task.Z) < many)
    fold = grouped_folds(task.Z, task.codes, task.groups, WIDE_FOLDS if task.wide else n_folds)
    tasks = [task] if task.rows.shape[1] > len(task.rows) else [task, with_scores(task)]
    prior = settings.prior(task.n_classes, task.Z.shape[1], shape)
    longest = min(settings.longest(task.wide), LONGEST)
    found = held_out_averages(tasks, [prior] * len(tasks), fold, longest, min(tune, TUNE), clock)
    losses = [log_losses(p, task.codes) for p in found]
    gain = losses[0] - losses[-1]
    mean = np.average(gain, weights=task.weight)
    error = np.sqrt(np.average((gain - mean) ** 2, weights=task.weight) / task.weight.sum())
    chosen = -1 if mean > CLEARLY * error else 0
    return tasks[chosen], HeldOut(fold, found[chosen])


def best_mixture(mode: Array, average: Array, codes: npt.NDArray[np.intp], weight: Array) -> tuple[float, float]:
    """(w, κ) from held-out probabilities (n, K)."""
    rows = np.arange(len(codes))

    def loss(x: Array) -> float:
        w, kappa = expit(x[0]), np.exp(x[1])
        mixed = sharpened(w * mode + (1 - w) * average, kappa)[rows, codes]
        prior = (CAUTION - 1) * (log_expit(x[0]) + log_expit(-x[0])) - 0.5 * (x[1] / SPREAD) ** 2
        return -float(weight @ np.log(mixed) + prior)

    x = minimize(loss, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-4, "fatol": 1e-6}).x
    return float(expit(x[0])), float(np.exp(x[1]))


def stacked_mode(
    task: Task, settings: Any, shape: float, held_out: HeldOut, clock: Clock
) -> tuple[DirectionPoint, float, float]:
    """The mode to go beside the draws, its weight, and the power κ of the predictions."""
    fold, average = held_out
    folds = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(fold.max() + 1)]
    modes = held_out_modes(task, settings, shape, [1], folds, ITERATIONS, clock)
    (_, scale), _ = best_choice(modes, task)
    weight, power = best_mixture(
        np.nan_to_num(modes[1, scale], nan=1 / task.n_classes), average, task.codes, task.weight
    )
    single = settings.prior(task.n_classes, task.Z.shape[1], shape, 1)
    position = path(task, single, ITERATIONS, TOLERANCE)[scales_for(task.Z.shape[1]).index(scale)][0]
    return point(position, single, task.Z.shape[1]), weight, power
