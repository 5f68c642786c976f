"""How much to trust the posterior average, and how much the mode of a plain logit: by held-out rows.

An average over directions that few rows leave open can be too soft, where the mode is not. Short chains on all rows
but a fold predict that fold, and so do modes with one component for each class along the path of penalties. The
predictions are p ∝ (w·mode + (1 − w)·average)^κ with the w and κ under which the held-out labels are most probable
(stacking: Yao, Vehtari, Simpson & Gelman 2018), and w ~ Beta(1½, 1½), ln κ ~ N(0, 0.3²).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit, log_expit

from plackett.directions.gradient import pack
from plackett.directions.hmc import begin
from plackett.directions.map import SCALES, best_choice, held_out_modes, path, point
from plackett.directions.positions import unpacked
from plackett.directions.posterior import DirectionDraws, probabilities, sharpened
from plackett.directions.prior import Prior, size
from plackett.directions.starts import start
from plackett.directions.task import Task
from plackett.model.race import Array
from plackett.progress import progress_bar
from plackett.selection import stratified_folds

FOLDS, CHAINS, TUNE, DRAWS = 5, 2, 100, 60
FEWEST = 2 * FOLDS  # rows
CAUTION, SPREAD = 1.5, 0.3  # of the priors of w and ln κ
ITERATIONS, TOLERANCE = 300, 1e-8  # of a mode


def held_out_averages(task: Task, prior: Prior, fold: npt.NDArray[np.intp], longest: int, tune: int, n: int) -> Array:
    """Probabilities (n, K) of each row by short chains that have not seen its fold."""
    from plackett.directions.sampler import HamiltonianSampler, Walker
    from plackett.engines.numba import cores

    d = task.Z.shape[1]

    def predict(job: tuple[int, np.random.SeedSequence]) -> tuple[int, Array]:
        f, seed = job
        seen, left = fold != f, fold == f
        part = replace(task, Z=task.Z[seen], codes=task.codes[seen], weight=task.weight[seen])
        runner = HamiltonianSampler(pack(part.Z, part.codes, part.weight), prior, tune, longest)
        rng = np.random.default_rng(seed)
        chain = Walker(begin(start(part, prior, rng)), rng)
        for tuning, length in ((True, tune), (False, n)):
            positions, values = np.empty((length, 1, size(prior, d))), np.empty((2, length))
            runner.advance(chain, tuning, positions, *values)
        return f, probabilities(unpacked(positions[None, :, 0], prior, d), task.Z[left]).mean(axis=(0, 1))

    jobs = list(zip(np.repeat(np.arange(FOLDS), CHAINS).tolist(), task.seed.spawn(FOLDS * CHAINS), strict=True))
    found = np.zeros((len(fold), len(prior.shape)))
    with (
        ThreadPoolExecutor(min(len(jobs), cores())) as pool,
        progress_bar(task.progress, "stacking", len(jobs)) as report,
    ):
        for done, (f, probability) in enumerate(pool.map(predict, jobs), 1):
            found[fold == f] += probability / CHAINS
            report(done)
    return found


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


def stack(draws: DirectionDraws, task: Task, settings: Any, shape: float, tune: int, n: int) -> DirectionDraws:
    """The draws with a mode beside them; alone where rows are too few to tell."""
    if len(task.Z) < FEWEST:
        return draws
    fold = stratified_folds(task.Z, task.codes, FOLDS)
    prior = settings.prior(task.n_classes, shape)
    average = held_out_averages(task, prior, fold, settings.leapfrogs, min(tune, TUNE), min(n, DRAWS))
    folds = [(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(FOLDS)]
    modes = held_out_modes(task, settings, shape, [1], folds, ITERATIONS)
    (_, scale), _ = best_choice(modes, task)
    weight, power = best_mixture(
        np.nan_to_num(modes[1, scale], nan=1 / task.n_classes), average, task.codes, task.weight
    )
    single = settings.prior(task.n_classes, shape, 1)
    position = path(task, single, ITERATIONS, TOLERANCE)[SCALES.index(scale)][0]
    return draws.with_mode(point(position, single, task.Z.shape[1]), weight, power)
