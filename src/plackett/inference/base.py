"""What a driver is given and what it gives back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from plackett.data.validation import plain
from plackett.engines import Features, Rows
from plackett.engines.base import SituationRows
from plackett.model.race import Array, Weights
from plackett.model.weights import GIG, Gam, WeightPrior
from plackett.posterior.base import RacePosterior

PROBED = 2000  # rows that the likelihood of a start sees, or is worth
Probe = Callable[[Any], Array]  # draws of weights in
Trial = Callable[[Array, float], float]  # a log-likelihood of ln λ̄ and ln Λ


class Seen(Protocol):
    """What was seen, as far as a sampler asks for it besides passes."""

    @property
    def probe(self) -> Probe | None:
        """Probabilities (chain, draw, row, …) that are diagnosed, where they are not those of groups by row."""
        ...

    @property
    def features(self) -> Features:
        """Rows of W, some of whose predictions are diagnosed."""
        ...

    def trial(self, rng: np.random.Generator) -> Trial:
        """A log-likelihood to choose starts by, of about 2,000 rows at the most."""
        ...

    def identity(self) -> tuple[Any, ...]:
        """Arrays that must be the same for a checkpoint to be continued."""
        ...


@dataclass(frozen=True)
class SeenClasses:
    """One class a row: the features that the rows were packed from, and what belongs to them, in the same order."""

    features: Features
    codes: npt.NDArray[np.intp]
    mirrors: npt.NDArray[np.intp] | None  # which feature is the inverse of which, where the map knows
    sample_weight: Array | None = None  # None if all are 1
    probe: Probe | None = None

    def trial(self, rng: np.random.Generator) -> Trial:
        """Of some rows, which do not know Λ."""
        n = len(self.codes)
        some = rng.choice(n, PROBED, replace=False) if n > PROBED else np.arange(n)
        W, codes = self.features[some], self.codes[some]
        weight = np.ones(len(some)) if self.sample_weight is None else self.sample_weight[some]
        weight = weight * min(1.0, PROBED / weight.sum())

        def log_likelihood(log_weights: Array, log_mass: float) -> float:
            scores = W @ np.exp(log_weights).T
            own = scores[np.arange(len(codes)), codes] / scores.sum(axis=1)
            return float((weight * np.log(np.maximum(own, 1e-300))).sum())

        return log_likelihood

    def identity(self) -> tuple[Any, ...]:
        """Features, classes, mirrors and weights."""
        weight = () if self.sample_weight is None else (self.sample_weight,)
        return self.features, self.codes, self.mirrors, *weight


@dataclass(frozen=True)
class SeenSituations:
    """Outcomes of situations, which are asked of their rows."""

    rows: SituationRows
    probe: Probe | None = None
    mirrors: npt.NDArray[np.intp] | None = None  # which feature is the inverse of which, where the map knows

    @property
    def features(self) -> Features:
        """The rows of W that the situations use."""
        return self.rows.features

    def trial(self, rng: np.random.Generator) -> Trial:
        """Of all situations, to the power that makes them worth 2,000."""
        power = min(1.0, PROBED / self.rows.n_seen)
        return lambda log_weights, log_mass: power * self.rows.value(Weights.point(log_weights + log_mass))

    def identity(self) -> tuple[Any, ...]:
        """Features and outcomes, in the order in which passes go through them, and mirrors."""
        return *self.rows.held, self.mirrors


@dataclass(frozen=True)
class Problem:
    """The packed rows, what was seen in them, and what every inference shares."""

    rows: Rows
    seen: Seen
    rate: float
    seed: np.random.SeedSequence
    progress: bool = False
    seeded: bool = True  # whether the user chose the seed
    tailed: GIG | None = None  # the prior of the weights, where it is not the Gamma
    shape_steps: int = 1  # Metropolis–Hastings steps of a between two passes of plain sweeps
    side_by_side: bool = False  # whether a pass keeps to one thread, so that chains may share the cores

    def prior(self, shape: float) -> WeightPrior:
        """The prior of the weights: (7) with this shape, or one that has a shape of its own."""
        return Gam(shape, self.rate) if self.tailed is None else self.tailed


@dataclass(frozen=True)
class Fit:
    """The result of an inference."""

    posterior: RacePosterior
    shape: float
    trace: Array
    n_iter: int
    extra: dict[str, Any] = field(default_factory=dict)


def check_count(name: str, value: Any, at_least: int = 1) -> None:
    """Refuse anything but a whole number of at least that size."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < at_least:
        raise ValueError(f"{name} must be a whole number of at least {at_least}, got {plain(value)} instead.")


def check_tolerance(name: str, value: Any) -> None:
    """Refuse anything but a finite non-negative number."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0 <= value < np.inf:
        raise ValueError(f"{name} must be a non-negative number, got {plain(value)} instead.")


def open_ended(settings: Any) -> bool:
    """Whether chains go on until predictions have converged: neither draws nor a target are given."""
    return settings.draws is None and settings.target_ess is None


def check_run(settings: Any, form: str = "{}") -> None:
    """Refuse lengths and limits of a run of chains that make no sense; `form` says how a setting is named."""
    check_count(form.format("draws"), settings.draws)
    check_count(form.format("tune"), settings.tune, at_least=0)
    check_count(form.format("chains"), settings.chains)
    check_count(form.format("max_draws"), settings.max_draws)
    for name in ("target_ess", "max_seconds"):
        if getattr(settings, name) is not None:
            check_tolerance(form.format(name), getattr(settings, name))
