"""Parameters of a response, such as the width of a tie: slice sampling and maximisation given the weights.

Each parameter moves separately along its unconstrained coordinate. The module knows neither responses nor the prior of
the weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize_scalar

from plackett.engines.base import Rows
from plackett.model.race import Array, Weights
from plackett.responses.base import Parameter

WIDTH, STEPS = 0.5, 20  # initial interval of a slice, and the limit of its extensions
REACH = 12.0  # half-width of the search interval of a coordinate


def dispersed(parameters: tuple[Parameter, ...], rng: np.random.Generator) -> Array:
    """Draw starting values of a chain from the prior."""
    return np.array([each.draw(rng) for each in parameters])


def draw_parameters(rng: np.random.Generator, rows: Rows, weights: Weights, values: Array) -> None:
    """Do one slice-sampling step (Neal 2003) of each parameter given the weights, in place."""
    for i, each in enumerate(rows.parameters):

        def log_density(free: float, i: int = i) -> float:
            return _value_at(rows, weights, values, i, free) + rows.parameters[i].log_prior(free)

        values[i] = each.bound(_slice_step(rng, log_density, each.free(values[i])))


def _slice_step(rng: np.random.Generator, log_density: Callable[[float], float], x: float) -> float:
    """Step out from x, then shrink towards it until a point lies in the slice."""
    level = log_density(x) - rng.standard_exponential()
    low = x - WIDTH * rng.random()
    high = low + WIDTH
    left = int(STEPS * rng.random())
    for _ in range(left):
        if log_density(low) <= level:
            break
        low -= WIDTH
    for _ in range(STEPS - 1 - left):
        if log_density(high) <= level:
            break
        high += WIDTH
    while True:
        new = rng.uniform(low, high)
        if log_density(new) > level:
            return new
        low, high = (new, high) if new < x else (low, new)


def maximise_parameters(rows: Rows, weights: Weights) -> Array:
    """Maximise the likelihood given the weights, one parameter after the other; return the values."""
    values = rows.values_of_parameters.copy()
    for i, each in enumerate(rows.parameters):
        at = each.free(values[i])
        found = minimize_scalar(
            lambda free, i=i: -_value_at(rows, weights, values, i, free),
            bounds=(at - REACH, at + REACH),
            method="bounded",
            options={"xatol": 1e-12},
        )
        values[i] = each.bound(found.x)
    return values


def _value_at(rows: Rows, weights: Weights, values: Array, i: int, free: float) -> float:
    """Return the log-likelihood with another value of the i-th parameter."""
    moved = values.copy()
    moved[i] = rows.parameters[i].bound(free)
    if not math.isfinite(moved[i]) or moved[i] <= rows.parameters[i].lower:
        return -math.inf
    return rows.at(moved).value(weights)
