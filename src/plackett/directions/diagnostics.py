"""Do predictions agree between chains? Components have no identity across chains, so nothing else is asked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from plackett.model.race import Array
from plackett.posterior.diagnostics import PROBED, measures, more
from plackett.posterior.directions import DirectionDraws, probabilities

TOLERATED = 0.02  # Monte-Carlo error of an averaged probability


@dataclass(frozen=True)
class DirectionDiagnostics:
    """R-hat, bulk and tail ESS of class probabilities (row, K) of some rows, and the error of their averages."""

    probability_rhat: Array
    probability_ess_bulk: Array
    probability_ess_tail: Array
    monte_carlo_error: float

    def __repr__(self) -> str:
        return (
            f"DirectionDiagnostics of {self.probability_rhat.size} probabilities:\n"
            f"  Monte-Carlo error of their averages {self.monte_carlo_error:.3f}, worst R-hat {self.worst_rhat:.2f}, "
            f"smallest effective sample size {self.smallest_ess:,.0f}"
        )

    @property
    def worst_rhat(self) -> float:
        """The largest R-hat; NaN (a constant) does not count."""
        return float(np.nanmax(self.probability_rhat))

    @property
    def smallest_ess(self) -> float:
        """The smallest bulk or tail ESS."""
        return float(np.nanmin([self.probability_ess_bulk, self.probability_ess_tail]))


def diagnose(draws: DirectionDraws, Z: Array) -> DirectionDiagnostics | None:
    """Diagnostics of a run, or None if it is too short for any (fewer than 4 draws a chain)."""
    C, D = draws.log_weights.shape[:2]
    if D < 4:
        return None
    some = Z[np.linspace(0, len(Z) - 1, min(PROBED, len(Z))).astype(int)]
    probability = probabilities(draws, some)
    by_chain = probability.mean(axis=1)
    error = np.sqrt(by_chain.var(axis=0, ddof=1).mean() / C) if C > 1 else np.nan
    return DirectionDiagnostics(*measures(probability), float(error))


def advice(found: DirectionDiagnostics | None, settings: Any, end: str | None) -> str | None:
    """A sentence for the user when predictions are not settled: what is wrong, by how much, and what to do.

    The settings are those of the run, complete, and `end` is the limit that ended it early, if one did.
    """
    if found is None:
        return f"fewer than 4 draws a chain are too few to check convergence. Try {more(settings, end, 250)}."
    target = settings.target_ess
    if target is not None and found.smallest_ess < target:
        return (
            f"the smallest effective sample size of a probability is {found.smallest_ess:.0f}, not {target:g}. "
            f"Try {more(settings, end)}."
        )
    if found.monte_carlo_error > TOLERATED:
        return (
            f"averaged probabilities differ between chains, by a standard error of {found.monte_carlo_error:.3f} "
            f"(R-hat up to {found.worst_rhat:.2f}). Try Gibbs(chains={2 * settings.chains}), or {more(settings, end)}."
        )
    return None
