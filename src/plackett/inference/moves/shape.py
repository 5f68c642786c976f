"""Moves of the shape a that mix: with the weights integrated out, or with the inactive ones redrawn."""

from __future__ import annotations

import math

import numpy as np

from plackett.compute.compiled import REAL, RNG, TABLE, TRUTH, apart, inner
from plackett.inference.moves.chain import (
    CHAIN,
    accept,
    evaluate_all,
    go_back,
    keep,
    log_likelihood,
    mass_of,
    negligible,
)
from plackett.inference.moves.rows import COLUMNS, score
from plackett.inference.sweeps import SHAPE, TARGET, log_gamma, log_prior

REACH = 12.0  # the cut lies at most this far below the largest θ


@inner
def evidence(wins, exposures, shape):
    """Return ln Π_kj Γ(a+n_kj)/Γ(a) · (b/(b+s_j))^a, with exposures = Σ_kj ln(b/(b+s_j))."""
    total, base = shape * exposures, log_gamma(shape)
    for k in range(wins.shape[0]):
        for j in range(wins.shape[1]):
            if wins[k, j] > 0.0:
                total += log_gamma(shape + wins[k, j]) - base
    return total


@apart(REAL(RNG, TARGET, TABLE, REAL, REAL))
def draw_shape_collapsed(rng, target, wins, exposures, shape):
    """Draw a given C and Z with λ integrated out: slice sampling of ln a under evidence · p(a)."""
    here = math.log(shape)
    level = evidence(wins, exposures, shape) + log_prior(target, here) - rng.standard_exponential()
    left = target.table_start
    right = left + target.table_step * (target.table.size - 1)
    for _ in range(200):
        z = left + (right - left) * rng.random()
        if evidence(wins, exposures, math.exp(z)) + log_prior(target, z) > level:
            return math.exp(z)
        if z < here:
            left = z
        else:
            right = z
    return shape


@inner
def log_joint(target, log_shape, size, inactive, tilt):
    """ln of p(a)·a · Γ(aM)/Γ(a)^M · e^(a·tilt) / a^m: density of ln a with m inactive weights integrated out."""
    a = math.exp(log_shape)
    return (
        log_prior(target, log_shape) + math.lgamma(a * size) - size * math.lgamma(a) + a * tilt - inactive * log_shape
    )


@inner
def draw_shape_jointly(rng, target, shape, size, inactive, tilt):
    """Draw a under `log_joint` by slice sampling of ln a, from its whole range."""
    here = math.log(shape)
    level = log_joint(target, here, size, inactive, tilt) - rng.standard_exponential()
    left = target.table_start
    right = left + target.table_step * (target.table.size - 1)
    for _ in range(200):
        z = left + (right - left) * rng.random()
        if log_joint(target, z, size, inactive, tilt) > level:
            return math.exp(z)
        if z < here:
            left = z
        else:
            right = z
    return shape


@apart(TRUTH(COLUMNS, CHAIN, RNG, TARGET))
def redraw_inactive(columns, chain, rng, target):
    """Redraw a and all θ below a cut from their joint conditional without the likelihood.

    The cut is max θ − U(1, 12). With the m weights below it integrated out (∫ e^{aθ} dθ = e^{a·cut}/a) and Λ taken as
    the sum A of the others, ln a is drawn by slice sampling from `log_joint`, then θ = cut − Exp(1)/a for the m. The
    same set lies below the cut afterwards: accept with [L (Λ/A)^(−aM)]′ / [L (Λ/A)^(−aM)].
    """
    K, p = chain.theta.shape
    M = K * p
    old = chain.numbers[SHAPE]
    top = -np.inf
    for k in range(K):
        for j in range(p):
            top = max(top, chain.theta[k, j])
    cut = top - 1.0 - (REACH - 1.0) * rng.random()
    inactive, above, active_mass, largest = 0, 0.0, 0.0, 0.0
    for k in range(K):
        for j in range(p):
            if chain.theta[k, j] < cut:
                inactive += 1
                largest = max(largest, chain.weights[k, j])
            else:
                above += chain.theta[k, j]
                active_mass += chain.weights[k, j]
    new = old
    if target.learn:
        new = draw_shape_jointly(rng, target, old, M, inactive, above + inactive * cut - M * math.log(active_mass))
    keep(chain)
    before = log_likelihood(chain.logs) - old * M * math.log(mass_of(chain.weights) / active_mass)
    for k in range(K):
        for j in range(p):
            if chain.old_theta[k, j] < cut:
                chain.theta[k, j] = cut - rng.standard_exponential() / new
                chain.weights[k, j] = math.exp(chain.theta[k, j])
                largest = max(largest, chain.weights[k, j])
    after = -new * M * math.log(mass_of(chain.weights) / active_mass)
    if M * largest < negligible(columns, chain):
        after += log_likelihood(chain.logs)
        if -rng.standard_exponential() < after - before:
            chain.numbers[SHAPE] = new
            chain.mass[0] = mass_of(chain.weights)
            return True
    else:
        for k in range(K):
            score(columns, chain.weights[k], chain.new_scores[k])
        after += evaluate_all(columns, chain)
        if -rng.standard_exponential() < after - before:
            chain.numbers[SHAPE] = new
            for k in range(K):
                accept(columns, chain, k, k)
            return True
    go_back(chain)
    return False
