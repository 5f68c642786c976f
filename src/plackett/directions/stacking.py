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
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor, wait
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from plackett.compute.pieces import cores
from plackett.directions.map import best_choice, held_out_modes, path, point, scales_for
from plackett.directions.prior import Prior, size
from plackett.directions.task import ClassTask, DirectionTask
from plackett.directions.walk import AT_ONCE, load_kernels, make_sampler
from plackett.engines.device import gpu
from plackett.inference.driver import Chain
from plackett.inference.folds import Folds
from plackett.inference.limits import Clock
from plackett.model.mixture import SMALLEST, sharpened
from plackett.model.race import Array
from plackett.output.progress import progress_bar
from plackett.output.scores import log_losses
from plackett.posterior.directions import DirectionPoint

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

    folds: Folds
    average: Array


def held_out_averages(
    tasks: Sequence[DirectionTask],
    priors: Sequence[Prior],
    folds: Folds,
    longest: int,
    tune: int,
    clock: Clock,
) -> list[Array]:
    """What short chains that have not seen its fold predict for each row, for each scale of covariates."""
    load_kernels(tasks[0], priors[0])
    clock.start()
    given_up = threading.Event()

    def predict(which: int, f: int, *seeds: np.random.SeedSequence) -> Array:
        (train, test), task, prior = folds[f], tasks[which], priors[which]
        part = task.part(train)
        runner = make_sampler(part, prior, tune, longest)
        generators = [np.random.default_rng(seed) for seed in seeds]
        walks = runner.begin([part.start(prior, rng) for rng in generators])
        chains, D = [Chain(*each) for each in zip(walks, generators, strict=True)], size(prior, task.n_columns)
        for tuning, length in ((True, tune), (False, DRAWS)):
            positions, values = np.empty((len(chains), length, D)), np.empty((len(chains), length))
            for i in range(0, length, ROUND):
                if given_up.is_set():
                    raise CancelledError
                runner.advance_all(chains, tuning, positions[:, i : i + ROUND], values[:, i : i + ROUND])
        return task.predicted(positions.reshape(-1, D), prior, test)

    together = CHAINS if tasks[0].flies else 1  # chains of a job
    places = [(which, f) for which in range(len(tasks)) for f in range(len(folds))] * (CHAINS // together)
    seeds = np.random.SeedSequence(0).spawn(len(places) * together)  # what is decided is a function of the data alone
    n = sum(len(test) for _, test in folds)
    found = [np.zeros((n, task.n_predicted)) for task in tasks]
    at_once = 1 if tasks[0].flies else AT_ONCE if tasks[0].waits else cores()
    pool = ThreadPoolExecutor(min(len(places), at_once))
    try:
        with progress_bar(tasks[0].progress, "held-out rows", len(places)) as report:
            jobs = [pool.submit(predict, *place, *seeds[i :: len(places)]) for i, place in enumerate(places)]
            for done, ((which, f), job) in enumerate(zip(places, jobs, strict=True)):
                wait([job], clock.left)
                if not job.done():
                    clock.check("while rows were held out", done / len(jobs) / 4)  # a quarter of the work, or so
                found[which][folds[f][1]] += job.result() / (CHAINS // together)
                report(done + 1)
    finally:
        given_up.set()
        pool.shutdown(wait=False, cancel_futures=True)
    return found


def choose_scale(
    task: ClassTask, settings: Any, shape: float, tune: int, clock: Clock
) -> tuple[ClassTask, HeldOut | None]:
    """The task with covariates as they are or as normal scores; nothing is held out where rows are too few to tell."""
    if task.n_rows < FEWEST:
        return task, None
    n_folds = next(folds for many, folds in FOLDS.items() if task.n_rows < many)
    folds = task.dealt(WIDE_FOLDS if task.wide else n_folds)
    tasks = [task] if task.here.rows.shape[1] > task.n_rows else [task, task.with_scores()]
    prior = settings.prior(task.n_classes, task.n_columns, shape)
    longest = min(settings.longest(task.wide), LONGEST)
    found = held_out_averages(tasks, [prior] * len(tasks), folds, longest, min(tune, TUNE), clock)
    codes, weight = task.here.codes, task.here.weight
    losses = [log_losses(p, codes) for p in found]
    gain = losses[0] - losses[-1]
    mean = np.average(gain, weights=weight)
    error = np.sqrt(np.average((gain - mean) ** 2, weights=weight) / weight.sum())
    chosen = -1 if mean > CLEARLY * error else 0
    return tasks[chosen], HeldOut(folds, found[chosen])


def mixture_told(
    mode: Array, average: Array, codes: npt.NDArray[np.intp], weight: Array
) -> Callable[[float, float], float]:
    """The log-probability of all labels as a function of w and κ."""
    rows = np.arange(len(codes))

    def told(w: float, kappa: float) -> float:
        mixed = sharpened(w * mode + (1 - w) * average, kappa, SMALLEST)[rows, codes]
        return float(weight @ np.log(mixed))

    return told


def mixture_on_gpu(
    mode: Array, average: Array, codes: npt.NDArray[np.intp], weight: Array, xp: Any = None
) -> Callable[[float, float], float]:
    """The same on the GPU."""
    xp = gpu() if xp is None else xp
    mode, average, codes, weight = map(xp.asarray, (mode, average, codes, weight))
    rows = xp.arange(len(codes))

    def told(w: float, kappa: float) -> float:
        log = kappa * xp.log(xp.maximum(w * mode + (1 - w) * average, SMALLEST))
        log -= log.max(axis=1, keepdims=True)
        return float(weight @ (log[rows, codes] - xp.log(xp.exp(log).sum(axis=1))))

    return told


def best_mixture(
    mode: Array, average: Array, codes: npt.NDArray[np.intp], weight: Array, on_gpu: bool = False
) -> tuple[float, float]:
    """(w, κ) from held-out probabilities (n, K)."""
    told = (mixture_on_gpu if on_gpu else mixture_told)(mode, average, codes, weight)

    def loss(x: Array) -> float:
        prior = (CAUTION - 1) * (log_expit(x[0]) + log_expit(-x[0])) - 0.5 * (x[1] / SPREAD) ** 2
        return -float(told(expit(x[0]), np.exp(x[1])) + prior)

    x = minimize(loss, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-4, "fatol": 1e-6}).x
    return float(expit(x[0])), float(np.exp(x[1]))


def stacked_mode(
    task: ClassTask, settings: Any, shape: float, held_out: HeldOut, clock: Clock
) -> tuple[DirectionPoint, float, float]:
    """The mode to go beside the draws, its weight, and the power κ of the predictions."""
    folds, average = held_out
    modes = held_out_modes(task, settings, shape, [1], folds, ITERATIONS, clock)
    (_, scale), _ = best_choice(modes, task.here)
    weight, power = best_mixture(
        np.nan_to_num(modes[1, scale], nan=1 / task.n_classes), average, task.here.codes, task.here.weight, task.flies
    )
    single = settings.prior(task.n_classes, task.n_columns, shape, 1)
    position = path(task, single, ITERATIONS, TOLERANCE)[scales_for(task.n_columns).index(scale)][0]
    return point(position, single, task.n_columns), weight, power
