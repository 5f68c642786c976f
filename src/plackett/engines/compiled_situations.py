"""Passes over situations, compiled: rates, response and scatter of blocks that threads share.

What each is, `plackett.engines.situations` says, which has the same in NumPy.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from plackett.compute.compiled import jit
from plackett.compute.pieces import cores
from plackett.compute.vectors import dot
from plackett.engines.base import Features
from plackett.engines.draws import begin, share_out
from plackett.engines.situations import KEY_OF_WINS, TINY, NumpySituations, Situations
from plackett.model.race import Array, Slopes, Weights, scaled
from plackett.responses.base import Response, Whole

if TYPE_CHECKING:
    from plackett.engines.exponential_rankings import RankedRows
    from plackett.engines.exponential_situations import Covariates

BLOCK = 4096  # entries in a block, where there are not more than
BLOCKS = 64
ROOM = 1 << 22  # numbers that the wins of all blocks may take up


@jit
def _dots(W, situations, first, last, weights, out):
    """W_e·λ_g of the entries of situations first ≤ t < last."""
    base = situations.outcomes.start[first]
    for e in range(base, situations.outcomes.start[last]):
        out[e - base] = dot(W[situations.row[e]], weights[situations.group[e]])


@jit
def _rates(situations, first, last, waited, factor, rates):
    """r_e, none of those that are positive below 1e-280."""
    base = situations.outcomes.start[first]
    for e in range(base, situations.outcomes.start[last]):
        rate = waited[e - base]
        rates[e - base] = max(rate * factor[situations.group[e]], TINY) if rate > 0.0 else 0.0


@jit
def _add_gain(situations, first, last, arrivals, arrived, own_scale, waited, rival_scale, values):
    """Add Σ ln(W_e·U_g) − ln(W_e·V_g) of those who arrived to V of the rival weights."""
    start = situations.outcomes.start
    for t in range(first, last):
        for e in range(start[t], start[t + 1]):
            i, g = e - start[first], situations.group[e]
            if arrivals[i] > 0.0:
                values[t] += math.log(arrived[i]) - math.log(waited[i]) + own_scale[g] - rival_scale[g]


@jit
def _scatter(W, situations, first, last, arrivals, arrived, at_risk, wins, exposure):
    """Add c n_e W_ej / W_e·U_g to the wins, still to be multiplied by U_gj, and c s_e W_ej to the exposure."""
    start = situations.outcomes.start
    for t in range(first, last):
        count = situations.outcomes.counts[t]
        for e in range(start[t], start[t + 1]):
            i, g, r = e - start[first], situations.group[e], situations.row[e]
            time = count * at_risk[i]
            for j in range(W.shape[1]):
                exposure[g, j] += time * W[r, j]
            if arrivals[i] > 0.0 and arrived[i] > 0.0:
                claim = count * arrivals[i] / arrived[i]
                for j in range(W.shape[1]):
                    wins[g, j] += claim * W[r, j]


@jit
def _scatter_draws(W, situations, first_entry, first, last, key, arrivals, own, arrived, at_risk, wins, exposure):
    """Add draws of the winning features, equation (11), to the wins, and s_e W_ej to the exposure."""
    start, stream = situations.outcomes.start, np.empty(1, dtype=np.uint64)
    for t in range(first, last):
        for e in range(start[t], start[t + 1]):
            i, g, r = e - start[first], situations.group[e], situations.row[e]
            for j in range(W.shape[1]):
                exposure[g, j] += at_risk[i] * W[r, j]
            if arrivals[i] > 0.0 and arrived[i] > 0.0:
                begin(stream, key ^ KEY_OF_WINS, first_entry[t] + e - start[t])
                share_out(arrivals[i], W[r], own[g], arrived[i], stream, wins[g])


class CompiledSituations(NumpySituations):
    """The same passes compiled, blocks shared out to threads.

    `number` and `first_entry` (T,) are the places of situations and of their first entries among all, to which random
    numbers belong.
    """

    def __init__(self, features: Features, situations: Situations, response: Response, n_groups: int):
        super().__init__(features, situations, response, n_groups)
        self.situations = Situations(self.outcomes, self.group, self.row)
        self.number: Whole = np.arange(self.n_rows)
        self.first_entry: Whole = self.outcomes.start[:-1]
        entries = len(self.group)
        n_blocks = max(1, min(entries // BLOCK, BLOCKS, ROOM // (n_groups * self.n_features)))
        cuts = np.searchsorted(self.outcomes.start, np.linspace(0, entries, n_blocks + 1).astype(np.int64))
        self.cuts = np.unique(cuts).tolist()
        self.set_threads(cores() if len(self.cuts) > 2 else 1)

    def set_threads(self, n_threads: int) -> None:
        """Share passes out to so many threads; the results stay the same."""
        self._pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None

    def _pass(self, weights: Weights, key: int | None, scatter: bool = True) -> tuple[Array, Array, Array]:
        rival, rival_scale, factor, top = self._factors(weights)
        same = weights.log_own is weights.log_rival
        own, own_scale = (rival, rival_scale) if same else scaled(weights.log_own)
        shape = (len(self.cuts) - 1, *own.shape) if scatter else (0, *own.shape)
        values, wins, exposure = np.empty(self.n_rows), np.zeros(shape), np.zeros(shape)

        def work(block: int) -> None:
            first, last = self.cuts[block], self.cuts[block + 1]
            size = self.outcomes.start[last] - self.outcomes.start[first]
            waited, rates, arrivals, at_risk = np.empty((4, size))
            place = (self.situations, first, last)
            _dots(self.features, *place, rival, waited)
            _rates(*place, waited, factor, rates)
            if key is None:
                self.response.expect_block(self.outcomes, first, last, rates, arrivals, at_risk, values)
            else:
                seed = np.uint64(key)
                some = self.number, first, last
                self.response.sample_block(self.outcomes, *some, rates, seed, arrivals, at_risk, values)
            arrived = waited
            if not same:
                arrived = np.empty(size)
                _dots(self.features, *place, own, arrived)
                _add_gain(*place, arrivals, arrived, own_scale, waited, rival_scale, values)
            if not scatter:
                return
            if key is None:
                _scatter(self.features, *place, arrivals, arrived, at_risk, wins[block], exposure[block])
            else:
                drawn = self.features, self.situations, self.first_entry, first, last, seed
                _scatter_draws(*drawn, arrivals, own, arrived, at_risk, wins[block], exposure[block])

        list((map if self._pool is None else self._pool.map)(work, range(len(self.cuts) - 1)))
        factor_of_wins = own if key is None else 1.0
        return values, wins.sum(axis=0) * factor_of_wins, np.exp(-top) * exposure.sum(axis=0)

    def values(self, weights: Weights) -> Array:
        """ln Pr(outcome) of each situation, in the order in which they came and without their counts."""
        values = np.empty(self.n_rows)
        values[self.order] = self._pass(weights, None, scatter=False)[0]
        return values

    @cached_property
    def covariates(self) -> Covariates | None:
        """The features as covariates x of exp(x·β); None where a compiled pass does not know the response."""
        from plackett.engines.exponential_situations import pack  # kernels, compiled where they are used

        return pack(self.features.astype(np.float64), *self.situations, self.response)

    def ranked(self, dtype: npt.DTypeLike) -> RankedRows | None:
        """The same where everyone who ranks or chooses items has a row of their own; None elsewhere."""
        from plackett.engines.exponential_rankings import pack, ranks_items

        outcomes, group, row = self.situations
        if not ranks_items(outcomes, group, row, self.n_classes, self.response):
            return None
        return pack(self.features, outcomes, group, self.n_classes, self.response, dtype)

    @cached_property
    def _ranked(self) -> RankedRows | None:
        return self.ranked(np.float64)

    def gradient(self, beta: Array, log_weights: Array) -> Slopes:
        """The log-likelihood where the features are exp(x·β), and its gradient in β (M, d) and ln λ (K, M).

        With a response from outside this package it is that of the reference.
        """
        if self._ranked is not None:
            from plackett.engines.exponential_rankings import gradient as gradient_of_rankings

            return gradient_of_rankings(self._ranked, beta, log_weights)
        if self.covariates is None:
            return super().gradient(beta, log_weights)
        from plackett.engines.exponential_situations import gradient

        return gradient(self.covariates, beta, log_weights)
