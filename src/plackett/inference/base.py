"""Input and output of a driver, and checks of settings."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from plackett.data.validation import is_bool, is_number, is_whole, plain
from plackett.engines.base import Rows
from plackett.model.race import Array
from plackett.model.weights import GIG, Gam, WeightPrior
from plackett.posterior.base import RacePosterior

Probe = Callable[[Any], Array]  # takes draws of weights


@dataclass(frozen=True)
class Problem:
    """Packed rows, with what every inference needs.

    Attributes
    ----------
    rows : Rows
        Observations, prepared by an engine.
    rate : float
        b of the Gamma prior (7).
    seed : SeedSequence
        Its children seed the chains.
    progress, seeded : bool
        True to show a progress bar; True if the user chose the seed.
    tailed : GIG, optional
        Prior of the weights if it is not the Gamma.
    shape_steps : int
        Metropolis–Hastings steps of a per plain sweep.
    side_by_side : bool
        True if a pass uses one thread, so that chains share the cores.
    mirrors : array (p,), optional
        Index of the inverse of each feature, if the feature map provides it.
    probe : callable, optional
        Computes the probabilities (chain, draw, row, …) to diagnose from draws of the weights. None: probabilities of
        the groups in some rows of W.
    """

    rows: Rows
    rate: float
    seed: np.random.SeedSequence
    progress: bool = False
    seeded: bool = True
    tailed: GIG | None = None
    shape_steps: int = 1
    side_by_side: bool = False
    mirrors: npt.NDArray[np.intp] | None = None
    probe: Probe | None = None

    def prior(self, shape: float) -> WeightPrior:
        """Return the prior of the weights: (7) with this shape, or one that has its own shape."""
        return Gam(shape, self.rate) if self.tailed is None else self.tailed


@dataclass(frozen=True)
class Fit:
    """Result of an inference."""

    posterior: RacePosterior
    shape: float
    trace: Array
    n_iter: int
    extra: dict[str, Any] = field(default_factory=dict)


def check_count(name: str, value: Any, at_least: int = 1) -> None:
    """Raise unless the value is a whole number of at least this size."""
    if is_bool(value) or not is_whole(value) or value < at_least:
        raise ValueError(f"{name} must be a whole number of at least {at_least}, got {plain(value)} instead.")


def check_tolerance(name: str, value: object) -> None:
    """Raise unless the value is finite and non-negative."""
    if is_bool(value) or not is_number(value) or not 0 <= value < np.inf:
        raise ValueError(f"{name} must be a non-negative number, got {plain(value)} instead.")


def open_ended(settings: Any) -> bool:
    """True if chains run until predictions settle: neither draws nor a target are given."""
    return settings.draws is None and settings.target_ess is None


def check_run(settings: Any, form: str = "{}") -> None:
    """Raise for impossible lengths and limits of a run; `form` formats the name of a setting."""
    check_count(form.format("draws"), settings.draws)
    check_count(form.format("tune"), settings.tune, at_least=0)
    check_count(form.format("chains"), settings.chains)
    check_count(form.format("max_draws"), settings.max_draws)
    for name in ("target_ess", "max_seconds"):
        if getattr(settings, name) is not None:
            check_tolerance(form.format(name), getattr(settings, name))
