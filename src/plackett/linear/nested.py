"""Nested logit with utilities x·β: its log-likelihood in (β, α), its maximum and the information there.

The gradient is in closed form, second derivatives are central differences of it. Knows no names of columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

from plackett.linear.covariance import classical
from plackett.linear.likelihood import LinearSituations
from plackett.linear.newton import Maximum, solved
from plackett.model.race import Array
from plackett.responses.base import Whole
from plackett.responses.nests import nested_slopes

LEAST = 0.01  # dissimilarity at the least
STARTS = (0.8, 0.4)  # dissimilarities from which the likelihood is climbed
STEP = 1e-4  # of central differences, in standard errors of β and units of α
NEWTON, ENOUGH, SHORTEST = 20, 1e-15, 1e-4  # steps at the end; the gain, relative, and the part of a step too small
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
    """Maximum of the likelihood, or of the posterior density under a normal prior of β.

    Attributes
    ----------
    position : (d + G,) array
        β, then α.
    information : (d + G, d + G) array
        −∂² of the objective in β and α.
    precision : float
        Of the prior of each coefficient.
    bounded : (G,) array
        Whether a dissimilarity is at its bound of 1, beyond which the likelihood rises further.
    trace : (n,) array
        The objective of each iteration.
    converged : bool
        Whether the climb ended by itself.
    """

    position: Array
    information: Array
    precision: float
    bounded: npt.NDArray[np.bool_]
    trace: Array
    converged: bool

    @property
    def free(self) -> npt.NDArray[np.bool_]:
        """True for each of β and α that is not at a bound."""
        return np.append(np.full(len(self.position) - len(self.bounded), True), ~self.bounded)


def nested_values(packed: NestedSituations, position: Array) -> tuple[Array, Array, Array]:
    """Return V of each situation without its count, and its slopes in u = x·β (entries,) and in α (T, G)."""
    d, start = packed.linear.X.shape[1], packed.linear.outcomes.start
    utility = packed.linear.X @ position[:d]
    values, to_rates = np.empty(len(start) - 1), np.empty(len(utility))
    to_alpha = np.empty((len(values), packed.n_nests))
    alpha = np.ascontiguousarray(position[d:])
    nested_slopes(start, packed.nest, utility, alpha, values, to_rates, to_alpha)
    return values, to_rates, to_alpha


def nested_gradient(packed: NestedSituations, position: Array) -> tuple[float, Array]:
    """Return the log-likelihood and its gradient in (β, α)."""
    values, to_rates, to_alpha = nested_values(packed, position)
    counts = packed.linear.outcomes.counts
    by_entry = np.repeat(counts, np.diff(packed.linear.outcomes.start)) * to_rates
    return float(counts @ values), np.concatenate([by_entry @ packed.linear.X, counts @ to_alpha])


def nested_scores(packed: NestedSituations, position: Array) -> tuple[Array, Array]:
    """Return V_t (T,) and its gradient (T, d + G) of each situation, multiplied by its count."""
    values, to_rates, to_alpha = nested_values(packed, position)
    counts, start = packed.linear.outcomes.counts, packed.linear.outcomes.start
    to_beta = np.add.reduceat(to_rates[:, None] * packed.linear.X, start[:-1])
    return counts * values, counts[:, None] * np.hstack([to_beta, to_alpha])


def curvature(gradient: Curve, x: Array, step: float) -> Array:
    """Return symmetric second derivatives by central differences of a gradient."""
    found = np.array([(gradient(x + h) - gradient(x - h)) / (2 * step) for h in step * np.eye(len(x))])
    return (found + found.T) / 2


def nested_maximum(packed: NestedSituations, best: Maximum, max_iter: int = 500) -> NestedMaximum:
    """Maximise the objective over β and 0 < α ≤ 1, starting at the maximum of conditional logit.

    β is climbed in coordinates in which conditional logit has the information 1, by L-BFGS from several α, and then by
    Newton's method; a dissimilarity that would exceed 1 is held there.
    """
    d, G, precision = len(best.beta), packed.n_nests, best.precision
    back = np.linalg.cholesky(classical(best))  # β = β_0 + back z

    def place(x: Array) -> Array:
        return np.append(best.beta + back @ x[:d], x[d:])

    def objective(x: Array) -> tuple[float, Array]:
        position = place(x)
        value, gradient = nested_gradient(packed, position)
        value -= 0.5 * precision * float(position[:d] @ position[:d])
        return -value, -np.append((gradient[:d] - precision * position[:d]) @ back, gradient[d:])

    def climb(start: float) -> tuple[float, Array, list[float], bool]:
        steps = list[float]()
        found = minimize(
            objective,
            np.append(np.zeros(d), np.full(G, start)),
            jac=True,
            method="L-BFGS-B",
            bounds=[(None, None)] * d + [(LEAST, 1.0)] * G,
            callback=lambda intermediate_result: steps.append(-float(intermediate_result.fun)),
            options={"maxiter": max_iter, "maxfun": 2 * max_iter, "ftol": 1e-13, "gtol": 1e-5, "maxcor": 20},
        )
        return -float(found.fun), found.x, steps, found.nit < max_iter

    value, x, trace, converged = max(map(climb, STARTS), key=lambda found: found[0])
    bend = np.eye(d + G)
    for _ in range(NEWTON):
        slope = -objective(x)[1]
        bounded = (x[d:] >= 1.0) & (slope[d:] >= 0.0)
        free = np.append(np.full(d, True), ~bounded)
        bend = curvature(lambda y: objective(y)[1], x, STEP)
        ahead, gain, size = np.zeros(d + G), 0.0, 1.0
        ahead[free] = solved(bend[np.ix_(free, free)], slope[free])
        while size > SHORTEST and gain <= 0.0:
            new = x + size * ahead
            new[d:] = np.clip(new[d:], LEAST, 1.0)
            gain, size = -objective(new)[0] - value, size / 4
        if gain <= ENOUGH * abs(value):
            break
        x, value = new, value + gain
        trace.append(value)
    forth = np.eye(d + G)
    forth[:d, :d] = np.linalg.inv(back)
    return NestedMaximum(place(x), forth.T @ bend @ forth, precision, bounded, np.array(trace), converged)


def nested_covariance(best: NestedMaximum, scores: Array | None = None) -> Array:
    """Return the inverse information in (β, α), or the sandwich with squares of these scores (units, d + G).

    A dissimilarity at its bound has no variance.
    """
    found, free = np.zeros_like(best.information), best.free
    inverse = solved(best.information[np.ix_(free, free)], np.eye(int(free.sum())))
    if scores is not None:
        half = inverse @ scores[:, free].T
        inverse = half @ half.T
    found[np.ix_(free, free)] = (inverse + inverse.T) / 2
    return found
