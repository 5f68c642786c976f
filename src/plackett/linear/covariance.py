"""Covariance of maximum-likelihood coefficients: classical, robust, and robust by person.

With the information H = −∂²V and the scores s_t = ∂V_t at the maximum: H⁻¹; the sandwich H⁻¹ (Σ_t s_t s_tᵀ/c_t) H⁻¹,
where a situation that counts c_t times is c_t situations; and the sandwich of sums over the situations of each person.
There is no correction for small samples, as in Biogeme, and one of n/(n − 1) persons, as in Stata and sandwich of R.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from plackett.linear.likelihood import LinearSituations, scores_of
from plackett.linear.newton import Maximum, solved
from plackett.model.race import Array


def classical(best: Maximum) -> Array:
    """H⁻¹ (d, d)."""
    inverse = solved(best.curvature, np.eye(len(best.beta)))
    return (inverse + inverse.T) / 2


def robust(packed: LinearSituations, best: Maximum) -> Array:
    """Return H⁻¹ (Σ_t s_t s_tᵀ) H⁻¹ over situations."""
    scores, counts = scores_of(packed, best.beta)[1], packed.outcomes.counts
    scores = scores / np.sqrt(np.where(counts > 0, counts, 1.0))[:, None]
    return _sandwich(best, scores)


def by_person(packed: LinearSituations, best: Maximum, person: npt.NDArray[np.intp]) -> Array:
    """Return the sandwich with sums of scores over the situations of each person."""
    scores = scores_of(packed, best.beta)[1]
    n = int(person.max()) + 1
    sums = np.zeros((n, scores.shape[1]))
    np.add.at(sums, person, scores)
    return _sandwich(best, sums) * n / (n - 1)


def _sandwich(best: Maximum, scores: Array) -> Array:
    """H⁻¹ SᵀS H⁻¹."""
    half = solved(best.curvature, np.ascontiguousarray(scores.T))
    found: Array = half @ half.T
    return found
