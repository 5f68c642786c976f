"""Modes under random weights of the observations, each with its own prior centre and starting point.

One climber is an optimisation by SciPy. On a GPU the passes of all climbers over rows of classes are made together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import numpy as np

from plackett.compute.pieces import cores
from plackett.directions.climbs import MEMORY, climb_together
from plackett.directions.density import density_of
from plackett.directions.flights import Trajectories
from plackett.directions.map import ascend, pure_votes, widths
from plackett.directions.prior import Prior, n_owners, parts, size
from plackett.directions.task import Task
from plackett.engines.base import Gradient
from plackett.engines.cupy_directions import TOGETHER, CupyDirections
from plackett.model.race import Array

TOLERANCE = 1e-5  # of objective and gradient per observation: about a hundredth of the spread of modes
THREADS = 4  # that draw weights at the same time: more would wait for each other
Up = Callable[[], bool]


def begin(task: Task, prior: Prior, seed: np.random.SeedSequence) -> tuple[Task, Array, Array]:
    """Draw weights and the slope of the prior's centre; return the weighted task, the slope and a starting point."""
    rng = np.random.default_rng(seed)
    weighted = task.reweighted(rng)
    tilt = np.zeros(size(prior, task.n_columns))
    (K, M), owners = prior.shape.shape, n_owners(prior)
    u, v, *_ = parts(tilt, K, M, task.n_columns, owners)
    u[:], v[:] = rng.standard_normal(u.shape), rng.standard_normal(v.shape)
    (position,) = weighted.starts(prior, [rng])
    return weighted, tilt, position


class Climber:
    """Optimisation under its own weights, prior centre and starting point."""

    def __init__(self, task: Task, prior: Prior, seed: np.random.SeedSequence, max_iter: int, up: Up):
        self.task, self.prior, self.max_iter, self.up = task, prior, max_iter, up
        weighted, self.tilt, self.position = begin(task, prior, seed)
        self.density = density_of(weighted.prepared(task.precision), prior, task.n_columns, of_coordinates=False)

    def to(self, scale: float) -> Array:
        """Return the mode (1, D) at this scale, starting at the last position."""
        how = self.max_iter, TOLERANCE, self.tilt, self.up, True
        self.position, *_ = ascend(self.task, self.prior, self.density, self.position, scale, *how)
        return self.position[None]


class ClimbersTogether:
    """Optimisations of several climbers by common passes over rows of classes on the GPU."""

    def __init__(
        self,
        task: Task,
        prior: Prior,
        seeds: Sequence[np.random.SeedSequence],
        max_iter: int,
        up: Up,
        rows: CupyDirections,
    ):
        self.task, self.prior, self.max_iter, self.up = task, prior, max_iter, up
        with ThreadPoolExecutor(min(cores(), THREADS)) as pool:
            weighted, tilts, positions = zip(*pool.map(lambda seed: begin(task, prior, seed), seeds), strict=True)
        self.tilts, self.positions = np.array(tilts), np.array(positions)
        weights = [each.seen.weights for each in weighted]
        self.groups = [slice(c, c + TOGETHER) for c in range(0, len(seeds), TOGETHER)]
        self.trajectories = [
            Trajectories(rows.reweighted(weights[some]), prior, len(weights[some])) for some in self.groups
        ]

    def to(self, scale: float) -> Array:
        """Return the modes (C, D) at this scale, starting at the last positions."""
        self.positions[:, -2:] = np.log(scale)
        held = np.array([pure_votes(position, self.prior, self.task.n_columns) for position in self.positions])
        held[:, -2:] = True
        n = self.task.n_seen
        least = MEMORY * TOLERANCE * n
        width = widths(self.positions[0], self.prior, self.task.n_columns, n)

        def look(position: Array) -> tuple[Array, Array]:
            for each, some in zip(self.trajectories, self.groups, strict=True):
                each.start_look(position[some])
            value, gradient = map(np.concatenate, zip(*(each.found() for each in self.trajectories), strict=True))
            gradient += self.tilts
            gradient[held] = 0.0
            return value + (self.tilts * position).sum(axis=1), gradient

        self.positions, _ = climb_together(look, self.positions, width**2 / n, self.max_iter, least, self.up)
        return self.positions


def climb_at_once(task: Task) -> bool:
    """True if climbers share passes: over rows of classes on the GPU of this process."""
    return task.on_gpu and not task.is_remote and task.seen.codes is not None


def make_climbers(
    task: Task,
    prior: Prior,
    seeds: Sequence[np.random.SeedSequence],
    max_iter: int,
    up: Up,
    rows: Gradient | None = None,
) -> Climber | ClimbersTogether:
    """Return the climbers of these seeds; there is only one unless they share passes.

    `rows` are the prepared rows of the task, if there are any.
    """
    if climb_at_once(task):
        shared = cast(CupyDirections, rows or task.prepared(task.precision))
        return ClimbersTogether(task, prior, seeds, max_iter, up, shared)
    (seed,) = seeds
    return Climber(task, prior, seed, max_iter, up)
