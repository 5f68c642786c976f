"""Moves of the shape a that mix: with the weights integrated out, or with the inactive ones redrawn."""

from __future__ import annotations

import math

import numpy as np

from plackett.compute.compiled import NOTHING, REALS, RNG, TABLE, TRUTH, apart, jit
from plackett.inference.moves.rows import copy_table
from plackett.inference.moves.shape import REACH, draw_shape_collapsed, draw_shape_jointly
from plackett.inference.situation_moves.cache import (
    HELD,
    POINT,
    RESPONSE,
    accept,
    judge,
    mass_of,
    rescore_all,
    weigh,
    weight_of,
)
from plackett.inference.sweeps import LOG_MASS, SHAPE, TARGET, State, draw_mass, draw_weights, log_add


@apart(NOTHING(RNG, TABLE, REALS, TARGET))
def renew_mass(rng, theta, numbers, target):
    """Draw Λ ~ Gam(aM, b) before a sweep: the likelihood does not depend on it."""
    draw_mass(rng, State(theta, numbers), target.rate)


@apart(NOTHING(RNG, TABLE, REALS, TABLE, TABLE, TARGET))
def after_pass(rng, theta, numbers, wins, exposure, target):
    """Draw a given arrivals and times with λ integrated out, then λ ~ Gam(a + n, b + s), equation (13)."""
    if target.learn:
        exposures = 0.0
        for k in range(exposure.shape[0]):
            for j in range(exposure.shape[1]):
                exposures -= log_add(0.0, math.log(exposure[k, j] / target.rate) - numbers[LOG_MASS])
        numbers[SHAPE] = draw_shape_collapsed(rng, target, wins, exposures, numbers[SHAPE])
    draw_weights(rng, State(theta, numbers), wins, exposure, target.rate)


@jit
def faint(held, point, largest):
    """True if weights up to this size are lost in the rounding of every rate."""
    M, lost = point.theta.size, True
    for e in range(point.rates.size):
        lost = lost and M * M * largest * held.top[held.row[e]] <= 1e-15 * point.rates[e]
    return lost


@apart(TRUTH(HELD, POINT, RESPONSE, RNG, TARGET))
def redraw_inactive(held, point, respond, rng, target):
    """Redraw a and all θ below a cut from their joint conditional without the likelihood.

    The cut is max θ − U(1, 12). With the m weights below it integrated out (∫ e^{aθ} dθ = e^{a·cut}/a) and Λ taken as
    the sum A of the others, ln a is drawn by slice sampling from `log_joint`, then θ = cut − Exp(1)/a for the m. The
    same set lies below the cut afterwards: accept with [L (Λ/A)^(−aM)]′ / [L (Λ/A)^(−aM)].
    """
    theta, weights, M = point.line[0], point.line_weights[0], point.line.size
    old = point.numbers[SHAPE]
    top = -np.inf
    for i in range(M):
        top = max(top, theta[i])
    cut = top - 1.0 - (REACH - 1.0) * rng.random()
    inactive, above, active_mass, largest = 0, 0.0, 0.0, 0.0
    for i in range(M):
        if theta[i] < cut:
            inactive += 1
            largest = max(largest, weights[i])
        else:
            above += theta[i]
            active_mass += weights[i]
    new = old
    if target.learn:
        new = draw_shape_jointly(rng, target, old, M, inactive, above + inactive * cut - M * math.log(active_mass))
    copy_table(point.old_line, point.line)
    copy_table(point.old_weights, point.line_weights)
    before = -old * M * math.log(mass_of(point) / active_mass)
    for i in range(M):
        if point.old_line[0, i] < cut:
            theta[i] = cut - rng.standard_exponential() / new
            weights[i] = weight_of(theta[i])
            largest = max(largest, weights[i])
    n = 0
    if faint(held, point, largest):
        for k in range(point.mass.size):
            weigh(point, k)
    else:
        n = rescore_all(held, point)
    after = judge(held, point, respond, n) - new * M * math.log(mass_of(point) / active_mass)
    if -rng.standard_exponential() < after - before:
        point.numbers[SHAPE] = new
        accept(held, point, n)
        return True
    copy_table(point.line, point.old_line)
    copy_table(point.line_weights, point.old_weights)
    for k in range(point.mass.size):
        weigh(point, k)
    return False
