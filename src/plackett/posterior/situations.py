"""What learned directions over situations leave behind: draws of (β, λ), and what they say of new situations.

Entry e of a situation has the rate r_e = Σ_j exp(z_e·β_j) λ_gj. No row of the data that were fitted is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from plackett.model.diagnostics import agreement
from plackett.model.mixture import (
    Entries,
    Stacked,
    log_rates,
    outcome_values,
    part_of_outcomes,
    shares,
    sharpened,
    table_of,
)
from plackett.model.race import Array
from plackett.posterior.base import Explanation, Posterior, Quantities, Variables
from plackett.posterior.contributions import Mixture, contributions
from plackett.posterior.reasons import reasons
from plackett.posterior.stacked import NAMELESS, ModeAlone
from plackett.responses.base import Outcomes, Response

CHUNK = 1 << 21  # numbers exp(z·β) held at a time


@dataclass(frozen=True)
class SituationDraws(Stacked, Posterior):
    """Draws of a Markov chain: directions along the columns of the design, and ln λ of groups, whose weights differ."""

    model_name = "Plackett–Luce regression"
    no_estimates = f"{NAMELESS}, so there are no weights to compare."
    no_race = f"{NAMELESS}, so none can be said to win."

    @property
    def shape_of_estimate(self) -> tuple[int, int]:
        """(K, M)."""
        K, M = self.log_weights.shape[2:]
        return K, M

    @property
    def draw_weights(self) -> Array:
        """(S,): the weight in predictions of each of the draws that predict, and at last of the mode."""
        return self._pooled()[2]

    @property
    def n_draws(self) -> int:
        """How many of what predicts are draws; what follows them is the mode."""
        return len(self.draw_weights) - self._has_mode

    def log_rates(self, entries: Entries) -> Array:
        """ln r_e (S, entries) under what predicts: some draws and at last the mode, if there is one.

        Only differences within a situation count, unless rates are absolute.
        """
        directions, log_weights, _ = self._pooled()
        return log_rates(directions, log_weights, *entries[:3])

    def _blocks(self, entries: Entries) -> Iterator[tuple[int, int, Array]]:
        """Runs of situations, and ln r (S, entries) of each."""
        directions, log_weights, _ = self._pooled()
        step = max(1, CHUNK // (len(directions) * directions.shape[1]))
        for first, last in entries.parts(step):
            yield first, last, log_rates(directions, log_weights, *entries.part(first, last)[:3])

    def probabilities(self, rows: Entries) -> Iterator[Array]:
        """Pr(e comes first) (situations, S, entries) of runs of situations under draws; the mode is none of them.

        A situation with fewer entries than the largest has zeros at the end.
        """
        width, draws = int(np.diff(rows.start).max()), slice(len(self.draw_weights) - self._has_mode)
        for first, last, log_r in self._blocks(rows):
            start = rows.start[first : last + 1] - rows.start[first]
            yield table_of(shares(log_r[draws], start), start, width)

    def predict(self, rows: Entries) -> Array:
        """Pr(e comes first) (T, largest number of entries): the average of draws and mode, to the power κ."""
        width, weights = int(np.diff(rows.start).max()), self.draw_weights
        found = []
        for first, last, log_r in self._blocks(rows):
            start = rows.start[first : last + 1] - rows.start[first]
            found.append(table_of(weights[None] @ shares(log_r, start), start, width)[:, 0])
        return sharpened(np.concatenate(found), self.power)

    def interval(self, rows: Entries, prob: float) -> tuple[Array, Array]:
        """Around the prediction as well, which may lean on a mode that is no draw."""
        (lower, upper), probability = super().interval(rows, prob), self.predict(rows)
        return np.minimum(lower, probability), np.maximum(upper, probability)

    def values(self, entries: Entries, outcomes: Outcomes, response: Response) -> Array:
        """ln Pr(outcome) (S, T) under what predicts: some draws and at last the mode, if there is one."""
        blocks = self._blocks(entries)
        parts = [outcome_values(log_r, part_of_outcomes(outcomes, *at), response) for *at, log_r in blocks]
        return np.concatenate(parts, axis=1)

    def chain_log_rates(self, entries: Entries) -> Array:
        """ln r_e (chain, draw, entries) under every draw."""
        C, D, K, M = self.log_weights.shape
        found = log_rates(self.directions.reshape(C * D, M, -1), self.log_weights.reshape(C * D, K, M), *entries[:3])
        return found.reshape(C, D, -1)

    def chain_values(self, entries: Entries, outcomes: Outcomes, response: Response) -> Array:
        """ln Pr(outcome) (chain, draw, T) under every draw: the pointwise log-likelihood."""
        C, D, K, M = self.log_weights.shape
        directions, log_weights = self.directions.reshape(C * D, M, -1), self.log_weights.reshape(C * D, K, M)
        parts = []
        for first, last in entries.parts(max(1, CHUNK // (C * D * M))):
            log_r = log_rates(directions, log_weights, *entries.part(first, last)[:3])
            parts.append(outcome_values(log_r, part_of_outcomes(outcomes, first, last), response))
        return np.concatenate(parts, axis=1).reshape(C, D, -1)

    def log_scores(self, entries: Entries, outcomes: Outcomes, response: Response) -> Array:
        """ln of the predicted probability of each outcome, (T,): a mixture over draws and mode.

        Of choices (κ ≠ 1) that of `predict`.
        """
        if self.power != 1.0:
            return np.log(self.predict(entries)[:, 0])
        found: Array = logsumexp(self.values(entries, outcomes, response), axis=0, b=self.draw_weights[:, None])
        return found

    def size(self, model: Any) -> str:
        """Groups and components."""
        K, M = self.log_weights.shape[2:]
        return f"{M} learned directions of {self.directions.shape[-1]} columns, weights of {K}"

    def verdict(self, model: Any) -> tuple[bool | None, str]:
        """Whether the chains agree on predictions."""
        return agreement(model.diagnostics_)

    def explain(self, model: Any, row: Any, prob: float) -> Explanation:
        """What persons' columns contribute to the log-odds of the item that is most probably first.

        Pr(k first) = Σ_j softmax_j(z·β_j + ln Λ_j) λ_kj/Λ_j; the reference is z = 0.
        """
        x = model._checked_rows(row, reset=False)
        (z,), (directions, log_weights, share) = model.features_.of(x), self._pooled()
        log_totals = logsumexp(log_weights, axis=1)  # ln Λ_j, (S, M)
        votes = np.exp(log_weights - log_totals[:, None]).transpose(0, 2, 1)
        line = Mixture(log_totals, directions @ z, votes, share, self._has_mode, self.power)
        k = int(np.argmax(line.mixed(line.probabilities(np.array([1.0]))[1])[0]))
        found = contributions(line, k, directions, lambda slopes: z * slopes)
        return reasons(model, found, k, x[0], model.features_.reference(), prob)

    def variables(self, model: Any, raw: bool) -> Variables:
        """Nothing but predictions is identified; what was drawn is for the columns of the design."""
        if not raw:
            return Variables({}, {}, {})
        values = {"direction": self.directions, "log_weight": self.log_weights, "scale": self.scales}
        dims = {"direction": ["component", "column"], "log_weight": ["group", "component"], "scale": ["column"]}
        (K, M), d = self.log_weights.shape[2:], self.directions.shape[-1]
        coords: dict[str, npt.NDArray[Any]] = {"component": np.arange(M), "column": np.arange(d), "group": np.arange(K)}
        return Variables(values, dims, coords)

    def quantities(self, model: Any) -> Quantities:
        """The log-posterior alone: nothing else has an identity."""
        return Quantities({"log-likelihood": ("log-posterior", model.trace_)})


class SituationPoint(ModeAlone, SituationDraws):
    """The mode alone."""
