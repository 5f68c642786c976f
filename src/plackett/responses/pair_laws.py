"""Outcomes of pairs by their two log-rates: win, loss or tie, all distinct pairs at once.

With the log-rates u of the first and v of the second item of each pair, and the parameters φ of a law, a law gives of
each of the three outcomes V = ln Pr, the arrivals n that it counts and the expected rate × time at risk r s of both
items, so that ∂V/∂u = n − r s, and ∂V in the unconstrained coordinates of φ. Knows no weights and no counts.

- `BradleyTerry`: i first with probability r_i/(r_i + r_j); a tie tells nothing.
- `RaoKupper` (1967): i first with r_i/(r_i + θ r_j). A tie is two wins times θ² − 1, of i over θ·j and j over θ·i.
- `Davidson` (1970): a third entrant of rate ν√(r_i r_j) wins where the two tie. Its s bounds −V above by a linear
  function of the rates (Hunter 2004), so that EM climbs, but no complete likelihood has it: it cannot be drawn.
- `Slots`: the race is seen in slots of length 1, as in `plackett.responses.race_ties`.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from scipy.special import expit

from plackett.model.race import Array
from plackett.responses.base import Parameter, Response
from plackett.responses.davidson import DavidsonTies
from plackett.responses.order_effect import OrderEffect
from plackett.responses.photo_finish import PhotoFinish
from plackett.responses.race_ties import RaceTies
from plackett.responses.ranking import Ranking
from plackett.responses.unknown_order import UnknownOrder

FIRST, SECOND, TIE = range(3)  # outcomes
HIGHEST = 300.0  # ln of a rate beyond which a slot is as good as over at once; below its inverse none is ever seen
RARE = 1e-9  # chance of an arrival in a slot, below which time is as good as continuous
SMALL = 1e-3  # a rate below which a difference is taken from its series
ONE_EACH = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])  # arrivals (outcome, item)


class Chances(NamedTuple):
    """What a law says of pairs: arrays (outcome, pair), of parameters (parameter, outcome, pair)."""

    value: Array
    first: Array  # r s of the first item
    second: Array
    slopes: Array  # ∂V in the unconstrained coordinates of the parameters


class PairLaw(Protocol):
    """Chances of the three outcomes of pairs."""

    arrivals: Array  # (outcome, item): what n counts
    parameters: tuple[Parameter, ...]

    def chances(self, u: Array, v: Array, values: Array) -> Chances:
        """Values and expectations at these log-rates and values of the parameters."""
        ...

    def draw(self, rng: np.random.Generator, u: Array, v: Array, values: Array, counts: Array) -> tuple[Array, Array]:
        """Sampled r s of both items (pair,), summed over `counts` (outcome, pair)."""
        ...


class BradleyTerry:
    """i first with probability r_i/(r_i + r_j)."""

    arrivals = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    parameters: tuple[Parameter, ...] = ()

    def chances(self, u: Array, v: Array, values: Array) -> Chances:
        """A tie has the value 0 and takes no time."""
        d = u - v
        p, none = expit(d), np.zeros_like(d)
        value = np.array([-np.logaddexp(0.0, -d), -np.logaddexp(0.0, d), none])
        return Chances(value, np.array([p, p, none]), np.array([1.0 - p, 1.0 - p, none]), np.empty((0, *value.shape)))

    def draw(self, rng: np.random.Generator, u: Array, v: Array, values: Array, counts: Array) -> tuple[Array, Array]:
        """Σ of Exp(r_i + r_j) over decided pairs."""
        time = rng.standard_gamma(counts[FIRST] + counts[SECOND])
        return time * expit(u - v), time * expit(v - u)


class RaoKupper:
    """i first with probability r_i/(r_i + θ r_j)."""

    arrivals = ONE_EACH
    parameters: tuple[Parameter, ...] = PhotoFinish.parameters

    def chances(self, u: Array, v: Array, values: Array) -> Chances:
        """A tie adds up both wins."""
        theta, d = values[0], u - v
        width = np.log(theta)
        p, q = expit(width - d), expit(width + d)  # of the handicapped second, and first, item
        wins = np.array([-np.logaddexp(0.0, width - d), -np.logaddexp(0.0, width + d)])
        value = np.array([*wins, np.log(theta * theta - 1.0) + wins.sum(axis=0)])
        first = np.array([expit(d - width), q])
        second = np.array([p, expit(-d - width)])
        slope = np.array([-p, -q, 2.0 * theta * theta / (theta * theta - 1.0) - p - q]) * (theta - 1.0) / theta
        return Chances(
            value, np.array([*first, first.sum(axis=0)]), np.array([*second, second.sum(axis=0)]), slope[None]
        )

    def draw(self, rng: np.random.Generator, u: Array, v: Array, values: Array, counts: Array) -> tuple[Array, Array]:
        """Σ of Exp(r_i + θ r_j) over wins and ties, of either item."""
        width, d = np.log(values[0]), u - v
        of_first, of_second = (rng.standard_gamma(counts[each] + counts[TIE]) for each in (FIRST, SECOND))
        first = of_first * expit(d - width) + of_second * expit(width + d)
        return first, of_first * expit(width - d) + of_second * expit(-d - width)


class Davidson:
    """A tie has the rate ν√(r_i r_j) beside r_i and r_j."""

    arrivals = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    parameters: tuple[Parameter, ...] = DavidsonTies.parameters

    def chances(self, u: Array, v: Array, values: Array) -> Chances:
        """Of all outcomes the items wait alike; a tie is half an arrival of each."""
        half, log_nu = (u - v) / 2.0, np.log(values[0])
        total = np.logaddexp(np.logaddexp(half, -half), log_nu)
        value = np.array([half - total, -half - total, log_nu - total])
        win, loss, tie = np.exp(value)
        first, second = win + tie / 2.0, loss + tie / 2.0
        return Chances(value, np.array([first] * 3), np.array([second] * 3), np.array([[-tie, -tie, win + loss]]))

    def draw(self, rng: np.random.Generator, u: Array, v: Array, values: Array, counts: Array) -> tuple[Array, Array]:
        """There is no complete likelihood."""
        raise ValueError(
            "Davidson's ties are not conjugate and cannot be drawn by plain sweeps. Use Gibbs(moves='auto')."
        )


class Slots:
    """Two items tie if they arrive in the same slot of length 1."""

    arrivals = ONE_EACH
    parameters: tuple[Parameter, ...] = ()

    def chances(self, u: Array, v: Array, values: Array) -> Chances:
        """Slots before the first arrival are E[G] = 1/(exp(r_i + r_j) − 1)."""
        r, q = np.exp(np.clip(u, -HIGHEST, HIGHEST)), np.exp(np.clip(v, -HIGHEST, HIGHEST))
        both = r + q
        came, other, any_came = (np.log(-np.expm1(-rate)) for rate in (r, q, both))
        value = np.array([came - q, other - r, came + other]) - any_came
        empty = np.exp(-both) / -np.expm1(-both)
        first = r * empty + np.array([_inside(r), r, _inside(r)])
        second = q * empty + np.array([q, _inside(q), _inside(q)])
        return Chances(value, first, second, np.empty((0, *value.shape)))

    def draw(self, rng: np.random.Generator, u: Array, v: Array, values: Array, counts: Array) -> tuple[Array, Array]:
        """Empty slots, and the time within a slot of each that arrives, vote by vote."""
        rates = np.exp(np.clip(u, -HIGHEST, HIGHEST)), np.exp(np.clip(v, -HIGHEST, HIGHEST))
        times = counts.astype(np.int64)
        n = times.sum(axis=0)
        came = -np.expm1(-rates[0] - rates[1])
        slots = rng.negative_binomial(np.maximum(n, 1), np.maximum(came, RARE))
        empty = np.where(n > 0, np.where(came > RARE, slots, rng.standard_gamma(n) / came), 0.0)
        found = []
        for item, rate in enumerate(rates):
            arrived = times[item] + times[TIE]
            pair = np.repeat(np.arange(len(rate)), arrived)
            inside = -np.log1p(rng.random(len(pair)) * np.expm1(-rate[pair])) / rate[pair]
            waited = empty + np.bincount(pair, inside, len(rate)) + (n - arrived)
            found.append(rate * waited)
        return found[0], found[1]


def _inside(rate: Array) -> Array:
    """r E[u] of u ~ Exp(r) on (0, 1): 1 − r/(e^r − 1)."""
    small = rate < SMALL
    safe = np.where(small, 1.0, rate)
    found: Array = np.where(small, rate / 2.0 - rate**2 / 12.0, 1.0 - safe * np.exp(-safe) / -np.expm1(-safe))
    return found


LAWS: dict[type, PairLaw] = {
    Ranking: BradleyTerry(),
    UnknownOrder: BradleyTerry(),
    RaceTies: Slots(),
    PhotoFinish: RaoKupper(),
    DavidsonTies: Davidson(),
}


def law_of(response: Response) -> PairLaw | None:
    """The law of pairs under a response; None for one from outside this package."""
    return LAWS.get(type(response.response if isinstance(response, OrderEffect) else response))
