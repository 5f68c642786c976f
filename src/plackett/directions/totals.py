"""Totals of each group's weights, separate from their division among components: coordinates for many rows.

Σ_j λ_kj is the rate of item k for an average person. Many rows determine it to a few per cent, but hardly its division
among components. In ln λ this is a curved ridge, along which chains mix slowly. With

    λ_kj = T_k g_kj / Σ_j g_kj,      g_kj ~ Gam(a_kj, 1),  T_k ~ Gam(Σ_j a_kj, 1),

λ keeps its law λ_kj ~ Gam(a_kj, 1) (Lukacs 1955); T_k is a separate coordinate, and Σ_j g_kj is free. Most responses do
not identify the scale of all λ: ln T = Rζ with the reflection R that maps the first axis to the mean of all, so that
ζ_0 is this scale and the other coordinates are equally narrow.

A position with totals is a position without them, with g in place of λ, followed by ζ (K,).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from plackett.compute.compiled import NOTHING, REAL, REALS, TABLE, apart, inner, record
from plackett.directions.positions import PLACE
from plackett.directions.prior import PRIOR, Prior
from plackett.model.race import Array


class Totals(NamedTuple):
    """Totals and weights at a position."""

    log_total: Array  # (K,): ln T
    log_weights: Array  # (K, M): ln λ


TOTALS = record(Totals, REALS, TABLE)


def make_totals(prior: Prior) -> Totals:
    """Allocate memory for one chain."""
    return Totals(np.empty(len(prior.shape)), np.empty(prior.shape.shape))


@inner
def reflect(x, first, n, out, start):
    """Set out = Rx for the n numbers from x[first] on; R is its own inverse. Both arrays may be the same."""
    root, along = np.sqrt(n), 0.0
    for k in range(n):
        along += x[first + k] / root
    along -= x[first]  # w·x of w = 1/√n − e_0, |w|² = 2 − 2/√n
    step = along / (1 - 1 / root) if n > 1 else 0.0
    for k in range(n):
        out[start + k] = x[first + k] - step / root
    out[start] += step


@apart(NOTHING(REALS, PRIOR, PLACE, TOTALS))
def share_out(q, prior, place, totals):
    """Compute ln λ = ln T_k + ln g_kj − ln Σ_j g_kj; without totals ln λ = ln g."""
    K, M = place.log_weights.shape
    if prior.totals:
        reflect(q, len(q) - K, K, totals.log_total, 0)
    for k in range(K):
        shift = 0.0
        if prior.totals:
            peak, whole = -np.inf, 0.0
            for j in range(M):
                peak = max(peak, place.log_weights[k, j])
            for j in range(M):
                whole += np.exp(place.log_weights[k, j] - peak)
            shift = totals.log_total[k] - peak - np.log(whole)
        for j in range(M):
            totals.log_weights[k, j] = place.log_weights[k, j] + shift


@apart(REAL(REALS, REALS, PRIOR, TOTALS, REAL, TABLE))
def take_back(q, gradient, prior, totals, value, to_log_weights):
    """Add the prior of T to the value, and transform slopes in ln λ to slopes in ln g and ζ."""
    K, M = to_log_weights.shape
    if not prior.totals:
        return value
    first = len(q) - K
    for k in range(K):
        slope, shape, log_total = 0.0, 0.0, totals.log_total[k]
        for j in range(M):
            slope += to_log_weights[k, j]
            shape += prior.shape[k, j]
        for j in range(M):
            to_log_weights[k, j] -= slope * np.exp(totals.log_weights[k, j] - log_total)
        value += shape * log_total - np.exp(log_total)
        gradient[first + k] = slope + shape - np.exp(log_total)
    reflect(gradient, first, K, gradient, first)
    return value
