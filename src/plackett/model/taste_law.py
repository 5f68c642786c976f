"""Population law of tastes: which coefficients differ between persons, their distribution, and its summaries.

Person i has the coefficients c_i of p columns. Those of the d random columns follow from b_i ~ N(μ, Σ), Σ = L Lᵀ:
c = b under the law "normal", c = e^b under "lognormal", c = −e^b under "-lognormal". The others are the same for all.
The module knows neither data nor how draws are made.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from plackett.model.race import Array

Whole = npt.NDArray[np.int64]
SIGNS = {"normal": 0, "lognormal": 1, "-lognormal": -1}  # sign of a coefficient; 0: unrestricted
LARGEST = 50.0  # ln of the largest coefficient of a log-normal law


class TasteLaw(NamedTuple):
    """Random columns among p, and their laws.

    Attributes
    ----------
    random : (d,) array
        Positions of the random columns, sorted.
    sign : (d,) array
        0: normal; 1 or −1: log-normal with this sign.
    fixed : (q,) array
        Positions of the other columns.
    correlated : bool
        True if Σ is a full matrix, False if it is diagonal.
    """

    random: Whole
    sign: Whole
    fixed: Whole
    correlated: bool

    @classmethod
    def of(cls, random: npt.ArrayLike, sign: npt.ArrayLike, n_columns: int, correlated: bool) -> TasteLaw:
        """Build the law with random coefficients of these columns."""
        places = np.asarray(random, dtype=np.int64)
        others = np.setdiff1d(np.arange(n_columns, dtype=np.int64), places)
        return cls(places, np.asarray(sign, dtype=np.int64), others, bool(correlated and len(places) > 1))

    @property
    def n_columns(self) -> int:
        """p."""
        return len(self.random) + len(self.fixed)

    def signed(self, b: Array) -> Array:
        """Return coefficients (…, d) of the random columns from b (…, d)."""
        found: Array = np.where(self.sign == 0, b, self.sign * np.exp(np.minimum(b, LARGEST)))
        return found

    def coefficients(self, b: Array, fixed: Array) -> Array:
        """Return coefficients (…, p) of all columns from b (…, d) and fixed coefficients (…, q)."""
        shape = np.broadcast_shapes(b.shape[:-1], fixed.shape[:-1])
        found = np.empty((*shape, self.n_columns))
        found[..., self.random], found[..., self.fixed] = self.signed(b), fixed
        return found

    def rescaled(self, mean: Array, factor: Array, fixed: Array, scale: Array) -> tuple[Array, Array, Array]:
        """Return μ (…, d), L (…, d, d) and fixed coefficients for columns multiplied by `scale` (p,)."""
        unit, log = scale[self.random], self.sign != 0
        moved = np.where(log, mean - np.log(unit), mean / unit)
        return moved, factor / np.where(log, 1.0, unit)[:, None], fixed / scale[self.fixed]

    def rescaled_tastes(self, b: Array, scale: Array) -> Array:
        """Return b (…, d) for columns multiplied by `scale` (p,)."""
        unit = scale[self.random]
        found: Array = np.where(self.sign != 0, b - np.log(unit), b / unit)
        return found

    def median_taste(self, mean: Array) -> Array:
        """Median of each random coefficient over the population, from μ (…, d)."""
        return self.signed(mean)

    def mean_taste(self, mean: Array, sd: Array) -> Array:
        """Mean of each random coefficient over the population, from μ and the deviations (…, d)."""
        found: Array = np.where(self.sign == 0, mean, self.signed(mean + 0.5 * np.where(self.sign == 0, 0.0, sd) ** 2))
        return found

    def positive(self, mean: Array, sd: Array) -> Array:
        """Share of the population with a positive coefficient."""
        found: Array = np.where(self.sign == 0, ndtr(mean / sd), (self.sign > 0).astype(np.float64))
        return found


def deviations(factor: Array) -> Array:
    """Standard deviations (…, d) implied by L (…, d, d)."""
    found: Array = np.sqrt((factor**2).sum(axis=-1))
    return found


def correlations(factor: Array) -> Array:
    """Correlation matrices (…, d, d) of L Lᵀ."""
    unit = factor / deviations(factor)[..., None]
    found: Array = unit @ np.swapaxes(unit, -1, -2)
    return found


def normal_points(n: int, d: int, seed: int = 0) -> Array:
    """Quasi-random points (n, d) of independent standard normals; n is a power of two."""
    from scipy.stats.qmc import Sobol

    found: Array = ndtri(np.clip(Sobol(d, seed=seed).random(n), 1e-12, 1 - 1e-12))
    return found


def central(mean: Array, factor: Array, fixed: Array) -> tuple[Array, Array, Array]:
    """Summarise draws (S, …) by one law: average means, deviations, correlations and fixed coefficients.

    An average of correlation matrices is a correlation matrix, so that L exists.
    """
    sd, correlation = deviations(factor).mean(axis=0), correlations(factor).mean(axis=0)
    return mean.mean(axis=0), sd[:, None] * np.linalg.cholesky(correlation), fixed.mean(axis=0)
