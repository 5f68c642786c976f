"""Prior of directions and weights, and the coordinates of the chains.

Each class k owns some components; component j of class k points along

    β_jf = s_f (σ_0 u_kf + σ_1 v_jf),      u, v ~ N(0, 1):

u is the direction of the class and v a deviation of the component. If σ_1 is small, the components of a class agree and
the model is a multinomial logit; σ_1 determines the distance from it, and s_f the importance of covariate f. σ_0, σ_1
and s_f are log-normal. The weights are λ_kj ~ Gam(a_kj, 1), with a larger a if class k owns component j. If
alternatives have attributes, one owner may have all components, whichever group the weights λ_k belong to: small σ_1 is
then conditional logit.

The chain walks in (u, v, t, ln s, ln σ), all of order 1. With a small, ln λ has a tail e^{a ln λ} of length 1/a on one
side and a wall on the other; ln λ = h(t) = t − (1/a − 1) ln(1 + e^{−t}) has slope 1/a on the former side and 1 on the
latter.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from plackett.compute.compiled import REAL, REALS, TABLE, TRUTH, WHOLE, WHOLES, record
from plackett.model.race import Array


class Prior(NamedTuple):
    """Owners of components, shapes of the weights, and the log-normal priors of the scales."""

    owner: npt.NDArray[np.int64]  # (M,) class of each component, sorted; every owner has at least one
    shape: Array  # (K, M) a_kj
    covariate_spread: float  # standard deviation of ln s_f about 0
    scale_centre: Array  # (2,) means of ln σ_0, ln σ_1
    scale_spread: Array  # (2,)
    totals: bool = False  # True if a position has separate totals of the weights
    parameters: int = 0  # number of response parameters, at the end of a position; 0 with totals


PRIOR = record(Prior, WHOLES, TABLE, REAL, REALS, REALS, TRUTH, WHOLE)


def size(prior: Prior, n_columns: int) -> int:
    """Length of a position."""
    K, M = prior.shape.shape
    return (n_owners(prior) + M) * n_columns + K * M + n_columns + 2 + (K if prior.totals else 0) + prior.parameters


def n_owners(prior: Prior) -> int:
    """Number of rows of u: classes that own components."""
    return int(prior.owner[-1]) + 1


def parts(q: Array, K: int, M: int, d: int, owners: int | None = None) -> tuple[Array, ...]:
    """Return views of positions (…, D): u (…, K, d), v (…, M, d), t (…, K, M), ln s (…, d), ln σ (…, 2).

    There are as many u as owners, by default K. Coordinates behind these are ignored.
    """
    O = K if owners is None else owners
    u, v, t, log_s, log_sigma, _ = np.split(q, np.cumsum([O * d, M * d, K * M, d, 2]), axis=-1)
    size = q.shape[:-1]
    return u.reshape(*size, O, d), v.reshape(*size, M, d), t.reshape(*size, K, M), log_s, log_sigma


def log_weights_of(t: Array, shape: Array) -> Array:
    """Return ln λ = h(t)."""
    log_weights: Array = t - (1 / shape - 1) * np.logaddexp(0.0, -t)
    return log_weights


def inverse_weights(log_weights: Array, shape: Array) -> Array:
    """Return t from ln λ: h is concave for a < 1, and Newton's method from its asymptote does not overshoot."""
    steep = 1 / shape - 1
    t = np.where(steep > 0, np.minimum(log_weights, log_weights * shape), np.maximum(log_weights, log_weights * shape))
    for _ in range(50):
        h = t - steep * np.logaddexp(0.0, -t)
        t = t + (log_weights - h) / (1 + steep / (1 + np.exp(t)))
    return t


def reflected(x: Array) -> Array:
    """Return Rx along the last axis: the reflection R maps the first axis to the mean of all; R² = 1."""
    n = x.shape[-1]
    if n == 1:
        return x
    w = np.full(n, 1 / np.sqrt(n))
    w[0] -= 1
    mirrored: Array = x - w * (x @ w)[..., None] / (1 - 1 / np.sqrt(n))
    return mirrored


def directions_of(u: Array, v: Array, log_s: Array, log_sigma: Array, owner: npt.NDArray[np.int64]) -> Array:
    """Return β_jf = s_f (σ_0 u_kf + σ_1 v_jf)."""
    sigma = np.exp(log_sigma)[..., None, None, :]
    beta: Array = np.exp(log_s)[..., None, :] * (sigma[..., 0] * u[..., owner, :] + sigma[..., 1] * v)
    return beta
