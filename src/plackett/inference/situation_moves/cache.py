"""Chain over situations with its caches: the rate of every entry and V of every situation.

Target of all moves, with arrivals, times and the scale Λ integrated out (θ = ln λ up to a common shift, M = Kp):

    π(θ, a) ∝ L(λ) · exp(a Σθ) · Λ^(−aM) · Γ(aM)/Γ(a)^M · p(a),    ln L = Σ_t c_t V_t.

A proposal in some groups recomputes the rates of their entries, and V of the situations that contain them by the
response's own kernel, so that any response without an identified Λ works. Rates are dot products, never running sums,
so that nothing cancels.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import types

from plackett.compute.compiled import NOTHING, REAL, REALS, TABLE, WHOLE, WHOLES, apart, jit, record
from plackett.compute.vectors import dot
from plackett.engines.situations import TINY
from plackett.inference.moves.rows import partner_kernel, relative_mean
from plackett.inference.sweeps import normalise
from plackett.model.race import Array
from plackett.responses.base import Outcomes, Whole, places_of

LOWEST = -690.0  # lower bound of θ, so that weights stay positive


class MovedSituations(NamedTuple):
    """Situations as the moves read them, and column information of the feature map."""

    W: Array  # (rows, p)
    top: Array  # (rows,) largest entry of each row
    outcomes: Outcomes
    group: Whole  # (E,) group of each entry
    row: Whole  # (E,)
    entry_start: Whole  # (K + 1,) start of each group's entries in the next array
    entry: Whole  # (E,)
    situation_start: Whole  # (K + 1,) start of the situations of each group in the next array
    situation: Whole  # sorted within a group
    mirror: Whole  # (p,) inverse of each feature; empty if the map has none, or no two groups share a situation
    near: Array  # (p, p) cumulated rows of a symmetric kernel that prefers correlated features; empty if p is large
    level: Array  # (p,) ln of the mean of each feature
    placed: Array  # (K,) number of placed entries of each group


class CachedPoint(NamedTuple):
    """Current point, with scratch for a proposal; Λ need not be 1 between moves."""

    theta: Array  # (K, p)
    weights: Array  # (K, p) exp θ, at least e^−690
    line: Array  # (1, M) view of θ
    line_weights: Array  # (1, M) view of the weights
    numbers: Array  # as in `sweeps.State`, including the shape a
    mass: Array  # (K,) Σ_j λ_gj
    rates: Array  # (E,)
    values: Array  # (T,) V
    new_rates: Array
    new_values: Array
    base: Array  # (E,) rates without one weight
    arrivals: Array  # (E,) output of the response, besides V
    at_risk: Array  # (E,)
    touched: Whole  # (T,) situations that a proposal changes, sorted
    marks: Whole  # (T,) 0 between proposals
    activity: Array  # (p,)
    old_line: Array  # (1, M)
    old_weights: Array  # (1, M)


OUTCOMES = record(Outcomes, WHOLES, WHOLES, WHOLES, REALS)
HELD = record(MovedSituations, TABLE, REALS, OUTCOMES, *[WHOLES] * 7, TABLE, REALS, REALS)
POINT = record(CachedPoint, *[TABLE] * 4, *[REALS] * 9, WHOLES, WHOLES, REALS, TABLE, TABLE)
RESPONSE = types.FunctionType(
    types.void(OUTCOMES, WHOLE, WHOLE, *[REALS] * 4)
)  # `responses.base.Response.expect_block`


def hold(rows: Any, mirrors: Any) -> MovedSituations:
    """Prepare the situations of compiled rows; `mirrors` are those of the feature map, if any."""
    outcomes, group, row, K = rows.outcomes, rows.group, rows.row, rows.n_groups
    W = np.array(rows.features, dtype=np.float64, order="C")
    situation = np.repeat(np.arange(len(outcomes.counts)), np.diff(outcomes.start))
    pairs = np.unique(np.column_stack([group, situation]), axis=0)
    meet = len(pairs) > len(outcomes.counts)
    mirror = np.empty(0, dtype=np.int64) if mirrors is None or not meet else np.asarray(mirrors, dtype=np.int64)
    weight = np.bincount(row, outcomes.counts[situation], len(W)).astype(np.float64)
    some = W.any(axis=1) & (weight > 0)  # a row of zeros has no mean
    near = np.cumsum(partner_kernel(W[some], mirror, weight[some]), axis=1)
    places = places_of(outcomes)
    last = places[outcomes.start[1:] - 1][situation]
    placed = np.bincount(group, outcomes.counts[situation] * (places < last), K).astype(np.float64)
    return MovedSituations(
        W, W.max(axis=1), Outcomes(*(np.array(each) for each in outcomes)), np.array(group, dtype=np.int64),
        np.array(row, dtype=np.int64), _starts(group, K), np.argsort(group, kind="stable"), _starts(pairs[:, 0], K),
        np.ascontiguousarray(pairs[:, 1]), mirror, near, np.log(relative_mean(W[some], weight[some]) + 1e-300), placed,
    )  # fmt: skip


def _starts(group: Whole, n_groups: int) -> Whole:
    """Return the start of each group among entries sorted by group."""
    return np.append(0, np.cumsum(np.bincount(group, minlength=n_groups))).astype(np.int64)


def make_point(theta: Array, numbers: Array, held: MovedSituations) -> CachedPoint:
    """Allocate the arrays of a chain; θ and the numbers are shared with the caller, `refresh` fills the caches."""
    (K, p), E, T = theta.shape, len(held.group), len(held.outcomes.counts)
    weights = np.empty((K, p))
    of_entries, of_situations = np.empty((5, E)), np.empty((2, T))
    rates, new_rates, base, arrivals, at_risk = of_entries
    values, new_values = of_situations
    return CachedPoint(
        theta, weights, theta.reshape(1, -1), weights.reshape(1, -1), numbers, np.empty(K), rates, values, new_rates,
        new_values, base, arrivals, at_risk, np.empty(T, dtype=np.int64), np.zeros(T, dtype=np.int64), np.empty(p),
        np.empty((1, K * p)), np.empty((1, K * p)),
    )  # fmt: skip


@jit
def weight_of(theta):
    """Return λ, always positive."""
    return math.exp(max(theta, LOWEST))


@jit
def kept(rate):
    """Return a rate, where a positive one stays positive."""
    return max(rate, TINY) if rate > 0.0 else 0.0


@jit
def weigh(point, k):
    """Compute the mass of group k from its weights."""
    total = 0.0
    for j in range(point.weights.shape[1]):
        total += point.weights[k, j]
    point.mass[k] = total


@jit
def mass_of(point):
    """Λ = Σ λ."""
    total = 0.0
    for k in range(point.mass.size):
        total += point.mass[k]
    return total


@jit
def touch(held, point, k, l):
    """List the situations with group k or l in `touched`, copy their rates to `new_rates`, and return their number."""
    starts, situation, touched, n = held.situation_start, held.situation, point.touched, 0
    i, j, i_end = starts[k], starts[l], starts[k + 1]
    j_end = starts[l + 1] if l != k else j
    while i < i_end or j < j_end:
        t = situation[i] if i < i_end else situation[j]
        if j < j_end:
            t = min(t, situation[j])
        if i < i_end and situation[i] == t:
            i += 1
        if j < j_end and situation[j] == t:
            j += 1
        touched[n] = t
        n += 1
    begin(held, point, n)
    return n


@jit
def touch_some(held, point, groups):
    """List the situations with a group whose entry in `groups` is not 0, copy their rates, and return their number."""
    n = 0
    for k in range(groups.size):
        if groups[k] != 0:
            for i in range(held.situation_start[k], held.situation_start[k + 1]):
                point.marks[held.situation[i]] = 1
    for t in range(point.marks.size):
        if point.marks[t] == 1:
            point.touched[n] = t
            point.marks[t] = 0
            n += 1
    begin(held, point, n)
    return n


@jit
def begin(held, point, n):
    """Copy the rates of the first n touched situations to `new_rates`."""
    start = held.outcomes.start
    for i in range(n):
        t = point.touched[i]
        for e in range(start[t], start[t + 1]):
            point.new_rates[e] = point.rates[e]


@jit
def rescore(held, point, k):
    """Compute the new rates of the entries of group k: r_e = Σ_j W_ej λ_kj."""
    weights = point.weights[k]
    for i in range(held.entry_start[k], held.entry_start[k + 1]):
        e = held.entry[i]
        point.new_rates[e] = kept(dot(held.W[held.row[e]], weights))


@apart(REAL(HELD, POINT, RESPONSE, WHOLE))
def judge(held, point, respond, n):
    """Return ln L′ − ln L = Σ c_t (V′_t − V_t) over the first n touched situations, from `new_rates`.

    Consecutive situations are passed to the response together.
    """
    start, counts, touched, i = held.outcomes.start, held.outcomes.counts, point.touched, 0
    while i < n:
        first = touched[i]
        last = first
        while i < n and touched[i] == last:
            last += 1
            i += 1
        low, high = start[first], start[last]
        rates, arrivals, at_risk = point.new_rates[low:high], point.arrivals[low:high], point.at_risk[low:high]
        respond(held.outcomes, first, last, rates, arrivals, at_risk, point.new_values)
    result = 0.0
    for i in range(n):
        t = touched[i]
        if counts[t] > 0.0:
            result += counts[t] * (point.new_values[t] - point.values[t])
    return result


@jit
def accept(held, point, n):
    """Make the proposal in the first n touched situations current."""
    start = held.outcomes.start
    for i in range(n):
        t = point.touched[i]
        point.values[t] = point.new_values[t]
        for e in range(start[t], start[t + 1]):
            point.rates[e] = point.new_rates[e]


@jit
def rescore_all(held, point):
    """Compute masses and new rates of all entries; return the number of situations, all of them touched."""
    for k in range(point.mass.size):
        weigh(point, k)
        rescore(held, point, k)
    for t in range(point.touched.size):
        point.touched[t] = t
    return point.touched.size


@apart(NOTHING(HELD, POINT, RESPONSE))
def refresh(held, point, respond):
    """Normalise θ (Λ = 1) and compute the caches from it."""
    normalise(point.theta)
    for i in range(point.line.size):
        point.line_weights[0, i] = weight_of(point.line[0, i])
    for t in range(point.values.size):
        point.values[t] = 0.0
    n = rescore_all(held, point)
    judge(held, point, respond, n)
    accept(held, point, n)
