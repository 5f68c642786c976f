"""Scalar draws of the sparse logit samplers (Appendix A): mixing variables, logistic latents, scales.

Compiled plain loops: array expressions would add seconds to the compilation. The module knows neither rows nor classes.
HH06 is Holmes & Held (2006), Bayesian Analysis 1, 145–168.
"""

from __future__ import annotations

import numpy as np

from plackett.compute.compiled import jit
from plackett.model.race import Array

PI2 = np.pi**2
SWITCH = 4.0 / 3.0  # λ at which the other series of the mixing density takes over
STEP, CELLS = 1.0 / 32.0, 256  # grid of the squeeze
SMALLEST_VARIANCE = 1e-300  # keeps 1/τ finite


@jit
def draw_gig_half(r, rng):
    """Draw from GIG(1/2, 1, r²), density ∝ λ^(−1/2) exp(−(λ + r²/λ)/2), for r ≥ 0.

    Its reciprocal is inverse Gaussian with mean 1/r and shape 1. The two roots of Michael, Schucany & Haas (1976) are
    written as sums of positive terms: nothing cancels for small r, and r = 0 gives the limit χ²₁.
    """
    chi2 = rng.standard_normal() ** 2
    larger = r + 0.5 * (chi2 + np.sqrt(chi2 * (chi2 + 4.0 * r)))
    if rng.random() * (larger + r) <= larger:
        return larger
    return r * (r / larger)


@jit
def accept_mixing(u, lam):
    """True if u < exp(λ/2) π(λ), π the density of λ = 4ψ², ψ Kolmogorov–Smirnov (HH06, appendix).

    For large λ, π(λ) = Σ_{j≥1} (−1)^(j+1) j² exp(−j²λ/2): partial sums enclose the limit and soon decide.
    For small λ, π(λ) = √(2π) λ^(−5/2) Σ_{j odd} (j²π² − λ) exp(−j²π²/(2λ)): its first two terms are exact in double
    precision, the third being below exp(−12π²/λ) < 1e-38 of them.
    """
    if lam <= SWITCH:
        ratio = lam / PI2
        series = 1.0 - ratio + (9.0 - ratio) * np.exp(-4.0 * PI2 / lam)
        return u < np.sqrt(2.0) * np.pi**2.5 * lam**-2.5 * np.exp(0.5 * lam - 0.5 * PI2 / lam) * series
    q = np.exp(-0.5 * lam)
    total, step, power, j = 1.0, q * q * q, q * q * q, 2.0  # power = q^(j²−1), step = q^(2j−1)
    while True:
        total -= j * j * power
        if u < total:
            return True
        step *= q * q
        power *= step
        j += 1.0
        total += j * j * power
        if u >= total:
            return False
        step *= q * q
        power *= step
        j += 1.0


def acceptance_grid() -> Array:
    """Tabulate exp(λ/2) π(λ), an increasing function, at the multiples of STEP: neighbours are bounds between them."""
    lam = STEP * np.arange(1, CELLS + 1)[:, None]
    j = np.arange(1.0, 40.0)
    large = np.sum((-1.0) ** (j + 1) * j**2 * np.exp(-0.5 * (j**2 - 1.0) * lam), axis=1)
    odd = (2.0 * j - 1.0) ** 2 * PI2
    small = np.sum(np.sqrt(2.0 * np.pi) * lam**-2.5 * (odd - lam) * np.exp(0.5 * lam - 0.5 * odd / lam), axis=1)
    return np.concatenate([[0.0], np.where(lam[:, 0] > SWITCH, large, small)])


SURELY_BELOW = acceptance_grid() - 1e-12
SURELY_ABOVE = acceptance_grid() + 1e-12


@jit
def draw_mixing(r, rng):
    """Draw λ given a residual ±r: density ∝ N(r | 0, λ) π(λ), by rejection from GIG(1/2, 1, r²) (HH06, appendix).

    Needs two proposals on average; the grid decides nearly all of them, the series the others.
    """
    if np.isnan(r):
        return r
    while True:
        lam = draw_gig_half(r, rng)
        u = rng.random()
        cell = int(min(lam / STEP, CELLS))
        if u < SURELY_BELOW[cell]:
            return lam
        if cell < CELLS and u > SURELY_ABOVE[cell + 1]:
            continue
        if accept_mixing(u, lam):
            return lam


@jit
def draw_logistic_above(mu, rng):
    """Draw a standard logistic ρ given ρ > −μ, by inversion of the survival function, which no μ overflows."""
    u = 1.0 - rng.random()  # in (0, 1]
    if mu > 0.0:
        return np.log((np.exp(-mu) + (1.0 - u)) / u)
    return -mu + np.log((1.0 + (1.0 - u) * np.exp(mu)) / u)


@jit
def draw_variances(beta, theta, rng, tau):
    """Draw τ_kj given β_kj and θ into `tau`: 1/τ ~ iGauss(mean √θ/|β|, shape θ) (Appendix A, corrected)."""
    root = np.sqrt(theta)
    for k in range(beta.shape[0]):
        for j in range(beta.shape[1]):
            tau[k, j] = max(draw_gig_half(root * abs(beta[k, j]), rng) / theta, SMALLEST_VARIANCE)


@jit
def draw_penalty(tau, shape, rate, rng):
    """Draw θ given τ ~ Gam((K−1)p + c, Σ τ/2 + d): equation (20), corrected; `tau` has the K−1 free classes only."""
    total = 0.0
    for value in tau.flat:
        total += value
    return rng.standard_gamma(tau.size + shape) / (0.5 * total + rate)


@jit
def draw_penalty_collapsed(beta, shape, rate, rng):
    """Draw θ given β with τ integrated out; not in the paper.

    s = √θ has density ∝ s^(q+2c−1) exp(−s Σ|β| − d s²), q = (K−1)p. Proposals are Gamma, with the tangent of d s² at
    the mode in the exponent; each is accepted with probability exp(−d (s − mode)²).
    """
    total, power = 0.0, beta.size + 2.0 * shape
    for value in beta.flat:
        total += abs(value)
    mode = 2.0 * power / (total + np.sqrt(total * total + 8.0 * rate * power))
    while True:
        s = rng.standard_gamma(power) / (total + 2.0 * rate * mode)
        if rng.random() < np.exp(-rate * (s - mode) ** 2):
            return s * s
