"""Held-out calibration of the posterior average: one power for all probabilities.

An average over directions that the data leave open can be too soft. Short chains on all rows but a fold predict that
fold, and the power κ of p̄^κ/Σ_l p̄_l^κ is the one under which all held-out labels together are most probable, with
ln κ ~ N(0, ½²).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from plackett.directions.gradient import pack
from plackett.directions.hmc import begin
from plackett.directions.posterior import SMALLEST, probabilities
from plackett.directions.prior import Prior, size
from plackett.directions.starts import start
from plackett.directions.task import Task
from plackett.model.race import Array
from plackett.progress import progress_bar
from plackett.selection import stratified_folds

FOLDS, TUNE, DRAWS = 5, 120, 80
FEWEST = 2 * FOLDS  # rows
SPREAD = 0.5  # deviation of ln κ


def held_out(task: Task, prior: Prior, longest: int, tune: int, draws: int) -> Array:
    """Probabilities (n, K) of each row by a short chain that has not seen its fold."""
    from plackett.directions.sampler import HamiltonianSampler, Walker, unpacked
    from plackett.engines.numba import cores

    fold = stratified_folds(task.Z, task.codes, FOLDS)
    found = np.empty((len(fold), len(prior.shape)))
    seeds = task.seed.spawn(FOLDS)
    d = task.Z.shape[1]

    def predict(f: int) -> None:
        seen, left = fold != f, fold == f
        part = replace(task, Z=task.Z[seen], codes=task.codes[seen], weight=task.weight[seen])
        runner = HamiltonianSampler(pack(part.Z, part.codes, part.weight), prior, tune, longest)
        rng = np.random.default_rng(seeds[f])
        chain = Walker(begin(start(part, prior, rng)), rng)
        for tuning, n in ((True, tune), (False, draws)):
            positions, values = np.empty((n, 1, size(prior, d))), np.empty((2, n))
            runner.advance(chain, tuning, positions, *values)
        found[left] = probabilities(unpacked(positions[None, :, 0], prior, d), task.Z[left]).mean(axis=(0, 1))

    with (
        ThreadPoolExecutor(min(FOLDS, cores())) as pool,
        progress_bar(task.progress, "calibration", FOLDS) as report,
    ):
        for done, _ in enumerate(pool.map(predict, range(FOLDS)), 1):
            report(done)
    return found


def power(task: Task, prior: Prior, longest: int, tune: int, draws: int) -> float:
    """κ; 1 where rows are too few to tell."""
    if len(task.Z) < FEWEST:
        return 1.0
    found = held_out(task, prior, longest, min(tune, TUNE), min(draws, DRAWS))
    return best_power(found, task.codes, task.weight)


def best_power(probability: Array, codes: npt.NDArray[np.intp], weight: Array) -> float:
    """κ of the largest held-out likelihood and prior."""
    log = np.log(np.maximum(probability, SMALLEST))
    own = log[np.arange(len(codes)), codes]

    def loss(log_power: float) -> float:
        kappa = np.exp(log_power)
        return float(weight @ (logsumexp(kappa * log, axis=1) - kappa * own) + 0.5 * (log_power / SPREAD) ** 2)

    return float(np.exp(minimize_scalar(loss, bounds=(-2.0, 2.0), method="bounded").x))
