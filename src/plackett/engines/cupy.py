"""GPU engine: passes by the kernels in ``cuda/``."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from plackett.capabilities import Offers
from plackett.data.observations import Observations
from plackett.engines.base import COMPILED, Features, Rows
from plackett.engines.cupy_directions import CupyDirections, bring_covariates
from plackett.engines.cupy_situations import CupySituations
from plackett.engines.device import gpu
from plackett.engines.tiles import bring_rows
from plackett.model.race import Array


class CupyEngine:
    """Passes on one NVIDIA GPU.

    Parameters
    ----------
    exact : bool
        Store features of classes in float64 whatever their type, as maximisation needs.
    """

    offers = Offers(COMPILED)

    def __init__(self, exact: bool = False) -> None:
        gpu()
        self.exact = exact

    def rows(self, W: Features | None, seen: Observations, places: Any = None) -> Rows:
        """Copy the rows to the GPU, in canonical order."""
        if W is None:
            raise ValueError(
                "rankings without covariates are reduced to sets of remaining items, which are fast on the processor: "
                "engine='cupy' does not take them. Use engine='auto'."
            )
        if seen.situations is None:
            return bring_rows(W, seen, places, self.exact)
        found = CupySituations(W, seen)
        if places is not None:
            found.put(places)
        return found

    def gradient(self, Z: Array, seen: Observations, dtype: npt.DTypeLike) -> CupyDirections | CupySituations:
        """Copy covariates to the GPU, for features that are computed during a pass."""
        return CupySituations(Z, seen) if seen.codes is None else bring_covariates(Z, seen, np.dtype(dtype))
