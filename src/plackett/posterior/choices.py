"""Choices among alternatives: what a posterior says of new situations, through the log-rates of their entries.

All that is asked about choices follows from ln r_e of each entry under each draw. `Outlook` has these numbers for some
situations and predicts from them; effects, elasticities and diversions are outlooks in which something was moved.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from plackett.data.choice_outcomes import Chosen
from plackett.model.mixture import outcome_values, sharpened
from plackett.model.race import Array
from plackett.posterior.base import Posterior, refuse
from plackett.responses import make_response

STRANGERS = 5  # known persons that stand for a new one under each of them
CHUNK = 1 << 21  # numbers held at a time
Codes = npt.NDArray[np.intp]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Entries:
    """Situations as a posterior takes them.

    Attributes
    ----------
    features : (entries, d) array
        Rows that the design or the feature map made.
    start : (T + 1,) array
        The first entry of each situation.
    alternative : (entries,) array
        Codes of alternatives, the columns of what is predicted.
    group : (entries,) array
        Whose weights an entry uses; −1 for a person who is not known.
    n_alternatives : int
        A.
    """

    features: Array
    start: Codes
    alternative: Codes
    group: Codes
    n_alternatives: int

    def part(self, low: int, high: int) -> Entries:
        """Situations low ≤ t < high."""
        some = slice(self.start[low], self.start[high])
        return replace(
            self,
            features=self.features[some],
            start=self.start[low : high + 1] - self.start[low],
            alternative=self.alternative[some],
            group=self.group[some],
        )

    @property
    def situation(self) -> Codes:
        """The situation of each entry."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))

    def wide(self, values: Array, missing: float = 0.0) -> Array:
        """Numbers (…, entries) as (…, T, A), with something else where an alternative is not available."""
        found = np.full((*values.shape[:-1], len(self.start) - 1, self.n_alternatives), missing)
        found[..., self.situation, self.alternative] = values
        return found


@dataclass(frozen=True)
class Outlook:
    """Some situations under what predicts: S draws, of which the last may be modes.

    p_s = softmax of the log-rates over the alternatives available; the prediction is ∝ (Σ_s share_s p_s)^κ.

    Attributes
    ----------
    log_rates : (S, T, A) array
        ln r; what is not available does not matter.
    available : (T, A) array
        Which alternatives there are.
    share : (S,) array
        They sum to 1.
    modes : int
        How many of the last are modes, which have no uncertainty to show.
    power : float
        κ.
    """

    log_rates: Array
    available: Mask
    share: Array
    modes: int = 0
    power: float = 1.0

    def shares(self) -> Array:
        """p_s (S, T, A); where no available alternative has a rate, all are equal."""
        log_rates = np.where(self.available, self.log_rates, -np.inf)
        top = log_rates.max(axis=2, keepdims=True)
        silent = np.isneginf(top)
        rates = np.exp(log_rates - np.where(silent, 0.0, top))
        rates = np.where(silent, self.available, rates)
        shares: Array = rates / rates.sum(axis=2, keepdims=True)
        return shares

    def both(self) -> tuple[Array, Array]:
        """What is predicted, (T, A), and what would be under each draw, (S', T, A)."""
        shares = self.shares()
        mixed = np.tensordot(self.share, shares, 1)
        drawn = shares[: len(shares) - self.modes]
        return sharpened(mixed, self.power), sharpened(drawn, self.power)

    def prediction(self) -> Array:
        """(T, A)."""
        return sharpened(np.tensordot(self.share, self.shares(), 1), self.power)

    def without(self, alternative: int) -> Outlook:
        """The same situations if an alternative were not there."""
        available = self.available.copy()
        available[:, alternative] = False
        return replace(self, available=available)

    def moved(self, log_rates: Array, alternative: int | None = None) -> Outlook:
        """The same situations with the log-rates of one alternative, or of all, replaced."""
        if alternative is None:
            return replace(self, log_rates=log_rates)
        found = self.log_rates.copy()
        found[:, :, alternative] = log_rates[:, :, alternative]
        return replace(self, log_rates=found)


