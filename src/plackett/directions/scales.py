"""Exact moves of the scales with directions fixed, which need no row.

β_jf = s_f (σ_0 u_kf + σ_1 v_jf), and many rows determine β well: with u and v fixed, s and σ could move as little as β
may. Here β is fixed (interweaving: Yu & Meng 2011). Four moves preserve the prior given β:

    s_f → s_f e^δ,  u_f, v_f → u_f e^−δ, v_f e^−δ          and so for σ_0 with u, and for σ_1 with v;
    s → s e^δ,      σ → σ e^−δ;
    u_k | β ~ N(σ_0 Σ_j b_j / (σ_1² + m σ_0²), σ_1² / (σ_1² + m σ_0²)),   b_j = σ_0 u_k + σ_1 v_j of its m components.

The first three are Metropolis steps; n coordinates multiplied by e^−δ have the Jacobian e^−nδ.
"""

from __future__ import annotations

import numpy as np

from plackett.compute.compiled import NOTHING, REALS, RNG, WHOLE, apart, inner
from plackett.directions.prior import PRIOR

REPEATS = 4
FOR_COLUMN, FOR_ALL, FOR_BOTH = 0.25, 0.12, 0.2  # standard deviations of δ: for s_f, for σ, for s against σ


@inner
def stretch(q, at, centre, spread, squares, n, step, rng):
    """Return δ for the log-normal scale at q[at], given n standard normal numbers with this sum of squares; 0: stay."""
    change = step * rng.standard_normal()
    before, after = (q[at] - centre) / spread, (q[at] + change - centre) / spread
    gain = -0.5 * squares * (np.exp(-2 * change) - 1) - n * change - 0.5 * (after * after - before * before)
    return change if np.log(rng.random()) < gain else 0.0


@inner
def shrink(q, first, last, step, change):
    """Multiply q[first:last:step] by e^−δ; return its previous sum of squares."""
    squares, factor = 0.0, np.exp(-change)
    for i in range(first, last, step):
        squares += q[i] * q[i]
        q[i] *= factor
    return squares


@inner
def exchange_scales(q, s, d, prior, rng):
    """Move s → s e^δ, σ → σ e^−δ."""
    change, gain = FOR_BOTH * rng.standard_normal(), 0.0
    for i in range(d + 2):
        centre = 0.0 if i < d else prior.scale_centre[i - d]
        spread = prior.covariate_spread if i < d else prior.scale_spread[i - d]
        moved = q[s + i] + (change if i < d else -change)
        gain -= 0.5 * ((moved - centre) ** 2 - (q[s + i] - centre) ** 2) / spread**2
    if np.log(rng.random()) < gain:
        for i in range(d + 2):
            q[s + i] += change if i < d else -change


@inner
def draw_shared(q, d, prior, rng):
    """Draw u given β, and update v."""
    (K, M), owners = prior.shape.shape, prior.owner[-1] + 1
    v, sigma = owners * d, (owners + M) * d + K * M + d
    shared, single = np.exp(q[sigma]), np.exp(q[sigma + 1])
    for k in range(owners):
        for f in range(d):
            whole, m = 0.0, 0
            for j in range(M):
                if prior.owner[j] == k:
                    whole += shared * q[k * d + f] + single * q[v + j * d + f]
                    m += 1
            precise = single * single + m * shared * shared
            u = (shared * whole + single * np.sqrt(precise) * rng.standard_normal()) / precise
            for j in range(M):
                if prior.owner[j] == k:
                    q[v + j * d + f] += shared * (q[k * d + f] - u) / single
            q[k * d + f] = u


@apart(NOTHING(REALS, WHOLE, PRIOR, RNG))
def renew_scales(q, d, prior, rng):
    """Move s, σ, u and v of a position with β fixed."""
    (K, M), owners = prior.shape.shape, prior.owner[-1] + 1
    v, end, s = owners * d, (owners + M) * d, (owners + M) * d + K * M
    sigma = s + d
    for _ in range(REPEATS):
        for f in range(d):
            squares = shrink(q, f, end, d, 0.0)
            change = stretch(q, s + f, 0.0, prior.covariate_spread, squares, owners + M, FOR_COLUMN, rng)
            q[s + f] += change
            shrink(q, f, end, d, change)
        for i in range(2):
            first, last = (0, v) if i == 0 else (v, end)
            squares, centre, spread = shrink(q, first, last, 1, 0.0), prior.scale_centre[i], prior.scale_spread[i]
            change = stretch(q, sigma + i, centre, spread, squares, last - first, FOR_ALL, rng)
            q[sigma + i] += change
            shrink(q, first, last, 1, change)
        exchange_scales(q, s, d, prior, rng)
        draw_shared(q, d, prior, rng)
