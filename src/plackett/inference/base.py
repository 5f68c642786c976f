"""What a driver is given and what it gives back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from plackett.data.validation import plain
from plackett.engines.base import Rows
from plackett.model.race import Array
from plackett.model.weights import GIG, Gam, WeightPrior
from plackett.posterior.base import RacePosterior

Probe = Callable[[Any], Array]  # draws of weights in


@dataclass(frozen=True)
class Problem:
    """The packed rows, and what every inference shares.

    Attributes
    ----------
    rows : Rows
        What was observed, as an engine holds it.
    rate : float
        b of the Gamma prior (7).
    seed : SeedSequence
        Chains are seeded with its children.
    progress, seeded : bool
        Whether to show a bar, and whether the user chose the seed.
    tailed : GIG, optional
        The prior of the weights, where it is not the Gamma.
    shape_steps : int
        Metropolis–Hastings steps of a between two passes of plain sweeps.
    side_by_side : bool
        Whether a pass keeps to one thread, so that chains may share the cores.
    mirrors : array (p,), optional
        Which feature is the inverse of which, where the feature map says so.
    probe : callable, optional
        Probabilities (chain, draw, row, …) that are diagnosed, given draws of the weights; None: those of the groups
        in some rows of W.
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


def check_tolerance(name: str, value: object) -> None:
    """Refuse anything but a finite non-negative number."""
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0 <= value < np.inf:
        raise ValueError(f"{name} must be a non-negative number, got {plain(value)} instead.")


def open_ended(settings: Any) -> bool:
    """Whether chains go on until predictions are settled: neither draws nor a target are given."""
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
