"""Updates after a pass if the response identifies the scale Λ of the weights, as race ties do: Λ is not redrawn.

The state of a chain is the same, with ln λ̄ and ln Λ separate, so that other code need not distinguish the cases.
"""

from __future__ import annotations

import math

from plackett.compute.compiled import inner, jit
from plackett.inference.sweeps import (
    LOG_MASS,
    LOG_STEP,
    SHAPE,
    log_add,
    log_gamma_draw,
    log_prior,
    normalise,
    step_shape,
)
from plackett.model.gig import log_gig_draw


@inner
def draw_weights(rng, state, wins, exposure, target):
    """Draw λ_kj ~ Gam(a + n_kj, b + s_kj), equation (13), or GIG(a + n_kj, tail, b + s_kj)."""
    log_weights, numbers = state
    for k in range(log_weights.shape[0]):
        for j in range(log_weights.shape[1]):
            log_rate = log_add(math.log(target.rate), math.log(exposure[k, j]))
            if target.tail > 0.0:
                order = numbers[SHAPE] + wins[k, j]
                log_weights[k, j] = log_gig_draw(rng, order, math.log(target.tail), log_rate)
            else:
                log_weights[k, j] = log_gamma_draw(rng, numbers[SHAPE] + wins[k, j]) - log_rate
    numbers[LOG_MASS] = normalise(log_weights)


@inner
def log_gammas(shape, rate, size, sum_log_weights):
    """Log-density of `size` weights λ ~ Gam(a, b), without terms free of a."""
    return size * (shape * math.log(rate) - math.lgamma(shape)) + shape * sum_log_weights


@inner
def draw_shape(rng, state, target, adapt):
    """Metropolis–Hastings on ln a given λ (section 3.5).

    Accept with p(λ|a′) p(a′) a′ / (p(λ|a) p(a) a).
    """
    log_weights, numbers = state
    size, total = log_weights.size, log_weights.size * numbers[LOG_MASS]
    for k in range(log_weights.shape[0]):
        for j in range(log_weights.shape[1]):
            total += log_weights[k, j]
    old = math.log(numbers[SHAPE])
    new = old + math.exp(numbers[LOG_STEP]) * rng.standard_normal()
    log_ratio = log_prior(target, new) - log_prior(target, old)
    if log_ratio > -math.inf:
        log_ratio += log_gammas(math.exp(new), target.rate, size, total)
        log_ratio -= log_gammas(math.exp(old), target.rate, size, total)
    step_shape(rng, numbers, new, log_ratio, adapt)


@jit
def update(rng, state, wins, exposure, target, adapt):
    """Draw by (13), then a given λ; exposure (K, p) is in units of the weights."""
    draw_weights(rng, state, wins, exposure, target)
    if target.learn:
        draw_shape(rng, state, target, adapt)


@jit
def redraw_shape(rng, state, target, adapt, steps):
    """Do more steps of a given λ."""
    for _ in range(steps):
        draw_shape(rng, state, target, adapt)
