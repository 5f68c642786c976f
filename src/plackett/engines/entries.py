"""Compiled passes over situations: rates and scatter of blocks that threads share.

`plackett.engines.situations` defines these quantities, with the NumPy reference.
"""

from __future__ import annotations

import math

import numpy as np

from plackett.compute.compiled import jit
from plackett.compute.vectors import dot
from plackett.engines.situations import KEY_OF_WINS, TINY
from plackett.model.draws import begin, share_out


@jit
def dots(W, situations, first, last, weights, out):
    """Write W_e·λ_g of the entries of situations first ≤ t < last into `out`."""
    base = situations.outcomes.start[first]
    for e in range(base, situations.outcomes.start[last]):
        out[e - base] = dot(W[situations.row[e]], weights[situations.group[e]])


@jit
def rates(situations, first, last, waited, factor, rates):
    """Write r_e into `rates`; positive rates are at least 1e-280."""
    base = situations.outcomes.start[first]
    for e in range(base, situations.outcomes.start[last]):
        rate = waited[e - base]
        rates[e - base] = max(rate * factor[situations.group[e]], TINY) if rate > 0.0 else 0.0


@jit
def add_gain(situations, first, last, arrivals, arrived, own_scale, waited, rival_scale, values):
    """Add Σ ln(W_e·U_g) − ln(W_e·V_g) of arrived entries to V, which uses the rival weights."""
    start = situations.outcomes.start
    for t in range(first, last):
        for e in range(start[t], start[t + 1]):
            i, g = e - start[first], situations.group[e]
            if arrivals[i] > 0.0:
                values[t] += math.log(arrived[i]) - math.log(waited[i]) + own_scale[g] - rival_scale[g]


@jit
def scatter(W, situations, first, last, arrivals, arrived, at_risk, wins, exposure):
    """Add c n_e W_ej / W_e·U_g to the wins (before multiplication by U_gj), and c s_e W_ej to the exposure."""
    start = situations.outcomes.start
    for t in range(first, last):
        count = situations.outcomes.counts[t]
        for e in range(start[t], start[t + 1]):
            i, g, r = e - start[first], situations.group[e], situations.row[e]
            time = count * at_risk[i]
            for j in range(W.shape[1]):
                exposure[g, j] += time * W[r, j]
            if arrivals[i] > 0.0 and arrived[i] > 0.0:
                claim = count * arrivals[i] / arrived[i]
                for j in range(W.shape[1]):
                    wins[g, j] += claim * W[r, j]


@jit
def scatter_draws(W, situations, first_entry, first, last, key, arrivals, own, arrived, at_risk, wins, exposure):
    """Add draws of the winning features, equation (11), to the wins, and s_e W_ej to the exposure."""
    start, stream = situations.outcomes.start, np.empty(1, dtype=np.uint64)
    for t in range(first, last):
        for e in range(start[t], start[t + 1]):
            i, g, r = e - start[first], situations.group[e], situations.row[e]
            for j in range(W.shape[1]):
                exposure[g, j] += at_risk[i] * W[r, j]
            if arrivals[i] > 0.0 and arrived[i] > 0.0:
                begin(stream, key ^ KEY_OF_WINS, first_entry[t] + e - start[t])
                share_out(arrivals[i], W[r], own[g], arrived[i], stream, wins[g])
