"""Draws of (β, λ) that predict, and the mode that is stacked beside them; for classes and for situations.

What predicts is proportional to (w·mode + (1 − w)·average of the draws)^κ.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from plackett.model.race import Array
from plackett.posterior.base import NO_CHAINS

POOLED = 400  # draws that predictions are averaged over
SHUT = -1e3  # ln λ of a component that is not there
SMALLEST = 1e-12  # a probability that others are divided by, or that is raised to a power, is not taken for less
NAMELESS = "the components of learned directions have no identity from draw to draw"


@dataclass(frozen=True)
class Stacked:
    """Draws of a Markov chain, with a mode, its weight and the power κ.

    Attributes
    ----------
    directions : (chain, draw, M, d) array
        β, for the columns that the directions see.
    log_weights : (chain, draw, K, M) array
        ln λ, normalised so that logsumexp over all is 0 unless rates are absolute (race ties).
    scales : (chain, draw, d) array
        s_f: how much each column matters, a priori of the order 1.
    mode_directions, mode_log_weights : (M, d), (K, M) arrays, optional
        The mode that is stacked with the draws.
    mode_weight : float
        Its weight in predictions.
    power : float
        κ, to which probabilities are raised at last.
    """

    drawn: ClassVar[tuple[str, ...]] = ("directions", "log_weights", "scales")
    directions: Array = field(repr=False)
    log_weights: Array = field(repr=False)
    scales: Array = field(repr=False)
    mode_directions: Array | None = field(default=None, repr=False)
    mode_log_weights: Array | None = field(default=None, repr=False)
    mode_weight: float = 0.0
    power: float = 1.0

    @property
    def _has_mode(self) -> bool:
        return self.mode_directions is not None

    def with_mode(self, mode: Any, weight: float, power: float) -> Self:
        """The same draws with a mode of that weight, and κ; components that the mode lacks are shut."""
        (M, d), K = self.directions.shape[2:], self.log_weights.shape[2]
        few = mode.directions.shape[2]
        directions, log_weights = np.zeros((M, d)), np.full((K, M), SHUT)
        directions[:few], log_weights[:, :few] = mode.directions[0, 0], mode.log_weights[0, 0]
        found: Self = replace(
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


class ModeAlone:
    """One estimate: one chain of one draw."""

    no_chains: ClassVar[str | None] = NO_CHAINS
    no_interval: ClassVar[str | None] = (
        "EM gives one estimate and no uncertainty, so there is no interval. Use inference='gibbs'."
    )

    def verdict(self, model: Any) -> tuple[bool | None, str]:
        """There is nothing to judge it by."""
        return None, "one estimate without uncertainty"


def sharpened(probability: Array, power: float, smallest: float = 0.0) -> Array:
    """p^κ/Σ p^κ over the last axis; p is not taken for less than `smallest`, and what is 0 stays 0."""
    if power == 1.0 and smallest == 0.0:
        return probability
    p = np.maximum(probability, smallest)
    raised = (p / p.max(axis=-1, keepdims=True)) ** power
    found: Array = raised / raised.sum(axis=-1, keepdims=True)
    return found


def varied(mode: Array, draws: Array) -> Array:
    """mode_s ∝ mode·draw_s/average, (rows, S, K), from a mode's probabilities (rows, K) and those of draws.

    A mode has no draws of its own; so its log-odds are taken to vary as those of the draws do about their average.
    """
    average = np.maximum(draws.mean(axis=1, keepdims=True), SMALLEST)
    found = mode[:, None] * np.maximum(draws, SMALLEST) / average
    return found / found.sum(axis=-1, keepdims=True)
