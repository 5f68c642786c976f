"""What a fit of learned directions leaves behind: draws of (β, λ), a mode beside them, and their predictions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import logsumexp

from plackett.directions.gates import Gates
from plackett.model.race import Array

POOLED = 400  # draws that predictions are averaged over
SMALLEST = 1e-12  # a probability that is raised to a power is not taken for less
SHUT = -1e3  # ln λ̄ of a component that is not there


@dataclass(frozen=True)
class DirectionDraws:
    """Draws of a Markov chain.

    Attributes
    ----------
    directions : (chain, draw, M, d) array
        β, for standardised covariates or their principal axes.
    log_weights : (chain, draw, K, M) array
        ln λ̄, normalised so that logsumexp over class and component is 0.
    scales : (chain, draw, d) array
        s_f: how much each covariate matters, a priori of the order 1.
    mode_directions, mode_log_weights : (M, d), (K, M) arrays, optional
        The mode that is stacked with the draws.
    mode_weight : float
        Its weight in predictions.
    power : float
        κ, to which predictions are raised at last.
    """

    directions: Array = field(repr=False)
    log_weights: Array = field(repr=False)
    scales: Array = field(repr=False)
    mode_directions: Array | None = field(default=None, repr=False)
    mode_log_weights: Array | None = field(default=None, repr=False)
    mode_weight: float = 0.0
    power: float = 1.0

    def with_mode(self, mode: DirectionPoint, weight: float, power: float) -> DirectionDraws:
        """The same draws with a mode of that weight, and κ; components that the mode lacks are shut."""
        (M, d), K = self.directions.shape[2:], self.log_weights.shape[2]
        few = mode.directions.shape[2]
        directions, log_weights = np.zeros((M, d)), np.full((K, M), SHUT)
        directions[:few], log_weights[:, :few] = mode.directions[0, 0], mode.log_weights[0, 0]
        return replace(self, mode_directions=directions, mode_log_weights=log_weights, mode_weight=weight, power=power)

    def _pooled(self) -> tuple[Array, Array, Array]:
        """Directions (S, M, d), ln λ̄ (S, K, M) and weights (S,) of what predicts: some draws, then the mode."""
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

    def gates(self, mean: Array, scale: Array, rotation: Array | None, knots: Array | None = None) -> Gates:
        """The feature map of what predicts."""
        directions, log_weights, _ = self._pooled()
        return Gates(directions, logsumexp(log_weights, axis=1), mean, scale, rotation, knots)

    @property
    def votes(self) -> Array:
        """θ_jk = λ_kj/Λ_j of what predicts, (S, K, M)."""
        log_weights = self._pooled()[1]
        votes: Array = np.exp(log_weights - logsumexp(log_weights, axis=1, keepdims=True))
        return votes

    @property
    def weights(self) -> Array:
        """(K, S·M): with the gates as features, these weights give the predictions before κ; they sum to 1."""
        votes = self.votes * self._pooled()[2][:, None, None]
        S, K, M = votes.shape
        return np.moveaxis(votes, 1, 0).reshape(K, S * M) / M

    def probabilities(self, gates: Iterable[Array]) -> Iterator[Array]:
        """Class probabilities (rows, draws, K) from blocks (rows, S, M) of gates; the mode is no draw."""
        votes = self.votes.transpose(0, 2, 1)[: len(self._pooled()[2]) - (self.mode_directions is not None)]
        return (np.matmul(block.transpose(1, 0, 2)[: len(votes)], votes).transpose(1, 0, 2) for block in gates)


def sharpened(probability: Array, power: float) -> Array:
    """p^κ/Σ_l p_l^κ over the last axis."""
    log = power * np.log(np.maximum(probability, SMALLEST))
    result: Array = np.exp(log - logsumexp(log, axis=-1, keepdims=True))
    return result


class DirectionPoint(DirectionDraws):
    """The mode alone: one chain of one draw."""


def probabilities(draws: DirectionDraws, Z: Array) -> Array:
    """Class probabilities (chain, draw, row, K) of a few standardised rows under every draw."""
    totals = logsumexp(draws.log_weights, axis=2)
    gates = draws.directions @ Z.T + totals[..., None]  # (chain, draw, M, row)
    gates = np.exp(gates - logsumexp(gates, axis=2, keepdims=True))
    votes = np.exp(draws.log_weights - totals[:, :, None])
    return np.swapaxes(gates, 2, 3) @ np.swapaxes(votes, 2, 3)
