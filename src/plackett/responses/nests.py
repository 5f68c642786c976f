"""Choice among alternatives in nests, within which they substitute more closely (McFadden 1978).

Nest g has the dissimilarity 0 < α_g ≤ 1, and with I_g = Σ_{b ∈ g} r_b^{1/α_g} alternative a of nest g is chosen with

    V = ln r_a/α_g + (α_g − 1) ln I_g − ln Σ_h I_h^{α_h}.

An alternative that stands alone is a nest with α = 1, and α = 1 everywhere is the plain choice. As a race, the entries
of a nest share a positive stable frailty S_g, E e^{−sS} = e^{−s^α}: they arrive at times of rate S_g r^{1/α}, and times
of nest g are raised to α_g. With the share q_b of b in its nest and its probability P_b the slopes are

    ∂V/∂ln r_b = [b = a]/α_g + [b ∈ g] (α_g − 1)/α_g q_b − P_b,
    ∂V/∂α_h = [h = g] (L_g − ln r_a/α_g² − (α_g − 1) m_g/α_g²) − P_h (L_h − m_h/α_h),

L = ln I, m_h = Σ_{b ∈ h} q_b ln r_b and P_h the probability of the nest. No weights are conjugate here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from plackett.compute.compiled import NOTHING, REALS, TABLE, WHOLES, apart
from plackett.model.race import Array
from plackett.responses.base import Parameter, Whole

ALONE = -1  # the nest of an alternative that stands alone
START = 0.8  # initial dissimilarity of a search


class NestedAnswer(NamedTuple):
    """V of a choice, with its slopes in the log-rates of the entries and in the dissimilarities."""

    value: float
    to_rates: Array
    to_dissimilarity: Array


@dataclass(frozen=True)
class Nests:
    """Nests of alternatives and their dissimilarities.

    Attributes
    ----------
    names : tuple
        Names of the nests.
    of_alternative : (A,) array
        Nest of each alternative, or −1 if it stands alone.
    dissimilarity : (G,) array
        α of each nest.

    Examples
    --------
    >>> nests = Nests(("existing",), np.array([0, -1, 0]), np.array([0.5]))  # car, metro, train
    >>> value, to_rates, to_dissimilarity = nests.answer(np.log([1.0, 2.0, 1.0]), np.array([0, 1, 2]))
    >>> round(float(np.exp(value)), 6)  # half of the √2 that the nest has against 2
    0.207107
    """

    names: tuple[str, ...]
    of_alternative: npt.NDArray[np.int64]
    dissimilarity: Array

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """One dissimilarity per nest, with a uniform prior on (0, 1)."""
        return tuple(Parameter(name, lower=0.0, start=START, upper=1.0) for name in self.names)

    def at(self, *dissimilarity: float) -> Nests:
        """Return the same nests with other dissimilarities."""
        return replace(self, dissimilarity=np.array(dissimilarity))

    def answer(self, log_rates: Array, alternative: Whole) -> NestedAnswer:
        """Return V of one situation whose first entry is chosen, and its slopes: the readable reference."""
        nest, eta = self.of_alternative[alternative], np.asarray(log_rates, dtype=np.float64)
        lone = nest == ALONE
        of_entry = np.where(lone, len(self.names) + np.arange(len(eta)), nest)  # a lone alternative gets its own nest
        kinds = np.unique(of_entry).tolist()
        alpha = {h: self.dissimilarity[h] if h < len(self.names) else 1.0 for h in kinds}
        inside = {h: eta[of_entry == h] for h in kinds}
        L = {h: float(np.log(np.exp(inside[h] / alpha[h]).sum())) for h in kinds}
        q = np.array([np.exp(x / alpha[h] - L[h]) for x, h in zip(eta, of_entry, strict=True)])
        whole = math.log(sum(math.exp(alpha[h] * L[h]) for h in kinds))
        P_of_nest = {h: math.exp(alpha[h] * L[h] - whole) for h in kinds}
        P = q * np.array([P_of_nest[h] for h in of_entry])
        g, a = of_entry[0], alpha[of_entry[0]]
        value = eta[0] / a + (a - 1) * L[g] - whole
        to_rates = (np.arange(len(eta)) == 0) / a + (of_entry == g) * (a - 1) / a * q - P
        to_alpha = np.zeros(len(self.names))
        for h in kinds:
            if h < len(self.names):
                m = float((q * eta)[of_entry == h].sum())
                own = (L[h] - eta[0] / a**2 - (a - 1) * m / a**2) if h == g else 0.0
                to_alpha[h] = own - P_of_nest[h] * (L[h] - m / alpha[h])
        return NestedAnswer(float(value), to_rates, to_alpha)


def nested_utilities(log_rates: Array, nest: npt.NDArray[Any], dissimilarity: Array) -> Array:
    """Return utilities ln r/α + (α − 1) ln I (S, T, A), whose softmax gives the probabilities.

    `log_rates` (S, T, A), −∞ for unavailable alternatives, and dissimilarities (S, G) belong to S draws. `nest` holds
    the nests of the alternatives (A,), or of the alternatives in each situation (T, A).
    """
    found = log_rates
    for g in range(dissimilarity.shape[1]):
        inside, alpha = nest == g, dissimilarity[:, None, [g]]
        scaled = np.where(inside, log_rates / alpha, -np.inf)
        L = logsumexp(scaled, axis=2, keepdims=True)
        L = np.where(np.isfinite(L), L, 0.0)  # nests without available alternatives
        found = np.where(inside, scaled + (alpha - 1) * L, found)
    return found


@apart(NOTHING(WHOLES, WHOLES, REALS, REALS, REALS, REALS, TABLE))
def nested_slopes(start, nest, log_rates, alpha, values, to_rates, to_alpha):
    """Write V of situations whose first entry is chosen, and slopes in ln r (entries,) and α (situations, nests).

    A lone entry has nest −1. During the pass, `to_rates` temporarily holds the shares q and `to_alpha` the utilities α
    L of the nests.
    """
    for t in range(len(start) - 1):
        low, high, g = start[t], start[t + 1], nest[start[t]]
        top = -np.inf
        for e in range(low, high):
            top = max(top, log_rates[e])
        whole = 0.0
        for e in range(low, high):
            if nest[e] < 0:
                to_rates[e] = math.exp(log_rates[e] - top)
                whole += to_rates[e]
        for h in range(len(alpha)):
            best, total = -np.inf, 0.0
            for e in range(low, high):
                if nest[e] == h:
                    best = max(best, log_rates[e])
            for e in range(low, high):
                if nest[e] == h:
                    to_rates[e] = math.exp((log_rates[e] - best) / alpha[h])
                    total += to_rates[e]
            to_alpha[t, h] = best - top
            if total > 0.0:
                to_alpha[t, h] += alpha[h] * math.log(total)
                whole += math.exp(to_alpha[t, h])
                for e in range(low, high):
                    if nest[e] == h:
                        to_rates[e] /= total
        chosen, log_whole = log_rates[low] - top, math.log(whole)
        values[t] = chosen - log_whole
        for e in range(low, high):
            if nest[e] < 0:
                to_rates[e] = -to_rates[e] / whole
        for h in range(len(alpha)):
            utility, a, mean = to_alpha[t, h], alpha[h], 0.0
            if utility == -np.inf:
                to_alpha[t, h] = 0.0
                continue
            probability = math.exp(utility - log_whole)
            change = -probability + ((a - 1.0) / a if h == g else 0.0)
            for e in range(low, high):
                if nest[e] == h:
                    mean += to_rates[e] * (log_rates[e] - top)
                    to_rates[e] *= change
            to_alpha[t, h] = -probability * (utility - mean) / a
            if h == g:
                values[t] = chosen / a + (a - 1.0) / a * utility - log_whole
                to_alpha[t, h] += (utility - (chosen + (a - 1.0) * mean) / a) / a
        to_rates[low] += 1.0 if g < 0 else 1.0 / alpha[g]
