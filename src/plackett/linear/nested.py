"""Nested logit with utilities x·β: its log-likelihood in (β, α), its maximum and the information there.

The gradient is in closed form, second derivatives are central differences of it. Knows no names of columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular
from scipy.optimize import minimize

from plackett.linear.likelihood import LinearSituations, evaluate
from plackett.model.race import Array
from plackett.responses.base import Whole
from plackett.responses.nests import nested_slopes

LEAST = 0.01  # dissimilarity at the least
STARTS = (0.8, 0.4)  # dissimilarities from which the likelihood is climbed
STEP = 1e-4  # of central differences, in standard errors of β and units of ln α
NEWTON, ENOUGH = 20, 1e-12  # steps at the end, and the gain in log-likelihood that is too small for another
Curve = Callable[[Array], Array]  # a gradient


class NestedSituations(NamedTuple):
    """Choices with covariates of their entries, the chosen one first, and the nest of each entry.

    Attributes
    ----------
    linear : LinearSituations
        Covariates and outcomes.
    nest : (entries,) array
        From 0 to G − 1, and −1 for an alternative that stands alone.
    n_nests : int
        G.
    """

    linear: LinearSituations
    nest: Whole
    n_nests: int


class NestedMaximum(NamedTuple):
    """Where the likelihood is largest.

    Attributes
    ----------
    position : (d + G,) array
        β, then α.
    value : float
        The log-likelihood.
    information : (d + G, d + G) array
        −∂² of the log-likelihood in β and α.
    bounded : (G,) array
        Whether a dissimilarity is at the bound of 1, beyond which the likelihood rises further.
    trace : list
        The log-likelihood of each iteration.
    """

    position: Array
    value: float
    information: Array
    bounded: npt.NDArray[np.bool_]
    trace: list[float]


def nested_values(packed: NestedSituations, position: Array) -> tuple[Array, Array, Array]:
    """V of each situation once, and its slopes in u = x·β (entries,) and in α (T, G)."""
    d, start = packed.linear.X.shape[1], packed.linear.outcomes.start
    utility = packed.linear.X @ position[:d]
    values, to_rates = np.empty(len(start) - 1), np.empty(len(utility))
    to_alpha = np.empty((len(values), packed.n_nests))
    alpha = np.ascontiguousarray(position[d:])
    nested_slopes(start, packed.nest, utility, alpha, values, to_rates, to_alpha)
    return values, to_rates, to_alpha


def nested_gradient(packed: NestedSituations, position: Array) -> tuple[float, Array]:
    """The log-likelihood and its gradient in (β, α)."""
    values, to_rates, to_alpha = nested_values(packed, position)
    counts = packed.linear.outcomes.counts
    by_entry = np.repeat(counts, np.diff(packed.linear.outcomes.start)) * to_rates
    return float(counts @ values), np.concatenate([by_entry @ packed.linear.X, counts @ to_alpha])


def nested_scores(packed: NestedSituations, position: Array) -> tuple[Array, Array]:
    """V_t (T,) and its gradient (T, d + G) of each situation, as often as it counts."""
    values, to_rates, to_alpha = nested_values(packed, position)
    counts, start = packed.linear.outcomes.counts, packed.linear.outcomes.start
    to_beta = np.add.reduceat(to_rates[:, None] * packed.linear.X, start[:-1])
    return counts * values, counts[:, None] * np.hstack([to_beta, to_alpha])


def curvature(gradient: Curve, x: Array, scale: Array) -> Array:
    """Second derivatives by central differences of a gradient over so much of each coordinate, symmetric."""
    steps = np.diag(scale)
    found = np.array([(gradient(x + h) - gradient(x - h)) / (2 * size) for h, size in zip(steps, scale, strict=True)])
    return (found + found.T) / 2


def information_at(packed: NestedSituations, position: Array, errors: Array) -> Array:
    """−∂² of the log-likelihood in (β, α); `errors` are standard errors of β or the like, which set the steps."""
    d = packed.linear.X.shape[1]
    scale = STEP * np.append(errors, position[d:])
    return -curvature(lambda x: nested_gradient(packed, x)[1], position, scale)


def nested_maximum(packed: NestedSituations, beta: Array, max_iter: int = 500) -> NestedMaximum:
    """The largest likelihood over β and 0 < α ≤ 1, from the β of conditional logit.

    β is climbed in coordinates in which conditional logit has the information 1, by L-BFGS from several α, and then by
    Newton's method; a dissimilarity that would exceed 1 is held there.
    """
    d, G = len(beta), packed.n_nests
    root = np.linalg.cholesky(evaluate(packed.linear, beta).information)  # β = β_0 + root⁻ᵀ z
    back = solve_triangular(root, np.eye(d), lower=True, trans="T")

    def place(x: Array) -> Array:
        return np.append(beta + back @ x[:d], x[d:])

    def climbed(x: Array) -> tuple[float, Array]:
        value, gradient = nested_gradient(packed, place(x))
        return value, np.append(gradient[:d] @ back, gradient[d:])

    def objective(x: Array) -> tuple[float, Array]:
        value, gradient = climbed(x)
        return -value, -gradient

    found = []
    for start in STARTS:
        steps: list[float] = []
        best = minimize(
            objective,
            np.append(np.zeros(d), np.full(G, start)),
            jac=True,
            method="L-BFGS-B",
            bounds=[(None, None)] * d + [(LEAST, 1.0)] * G,
            callback=lambda intermediate_result, steps=steps: steps.append(-intermediate_result.fun),
            options={"maxiter": max_iter, "maxfun": 2 * max_iter, "ftol": 1e-13, "gtol": 1e-5, "maxcor": 20},
        )
        found.append((-best.fun, best.x, steps))
    value, x, trace = max(found, key=lambda each: each[0])
    scale = np.full(d + G, STEP)
    for _ in range(NEWTON):
        gradient = climbed(x)[1]
        bounded = (x[d:] >= 1.0) & (gradient[d:] >= 0.0)
        free = np.append(np.full(d, True), ~bounded)
        bend = -curvature(lambda y: climbed(y)[1], x, scale)[np.ix_(free, free)]
        ahead = np.zeros(d + G)
        ahead[free] = np.linalg.lstsq(bend, gradient[free], rcond=None)[0]
        gain, size = 0.0, 1.0
        while size > 1e-4 and gain <= 0.0:
            new = x + size * ahead
            new[d:] = np.clip(new[d:], LEAST, 1.0)
            gain, size = objective(x)[0] - objective(new)[0], size / 4
        if gain <= 0.0:
            break
        x, value = new, value + gain
        trace.append(value)
        if gain < ENOUGH * abs(value):
            break
    position, errors = place(x), np.sqrt((back**2).sum(axis=1))
    return NestedMaximum(position, value, information_at(packed, position, errors), bounded, trace)
