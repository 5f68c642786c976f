"""From positions of a chain to directions and weights."""

from __future__ import annotations

import numpy as np

from plackett.directions.posterior import DirectionDraws
from plackett.directions.prior import Prior, directions, parts, weights_from
from plackett.model.race import Array
from plackett.posterior import normalised


def unpacked(positions: Array, prior: Prior, d: int) -> DirectionDraws:
    """Draws from positions (chain, draw, D)."""
    (K, M), (C, D) = prior.shape.shape, positions.shape[:2]
    beta, log_weights, scales = np.empty((C, D, M, d)), np.empty((C, D, K, M)), np.empty((C, D, d))
    for c in range(C):
        for s in range(D):
            u, v, t, log_s, log_sigma = parts(positions[c, s], K, M, d)
            weights_from(t, prior.shape, log_weights[c, s])
            directions(u, v, log_s, log_sigma, prior.owner, beta[c, s])
            scales[c, s] = np.exp(log_s)
    return DirectionDraws(beta, normalised(log_weights), scales)
