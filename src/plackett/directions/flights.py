"""Trajectories of all chains on the GPU: nothing returns to the processor before the last step of each.

The processor draws random numbers and handles step size, mass and acceptance of a chain as in `plackett.inference.hmc`.
Chains that run together have trajectories of equal length.

For many rows of classes, chains begin at modes and walk in the coordinates of `plackett.directions.centred`, with a
mass from the variances of all chains. For situations they begin, and move their scales, as on the processor.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from plackett.directions.centred import centred, log_spread, parts_of, uncentred
from plackett.directions.climbs import climb_together
from plackett.directions.prior import Prior, n_owners, size
from plackett.engines.cupy_directions import TOGETHER, CupyDirections
from plackett.engines.device import gpu, kernel
from plackett.inference.hmc import (
    BELIEF,
    DONE,
    DOUBTED,
    INVERSE_MASS,
    TOO_FAR,
    Walk,
    begin,
    land,
    launch,
    make_flight,
    step_of,
)
from plackett.model.race import Array

ARRIVED, LEAP, LOOK = 1, 2, 4  # steps between two passes, named as in ``flight.cu``
THREADS = 256
MANY = 50_000  # number of rows that determine β
PASSES, LEAST = 1500, 5.0  # of an optimisation: maximum of passes, and the smallest gain worth continuing for
POOR = 50.0  # gap of log-masses at which a mode is left: larger than the error of the estimate
VARIANCE, SCALES_VARIANCE = 30.0, 0.05  # initial guesses: of β and t for one row, and of the others
LEAST_VARIANCE = 0.01  # for one row, the limit of rounding


Renewal = Callable[[Array, np.random.Generator], None]  # updates a position between two trajectories


class Flown(Protocol):
    """Rows of classes or situations on the GPU."""

    flight: tuple[str, str]  # file and name of the kernel that runs between two passes
    n_rows: int  # number of rows or situations

    @property
    def n_columns(self) -> int:
        """Number of columns d."""
        ...

    def room(self, n_chains: int, n_groups: int, n_components: int) -> Any:
        """Allocate inputs and outputs of a pass."""
        ...

    def run(self, room: Any) -> None:
        """Start a pass without waiting for it."""
        ...

    def handed(self, room: Any) -> tuple[Any, ...]:
        """Return the kernel's arguments, apart from the prior."""
        ...


def are_many(rows: Flown) -> bool:
    """True if chains use the methods for many rows, which exist for classes only."""
    return isinstance(rows, CupyDirections) and rows.n_rows >= MANY


class Trajectories:
    """Positions, momenta and gradients of at most four chains, on the GPU."""

    def __init__(self, rows: Flown, prior: Prior, n_chains: int, many: bool = False):
        xp, (K, M), d = gpu(), prior.shape.shape, rows.n_columns
        self.rows, self.n_chains, self.D = rows, n_chains, size(prior, d)
        self.room = rows.room(n_chains, K, M)
        self.state = xp.zeros((n_chains, 4 * self.D + 4))
        self.prior = (
            *(np.int32(each) for each in (n_owners(prior), K, M, d)),
            xp.asarray(prior.owner.astype(np.int32)),
            xp.asarray(np.ascontiguousarray(prior.shape)),
            np.float64(prior.covariate_spread),
            xp.asarray(np.concatenate([prior.scale_centre, prior.scale_spread])),
            xp.empty((n_chains, M, d)),
            *rows.handed(self.room),
        )
        source, name = rows.flight
        self.between = kernel(name, ("block", "flight", source), CENTRED=int(many))

    def _go_on(self, flags: int) -> None:
        self.between((self.n_chains,), (THREADS,), (self.state, np.int32(self.D), np.int32(flags), *self.prior))

    def look(self, position: Array) -> tuple[Array, Array]:
        """Return log-densities (C,) and gradients (C, D) at positions (C, D)."""
        self.start_look(position)
        return self.found()

    def start_look(self, position: Array) -> None:
        """Start a pass at positions (C, D) without waiting for it."""
        nothing = np.zeros_like(position)
        self._put(position, nothing, nothing, nothing, np.zeros(len(position)), np.full(len(position), -np.inf))
        self._go_on(LOOK)
        self.rows.run(self.room)
        self._go_on(ARRIVED)

    def found(self) -> tuple[Array, Array]:
        """Return log-densities (C,) and gradients (C, D) of the last pass."""
        _, _, gradient, value = self._get()
        return value, gradient

    def fly(
        self, position: Array, momentum: Array, gradient: Array, inverse_mass: Array, step: Array, floor: Array, n: int
    ) -> tuple[Array, Array, Array, Array]:
        """Return the end of n leapfrog steps: positions, momenta, gradients (C, D) and log-densities (C,).

        A chain whose log-density falls to its floor stops.
        """
        self._put(position, momentum, gradient, inverse_mass, step, floor)
        self._go_on(LEAP)
        for i in range(n):
            self.rows.run(self.room)
            self._go_on(ARRIVED | LEAP if i + 1 < n else ARRIVED)
        return self._get()

    def _put(self, *parts: Array) -> None:
        *vectors, step, floor = parts
        numbers = np.column_stack([step, floor, np.zeros_like(step), np.ones_like(step)])
        self.state.set(np.concatenate([*vectors, numbers], axis=1))

    def _get(self) -> tuple[Array, Array, Array, Array]:
        state, D = self.state.get(), self.D
        return state[:, :D], state[:, D : 2 * D], state[:, 2 * D : 3 * D], state[:, 4 * D + 2]


