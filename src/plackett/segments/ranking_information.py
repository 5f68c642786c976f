"""Observed information of segments of rankers at the estimate of EM (Louis 1982), from passes over the rankings.

Coordinates are the log-worths x_c of each segment in turn and ln π_c − ln π_1. With the scores g_ic of the complete
data, I = E[complete information] − Σ_i Var_i(g_ic) under the membership probabilities, plus the curvature of the
log-prior.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import block_diag

from plackett.model.race import Array
from plackett.segments.em import LEAST
from plackett.segments.rankings import RankingsOfPersons

STEP = 1e-5  # of finite differences of slopes
MOST = 1500  # coordinates up to which there is a covariance
NUMBERS = 1 << 22  # of a block of persons


def observed_information(persons: RankingsOfPersons, log_worths: Array, log_shares: Array, member: Array) -> Array:
    """Return the information (Q, Q) of the mixture, Q = C K + C − 1.

    The sum of a segment's log-worths over √K, about which rankings say nothing, has that of a standard normal law.

    Parameters
    ----------
    persons : RankingsOfPersons
        Rankings, with the shape of the prior.
    log_worths : (C, K) array
        Log-worths of the segments.
    log_shares : (C,) array
        ln π.
    member : (N, C) array
        Membership probabilities of the persons.
    """
    (C, K), shares = log_worths.shape, np.exp(log_shares)
    weight = member * persons.counts[:, None]
    found = np.zeros((C * K + C - 1, C * K + C - 1))
    each = zip(log_worths, weight.T, strict=True)
    found[: C * K, : C * K] = block_diag(*(_of_segment(persons, *segment) for segment in each))
    found[C * K :, C * K :] = persons.counts.sum() * (np.diag(shares[1:]) - np.outer(shares[1:], shares[1:]))
    step, N = max(1, NUMBERS // len(found)), len(member)
    for some in (np.arange(first, min(first + step, N)) for first in range(0, N, step)):
        found -= _variance(persons.part(some), log_worths, shares, member[some])
    return (found + found.T) / 2


def _variance(persons: RankingsOfPersons, log_worths: Array, shares: Array, member: Array) -> Array:
    """Return Σ_i Var_i(g_ic) (Q, Q) of some persons."""
    C, K = log_worths.shape
    slopes, weight = [persons.slopes(logs) for logs in log_worths], member * persons.counts[:, None]
    mean = np.column_stack([*(member[:, [c]] * slopes[c] for c in range(C)), member[:, 1:] - shares[1:]])
    found: Array = -(mean.T @ (mean * persons.counts[:, None]))
    for c, of_persons in enumerate(slopes):
        own, marks = slice(c * K, (c + 1) * K), (np.arange(1, C) == c) - shares[1:]
        weighted = of_persons * weight[:, [c]]
        found[own, own] += of_persons.T @ weighted
        both = np.outer(weighted.sum(axis=0), marks)
        found[own, C * K :] += both
        found[C * K :, own] += both.T
        found[C * K :, C * K :] += weight[:, c].sum() * np.outer(marks, marks)
    return found


def _of_segment(persons: RankingsOfPersons, log_worths: Array, weight: Array) -> Array:
    """Return −∂² of Σ w_i V_i(x) + log-prior (K, K), from differences of slopes."""
    K, columns = len(log_worths), []
    for k in range(K):
        moved = STEP * (np.arange(K) == k)
        up, down = (persons.slope(log_worths + sign * moved, weight) for sign in (1, -1))
        columns.append((down - up) / (2 * STEP))
    worths = np.exp(log_worths) / np.exp(log_worths).sum()
    of_prior = (persons.shape - 1.0 + LEAST) * K * (np.diag(worths) - np.outer(worths, worths))
    return np.asarray(columns) + of_prior + 1.0 / K
