"""Decisions by held-out observations: design, number of components, penalty, weight of the mode and κ.

The first design is used unless short chains, fitted without a fold, predict that fold clearly better with another one:
by two standard errors.

If few rows leave directions uncertain, averaged predictions can be too soft where the mode's are not. Short chains
predict each fold from the other observations, and so do modes with one component per owner along the path of penalties.
Predictions are p ∝ (w·mode + (1 − w)·average)^κ, where w and κ maximise the posterior given the held-out outcomes
(stacking: Yao, Vehtari, Simpson & Gelman 2018), with w ~ Beta(2, 2), ln κ ~ N(0, 0.3²). Probabilities of whole rankings
are mixed without κ.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, ThreadPoolExecutor, wait
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, log_expit

from plackett.compute.pieces import cores
from plackett.directions.elimination import ITERATIONS, SMALLEST_LOG, held_out_modes, losses, mean_and_error
from plackett.directions.map import mode_at, path, way_to
from plackett.directions.prior import Prior, size
from plackett.directions.settings import LearnedDirections
from plackett.directions.task import Numbers, Task
from plackett.directions.walk import AT_ONCE, load_kernels, make_sampler
from plackett.engines.device import gpu
from plackett.inference.driver import Chain
from plackett.inference.folds import Folds
from plackett.inference.limits import HELD_OUT, Clock, TimeIsUp
from plackett.model.mixture import SMALLEST, Mode, sharpened
from plackett.model.race import Array
from plackett.output.progress import progress_bar

CHAINS, TUNE, DRAWS, LONGEST = 2, 100, 60, 24  # of the short chains that predict a fold
CLEARLY = 2.0  # standard errors
HOPE = 0.83  # standard errors after half of the folds from which a clear difference is still possible
FEWEST = 20  # smallest number of rows or units to hold some out
FOLDS = {500: 10, 5000: 5, np.inf: 2}  # number of folds of fewer observations than the key
CAUTION, SPREAD = 2.0, 0.3  # parameters of the priors of w and ln κ
TOLERANCE = 1e-8  # tolerance of the stacked mode
NO_TIME = "there was no time to hold data out: the first design, and predictions that are not stacked with a mode"
ROUND = 10  # iterations after which a short chain checks whether it is still needed


class HeldOut(NamedTuple):
    """Folds, and predictions of each observation by chains fitted without its fold."""

    folds: Folds
    average: Array
    losses: tuple[float, ...]  # mean log-loss of each design


def held_out_averages(
    tasks: Sequence[Task],
    priors: Sequence[Prior],
    folds: Folds,
    longest: int,
    tune: int,
    clock: Clock,
) -> tuple[int, Array, tuple[float, ...]]:
    """Return the design that predicts best, the held-out predictions of its short chains, and all losses.

    Designs that perform worse in half of the folds are skipped in the others.
    """
    load_kernels(tasks[0], priors[0])
    clock.start()
    given_up, halfway = threading.Event(), dict[int, tuple[float, float]]()

    def predict(which: int, f: int, *seeds: np.random.SeedSequence) -> Array:
        (train, test), task, prior = folds[f], tasks[which], priors[which]
        part = task.part(train)
        runner = make_sampler(part, prior, tune, longest)
        generators = [np.random.default_rng(seed) for seed in seeds]
        walks = runner.begin(part.starts(prior, generators), given_up.is_set)
        chains, D = [Chain(*each) for each in zip(walks, generators, strict=True)], size(prior, task.n_columns)
        for tuning, length in ((True, tune), (False, DRAWS)):
            positions, values = np.empty((len(chains), length, D)), np.empty((len(chains), length))
            for i in range(0, length, ROUND):
                if given_up.is_set():
                    raise CancelledError
                runner.advance_all(chains, tuning, positions[:, i : i + ROUND], values[:, i : i + ROUND])
        return task.predicted(positions.reshape(-1, D), prior, test)

    together = CHAINS if tasks[0].on_gpu else 1  # chains per job
    rounds, F = CHAINS // together, len(folds)
    root = np.random.SeedSequence(0)  # decisions depend on the data alone
    seeds = [[root.spawn(CHAINS) for _ in folds] for _ in tasks]
    n, half = sum(len(test) for _, test in folds), -(-F // 2)
    found = [np.zeros((n, task.n_predicted)) for task in tasks]
    at_once = 1 if tasks[0].on_gpu else AT_ONCE if tasks[0].is_remote else cores()
    pool, left = ThreadPoolExecutor(min(len(tasks) * F * rounds, at_once)), list(range(len(tasks)))
    try:
        with progress_bar(tasks[0].progress, "held-out rows", len(tasks) * F * rounds) as report:
            done = 0
            for part in (range(half), range(half, F)):
                places = [(which, f, i) for f in part for which in left for i in range(rounds)]
                jobs = {
                    (which, f, i): pool.submit(predict, which, f, *seeds[which][f][i * together : (i + 1) * together])
                    for which, f, i in places
                }
                for (which, f, _), job in jobs.items():
                    clock.insist(HELD_OUT)
                    wait([job], clock.left_of(HELD_OUT))
                    if not job.done():
                        raise TimeIsUp
                    found[which][folds[f][1]] += job.result() / rounds
                    done += 1
                    report(done)
                if part.start == 0 and half < F:
                    seen = np.concatenate([folds[f][1] for f in part])
                    gains = gains_of([each[seen] for each in found], tasks[0], seen)
                    halfway = dict(enumerate(gains))
                    left = [which for which, (mean, error) in halfway.items() if which == 0 or mean > HOPE * error]
            gains = gains_of([found[which] for which in left], tasks[0], np.arange(n))
            report(len(tasks) * F * rounds)
    finally:
        given_up.set()
        pool.shutdown(wait=False, cancel_futures=True)
    final = dict(zip(left, gains, strict=True))
    clear = [which for which, (mean, error) in final.items() if mean > CLEARLY * error]
    which = max(clear, key=lambda which: final[which][0], default=0)
    observed = tasks[0].reader.observed(tasks[0])
    first = float(np.average(losses(found[0], observed), weights=tasks[0].seen.weights))
    return which, found[which], tuple(first - (halfway | final)[which][0] for which in range(len(tasks)))


def gains_of(predicted: Sequence[Array], task: Task, some: Numbers) -> list[tuple[float, float]]:
    """Return by how much each loss is lower than the first for these observations, with standard errors."""
    reader, observed = task.reader, task.reader.observed(task)
    units = task.seen.units[some] if reader.error_by_unit and task.seen.units is not None else None
    lost = [losses(each, None if observed is None else observed[some]) for each in predicted]
    return [mean_and_error(lost[0] - each, task.seen.weights[some], units) for each in lost]


def n_folds_of(task: Task) -> int:
    """Return the number of folds without a time limit; 0 if too little could be held out."""
    reader = task.reader
    if reader.n_units(task) < FEWEST:
        return 0
    if task.wide and reader.folds_if_wide:
        return reader.folds_if_wide
    return next(folds for many, folds in FOLDS.items() if task.n_rows < many)


def choose_design(
    task: Task, settings: LearnedDirections, shape: float, tune: int, clock: Clock, n_folds: int | None = None
) -> tuple[Task, HeldOut | None]:
    """Return the task with the best-predicting design, if clearly better than the first, and the held-out predictions.

    `n_folds` None: by the number of observations; fewer than two: nothing is held out.
    """
    n_folds = n_folds_of(task) if n_folds is None else n_folds
    if n_folds < 2:
        return task, None
    reader, tasks = task.reader, task.reader.candidates(task)
    folds = reader.folds(task, n_folds)
    priors = [reader.prior(each, settings, shape)._replace(totals=reader.totals) for each in tasks]
    longest = min(settings.longest(task.wide), LONGEST)
    which, average, lost = held_out_averages(tasks, priors, folds, longest, min(tune, TUNE), clock)
    return tasks[which], HeldOut(folds, average, lost)


def stacked_mode(
    task: Task, settings: LearnedDirections, shape: float, held_out: HeldOut, clock: Clock, whole: Task | None = None
) -> tuple[Mode, float, float]:
    """Return the mode with one component per owner that is stacked with the draws, its weight, and the power κ.

    `whole` has all observations if those of the task are a part that decides; the mode uses all.
    """
    reader, folds, average = task.reader, held_out.folds, held_out.average
    contest, modes, _ = held_out_modes([task], settings, shape, [1], folds, ITERATIONS, clock)
    _, _, scale = best = contest.best()
    mode, observed, weights = modes[best], reader.observed(task), task.seen.weights
    if observed is None:
        weight, power = best_weight(mode[:, 0], average[:, 0], weights), 1.0
    else:
        mode = np.nan_to_num(mode, nan=1 / task.n_predicted)
        weight, power = best_mixture(mode, average, observed, weights, task.on_gpu and reader.mixes_on_gpu)
    whole = task if whole is None else whole
    single = whole.reader.prior(whole, settings, shape, 1)
    *_, (position, *_) = path(whole, single, way_to(whole, single, scale), ITERATIONS, TOLERANCE)
    return mode_at(whole, single, position), weight, power


def best_weight(mode: Array, average: Array, weight: Array) -> float:
    """Return the weight w of mixtures w·mode + (1 − w)·average of outcome probabilities, w ~ Beta(2, 2)."""

    def loss(x: float) -> float:
        mixture = np.log(np.maximum(expit(x) * mode + expit(-x) * average, np.exp(SMALLEST_LOG)))
        return -float(weight @ mixture + (CAUTION - 1) * (log_expit(x) + log_expit(-x)))

    return float(expit(minimize_scalar(loss, bounds=(-12.0, 12.0), method="bounded").x))


def best_mixture(
    mode: Array, average: Array, codes: Numbers, weight: Array, on_gpu: bool = False
) -> tuple[float, float]:
    """Return (w, κ) from held-out probabilities (n, K)."""
    log_likelihood = (mixture_on_gpu if on_gpu else mixture_likelihood)(mode, average, codes, weight)

    def loss(x: Array) -> float:
        prior = (CAUTION - 1) * (log_expit(x[0]) + log_expit(-x[0])) - 0.5 * (x[1] / SPREAD) ** 2
        return -float(log_likelihood(expit(x[0]), np.exp(x[1])) + prior)

    x = minimize(loss, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-4, "fatol": 1e-6}).x
    return float(expit(x[0])), float(np.exp(x[1]))


def mixture_likelihood(mode: Array, average: Array, codes: Numbers, weight: Array) -> Callable[[float, float], float]:
    """Return the log-probability of all labels as a function of w and κ."""
    rows = np.arange(len(codes))

    def log_likelihood(w: float, kappa: float) -> float:
        mixed = sharpened(w * mode + (1 - w) * average, kappa, SMALLEST)[rows, codes]
        return float(weight @ np.log(mixed))

    return log_likelihood


def mixture_on_gpu(
    mode: Array, average: Array, codes: Numbers, weight: Array, xp: Any = None
) -> Callable[[float, float], float]:
    """Return `mixture_likelihood` on the GPU."""
    xp = gpu() if xp is None else xp
    mode, average, codes, weight = map(xp.asarray, (mode, average, codes, weight))
    rows = xp.arange(len(codes))

    def log_likelihood(w: float, kappa: float) -> float:
        log = kappa * xp.log(xp.maximum(w * mode + (1 - w) * average, SMALLEST))
        log -= log.max(axis=1, keepdims=True)
        return float(weight @ (log[rows, codes] - xp.log(xp.exp(log).sum(axis=1))))

    return log_likelihood
