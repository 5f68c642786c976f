"""The readable reference: every other engine must equal this one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from plackett.engines.base import KEY_OF_TIMES, Features, canonical_order, uniforms
from plackett.model.race import Array, Stats, Weights, scaled


@dataclass
class NumpyRows:
    """Rows in canonical order: W (n, p), Y (n,) and the weight of each row."""

    features: npt.NDArray[np.floating]
    codes: npt.NDArray[np.intp]
    sample_weight: Array
    n_classes: int
    order: npt.NDArray[np.intp]

    def __post_init__(self) -> None:
        self.n_rows, self.n_features = self.features.shape
        self.member = np.equal.outer(np.arange(self.n_classes), self.codes)  # δ(Y_i, k)

    def _races(self, weights: Weights) -> tuple[Array, Array, Array]:
        """W_ij U_{Y_i j} and W_i·Σ_l V_l, both up to scale, and the terms of the value."""
        own, own_scale = scaled(weights.log_own)
        total, total_scale = scaled(weights.log_total())
        share = self.features * own[self.codes]
        rival = self.features @ total[0]
        with np.errstate(divide="ignore"):
            terms = np.log(share.sum(axis=1) / rival) + own_scale[self.codes] - total_scale
        return share, rival * np.exp(total_scale), terms

    def expect(self, weights: Weights) -> Stats:
        """⟨n_kj⟩ and ⟨z_i⟩ of (10) and (18)."""
        share, rival, terms = self._races(weights)
        own = share.sum(axis=1, keepdims=True)
        claim = self.sample_weight[:, None] * np.divide(share, own, out=np.zeros_like(share), where=own > 0)
        return Stats(self.member @ claim, self._exposure(self.sample_weight / rival), float(self.sample_weight @ terms))

    def sample(self, weights: Weights, key: int) -> Stats:
        """C_i by (11) and Z_i by (12)."""
        share, rival, terms = self._races(weights)
        climb = np.cumsum(share, axis=1)
        target = uniforms(key, self.n_rows) * climb[:, -1]
        winner = np.minimum((climb < target[:, None]).sum(axis=1), self.n_features - 1)
        wins = np.zeros((self.n_classes, self.n_features))
        np.add.at(wins, (self.codes, winner), 1.0)
        arrival = -np.log(uniforms(key ^ KEY_OF_TIMES, self.n_rows)) / rival
        return Stats(wins, self._exposure(arrival), float(terms.sum()))

    def _exposure(self, time: Array) -> Array:
        """Every class is waited for in every row."""
        return np.broadcast_to(time @ self.features, (self.n_classes, self.n_features))


class NumpySparseRows(NumpyRows):
    """The same of CSR rows, none of them empty: `share` has what is not zero, one row after the other."""

    features: Any

    def __post_init__(self) -> None:
        super().__post_init__()
        self.start = self.features.indptr[:-1]
        self.row = np.repeat(np.arange(self.n_rows), np.diff(self.features.indptr))
        self.place = self.codes[self.row], self.features.indices  # of an entry of W in a table (K, p)

    def _races(self, weights: Weights) -> tuple[Array, Array, Array]:
        own, own_scale = scaled(weights.log_own)
        total, total_scale = scaled(weights.log_total())
        share = self.features.data * own[self.place]
        rival = self.features @ total[0]
        with np.errstate(divide="ignore"):
            terms = np.log(np.add.reduceat(share, self.start) / rival) + own_scale[self.codes] - total_scale
        return share, rival * np.exp(total_scale), terms

    def _wins(self, place: Any, count: Array | float) -> Array:
        wins = np.zeros((self.n_classes, self.n_features))
        np.add.at(wins, place, count)
        return wins

    def expect(self, weights: Weights) -> Stats:
        """⟨n_kj⟩ and ⟨z_i⟩ of (10) and (18)."""
        share, rival, terms = self._races(weights)
        own = np.add.reduceat(share, self.start)[self.row]
        claim = self.sample_weight[self.row] * np.divide(share, own, out=np.zeros_like(share), where=own > 0)
        exposure = self._exposure(self.sample_weight / rival)
        return Stats(self._wins(self.place, claim), exposure, float(self.sample_weight @ terms))

    def sample(self, weights: Weights, key: int) -> Stats:
        """C_i by (11) and Z_i by (12)."""
        share, rival, terms = self._races(weights)
        winner = np.empty(self.n_rows, dtype=np.intp)
        for i, u in enumerate(uniforms(key, self.n_rows)):
            start, stop = self.features.indptr[i : i + 2]
            climb = np.cumsum(share[start:stop])
            winner[i] = self.features.indices[start + min((climb < u * climb[-1]).sum(), len(climb) - 1)]
        arrival = -np.log(uniforms(key ^ KEY_OF_TIMES, self.n_rows)) / rival
        return Stats(self._wins((self.codes, winner), 1.0), self._exposure(arrival), float(terms.sum()))


class NumpyEngine:
    """Plain NumPy, one thread of Python."""

    def prepare(
        self,
        features: Features,
        codes: npt.NDArray[np.intp],
        sample_weight: Array | None,
        n_classes: int,
    ) -> NumpyRows:
        """Sort the rows."""
        order, _ = canonical_order(features, codes)
        weight = np.ones(len(codes)) if sample_weight is None else sample_weight[order]
        kind = NumpySparseRows if sparse.issparse(features) else NumpyRows
        return kind(features[order], codes[order], weight, n_classes, order)
