"""Maximum a posteriori directions: L-BFGS along a path of penalties, the penalty and the components cross-validated.

At given scales σ_0 = σ_1 = σ and s = 1 the mode in (u, v, ln λ) is a penalised likelihood, −½(|u|² + |v|²) being the
penalty: the smaller σ, the stronger. The path goes from weak to strong penalties, each climb from the last mode.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import PredefinedSplit, check_cv

from plackett.compiled import call
from plackett.directions.gradient import pack
from plackett.directions.posterior import DirectionPoint, probabilities
from plackett.directions.prior import Prior, Target, log_density, make_target
from plackett.directions.sampler import unpacked
from plackett.directions.starts import start
from plackett.directions.task import Task
from plackett.inference.base import Fit
from plackett.inference.em import EM
from plackett.model.race import Array
from plackett.selection import stratified_folds

SCALES = (4.0, 2.0, 1.0, 0.5, 0.25, 0.12)  # σ, from weak to strong penalties
COARSE = 1e-6  # tolerance within cross-validation


def ascend(target: Target, position: Array, scale: float, max_iter: int, tol: float) -> tuple[Array, list[float], bool]:
    """The mode at a given σ from a position, the objective of each iteration, and whether it converged."""
    d = target.beta.shape[1]
    free = len(position) - d - 2
    position = position.copy()
    position[free:] = 0.0
    position[-2:] = np.log(scale)
    gradient, trace = np.empty_like(position), []
    n = target.panels.weight.sum()

    def objective(x: Array) -> tuple[float, Array]:
        position[:free] = x
        return -call(log_density, position, gradient, target) / n, -gradient[:free] / n

    found = minimize(
        objective,
        position[:free],
        jac=True,
        method="L-BFGS-B",
        callback=lambda intermediate_result: trace.append(-n * intermediate_result.fun),
        options={"maxiter": max_iter, "maxfun": 2 * max_iter, "ftol": tol, "gtol": tol, "maxcor": 20},
    )
    position[:free] = found.x
    return position, trace, bool(found.success)


def path(task: Task, prior: Prior, max_iter: int, tol: float) -> list[tuple[Array, list[float], bool]]:
    """Modes at the scales of the path."""
    target = make_target(pack(task.Z, task.codes, task.weight), prior)
    position = start(task, prior, np.random.default_rng(0))
    climbs = []
    for scale in SCALES:
        climbs.append(ascend(target, position, scale, max_iter, tol))
        position = climbs[-1][0]
    return climbs


def point(position: Array, prior: Prior, d: int) -> DirectionPoint:
    """A position as the posterior of a fit."""
    return DirectionPoint(**vars(unpacked(position[None, None], prior, d)))


def cross_validated(em: EM, task: Task, settings: Any, shape: float) -> dict[tuple[int, float], float]:
    """Held-out log-loss by (components, σ)."""
    if isinstance(em.cv, (int, np.integer)):
        splitter = check_cv(PredefinedSplit(stratified_folds(task.Z, task.codes, int(em.cv))))
    else:
        splitter = check_cv(em.cv, task.codes, classifier=True)
    choices = sorted({1, settings.components})
    loss = {(m, scale): 0.0 for m in choices for scale in SCALES}
    weight = 0.0
    for train, test in splitter.split(task.Z, task.codes):
        present, codes = np.unique(task.codes[train], return_inverse=True)
        if len(present) < 2:
            continue
        fold = replace(task, Z=task.Z[train], codes=codes, weight=task.weight[train])
        for m in choices:
            prior = settings.prior(len(present), shape, m)
            for scale, (position, *_) in zip(SCALES, path(fold, prior, em.max_iter, COARSE), strict=True):
                probability = np.zeros((len(test), task.n_classes))
                probability[:, present] = probabilities(point(position, prior, task.Z.shape[1]), task.Z[test])[0, 0]
                own = np.clip(probability[np.arange(len(test)), task.codes[test]], 1e-15, 1.0)
                loss[m, scale] -= float(task.weight[test] @ np.log(own))
        weight += float(task.weight[test].sum())
    if weight == 0:
        raise ValueError(f"no fold of EM(cv={em.cv!r}) has two classes to train on; give more rows or fewer folds.")
    return {choice: value / weight for choice, value in loss.items()}


def climb(em: EM, task: Task, settings: Any, shape: float) -> Fit:
    """The mode with the penalty and the number of components of the lowest held-out log-loss."""
    em._check()
    losses = cross_validated(em, task, settings, shape)
    m, scale = min(losses, key=lambda choice: losses[choice])
    prior = settings.prior(task.n_classes, shape, m)
    climbs = path(task, prior, em.max_iter, em.tol)[: SCALES.index(scale) + 1]
    position, trace, converged = climbs[-1]
    if not converged:
        warnings.warn(
            f"L-BFGS did not converge in {em.max_iter} iterations. Raise EM(max_iter=...) or EM(tol=...).",
            ConvergenceWarning,
            stacklevel=5,
        )
    return Fit(
        point(position, prior, task.Z.shape[1]),  # type: ignore[arg-type]
        shape=shape,
        trace=np.array(trace),
        n_iter=sum(len(steps) for _, steps, _ in climbs),
        extra={"cv_log_loss_": losses},
    )
