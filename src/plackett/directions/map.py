"""Maximum a posteriori directions: L-BFGS along a path of penalties, the penalty and the components cross-validated.

At given scales σ_0 = σ_1 = σ and s = 1 the mode in (u, v, ln λ) is a penalised likelihood, −½(|u|² + |v|²) being the
penalty: the smaller σ, the stronger. The path goes from weak to strong penalties, each climb from the last mode. With
one component for each class the weights for other classes are left out: that is multinomial logit.
"""

from __future__ import annotations

import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

from plackett.directions.density import density_of
from plackett.directions.learning import shrinkage
from plackett.directions.positions import unpacked
from plackett.directions.prior import Prior, inverse_weights, n_owners, parts
from plackett.directions.task import ClassTask, DirectionTask, Task
from plackett.directions.walk import AT_ONCE
from plackett.inference.base import Fit
from plackett.inference.em import EM
from plackett.inference.folds import Folds
from plackett.inference.limits import Clock
from plackett.model.race import Array
from plackett.output.progress import tracked
from plackett.output.scores import log_losses
from plackett.posterior.directions import DirectionPoint

SCALES = (8.0, 4.0, 2.0, 1.0, 0.6, 0.35, 0.2, 0.12)  # σ of few columns, from weak to strong penalties
FINE, COARSE = 1e-10, 1e-6  # tolerance of objective and gradient for a row, at the end and within cross-validation
FLAT = 1e-7  # the largest slope for a row that is none
SHUT = -50.0  # ln λ of a weight that is left out
Climb = tuple[Array, list[float], bool]  # where it ended, the objective of each iteration, and whether it converged


def scales_for(n_columns: int) -> list[float]:
    """σ along the path for so many columns."""
    return [scale * shrinkage(n_columns) for scale in SCALES]


def ascend(
    task: DirectionTask, prior: Prior, density: Any, position: Array, scale: float, max_iter: int, tol: float
) -> Climb:
    """To the mode at a given σ from a position."""
    d = task.n_columns
    free = len(position) - d - 2
    position = position.copy()
    position[free:] = 0.0
    position[-2:] = np.log(scale)
    held = pure_votes(position, prior, d)
    gradient, trace = np.empty_like(position), []
    n = task.n_seen

    def objective(x: Array) -> tuple[float, Array]:
        position[:free] = x
        value = density(position, gradient)
        gradient[held] = 0.0
        return -value / n, -gradient[:free] / n

    found = minimize(
        objective,
        position[:free],
        jac=True,
        method="L-BFGS-B",
        callback=lambda intermediate_result: trace.append(-n * intermediate_result.fun),
        options={"maxiter": max_iter, "maxfun": 2 * max_iter, "ftol": tol, "gtol": tol, "maxcor": 20},
    )
    position[:free] = found.x
    there = np.abs(found.jac).max() <= FLAT  # rounding can hide the way up from a mode
    return position, trace, bool(found.success or there)


def pure_votes(position: Array, prior: Prior, d: int) -> npt.NDArray[np.bool_]:
    """Where the position is held: with one component for each class, at votes for that class alone."""
    K, M = prior.shape.shape
    held = np.zeros(len(position), dtype=bool)
    if K == M == n_owners(prior):
        owners = n_owners(prior)
        foreign = parts(held, K, M, d, owners)[2]
        foreign[:] = np.arange(K)[:, None] != prior.owner
        parts(position, K, M, d, owners)[2][foreign] = inverse_weights(np.array(SHUT), prior.shape[foreign])
    return held


def path(task: DirectionTask, prior: Prior, max_iter: int, tol: float) -> list[Climb]:
    """Modes at the scales of the path."""
    density = density_of(task.prepared(np.float64), prior, task.n_columns)
    position = task.start(prior, np.random.default_rng(0))
    climbs = []
    for scale in scales_for(task.n_columns):
        climbs.append(ascend(task, prior, density, position, scale, max_iter, tol))
        position = climbs[-1][0]
    return climbs


def point(position: Array, prior: Prior, d: int) -> DirectionPoint:
    """A position as the posterior of a fit."""
    return DirectionPoint(**vars(unpacked(position[None, None], prior, d)))


def held_out_modes(
    task: ClassTask,
    settings: Any,
    shape: float,
    components: list[int],
    folds: Folds,
    max_iter: int,
    clock: Clock,
) -> dict[tuple[int, float], Array]:
    """Probabilities (n, K) of held-out rows by (components, σ); NaN for rows that no mode could predict."""
    scales = scales_for(task.n_columns)
    found = {(m, scale): np.full((len(task.here.Z), task.n_classes), np.nan) for m in components for scale in scales}

    def predict(done: int, train: Any, test: npt.NDArray[np.intp]) -> None:
        clock.check("while rows were held out", (1 + done / len(folds)) / 4)
        part, present = task.with_classes_of(train)
        if len(present) < 2:
            return
        for m in components:
            prior = settings.prior(len(present), task.n_columns, shape, m)
            for scale, (position, *_) in zip(scales, path(part, prior, max_iter, COARSE), strict=True):
                found[m, scale][test] = 0.0
                found[m, scale][np.ix_(test, present)] = task.predicted(position[None], prior, test)

    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        numbers, (trains, tests) = range(len(folds)), zip(*folds, strict=True)
        results = (pool.map if task.waits else map)(predict, numbers, trains, tests)
        for _ in tracked(folds, task.progress, "held-out rows, modes"):
            next(results)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    return found


def best_choice(
    found: dict[tuple[int, float], Array], task: Task
) -> tuple[tuple[int, float], dict[tuple[int, float], float]]:
    """The choice of the lowest held-out log-loss, and the losses."""
    losses = {}
    for choice, probability in found.items():
        told = np.isfinite(probability).all(axis=1)
        if not told.any():
            raise ValueError("no fold has two classes to train on; give more rows of each class, or fewer folds.")
        loss = log_losses(probability[told], task.codes[told])
        losses[choice] = float(np.average(loss, weights=task.weight[told]))
    return min(losses, key=lambda choice: losses[choice]), losses


def last_of(climbs: list[Climb], em: EM) -> Climb:
    """The last climb of a path, with a warning where it ended too soon."""
    if not climbs[-1][2]:
        warnings.warn(
            f"L-BFGS did not converge in {em.max_iter} iterations. Raise EM(max_iter=...).",
            ConvergenceWarning,
            stacklevel=6,
        )
    return climbs[-1]


def climb(em: EM, task: ClassTask, settings: Any, shape: float) -> Fit:
    """The mode with the penalty and the number of components of the lowest held-out log-loss."""
    em._check()
    if task.here.Z.any():
        components = sorted({1, settings.owned(task.n_classes)})
        found = held_out_modes(task, settings, shape, components, task.splits(em.cv), em.max_iter, Clock())
        (m, scale), losses = best_choice(found, task.here)
    else:  # rows that are all alike
        (m, scale), losses = (1, scales_for(task.n_columns)[-1]), {}
    prior = settings.prior(task.n_classes, task.n_columns, shape, m)
    climbs = path(task, prior, em.max_iter, FINE)[: scales_for(task.n_columns).index(scale) + 1]
    position, trace, _ = last_of(climbs, em)
    return Fit(
        point(position, prior, task.n_columns),
        shape=shape,
        trace=np.array(trace),
        n_iter=sum(len(steps) for _, steps, _ in climbs),
        extra={"cv_log_loss_": losses},
    )
