"""Hamiltonian Monte Carlo with trajectories of random length, compiled.

While tuning, the step follows an acceptance of 0.8 by dual averaging (Hoffman & Gelman 2014), and the diagonal of the
inverse mass is the variance of each window of iterations in turn.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from plackett.compute.compiled import inner, jit
from plackett.directions.prior import log_density
from plackett.model.race import Array

INVERSE_MASS, MEAN, SQUARES = range(3)  # rows of Walk.variance
STEP, MEAN_STEP, ANCHOR, ERROR, COUNT, DONE, SEEN, NUMBERS = range(8)
ACCEPTANCE, GAIN, DELAY, DECAY = 0.8, 0.05, 10.0, 0.75
ASSUMED, DOUBTED = 0.1, 5.0  # the variance assumed at the start, and the draws it counts for
FIRST_STEP = 0.2


class Walk(NamedTuple):
    """Where a chain stands and what it has adapted."""

    position: Array  # (D,)
    variance: Array  # (3, D): inverse mass; mean and sum of squares of the window
    numbers: Array  # ln of the step and of its mean; anchor, error and count of dual averaging; iterations; window's


def begin(position: Array) -> Walk:
    """A chain before its first iteration."""
    variance = np.zeros((3, len(position)))
    variance[0] = ASSUMED
    numbers = np.zeros(NUMBERS)
    numbers[[STEP, MEAN_STEP, ANCHOR]] = np.log(FIRST_STEP)
    return Walk(position, variance, numbers)


def windows(tune: int) -> npt.NDArray[np.int64]:
    """Iterations at which the mass is renewed: each window twice the last, and a tenth left for the step."""
    ends, end, width = [], 0, max(10, tune // 8)
    while end < tune - tune // 10:
        end += width
        width *= 2
        if end + width > tune - tune // 10:
            end = tune - tune // 10
        ends.append(end)
    return np.array(ends, dtype=np.int64)


@inner
def adapt(walk, accepted, ends):
    """One step of dual averaging and of the running variances; a new mass where a window ends."""
    numbers, q, variance = walk.numbers, walk.position, walk.variance
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
    for end in ends:
        if numbers[DONE] == end:
            for i in range(len(q)):
                variance[INVERSE_MASS, i] = (variance[SQUARES, i] + DOUBTED * ASSUMED) / (n - 1 + DOUBTED)
                variance[MEAN, i], variance[SQUARES, i] = 0.0, 0.0
            numbers[SEEN], numbers[COUNT], numbers[ERROR] = 0.0, 0.0, 0.0
            numbers[STEP] = numbers[MEAN_STEP]
            numbers[ANCHOR] = numbers[MEAN_STEP] + np.log(2.0)


@jit
def advance(walk, rng, target, ends, longest, tuning, draws, values):
    """So many iterations as `draws` (n, D) has room for; `values` (n,) gets the log-density of each."""
    q, numbers, inverse_mass = walk.position, walk.numbers, walk.variance[INVERSE_MASS]
    D = len(q)
    gradient, p = np.empty(D), np.empty(D)
    old, old_gradient = np.empty(D), np.empty(D)
    value = log_density(q, gradient, target)
    for t in range(len(draws)):
        step = np.exp(numbers[STEP] if tuning else numbers[MEAN_STEP])
        old_value, energy = value, -value
        for i in range(D):
            old[i], old_gradient[i] = q[i], gradient[i]
            z = rng.standard_normal()
            p[i] = z / np.sqrt(inverse_mass[i])
            energy += 0.5 * z * z
        for _ in range(1 + int(rng.random() * longest)):
            for i in range(D):
                p[i] += 0.5 * step * gradient[i]
                q[i] += step * inverse_mass[i] * p[i]
            value = log_density(q, gradient, target)
            if not value > old_value - 1000.0:
                break
            for i in range(D):
                p[i] += 0.5 * step * gradient[i]
        energy += value
        for i in range(D):
            energy -= 0.5 * p[i] * p[i] * inverse_mass[i]
        accepted = np.exp(min(energy, 0.0)) if energy > -1000.0 else 0.0
        if not rng.random() < accepted:
            value = old_value
            for i in range(D):
                q[i], gradient[i] = old[i], old_gradient[i]
        if tuning:
            adapt(walk, accepted, ends)
        values[t] = value
        for i in range(D):
            draws[t, i] = q[i]
