"""Weighted likelihood bootstrap: independent modes under random weights of the observations.

Newton & Raftery (1994), Lyddon, Holmes & Walker (2019). An observation with count c gets the weight Gam(c, 1); the
observations of a unit that is held out together share an exponential, c·Exp(1). The normal prior of u and v is centred
at a draw from itself, so that the modes are posterior draws if the posterior is normal, and not too narrow where the
prior matters: with information J of the data and I of the prior the modes have the variance (J + I)⁻¹ (J + I) (J +
I)⁻¹. The scales s of covariates are optimised with the directions: a small s removes a useless covariate at the price
of ln s alone, which would otherwise add noise from its prior. Each mode has its own starting point.

The scales σ_0 = σ_1 = σ are the same for all draws. Held-out observations choose σ by the averaged predictions of a few
such modes fitted without them, and the design of the covariates if another one predicts clearly better than the first.
For many observations a subset decides, and all of them refine the modes.
"""

from __future__ import annotations

import threading
import warnings
from concurrent.futures import ThreadPoolExecutor, wait
from typing import NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from plackett.compute.pieces import cores
from plackett.directions.climbers import climb_at_once, make_climbers
from plackett.directions.density import density_of
from plackett.directions.elimination import Choice, Contest, first_folds
from plackett.directions.prior import Prior, size
from plackett.directions.settings import LearnedDirections, shrinkage
from plackett.directions.stacking import CLEARLY, HeldOut, n_folds_of, stacked_mode
from plackett.directions.task import Task
from plackett.engines.base import Gradient
from plackett.inference.base import Fit
from plackett.inference.bootstrap import Bootstrap
from plackett.inference.limits import HELD_OUT, Clock, TimeIsUp
from plackett.model.diagnostics import independent
from plackett.model.race import Array
from plackett.model.verdict import PROBABILITIES
from plackett.output.progress import progress_bar

PER_FOLD = {500: 4, 5000: 6, np.inf: 4}  # modes per fold that choose σ, for fewer observations than the key
MOST_FOLDS = 5
DECIDE = 100_000  # maximum of observations that decide: more would hardly change σ and the stacking
FEW_SCALES = (2.0, 1.0, 0.6, 0.35, 0.2)  # the path, from weak to strong penalties
USUAL = 0.35  # σ if too little can be held out
LATE = "there was no time to predict all held-out data: no mode is stacked with the draws"
AT_ONCE = 32  # climbers that share passes
Seeds = list[np.random.SeedSequence]


class Decided(NamedTuple):
    """Task with the chosen design, its index, σ, and held-out predictions if there was enough data."""

    task: Task
    which: int
    scale: float
    held_out: HeldOut | None
    late: bool = False  # True if time was up


def workers_for(task: Task, prior: Prior) -> int:
    """Number of concurrent optimisations: one if a pass uses all cores, two to keep a GPU busy."""
    if climb_at_once(task):
        return 2
    packed = task.prepared(task.precision).packed_for(len(prior.owner), task.precision)
    return cores() if packed is not None and not task.on_gpu else 1


def batches(seeds: Seeds, at_once: int) -> list[Seeds]:
    """Divide seeds among optimisations that share passes."""
    return [seeds[i : i + at_once] for i in range(0, len(seeds), at_once)]


