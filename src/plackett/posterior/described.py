"""Posteriors of worths of described items: those of weights, with the coefficients γ of the items' covariates.

A new item with covariates z has ln λ = z·γ + y, where y has the law of the residuals, ln Gam(a, a).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from plackett.model.race import Array
from plackett.posterior.base import Quantities, Variables
from plackett.posterior.weights import Draws, Point, WeightModel


def log_gamma(rng: np.random.Generator, shape: Array, size: tuple[int, ...]) -> Array:
    """Draw ln of Gam(shape, 1), for small shapes without underflow."""
    above = np.log(rng.standard_gamma(shape + 1.0, size))
    return np.asarray(above - rng.standard_exponential(size) / shape)


def residuals_of(log_weights: Array, gamma: Array, z: Array) -> Array:
    """Return ln of the residuals (S, K), of which only differences are known, from ln λ (S, K) and γ (S, d)."""
    return np.asarray(log_weights - gamma @ z.T)


class Described:
    """Methods of both posteriors."""

    gamma: Array

    def effects(self) -> Array:
        """Return draws (S, d) of γ, per standard deviation of its column."""
        return self.gamma.reshape(-1, self.gamma.shape[-1])


@dataclass(frozen=True)
class DescribedDraws(Described, Draws):
    """Draws of a Markov chain, with those of γ (chain, draw, d)."""

    drawn: ClassVar[tuple[str, ...]] = (*Draws.drawn, "gamma")
    gamma: Array = field(kw_only=True, repr=False)

    def new_log_rates(self, known: Array, new: Array, rng: np.random.Generator) -> Array:
        """Draw ln λ (S, n) of new items with covariates (n, d), on the scale of λ̄; `known` are those of the items.

        The sum of K independent Gam(a, 1) is Gam(Ka, 1) and independent of their proportions, which are known.
        """
        gamma, shape = self.effects(), self.shape.reshape(-1, 1)
        y = residuals_of(self.log_weights.reshape(-1, len(known)), gamma, known)
        total = np.logaddexp.reduce(y, axis=1, keepdims=True) - log_gamma(rng, len(known) * shape, shape.shape)
        return np.asarray(gamma @ new.T + log_gamma(rng, shape, (len(shape), len(new))) + total)

    def shapes(self, fitted: float) -> Array:
        """Return draws (S,) of the shape of the residuals."""
        return self.shape.ravel()

    def variables(self, model: WeightModel, raw: bool) -> Variables:
        """Return those of worths, and ``gamma`` per unit of its column."""
        values, dims, coords = super().variables(model, raw)
        return Variables(*with_gamma(model, self.gamma, values, dims, dict(coords)))

    def quantities(self, model: WeightModel) -> Quantities:
        """Return those of worths, and every γ."""
        found, names = super().quantities(model), names_of(model)
        named = {f"gamma[{name}]": (f"γ of {name}", self.gamma[..., j]) for j, name in enumerate(names)}
        return found._replace(scalars=found.scalars | named)


@dataclass(frozen=True)
class DescribedPoint(Described, Point):
    """Mode in ln λ and γ (d,) at a given shape."""

    gamma: Array = field(kw_only=True)

    def new_log_rates(self, known: Array, new: Array, rng: np.random.Generator) -> Array:
        """Return the modes (1, n) of new items, whose residuals are the average of the others."""
        y = residuals_of(np.log(self.weights.reshape(1, -1)), self.effects(), known)
        total = np.logaddexp.reduce(y, axis=1, keepdims=True) - np.log(len(known))
        return np.asarray(self.effects() @ new.T + total)

    def shapes(self, fitted: float) -> Array:
        """Return the shape of the fit (1,)."""
        return np.array([fitted])


def names_of(model: Any) -> tuple[str, ...]:
    """Names of the columns of γ."""
    found: tuple[str, ...] = model.item_covariates_.names
    return found


def with_gamma(model: Any, gamma: Array, values: Any, dims: Any, coords: Any) -> tuple[Any, Any, Any]:
    """Add γ per unit to draws by name."""
    dims, coords = dims | {"gamma": ["covariate"]}, coords | {"covariate": np.array(names_of(model), dtype=object)}
    return values | {"gamma": gamma / model.item_covariates_.scale}, dims, coords
