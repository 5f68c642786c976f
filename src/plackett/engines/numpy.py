"""Readable reference: every other engine must equal this one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from scipy.special import logsumexp

from plackett.capabilities import Offers
from plackett.data.observations import Observations
from plackett.engines.base import COMPILED, ClassRows, Features, Rows, canonical_order, check_counts
from plackett.engines.plain_rankings import LeftSets, plain_rows
from plackett.engines.situations import NumpySituations
from plackett.model.draws import KEY_OF_TIMES, gamma, share_out, stream_of, uniforms
from plackett.model.race import Array, Slopes, Stats, Weights


class NumpyRows(ClassRows):
    """Rows in canonical order: W (n, p), Y (n,) and the weight of each row."""

    def __init__(self, W: Any, seen: Observations):
        self.order, _ = canonical_order(W, seen.class_codes, seen.counts)
        self.W, self.n_groups, self.sample_weight = W[self.order], seen.n_groups, seen.weights[self.order]
        self.n_rows, self.n_features = self.W.shape
        self.n_seen, self.work = float(self.sample_weight.sum()), self.n_rows * self.n_features
        self.describe_in_order(W, seen, self.order)
        self.features_of = lambda: self.W
        self.member = np.equal.outer(np.arange(self.n_groups), self.codes)  # δ(Y_i, k)

    def _races(self, weights: Weights) -> tuple[Array, Array, Array]:
        """Return W_ij U_{Y_i j} and W_i·Σ_l V_l, both up to scale, and the terms of the value."""
        own, own_scale = weights.scaled_own
        total, total_scale = weights.scaled_total
        share = self.W * own[self.codes]
        rival = self.W @ total[0]
        with np.errstate(divide="ignore"):
            terms = np.log(share.sum(axis=1) / rival) + own_scale[self.codes] - total_scale
        return share, rival * np.exp(total_scale), terms

    def expect(self, weights: Weights) -> Stats:
        """Return ⟨n_kj⟩ and ⟨z_i⟩ of (10) and (18)."""
        share, rival, terms = self._races(weights)
        own = share.sum(axis=1, keepdims=True)
        claim = self.sample_weight[:, None] * np.divide(share, own, out=np.zeros_like(share), where=own > 0)
        return Stats(self.member @ claim, self._exposure(self.sample_weight / rival), float(self.sample_weight @ terms))

    def sample(self, weights: Weights, key: int) -> Stats:
        """Draw C_i by (11) and Z_i by (12); a row of weight w (w equal rows) by one multinomial and one Gam(w)."""
        count, (share, rival, terms) = check_counts(self.sample_weight), self._races(weights)
        climb = np.cumsum(share, axis=1)
        target = uniforms(key, self.n_rows) * climb[:, -1]
        winner = np.minimum((climb < target[:, None]).sum(axis=1), self.n_features - 1)
        wins = np.zeros((self.n_groups, self.n_features))
        once = count == 1.0
        np.add.at(wins, (self.codes[once], winner[once]), 1.0)
        time = -np.log(uniforms(key ^ KEY_OF_TIMES, self.n_rows))
        for i in np.flatnonzero(~once).tolist():
            stream, each = stream_of(key ^ KEY_OF_TIMES, i), np.ones(self.n_features)
            share_out(count[i], share[i], each, climb[i, -1], stream, wins[self.codes[i]])
            time[i] = gamma(count[i], stream_of(key, i))
        return Stats(wins, self._exposure(time / rival), float((count * terms).sum()))

    def value(self, weights: Weights) -> float:
        """Return Σ_i ln(W_i·U_{Y_i}) − ln(W_i·Σ_l V_l)."""
        return self.expect(weights).value

    def set_threads(self, n_threads: int) -> None:
        """Do nothing: there is one thread."""

    def _exposure(self, time: Array) -> Array:
        """Exposure, the same for all classes: every class is at risk in every row."""
        return np.broadcast_to(time @ self.W, (self.n_groups, self.n_features))


class NumpySparseRows(NumpyRows):
    """CSR rows, none of them empty; `share` holds their non-zero entries row by row."""

    def __init__(self, W: Any, seen: Observations):
        super().__init__(W, seen)
        self.start = self.W.indptr[:-1]
        self.row = np.repeat(np.arange(self.n_rows), np.diff(self.W.indptr))
        self.place = self.codes[self.row], self.W.indices  # index of an entry of W in a table (K, p)

    def _races(self, weights: Weights) -> tuple[Array, Array, Array]:
        own, own_scale = weights.scaled_own
        total, total_scale = weights.scaled_total
        share = self.W.data * own[self.place]
        rival = self.W @ total[0]
        with np.errstate(divide="ignore"):
            terms = np.log(np.add.reduceat(share, self.start) / rival) + own_scale[self.codes] - total_scale
        return share, rival * np.exp(total_scale), terms

    def _wins(self, place: Any, count: Array | float) -> Array:
        wins = np.zeros((self.n_groups, self.n_features))
        np.add.at(wins, place, count)
        return wins

    def expect(self, weights: Weights) -> Stats:
        """Return ⟨n_kj⟩ and ⟨z_i⟩ of (10) and (18)."""
        share, rival, terms = self._races(weights)
        own = np.add.reduceat(share, self.start)[self.row]
        claim = self.sample_weight[self.row] * np.divide(share, own, out=np.zeros_like(share), where=own > 0)
        exposure = self._exposure(self.sample_weight / rival)
        return Stats(self._wins(self.place, claim), exposure, float(self.sample_weight @ terms))

    def sample(self, weights: Weights, key: int) -> Stats:
        """Draw C_i by (11) and Z_i by (12), equal rows together."""
        count, (share, rival, terms) = check_counts(self.sample_weight), self._races(weights)
        won, time = np.zeros_like(share), -np.log(uniforms(key ^ KEY_OF_TIMES, self.n_rows))
        for i, u in enumerate(uniforms(key, self.n_rows)):
            mine = slice(*self.W.indptr[i : i + 2])
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
    """Covariates X (n, d), classes Y (n,) and the weight of each row."""

    X: Array
    codes: npt.NDArray[np.intp]
    weight: Array

    def shares_and_gates(self, beta: Array, log_weights: Array) -> tuple[Array, Array, Array]:
        """Return ρ_ij ∝ e^{x_i·β_j} λ_{y_i j} (n, M), π_ij ∝ e^{x_i·β_j} Λ_j (n, M), and each row's log-likelihood."""
        score = self.X @ beta.T
        own, all_ = score + log_weights[self.codes], score + logsumexp(log_weights, axis=0)
        mine, total = logsumexp(own, axis=1, keepdims=True), logsumexp(all_, axis=1, keepdims=True)
        return np.exp(own - mine), np.exp(all_ - total), (mine - total)[:, 0]

    def packed_for(self, n_components: int, dtype: npt.DTypeLike) -> tuple[Any, ...] | None:
        """Return None: chains are not compiled."""
        return None

    def gradient(self, beta: Array, log_weights: Array) -> Slopes:
        """Return the gradient: Xᵀw(ρ − π) in β, wins − Σ_i w_i π_ij λ_kj/Λ_j in ln λ."""
        rho, pi, value = self.shares_and_gates(beta, log_weights)
        votes = np.exp(log_weights - logsumexp(log_weights, axis=0))
        wins = np.zeros_like(log_weights)
        np.add.at(wins, self.codes, self.weight[:, None] * rho)
        slope = ((rho - pi) * self.weight[:, None]).T @ self.X
        return Slopes(float(self.weight @ value), slope, wins - self.weight @ pi * votes)


class NumpyEngine:
    """Plain NumPy in one thread."""

    offers = Offers(COMPILED)

    def rows(self, W: Features | None, seen: Observations, places: Any = None) -> Rows:
        """Sort the rows."""
        if places is not None:
            raise ValueError("engine='numpy' holds all rows, so that places among others have no meaning.")
        if W is None:
            return plain_rows(seen, LeftSets, NumpySituations)
        if seen.codes is None:
            return NumpySituations(W, seen)
        return NumpySparseRows(W, seen) if sparse.issparse(W) else NumpyRows(W, seen)

    def gradient(self, Z: Array, seen: Observations, dtype: npt.DTypeLike) -> NumpyDirections | NumpySituations:
        """Store the rows in input order, in float64 whatever `dtype` suffices."""
        return NumpySituations(Z, seen) if seen.codes is None else NumpyDirections(Z, seen.codes, seen.weights)
