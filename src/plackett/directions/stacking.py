"""Decisions by held-out observations: design, number of components, penalty, weight of the mode and κ.

Covariates are taken in the first design, or in another if short chains on all observations but a fold predict that
fold clearly better so: by two standard errors.

An average over directions that few rows leave open can be too soft, where the mode is not. Short chains on all
observations but a fold predict that fold, and so do modes with one component per owner along the path of penalties. The
predictions are p ∝ (w·mode + (1 − w)·average)^κ with the w and κ under which the held-out outcomes are most probable
(stacking: Yao, Vehtari, Simpson & Gelman 2018), and w ~ Beta(2, 2), ln κ ~ N(0, 0.3²). Probabilities of whole rankings
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
from plackett.directions.map import mode_at, path, scales_for
from plackett.directions.prior import Prior, size
from plackett.directions.settings import LearnedDirections
from plackett.directions.task import Numbers, Task
from plackett.directions.walk import AT_ONCE, load_kernels, make_sampler
from plackett.engines.device import gpu
from plackett.inference.driver import Chain
from plackett.inference.folds import Folds
from plackett.inference.limits import Clock
from plackett.model.mixture import SMALLEST, Mode, sharpened
from plackett.model.race import Array
from plackett.output.progress import progress_bar, tracked
from plackett.output.scores import log_losses

CHAINS, TUNE, DRAWS, LONGEST = 2, 100, 60, 24  # of the short chains that have not seen a fold
CLEARLY = 2.0  # standard errors
FEWEST = 20  # rows or units, to hold some out
FOLDS = {500: 10, 5000: 5, np.inf: 2}  # number of folds of fewer observations than the key
CAUTION, SPREAD = 2.0, 0.3  # of the priors of w and ln κ
ITERATIONS, TOLERANCE = 300, 1e-8  # of the mode that is stacked
COARSE = 1e-6  # tolerance of objective and gradient per observation, for modes that predict a fold
ROUND = 10  # iterations after which a short chain looks whether it is still wanted
SMALLEST_LOG = -600.0  # ln of an outcome's probability over that of a guess, at the least

Choice = tuple[int, int, float]  # design, components of each owner, σ


class HeldOut(NamedTuple):
    """Folds, and predictions for each observation by chains that have not seen its fold."""

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
) -> list[Array]:
    """Predictions of short chains for the folds that they have not seen, for each design."""
    load_kernels(tasks[0], priors[0])
    clock.start()
    given_up = threading.Event()

    def predict(which: int, f: int, *seeds: np.random.SeedSequence) -> Array:
        (train, test), task, prior = folds[f], tasks[which], priors[which]
        part = task.part(train)
        runner = make_sampler(part, prior, tune, longest)
        generators = [np.random.default_rng(seed) for seed in seeds]
        walks = runner.begin(part.starts(prior, generators))
        chains, D = [Chain(*each) for each in zip(walks, generators, strict=True)], size(prior, task.n_columns)
        for tuning, length in ((True, tune), (False, DRAWS)):
            positions, values = np.empty((len(chains), length, D)), np.empty((len(chains), length))
            for i in range(0, length, ROUND):
                if given_up.is_set():
                    raise CancelledError
                runner.advance_all(chains, tuning, positions[:, i : i + ROUND], values[:, i : i + ROUND])
        return task.predicted(positions.reshape(-1, D), prior, test)

    together = CHAINS if tasks[0].on_gpu else 1  # chains of a job
    places = [(which, f) for which in range(len(tasks)) for f in range(len(folds))] * (CHAINS // together)
    seeds = np.random.SeedSequence(0).spawn(len(places) * together)  # decisions are a function of the data alone
    n = sum(len(test) for _, test in folds)
    found = [np.zeros((n, task.n_predicted)) for task in tasks]
    at_once = 1 if tasks[0].on_gpu else AT_ONCE if tasks[0].is_remote else cores()
    pool = ThreadPoolExecutor(min(len(places), at_once))
    try:
        with progress_bar(tasks[0].progress, "held-out rows", len(places)) as report:
            jobs = [pool.submit(predict, *place, *seeds[i :: len(places)]) for i, place in enumerate(places)]
            for done, ((which, f), job) in enumerate(zip(places, jobs, strict=True)):
                wait([job], clock.left)
                if not job.done():
                    clock.check("while rows were held out", done / len(jobs) / 4)  # about a quarter of the work
                found[which][folds[f][1]] += job.result() / (CHAINS // together)
                report(done + 1)
    finally:
        given_up.set()
        pool.shutdown(wait=False, cancel_futures=True)
    return found


def choose_design(
    task: Task, settings: LearnedDirections, shape: float, tune: int, clock: Clock
) -> tuple[Task, HeldOut | None]:
    """The task with the design that predicts best, if clearly better than the first; nothing held out if few."""
    reader = task.reader
    if reader.n_units(task) < FEWEST:
        return task, None
    n_folds = next(folds for many, folds in FOLDS.items() if task.n_rows < many)
    folds = reader.folds(task, reader.folds_if_wide if task.wide and reader.folds_if_wide else n_folds)
    tasks = reader.candidates(task)
    priors = [reader.prior(each, settings, shape)._replace(totals=reader.totals) for each in tasks]
    found = held_out_averages(tasks, priors, folds, min(settings.longest(task.wide), LONGEST), min(tune, TUNE), clock)
    lost = [losses(predicted, reader.observed(task)) for predicted in found]
    units = task.seen.units if reader.error_by_unit else None
    gains = [mean_and_error(lost[0] - each, task.seen.weights, units) for each in lost]
    clear = [which for which, (mean, error) in enumerate(gains) if mean > CLEARLY * error]
    which = max(clear, key=lambda which: gains[which][0], default=0)
    means = tuple(float(np.average(each, weights=task.seen.weights)) for each in lost)
    return tasks[which], HeldOut(folds, found[which], means)


def losses(predicted: Array, observed: Numbers | None) -> Array:
    """−ln Pr of each outcome; relative to a guess if whole outcomes are predicted."""
    if observed is not None:
        return log_losses(predicted, observed)
    found: Array = -np.log(np.maximum(predicted[:, 0], np.exp(SMALLEST_LOG)))
    return found


def mean_and_error(gain: Array, weight: Array, units: Numbers | None) -> tuple[float, float]:
    """Weighted mean, and its standard error, from the sums over units if there are any."""
    total = weight.sum()
    mean = float(weight @ gain / total)
    away = weight * (gain - mean)
    squares = weight * (gain - mean) ** 2 if units is None else np.bincount(units, away) ** 2
    return mean, float(np.sqrt(squares.sum()) / total)


def held_out_modes(
    tasks: Sequence[Task],
    settings: LearnedDirections,
    shape: float,
    components: Sequence[int],
    folds: Folds,
    max_iter: int,
    clock: Clock,
) -> dict[Choice, Array]:
    """Predictions of modes for held-out observations, by choice; NaN for those that no mode could predict."""
    reader, n, width = tasks[0].reader, len(tasks[0].seen), tasks[0].n_predicted
    found = {
        (which, m, scale): np.full((n, width), np.nan)
        for which, task in enumerate(tasks)
        for m in components
        for scale in scales_for(task.n_columns)
    }

    def predict(done: int, train: Any, test: Numbers) -> None:
        clock.check(f"while {reader.noun} were held out", (1 + done / len(folds)) / 4)
        for which, task in enumerate(tasks):
            part, groups = reader.training(task, train)
            if groups is not None and len(groups) < 2:
                return
            columns = slice(None) if groups is None else groups
            for m in components:
                prior = reader.prior(part, settings, shape, m)
                climbs = path(part, prior, max_iter, COARSE)
                for scale, (position, *_) in zip(scales_for(task.n_columns), climbs, strict=True):
                    predicted = np.zeros((len(test), width))
                    predicted[:, columns] = task.predicted(position[None], prior, test)
                    found[which, m, scale][test] = predicted

    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        numbers, (trains, tests) = range(len(folds)), zip(*folds, strict=True)
        results = (pool.map if tasks[0].is_remote else map)(predict, numbers, trains, tests)
        for _ in tracked(folds, tasks[0].progress, f"held-out {reader.noun}, modes"):
            next(results)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    return found


def best_choice(found: dict[Choice, Array], task: Task) -> tuple[Choice, dict[Choice, float]]:
    """The choice of the lowest held-out loss, and the losses."""
    observed, lost = task.reader.observed(task), {}
    for choice, predicted in found.items():
        known = np.isfinite(predicted[:, 0])
        if not known.any():
            raise ValueError("no fold has two classes to train on; give more rows of each class, or fewer folds.")
        loss = losses(predicted[known], None if observed is None else observed[known])
        lost[choice] = float(np.average(loss, weights=task.seen.weights[known]))
    return min(lost, key=lambda choice: lost[choice]), lost


def stacked_mode(
    task: Task, settings: LearnedDirections, shape: float, held_out: HeldOut, clock: Clock
) -> tuple[Mode, float, float]:
    """The mode with one component per owner to go beside the draws, its weight, and the power κ of predictions."""
    reader, folds, average = task.reader, held_out.folds, held_out.average
    modes = held_out_modes([task], settings, shape, [1], folds, ITERATIONS, clock)
    (_, _, scale), _ = best_choice(modes, task)
    mode, observed, weights = modes[0, 1, scale], reader.observed(task), task.seen.weights
    if observed is None:
        weight, power = best_weight(mode[:, 0], average[:, 0], weights), 1.0
    else:
        mode = np.nan_to_num(mode, nan=1 / task.n_predicted)
        weight, power = best_mixture(mode, average, observed, weights, task.on_gpu and reader.mixes_on_gpu)
    single = reader.prior(task, settings, shape, 1)
    position = path(task, single, ITERATIONS, TOLERANCE)[scales_for(task.n_columns).index(scale)][0]
    return mode_at(task, single, position), weight, power


def best_weight(mode: Array, average: Array, weight: Array) -> float:
    """The weight w of mixtures w·mode + (1 − w)·average of probabilities of outcomes, w ~ Beta(2, 2)."""

    def loss(x: float) -> float:
        mixture = np.log(np.maximum(expit(x) * mode + expit(-x) * average, np.exp(SMALLEST_LOG)))
        return -float(weight @ mixture + (CAUTION - 1) * (log_expit(x) + log_expit(-x)))

    return float(expit(minimize_scalar(loss, bounds=(-12.0, 12.0), method="bounded").x))


def best_mixture(
    mode: Array, average: Array, codes: Numbers, weight: Array, on_gpu: bool = False
) -> tuple[float, float]:
    """(w, κ) from held-out probabilities (n, K)."""
    log_likelihood = (mixture_on_gpu if on_gpu else mixture_likelihood)(mode, average, codes, weight)

    def loss(x: Array) -> float:
        prior = (CAUTION - 1) * (log_expit(x[0]) + log_expit(-x[0])) - 0.5 * (x[1] / SPREAD) ** 2
        return -float(log_likelihood(expit(x[0]), np.exp(x[1])) + prior)

    x = minimize(loss, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-4, "fatol": 1e-6}).x
    return float(expit(x[0])), float(np.exp(x[1]))


def mixture_likelihood(mode: Array, average: Array, codes: Numbers, weight: Array) -> Callable[[float, float], float]:
    """The log-probability of all labels as a function of w and κ."""
    rows = np.arange(len(codes))

    def log_likelihood(w: float, kappa: float) -> float:
        mixed = sharpened(w * mode + (1 - w) * average, kappa, SMALLEST)[rows, codes]
        return float(weight @ np.log(mixed))

    return log_likelihood


def mixture_on_gpu(
    mode: Array, average: Array, codes: Numbers, weight: Array, xp: Any = None
) -> Callable[[float, float], float]:
    """The same on the GPU."""
    xp = gpu() if xp is None else xp
    mode, average, codes, weight = map(xp.asarray, (mode, average, codes, weight))
    rows = xp.arange(len(codes))

    def log_likelihood(w: float, kappa: float) -> float:
        log = kappa * xp.log(xp.maximum(w * mode + (1 - w) * average, SMALLEST))
        log -= log.max(axis=1, keepdims=True)
        return float(weight @ (log[rows, codes] - xp.log(xp.exp(log).sum(axis=1))))

    return log_likelihood
