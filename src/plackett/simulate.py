"""Drawing from the model: the race of section 2 and the prior (7), for tests and teaching."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import Bunch

from plackett.model.race import Array
from plackett.model.weights import Gam
from plackett.posterior.weights import normalised

__all__ = ["prior_predictive", "prior_weights", "race"]


def prior_weights(n_classes: int, n_features: int, shape: float, rate: float = 1.0, *, rng: Any = None) -> Array:
    """ln λ with λ_kj ~ Gam(a, b), equation (7), shape (K, p); logarithms because small shapes underflow.

    Examples
    --------
    >>> from plackett.simulate import prior_weights
    >>> prior_weights(3, 5, shape=0.01, rng=0).shape
    (3, 5)
    """
    rng = np.random.default_rng(rng)
    return Gam(shape, rate).draw(rng, (n_classes, n_features))


def race(features: npt.NDArray[np.floating], log_weights: Array, *, rng: Any = None) -> Bunch:
    """Run the race of every row: V_ikj ~ Exp(W_ij λ_kj), and the team of the first arrival wins.

    Parameters
    ----------
    features : (n, p) array
        W.
    log_weights : (K, p) array
        ln λ.
    rng : seed or Generator, optional
        Random numbers.

    Returns
    -------
    Bunch
        ``winner`` Y (n,), the winning team; ``competitor`` C (n,), who of that team came first; ``log_time``
        ln Z (n,), the logarithm of the time of arrival.

    Examples
    --------
    >>> import numpy as np
    >>> from plackett.simulate import race
    >>> result = race(np.ones((4, 2)), np.zeros((3, 2)), rng=1)
    >>> result.winner.shape, result.competitor.max() < 2
    ((4,), np.True_)
    """
    rng = np.random.default_rng(rng)
    features = np.asarray(features, dtype=np.float64)
    n, p = features.shape
    K = len(log_weights)
    with np.errstate(divide="ignore"):
        log_rate = np.log(features)[:, None, :] + log_weights
        log_time = (np.log(rng.standard_exponential((n, K, p))) - log_rate).reshape(n, K * p)
    first = np.argmin(log_time, axis=1)
    return Bunch(winner=first // p, competitor=first % p, log_time=log_time[np.arange(n), first])


def prior_predictive(
    features: npt.NDArray[np.floating], n_classes: int, shape: float, rate: float = 1.0, *, rng: Any = None
) -> Bunch:
    """Weights from the prior and one race for each row: ``log_weights`` (normalised) and ``winner``."""
    rng = np.random.default_rng(rng)
    log_weights = prior_weights(n_classes, np.shape(features)[1], shape, rate, rng=rng)
    return Bunch(log_weights=normalised(log_weights), winner=race(features, log_weights, rng=rng).winner)
