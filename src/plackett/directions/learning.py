"""How each inference learns directions: one entry point for classes and situations, local or remote."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from plackett.directions.budget import plan_fit
from plackett.directions.elimination import held_out_modes
from plackett.directions.map import is_concave, mode_at, path, scales_for, way_to
from plackett.directions.prior import n_owners
from plackett.directions.sampler import DirectionRun
from plackett.directions.settings import LearnedDirections, lengths
from plackett.directions.stacking import NO_TIME, choose_design, n_folds_of, stacked_mode
from plackett.directions.task import Task
from plackett.directions.weighted_modes import bootstrap
from plackett.inference import EM, Bootstrap, Gibbs, Variational
from plackett.inference.base import Fit, open_ended
from plackett.inference.limits import Clock, TimeIsUp

LOCAL = 1e-9  # tolerance per observation of EM's final mode, if it is one of several


def learn(
    inference: EM | Variational | Gibbs | Bootstrap, task: Task, settings: LearnedDirections, shape: float
) -> Fit:
    """Return draws of directions and weights, or their mode.

    Parameters
    ----------
    inference : Gibbs, Bootstrap or EM
        Method of inference.
    task : Task
        Observations of classes or situations, with their covariates.
    settings : LearnedDirections
        Components, prior and the longest trajectory.
    shape : float
        Prior shape of a weight of a group that does not own the component.

    Returns
    -------
    Fit
        The posterior is `plackett.model.mixture.Stacked`, or `Mode` after EM; ``extra["design_"]`` is the chosen
        design, as in `Task.design`.
    """
    settings.check()
    if inference.samples:
        return sample(inference, task, settings, shape)
    if isinstance(inference, Bootstrap):
        return bootstrap(inference, task, settings, shape)
    if inference.maximises:
        return climb(inference, task, settings, shape)
    raise ValueError(
        "there is no variational approximation for learned directions: their posterior has many modes. Use "
        "features='exp' for the paper's model, or inference='gibbs' or inference='em'."
    )


def sample(gibbs: Gibbs, task: Task, settings: LearnedDirections, shape: float) -> Fit:
    """Sample directions and weights, and stack the draws with a mode."""
    goes_on, gibbs = open_ended(gibbs), gibbs.completed(**lengths(task.wide, task.n_seen))
    clock, notes, few = Clock(gibbs.max_seconds), list[str](), n_folds_of(task) < 2
    held_out = mode = n_folds = None
    if gibbs.max_seconds is not None:
        prior = task.reader.prior(task, settings, shape)._replace(totals=task.reader.totals)
        plan = plan_fit(task, prior, gibbs, settings, clock)
        if not plan.chains:
            return bootstrap(Bootstrap(max_seconds=gibbs.max_seconds), task, settings, shape, instead=clock)
        n_folds = plan.n_folds
        if not few and n_folds < n_folds_of(task):
            notes.append(NO_TIME if n_folds < 2 else f"there was time for {n_folds} of {n_folds_of(task)} folds")
    try:
        task, held_out = choose_design(task, settings, shape, gibbs.tune, clock, n_folds)
        mode = None if held_out is None else stacked_mode(task, settings, shape, held_out, clock)
    except TimeIsUp:
        notes = [NO_TIME]
    prior = task.reader.prior(task, settings, shape, few=few)._replace(totals=task.reader.totals)
    run = DirectionRun(gibbs, task, prior, settings.longest(task.wide), clock, goes_on, mode)
    run.notes += notes
    draws = run.run(stacklevel=5)
    found = run.found_draws()
    tried = {} if held_out is None or not task.reader.em_compares_designs else dict(enumerate(held_out.losses))
    return Fit(
        found if mode is None else found.with_mode(*mode),  # type: ignore[arg-type]
        shape=shape,
        trace=draws["value"],
        n_iter=run.settings.tune + run.store.iterations,
        extra={"diagnostics_": run.diagnose(), "inference_": run.settings, "design_": task.design, "notes_": run.notes}
        | ({"design_log_loss_": tried} if len(tried) > 1 else {}),
    )


def climb(em: EM, task: Task, settings: LearnedDirections, shape: float) -> Fit:
    """Return the mode for the design, penalty and components with the lowest held-out log-loss."""
    em._check()
    reader = task.reader
    candidates = reader.candidates(task) if reader.em_compares_designs else [task]
    if task.Z.any() or not reader.em_skips_constant_rows:
        prior = reader.prior(task, settings, shape)
        components = sorted({1, len(prior.owner) // n_owners(prior)})
        folds = reader.splits(task, em.cv)
        contest, _, begun = held_out_modes(candidates, settings, shape, components, folds, em.max_iter, Clock())
        (which, m, scale), losses = contest.mean_losses()
    else:
        (which, m, scale), losses, begun = (0, 1, scales_for(task, 1)[-1]), {}, {}
    task = candidates[which]
    prior, start = reader.prior(task, settings, shape, m), begun.get((which, m, scale))
    way = [scale] if start is not None else way_to(task, prior, scale)
    finest = reader.mode_tolerance if is_concave(prior) else max(reader.mode_tolerance, LOCAL)
    climbs = path(task, prior, way, em.max_iter, reader.fold_tolerance, start, finest)
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
