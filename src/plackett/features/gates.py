"""The gates of learned directions as a plain non-negative feature map."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin

from plackett.compute.pieces import COLUMNS, over_rows
from plackett.data.model_input import numbers
from plackett.features.standardise import average_row, standardise
from plackett.model.race import Array

CHUNK = 1 << 18  # gates per batch
MANY = 1 << 22  # number of gates from which all cores are used
FLOOR = 1e-12  # smallest gate, so that products of gates do not underflow


class Gates(TransformerMixin, BaseEstimator):
    """π_sj(x) = softmax_j(offset_sj + z·direction_sj) of S draws, z = (x − mean)/scale · rotation: S·M features.

    The parameters determine the map; fitting learns nothing. With the votes of the same draws as weights, Σ_sj π_sj(x)
    θ_sjk / S is the posterior average, so that a fitted model is reused as ``PlackettLuceClassifier(inference,
    features=clf.features_)``.

    Parameters
    ----------
    directions : (S, M, r) array
        β of each draw, for the columns of z.
    offsets : (S, M) array
        ln Λ.
    mean, scale : (d,) arrays
        Standardisation of the covariates; the scale of a constant one is infinite.
    rotation : (d, r) array, optional
        Principal axes, used for thousands of covariates that outnumber the rows.
    knots : (2, d, m) array, optional
        Values and their scores if covariates enter as normal scores, to which mean and scale then belong.
    """

    def __init__(
        self,
        directions: Array,
        offsets: Array,
        mean: Array,
        scale: Array,
        rotation: Array | None = None,
        knots: Array | None = None,
    ):
        self.directions = directions
        self.offsets = offsets
        self.mean = mean
        self.scale = scale
        self.rotation = rotation
        self.knots = knots

    def fit(self, X: Any, y: Any = None) -> Gates:
        """Check the number of columns."""
        self._checked(X, reset=True)
        return self

    def transform(self, X: object) -> Array:
        """Return gates (n, S·M), at least FLOOR; those of one draw sum to 1."""
        X = self._checked(X)
        gates = np.empty((len(X), self.offsets.size))
        start = 0
        for block in self.chunks(X):
            gates[start : start + len(block)] = np.maximum(block, FLOOR).reshape(len(block), -1)
            start += len(block)
        return gates

    def chunks(self, X: Array) -> Iterator[Array]:
        """Yield gates (rows, S, M) of runs of rows."""
        S, M, r = self.directions.shape
        flat, offsets = self.directions.transpose(2, 1, 0).reshape(r, M * S), self.offsets.T
        step = max(1, CHUNK // self.offsets.size)
        for start in range(0, len(X), step):
            scores = (self.standardised(X[start : start + step]) @ flat).reshape(-1, M, S)
            yield softmax(scores, offsets).transpose(0, 2, 1)

    def mixed(self, X: Array, weights: Array) -> Array:
        """Return Σ_sj π_sj(x) weights_ksj of every row and k, (n, K), for weights (K, S·M), without storing gates."""
        S, M, r = self.directions.shape
        step = max(1, COLUMNS // M)
        of_classes = weights.reshape(-1, S, M)

        def work(piece: Array) -> Array:
            Z, total = self.standardised(piece).T, np.zeros((len(weights), len(piece)))
            for s in range(0, S, step):
                scores = self.directions[s : s + step].reshape(-1, r) @ Z
                gates = softmax(scores.reshape(-1, M, len(piece)), self.offsets[s : s + step, :, None])
                total += of_classes[:, s : s + step].reshape(len(weights), -1) @ gates.reshape(-1, len(piece))
            return total.T

        return over_rows(work, [X], many=len(X) * S * M >= MANY)

    def standardised(self, X: Array) -> Array:
        """Return the rows z that directions apply to."""
        return standardise(X, self.mean, self.scale, self.rotation, self.knots)

    def on_scale(self, X: Array, places: Sequence[int] | None = None) -> Array:
        """Return rows on the scale of z by covariate, of all or of some columns; zero for uninformative covariates."""
        some = slice(None) if places is None else list(places)
        knots = None if self.knots is None else self.knots[:, some]
        return np.nan_to_num(standardise(X, self.mean[some], self.scale[some], knots=knots))

    def directions_along(self, places: Sequence[int]) -> Array:
        """Return directions (S, M, …) along some of the standardised covariates."""
        some = list(places)
        return self.directions[:, :, some] if self.rotation is None else self.directions @ self.rotation[some].T

    def along_covariates(self, slopes: Array) -> Array:
        """Convert slopes (…, r) by columns of z to slopes (…, d) by standardised covariates, zero for constant ones."""
        found = slopes if self.rotation is None else slopes @ self.rotation.T
        return np.where(np.isfinite(self.scale), found, 0.0)

    def reference(self) -> tuple[Array, str]:
        """Return the row where z = 0, and its description."""
        return average_row(self.mean, self.knots)

    def get_feature_names_out(self, input_features: object = None) -> npt.NDArray[np.object_]:
        """Return draw and component of each gate."""
        S, M = self.offsets.shape
        return np.array([f"gate{s}_{j}" for s in range(S) for j in range(M)], dtype=object)

    def _checked(self, X: object, reset: bool = False) -> Array:
        X = numbers(self, X, reset)
        if X.shape[1] != len(self.mean):
            raise ValueError(f"the directions are for {len(self.mean)} columns, got {X.shape[1]} instead.")
        return X

    def __sklearn_is_fitted__(self) -> bool:
        return True


def softmax(scores: Array, offsets: Array) -> Array:
    """Divide e^{score + offset} by its sum along axis 1, in place."""
    scores += offsets
    scores -= scores.max(axis=1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=1, keepdims=True)
    return scores
