"""What EM and the sampler are given of the persons, whichever kind of data they left.

Parameters of C segments are an array (C, D): coefficients of columns, or log-worths of items. Knows no estimator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

from plackett.model.race import Array

Codes = npt.NDArray[np.intp]


class Expected(NamedTuple):
    """One pass over the observations under the parameters of all segments.

    Attributes
    ----------
    values : (N, C) array
        Log-likelihood of the observations of each person in each segment.
    improved : callable
        Takes weights (N, C) and returns parameters with a value of Σ weights·values + log-prior that is no smaller.
    """

    values: Array
    improved: Callable[[Array], Array]


class Persons(Protocol):
    """Observations by person. A person may stand for several: `counts` says for how many."""

    @property
    def counts(self) -> Array:
        """How many persons each stands for, (N,)."""
        ...

    def base(self) -> Array:
        """Parameters (D,) of a single segment: the maximum, or close to it."""
        ...

    def disturbed(self, base: Array, segments: int, rng: np.random.Generator) -> Array:
        """Parameters (C, D) about those of a single segment, where a climb starts."""
        ...

    def values(self, parameters: Array) -> Array:
        """Log-likelihoods (N, C) of the observations of each person in each segment."""
        ...

    def expect(self, parameters: Array) -> Expected:
        """Log-likelihoods, and what an M-step needs."""
        ...

    def normalised(self, parameters: Array) -> Array:
        """The same parameters in the form that M-steps return."""
        ...

    def log_prior(self, parameters: Array) -> float:
        """Logarithm of the prior density of the parameters, up to a constant."""
        ...

    def distance(self, one: Array, other: Array) -> float:
        """The largest difference between two sets of parameters."""
        ...

    def part(self, some: Codes) -> Self:
        """Some of the persons."""
        ...
