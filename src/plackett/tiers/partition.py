"""Moves of the partition of items into tiers, given the arrivals n and times at risk s of a pass; no row in sight.

λ_k ~ G with G ~ DP(α, Gam(a, b)). With λ integrated out, a tier with N = Σ n and S = Σ s has the marginal likelihood
b^a Γ(a+N) / [Γ(a) (b+S)^(a+N)], and a partition into H tiers the prior probability ∝ α^H Π (size − 1)!. Times at risk
are in units of the total worth Λ of the tiers, so that b stands as bΛ, given as its logarithm: Λ may underflow.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from plackett.compute.compiled import inner, jit
from plackett.inference.sweeps import log_gamma, log_gamma_draw
from plackett.model.race import Array

Labels = npt.NDArray[np.int64]


class Given(NamedTuple):
    """What a partition depends on: arrivals and times at risk (K,), a, ln bΛ and α."""

    arrivals: Array
    at_risk: Array
    shape: float
    log_rate: float
    concentration: float


class Sums(NamedTuple):
    """Number of items, arrivals and times at risk of each tier, its ln marginal, and scratch, (K + 1,)."""

    size: Labels
    arrivals: Array
    at_risk: Array
    value: Array
    scratch: Array


def sums_for(K: int) -> Sums:
    """Allocate sums for K items."""
    return Sums(np.zeros(K + 1, dtype=np.int64), *(np.zeros(K + 1) for _ in range(4)))


@inner
def log_sum(log_rate, at_risk):
    """ln(b + S)."""
    if at_risk <= 0.0:
        return log_rate
    log_risk = math.log(at_risk)
    return max(log_rate, log_risk) + math.log1p(math.exp(-abs(log_rate - log_risk)))


@inner
def log_marginal(arrivals, at_risk, given):
    """ln of the marginal likelihood of a tier, without the constant a ln b − ln Γ(a)."""
    order = given.shape + arrivals
    return log_gamma(order) - order * log_sum(given.log_rate, at_risk)


@inner
def constant(given):
    """a ln b − ln Γ(a), once for each tier."""
    return given.shape * given.log_rate - log_gamma(given.shape)


@inner
def count(tier, given, sums):
    """Compute the sums of all tiers, and return their number."""
    H = 0
    for k in range(tier.size):
        H = max(H, tier[k] + 1)
    for h in range(H):
        sums.size[h], sums.arrivals[h], sums.at_risk[h] = 0, 0.0, 0.0
    for k in range(tier.size):
        sums.size[tier[k]] += 1
        sums.arrivals[tier[k]] += given.arrivals[k]
        sums.at_risk[tier[k]] += given.at_risk[k]
    for h in range(H):
        sums.value[h] = log_marginal(sums.arrivals[h], sums.at_risk[h], given)
    return H


@inner
def choose(rng, logs, n):
    """Draw an index below n with probability proportional to the exponentials of `logs`, which are overwritten."""
    top, total = -math.inf, 0.0
    for h in range(n):
        top = max(top, logs[h])
    for h in range(n):
        logs[h] = math.exp(logs[h] - top)
        total += logs[h]
    left = total * rng.random()
    for h in range(n - 1):
        left -= logs[h]
        if left < 0.0:
            return h
    return n - 1


@inner
def scan(rng, tier, given, sums, H):
    """Draw the tier of each item given those of the others (Neal 2000, algorithm 3); return the number of tiers."""
    alone, logs = math.log(given.concentration) + constant(given), sums.scratch
    for k in range(tier.size):
        n, s, h = given.arrivals[k], given.at_risk[k], tier[k]
        sums.size[h] -= 1
        if sums.size[h] == 0:
            H -= 1
            sums.size[h], sums.arrivals[h] = sums.size[H], sums.arrivals[H]
            sums.at_risk[h], sums.value[h] = sums.at_risk[H], sums.value[H]
            for i in range(tier.size):
                if tier[i] == H:
                    tier[i] = h
        else:
            sums.arrivals[h] -= n
            sums.at_risk[h] = max(sums.at_risk[h] - s, 0.0)
            sums.value[h] = log_marginal(sums.arrivals[h], sums.at_risk[h], given)
        for h in range(H):
            joined = log_marginal(sums.arrivals[h] + n, sums.at_risk[h] + s, given)
            logs[h] = math.log(sums.size[h]) + joined - sums.value[h]
        logs[H] = alone + log_marginal(n, s, given)
        h = choose(rng, logs, H + 1)
        if h == H:
            sums.size[h], sums.arrivals[h], sums.at_risk[h] = 0, 0.0, 0.0
            H += 1
        tier[k] = h
        sums.size[h] += 1
        sums.arrivals[h] += n
        sums.at_risk[h] += s
        sums.value[h] = log_marginal(sums.arrivals[h], sums.at_risk[h], given)
    return H


@inner
def split_or_merge(rng, tier, given, sums, H, items):
    """Split a tier or merge two, by sequential allocation (Dahl 2005); return the number of tiers.

    Two items are drawn. If they share a tier, the others of it join one of the two in random order, with the
    probabilities of a scan; else the two tiers are merged, and the probability of the reverse split is that of such an
    allocation.
    """
    K = tier.size
    i = int(rng.random() * K)
    j = int(rng.random() * (K - 1))
    if j >= i:
        j += 1
    old, other = tier[i], tier[j]
    together = old == other
    m = 0
    for k in range(K):
        if (tier[k] == old or tier[k] == other) and k != i and k != j:
            items[m] = k
            m += 1
    for t in range(m - 1, 0, -1):
        u = int(rng.random() * (t + 1))
        items[t], items[u] = items[u], items[t]
    sizes = 1.0, 1.0
    n, s = (given.arrivals[i], given.arrivals[j]), (given.at_risk[i], given.at_risk[j])
    v = log_marginal(n[0], s[0], given), log_marginal(n[1], s[1], given)
    proposal = 0.0
    for t in range(m):
        k = items[t]
        n0, s0 = n[0] + given.arrivals[k], s[0] + given.at_risk[k]
        n1, s1 = n[1] + given.arrivals[k], s[1] + given.at_risk[k]
        v0, v1 = log_marginal(n0, s0, given), log_marginal(n1, s1, given)
        odds = math.log(sizes[1] / sizes[0]) + (v1 - v[1]) - (v0 - v[0])
        second = rng.random() < 1.0 / (1.0 + math.exp(-odds)) if together else tier[k] == other
        if second:
            proposal -= math.log1p(math.exp(-odds)) if odds > -700.0 else -odds
            n, s, v, sizes = (n[0], n1), (s[0], s1), (v[0], v1), (sizes[0], sizes[1] + 1.0)
            items[t] = -1 - k
        else:
            proposal -= math.log1p(math.exp(odds)) if odds < 700.0 else odds
            n, s, v, sizes = (n0, n[1]), (s0, s[1]), (v0, v[1]), (sizes[0] + 1.0, sizes[1])
    whole = log_marginal(n[0] + n[1], s[0] + s[1], given)
    gain = math.log(given.concentration) + constant(given) + v[0] + v[1] - whole - proposal
    gain += log_gamma(sizes[0]) + log_gamma(sizes[1]) - log_gamma(sizes[0] + sizes[1])
    if -rng.standard_exponential() >= (gain if together else -gain):
        return H
    if together:
        tier[j] = H
        for t in range(m):
            if items[t] < 0:
                tier[-1 - items[t]] = H
        return H + 1
    for k in range(K):
        if tier[k] == other:
            tier[k] = old
    for k in range(K):
        if tier[k] == H - 1:
            tier[k] = other
    return H - 1


@jit
def move(rng, tier, given, sums, items, scans, attempts):
    """Scan the items and attempt splits and merges so many times; return the number of tiers, numbered from 0."""
    H = count(tier, given, sums)
    for _ in range(scans):
        H = scan(rng, tier, given, sums, H)
    if tier.size > 1:
        for _ in range(attempts):
            H = split_or_merge(rng, tier, given, sums, H, items)
    return H


@jit
def draw_worths(rng, tier, given, sums, log_worth):
    """Draw λ ~ Gam(a + N, b + S) of each tier, and write its logarithm in units of Λ; return the number of tiers."""
    H = count(tier, given, sums)
    for h in range(H):
        log_worth[h] = log_gamma_draw(rng, given.shape + sums.arrivals[h])
        log_worth[h] -= log_sum(given.log_rate, sums.at_risk[h])
    return H
