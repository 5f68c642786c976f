"""Generalised inverse Gaussian as a density of x = ln λ: compiled moments and exact draws.

p(λ) ∝ λ^(ν−1) exp(−ψλ − τ/λ) with order ν, rate ψ and tail τ. In x it is log-concave whatever the parameters, with
its mode at m = ln[(ν + r)/(2ψ)] = ln[2τ/(r − ν)], r = √(ν² + ω²), ω = 2√(ψτ). Around the mode, for ν ≥ 0,

    ln p(m + x) = ln p(m) − α (cosh x − 1) − ν (eˣ − x − 1),      α = r − ν = ω²/(r + ν):

two terms that never cancel, and τ → 0 is the Gamma. For ν < 0 the same holds of 1/λ, with ψ and τ exchanged. Moments,
ratios of Bessel functions K_ν(ω) in the textbooks, are sums over this density; no Bessel function is needed.
"""

from __future__ import annotations

import math

from plackett.compute.compiled import jit

WIDEST, NARROWEST = 0.25, 0.5  # step of the sums; the same in standard deviations of a narrow peak
NEGLIGIBLE = -42.0  # log of relative terms that a sum may omit


@jit
def about_mode(order, log_tail, log_rate):
    """Return m, r, α and ln α, for a non-negative order."""
    log_omega = math.log(2.0) + 0.5 * (log_tail + log_rate)
    root = math.hypot(order, math.exp(log_omega))
    log_alpha = 2.0 * log_omega - math.log(root + order)
    return math.log(0.5 * (root + order)) - log_rate, root, math.exp(log_alpha), log_alpha


@jit
def fall(x, order, alpha, log_alpha):
    """Drop of the log-density below its mode, α (cosh x − 1) + ν (eˣ − x − 1); α may have underflowed."""
    far = abs(x)
    if far < 30.0:
        half = math.sinh(0.5 * x)
        drop = 2.0 * alpha * half * half
    else:
        drop = 0.5 * math.exp(log_alpha + far)
    if order > 0.0:
        drop += order * (math.expm1(x) - x)
    return drop


@jit
def slope(x, order, alpha, log_alpha):
    """Derivative of `fall`."""
    far = abs(x)
    rise = alpha * math.sinh(far) if far < 30.0 else 0.5 * math.exp(log_alpha + far)
    return math.copysign(rise, x) + order * math.expm1(x)


@jit
def peak_of_next(shift, order, log_tail, log_rate):
    """Position of the mode at order + shift, relative to the mode at this order."""
    mode = about_mode(order, log_tail, log_rate)[0]
    if order + shift >= 0.0:
        return about_mode(order + shift, log_tail, log_rate)[0] - mode
    return -about_mode(-order - shift, log_rate, log_tail)[0] - mode


@jit
def sums(order, log_tail, log_rate):
    """Return ⟨x⟩, ln⟨eˣ⟩ and ln⟨e⁻ˣ⟩ about the mode, and ln ∫ e^(−fall), for a non-negative order.

    Uses the trapezoidal rule: the integrand is analytic and falls faster than any exponential, so that at these steps
    the error is rounding error. The three integrands may peak far apart, so each is scaled by its own peak.
    """
    mode, root, alpha, log_alpha = about_mode(order, log_tail, log_rate)
    step = min(WIDEST, NARROWEST / math.sqrt(root))
    right, left = peak_of_next(1.0, order, log_tail, log_rate), peak_of_next(-1.0, order, log_tail, log_rate)
    top_right, top_left = right - fall(right, order, alpha, log_alpha), -left - fall(left, order, alpha, log_alpha)
    total, first, up, down = 0.0, 0.0, 0.0, 0.0
    for side in range(2):
        place = float(side)  # zero is on the right
        while True:
            x = -step * place if side else step * place
            drop = -fall(x, order, alpha, log_alpha)
            above, below = drop + x - top_right, drop - x - top_left
            here = math.exp(drop)
            total += here
            first += x * here
            up += math.exp(above)
            down += math.exp(below)
            beyond = x < left if side else x > right
            if beyond and max(drop, above, below) < NEGLIGIBLE:
                break
            place += 1.0
    return first / total, math.log(up / total) + top_right, math.log(down / total) + top_left, math.log(total * step)


@jit
def moments(order, log_tail, log_rate, out):
    """Fill rows of `out`: ⟨ln λ⟩, ln⟨λ⟩, ln⟨1/λ⟩ and ln ∫ λ^(ν−1) exp(−ψλ − τ/λ) dλ, of each law."""
    for i in range(order.size):
        nu, tail, rate = order[i], log_tail[i], log_rate[i]
        sign, up, down = 1.0, 1, 2
        if nu < 0.0:
            sign, up, down, nu, tail, rate = -1.0, 2, 1, -nu, rate, tail
        mode, root, _, _ = about_mode(nu, tail, rate)
        first, log_up, log_down, log_total = sums(nu, tail, rate)
        out[0, i] = sign * (mode + first)
        out[up, i] = mode + log_up
        out[down, i] = log_down - mode
        out[3, i] = nu * mode - root + log_total


@jit
def log_gig_draw(rng, order, log_tail, log_rate):
    """Draw ln λ by rejection from a flat piece and two exponential tails (Devroye 2014, Statistics and Computing 24).

    The expected number of tries is below three for all parameters.
    """
    if order < 0.0:
        return -log_gig_draw_of(rng, -order, log_rate, log_tail)
    return log_gig_draw_of(rng, order, log_tail, log_rate)


@jit
def log_gig_draw_of(rng, order, log_tail, log_rate):
    """Draw ln λ for a non-negative order."""
    mode, root, alpha, log_alpha = about_mode(order, log_tail, log_rate)
    right, left = 1.0, 1.0
    drop = fall(1.0, order, alpha, log_alpha)
    if drop > 2.0:
        right = math.sqrt(2.0 / root)
    elif drop < 0.5:
        right = math.log(4.0 / (alpha + 2.0 * order))
    drop = fall(-1.0, order, alpha, log_alpha)
    if drop > 2.0:
        left = math.sqrt(4.0 / (alpha * math.cosh(1.0) + order))
    elif drop < 0.5:
        left = math.acosh(1.0 + 1.0 / alpha) if alpha > 1e-8 else math.log(2.0) - log_alpha
        if order > 0.0:
            left = min(left, 1.0 / order)
    eta, zeta = fall(right, order, alpha, log_alpha), slope(right, order, alpha, log_alpha)
    theta, xi = fall(-left, order, alpha, log_alpha), -slope(-left, order, alpha, log_alpha)
    flat_right, flat_left = right - eta / zeta, left - theta / xi
    flat = flat_right + flat_left
    while True:
        u = rng.random() * (flat + 1.0 / zeta + 1.0 / xi)
        if u < flat:
            x, envelope = u - flat_left, 0.0
        elif u < flat + 1.0 / zeta:
            x = flat_right + rng.standard_exponential() / zeta
            envelope = -eta - zeta * (x - right)
        else:
            x = -flat_left - rng.standard_exponential() / xi
            envelope = -theta + xi * (x + left)
        if envelope - rng.standard_exponential() <= -fall(x, order, alpha, log_alpha):
            return mode + x


@jit
def log_gig_draws(rng, order, log_tail, log_rate, out):
    """Set `out[i, j]` to draw i of law j."""
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = log_gig_draw(rng, order[j], log_tail[j], log_rate[j])
