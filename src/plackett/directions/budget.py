"""Budget of a time limit: how many folds to hold out, and whether chains can make draws at all.

A plan is made once, from the measured time of a pass. It is an estimate: `plackett.inference.limits` has the fractions
of the limit at which held-out decisions and tuning end in any case.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from plackett.compute.pieces import cores
from plackett.directions.density import density_of
from plackett.directions.prior import Prior, size
from plackett.directions.settings import LearnedDirections
from plackett.directions.stacking import CHAINS, DRAWS, LONGEST, TUNE, n_folds_of
from plackett.directions.task import Task
from plackett.directions.walk import AT_ONCE, MANY, compiled_walk, load_kernels
from plackett.inference.gibbs import Gibbs
from plackett.inference.limits import Clock

FOR_FOLDS, FOR_CHAINS = 0.3, 0.6  # fractions of the limit that plans use
ENOUGH_TUNING, ENOUGH_DRAWS = 50, 25  # smallest numbers of iterations worth starting chains for
MODES = 250  # passes for the modes of a fold
CLIMBS = 200  # passes to the starting mode of a chain


class TimePlan(NamedTuple):
    """Number of folds (fewer than two: none), whether chains have time for draws, and seconds of the whole fit."""

    n_folds: int
    chains: bool
    seconds: float


def plan_fit(task: Task, prior: Prior, gibbs: Gibbs, settings: LearnedDirections, clock: Clock) -> TimePlan:
    """Plan a fit by chains, and start its clock."""
    rows, longest = task.prepared(task.precision), settings.longest(task.wide)
    density, (q, gradient) = density_of(rows, prior, task.n_columns), np.zeros((2, size(prior, task.n_columns)))
    load_kernels(task, prior)
    for passes in (rows, task.prepared(np.float64)):  # for chains and for modes, to compile their kernels
        density_of(passes, prior, task.n_columns)(q, gradient)
    alone = compiled_walk(rows, prior, task.n_columns, task.precision) is None
    clock.start()
    each = clock.timed(lambda: density(q, gradient))
    at_once = AT_ONCE if task.is_remote else 1 if alone or task.on_gpu else cores()
    tune, usual = min(gibbs.tune, TUNE), n_folds_of(task)
    fold = len(task.reader.candidates(task)) * CHAINS * (tune + DRAWS) * min(longest, LONGEST) / 2 + MODES
    fold *= each / at_once  # F folds with 1 - 1/F of the observations cost as much as F - 1 fits of all
    iteration = gibbs.chains * longest / 2 * each / min(at_once, gibbs.chains)
    climbs = gibbs.chains * CLIMBS * each if task.n_seen >= MANY else 0.0
    length = gibbs.draws if gibbs.max_draws is None else max(gibbs.draws, gibbs.max_draws)
    seconds = max(usual - 1, 0) * fold + climbs + (gibbs.tune + length) * iteration
    if clock.max_seconds is None:
        return TimePlan(usual, True, seconds)
    n_folds = min(usual, 1 + int(FOR_FOLDS * clock.max_seconds / max(fold, 1e-9)))
    needed = climbs + (min(gibbs.tune, ENOUGH_TUNING) + min(gibbs.draws, ENOUGH_DRAWS)) * iteration
    return TimePlan(n_folds, task.is_remote or needed <= FOR_CHAINS * clock.max_seconds, seconds)