class ChoicePosterior(Posterior):
    """What a fit of a chooser leaves behind."""

    model_name = "Plackett–Luce choice model"

    @abstractmethod
    def pool(self, every: bool) -> tuple[Array, int, float]:
        """Shares (S,) of what predicts, how many of the last are modes, and κ; if every, of all draws and no mode."""

    @abstractmethod
    def log_rates(self, features: Array, group: Codes, every: bool, some: Codes) -> Array:
        """ln r (len(some), entries) under these members of the pool; groups (entries,) or (len(some), entries)."""

    @property
    @abstractmethod
    def n_groups(self) -> int:
        """K, rows of the weights."""

    def stand_ins(self, entries: Entries, every: bool = False) -> tuple[Codes, Codes, Array, int, float]:
        """Members of the pool with the groups of entries under each, then share, modes and κ.

        A new person is one of those known, drawn at random: for each member some, evenly chosen. Groups are (entries,),
        or (S, entries) where persons are drawn.
        """
        share, modes, power = self.pool(every)
        some, group = np.arange(len(share)), entries.group
        if (group < 0).any():
            times = 1 if every else STRANGERS
            some, share, modes = np.repeat(some, times), np.repeat(share, times) / times, modes * times
            drawn = np.random.default_rng(0).permutation(np.arange(len(some)) % self.n_groups)
            group = np.where(group < 0, drawn[:, None], group)
        return some, group, share, modes, power

    def outlook(self, entries: Entries, every: bool = False) -> Outlook:
        """Log-rates of a few situations under what predicts."""
        some, group, share, modes, power = self.stand_ins(entries, every)
        log_rates = self.log_rates(entries.features, group, every, some)
        available = entries.wide(np.ones(len(entries.alternative))) > 0
        return Outlook(entries.wide(log_rates), available, share, modes, power)

    def outlooks(self, entries: Entries, every: bool = False) -> Iterator[Outlook]:
        """Runs of situations."""
        size = len(self.pool(every)[0]) * (STRANGERS if (entries.group < 0).any() and not every else 1)
        T = len(entries.start) - 1
        step = max(1, CHUNK // (size * max(entries.n_alternatives, 1)))
        return (self.outlook(entries.part(i, min(i + step, T)), every) for i in range(0, T, step))

    def probabilities(self, rows: Entries) -> Iterator[Array]:
        """Probabilities (situations, S, A) of runs of situations under every draw that predicts."""
        return (outlook.both()[1].transpose(1, 0, 2) for outlook in self.outlooks(rows))

    def predict(self, rows: Entries) -> Array:
        """Probabilities (T, A), zero where an alternative is not available."""
        return np.concatenate([outlook.prediction() for outlook in self.outlooks(rows)])

    def interval(self, rows: Entries, prob: float) -> tuple[Array, Array]:
        """Equal tails over draws, widened to hold the prediction where that leans on a mode."""
        refuse(self.no_interval)
        (lower, upper), centre = super().interval(rows, prob), self.predict(rows)
        return np.minimum(lower, centre), np.maximum(upper, centre)

    def log_probability(self, entries: Entries, seen: Chosen) -> Array:
        """ln of the predicted probability of what was seen in each situation, (T,).

        Of choices κ is in it. A ranking has the probability that the members of the pool give it on average.
        """
        if seen.response == "choice":
            first = seen.first
            with np.errstate(divide="ignore"):
                return np.log(self.predict(entries)[np.arange(len(first)), entries.alternative[first]])
        some, group, share, *_ = self.stand_ins(entries)
        with np.errstate(divide="ignore"):
            log_share = np.log(share)[:, None]
        values = np.array([self._values(entries, seen, group, False, some, s) for s in range(len(some))])
        found: Array = logsumexp(values + log_share, axis=0)
        return found

    def log_values(self, entries: Entries, seen: Chosen) -> Array:
        """ln Pr(outcome) (S, T) under every draw of the chains."""
        some, group, *_ = self.stand_ins(entries, every=True)
        return np.array([self._values(entries, seen, group, True, some, s) for s in range(len(some))])

    def _values(self, entries: Entries, seen: Chosen, group: Codes, every: bool, some: Codes, s: int) -> Array:
        """ln Pr(outcome) of each situation under one member of the pool."""
        of_one = group if group.ndim == 1 else group[s]
        log_rates = self.log_rates(entries.features, of_one, every, some[s : s + 1])[:, seen.entry]
        return outcome_values(log_rates, seen.outcomes, make_response(seen.response))[0]

    def log_predictive(self, rows: Entries) -> Iterator[Array]:
        """Logarithms (situations, S, A) under every draw of the chains."""
        for outlook in self.outlooks(rows, every=True):
            with np.errstate(divide="ignore"):
                yield np.log(outlook.both()[1]).transpose(1, 0, 2)


def log_rates_of_features(log_features: Array, weights: Array, group: Codes) -> Array:
    """ln Σ_j W_ej λ_gj (S, entries) of weights (S, K, p), given ln W; −inf where no weight answers."""
    top = log_features.max(axis=1, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    W = np.exp(log_features - top)
    if weights.shape[1] == 1:
        rates = weights[:, 0] @ W.T
    else:
        rates = np.empty((len(weights), len(W)))
        for s, each in enumerate(weights):
            rates[s] = np.einsum("ej,ej->e", W, each[group if group.ndim == 1 else group[s]])
    with np.errstate(divide="ignore"):
        return np.log(rates) + top[:, 0]


def slopes_at(Z: Array, directions: Array, log_weights: Array, group: Codes) -> Array:
    """∂ln r_e/∂z (S, entries, d): the directions, weighted by the share of each component in the rate."""
    scores = np.einsum("ef,smf->sem", Z, directions)
    scores += log_weights[np.arange(len(directions))[:, None], group if group.ndim == 2 else group[None]]
    scores = np.exp(scores - scores.max(axis=2, keepdims=True))
    found: Array = np.einsum("sem,smf->sef", scores / scores.sum(axis=2, keepdims=True), directions)
    return found


def significant(numbers: Array, digits: int = 4) -> Array:
    """Rounded to so many digits, each by itself."""
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.where((numbers != 0) & np.isfinite(numbers), np.floor(np.log10(np.abs(numbers))), 0.0)
    factor = 10.0 ** (digits - 1 - size)
    rounded: Array = np.round(numbers * factor) / factor + 0.0
    return rounded


def objects(labels: Any) -> npt.NDArray[np.object_]:
    """Labels of any kind as an array of objects."""
    found = np.empty(len(labels), dtype=object)
    found[:] = list(labels)
    return found
