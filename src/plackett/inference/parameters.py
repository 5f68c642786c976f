"""Parameters of a response, such as the width of a tie: slice sampling and maximisation given the weights.

Each parameter moves separately along its unconstrained coordinate. The module knows neither responses nor the prior of
the weights.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize_scalar

from plackett.engines.base import Likelihood, Rows
from plackett.inference.worth_mode import ascent_step
from plackett.model.race import Array, Weights
from plackett.responses.base import Parameter

WIDTH, STEPS = 0.5, 20  # initial interval of a slice, and the limit of its extensions
REACH = 12.0  # half-width of the search interval of a coordinate
NEWTON, HALVINGS, PRECISE = 50, 30, 1e-10  # steps, halvings of one, and the length of the last
LOWEST = -690.0  # smallest log-weight, against the largest


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
    """Maximise the likelihood given the weights; return the values.

    Coefficients go by Newton's method, with all other parameters; without coefficients one goes after the other, unless
    Newton's method would move none of them.
    """
    values, likelihood = rows.values_of_parameters.copy(), rows.walk()
    if likelihood is not None:
        x = np.maximum(weights.log_own[:, 0], weights.log_own.max() + LOWEST)
        free = np.array([each.free(value) for each, value in zip(rows.parameters, values, strict=True)])
        if not all(each.bounded for each in rows.parameters):
            return _by_newton(likelihood, x, free)
        step = ascent_step(likelihood.curvature_of_parameters(x, free), likelihood.slopes(x, free)[2])
        if np.abs(step).max() < PRECISE:
            return values
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


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # of steps that are halved
def _by_newton(likelihood: Likelihood, x: Array, free: Array) -> Array:
    """Climb in the unconstrained parameters by Newton's method with step halving; return the values."""
    value, _, slope = likelihood.slopes(x, free)
    for _ in range(NEWTON):
        step = ascent_step(likelihood.curvature_of_parameters(x, free), slope)
        for _ in range(HALVINGS):
            found, _, moved = likelihood.slopes(x, free + step)
            if found > value:
                break
            step = step / 2.0
        else:
            break
        free, value, slope = free + step, found, moved
        if np.abs(step).max() < PRECISE:
            break
    return np.array([each.bound(u) for each, u in zip(likelihood.parameters, free, strict=True)])


def _value_at(rows: Rows, weights: Weights, values: Array, i: int, free: float) -> float:
    """Return the log-likelihood with another value of the i-th parameter."""
    moved = values.copy()
    moved[i] = rows.parameters[i].bound(free)
    if not math.isfinite(moved[i]) or moved[i] <= rows.parameters[i].lower:
        return -math.inf
    return rows.at(moved).value(weights)
