"""Predictions of situations: rankings and choices, with fixed and with learned features.

For every kind of fit, predictions come from `Members`: S draws, of which the last may be modes. They compute log-rates
ln r_e of the entries of situations. A `Pool` holds the log-rates of some situations and predicts from them: p_s is the
softmax over the available alternatives, and the prediction is ∝ (Σ_s share_s p_s)^κ. Effects, elasticities and
diversions are pools with changed log-rates or availability.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import logsumexp

from plackett.compute.pieces import cores
from plackett.model.mixture import FAINT, Entries, outcome_values, part_of_outcomes, sharpened
from plackett.model.race import Array
from plackett.posterior.base import Codes, M, Posterior, refuse
from plackett.responses.base import Outcomes, Response, Whole
from plackett.responses.left_sets import sets_of
from plackett.responses.nests import Nests, nested_utilities
from plackett.responses.ranking import Ranking

STRANGERS = 5  # known persons that represent a new one under each member
CHUNK = 1 << 21  # log-rates per batch
BLOCK = 1 << 20  # rates per batch of a thread
VALUES = 1 << 24  # log-probabilities of outcomes per batch
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Members(ABC):
    """Predicting draws: S members, of which the last may be modes.

    Attributes
    ----------
    share : (S,) array
        Weight of each member in predictions; they sum to 1.
    modes : int
        Number of modes at the end, which carry no uncertainty.
    power : float
        κ, the exponent of the mixture.
    strangers : (S,) array, optional
        Group that represents an unknown person under each member.
    points : int
        Number of consecutive members per draw: persons of a population, over which the draw is averaged.
    of_response : (S, P) array, optional
        Parameters of the response, if it has any.
    nests : Nests, optional
        Alternatives that share a nest; `of_response` has their dissimilarities.
    """

    parameters: ClassVar[tuple[str, ...]]  # names of arrays with one part per member
    share: Array
    modes: int = field(default=0, kw_only=True)
    power: float = field(default=1.0, kw_only=True)
    strangers: Codes | None = field(default=None, kw_only=True)
    of_response: Array | None = field(default=None, kw_only=True)
    nests: Nests | None = field(default=None, kw_only=True)
    points: int = field(default=1, kw_only=True)

    @property
    @abstractmethod
    def n_groups(self) -> int:
        """Number of groups K, the rows of the weights."""

    @property
    @abstractmethod
    def work(self) -> int:
        """Count of numbers that one member computes for a row."""

    @abstractmethod
    def log_rates(self, entries: Entries) -> Array:
        """Return ln r_e (S, entries); only differences within a situation matter, unless rates are absolute."""

    def within(self, entries: Entries) -> Array | None:
        """Weights (S, T) of the members of one draw in each situation; None: they are alike."""
        return None

    def weights_in(self, entries: Entries) -> Array:
        """Weight of each member in predictions of each situation, (S, T), or (S, 1) where it is the same in all."""
        within = self.within(entries)
        return self.share[:, None] if within is None else _of_draws(self.share, self.points)[:, None] * within

    def take(self, some: Codes | slice) -> Self:
        """Select some members, with their shares."""
        held = {name: getattr(self, name) for name in ("share", "strangers", "of_response", *self.parameters)}
        return replace(self, **{name: array[some] for name, array in held.items() if array is not None})

    def group_of(self, entries: Entries) -> Codes:
        """Return the groups of entries: (entries,), or (S, entries) if strangers are represented by known groups."""
        if self.strangers is None:
            return entries.group
        return np.where(entries.group < 0, self.strangers[:, None], entries.group)

    def meeting(self, entries: Entries, times: int = STRANGERS) -> Self:
        """Return members for these entries: a new person is represented by `times` known persons under each member."""
        if not (entries.group < 0).any():
            return self
        some = np.repeat(np.arange(len(self.share)), times)
        drawn = np.random.default_rng(0).permutation(np.arange(len(some)) % self.n_groups)
        found = self.take(some)
        return replace(found, share=found.share / times, modes=self.modes * times, strangers=drawn)


class Pool(NamedTuple):
    """Log-rates of some situations under S members, of which the last may be modes.

    Attributes
    ----------
    log_rates : (S, T, A) array
        ln r of items or alternatives; values of unavailable ones are ignored.
    available : (T, A) array
        True where an item or alternative is available.
    share : (S,) array
        Weight of each member in predictions; they sum to 1.
    modes : int
        Number of modes at the end.
    power : float
        κ.
    points : int
        Number of consecutive members per draw.
    nests : Nests, optional
        Nests of alternatives.
    dissimilarity : (S, G) array, optional
        Dissimilarities of the nests under each member.
    within : (S, T) array, optional
        Weights of the members of one draw in each situation; None: equal weights.
    """

    log_rates: Array
    available: Mask
    share: Array
    modes: int = 0
    power: float = 1.0
    points: int = 1
    nests: Nests | None = None
    dissimilarity: Array | None = None
    within: Array | None = None

    @classmethod
    def of(cls, members: Members, entries: Entries) -> Pool:
        """Compute the pool of a few situations."""
        available = entries.wide(np.ones(len(entries.row))) > 0
        log_rates = entries.wide(members.log_rates(entries))
        dissimilarity = None if members.nests is None else members.of_response
        how = members.modes, members.power, members.points, members.nests, dissimilarity
        return cls(log_rates, available, members.share, *how, members.within(entries))

    @property
    def n_draws(self) -> int:
        """Number of draws."""
        return (len(self.share) - self.modes) // self.points

    def shares(self) -> Array:
        """Return p_s (S, T, A); uniform where no available alternative has a positive rate."""
        log_rates = np.where(self.available, self.log_rates, -np.inf)
        if self.nests is not None and self.dissimilarity is not None:
            log_rates = nested_utilities(log_rates, self.nests.of_alternative, self.dissimilarity)
        top = log_rates.max(axis=2, keepdims=True)
        silent = np.isneginf(top)
        rates = np.exp(log_rates - np.where(silent, 0.0, top))
        rates = np.where(silent, self.available, rates)
        shares: Array = rates / rates.sum(axis=2, keepdims=True)
        return shares

    def of_draws(self, shares: Array) -> Array:
        """What each draw makes of p_s (S, T, A): averages over its members, (S', T, A)."""
        draws = shares[: self.n_draws * self.points]
        if self.points == 1:
            return draws
        by_draw = draws.reshape(-1, self.points, *draws.shape[1:])
        if self.within is None:
            found: Array = by_draw.mean(axis=1)
            return found
        return np.einsum("spt,spta->sta", self.within[: len(draws)].reshape(by_draw.shape[:3]), by_draw)

    def mixed(self, shares: Array) -> Array:
        """What p_s (S, T, A) predict together, (T, A), before κ."""
        if self.within is None:
            found: Array = np.tensordot(self.share, shares, 1)
            return found
        return np.einsum("s,st,sta->ta", _of_draws(self.share, self.points), self.within, shares)

    def both(self) -> tuple[Array, Array]:
        """Return the prediction (T, A), and the predictions under each draw (S', T, A)."""
        shares = self.shares()
        return sharpened(self.mixed(shares), self.power), sharpened(self.of_draws(shares), self.power)

    def prediction(self) -> Array:
        """Return the prediction (T, A)."""
        return sharpened(self.mixed(self.shares()), self.power)

    def without(self, label: int) -> Pool:
        """Return the same situations without one alternative."""
        available = self.available.copy()
        available[:, label] = False
        return self._replace(available=available)

    def moved(self, log_rates: Array, label: int) -> Pool:
        """Return the same situations with other log-rates of one alternative."""
        found = self.log_rates.copy()
        found[:, :, label] = log_rates[:, :, label]
        return self._replace(log_rates=found)


def _of_draws(share: Array, points: int) -> Array:
    """The weight of the draw that each member belongs to."""
    return np.repeat(share.reshape(-1, points).sum(axis=1), points)


def pools(members: Members, entries: Entries) -> Iterator[Pool]:
    """Yield pools of runs of situations."""
    T, step = entries.n_situations, max(1, CHUNK // (len(members.share) * max(entries.width, 1)))
    return (Pool.of(members, entries.part(i, min(i + step, T))) for i in range(0, T, step))


def outcome_log_values(members: Members, entries: Entries, outcomes: Outcomes, response: Response) -> Array:
    """Return ln Pr(outcome) (S, T) under each member; entries are in the order of the outcomes."""
    if len(entries.Z) == 1 and members.strangers is None and isinstance(response, Ranking):
        log_rates = members.log_rates(all_entries(entries.Z, members.n_groups))
        return ranking_values(log_rates, outcomes, entries.group)
    step = max(1, BLOCK // max(len(entries.row), len(np.unique(entries.row)) * members.work))
    blocks = [slice(start, start + step) for start in range(0, len(members.share), step)]

    def work(block: slice) -> Array:
        some = members.take(block)
        return outcome_values(some.log_rates(entries), outcomes, response, some.of_response)

    with ThreadPoolExecutor(cores()) as threads:
        return np.concatenate(list(threads.map(work, blocks)))


def log_scores(members: Members, entries: Entries, outcomes: Outcomes, response: Response) -> Array:
    """Return ln of the predicted probability of each outcome, (T,): a mixture over the members, without κ."""
    size = max(1, VALUES // len(members.share)) * int(np.diff(entries.start).max(initial=1))
    parts = []
    for first, last in entries.parts(size):
        some = part_of_outcomes(outcomes, first, last)
        part = entries.part(first, last)
        values = outcome_log_values(members, part, some, response)
        parts.append(logsumexp(values, axis=0, b=members.weights_in(part)))
    return np.concatenate(parts)


def ranking_values(log_rates: Array, outcomes: Outcomes, item: Whole) -> Array:
    """Return ln Pr (S, T) of rankings without ties by sets of remaining items (`responses.left_sets`)."""
    S, K = log_rates.shape
    sets, (place, chosen, situation) = sets_of(outcomes, item, K)
    log_rates = np.maximum(log_rates - log_rates.max(axis=1, keepdims=True), FAINT)
    rates, left = np.ascontiguousarray(np.exp(log_rates).T), np.zeros((len(sets.item), S))
    for v in range(1, len(left)):
        np.add(left[sets.smaller[v]], rates[sets.item[v]], out=left[v])
    np.log(left[1:], out=left[1:])
    T, ones, met = len(outcomes.counts), np.ones(int(chosen.sum())), situation[chosen]
    came = sparse.csr_array((ones, (met, item[chosen])), shape=(T, K))
    among = sparse.csr_array((ones, (met, place[chosen])), shape=(T, len(left)))
    found: Array = (came @ log_rates.T - among @ left).T
    return found


def all_entries(Z: Array, n_groups: int) -> Entries:
    """Return situations in which every row meets all groups."""
    n = len(Z)
    group, row = np.tile(np.arange(n_groups), n), np.repeat(np.arange(n), n_groups)
    return Entries(Z, group, row, np.arange(0, n * n_groups + 1, n_groups), group, n_groups)


class SituationPosterior(Posterior[M]):
    """Posterior whose rows are situations, predicted through pools."""

    @abstractmethod
    def members(self, every: bool = False) -> Members:
        """Return the predicting members; if `every`, all draws with equal shares and no mode."""

    def pools(self, entries: Entries, every: bool = False) -> Iterator[Pool]:
        """Yield pools of runs of situations under the predicting members, or under every draw."""
        return pools(self.members(every).meeting(entries, 1 if every else STRANGERS), entries)

    def probabilities(self, rows: Entries) -> Iterator[Array]:
        """Yield probabilities (situations, S, A) of runs of situations under the predicting draws."""
        return (pool.both()[1].transpose(1, 0, 2) for pool in self.pools(rows))

    def predict(self, rows: Entries) -> Array:
        """Return probabilities (T, A), zero for unavailable alternatives."""
        return np.concatenate([pool.prediction() for pool in self.pools(rows)])

    def interval(self, rows: Entries, prob: float) -> tuple[Array, Array]:
        """Return equal-tailed intervals over draws, widened to contain a prediction that includes a mode."""
        refuse(self.no_interval)
        (lower, upper), centre = super().interval(rows, prob), self.predict(rows)
        return np.minimum(lower, centre), np.maximum(upper, centre)

    def log_predictive(self, rows: Entries) -> Iterator[Array]:
        """Yield logarithms (situations, S, A) of the probabilities under every draw of the chains."""
        for pool in self.pools(rows, every=True):
            with np.errstate(divide="ignore"):
                yield np.log(pool.both()[1]).transpose(1, 0, 2)
