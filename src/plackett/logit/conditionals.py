"""Common parts of both samplers of the sparse logit: coefficients given a working regression, scales, and extra moves.

Pr(y = k | x) ∝ exp(x·β_k), the last class having β = 0; β_kj ~ N(0, τ_kj), τ_kj ~ Exp(θ/2), so that β_kj is Laplace
with rate √θ; θ ~ Gam(c, d) or fixed (Appendix A). Column 0 of X is 1; an unpenalised intercept has a normal prior. The
module knows nothing of the latent variables behind the working regression.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from plackett.compute.compiled import jit
from plackett.logit.draws import draw_penalty, draw_penalty_collapsed, draw_variances
from plackett.logit.gaussian import combine, draw_tall, draw_wide
from plackett.model.race import Array

SLICE_WIDTH = 0.25  # initial bracket of the rescaling, in ln of the scale


class LogitModel(NamedTuple):
    """Rows and prior: everything that is constant during a run."""

    X: Array  # (n, p), the first column 1
    Xt: Array  # (p, n), transpose of X
    y: npt.NDArray[np.int64]  # (n,) class numbers 0 to K−1
    n_classes: int
    n_unpenalised: int  # 1 if the intercept has its own normal prior, else 0
    intercept_variance: float
    shape: float  # c
    rate: float  # d
    penalty: float  # fixed θ, or 0 if θ is sampled
    collapse: bool  # draw θ | β instead of θ | τ
    shift: bool  # update the baseline class too
    rescale: bool  # draw the common scale of (β, τ, θ)


class LogitState(NamedTuple):
    """State of a chain."""

    beta: Array  # (K−1, p)
    tau: Array  # (K−1, p), prior variances of beta
    theta: Array  # (1,)
    eta: Array  # (K, n), x·β_k; the last row 0


@jit
def update_scales(model, state, rng):
    """Draw τ and θ: in the paper's order, τ | β, θ then (20); or as one block, θ | β then τ | β, θ."""
    first = model.n_unpenalised
    beta, tau = state.beta[:, first:], state.tau[:, first:]
    if model.collapse and model.penalty == 0.0:
        state.theta[0] = draw_penalty_collapsed(beta, model.shape, model.rate, rng)
    draw_variances(beta, state.theta[0], rng, tau)
    if not model.collapse and model.penalty == 0.0:
        state.theta[0] = draw_penalty(tau, model.shape, model.rate, rng)


@jit
def offset(eta, k, out):
    """Write C_ik = ln Σ_{l≠k} exp(x_i·β_l) (HH06, section 4) into `out`."""
    n_classes, n = eta.shape
    if n_classes == 2:
        for i in range(n):
            out[i] = eta[1 - k, i]
        return
    for i in range(n):
        top = -np.inf
        for l in range(n_classes):
            if l != k:
                top = max(top, eta[l, i])
        total = 0.0
        for l in range(n_classes):
            if l != k:
                total += np.exp(eta[l, i] - top)
        out[i] = top + np.log(total)


@jit
def log_likelihood(eta, y, scale):
    """Return Σ_i ln Pr(y_i | x_i) at the linear predictors scale·eta; one logarithm serves 16 rows."""
    n_classes, n = eta.shape
    value, product = 0.0, 1.0
    for i in range(n):
        top = eta[0, i]
        for l in range(1, n_classes):
            top = max(top, eta[l, i])
        total = 0.0
        for l in range(n_classes):
            total += np.exp(scale * (eta[l, i] - top))
        product *= total
        value += scale * (eta[y[i], i] - top)
        if i % 16 == 15:
            value -= np.log(product)
            product = 1.0
    return value - np.log(product)


@jit
def draw_coefficients(model, weight, response, variance, rng):
    """Draw β given the working regression response ~ N(Xβ, 1/weight) and its prior N(0, variance)."""
    if model.X.shape[1] <= model.X.shape[0]:
        return draw_tall(model.Xt, weight, response, variance, rng)
    return draw_wide(model.X, weight, response, variance, rng)


