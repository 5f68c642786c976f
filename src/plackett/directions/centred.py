"""Coordinates for many rows: β itself where chains otherwise walk in the deviations v of `plackett.directions.prior`.

Few rows leave β open, and v ~ N(0, 1) is nearly independent of the scales. Many rows fix β to a hair's breadth: along
the scales v would have to follow exactly, and chains would creep. With β_jf ~ N(s_f σ_0 u_kf, s_f² σ_1²) in the place
of v, rows speak of β, and scales of nothing but β.
"""

from __future__ import annotations

import numpy as np

from plackett.directions.prior import Prior, directions_of, n_owners, parts
from plackett.model.race import Array


def parts_of(positions: Array, prior: Prior, d: int) -> tuple[Array, ...]:
    """Views of positions (…, D): u, v or β, t, ln s, ln σ."""
    K, M = prior.shape.shape
    return parts(positions, K, M, d, n_owners(prior))


def centred(positions: Array, prior: Prior, d: int) -> Array:
    """Positions (…, D) with β in place of v."""
    found = positions.copy()
    u, v, _, log_s, log_sigma = parts_of(found, prior, d)
    v[...] = directions_of(u, v, log_s, log_sigma, prior.owner)
    return found


def uncentred(positions: Array, prior: Prior, d: int) -> Array:
    """Positions (…, D) with v in place of β."""
    found = positions.copy()
    u, beta, _, log_s, log_sigma = parts_of(found, prior, d)
    sigma = np.exp(log_sigma)[..., None, None, :]
    beta[...] = (beta / np.exp(log_s)[..., None, :] - sigma[..., 0] * u[..., prior.owner, :]) / sigma[..., 1]
    return found


def log_spread(positions: Array, prior: Prior, d: int) -> Array:
    """Σ_jf ln s_f σ_1 of positions (…, D): by so much is the log-density of v larger than that of β."""
    *_, log_s, log_sigma = parts_of(positions, prior, d)
    total: Array = len(prior.owner) * (log_s.sum(axis=-1) + d * log_sigma[..., 1])
    return total
