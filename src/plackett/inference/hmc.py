"""Hamiltonian Monte Carlo with trajectories of random length, on any density.

During tuning, dual averaging adapts the step to an acceptance rate of 0.8 (Hoffman & Gelman 2014), and the diagonal of
the inverse mass is the variance of each window of iterations in turn. On request it is instead the root of the variance
over the mean square of the gradient, which equals the variance for a normal density. A coordinate that is wide in one
region and narrow in another, such as a weight that may be active or not, then moves by an intermediate step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from plackett.compute.compiled import NOTHING, REAL, REALS, RNG, TABLE, TRUTH, WHOLES, apart, record
from plackett.model.race import Array

INVERSE_MASS, MEAN, SQUARES, SLOPES = range(4)  # rows of Walk.variance
STEP, MEAN_STEP, ANCHOR, ERROR, COUNT, DONE, SEEN, BELIEF, NUMBERS = range(9)
ACCEPTANCE, GAIN, DELAY, DECAY = 0.8, 0.05, 10.0, 0.75
ASSUMED, DOUBTED = 0.1, 5.0  # default prior variance, and the number of draws it counts for
FIRST_STEP = 0.2
SMOOTH = 1e-3  # added to mean squared slopes, so that none is zero
TOO_FAR = 1000.0  # a loss of log-density after which a trajectory is given up


class Walk(NamedTuple):
    """State of a chain and its adaptation."""

    position: Array  # (D,)
    variance: Array  # (3 or 4, D): inverse mass; mean and sum of squares of the window, and of squared slopes
    numbers: Array  # ln of the step and of its mean; dual averaging's anchor, error, count; iterations; window's count


class Flight(NamedTuple):
    """Scratch of a trajectory."""

    momentum: Array  # (D,)
    gradient: Array
    old: Array  # start of the trajectory
    old_gradient: Array


WALK, FLIGHT = record(Walk, REALS, TABLE, REALS), record(Flight, REALS, REALS, REALS, REALS)


def make_flight(size: int) -> Flight:
    """Allocate scratch for one chain."""
    return Flight(*np.empty((4, size)))


def begin(position: Array, belief: float = ASSUMED, by_slopes: bool = False) -> Walk:
    """Initialise a chain with the prior variance of its coordinates; `by_slopes` selects the rule with gradients."""
    variance = np.zeros((4 if by_slopes else 3, len(position)))
    variance[INVERSE_MASS] = belief
    numbers = np.zeros(NUMBERS)
    numbers[BELIEF] = belief
    numbers[[STEP, MEAN_STEP, ANCHOR]] = np.log(FIRST_STEP)
    return Walk(position, variance, numbers)


def windows(tune: int) -> npt.NDArray[np.int64]:
    """Return iterations that end a window of mass adaptation; windows double, and a last tenth adapts the step."""
    ends, end, width = [], 0, max(10, tune // 8)
    while end < tune - tune // 10:
        end += width
        width *= 2
        if end + width > tune - tune // 10:
            end = tune - tune // 10
        ends.append(end)
    return np.array(ends, dtype=np.int64)


@apart(NOTHING(WALK, REALS, REAL, WHOLES))
def adapt(walk, gradient, accepted, ends):
    """Do one step of dual averaging and of the running variances; renew the mass at the end of a window."""
    numbers, q, variance = walk.numbers, walk.position, walk.variance
    by_slopes = len(variance) > SLOPES
    numbers[COUNT] += 1
    weight = 1 / (numbers[COUNT] + DELAY)
    numbers[ERROR] += weight * (ACCEPTANCE - accepted - numbers[ERROR])
    numbers[STEP] = numbers[ANCHOR] - np.sqrt(numbers[COUNT]) / GAIN * numbers[ERROR]
    numbers[MEAN_STEP] += numbers[COUNT] ** -DECAY * (numbers[STEP] - numbers[MEAN_STEP])
    numbers[DONE] += 1
    numbers[SEEN] += 1
    n = numbers[SEEN]
    for i in range(len(q)):
        change = q[i] - variance[MEAN, i]
        variance[MEAN, i] += change / n
        variance[SQUARES, i] += change * (q[i] - variance[MEAN, i])
        if by_slopes:
            variance[SLOPES, i] += gradient[i] * gradient[i]
    for end in ends:
        if numbers[DONE] == end:
            for i in range(len(q)):
                if by_slopes:
                    precision = variance[SLOPES, i] / n + SMOOTH
                    spread = (variance[SQUARES, i] + DOUBTED / precision) / (n - 1 + DOUBTED)
                    variance[INVERSE_MASS, i], variance[SLOPES, i] = np.sqrt(spread / precision), 0.0
                else:
                    variance[INVERSE_MASS, i] = (variance[SQUARES, i] + DOUBTED * numbers[BELIEF]) / (n - 1 + DOUBTED)
                variance[MEAN, i], variance[SQUARES, i] = 0.0, 0.0
            numbers[SEEN], numbers[COUNT], numbers[ERROR] = 0.0, 0.0, 0.0
            numbers[STEP] = numbers[MEAN_STEP]
            numbers[ANCHOR] = numbers[MEAN_STEP] + np.log(2.0)


@apart(REAL(WALK, TRUTH))
def step_of(walk, tuning):
    """Return the step of a trajectory: the current one during tuning, then the mean."""
    return np.exp(walk.numbers[STEP] if tuning else walk.numbers[MEAN_STEP])


@apart(REAL(WALK, FLIGHT, REAL, RNG))
def launch(walk, flight, value, rng):
    """Draw a momentum and store the position; return the energy there."""
    q, inverse_mass, energy = walk.position, walk.variance[INVERSE_MASS], -value
    for i in range(len(q)):
        flight.old[i], flight.old_gradient[i] = q[i], flight.gradient[i]
        z = rng.standard_normal()
        flight.momentum[i] = z / np.sqrt(inverse_mass[i])
        energy += 0.5 * z * z
    return energy


@apart(NOTHING(WALK, FLIGHT, REAL))
def leap(walk, flight, step):
    """First half-step of the momentum, then a full step of the position."""
    q, p, inverse_mass = walk.position, flight.momentum, walk.variance[INVERSE_MASS]
    for i in range(len(q)):
        p[i] += 0.5 * step * flight.gradient[i]
        q[i] += step * inverse_mass[i] * p[i]


@apart(NOTHING(FLIGHT, REAL))
def push(flight, step):
    """Second half-step of the momentum."""
    for i in range(len(flight.momentum)):
        flight.momentum[i] += 0.5 * step * flight.gradient[i]


@apart(TRUTH(WALK, FLIGHT, REAL, REAL, RNG, WHOLES, TRUTH))
def land(walk, flight, energy, value, rng, ends, tuning):
    """Accept the end of the trajectory, or return to its start."""
    q, p, inverse_mass = walk.position, flight.momentum, walk.variance[INVERSE_MASS]
    energy += value
    for i in range(len(q)):
        energy -= 0.5 * p[i] * p[i] * inverse_mass[i]
    accepted = np.exp(min(energy, 0.0)) if energy > -TOO_FAR else 0.0
    stays = rng.random() < accepted
    if not stays:
        for i in range(len(q)):
            q[i], flight.gradient[i] = flight.old[i], flight.old_gradient[i]
    if tuning:
        adapt(walk, flight.gradient, accepted, ends)
    return stays


def walk_on(
    density: Callable[[Array, Array], float],
    walk: Walk,
    rng: np.random.Generator,
    ends: npt.NDArray[np.int64],
    longest: int,
    tuning: bool,
    draws: Array,
    values: Array,
) -> None:
    """Run as many iterations as `draws` (n, D) has rows; `values` (n,) receives their log-densities.

    `density` writes the gradient at a position and returns the log-density. Each trajectory has up to `longest` steps.
    """
    flight = make_flight(len(walk.position))
    value = density(walk.position, flight.gradient)
    for t in range(len(draws)):
        step, old_value = step_of(walk, tuning), value
        energy = launch(walk, flight, value, rng)
        for _ in range(1 + int(rng.random() * longest)):
            leap(walk, flight, step)
            value = density(walk.position, flight.gradient)
            if not value > old_value - TOO_FAR:
                break
            push(flight, step)
        if not land(walk, flight, energy, value, rng, ends, tuning):
            value = old_value
        values[t], draws[t] = value, walk.position
