"""What a fit of learned directions leaves behind: draws of (β, λ), and what is read from them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from plackett.directions.gates import Gates
from plackett.model.race import Array

POOLED = 400  # draws that predictions are averaged over
SMALLEST = 1e-12  # a probability that is raised to a power is not taken for less


@dataclass(frozen=True)
class DirectionDraws:
    """Draws of a Markov chain, or a single point.

    Attributes
    ----------
    directions : (chain, draw, M, d) array
        β, for standardised covariates.
    log_weights : (chain, draw, K, M) array
        ln λ̄, normalised so that logsumexp over class and component is 0.
    scales : (chain, draw, d) array
        s_f: how much each covariate matters, a priori of the order 1.
    mixture : (chain,) array
        Weights of the chains in predictions.
    power : float
        κ, to which averaged probabilities are raised.
    """

    directions: Array = field(repr=False)
    log_weights: Array = field(repr=False)
    scales: Array = field(repr=False)
    mixture: Array
    power: float = 1.0

    def pooled(self, most: int = POOLED) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Chain and draw of at most so many draws that count alike: of each chain as many as its weight allows."""
        C, D = self.log_weights.shape[:2]
        total = min(most, C * D)
        count = np.minimum(largest_remainders(self.mixture * total), D)
        chain = np.repeat(np.arange(C), count)
        draw = np.concatenate([np.linspace(0, D - 1, n).round().astype(np.intp) if n else [] for n in count])
        return chain, draw.astype(np.intp)

    def gates(self, mean: Array, scale: Array, rotation: Array | None) -> Gates:
        """The feature map of the pooled draws."""
        some = self.pooled()
        return Gates(self.directions[some], logsumexp(self.log_weights[some], axis=1), mean, scale, rotation)

    @property
    def votes(self) -> Array:
        """θ_jk = λ_kj/Λ_j of the pooled draws, (S, K, M)."""
        log_weights = self.log_weights[self.pooled()]
        votes: Array = np.exp(log_weights - logsumexp(log_weights, axis=1, keepdims=True))
        return votes

    def probabilities(self, gates: Iterable[Array]) -> Iterator[Array]:
        """Class probabilities (rows, S, K) from blocks (rows, S, M) of the gates of the pooled draws."""
        votes = self.votes.transpose(0, 2, 1)
        return (np.matmul(block.transpose(1, 0, 2), votes).transpose(1, 0, 2) for block in gates)

    def calibrated(self, probability: Array) -> Array:
        """p^κ/Σ_l p_l^κ over the last axis."""
        return probability if self.power == 1 else sharpened(probability, self.power)

    @property
    def weights(self) -> Array:
        """(K, S·M): with the gates as features, these weights give the posterior average; they sum to 1."""
        votes = self.votes
        S, K, M = votes.shape
        return np.moveaxis(votes, 1, 0).reshape(K, S * M) / (S * M)


class DirectionPoint(DirectionDraws):
    """The mode: one chain of one draw."""


def sharpened(probability: Array, power: float) -> Array:
    """p^κ/Σ_l p_l^κ over the last axis."""
    log = power * np.log(np.maximum(probability, SMALLEST))
    result: Array = np.exp(log - logsumexp(log, axis=-1, keepdims=True))
    return result


def probabilities(draws: DirectionDraws, Z: Array) -> Array:
    """Class probabilities (chain, draw, row, K) of a few standardised rows under every draw."""
    totals = logsumexp(draws.log_weights, axis=2)
    gates = draws.directions @ Z.T + totals[..., None]  # (chain, draw, M, row)
    gates = np.exp(gates - logsumexp(gates, axis=2, keepdims=True))
    votes = np.exp(draws.log_weights - totals[:, :, None])
    return np.swapaxes(gates, 2, 3) @ np.swapaxes(votes, 2, 3)


def largest_remainders(shares: Array) -> npt.NDArray[np.intp]:
    """Whole numbers near the shares, with the same sum."""
    whole = np.floor(shares + 1e-9).astype(np.intp)
    left = round(float(shares.sum())) - whole.sum()
    whole[np.argsort(whole - shares, kind="stable")[:left]] += 1
    return whole
