"""Rankings by person, without covariates: log-likelihoods and M-step of the worths of segments.

Segment c has the worths λ̄_c, which sum to 1. One pass gives the log-likelihood of each ranking with the expected
arrivals and times at risk of its entries, with which the M-step is (10) for each segment.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.special import logsumexp

from plackett.data.observations import Observations, Situations
from plackett.engines.merged import merge_equal, without_covariates
from plackett.engines.plain_rankings import ONE
from plackett.engines.situations import canonical
from plackett.inference.em import maximise_on_simplex
from plackett.model.mixture import FAINT
from plackett.model.race import Array
from plackett.responses.base import Outcomes, Response, Whole, in_order
from plackett.segments.em import LEAST
from plackett.segments.persons import Codes, Expected

DISTURBED = 1.0  # deviation of a start from the log-worths of a single segment
ALONE, STILL = 100, 1e-6  # iterations of a single segment, and what may still move


@dataclass(frozen=True)
class RankingsOfPersons:
    """Rankings sorted by person.

    Attributes
    ----------
    outcomes : Outcomes
        Rankings; their counts multiply the log-likelihood of each.
    item : (entries,) array
        The item of each entry.
    n_items : int
        K.
    response : Response
        What a place means.
    owned : (N + 1,) array
        The first ranking of each person, and the number of rankings.
    counts : (N,) array
        How many persons each stands for.
    shape : float
        a ≥ 1 of the prior λ̄_c ~ Dirichlet(a).
    """

    outcomes: Outcomes
    item: Whole
    n_items: int
    response: Response
    owned: Whole
    counts: Array
    shape: float

    def base(self) -> Array:
        """The mode of a single segment, by some iterations."""
        logs, weight = np.full((1, self.n_items), -np.log(self.n_items)), self.counts[:, None]
        for _ in range(ALONE):
            logs, before = self.expect(logs).improved(weight), logs
            if self.distance(logs, before) <= STILL:
                break
        return np.asarray(logs[0])

    def disturbed(self, base: Array, segments: int, rng: np.random.Generator) -> Array:
        """Normal steps from the log-worths of a single segment."""
        return np.asarray(base + DISTURBED * rng.standard_normal((segments, self.n_items)))

    def normalised(self, parameters: Array) -> Array:
        """Worths sum to 1."""
        return np.asarray(parameters - logsumexp(parameters, axis=1, keepdims=True))

    def log_prior(self, parameters: Array) -> float:
        """(a − 1) Σ ln λ̄, and next to nothing that keeps worths from 0."""
        return (self.shape - 1.0 + LEAST) * float(parameters.sum())

    def distance(self, one: Array, other: Array) -> float:
        """The largest difference of a worth."""
        return float(np.abs(np.exp(one) - np.exp(other)).max())

    def _pass(self, log_worths: Array) -> tuple[Array, Array, Array]:
        """V of each ranking, arrivals and times at risk of entries under the log-worths (K,) of one segment."""
        top, T = log_worths.max(), len(self.outcomes.counts)
        rates = np.exp(np.maximum(log_worths - top, FAINT))[self.item]
        arrivals, at_risk, values = np.empty_like(rates), np.empty_like(rates), np.empty(T)
        self.response.expect_block(self.outcomes, 0, T, rates, arrivals, at_risk, values)
        return values, arrivals, at_risk * np.exp(-top)

    def _of_persons(self, values: Array) -> Array:
        """Sums over the rankings of each person, each as often as it was seen."""
        return np.asarray(np.add.reduceat(values * self.outcomes.counts, self.owned[:-1]))

    def values(self, parameters: Array) -> Array:
        """Log-likelihoods (N, C)."""
        return np.stack([self._of_persons(self._pass(logs)[0]) for logs in parameters], axis=1)

    def expect(self, parameters: Array) -> Expected:
        """Log-likelihoods, and the M-step with what the same pass found."""
        found = [self._pass(logs) for logs in parameters]

        def improved(weight: Array) -> Array:
            worths = []
            for c, (_, arrivals, at_risk) in enumerate(found):
                wins, exposure = self.summed(arrivals, at_risk, weight[:, c])
                worths.append(maximise_on_simplex(wins + self.shape - 1.0 + LEAST, exposure))
            return np.log(np.maximum(worths, np.finfo(float).tiny))

        return Expected(np.stack([self._of_persons(values) for values, _, _ in found], axis=1), improved)

    def summed(self, arrivals: Array, at_risk: Array, weight: Array) -> tuple[Array, Array]:
        """Wins and exposure (K,) of the items, rankings weighted as their persons."""
        by_ranking = np.repeat(weight, np.diff(self.owned)) * self.outcomes.counts
        by_entry = np.repeat(by_ranking, np.diff(self.outcomes.start))
        wins, exposure = (np.bincount(self.item, x * by_entry, self.n_items) for x in (arrivals, at_risk))
        return wins.astype(np.float64), exposure.astype(np.float64)

    def slope(self, log_worths: Array, weight: Array) -> Array:
        """Slopes (K,) of Σ w_i V_i in the log-worths of one segment."""
        _, arrivals, at_risk = self._pass(log_worths)
        wins, exposure = self.summed(arrivals, at_risk, weight)
        return wins - np.exp(log_worths) * exposure

    def slopes(self, log_worths: Array) -> Array:
        """Slopes (N, K) of the log-likelihood of each person in the log-worths of one segment."""
        _, arrivals, at_risk = self._pass(log_worths)
        of_entries = (arrivals - np.exp(log_worths)[self.item] * at_risk) * np.repeat(
            self.outcomes.counts, np.diff(self.outcomes.start)
        )
        person = np.repeat(np.arange(len(self.counts)), np.diff(self.outcomes.start[self.owned]))
        found = np.bincount(person * self.n_items + self.item, of_entries, len(self.counts) * self.n_items)
        return found.reshape(-1, self.n_items).astype(np.float64)

    def part(self, some: Codes) -> Self:
        """The rankings of some persons."""
        rankings = in_order(some, self.owned)
        found = Situations(self.outcomes, self.item, self.item).part(rankings)
        owned = np.append(0, np.cumsum(np.diff(self.owned)[some]))
        return replace(self, outcomes=found.outcomes, item=found.group, owned=owned, counts=self.counts[some])


def rankings_of_persons(seen: Observations, person: Codes | None, shape: float) -> RankingsOfPersons:
    """Rankings by person, in an order that depends on what they hold.

    Without persons each ranking is one person, and stands for as many as it was seen.
    """
    seen = without_covariates(seen)
    found, order, _ = canonical(ONE, (merge_equal(seen) if person is None else seen).all_situations)
    if person is None:
        counts, owned = found.outcomes.counts, np.arange(len(order) + 1)
        outcomes = found.outcomes._replace(counts=np.ones(len(order)))
    else:
        by_person = np.argsort(person[order], kind="stable")
        found, owner = found.part(by_person), person[order][by_person]
        owned, outcomes = np.searchsorted(owner, np.arange(owner[-1] + 2)), found.outcomes
        counts = np.ones(len(owned) - 1)
    start, bucket_start, sizes = (np.ascontiguousarray(each, dtype=np.int64) for each in outcomes[:3])
    outcomes = Outcomes(start, bucket_start, sizes, np.ascontiguousarray(outcomes.counts, dtype=np.float64))
    return RankingsOfPersons(outcomes, found.group, seen.n_groups, seen.response, owned, counts, shape)
