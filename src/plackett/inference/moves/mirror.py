"""Mirror move: the effect of a variable can sit at (k, exp x) or at (l, exp −x); the move carries it across."""

from __future__ import annotations

import math

import numpy as np

from plackett.compute.compiled import RNG, TRUTH, apart, inner, jit
from plackett.inference.moves.chain import CHAIN, keep, metropolis, rescore, scale_peak
from plackett.inference.moves.rows import COLUMNS, sum_of
from plackett.inference.moves.weight_moves import pick

MOST = 3  # maximum number of variables mirrored at once
SPREAD = 0.25
EXTREME = 1e6  # larger shares are rejected, in both directions


@inner
def variable_activity(columns, chain, k, l, level, out):
    """Compute f_v = h/(h + level), h the share of variable v (a feature and its mirror) in classes k and l."""
    mass_k, mass_l = sum_of(chain.weights[k]), sum_of(chain.weights[l])
    for j in range(out.size):
        i = columns.mirror[j]
        out[j] = 0.0
        if j <= i:
            h = chain.weights[k, j] / mass_k + chain.weights[l, j] / mass_l
            if i != j:
                h += chain.weights[k, i] / mass_k + chain.weights[l, i] / mass_l
            out[j] = h / (h + level)


@jit
def log_chance(activity, chosen):
    """ln probability of drawing these variables in this order, without replacement; their activity becomes 0.

    The remaining sum is recomputed each time: a running difference would lose all digits after the active variables.
    """
    result = 0.0
    for v in chosen:
        if not activity[v] > 0.0:
            return -np.inf
        result += math.log(activity[v] / sum_of(activity))
        activity[v] = 0.0
    return result


@apart(TRUTH(COLUMNS, CHAIN, RNG), allocates=True)
def mirror(columns, chain, rng):
    """Mirror one to three variables V between two classes and keep the level of both.

    Let A_k = Σ_{j∉V} λ_kj and φ_kj = θ_kj − ln A_k. For j in V, with m(j) its mirror,

        φ′_{k,m(j)} = φ_{l,j} + d_v,   φ′_{l,m(j)} = φ_{k,j} − d_v,   ln A′_k = ln A_k + t,   ln A′_l = ln A_l − t,

    d_v ~ N(0, s²) and t = ln((1+q_k)/(1+q′_k)) + N(0, s²/4), q_k = Σ_V e^φ_k. The same d and the opposite noise in t
    lead back, the Jacobian is 1 and Σθ is kept. V is drawn in order with chances f_v = h/(h + ε): accept with

        L′/L · (Λ′/Λ)^(−aM) · P(V|new)/P(V|old).
    """
    K, p = chain.theta.shape
    k = int(rng.random() * K)
    l = (k + 1 + int(rng.random() * (K - 1))) % K
    level = math.exp(-7.0 + 5.0 * rng.random())
    m = 1 + int(rng.random() * MOST)
    activity = np.empty(p)
    variable_activity(columns, chain, k, l, level, activity)
    chosen, log_ratio = np.empty(m, dtype=np.int64), 0.0
    for i in range(m):
        left = sum_of(activity)
        chosen[i] = pick(activity, left, rng.random())
        if activity[chosen[i]] == 0.0:  # fewer variables than m: rejected from every state
            return False
        log_ratio -= math.log(activity[chosen[i]] / left)
        activity[chosen[i]] = 0.0

    keep(chain)
    changed, count = np.empty(2 * m, dtype=np.int64), 0
    in_k = in_l = to_k = to_l = 0.0
    noise = np.empty(m)
    for i in range(m):
        noise[i] = SPREAD * rng.standard_normal()
        j = chosen[i]
        for _ in range(1 if columns.mirror[j] == j else 2):
            in_k += chain.weights[k, j]
            in_l += chain.weights[l, j]
            to_k += chain.weights[l, j] * math.exp(noise[i])
            to_l += chain.weights[k, j] * math.exp(-noise[i])
            changed[count] = j
            count += 1
            j = columns.mirror[j]
    rest_k, rest_l = sum_of(chain.weights[k]) - in_k, sum_of(chain.weights[l]) - in_l
    jitter = 0.5 * SPREAD * rng.standard_normal()
    if not (
        in_k < EXTREME * rest_k and in_l < EXTREME * rest_l and to_k < EXTREME * rest_l and to_l < EXTREME * rest_k
    ):
        return False
    t = math.log((1.0 + in_k / rest_k) / (1.0 + to_k / rest_l)) + jitter
    across = math.log(rest_k / rest_l)
    for i in range(m):
        j = chosen[i]
        for _ in range(1 if columns.mirror[j] == j else 2):
            g = columns.mirror[j]
            chain.theta[k, g] = chain.old_theta[l, j] + across + noise[i]
            chain.theta[l, g] = chain.old_theta[k, j] - across - noise[i]
            chain.weights[k, g], chain.weights[l, g] = math.exp(chain.theta[k, g]), math.exp(chain.theta[l, g])
            j = g
    up, down = math.exp(t), math.exp(-t)
    for j in range(p):
        chain.theta[k, j] += t
        chain.theta[l, j] -= t
        chain.weights[k, j] *= up
        chain.weights[l, j] *= down
    rescore(columns, chain, k, up, changed[:count])
    rescore(columns, chain, l, down, changed[:count])
    variable_activity(columns, chain, k, l, level, activity)
    moved = metropolis(columns, chain, rng, k, l, log_ratio + log_chance(activity, chosen))
    if moved:
        scale_peak(columns, chain, k, up)
        scale_peak(columns, chain, l, down)
    return moved
