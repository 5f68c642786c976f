"""Population law of tastes as a parameter: its prior, and its conjugate draw given the persons' tastes.

For columns of one scale μ_k ~ N(0, m_k²), fixed coefficients φ ~ N(0, m²), and Σ has the prior of Huang & Wand (2013)
with ν = 2: Σ | a ~ IW(ν + d − 1, 2ν diag(1/a)) and a_k ~ IG(½, 1/A_k²), under which a deviation is half-t with ν
degrees of freedom and scale A_k, and a correlation uniform. Given a, μ and Σ are conjugate to the tastes. Without a,

    p(Σ) ∝ |Σ|^{−(ν+2d)/2} Π_k (ν (Σ⁻¹)_kk + 1/A_k²)^{−(ν+d)/2}.

Without correlation each standard deviation has this law separately, with d = 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from plackett.model.race import Array
from plackett.model.taste_law import TasteLaw

NU = 2.0
MEAN_SPREAD, LOG_MEAN_SPREAD = 10.0, 4.0  # m of coefficients, and of logarithms of log-normal ones
SD_SCALE, LOG_SD_SCALE = 5.0, 2.0  # A


class Population(NamedTuple):
    """Values of the law: μ (d,), the lower factor L (d, d) of Σ = L Lᵀ, and fixed coefficients φ (q,)."""

    mean: Array
    factor: Array
    fixed: Array


class PopulationPrior(NamedTuple):
    """Prior of a population law."""

    correlated: bool
    mean_spread: Array  # (d,): m
    sd_scale: Array  # (d,): A
    fixed_spread: float

    @classmethod
    def of(cls, law: TasteLaw) -> PopulationPrior:
        """Return the prior for columns of one scale."""
        log = law.sign != 0
        spread = np.where(log, LOG_MEAN_SPREAD, MEAN_SPREAD)
        return cls(law.correlated, spread, np.where(log, LOG_SD_SCALE, SD_SCALE), MEAN_SPREAD)

    def log_density(self, at: Population) -> float:
        """Return ln p(μ, Σ, φ) up to a constant, a density of Σ with respect to the coordinates of `free`."""
        value = -0.5 * float((at.mean**2 / self.mean_spread**2).sum() + (at.fixed**2).sum() / self.fixed_spread**2)
        return value + self._of_factor(at.factor)

    def _of_factor(self, factor: Array) -> float:
        d, diagonal = len(factor), np.log(np.diag(factor))
        small = 1 / self.sd_scale**2
        if not self.correlated:
            precision = np.exp(-2 * diagonal)
            return float(-NU * diagonal.sum() - 0.5 * (NU + 1) * np.log(NU * precision + small).sum())
        inverse = np.linalg.inv(factor)
        precision = (inverse**2).sum(axis=0)
        powers = np.arange(d, 0, -1) + 1.0 - (NU + 2 * d)
        return float(powers @ diagonal - 0.5 * (NU + d) * np.log(NU * precision + small).sum())

    def slopes(self, at: Population) -> tuple[Array, Array, Array]:
        """Return the gradient in μ, in the coordinates of L, as a lower matrix, and in φ."""
        factor, small = at.factor, 1 / self.sd_scale**2
        d, diagonal = len(factor), np.diag(at.factor)
        if not self.correlated:
            precision = diagonal**-2.0
            weight = NU * precision / (NU * precision + small)
            of_factor = np.diag(-NU + (NU + 1) * weight)
        else:
            inverse = np.linalg.inv(factor)
            Q = inverse.T @ inverse
            weight = (NU + d) * NU / (NU * np.diag(Q) + small)
            of_factor = np.tril(Q @ (weight[:, None] * inverse.T))  # Q diag(w) Q L
            np.fill_diagonal(of_factor, np.diag(of_factor) * diagonal + np.arange(d, 0, -1) + 1.0 - (NU + 2 * d))
        return -at.mean / self.mean_spread**2, of_factor, -at.fixed / self.fixed_spread**2

    def draw(self, rng: np.random.Generator, n_fixed: int) -> Population:
        """Draw a law from the prior."""
        d = len(self.mean_spread)
        a = 1 / rng.gamma(0.5, self.sd_scale**2)
        mean = self.mean_spread * rng.standard_normal(d)
        fixed = self.fixed_spread * rng.standard_normal(n_fixed)
        return Population(mean, self._factor(rng, a, np.zeros((d, d)), 0), fixed)

    def renew(self, rng: np.random.Generator, at: Population, tastes: Array) -> Population:
        """Draw Σ given μ and the tastes b (N, d), then μ given Σ: a Gibbs step."""
        N, d = tastes.shape
        inverse = np.linalg.inv(at.factor)
        precision, small = (inverse**2).sum(axis=0), 1 / self.sd_scale**2
        more = d if self.correlated else 1
        a = 1 / rng.gamma(0.5 * (NU + more), 1 / (NU * precision + small))
        residual = tastes - at.mean
        factor = self._factor(rng, a, np.einsum("ik,il->kl", residual, residual), N)
        inverse = np.linalg.inv(factor)
        Q = inverse.T @ inverse
        whole = N * Q + np.diag(1 / self.mean_spread**2)
        root = np.linalg.inv(np.linalg.cholesky(whole))
        mean = root.T @ (root @ (Q @ tastes.sum(axis=0)) + rng.standard_normal(d))
        return Population(mean, factor, at.fixed)

    def _factor(self, rng: np.random.Generator, a: Array, scatter: Array, n: int) -> Array:
        """Draw L of Σ ~ IW(ν + d − 1 + n, 2ν diag(1/a) + scatter); without correlation, separate deviations."""
        d = len(a)
        if not self.correlated:
            return np.diag(np.sqrt((NU / a + 0.5 * np.diag(scatter)) / rng.standard_gamma(0.5 * (NU + n), d)))
        # Σ⁻¹ ~ W: with the scale S = R Rᵀ of Σ and Bartlett's lower B, Σ⁻¹ = R⁻ᵀ B Bᵀ R⁻¹.
        root = np.linalg.cholesky(2 * NU * np.diag(1 / a) + scatter)
        bartlett = np.tril(rng.standard_normal((d, d)), -1)
        bartlett[np.diag_indices(d)] = np.sqrt(2 * rng.standard_gamma(0.5 * (NU + d - 1 + n - np.arange(d))))
        half = np.linalg.inv(bartlett) @ root.T  # Σ = halfᵀ half
        upper = np.linalg.qr(half, mode="r")
        return np.ascontiguousarray((upper * np.sign(np.diag(upper))[:, None]).T)
