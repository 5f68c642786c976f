"""Draws of (β, λ) that predict, and the mode that is stacked beside them; for classes and for situations."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np

from plackett.model.race import Array

POOLED = 400  # draws that predictions are averaged over
SHUT = -1e3  # ln λ of a component that is not there


class Stacked:
    """What a record of draws (chain, draw, …) with a mode, its weight and the power κ has."""

    directions: Array
    log_weights: Array
    mode_directions: Array | None
    mode_log_weights: Array | None
    mode_weight: float

    def with_mode(self, mode: Any, weight: float, power: float) -> Self:
        """The same draws with a mode of that weight, and κ; components that the mode lacks are shut."""
        (M, d), K = self.directions.shape[2:], self.log_weights.shape[2]
        few = mode.directions.shape[2]
        directions, log_weights = np.zeros((M, d)), np.full((K, M), SHUT)
        directions[:few], log_weights[:, :few] = mode.directions[0, 0], mode.log_weights[0, 0]
        found: Self = replace(  # type: ignore[type-var]
            self, mode_directions=directions, mode_log_weights=log_weights, mode_weight=weight, power=power
        )
        return found

    def _pooled(self) -> tuple[Array, Array, Array]:
        """Directions (S, M, d), ln λ (S, K, M) and weights (S,) of what predicts: some draws, then the mode."""
        C, D = self.log_weights.shape[:2]
        some = np.linspace(0, C * D - 1, min(POOLED, C * D)).round().astype(np.intp)
        chain, draw = np.divmod(some, D)
        directions, log_weights = self.directions[chain, draw], self.log_weights[chain, draw]
        weights = np.full(len(some), (1 - self.mode_weight) / len(some))
        if self.mode_directions is None or self.mode_log_weights is None:
            return directions, log_weights, weights
        return (
            np.concatenate([directions, self.mode_directions[None]]),
            np.concatenate([log_weights, self.mode_log_weights[None]]),
            np.append(weights, self.mode_weight),
        )
