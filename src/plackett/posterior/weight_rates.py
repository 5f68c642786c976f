"""What weights of fixed features say of situations: rates of entries, and probabilities of outcomes.

The same methods as learned directions over situations have (`posterior.situations`), so that nobody has to ask.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from scipy.special import logsumexp

from plackett.compute.pieces import cores
from plackett.model.mixture import Entries, outcome_values, part_of_outcomes
from plackett.model.race import Array
from plackett.posterior.ranking_values import ranking_values
from plackett.responses.base import Outcomes, Response
from plackett.responses.ranking import Ranking

HELD = 1 << 20  # rates held at a time by a thread
MOST = 1 << 24  # log-probabilities held at a time


class WeightRates:
    """Draws of λ̄ (S, K, p), and of ln Λ where it is known, in situations whose entries have rows of W."""

    log_mass: Array | None

    @abstractmethod
    def flat_draws(self) -> Array:
        """(S, K, p), each sums to 1."""

    @property
    def draw_weights(self) -> Array:
        """(S,): the weight in predictions of each of the draws."""
        S = len(self.flat_draws())
        return np.full(S, 1.0 / S)

    @property
    def n_draws(self) -> int:
        """S: all that predicts are draws."""
        return len(self.flat_draws())

    def log_rates(self, entries: Entries) -> Array:
        """ln r_e = ln Σ_j W_ej λ_gj (S, entries) under every draw; −inf where no weight answers."""
        return self._log_rates(self.flat_draws(), slice(None), entries)

    def _log_rates(self, weights: Array, which: slice, entries: Entries) -> Array:
        used, row = np.unique(entries.row, return_inverse=True)
        rates = np.matmul(weights[which], entries.Z[used].T)[:, entries.group, row]  # (S, K, rows), then entries
        with np.errstate(divide="ignore"):
            logs: Array = np.log(rates)
        return logs if self.log_mass is None else logs + self.log_mass.reshape(-1, 1)[which]

    def values(self, entries: Entries, outcomes: Outcomes, response: Response) -> Array:
        """ln Pr(outcome) (S, T) under every draw."""
        weights = self.flat_draws()
        if len(entries.Z) == 1 and isinstance(response, Ranking):  # one rate an item, and no ties
            every = all_entries(entries.Z, weights.shape[1])
            return ranking_values(self.log_rates(every), outcomes, entries.group)
        step = max(1, HELD // max(len(entries.group), len(np.unique(entries.row)) * weights.shape[1]))
        blocks = [slice(start, start + step) for start in range(0, len(weights), step)]

        def work(block: slice) -> Array:
            return outcome_values(self._log_rates(weights, block, entries), outcomes, response)

        with ThreadPoolExecutor(cores()) as pool:
            return np.concatenate(list(pool.map(work, blocks)))

    def chain_log_rates(self, entries: Entries) -> Array:
        """ln r_e (chain, draw, entries) of draws of a chain."""
        chains: tuple[int, ...] = self.shape.shape  # type: ignore[attr-defined]
        return self.log_rates(entries).reshape(*chains, -1)

    def chain_values(self, entries: Entries, outcomes: Outcomes, response: Response) -> Array:
        """ln Pr(outcome) (chain, draw, T): the pointwise log-likelihood of draws of a chain."""
        chains: tuple[int, ...] = self.shape.shape  # type: ignore[attr-defined]
        return self.values(entries, outcomes, response).reshape(*chains, -1)

    def log_scores(self, entries: Entries, outcomes: Outcomes, response: Response) -> Array:
        """ln of the predicted probability of each outcome, (T,): a mixture over the draws."""
        size = max(1, MOST // self.n_draws) * int(np.diff(entries.start).max(initial=1))
        parts = []
        for first, last in entries.parts(size):
            some = part_of_outcomes(outcomes, first, last)
            parts.append(logsumexp(self.values(entries.part(first, last), some, response), axis=0))
        found: Array = np.concatenate(parts) - np.log(self.n_draws)
        return found


def all_entries(Z: Array, n_groups: int) -> Entries:
    """All groups in every row."""
    n = len(Z)
    group, row = np.tile(np.arange(n_groups), n), np.repeat(np.arange(n), n_groups)
    return Entries(Z, group, row, np.arange(0, n * n_groups + 1, n_groups))


def runs(n_rows: int, size: int) -> Iterator[slice]:
    """Runs of rows, of each of which so many numbers are held."""
    step = max(1, HELD // size)
    return (slice(start, start + step) for start in range(0, n_rows, step))
