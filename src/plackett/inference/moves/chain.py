"""Chain with its caches: scores W·λ_k of every class and row, so that a change of a few weights costs O(n).

Target of all moves, with C, Z and the scale Λ integrated out (θ = ln λ up to a common shift, M = Kp):

    π(θ, a) ∝ L(λ) · exp(a Σθ) · Λ^(−aM) · Γ(aM)/Γ(a)^M · p(a).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from plackett.compute.compiled import NOTHING, REAL, REALS, RNG, TABLE, TRUTH, WHOLE, WHOLES, apart, inner, jit, record
from plackett.compute.vectors import WIDTH, count_below, load, spread, total
from plackett.inference.moves.rows import (
    CANCELLED,
    COLUMNS,
    MoveColumns,
    add,
    copy,
    copy_table,
    fill,
    least,
    pad,
    replace,
    rise,
    scale,
    score,
    shift,
    shift_two,
    sum_log,
)
from plackett.inference.sweeps import SHAPE, normalise
from plackett.model.race import Array


class CachedChain(NamedTuple):
    """Current point, with scratch for a proposal; Λ need not be 1 between moves."""

    theta: Array  # (K, p)
    weights: Array  # (K, p) exp θ
    numbers: Array  # as in `sweeps.State`, including the shape a
    mass: Array  # (1,) Λ
    scores: Array  # (K, N) scores W·λ_k
    rival: Array  # (N,) W·Σ_l λ_l
    logs: Array  # (K + 1,) Σ ln score over the own rows of each class, and Σ ln rival
    floor: Array  # (K,) smallest score of a class on its own rows
    new_scores: Array
    new_rival: Array
    new_logs: Array
    old_theta: Array
    old_weights: Array
    scratch: Array  # (K·p,)
    peak: Array  # (K + 1, N) largest scores and rival since `refresh`: rounding errors are relative to them


CHAIN = record(
    CachedChain, TABLE, TABLE, REALS, REALS, TABLE, REALS, REALS, REALS, TABLE, REALS, REALS, TABLE, TABLE, REALS, TABLE
)


def make_chain(theta: Array, numbers: Array, columns: MoveColumns) -> CachedChain:
    """Allocate the arrays of a chain; θ and the numbers are shared with the caller, `refresh` fills the caches."""
    K, p = theta.shape
    N = int(columns.start[-1])
    return CachedChain(
        theta, np.empty((K, p)), numbers, np.ones(1), np.ones((K, N)), np.ones(N), np.zeros(K + 1), np.zeros(K),
        np.ones((K, N)), np.ones(N), np.zeros(K + 1), np.empty((K, p)), np.empty((K, p)), np.empty(K * p),
        np.ones((K + 1, N)),
    )  # fmt: skip


@inner
def log_likelihood(logs):
    """Return ln L from its parts."""
    total = -logs[logs.size - 1]
    for k in range(logs.size - 1):
        total += logs[k]
    return total


@inner
def mass_of(weights):
    """Λ = Σ λ."""
    result = 0.0
    for k in range(weights.shape[0]):
        for j in range(weights.shape[1]):
            result += weights[k, j]
    return result


@inner
def add_up(columns, scores, out):
    """Set out = Σ_k scores_k, and 1 on the padding."""
    copy(out, scores[0])
    for k in range(1, scores.shape[0]):
        add(out, scores[k], 1.0)
    pad(columns, out, 1.0)


@apart(NOTHING(COLUMNS, CHAIN))
def refresh(columns, chain):
    """Normalise θ (Λ = 1) and compute the caches from it."""
    normalise(chain.theta)
    K, p = chain.theta.shape
    for k in range(K):
        for j in range(p):
            chain.weights[k, j] = math.exp(chain.theta[k, j])
    chain.mass[0] = 1.0
    for k in range(K):
        score(columns, chain.weights[k], chain.scores[k])
        first, last = columns.start[k], columns.start[k + 1]
        rows = chain.scores[k][first:last]
        chain.logs[k] = sum_log(rows, rows, 0.0, columns.weight[first:last])
        chain.floor[k] = least(rows) if rows.size else 1.0
    add_up(columns, chain.scores, chain.rival)
    chain.logs[K] = sum_log(chain.rival, chain.rival, 0.0, columns.weight)
    for k in range(K):
        copy(chain.peak[k], chain.scores[k])
    copy(chain.peak[K], chain.rival)


@inner
def negligible(columns, chain):
    """Return the size below which a weight changes ln L by less than rounding."""
    lowest = np.inf
    for k in range(chain.floor.size):
        lowest = min(lowest, chain.floor[k])
    return 1e-15 * lowest / max(columns.W.shape[1], 1)


@jit
def keep(chain):
    """Store the point before a proposal overwrites it."""
    copy_table(chain.old_theta, chain.theta)
    copy_table(chain.old_weights, chain.weights)


@inner
def go_back(chain):
    """Restore the stored point."""
    copy_table(chain.theta, chain.old_theta)
    copy_table(chain.weights, chain.old_weights)


@inner
def difference(chain, k, j, factor):
    """Return the change of the weight (k, j) before the factor; 0 if it is lost in rounding."""
    by = chain.weights[k, j] / factor - chain.old_weights[k, j]
    return by if abs(by) > 1e-17 * chain.floor[k] else 0.0


@inner
def cancelled(new, peak):
    """Return the number of rows in which a sum has cancelled."""
    bad = spread(0.0)
    for i in range(0, new.size, WIDTH):
        bad = bad + count_below(load(new, i), spread(CANCELLED) * load(peak, i))
    return total(bad)


@apart(NOTHING(COLUMNS, CHAIN, WHOLE, REAL, WHOLES))
def rescore(columns, chain, k, factor, changed):
    """Compute new_scores of class k: some features have new weights, and all weights a new factor.

    Cancellation is tested before the factor is applied: afterwards the lost digits of a difference would be hidden.
    """
    new, old, W, m = chain.new_scores[k], chain.scores[k], columns.W, changed.size
    if m == 1:
        j = changed[0]
        bad = shift(new, old, W[j], difference(chain, k, j, factor), chain.peak[k])
    elif m == 2:
        i, j = changed[0], changed[1]
        by_i, by_j = difference(chain, k, i, factor), difference(chain, k, j, factor)
        bad = shift_two(new, old, W[i], by_i, W[j], by_j, chain.peak[k])
    else:
        copy(new, old)
        for i in range(m):
            by = difference(chain, k, changed[i], factor)
            if by != 0.0:
                add(new, W[changed[i]], by)
        bad = cancelled(new, chain.peak[k])
    if bad > 0:
        score(columns, chain.weights[k], new)
    elif factor != 1.0:
        scale(new, factor)
        pad(columns, new, 1.0)


@inner
def scale_peak(columns, chain, k, factor):
    """After acceptance of a proposal with a factor, scale the peak of class k, as its rounding errors were scaled."""
    if factor > 1.0:
        scale(chain.peak[k], factor)
        pad(columns, chain.peak[k], 1.0)
        rise(chain.peak[chain.theta.shape[0]], chain.peak[k])


@inner
def evaluate(columns, chain, k, l):
    """Return ln L of the proposal from new_scores of classes k and l."""
    K = chain.theta.shape[0]
    bad = replace(chain.new_rival, chain.rival, chain.new_scores[k], chain.scores[k], chain.peak[K])
    if l != k:
        bad = replace(chain.new_rival, chain.new_rival, chain.new_scores[l], chain.scores[l], chain.peak[K])
    if bad > 0:
        fill(chain.new_rival, 0.0)
        for c in range(K):
            add(chain.new_rival, chain.new_scores[c] if c in (k, l) else chain.scores[c], 1.0)
        pad(columns, chain.new_rival, 1.0)
    copy(chain.new_logs, chain.logs)
    chain.new_logs[K] = sum_log(chain.new_rival, chain.new_rival, 0.0, columns.weight)
    log_own(columns, chain, k)
    if l != k:
        log_own(columns, chain, l)
    return log_likelihood(chain.new_logs)


@inner
def log_own(columns, chain, k):
    """Compute Σ ln of the new scores of class k on its rows."""
    first, last = columns.start[k], columns.start[k + 1]
    rows = chain.new_scores[k][first:last]
    chain.new_logs[k] = sum_log(rows, rows, 0.0, columns.weight[first:last])


@apart(REAL(COLUMNS, CHAIN))
def evaluate_all(columns, chain):
    """Return ln L of a proposal in all classes from new_scores."""
    K = chain.theta.shape[0]
    for k in range(K):
        log_own(columns, chain, k)
    add_up(columns, chain.new_scores, chain.new_rival)
    chain.new_logs[K] = sum_log(chain.new_rival, chain.new_rival, 0.0, columns.weight)
    return log_likelihood(chain.new_logs)


@inner
def take_scores(columns, chain, k):
    """Make the new scores of class k current."""
    copy(chain.scores[k], chain.new_scores[k])
    rise(chain.peak[k], chain.scores[k])
    rows = chain.scores[k][columns.start[k] : columns.start[k + 1]]
    chain.floor[k] = least(rows) if rows.size else 1.0


@apart(NOTHING(COLUMNS, CHAIN, WHOLE, WHOLE))
def accept(columns, chain, k, l):
    """Make a proposal in classes k and l current."""
    copy(chain.rival, chain.new_rival)
    rise(chain.peak[chain.theta.shape[0]], chain.rival)
    take_scores(columns, chain, k)
    if l != k:
        take_scores(columns, chain, l)
    copy(chain.logs, chain.new_logs)
    chain.mass[0] = mass_of(chain.weights)


@apart(TRUTH(COLUMNS, CHAIN, RNG, WHOLE, WHOLE, REAL))
def metropolis(columns, chain, rng, k, l, log_ratio):
    """Accept with L′/L · (Λ′/Λ)^(−aM) · e^log_ratio, or restore; classes k and l were changed and rescored."""
    a, M = chain.numbers[SHAPE], chain.theta.size
    log_ratio -= a * M * math.log(mass_of(chain.weights) / mass_of(chain.old_weights))
    log_ratio += evaluate(columns, chain, k, l) - log_likelihood(chain.logs)
    if -rng.standard_exponential() < log_ratio:
        accept(columns, chain, k, l)
        return True
    go_back(chain)
    return False