def choose_scale(task: Task, settings: LearnedDirections, shape: float, max_iter: int, clock: Clock) -> Decided:
    """Choose σ and design by averaged held-out predictions of modes; by a part of them if time is up."""
    reader, n_folds = task.reader, min(n_folds_of(task), MOST_FOLDS)
    if n_folds < 2:
        return Decided(task, 0, USUAL * shrinkage(task.n_columns), None)
    tasks, folds = reader.candidates(task), reader.folds(task, n_folds)
    priors = [reader.prior(each, settings, shape) for each in tasks]
    every = [(which, 0, scale * shrinkage(each.n_columns)) for which, each in enumerate(tasks) for scale in FEW_SCALES]
    contest = Contest(task, every)
    found = {choice: np.full((len(task.seen), task.n_predicted), np.nan) for choice in every}
    repeats = next(n for many, n in PER_FOLD.items() if task.n_rows < many)
    root = np.random.SeedSequence(0)  # decisions depend on the data alone
    at_once = repeats if climb_at_once(task) else 1
    seeds = [[batches(root.spawn(repeats), at_once) for _ in folds] for _ in tasks]
    given_up = threading.Event()

    def predict(which: int, f: int, seeds: Seeds, scales: list[float]) -> list[Array]:
        (train, test), prior = folds[f], priors[which]
        climbers = make_climbers(tasks[which].part(train), prior, seeds, max(max_iter // 2, 1), given_up.is_set)
        return [tasks[which].predicted(climbers.to(scale), prior, test) for scale in scales]

    first = first_folds(folds)
    pool = ThreadPoolExecutor(workers_for(task, priors[0]))
    try:
        with progress_bar(task.progress, f"held-out {reader.noun}", n_folds) as report:
            for part in (range(first), range(first, n_folds)):
                scales = {which: [c[2] for c in contest.left if c[0] == which] for which in range(len(tasks))}
                jobs = {
                    (which, f): [pool.submit(predict, which, f, some, scales[which]) for some in seeds[which][f]]
                    for f in part
                    for which in scales
                    if scales[which]
                }
                for (which, f), some in jobs.items():
                    clock.insist(HELD_OUT)
                    wait(some, clock.left_of(HELD_OUT))
                    done = [job.result() for job in some if job.done()]
                    for scale, predicted in zip(scales[which], np.mean(done, axis=0) if done else (), strict=True):
                        found[which, 0, scale][folds[f][1]] = predicted
                        contest.take((which, 0, scale), folds[f][1], predicted)
                    if len(done) < len(some):
                        raise TimeIsUp
                    report(f + 1)
                if part.start == 0 and first < n_folds:
                    contest.drop()
    except TimeIsUp:
        if not contest.known:
            return Decided(task, 0, USUAL * shrinkage(task.n_columns), None, late=True)
        best = choose(contest)
        return Decided(tasks[best[0]], best[0], best[2], None, late=True)
    finally:
        given_up.set()
        pool.shutdown(wait=False, cancel_futures=True)
    best, lost = choose(contest), contest.mean_losses()[1]
    lowest = [min(loss for (which, *_), loss in lost.items() if which == design) for design in range(len(tasks))]
    return Decided(tasks[best[0]], best[0], best[2], HeldOut(folds, found[best], tuple(lowest)))


def choose(contest: Contest) -> Choice:
    """Return the best σ of the first design, or of another that is clearly better."""
    first = [choice for choice in contest.known if choice[0] == 0]
    best = contest.best()
    if not first or best[0] == 0:
        return best
    usual = min(first, key=lambda choice: contest.gain(choice, best)[0])
    mean, error = contest.gain(usual, best)
    return best if mean > CLEARLY * error else usual


def draw_modes(
    task: Task, rows: Gradient, prior: Prior, scale: float, draws: int, max_iter: int, clock: Clock
) -> tuple[Array, Array]:
    """Return positions (draw, D) of modes under random weights, and their log-posteriors under the original weights.

    If time is up there are fewer, but at least one.
    """
    given_up, found = threading.Event(), list[Array]()

    def climb(seeds: Seeds) -> Array:
        return make_climbers(task, prior, seeds, max_iter, given_up.is_set, rows).to(scale)

    pool = ThreadPoolExecutor(workers_for(task, prior))
    try:
        with progress_bar(task.progress, f"bootstrap, {draws} draws", draws) as report:
            at_once = AT_ONCE if climb_at_once(task) else 1
            jobs = [pool.submit(climb, some) for some in batches(task.seed.spawn(draws), at_once)]
            for job in jobs:
                wait([job], clock.left)
                if clock.up:
                    given_up.set()
                    if found:
                        break
                found += list(job.result())
                report(len(found))
    finally:
        given_up.set()
        pool.shutdown(wait=False, cancel_futures=True)
    positions = np.array(found)
    density, gradient = density_of(rows, prior, task.n_columns), np.empty(positions.shape[1])
    return positions, np.array([density(position, gradient) for position in positions])


def bootstrap(
    settings: Bootstrap, task: Task, directions: LearnedDirections, shape: float, instead: Clock | None = None
) -> Fit:
    """Draw directions and weights by bootstrap, and stack the draws with a mode.

    `instead` is the clock of chains that had no time for draws.
    """
    settings.check()
    clock, notes, reader = instead or Clock(settings.max_seconds), list[str](), task.reader
    if instead is not None:
        notes.append("there was no time for chains, and draws are those of inference='bootstrap'")
    prior = reader.prior(task, directions, shape)
    rows = task.prepared(task.precision)
    density_of(rows, prior, task.n_columns)(*np.zeros((2, size(prior, task.n_columns))))
    clock.start()
    few, mode = n_folds_of(task) < 2, None
    decided = choose_scale(reader.deciding(task, DECIDE), directions, shape, settings.max_iter, clock)
    if decided.which:
        task = reader.candidates(task)[decided.which]
        rows = task.prepared(task.precision)
    try:
        if decided.held_out is not None:
            mode = stacked_mode(decided.task, directions, shape, decided.held_out, clock, task)
    except TimeIsUp:
        decided = decided._replace(late=True)
    if decided.late:
        notes.append(LATE)
    prior = reader.prior(task, directions, shape, few=few)
    positions, values = draw_modes(task, rows, prior, decided.scale, settings.draws, settings.max_iter, clock)
    if len(positions) < settings.draws:
        notes.append(f"there was time for {len(positions)} of {settings.draws} draws")
    found = task.unpacked(positions[None], prior)
    tried = dict(enumerate(decided.held_out.losses)) if decided.held_out and reader.em_compares_designs else {}
    if notes:
        name = "Bootstrap" if instead is None else "Gibbs"
        message = f"{name}(max_seconds={settings.max_seconds:g}): {'; '.join(notes)}."
        warnings.warn(message, ConvergenceWarning, stacklevel=5)
    return Fit(
        found if mode is None else found.with_mode(*mode),  # type: ignore[arg-type]
        shape=shape,
        trace=values[None],
        n_iter=len(positions),
        extra={
            "diagnostics_": independent(reader.probed(task, found, PROBABILITIES)),
            "inference_": clone(settings).set_params(draws=len(positions)),
            "design_": task.design,
            "notes_": notes,
        }
        | ({"design_log_loss_": tried} if len(tried) > 1 else {}),
    )
