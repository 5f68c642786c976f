"""Predictions of learned directions on the GPU, in batches of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from plackett.engines.cupy_directions import PRODUCTS
from plackett.engines.device import gpu
from plackett.features.gates import Gates, softmax
from plackett.model.features import RUN
from plackett.model.race import Array


class GatesOnGpu(Gates):
    """Gates whose mixtures are computed on the GPU."""

    @classmethod
    def of(cls, gates: Gates) -> GatesOnGpu:
        """Convert gates, with all that they have learned."""
        made = cls(**gates.get_params(deep=False))
        made.__dict__.update(gates.__dict__)
        return made

    def mixed(self, X: Array, weights: Array) -> Array:
        """Return Σ_sj π_sj(x) weights_ksj of every row and k, (n, K), for weights (K, S·M)."""
        xp, some = gpu(), max(PRODUCTS // (8 * self.offsets.size), RUN)
        held = xp.asarray(self.directions), xp.asarray(self.offsets), xp.asarray(weights)
        pieces = (self.standardised(X[start : start + some]) for start in range(0, len(X), some))
        return np.concatenate([mixed(xp.asarray(Z), *held).get() for Z in pieces])


def mixed(Z: Any, directions: Any, offsets: Any, weights: Any) -> Any:
    """Return mixtures of the gates of standardised rows, in CuPy or NumPy."""
    S, M, r = directions.shape
    scores = (Z @ directions.reshape(S * M, r).T).reshape(-1, S, M).transpose(0, 2, 1)
    gates = softmax(scores, offsets.T)
    return gates.transpose(0, 2, 1).reshape(-1, S * M) @ weights.T
