"""Outcomes of pairs from their two log-rates: win, loss or tie, for all distinct pairs at once.

Let u and v be the log-rates of the first and second item of each pair, and φ the parameters of a law. For each of the
three outcomes a law returns V = ln Pr, the arrivals n and the expected rate × time at risk r s of both items, so that
∂V/∂u = n − r s, and ∂V in the unconstrained coordinates of φ. The module knows neither weights nor counts.

- `BradleyTerry`: i first with probability r_i/(r_i + r_j); a tie gives no information.
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
from plackett.responses.attribute_effect import AttributeEffect
from plackett.responses.base import Parameter, Response
from plackett.responses.davidson import DavidsonTies
from plackett.responses.order_effect import OrderEffect
from plackett.responses.photo_finish import PhotoFinish
from plackett.responses.race_ties import RaceTies
from plackett.responses.ranking import Ranking
from plackett.responses.unknown_order import UnknownOrder

FIRST, SECOND, TIE = range(3)  # outcomes
HIGHEST = 300.0  # |log-rate| bound: above, an arrival is certain; below −HIGHEST, impossible
RARE = 1e-9  # arrival probability per slot below which time counts as continuous
SMALL = 1e-3  # rate below which a difference is computed by its series
ONE_EACH = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])  # arrivals (outcome, item)


class Chances(NamedTuple):
    """Values and expectations of a law: arrays (outcome, pair); parameter slopes are (parameter, outcome, pair)."""

    value: Array
    first: Array  # r s of the first item
    second: Array
    slopes: Array  # ∂V in the unconstrained coordinates of the parameters


class Summed(NamedTuple):
    """Log-likelihood of counted outcomes, and its slopes by pair."""

    value: float
    first: Array  # ∂V/∂u (pair,)
    second: Array
    slopes: Array  # (parameter, pair), in the unconstrained coordinates of the parameters


class PairLaw(Protocol):
    """Law of the three outcomes of pairs."""

    arrivals: Array  # (outcome, item): arrivals n
    parameters: tuple[Parameter, ...]

    def chances(self, u: Array, v: Array, values: Array) -> Chances:
        """Return values and expectations at these log-rates and parameters."""
        ...

    def summed(self, u: Array, v: Array, values: Array, counts: Array) -> Summed:
        """Return the log-likelihood of `counts` (outcome, pair) and its slopes."""
        found = self.chances(u, v, values)
        first, second = (
            np.einsum("op,op->p", counts, arrivals[:, None] - each)
            for arrivals, each in zip(self.arrivals.T, (found.first, found.second), strict=True)
        )
        value = float(np.einsum("op,op->", counts, found.value))
        return Summed(value, first, second, np.einsum("op,fop->fp", counts, found.slopes))

    def draw(self, rng: np.random.Generator, u: Array, v: Array, values: Array, counts: Array) -> tuple[Array, Array]:
        """Draw r s of both items (pair,), summed over `counts` (outcome, pair)."""
        ...


class BradleyTerry(PairLaw):
    """The first item wins with probability r_i/(r_i + r_j)."""

    arrivals = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]])
    parameters: tuple[Parameter, ...] = ()

    def chances(self, u: Array, v: Array, values: Array) -> Chances:
        """A tie has the value 0 and takes no time."""
        d = u - v
        p, none = expit(d), np.zeros_like(d)
        value = np.array([-softplus(-d), -softplus(d), none])
        return Chances(value, np.array([p, p, none]), np.array([1.0 - p, 1.0 - p, none]), np.empty((0, *value.shape)))

    def summed(self, u: Array, v: Array, values: Array, counts: Array) -> Summed:
        """Return V = Σ (wins − losses) d/2 − (wins + losses) ln 2cosh(d/2), and its slopes."""
        half = (u - v) / 2.0
        lead, decided = counts[FIRST] - counts[SECOND], counts[FIRST] + counts[SECOND]
        value = lead @ half - decided @ softplus_less_half(half)
        slope = 0.5 * (lead - decided * np.tanh(half))
        return Summed(float(value), slope, -slope, np.empty((0, len(half))))

    def draw(self, rng: np.random.Generator, u: Array, v: Array, values: Array, counts: Array) -> tuple[Array, Array]:
        """Draw the sum of Exp(r_i + r_j) over decided pairs."""
        time = rng.standard_gamma(counts[FIRST] + counts[SECOND])
        return time * expit(u - v), time * expit(v - u)


class RaoKupper(PairLaw):
    """The first item wins with probability r_i/(r_i + θ r_j)."""

    arrivals = ONE_EACH
    parameters: tuple[Parameter, ...] = PhotoFinish.parameters

    def chances(self, u: Array, v: Array, values: Array) -> Chances:
        """A tie adds the terms of a win of each item."""
        theta, d = values[0], u - v
        width = np.log(theta)
        p, q = expit(width - d), expit(width + d)  # handicapped second item, handicapped first item
        wins = np.array([-softplus(width - d), -softplus(width + d)])
        value = np.array([*wins, np.log(theta * theta - 1.0) + wins.sum(axis=0)])
        first = np.array([expit(d - width), q])
        second = np.array([p, expit(-d - width)])
        slope = np.array([-p, -q, 2.0 * theta * theta / (theta * theta - 1.0) - p - q]) * (theta - 1.0) / theta
        return Chances(
            value, np.array([*first, first.sum(axis=0)]), np.array([*second, second.sum(axis=0)]), slope[None]
        )

    def summed(self, u: Array, v: Array, values: Array, counts: Array) -> Summed:
        """A tie counts as a win of each item."""
        theta, d, ties = values[0], u - v, counts[TIE]
        width, square = np.log(theta), theta * theta - 1.0
        value, pulls = float(ties.sum() * np.log(square)), []
        for behind, won in ((width - d, counts[FIRST] + ties), (width + d, counts[SECOND] + ties)):
            value -= float(won @ softplus(behind))
            pulls.append(0.5 * won * (1.0 + np.tanh(0.5 * behind)))
        slope = pulls[0] - pulls[1]
        of_width = (2.0 * theta * theta / square) * ties - pulls[0] - pulls[1]
        return Summed(value, slope, -slope, (theta - 1.0) / theta * of_width[None])

    def draw(self, rng: np.random.Generator, u: Array, v: Array, values: Array, counts: Array) -> tuple[Array, Array]:
        """Draw the sum of Exp(r_i + θ r_j) over wins and ties, for either item."""
        width, d = np.log(values[0]), u - v
        of_first, of_second = (rng.standard_gamma(counts[each] + counts[TIE]) for each in (FIRST, SECOND))
        first = of_first * expit(d - width) + of_second * expit(width + d)
        return first, of_first * expit(width - d) + of_second * expit(-d - width)


class Davidson(PairLaw):
    """A tie has the rate ν√(r_i r_j), next to r_i and r_j."""

    arrivals = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    parameters: tuple[Parameter, ...] = DavidsonTies.parameters

    def chances(self, u: Array, v: Array, values: Array) -> Chances:
        """The times at risk are the same for all outcomes; a tie is half an arrival of each item."""
        half, log_nu = (u - v) / 2.0, np.log(values[0])
        total = np.logaddexp(np.logaddexp(half, -half), log_nu)
        value = np.array([half - total, -half - total, log_nu - total])
        win, loss, tie = np.exp(value)
        first, second = win + tie / 2.0, loss + tie / 2.0
        first, second = (np.broadcast_to(each, value.shape) for each in (first, second))
        return Chances(value, first, second, np.array([[-tie, -tie, win + loss]]))

    def summed(self, u: Array, v: Array, values: Array, counts: Array) -> Summed:
        """Return V = Σ (wins − losses) d/2 + ties ln ν − votes ln(2cosh(d/2) + ν), and its slopes."""
        half, (nu,) = (u - v) / 2.0, values
        lead, ties = counts[FIRST] - counts[SECOND], counts[TIE]
        votes = counts[FIRST] + counts[SECOND] + ties
        behind = np.exp(-np.abs(half))
        total = 1.0 + behind * (behind + nu)  # in units of the larger of e^(d/2) and e^(−d/2)
        value = lead @ half + ties.sum() * np.log(nu) - votes @ (np.abs(half) + np.log(total))
        slope = 0.5 * (lead - votes * np.copysign((1.0 - behind * behind) / total, half))
        return Summed(float(value), slope, -slope, (ties - votes * (nu * behind / total))[None])

    def draw(self, rng: np.random.Generator, u: Array, v: Array, values: Array, counts: Array) -> tuple[Array, Array]:
        """Raise ValueError: there is no complete likelihood."""
        raise ValueError(
            "Davidson's ties are not conjugate and cannot be drawn by plain sweeps. Use Gibbs(moves='auto')."
        )


class Slots(PairLaw):
    """Two items tie if they arrive in the same slot of length 1."""

    arrivals = ONE_EACH
    parameters: tuple[Parameter, ...] = ()

    def chances(self, u: Array, v: Array, values: Array) -> Chances:
        """The expected number of slots before the first arrival is E[G] = 1/(exp(r_i + r_j) − 1)."""
        r, q = np.exp(np.clip(u, -HIGHEST, HIGHEST)), np.exp(np.clip(v, -HIGHEST, HIGHEST))
        both = r + q
        came, other, any_came = (np.log(-np.expm1(-rate)) for rate in (r, q, both))
        value = np.array([came - q, other - r, came + other]) - any_came
        empty = np.exp(-both) / -np.expm1(-both)
        first = r * empty + np.array([_inside(r), r, _inside(r)])
        second = q * empty + np.array([q, _inside(q), _inside(q)])
        return Chances(value, first, second, np.empty((0, *value.shape)))

    def summed(self, u: Array, v: Array, values: Array, counts: Array) -> Summed:
        """An item arrives in its wins and ties; in its losses, and in empty slots, it waits for all of the slot."""
        r, q = np.exp(np.clip(u, -HIGHEST, HIGHEST)), np.exp(np.clip(v, -HIGHEST, HIGHEST))
        arrived, votes, both = self.arrivals.T @ counts, counts.sum(axis=0), r + q
        any_came = -np.expm1(-both)
        empty = votes * np.exp(-both) / any_came
        value, slopes = -float(votes @ np.log(any_came)), []
        for rate, n, lost in ((r, arrived[0], counts[SECOND]), (q, arrived[1], counts[FIRST])):
            value += float(n @ np.log(-np.expm1(-rate)) - lost @ rate)
            slopes.append(n * (1.0 - _inside(rate)) - rate * (empty + lost))
        return Summed(value, slopes[0], slopes[1], np.empty((0, len(votes))))

    def draw(self, rng: np.random.Generator, u: Array, v: Array, values: Array, counts: Array) -> tuple[Array, Array]:
        """Draw the empty slots, and the time within a slot of each arrival, vote by vote."""
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


def softplus(x: Array) -> Array:
    """ln(1 + e^x), several times as fast as `np.logaddexp`."""
    found: Array = np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))
    return found


def softplus_less_half(half: Array) -> Array:
    """ln 2cosh(h), which is ln(1 + e^(2h)) − h."""
    size = np.abs(half)
    found: Array = size + np.log1p(np.exp(-2.0 * size))
    return found


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
    """Return the pair law of a response, or None for a response from outside this package."""
    while isinstance(response, (OrderEffect, AttributeEffect)):
        response = response.response
    return LAWS.get(type(response))


def is_ordered(response: Response) -> bool:
    """True if there is an order effect."""
    return isinstance(response.response if isinstance(response, AttributeEffect) else response, OrderEffect)
