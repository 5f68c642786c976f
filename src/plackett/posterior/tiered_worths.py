"""Posterior of worths in tiers: in a draw, items of one tier have the same worth, to the last bit."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from plackett.model.partitions import nearest_runs
from plackett.model.race import Array
from plackett.posterior.base import Codes, Quantities, Table, Variables
from plackett.posterior.weights import Draws
from plackett.posterior.worths import ranks_of

BLOCK = 1 << 24  # pairs of items, over draws, that are compared at a time


@dataclass(frozen=True)
class TieredDraws(Draws):
    """Draws of worths under a Dirichlet process.

    Attributes
    ----------
    concentration : (chain, draw) array
        α of the Dirichlet process.
    """

    drawn: ClassVar[tuple[str, ...]] = (*Draws.drawn, "concentration")
    concentration: Array = field(repr=False, kw_only=True)

    @property
    def _logs(self) -> Array:
        """ln λ̄ (S, K)."""
        return self.log_weights.reshape(-1, self.log_weights.shape[2])

    def tier_of_items(self) -> Codes:
        """Return the tier (chain, draw, K) of each item, 0 for the best."""
        logs = -self.log_weights[..., 0]
        order = np.argsort(logs, axis=2, kind="stable")
        new = np.diff(np.take_along_axis(logs, order, axis=2), axis=2) > 0
        found = np.zeros(logs.shape, dtype=np.intp)
        np.put_along_axis(found[..., :], order[..., 1:], np.cumsum(new, axis=2), axis=2)
        return found

    def number_of_tiers(self) -> Codes:
        """Return the number of tiers (chain, draw)."""
        found: Codes = self.tier_of_items().max(axis=2) + 1
        return found

    def order(self) -> Codes:
        """Return the items by their mean log-worth, the best first."""
        logs = self._logs
        found: Codes = np.argsort(-(logs - logs.mean(axis=1, keepdims=True)).mean(axis=0), kind="stable")
        return found

    def together(self) -> Array:
        """Return the probability (K, K) that two items share a tier."""
        logs = self._logs
        S, K = logs.shape
        found, step = np.zeros((K, K)), max(1, BLOCK // K**2)
        for some in (logs[s : s + step] for s in range(0, S, step)):
            found += (some[:, :, None] == some[:, None, :]).sum(axis=0)
        return found / S

    def summary_tiers(self, prob: float) -> tuple[Codes, Table]:
        """Return the items, the best first, and the columns of `tiers`."""
        order, tail = self.order(), (1.0 - prob) / 2.0
        alike = self.together()[np.ix_(order, order)]
        ranks = ranks_of(self._logs)[:, order]
        lower, upper = 1 + np.quantile(ranks, [tail, 1.0 - tail], axis=0, method="inverted_cdf").astype(np.int64)
        columns: Table = {
            "tier": 1 + nearest_runs(alike),
            "prob_same_as_next": np.append(np.diag(alike, 1), np.nan),
            "rank_lower": lower,
            "rank_upper": upper,
        }
        return order, columns

    def size(self, model: Any) -> str:
        """Describe items, prior and the number of tiers."""
        number = self.number_of_tiers()
        lower, upper = np.quantile(number, [0.05, 0.95], method="inverted_cdf")
        between = f" ({lower:.0f} to {upper:.0f} with 90 %)" if lower < upper else ""
        typical = int(np.median(number))
        return f"{super().size(model)}, {typical} {'tier' if typical == 1 else 'tiers'}{between}"

    def variables(self, model: Any, raw: bool) -> Variables:
        """Return worths, the number of tiers, the tier of each item (1 is the best), and α."""
        values, dims, coords = super().variables(model, raw)
        more: dict[str, Any] = {"tiers": self.number_of_tiers(), "tier": self.tier_of_items() + 1}  # whole numbers
        values |= more
        values |= {"concentration": self.concentration} if np.ptp(self.concentration) > 0 else {}
        return Variables(values, dims | {"tier": ["item"]}, coords | {"item": model.items_})

    def quantities(self, model: Any) -> Quantities:
        """Return the number of tiers and α besides the quantities of other worths."""
        found = super().quantities(model)
        more = {"tiers": ("number of tiers", self.number_of_tiers().astype(np.float64))}
        more |= {"concentration": ("ln α", np.log(self.concentration))} if np.ptp(self.concentration) > 0 else {}
        return found._replace(scalars=found.scalars | more)
