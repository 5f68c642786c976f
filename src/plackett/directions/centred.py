"""Coordinates for many rows: β in place of the deviations v of `plackett.directions.prior`.

Few rows leave β uncertain, and v ~ N(0, 1) is nearly independent of the scales. Many rows determine β precisely: v
would have to follow the scales exactly, and chains would mix slowly. With β_jf ~ N(s_f σ_0 u_kf, s_f² σ_1²) in place of
v, the rows inform β alone, and the scales depend on β alone.
"""

from __future__ import annotations

import numpy as np

from plackett.directions.prior import Prior, directions_of, n_owners, parts
from plackett.model.race import Array


def parts_of(positions: Array, prior: Prior, d: int) -> tuple[Array, ...]:
    """Return views of positions (…, D): u, v or β, t, ln s, ln σ."""
    K, M = prior.shape.shape
    return parts(positions, K, M, d, n_owners(prior))


def centred(positions: Array, prior: Prior, d: int) -> Array:
    """Replace v by β in positions (…, D)."""
    found = positions.copy()
    u, v, _, log_s, log_sigma = parts_of(found, prior, d)
    v[...] = directions_of(u, v, log_s, log_sigma, prior.owner)
    return found


def uncentred(positions: Array, prior: Prior, d: int) -> Array:
    """Replace β by v in positions (…, D)."""
    found = positions.copy()
    u, beta, _, log_s, log_sigma = parts_of(found, prior, d)
    sigma = np.exp(log_sigma)[..., None, None, :]
    beta[...] = (beta / np.exp(log_s)[..., None, :] - sigma[..., 0] * u[..., prior.owner, :]) / sigma[..., 1]
    return found


def log_spread(positions: Array, prior: Prior, d: int) -> Array:
    """Return Σ_jf ln s_f σ_1 of positions (…, D), the log-density of v minus that of β."""
    *_, log_s, log_sigma = parts_of(positions, prior, d)
    total: Array = len(prior.owner) * (log_s.sum(axis=-1) + d * log_sigma[..., 1])
    return total
