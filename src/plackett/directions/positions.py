"""From positions of a chain to directions and weights."""

from __future__ import annotations

import numpy as np

from plackett.directions.prior import Prior, directions_of, log_weights_of, n_owners, parts, reflected
from plackett.model.mixture import normalised
from plackett.model.race import Array
from plackett.posterior.directions import DirectionDraws


def unpacked(positions: Array, prior: Prior, d: int) -> DirectionDraws:
    """Draws from positions (chain, draw, D)."""
    beta, log_weights, scales = directions_and_weights(positions, prior, d)
    return DirectionDraws(beta, normalised(log_weights), scales)


def directions_and_weights(positions: Array, prior: Prior, d: int) -> tuple[Array, Array, Array]:
    """β (…, M, d), ln λ (…, K, M) and s (…, d) of positions (…, D)."""
    K, M = prior.shape.shape
    u, v, t, log_s, log_sigma = parts(positions, K, M, d, n_owners(prior))
    log_weights = log_weights_of(t, prior.shape)
    if prior.totals:  # those of the position are shared out
        log_total = reflected(positions[..., -K:]) - np.logaddexp.reduce(log_weights, axis=-1)
        log_weights = log_weights + log_total[..., None]
    return directions_of(u, v, log_s, log_sigma, prior.owner), log_weights, np.exp(log_s)