def begin_at_modes(rows: CupyDirections, prior: Prior, positions: list[Array]) -> list[Walk]:
    """Start chains at the modes near these positions; those far below the best start at the best mode.

    Scales are fixed during optimisation, since along them the density of β has no useful mode. A chain is moved if its
    mode is lower than another by more than their widths can compensate.
    """
    D, d, n = len(positions[0]), rows.n_columns, rows.n_rows
    guess, found, values = np.full(D, SCALES_VARIANCE), [], []
    _, of_beta, of_weights, *_ = parts_of(guess, prior, d)
    of_beta[:] = of_weights[:] = VARIANCE / n
    for c in range(0, len(positions), TOGETHER):
        some = centred(np.array(positions[c : c + TOGETHER]), prior, d)
        trajectories = Trajectories(rows, prior, len(some), True)

        def look(position: Array, trajectories: Trajectories = trajectories) -> tuple[Array, Array]:
            value, gradient = trajectories.look(position)
            gradient[:, -d - 2 :] = 0.0
            return value, gradient

        reached, value = climb_together(look, some, guess, PASSES, LEAST)
        found += list(reached)
        values += list(value)
    best = int(np.argmax(values))
    walks = [begin(found[c if value > values[best] - D else best].copy(), 1 / n) for c, value in enumerate(values)]
    for walk in walks:
        walk.variance[INVERSE_MASS] = guess
    return walks


def renew(walks: list[Walk], values: Array, n_seen: int, n_rows: int) -> None:
    """At the end of a window of n_seen draws, move chains out of modes with negligible mass, and pool variances.

    The mass of a mode is about e^value Π_i (variance of coordinate i)^½, where `values` (C,) are the recent mean
    log-densities; variances are about the mean of each chain.
    """
    believed = DOUBTED * walks[0].numbers[BELIEF]  # added by `plackett.inference.hmc.adapt`
    squares = np.array([walk.variance[INVERSE_MASS] * (n_seen - 1 + DOUBTED) - believed for walk in walks])
    log_mass = values + 0.5 * np.log(np.maximum(squares / (n_seen - 1), LEAST_VARIANCE / n_rows)).sum(axis=1)
    best = int(np.argmax(log_mass))
    poor = log_mass < log_mass[best] - POOR
    shared = (squares[~poor].sum(axis=0) + believed) / ((~poor).sum() * (n_seen - 1) + DOUBTED)
    for walk, left in zip(walks, poor, strict=True):
        walk.position[:] = walks[best].position if left else walk.position
        walk.variance[INVERSE_MASS] = shared


def walk_together(
    rows: Flown,
    prior: Prior,
    walks: list[Walk],
    generators: list[np.random.Generator],
    ends: npt.NDArray[np.int64],
    longest: int,
    tuning: bool,
    draws: Array,
    values: Array,
    many: bool = False,
    renew_position: Renewal | None = None,
) -> None:
    """Run `plackett.inference.hmc.walk_on` for several chains; fills `draws` (chain, n, D) and `values` (chain, n).

    `many` (classes only) selects the coordinates for many rows. `renew_position` is called before each trajectory.
    """
    n, at = draws.shape[1], int(walks[0].numbers[DONE])
    windows = {int(end) - at: int(width) for end, width in zip(ends, np.diff(ends, prepend=0), strict=True)}
    stops = sorted({n, *(end for end in windows if tuning and many and 0 < end < n)})
    for first, last in zip([0, *stops], stops, strict=False):
        for c in range(0, len(walks), TOGETHER):
            some = slice(c, c + TOGETHER)
            here = draws[some, first:last], values[some, first:last]
            _walk(Trajectories(rows, prior, len(walks[some]), many), walks[some], generators[some], ends, longest,
                  tuning, *here, renew_position)  # fmt: skip
        if tuning and many and last in windows:
            renew(walks, values[:, first:last].mean(axis=1), windows[last], rows.n_rows)
    if many:
        values += log_spread(draws, prior, rows.n_columns)
        draws[:] = uncentred(draws, prior, rows.n_columns)


def _walk(
    trajectories: Trajectories,
    walks: list[Walk],
    generators: list[np.random.Generator],
    ends: npt.NDArray[np.int64],
    longest: int,
    tuning: bool,
    draws: Array,
    values: Array,
    renew_position: Renewal | None = None,
) -> None:
    flights = [make_flight(trajectories.D) for _ in walks]
    for t in range(draws.shape[1]):
        if renew_position is not None:
            for walk, rng in zip(walks, generators, strict=True):
                renew_position(walk.position, rng)
        if t == 0 or renew_position is not None:
            value, gradient = trajectories.look(np.array([walk.position for walk in walks]))
            for flight, found in zip(flights, gradient, strict=True):
                flight.gradient[:] = found
        step = np.array([step_of(walk, tuning) for walk in walks])
        energy = [launch(*each) for each in zip(walks, flights, value, generators, strict=True)]
        n = 1 + int(generators[0].random() * longest)
        reached = trajectories.fly(
            np.array([walk.position for walk in walks]),
            np.array([flight.momentum for flight in flights]),
            np.array([flight.gradient for flight in flights]),
            np.array([walk.variance[INVERSE_MASS] for walk in walks]),
            step,
            value - TOO_FAR,
            n,
        )
        for c, (walk, flight) in enumerate(zip(walks, flights, strict=True)):
            walk.position[:], flight.momentum[:], flight.gradient[:], new_value = (each[c] for each in reached)
            if land(walk, flight, energy[c], new_value, generators[c], ends, tuning):
                value[c] = new_value
            values[c, t], draws[c, t] = value[c], walk.position
