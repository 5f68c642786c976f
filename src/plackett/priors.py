"""Priors: of the shape a (section 3.5), as log-densities on an interval; and `GIG` of the weights (section 5).

`plackett.model.weights` implements priors of the weights.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np

from plackett.data.validation import plain
from plackett.model.race import Array
from plackett.model.weights import GIG

__all__ = ["GIG", "Density", "Gamma", "LogUniform", "ShapePrior"]


class ShapePrior(Protocol):
    """A density of a on [lower, upper], up to a constant."""

    @property
    def lower(self) -> float:
        """Smallest a."""
        ...

    @property
    def upper(self) -> float:
        """Largest a."""
        ...

    def log_density(self, shape: Array) -> Array:
        """ln p(a), elementwise."""
        ...


def _check_interval(lower: float, upper: float) -> None:
    if not (0 < lower < upper < np.inf):
        raise ValueError(
            f"a shape prior needs 0 < lower < upper < inf, got lower={plain(lower)}, upper={plain(upper)} instead."
        )


@dataclass(frozen=True)
class LogUniform:
    """p(a) ∝ 1/a on an interval: the paper's prior, truncated to be proper.

    Examples
    --------
    >>> from plackett.priors import LogUniform
    >>> LogUniform(1e-3, 10)
    LogUniform(lower=0.001, upper=10)
    """

    lower: float = 1e-4
    upper: float = 1e2

    def __post_init__(self) -> None:
        _check_interval(self.lower, self.upper)

    def log_density(self, shape: Array) -> Array:
        """−ln a."""
        return -np.log(shape)


@dataclass(frozen=True)
class Gamma:
    """a ~ Gam(shape, rate), truncated to an interval that omits only its far tails."""

    shape: float = 1.0
    rate: float = 1.0
    lower: float = 1e-6
    upper: float = 1e4

    def __post_init__(self) -> None:
        _check_interval(self.lower, self.upper)
        if not (self.shape > 0 and self.rate > 0):
            raise ValueError(
                f"Gamma prior needs shape > 0 and rate > 0, got {plain(self.shape)}, {plain(self.rate)} instead."
            )

    def log_density(self, shape: Array) -> Array:
        """(shape − 1) ln a − rate·a."""
        return (self.shape - 1) * np.log(shape) - self.rate * shape


@dataclass(frozen=True)
class Density:
    """Any log-density in a, given as a function on an interval."""

    function: Callable[[float], float]
    lower: float = 1e-4
    upper: float = 1e2

    def __post_init__(self) -> None:
        _check_interval(self.lower, self.upper)

    def log_density(self, shape: Array) -> Array:
        """Return the function, elementwise."""
        return np.vectorize(self.function, otypes=[float])(shape)


def as_prior(prior: ShapePrior | Callable[[float], float] | str | None) -> ShapePrior:
    """Convert None, a prior, a log-density, or "improper" (the paper's 1/a) to a prior."""
    if prior is None:
        return LogUniform()
    if isinstance(prior, str):
        if prior != "improper":
            raise ValueError(f"shape_prior must be a prior, a log-density or 'improper', got {prior!r} instead.")
        warnings.warn(
            "p(a) ∝ 1/a on (0, ∞) has no proper posterior: as a grows the weights become equal and the likelihood "
            "stays above K^-n, so the posterior mass at large a is infinite and chains may drift. The interval is "
            "cut at 1e-10 and 1e10. Use LogUniform(lower, upper) for results that do not depend on the cut.",
            UserWarning,
            stacklevel=3,
        )
        return LogUniform(1e-10, 1e10)
    if hasattr(prior, "log_density"):
        return cast(ShapePrior, prior)
    if callable(prior):
        return Density(prior)
    raise ValueError(f"shape_prior must be a prior, a log-density or 'improper', got {prior!r} instead.")


def tabulate(prior: ShapePrior, points: int = 16385) -> tuple[Array, float, float]:
    """Tabulate the log-density of ln a on an even grid; return it with the grid's start and spacing.

    Compiled code interpolates this table linearly; for LogUniform that is exact.
    """
    grid = np.linspace(np.log(prior.lower), np.log(prior.upper), points)
    values = np.asarray(prior.log_density(np.exp(grid)), dtype=np.float64) + grid
    if np.isnan(values).any() or not np.isfinite(values).any() or np.isposinf(values).any():
        raise ValueError(
            f"the log-density of shape_prior must be finite or −inf on [{prior.lower:g}, {prior.upper:g}] and finite "
            "somewhere; it gave NaN, +inf or −inf throughout."
        )
    return values, float(grid[0]), float(grid[1] - grid[0])
