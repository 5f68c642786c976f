"""Maximum a posteriori directions: L-BFGS along a path of penalties, with penalty and components cross-validated.

At given scales σ_0 = σ_1 = σ and s = 1 the mode in (u, v, ln λ) is a penalised likelihood with penalty −½(|u|² + |v|²):
the smaller σ, the stronger. The path goes from weak to strong penalties, each fit starting at the last mode. With one
component per class the weights for other classes are omitted: this is multinomial logit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
from scipy.optimize import OptimizeResult, minimize

from plackett.directions.density import density_of
from plackett.directions.prior import Prior, inverse_weights, n_owners, parts
from plackett.directions.settings import shrinkage
from plackett.directions.task import Task
from plackett.model.mixture import Mode
from plackett.model.race import Array

SCALES = (8.0, 4.0, 2.0, 1.0, 0.6, 0.35, 0.2, 0.12)  # σ of few columns, from weak to strong penalties
FLAT = 1e-7  # slopes per observation below this count as zero
SHUT = -50.0  # ln λ of a weight that is left out
Density = Callable[[Array, Array], float]
Climb = tuple[Array, list[float], bool]  # final position, objective of each iteration, True if it converged


def scales_for(task: Task, components: int) -> list[float]:
    """σ along the path for this number of components per owner."""
    weakest = np.inf if components == 1 else task.reader.weakest
    return [scale * shrinkage(task.n_columns) for scale in SCALES if scale <= weakest]


def ascend(
    task: Task,
    prior: Prior,
    density: Density,
    position: Array,
    scale: float,
    max_iter: int,
    tol: float,
    tilt: Array | None = None,
    up: Callable[[], bool] | None = None,
    learn_s: bool = False,
) -> Climb:
    """Maximise at a given σ, starting at a position.

    The slope `tilt` (None: 0) is added to the log-density. The optimisation ends when `up` is true. The scales s of
    covariates stay at 1 unless `learn_s`.
    """
    d = task.n_columns
    end = len(position) - prior.parameters
    fixed = end - (2 if learn_s else d + 2)
    free = np.append(np.arange(fixed), np.arange(end, len(position)))
    position = position.copy()
    position[fixed:end] = 0.0
    position[end - 2 : end] = np.log(scale)
    held = pure_votes(position, prior, d)
    gradient, trace = np.empty_like(position), []
    n = task.n_seen
    width = widths(position, prior, d, n)[free]

    def objective(x: Array) -> tuple[float, Array]:
        position[free] = x * width
        value = density(position, gradient)
        if tilt is not None:
            value += float(tilt[free] @ position[free])
            gradient[:] += tilt
        gradient[held] = 0.0
        return -value / n, -gradient[free] * width / n

    def note(intermediate_result: OptimizeResult) -> None:
        trace.append(-n * intermediate_result.fun)
        if up is not None and up():
            raise StopIteration

    found = minimize(
        objective,
        position[free] / width,
        jac=True,
        method="L-BFGS-B",
        callback=note,
        options={"maxiter": max_iter, "maxfun": 2 * max_iter, "ftol": tol, "gtol": tol, "maxcor": 20},
    )
    position[free] = found.x * width
    flat = np.abs(found.jac).max() <= FLAT  # near a mode rounding can keep L-BFGS from reporting success
    return position, trace, bool(found.success or flat)


def widths(position: Array, prior: Prior, d: int, n: float) -> Array:
    """Return a scale for each coordinate on which n observations bend the log-posterior about equally.

    Standardised covariates bend it by σ² per observation in u and v, and the prior by 1.
    """
    (K, M), found = prior.shape.shape, np.ones_like(position)
    u, v, *_, log_sigma = parts(position, K, M, d, n_owners(prior))
    shared, single = 1 / np.sqrt(np.exp(2 * log_sigma) + 1 / n)
    wide_u, wide_v, *_ = parts(found, K, M, d, n_owners(prior))
    wide_u[:], wide_v[:] = shared, single
    return found


def pure_votes(position: Array, prior: Prior, d: int) -> npt.NDArray[np.bool_]:
    """Mark coordinates that are fixed: with one component per class, it votes for that class alone."""
    K, M = prior.shape.shape
    held = np.zeros(len(position), dtype=bool)
    if K == M == n_owners(prior):
        owners = n_owners(prior)
        foreign = parts(held, K, M, d, owners)[2]
        foreign[:] = np.arange(K)[:, None] != prior.owner
        parts(position, K, M, d, owners)[2][foreign] = inverse_weights(np.array(SHUT), prior.shape[foreign])
    return held


def path(
    task: Task,
    prior: Prior,
    scales: Sequence[float],
    max_iter: int,
    tol: float,
    start: Array | None = None,
    last_tol: float | None = None,
    dtype: npt.DTypeLike = np.float64,
) -> list[Climb]:
    """Return modes at these scales, each starting at the last mode; the last may have its own tolerance."""
    density = density_of(task.prepared(dtype), prior, task.n_columns, of_coordinates=False)
    position = task.starts(prior, [np.random.default_rng(0)])[0] if start is None else start
    climbs: list[Climb] = []
    for i, scale in enumerate(scales, start=1):
        finest = last_tol if last_tol is not None and i == len(scales) else tol
        climbs.append(ascend(task, prior, density, position, scale, max_iter, finest))
        position = climbs[-1][0]
    return climbs


def is_concave(prior: Prior) -> bool:
    """True if the log-posterior has a unique mode at each scale, so that the starting point has no effect."""
    return len(prior.owner) == n_owners(prior) and not prior.parameters


def way_to(task: Task, prior: Prior, scale: float) -> list[float]:
    """Return the scales of the path down to this one, or this one alone if the mode is unique."""
    scales = scales_for(task, len(prior.owner) // n_owners(prior))
    return [scale] if is_concave(prior) else scales[: scales.index(scale) + 1]


def mode_at(task: Task, prior: Prior, position: Array) -> Mode:
    """Return a position as the result of a fit."""
    return Mode(**vars(task.unpacked(position[None, None], prior)))
