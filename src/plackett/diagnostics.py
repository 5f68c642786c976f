"""Do the chains agree, and how many independent draws are they worth? Rank-normalised R-hat and ESS by ArviZ."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plackett.model.race import Array
from plackett.posterior import Draws


@dataclass(frozen=True)
class Diagnostics:
    """R-hat, bulk and tail ESS of every ln λ̄_kj, shape (K, p), and of ln a, shape ()."""

    rhat: Array
    ess_bulk: Array
    ess_tail: Array
    shape_rhat: float
    shape_ess_bulk: float
    shape_ess_tail: float

    @property
    def worst_rhat(self) -> float:
        """The largest R-hat; NaN (a constant) does not count."""
        return float(np.nanmax(np.append(self.rhat, self.shape_rhat)))

    @property
    def smallest_ess(self) -> float:
        """The smallest bulk or tail ESS."""
        values = np.concatenate([self.ess_bulk.ravel(), self.ess_tail.ravel()])
        return float(np.nanmin(np.append(values, [self.shape_ess_bulk, self.shape_ess_tail])))


def measures(x: Array) -> tuple[Array, Array, Array]:
    """R-hat, bulk ESS and tail ESS over axes (chain, draw) of an array (chain, draw, …)."""
    from arviz_stats.base import array_stats

    kind = {"chain_axis": 0, "draw_axis": 1}
    return (
        np.asarray(array_stats.rhat(x, **kind)),
        np.asarray(array_stats.ess(x, method="bulk", **kind)),
        np.asarray(array_stats.ess(x, method="tail", prob=(0.05, 0.95), **kind)),
    )


def diagnose(draws: Draws, learned: bool) -> Diagnostics | None:
    """Diagnostics of a run, or None if it is too short for any (fewer than 4 draws a chain)."""
    if draws.shape.shape[1] < 4:
        return None
    rhat, bulk, tail = measures(draws.log_weights)
    if learned:
        a_rhat, a_bulk, a_tail = (float(m) for m in measures(np.log(draws.shape)))
    else:
        a_rhat = a_bulk = a_tail = np.nan
    return Diagnostics(rhat, bulk, tail, a_rhat, a_bulk, a_tail)


def advice(found: Diagnostics | None, n_draws: int) -> str | None:
    """A sentence for the user when the run is not good enough: what is wrong, and what to do."""
    if found is None:
        return f"{n_draws} draws a chain are too few to check convergence; use Gibbs(draws=1000) or more."
    problems = []
    if found.worst_rhat > 1.01:
        problems.append(f"the chains have not mixed (R-hat up to {found.worst_rhat:.2f}, should be at most 1.01)")
    if found.smallest_ess < 400:
        problems.append(f"the smallest effective sample size is {found.smallest_ess:.0f} (should be at least 400)")
    if not problems:
        return None
    return (
        " and ".join(problems)
        + f". Weights and intervals may be off; average predictions are usually less affected. Try Gibbs(draws={4 * n_draws}) "
        "or a fixed shape such as shape=0.1, which mixes better than shape='learn'."
    )
