"""Common parts of posteriors of learned directions: predicting members, and summaries of components."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from plackett.model.diagnostics import agreement
from plackett.model.mixture import Entries, Stacked, log_rates
from plackett.model.race import Array
from plackett.posterior.base import NO_CHAINS, FittedModel, M, Posterior, Quantities
from plackett.posterior.pool import Members

NAMELESS = "the components of learned directions have no identity from draw to draw"


@dataclass(frozen=True)
class DirectionMembers(Members):
    """Draws of directions and weights: r_e = Σ_j exp(z_e·β_j) λ_gj.

    Attributes
    ----------
    directions : (S, M, d) array
        β.
    log_weights : (S, K, M) array
        ln λ.
    """

    parameters: ClassVar[tuple[str, ...]] = ("directions", "log_weights")
    directions: Array
    log_weights: Array

    @property
    def n_groups(self) -> int:
        """Number of groups K."""
        return self.log_weights.shape[1]

    @property
    def work(self) -> int:
        """Number of scores of all components."""
        return self.log_weights.shape[2]

    def log_rates(self, entries: Entries) -> Array:
        """Return ln r_e (S, entries)."""
        return log_rates(self.directions, self.log_weights, entries.Z, self.group_of(entries), entries.row)

    def component_scores(self, entries: Entries) -> Array:
        """Return z_e·β_j + ln λ_gj (S, entries, M), whose exponentials add up to the rate."""
        group = self.group_of(entries)
        scores: Array = np.einsum("ef,smf->sem", entries.Z[entries.row], self.directions)
        scores += self.log_weights[np.arange(len(self.share))[:, None], group if group.ndim == 2 else group[None]]
        return scores


@dataclass(frozen=True)
class LearnedPosterior(Stacked, Posterior[M]):
    """Draws of directions and weights, with a stacked mode and κ."""

    model_name = "Plackett–Luce regression"

    def members(self, every: bool = False) -> DirectionMembers:
        """Return some draws, then the mode if there is one; if `every`, all draws with equal shares and no mode."""
        if not every:
            directions, log_weights, share = self._pooled()
            return DirectionMembers(
                share,
                directions,
                log_weights,
                modes=int(self._has_mode),
                power=self.power,
                of_response=self._pooled_parameters(),
            )
        C, D, K, M = self.log_weights.shape
        directions, log_weights = self.directions.reshape(C * D, M, -1), self.log_weights.reshape(C * D, K, M)
        values = None if self.parameters is None else self.parameters.reshape(C * D, -1)
        share = np.full(C * D, 1 / (C * D))
        return DirectionMembers(share, directions, log_weights, power=self.power, of_response=values)

    @property
    def mode(self) -> DirectionMembers | None:
        """The mode as members, or None."""
        if self.mode_directions is None or self.mode_log_weights is None:
            return None
        values = None if self.mode_parameters is None else self.mode_parameters[None]
        return DirectionMembers(np.ones(1), self.mode_directions[None], self.mode_log_weights[None], of_response=values)

    def verdict(self, model: FittedModel) -> tuple[bool | None, str]:
        """Return whether the chains agree on predictions."""
        return agreement(model.diagnostics_)

    def quantities(self, model: FittedModel) -> Quantities:
        """Return the log-posterior; nothing else has an identity."""
        return Quantities({"log-likelihood": ("log-posterior", model.trace_)})


class ModeAlone:
    """Point estimate: one chain of one draw."""

    no_chains: ClassVar[str | None] = NO_CHAINS
    no_interval: ClassVar[str | None] = (
        "EM gives one estimate and no uncertainty, so there is no interval. Use inference='gibbs'."
    )

    def verdict(self, model: FittedModel) -> tuple[bool | None, str]:
        """Return None: there is no measure of a single estimate."""
        return None, "one estimate without uncertainty"
