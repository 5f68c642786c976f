"""How much to trust the posterior average, and how much the mode of a plain logit: by held-out rows.

An average over directions that few rows leave open can be too soft, where the mode is not. Short chains on all rows
but a fold predict that fold, and so do modes with one component for each class along the path of penalties. The
weight of the mode is the one under which the held-out labels are most probable (stacking: Yao, Vehtari, Simpson &
Gelman 2018), with a Beta prior that keeps it from the ends.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar

from plackett.directions.gradient import pack
from plackett.directions.hmc import begin
from plackett.directions.map import SCALES, best_choice, held_out_modes, path, point
from plackett.directions.positions import unpacked
from plackett.directions.posterior import DirectionDraws, probabilities
from plackett.directions.prior import Prior, size
from plackett.directions.starts import start
from plackett.directions.task import Task
from plackett.model.race import Array
from plackett.progress import progress_bar
from plackett.selection import stratified_folds

FOLDS, TUNE, DRAWS = 5, 120, 80
FEWEST = 2 * FOLDS  # rows
ITERATIONS, TOLERANCE = 300, 1e-8  # of a mode
CAUTION = 2.0  # both parameters of the Beta prior


def held_out_averages(task: Task, prior: Prior, fold: npt.NDArray[np.intp], longest: int, tune: int, n: int) -> Array:
    """Probabilities (n, K) of each row by a short chain that has not seen its fold."""
    from plackett.directions.sampler import HamiltonianSampler, Walker
    from plackett.engines.numba import cores

    found = np.empty((len(fold), len(prior.shape)))
    seeds = task.seed.spawn(FOLDS)
    d = task.Z.shape[1]

    def predict(f: int) -> None:
        seen, left = fold != f, fold == f
        part = replace(task, Z=task.Z[seen], codes=task.codes[seen], weight=task.weight[seen])
        runner = HamiltonianSampler(pack(part.Z, part.codes, part.weight), prior, tune, longest)
        rng = np.random.default_rng(seeds[f])
        chain = Walker(begin(start(part, prior, rng)), rng)
        for tuning, length in ((True, tune), (False, n)):
            positions, values = np.empty((length, 1, size(prior, d))), np.empty((2, length))
            runner.advance(chain, tuning, positions, *values)
        found[left] = probabilities(unpacked(positions[None, :, 0], prior, d), task.Z[left]).mean(axis=(0, 1))

    with (
        ThreadPoolExecutor(min(FOLDS, cores())) as pool,
        progress_bar(task.progress, "stacking", FOLDS) as report,
    ):
        for done, _ in enumerate(pool.map(predict, range(FOLDS)), 1):
            report(done)
    return found


def best_weight(mode: Array, average: Array, weight: Array) -> float:
    """The weight of the mode, from probabilities (n,) of held-out labels."""

    def loss(w: float) -> float:
        held_out = weight @ np.log(np.maximum(w * mode + (1 - w) * average, 1e-300))
        return -float(held_out + (CAUTION - 1) * (np.log(w) + np.log1p(-w)))

    return float(minimize_scalar(loss, bounds=(1e-6, 1 - 1e-6), method="bounded").x)


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
    rows = np.arange(len(task.Z)), task.codes
    weight = best_weight(modes[1, scale][rows], average[rows], task.weight)
    single = settings.prior(task.n_classes, shape, 1)
    position = path(task, single, ITERATIONS, TOLERANCE)[SCALES.index(scale)][0]
    return draws.with_mode(point(position, single, task.Z.shape[1]), weight)
