"""Log-likelihood of conditional logit, exploded over the stages of rankings, with gradient, Hessian and scores.

Entry e of a situation has the utility u_e = x_e·β. Entries lie in the order of the outcome, so that stage s is the
choice of entry s among those from s on:

    V = Σ_{s<m} (u_s − L_s),     L_s = ln Σ_{e≥s} e^{u_e},     m = 1 for a choice.

With q_e = e^{u_e − L_e}, the mean x̄_e of the entries from e on under their choice probabilities, δ_e = x_e − x̄_{e+1}
and f_e the expected number of stages at which the choice is among the entries from e on,

    ∂V = Σ_{s<m} (1 − q_s) δ_s = Σ_e ([e<m] − f_e q_e) x_e,     −∂²V = Σ_e f_e q_e (1 − q_e) δ_e δ_eᵀ,
    f_0 = 1,     f_e = (1 − q_{e−1}) f_{e−1} + [e < m],

sums of terms of one sign, so that nothing cancels. Knows neither columns' names nor priors.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple, TypeVar

import numpy as np
from scipy.special import logsumexp

from plackett.compute.compiled import NOTHING, REAL, REALS, TABLE, WHOLE, WHOLES, apart, inner, record
from plackett.compute.pieces import cores
from plackett.model.race import Array
from plackett.responses.base import Outcomes, Whole

BLOCK = 1 << 11  # situations whose sums are taken together
LARGE = 1 << 20  # products of a pass from which threads share the blocks
Found = TypeVar("Found")


class LinearSituations(NamedTuple):
    """Situations with covariates of their entries, both in the order of the outcome.

    Attributes
    ----------
    X : (entries, d) array
        Covariates, C-contiguous.
    outcomes : Outcomes
        Choices, or rankings without ties; ``outcomes.counts`` multiplies the log-likelihood of each situation.
    stages : (T,) array
        How many choices each situation has: 1, and for a ranking the number of places that say something.
    """

    X: Array
    outcomes: Outcomes
    stages: Whole


OUTCOMES = record(Outcomes, WHOLES, WHOLES, WHOLES, REALS)
SITUATIONS = record(LinearSituations, TABLE, OUTCOMES, WHOLES)


class Evaluation(NamedTuple):
    """V at some β, its gradient (d,) and the negative of its second derivatives (d, d)."""

    value: float
    gradient: Array
    information: Array


def pack_linear(X: Array, outcomes: Outcomes) -> LinearSituations:
    """Pack situations with the covariates (entries, d) of their entries, in the order of the outcome.

    Examples
    --------
    >>> from plackett.responses.base import Outcomes
    >>> packed = pack_linear([[1.0], [0.0], [2.0]], Outcomes.choices([3]))
    >>> evaluate(packed, np.zeros(1)).gradient  # what was chosen less the mean of all
    array([0.])
    """
    if (outcomes.sizes != 1).any():
        raise ValueError(f"a logit places one entry at a time, got a bucket of {outcomes.sizes.max()} that are tied.")
    start, bucket_start, sizes, counts = outcomes
    start, bucket_start, sizes = (np.array(each, dtype=np.int64) for each in (start, bucket_start, sizes))
    owned = Outcomes(start, bucket_start, sizes, np.array(counts, dtype=np.float64))  # copies: kernels may write there
    stages = np.minimum(np.diff(owned.bucket_start), np.diff(owned.start) - 1)
    return LinearSituations(np.array(X, dtype=np.float64, order="C"), owned, stages)


def scratch_for(packed: LinearSituations) -> Array:
    """Allocate scratch for one thread: three numbers per entry of the largest situation, and one per column."""
    most = int(np.diff(packed.outcomes.start).max(initial=1))
    return np.empty(3 * most + packed.X.shape[1])


@inner
def _utilities(packed, t, beta, scratch):
    """Write u of the entries of situation t into the scratch; return the largest."""
    low, top = packed.outcomes.start[t], -np.inf
    for e in range(low, packed.outcomes.start[t + 1]):
        u = 0.0
        for f in range(len(beta)):
            u += packed.X[e, f] * beta[f]
        scratch[e - low] = u
        top = max(top, u)
    return top


@inner
def _choice_shares(n, top, scratch):
    """Return V of a choice; replace utilities by probabilities."""
    chosen, whole = scratch[0] - top, 0.0
    for e in range(n):
        scratch[e] = math.exp(scratch[e] - top)
        whole += scratch[e]
    for e in range(n):
        scratch[e] /= whole
    return chosen - math.log(whole)


@inner
def _remaining(n, stages, scratch):
    """Return V of a ranking; replace utilities by q, 1 − q and f of the n entries, one after the other."""
    value, left = 0.0, scratch[n - 1]  # L_e
    scratch[n - 1], scratch[2 * n - 1] = 1.0, 0.0
    for e in range(n - 2, -1, -1):
        u = scratch[e]
        top = max(u, left)
        whole = top + math.log1p(math.exp(min(u, left) - top))
        scratch[e], scratch[n + e] = math.exp(u - whole), math.exp(left - whole)
        left = whole
        if e < stages:
            value += u - whole
    at = 1.0
    for e in range(n):
        scratch[2 * n + e] = at
        at *= scratch[n + e]
        if e + 1 < stages:
            at += 1.0
    return value


@inner
def _add_gradient(packed, t, beta, gradient, scratch):
    """Return V of situation t and add its gradient, both multiplied by its count."""
    low, stages, count = packed.outcomes.start[t], packed.stages[t], packed.outcomes.counts[t]
    n = packed.outcomes.start[t + 1] - low
    if stages < 1 or count == 0.0:
        return 0.0
    top = _utilities(packed, t, beta, scratch)
    if stages == 1:
        value = _choice_shares(n, top, scratch)
    else:
        value = _remaining(n, stages, scratch)
        for e in range(n):
            scratch[e] *= scratch[2 * n + e]
    for e in range(n):
        slope = count * ((1.0 if e < stages else 0.0) - scratch[e])
        for f in range(len(beta)):
            gradient[f] += slope * packed.X[low + e, f]
    return count * value


@inner
def _add_all(packed, t, beta, gradient, information, scratch):
    """Return V of situation t; add its gradient and the lower triangle of −∂²V."""
    low, stages, count = packed.outcomes.start[t], packed.stages[t], packed.outcomes.counts[t]
    n, d = packed.outcomes.start[t + 1] - low, len(beta)
    if stages < 1 or count == 0.0:
        return 0.0
    _utilities(packed, t, beta, scratch)
    value = _remaining(n, stages, scratch)
    mean = 3 * n  # where x̄ of the entries after e begins, and then δ
    for f in range(d):
        scratch[mean + f] = packed.X[low + n - 1, f]
    for e in range(n - 2, -1, -1):
        q, rest = scratch[e], scratch[n + e]
        slope, curvature = count * rest if e < stages else 0.0, count * scratch[2 * n + e] * q * rest
        for f in range(d):
            scratch[mean + f] = packed.X[low + e, f] - scratch[mean + f]
        for f in range(d):
            delta = scratch[mean + f]
            gradient[f] += slope * delta
            for g in range(f + 1):
                information[f, g] += curvature * delta * scratch[mean + g]
        for f in range(d):  # x̄_e = x_e − (1 − q_e) δ_e
            scratch[mean + f] = packed.X[low + e, f] - rest * scratch[mean + f]
    return count * value


@apart(REAL(SITUATIONS, WHOLE, WHOLE, REALS, REALS, REALS))
def value_and_gradient(packed, first, last, beta, gradient, scratch):
    """Return V of the situations first ≤ t < last; add ∂V/∂β to the gradient."""
    value = 0.0
    for t in range(first, last):
        value += _add_gradient(packed, t, beta, gradient, scratch)
    return value


@apart(REAL(SITUATIONS, WHOLE, WHOLE, REALS, REALS, TABLE, REALS))
def value_gradient_hessian(packed, first, last, beta, gradient, information, scratch):
    """Return V; add ∂V/∂β to the gradient and the lower triangle of −∂²V/∂β∂βᵀ to the information."""
    value = 0.0
    for t in range(first, last):
        value += _add_all(packed, t, beta, gradient, information, scratch)
    return value


@apart(NOTHING(SITUATIONS, WHOLE, WHOLE, REALS, TABLE, REALS, REALS))
def add_scores(packed, first, last, beta, scores, values, scratch):
    """Add ∂V_t/∂β to row t of the scores, and write V_t into values[t]."""
    for t in range(first, last):
        values[t] = _add_gradient(packed, t, beta, scores[t], scratch)


def blocks_of(packed: LinearSituations) -> list[tuple[int, int]]:
    """Return the first situation of each block, and its end; they depend on the situations alone."""
    T = len(packed.stages)
    return [(first, min(first + BLOCK, T)) for first in range(0, T, BLOCK)]


def of_blocks(packed: LinearSituations, work: Callable[[int, int], Found], products: int) -> list[Found]:
    """Return the results of `work` for the situations of each block, in order; threads share many products."""
    blocks = blocks_of(packed)
    if len(blocks) < 2 or products < LARGE:
        return [work(*block) for block in blocks]
    with ThreadPoolExecutor(cores()) as pool:
        return list(pool.map(lambda block: work(*block), blocks))


def evaluate(packed: LinearSituations, beta: Array) -> Evaluation:
    """Return V, gradient and information, summed over the blocks in order."""
    d = len(beta)

    def of_block(first: int, last: int) -> Evaluation:
        gradient, information = np.zeros(d), np.zeros((d, d))
        given = packed, first, last, beta, gradient, information, scratch_for(packed)
        return Evaluation(value_gradient_hessian(*given), gradient, information)

    found = of_blocks(packed, of_block, packed.X.size * d)
    lower = sum((each.information for each in found), np.zeros((d, d)))
    gradient = sum((each.gradient for each in found), np.zeros(d))
    return Evaluation(sum(each.value for each in found), gradient, np.tril(lower) + np.tril(lower, -1).T)


def gradient_of(packed: LinearSituations, beta: Array) -> tuple[float, Array]:
    """Return V and its gradient."""

    def of_block(first: int, last: int) -> tuple[float, Array]:
        gradient = np.zeros(len(beta))
        return value_and_gradient(packed, first, last, beta, gradient, scratch_for(packed)), gradient

    found = of_blocks(packed, of_block, packed.X.size)
    return sum(value for value, _ in found), sum((gradient for _, gradient in found), np.zeros(len(beta)))


def scores_of(packed: LinearSituations, beta: Array) -> tuple[Array, Array]:
    """Return V_t (T,) and ∂V_t/∂β (T, d) of each situation, multiplied by its count."""
    scores, values = np.zeros((len(packed.stages), len(beta))), np.zeros(len(packed.stages))

    def of_block(first: int, last: int) -> None:
        add_scores(packed, first, last, beta, scores, values, scratch_for(packed))

    of_blocks(packed, of_block, packed.X.size)
    return values, scores


def reference(packed: LinearSituations, beta: Array) -> Evaluation:
    """Compute `evaluate` stage by stage: the readable reference for tests."""
    d, start = len(beta), packed.outcomes.start
    value, gradient, information = 0.0, np.zeros(d), np.zeros((d, d))
    for t, (stages, count) in enumerate(zip(packed.stages, packed.outcomes.counts, strict=True)):
        for s in range(start[t], start[t] + stages):
            X = packed.X[s : start[t + 1]]
            u = X @ beta
            p = np.exp(u - logsumexp(u))
            mean = p @ X
            value += count * (u[0] - logsumexp(u))
            gradient += count * (X[0] - mean)
            information += count * ((X - mean).T * p) @ (X - mean)
    return Evaluation(value, gradient, information)
