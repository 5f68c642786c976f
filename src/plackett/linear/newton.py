"""Maximum likelihood of conditional logit, or the mode under a normal prior, by damped Newton steps.

The log-likelihood is concave: each step goes along the inverse information and is halved until the objective rises.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from plackett.linear.likelihood import Evaluation, LinearSituations, evaluate
from plackett.model.race import Array

GAIN = 1e-9  # expected of a further step, in units of the log-likelihood, below which the step is the last
HALVINGS = 40
ENOUGH = 1e-4  # of the gain that the slope promises
RIDGE = 1e-12  # of the diagonal, where the information is singular to rounding


class Maximum(NamedTuple):
    """Final point of the maximisation.

    Attributes
    ----------
    beta : (d,) array
        The point.
    found : Evaluation
        Log-likelihood, its gradient and information there, without the prior.
    precision : float
        Of the prior of each coefficient.
    trace : (n,) array
        The objective after each step.
    converged : bool
        Whether the last step promised next to nothing.
    """

    beta: Array
    found: Evaluation
    precision: float
    trace: Array
    converged: bool

    @property
    def curvature(self) -> Array:
        """Negative second derivatives of the objective."""
        found: Array = self.found.information + self.precision * np.eye(len(self.beta))
        return found


def solved(matrix: Array, right: Array) -> Array:
    """Return matrix⁻¹ right for a positive semi-definite matrix, with a ridge if it is numerically singular."""
    ridge = RIDGE
    while True:
        try:
            found: Array = cho_solve(cho_factor(matrix), right)
        except np.linalg.LinAlgError:
            matrix = matrix + ridge * np.diag(np.diag(matrix) + np.diag(matrix).max() + np.finfo(float).tiny)
            ridge *= 100
        else:
            return found


def maximise(
    packed: LinearSituations, precision: float = 0.0, max_iter: int = 100, at_zero: Evaluation | None = None
) -> Maximum:
    """Maximise from β = 0, where the evaluation may be given.

    Examples
    --------
    >>> from plackett.linear.likelihood import pack_linear
    >>> from plackett.responses.base import Outcomes
    >>> X = [[1.0], [0.0], [1.0], [0.0], [1.0], [0.0], [0.0], [1.0]]  # chosen first: three of four times x = 1
    >>> maximise(pack_linear(X, Outcomes.choices([2, 2, 2, 2]))).beta.round(6)  # ln 3
    array([1.098612])
    """

    def value_of(found: Evaluation, beta: Array) -> float:
        return found.value - 0.5 * precision * float(beta @ beta)

    beta = np.zeros(packed.X.shape[1])
    found = evaluate(packed, beta) if at_zero is None else at_zero
    value, trace, converged = value_of(found, beta), [], len(beta) == 0
    for _ in range(max_iter if len(beta) else 0):
        slope = found.gradient - precision * beta
        step = solved(found.information + precision * np.eye(len(beta)), slope)
        gain, size = float(slope @ step), 1.0
        for _ in range(HALVINGS):
            new = beta + size * step
            there = evaluate(packed, new)
            risen = value_of(there, new) - value
            if risen >= ENOUGH * size * gain or gain < GAIN:
                break
            size /= 2
        if risen >= 0 or gain < GAIN:
            beta, found, value = new, there, value + risen
        trace.append(value)
        if gain < GAIN:
            converged = True
            break
    return Maximum(beta, found, precision, np.array(trace or [value]), converged)