@jit
def update_coefficients(model, state, k, weight, response, rng):
    """Draw β_k given its working regression; for the baseline, shift all the others."""
    if k == model.n_classes - 1:
        shift_baseline(model, state, weight, response, rng)
        return
    drawn = draw_coefficients(model, weight, response, state.tau[k], rng)
    for j in range(drawn.size):
        state.beta[k, j] = drawn[j]
    combine(model.Xt, drawn, state.eta[k])


@jit
def shift_baseline(model, state, weight, response, rng):
    """Draw δ as if the baseline's β = δ were free, then subtract it from all classes; not in the paper.

    This changes no probability. It is a Gibbs step along β_k − δ: the prior of δ is the product over k of N(β_k − δ |
    0, τ_k), which is normal. It weakens the dependence between classes that slows the sampler for K > 2.
    """
    free, p = state.beta.shape
    variance, mean, moved, left = np.empty(p), np.empty(p), np.empty(model.y.size), np.empty(model.y.size)
    for j in range(p):
        precision, pull = 0.0, 0.0
        for k in range(free):
            precision += 1.0 / state.tau[k, j]
            pull += state.beta[k, j] / state.tau[k, j]
        variance[j], mean[j] = 1.0 / precision, pull / precision
    combine(model.Xt, mean, moved)
    for i in range(left.size):
        left[i] = response[i] - moved[i]
    delta = draw_coefficients(model, weight, left, variance, rng)
    for j in range(p):
        delta[j] += mean[j]
        for k in range(free):
            state.beta[k, j] -= delta[j]
    combine(model.Xt, delta, moved)
    for k in range(free):
        for i in range(moved.size):
            state.eta[k, i] -= moved[i]


@jit
def log_density_along(h, power, low, high, eta, y):
    """Return the log-density of the rescaling at h = ln g."""
    return power * h - low * np.exp(-2.0 * h) - high * np.exp(2.0 * h) + log_likelihood(eta, y, np.exp(h))


@jit
def rescale(model, state, rng):
    """Slice-sample g along (gβ, g²τ, θ/g²), or along (gβ, g²τ) for fixed θ; not in the paper.

    Along that line the prior of β and τ is a power of g, so in h = ln g, with the Haar measure, the log-density is
    power·h − low·exp(−2h) − high·exp(2h) + log-likelihood(g·eta).
    """
    first, (free, p) = model.n_unpenalised, state.beta.shape
    high, total_tau = 0.0, 0.0
    for k in range(free):
        for j in range(p):
            if j < first:
                high += 0.5 * state.beta[k, j] ** 2 / model.intercept_variance
            else:
                total_tau += state.tau[k, j]
    if model.penalty == 0.0:
        power, low = first * free - 2.0 * model.shape, model.rate * state.theta[0]
    else:
        power, low = first * free + 2.0 * free * (p - first), 0.0
        high += 0.5 * model.penalty * total_tau
    level = log_density_along(0.0, power, low, high, state.eta, model.y) - rng.standard_exponential()
    left = -SLICE_WIDTH * rng.random()
    right = left + SLICE_WIDTH
    while log_density_along(left, power, low, high, state.eta, model.y) > level:
        left -= SLICE_WIDTH
    while log_density_along(right, power, low, high, state.eta, model.y) > level:
        right += SLICE_WIDTH
    h = left + (right - left) * rng.random()
    while log_density_along(h, power, low, high, state.eta, model.y) <= level and right - left > 1e-12:
        if h < 0.0:
            left = h
        else:
            right = h
        h = left + (right - left) * rng.random()
    g = np.exp(h)
    for k in range(free):
        for j in range(p):
            state.beta[k, j] *= g
            if j >= first:
                state.tau[k, j] *= g * g
        for i in range(model.y.size):
            state.eta[k, i] *= g
    if model.penalty == 0.0:
        state.theta[0] /= g * g
