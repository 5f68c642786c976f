"""The readable reference: every other engine must equal this one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import logsumexp

from plackett.engines.base import KEY_OF_TIMES, Features, canonical_order, check_counts, uniforms
from plackett.engines.draws import gamma, share_out, stream_of
from plackett.model.race import Array, Slopes, Stats, Weights


@dataclass
class NumpyRows:
    """Rows in canonical order: W (n, p), Y (n,) and the weight of each row."""

    features: npt.NDArray[np.floating]
    codes: npt.NDArray[np.intp]
    sample_weight: Array
    n_classes: int
    order: npt.NDArray[np.intp]
    absolute: ClassVar[bool] = False

    def __post_init__(self) -> None:
        self.n_rows, self.n_features = self.features.shape
        self.member = np.equal.outer(np.arange(self.n_classes), self.codes)  # δ(Y_i, k)

    def _races(self, weights: Weights) -> tuple[Array, Array, Array]:
        """W_ij U_{Y_i j} and W_i·Σ_l V_l, both up to scale, and the terms of the value."""
        own, own_scale = weights.scaled_own
        total, total_scale = weights.scaled_total
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
        """C_i by (11) and Z_i by (12); a row of weight w is w equal rows, with a multinomial and a Gam(w) together."""
        count, (share, rival, terms) = check_counts(self.sample_weight), self._races(weights)
        climb = np.cumsum(share, axis=1)
        target = uniforms(key, self.n_rows) * climb[:, -1]
        winner = np.minimum((climb < target[:, None]).sum(axis=1), self.n_features - 1)
        wins = np.zeros((self.n_classes, self.n_features))
        once = count == 1.0
        np.add.at(wins, (self.codes[once], winner[once]), 1.0)
        time = -np.log(uniforms(key ^ KEY_OF_TIMES, self.n_rows))
        for i in np.flatnonzero(~once).tolist():
            stream, each = stream_of(key ^ KEY_OF_TIMES, i), np.ones(self.n_features)
            share_out(count[i], share[i], each, climb[i, -1], stream, wins[self.codes[i]])
            time[i] = gamma(count[i], stream_of(key, i))
        return Stats(wins, self._exposure(time / rival), float((count * terms).sum()))

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
        own, own_scale = weights.scaled_own
        total, total_scale = weights.scaled_total
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
        """C_i by (11) and Z_i by (12), of equal rows together."""
        count, (share, rival, terms) = check_counts(self.sample_weight), self._races(weights)
        won, time = np.zeros_like(share), -np.log(uniforms(key ^ KEY_OF_TIMES, self.n_rows))
        for i, u in enumerate(uniforms(key, self.n_rows)):
            mine = slice(*self.features.indptr[i : i + 2])
            climb = np.cumsum(share[mine])
            if count[i] == 1.0:
                won[mine][min((climb < u * climb[-1]).sum(), len(climb) - 1)] = 1.0
            else:
                stream, each = stream_of(key ^ KEY_OF_TIMES, i), np.ones(len(climb))
                share_out(count[i], share[mine], each, climb[-1], stream, won[mine])
                time[i] = gamma(count[i], stream_of(key, i))
        return Stats(self._wins(self.place, won), self._exposure(time / rival), float(count @ terms))


@dataclass
class NumpyDirections:
    """Covariates X (n, d), Y (n,) and the weight of each row."""

    X: Array
    codes: npt.NDArray[np.intp]
    weight: Array

    def shares_and_gates(self, beta: Array, log_weights: Array) -> tuple[Array, Array, Array]:
        """ρ_ij ∝ e^{x_i·β_j} λ_{y_i j} (n, M), π_ij ∝ e^{x_i·β_j} Λ_j (n, M), and the log-likelihood of each row."""
        score = self.X @ beta.T
        own, all_ = score + log_weights[self.codes], score + logsumexp(log_weights, axis=0)
        mine, total = logsumexp(own, axis=1, keepdims=True), logsumexp(all_, axis=1, keepdims=True)
        return np.exp(own - mine), np.exp(all_ - total), (mine - total)[:, 0]

    def gradient(self, beta: Array, log_weights: Array) -> Slopes:
        """Xᵀw(ρ − π) in β, wins − Σ_i w_i π_ij λ_kj/Λ_j in ln λ."""
        rho, pi, value = self.shares_and_gates(beta, log_weights)
        votes = np.exp(log_weights - logsumexp(log_weights, axis=0))
        wins = np.zeros_like(log_weights)
        np.add.at(wins, self.codes, self.weight[:, None] * rho)
        slope = ((rho - pi) * self.weight[:, None]).T @ self.X
        return Slopes(float(self.weight @ value), slope, wins - self.weight @ pi * votes)


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
        order, _ = canonical_order(features, codes, sample_weight)
        weight = np.ones(len(codes)) if sample_weight is None else sample_weight[order]
        kind = NumpySparseRows if sparse.issparse(features) else NumpyRows
        return kind(features[order], codes[order], weight, n_classes, order)

    def prepare_directions(
        self, X: Array, codes: npt.NDArray[np.intp], weight: Array, dtype: npt.DTypeLike = np.float64
    ) -> NumpyDirections:
        """Keep the rows as they come, in float64 whatever would do."""
        return NumpyDirections(X, codes, weight)
