"""From positions of a chain to directions and weights."""

from __future__ import annotations

import numpy as np

from plackett.directions.prior import Prior, directions_of, log_weights_of, parts
from plackett.model.race import Array
from plackett.posterior.directions import DirectionDraws
from plackett.posterior.weights import normalised


def unpacked(positions: Array, prior: Prior, d: int) -> DirectionDraws:
    """Draws from positions (chain, draw, D)."""
    K, M = prior.shape.shape
    u, v, t, log_s, log_sigma = parts(positions, K, M, d)
    beta = directions_of(u, v, log_s, log_sigma, prior.owner)
    return DirectionDraws(beta, normalised(log_weights_of(t, prior.shape)), np.exp(log_s))
