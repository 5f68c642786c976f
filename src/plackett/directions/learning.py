"""How each inference learns directions: one entry for classes and situations, here or on workers."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from plackett.directions.map import mode_at, path, scales_for
from plackett.directions.prior import n_owners
from plackett.directions.sampler import DirectionRun
from plackett.directions.settings import LearnedDirections, lengths
from plackett.directions.stacking import best_choice, choose_design, held_out_modes, stacked_mode
from plackett.directions.task import Task
from plackett.inference import EM, Gibbs, Variational
from plackett.inference.base import Fit, open_ended
from plackett.inference.limits import Clock


def learn(inference: EM | Variational | Gibbs, task: Task, settings: LearnedDirections, shape: float) -> Fit:
    """Draws of directions and weights, or their mode.

    Parameters
    ----------
    inference : Gibbs or EM
        How.
    task : Task
        Observations of classes or situations, with their covariates.
    settings : LearnedDirections
        Components, prior and the longest trajectory.
    shape : float
        Prior shape of a weight of a group that does not own the component.

    Returns
    -------
    Fit
        The posterior is `plackett.model.mixture.Stacked`, or `Mode` after EM; ``extra["design_"]`` is the design
        chosen, as `Task.design` names it.
    """
    settings.check()
    if isinstance(inference, Gibbs):
        return sample(inference, task, settings, shape)
    if isinstance(inference, EM):
        return climb(inference, task, settings, shape)
    raise ValueError(
        "there is no variational approximation for learned directions: their posterior has many modes. Use "
        "features='exp' for the paper's model, or inference='gibbs' or inference='em'."
    )


def sample(gibbs: Gibbs, task: Task, settings: LearnedDirections, shape: float) -> Fit:
    """The posterior of directions and weights, with a mode stacked beside it."""
    goes_on, gibbs = open_ended(gibbs), gibbs.completed(**lengths(task.wide, task.n_seen))
    clock = Clock(gibbs.max_seconds)
    task, held_out = choose_design(task, settings, shape, gibbs.tune, clock)
    mode = None if held_out is None else stacked_mode(task, settings, shape, held_out, clock)
    prior = task.reader.prior(task, settings, shape, few=held_out is None)._replace(totals=task.reader.totals)
    run = DirectionRun(gibbs, task, prior, settings.longest(task.wide), clock, goes_on, mode)
    draws = run.run(stacklevel=5)
    found = run.found_draws()
    return Fit(
        found if mode is None else found.with_mode(*mode),  # type: ignore[arg-type]
        shape=shape,
        trace=draws["value"],
        n_iter=run.settings.tune + run.store.iterations,
        extra={"diagnostics_": run.diagnose(), "inference_": run.settings, "design_": task.design},
    )


def climb(em: EM, task: Task, settings: LearnedDirections, shape: float) -> Fit:
    """The mode with the design, the penalty and the components of the lowest held-out log-loss."""
    em._check()
    reader = task.reader
    candidates = reader.candidates(task) if reader.em_compares_designs else [task]
    if task.Z.any() or not reader.em_skips_constant_rows:
        prior = reader.prior(task, settings, shape)
        components = sorted({1, len(prior.owner) // n_owners(prior)})
        folds = reader.splits(task, em.cv)
        found = held_out_modes(candidates, settings, shape, components, folds, em.max_iter, Clock())
        (which, m, scale), losses = best_choice(found, task)
    else:
        (which, m, scale), losses = (0, 1, scales_for(task.n_columns)[-1]), {}
    task = candidates[which]
    prior = reader.prior(task, settings, shape, m)
    climbs = path(task, prior, em.max_iter, reader.mode_tolerance)[: scales_for(task.n_columns).index(scale) + 1]
    position, trace, converged = climbs[-1]
    if not converged:
        message = f"L-BFGS did not converge in {em.max_iter} iterations. Raise EM(max_iter=...)."
        warnings.warn(message, ConvergenceWarning, stacklevel=5)
    return Fit(
        mode_at(task, prior, position),  # type: ignore[arg-type]
        shape=shape,
        trace=np.array(trace),
        n_iter=sum(len(steps) for _, steps, _ in climbs),
        extra={
            "cv_log_loss_": losses if reader.em_compares_designs else {key[1:]: loss for key, loss in losses.items()},
            "design_": task.design,
        },
    )
