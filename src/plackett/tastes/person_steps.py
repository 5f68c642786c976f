"""Passes over persons: a Hamiltonian step of each, sums of gradients and curvature, and integrals over the population.

Person i has b_i = μ + L u_i with standard normal u_i, coefficients c_i, which follow from b_i by the law, and the
log-likelihood V_i(c_i) of all choices of the person. Given the law, persons are independent; each moves u_i by leapfrog
steps on V_i − |u_i|²/2 with its own step size and acceptance. A stream of random numbers belongs to (key, person). V_i
and ∂V_i/∂c_i at the current position are stored, so that a step begins without a pass.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from plackett.compute.compiled import NOTHING, REAL, REALS, TABLE, TRUTH, WHOLE, WHOLES, apart, inner, record, types
from plackett.linear.likelihood import SITUATIONS, value_and_gradient, value_gradient_hessian
from plackett.model.draws import begin, exponential, uniform
from plackett.model.race import Array
from plackett.model.taste_law import LARGEST
from plackett.responses.base import Whole

STEP, MEAN_STEP, ERROR, ANCHOR = range(4)  # rows of Persons.steps
GOAL, GAIN, DELAY, DECAY = 0.8, 0.1, 10.0, 0.75  # parameters of dual averaging (Hoffman & Gelman 2014)
TOO_FAR = 100.0  # loss of log-density at which a trajectory is divergent
FIRST_STEP = 0.6


class Persons(NamedTuple):
    """Positions of the persons of a chain, and their step sizes."""

    tastes: Array  # (N, d): b
    slopes: Array  # (N, p): ∂V_i/∂c
    values: Array  # (N,): V_i
    steps: Array  # (4, N): ln of the step and of its mean; dual averaging's error and anchor


class Where(NamedTuple):
    """Law at some value, in the form that passes need."""

    random: Whole  # (d,): positions of the random columns
    sign: Whole  # (d,)
    mean: Array  # (d,): μ
    factor: Array  # (d, d): L
    common: Array  # (p,): fixed coefficients at their positions


UINT = types.uint64
PERSONS = record(Persons, TABLE, TABLE, REALS, TABLE)
WHERE = record(Where, WHOLES, WHOLES, REALS, TABLE, REALS)
STREAM = types.Array(UINT, 1, "C")


@inner
def _place(where, u, b, c, bend):
    """Compute b = μ + L u, the random coefficients c of the person, and their slopes ∂c/∂b."""
    for k in range(len(b)):
        x = where.mean[k]
        for l in range(k + 1):
            x += where.factor[k, l] * u[l]
        b[k] = x
    _bend(where, b, c, bend)


@inner
def _bend(where, b, c, bend):
    """Compute random coefficients and their slopes ∂c/∂b from b."""
    for k in range(len(b)):
        if where.sign[k] == 0:
            c[where.random[k]], bend[k] = b[k], 1.0
        else:
            c[where.random[k]] = where.sign[k] * math.exp(min(b[k], LARGEST))
            bend[k] = c[where.random[k]] if b[k] < LARGEST else 0.0


@inner
def _standardise(where, b, u):
    """Compute u = L⁻¹(b − μ)."""
    for k in range(len(b)):
        x = b[k] - where.mean[k]
        for l in range(k):
            x -= where.factor[k, l] * u[l]
        u[k] = x / where.factor[k, k]


@inner
def _pull(where, slope, bend, u, gradient):
    """Compute the gradient of V − |u|²/2 in u from ∂V/∂c."""
    d = len(u)
    for l in range(d):
        g = -u[l]
        for k in range(l, d):
            g += where.factor[k, l] * slope[where.random[k]] * bend[k]
        gradient[l] = g


@inner
def _normals(stream, momentum):
    """Draw standard normal numbers (Box & Muller); return the sum of their halved squares."""
    energy = 0.0
    for k in range(len(momentum)):
        momentum[k] = math.sqrt(2.0 * exponential(stream)) * math.cos(2.0 * math.pi * uniform(stream))
        energy += 0.5 * momentum[k] * momentum[k]
    return energy


@inner
def _half_square(x):
    total = 0.0
    for k in range(len(x)):
        total += 0.5 * x[k] * x[k]
    return total


@inner
def _adapt(steps, i, accepted, seen):
    """Do a step of dual averaging of person i, after `seen` others."""
    weight = 1.0 / (seen + 1.0 + DELAY)
    steps[ERROR, i] += weight * (GOAL - accepted - steps[ERROR, i])
    steps[STEP, i] = steps[ANCHOR, i] - math.sqrt(seen + 1.0) / GAIN * steps[ERROR, i]
    steps[MEAN_STEP, i] += (seen + 1.0) ** -DECAY * (steps[STEP, i] - steps[MEAN_STEP, i])


@apart(NOTHING(SITUATIONS, WHOLES, WHOLE, WHOLE, WHERE, PERSONS, UINT, WHOLE, TRUTH, REAL, TABLE, REALS, STREAM))
def step_persons(packed, owned, first, last, where, persons, key, longest, tuning, seen, room, scratch, stream):
    """Make a Hamiltonian step of each of the persons first ≤ i < last, with up to `longest` leapfrog steps.

    `room` is scratch of seven rows with at least p numbers.
    """
    d, p = len(where.random), len(where.common)
    u, momentum, gradient, b, bend = room[0, :d], room[1, :d], room[2, :d], room[3, :d], room[4, :d]
    c, slope = room[5, :p], room[6, :p]
    for f in range(p):
        c[f] = where.common[f]
    for i in range(first, last):
        begin(stream, key, i)
        _standardise(where, persons.tastes[i], u)
        _bend(where, persons.tastes[i], c, bend)
        _pull(where, persons.slopes[i], bend, u, gradient)
        old = persons.values[i] - _half_square(u)
        energy = old - _normals(stream, momentum)
        step = math.exp(persons.steps[STEP if tuning else MEAN_STEP, i])
        value, now = 0.0, old
        for _ in range(1 + int(uniform(stream) * longest)):
            for k in range(d):
                momentum[k] += 0.5 * step * gradient[k]
                u[k] += step * momentum[k]
            _place(where, u, b, c, bend)
            for f in range(p):
                slope[f] = 0.0
            value = value_and_gradient(packed, owned[i], owned[i + 1], c, slope, scratch)
            now = value - _half_square(u)
            if not now > old - TOO_FAR:
                break
            _pull(where, slope, bend, u, gradient)
            for k in range(d):
                momentum[k] += 0.5 * step * gradient[k]
        change = now - _half_square(momentum) - energy
        accepted = math.exp(min(change, 0.0)) if now > old - TOO_FAR else 0.0
        if uniform(stream) < accepted:
            persons.values[i] = value
            for k in range(d):
                persons.tastes[i, k] = b[k]
            for f in range(p):
                persons.slopes[i, f] = slope[f]
        if tuning:
            _adapt(persons.steps, i, accepted, seen)


@apart(NOTHING(WHERE, TABLE, TABLE))
def standardise(where, tastes, standard):
    """Compute rows u_i = L⁻¹(b_i − μ) of `standard`."""
    for i in range(len(tastes)):
        _standardise(where, tastes[i], standard[i])


@apart(REAL(SITUATIONS, WHOLES, WHOLE, WHOLE, WHERE, TABLE, PERSONS, TABLE, TABLE, REALS))
def place_persons(packed, owned, first, last, where, standard, persons, gradient, room, scratch):
    """Move persons to μ + L u for rows u of `standard`; return the sum of V_i.

    Writes Σ_i ∂V_i/∂b_i (1, u_i) into `gradient` (p, 1 + d), at the columns' positions; for a fixed column, ∂V_i/∂c_i.
    """
    d, p, total = len(where.random), len(where.common), 0.0
    bend, c = room[0, :d], room[1, :p]
    for f in range(p):
        c[f] = where.common[f]
        for l in range(d + 1):
            gradient[f, l] = 0.0
    for i in range(first, last):
        u, b, slope = standard[i], persons.tastes[i], persons.slopes[i]
        _place(where, u, b, c, bend)
        for f in range(p):
            slope[f] = 0.0
        persons.values[i] = value_and_gradient(packed, owned[i], owned[i + 1], c, slope, scratch)
        total += persons.values[i]
        _add_slopes(where, u, bend, slope, gradient)
    return total


@inner
def _add_slopes(where, u, bend, slope, gradient):
    for f in range(len(slope)):
        gradient[f, 0] += slope[f]
    for k in range(len(u)):
        f = where.random[k]
        gradient[f, 0] += slope[f] * (bend[k] - 1.0)
        for l in range(len(u)):
            gradient[f, 1 + l] += slope[f] * bend[k] * u[l]


@apart(REAL(SITUATIONS, WHOLES, WHOLE, WHOLE, WHERE, TABLE, PERSONS, TABLE, TABLE, REALS))
def add_up(packed, owned, first, last, where, standard, persons, gradient, room, scratch):
    """Compute the sums of `place_persons` from stored values of each person, without a pass."""
    d, p, total = len(where.random), len(where.common), 0.0
    bend, c = room[0, :d], room[1, :p]
    for f in range(p):
        for l in range(d + 1):
            gradient[f, l] = 0.0
    for i in range(first, last):
        _bend(where, persons.tastes[i], c, bend)
        _add_slopes(where, standard[i], bend, persons.slopes[i], gradient)
        total += persons.values[i]
    return total


@apart(NOTHING(SITUATIONS, WHOLES, WHOLE, WHOLE, WHERE, TABLE, PERSONS, TABLE, TABLE, REALS), allocates=True)
def add_curvature(packed, owned, first, last, where, standard, persons, curvature, room, scratch):
    """Add Σ_i H_i ⊗ (1, u_i)(1, u_i)ᵀ to `curvature` (p(1+d), p(1+d)), H_i = −∂²V_i along b_i and fixed columns.

    Omits the curvature of the log-normal map itself.
    """
    d, p = len(where.random), len(where.common)
    n = 1 + d
    bend, c, slope = room[0, :d], room[1, :p], room[2, :p]
    information, along, one = np.zeros((p, p)), np.ones(p), np.ones(n)
    for f in range(p):
        c[f] = where.common[f]
    for i in range(first, last):
        _bend(where, persons.tastes[i], c, bend)
        information[:] = 0.0
        value_gradient_hessian(packed, owned[i], owned[i + 1], c, slope, information, scratch)
        for k in range(d):
            along[where.random[k]] = bend[k]
            one[1 + k] = standard[i, k]
        for f in range(p):
            for g in range(p):
                h = information[max(f, g), min(f, g)] * along[f] * along[g]
                for k in range(n):
                    for l in range(n):
                        curvature[f * n + k, g * n + l] += h * one[k] * one[l]


@apart(NOTHING(SITUATIONS, WHOLES, WHOLE, WHOLE, WHERE, TABLE, REALS, TABLE, REALS))
def integrate(packed, owned, first, last, where, points, logs, room, scratch):
    """Compute ln of the average of e^{V_i} over standard normal points u (R, d), for each person."""
    d, p = len(where.random), len(where.common)
    b, bend, c, slope = room[0, :d], room[1, :d], room[2, :p], room[3, :p]
    for f in range(p):
        c[f] = where.common[f]
    for i in range(first, last):
        top, total = -np.inf, 0.0
        for r in range(len(points)):
            _place(where, points[r], b, c, bend)
            value = value_and_gradient(packed, owned[i], owned[i + 1], c, slope, scratch)
            if value > top:
                total = total * math.exp(top - value) + 1.0
                top = value
            else:
                total += math.exp(value - top)
        logs[i] = top + math.log(total / len(points))
