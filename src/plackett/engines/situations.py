"""Passes over situations with any response: rates → response → scatter. Knows no prior and no details of outcomes.

Entry e of a situation has the rate r_e = Σ_j W_ej λ_gj. Its row of W may be that of the situation, shared by all
entries (rankings, classes: g is the item), or its own (choices between alternatives with attributes: g is 0, or the
alternative, or the person). With the arrivals n_e and times at risk s_e that the response makes of the rates,

    wins n_gj = Σ_e n_e W_ej U_gj / W_e·U_g  (or multinomial draws),    exposure s_gj = Σ_e s_e W_ej.

Where W = exp(x·β) is made as a pass goes, the log-likelihood has the slope n_e − r_e s_e in ln r_e. With the shares
ρ_ej = e^{x_e·β_j} λ_gj / r_e its gradient is Σ_e (n_e − r_e s_e) ρ_ej x_e in β_j, and in ln λ_gj the same without x_e,
over the entries of g.

`NumpySituations` is the reference, `numba.py` has the fast version. Sums are taken in fixed blocks of situations in
canonical order, and random numbers belong to the situation, so that results depend neither on threads nor on the input
order.
"""

from __future__ import annotations

import copy
import itertools
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from plackett.data.observations import Observations, Situations
from plackett.engines.base import Likelihood, SituationRows, check_counts
from plackett.engines.by_passes import ByPasses
from plackett.model.draws import KEY_OF_TIMES, MIX_1, MIX_2, STEP, mixed, share_out, stream_of
from plackett.model.features import Features, runs
from plackett.model.mixture import FAINT
from plackett.model.race import Array, Slopes, Stats, Weights, scaled
from plackett.responses.base import Parameter, Whole, checked, in_order, parameters_of, places_of
from plackett.responses.unknown_order import UnknownOrder

TINY = 1e-280  # smallest positive rate, however far below the largest
KEY_OF_WINS = np.uint64(KEY_OF_TIMES)


def digests(features: Features, situations: Situations) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64], Whole]:
    """Return digests of situations and of each entry's row of W, and the bucket of each entry.

    Digests use integers, which do not depend on rounding.
    """
    (start, bucket_start, _, count), group, row = situations
    digest = np.empty(features.shape[0], dtype=np.uint64)
    by_feature = mixed(np.arange(1, features.shape[1] + 1, dtype=np.uint64) * np.uint64(STEP))
    for place, W in runs(features):
        bits = (np.asarray(W, dtype=np.float64) + 0.0).view(np.uint64)
        digest[place] = mixed(bits * by_feature).sum(axis=1)
    places = places_of(situations.outcomes)
    ordinal = places - places[start[np.repeat(np.arange(len(count)), np.diff(start))]]
    parts = mixed(digest[row] + ordinal.astype(np.uint64) * np.uint64(STEP))
    parts = mixed(parts + group.astype(np.uint64) * np.uint64(MIX_1))
    whole = np.add.reduceat(parts, start[:-1]) + np.diff(bucket_start).astype(np.uint64) * np.uint64(MIX_2)
    return whole, digest[row], places


def order_of(whole: npt.NDArray[np.uint64], counts: Array) -> npt.NDArray[np.intp]:
    """Order situations by digest, then by count; equal situations are interchangeable."""
    return np.lexsort((counts, whole))


def canonical(features: Features, situations: Situations) -> tuple[Situations, npt.NDArray[np.intp], Whole]:
    """Return the situations in an order that depends on their content, that order, and the rows of W in order of use.

    Situations are ordered by their digests; entries that share a bucket by their group and the digest of their
    features. Equal situations or entries are interchangeable.
    """
    (start, _, _, count), group, row = situations
    whole, digest, places = digests(features, situations)
    order = order_of(whole, count)
    entries = np.lexsort((digest, group, places))[in_order(order, start)]
    used, first_use, renumbered = np.unique(row[entries], return_index=True, return_inverse=True)
    by_use = np.argsort(first_use)
    outcomes = situations.part(order).outcomes
    return Situations(outcomes, group[entries], np.argsort(by_use)[renumbered]), order, used[by_use]


def checked_situations(features: Features, seen: Observations) -> Situations:
    """Return the situations; raise ValueError for outcomes that the response refuses or indices out of bounds."""
    situations = seen.all_situations
    seen.response.check(checked(situations.outcomes))
    for name, numbers, bound in (
        ("group", situations.group, seen.n_groups),
        ("row", situations.row, features.shape[0]),
    ):
        if len(numbers) != situations.outcomes.start[-1] or numbers.min() < 0 or numbers.max() >= bound:
            raise ValueError(f"{name} must have a number from 0 to {bound - 1} for each entry.")
    return situations


class NumpySituations(SituationRows):
    """Readable reference, one situation at a time."""

    def __init__(self, features: Features, seen: Observations):
        response = seen.response
        situations, self.order, used = canonical(features, checked_situations(features, seen))
        self.outcomes, self.group, self.row = situations
        self.features = np.ascontiguousarray(features[used])
        self.parameters: tuple[Parameter, ...] = parameters_of(seen.response)
        self.values_of_parameters: Array = np.array([each.start for each in self.parameters])
        self.response, self.n_groups = response, seen.n_groups
        self.n_rows, self.n_features = len(self.outcomes.counts), self.features.shape[1]
        self.absolute, self.n_seen = response.absolute, float(self.outcomes.counts.sum())

    @property
    def seen(self) -> Observations:
        """Observations in canonical order."""
        situations = Situations(self.outcomes, self.group, self.row)
        return Observations.of_situations(situations, self.response, self.n_groups)

    @property
    def held(self) -> tuple[Any, ...]:
        """Arrays that define the observations, and the name of their response."""
        return self.features, *self.outcomes, self.group, self.row, type(self.response).__name__

    def at(self, values: Array) -> Self:
        """Return the same situations with other values of the response's parameters."""
        found = copy.copy(self)
        found.values_of_parameters = values.copy()
        found.response = self.response.at(*values.tolist())  # type: ignore[attr-defined]
        return found

    @property
    def work(self) -> int:
        """Count of numbers read by a pass."""
        return len(self.group) * self.n_features

    def set_threads(self, n_threads: int) -> None:
        """Do nothing: there is one thread."""

    def _factors(self, weights: Weights) -> tuple[Array, Array, Array, float]:
        """Return V (K, p) with rows scaled to a largest entry of 1, their scales, and the factors left for the rates.

        Times at risk come out in units of exp(−top): a factor common to all rates is removed where that is allowed.
        """
        rival, scale = scaled(weights.log_rival)
        top = 0.0 if self.response.absolute else float(scale.max())
        return rival, scale, np.exp(np.maximum(scale - top, FAINT)), top

    def _pass(self, weights: Weights, key: int | None) -> tuple[Array, Array, Array]:
        """Return V of each situation, wins and exposure."""
        (start, bucket_start, sizes, count), group = self.outcomes, self.group
        rival, rival_scale, factor, top = self._factors(weights)
        own, own_scale = scaled(weights.log_own)
        W = self.features[self.row].astype(np.float64)
        share, waited = W * own[group], np.einsum("ej,ej->e", W, rival[group])
        arrived = share.sum(axis=1)
        rates = np.where(waited > 0.0, np.maximum(waited * factor[group], TINY), 0.0)
        values, wins, exposure = np.empty(len(count)), np.zeros_like(own), np.zeros_like(own)
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = np.log(arrived) + own_scale[group] - np.log(waited) - rival_scale[group]
        for t, (low, high) in enumerate(itertools.pairwise(start)):
            buckets = sizes[bucket_start[t] : bucket_start[t + 1]]
            if key is None:
                values[t], n, s = self.response.expect(rates[low:high], buckets)
                n, s = n * count[t], s * count[t]
            else:
                values[t], n, s = self.response.sample(rates[low:high], buckets, int(count[t]), stream_of(key, t))
            for e in np.flatnonzero((n > 0) & (arrived[low:high] > 0)) + low:
                if key is None:
                    wins[group[e]] += n[e - low] * share[e] / arrived[e]
                else:
                    stream = stream_of(key ^ int(KEY_OF_WINS), e)
                    share_out(n[e - low], W[e], own[group[e]], arrived[e], stream, wins[group[e]])
            values[t] += gain[low:high][n > 0].sum()
            np.add.at(exposure, group[low:high], s[:, None] * W[low:high])
        return values, wins, np.exp(-top) * exposure

    def _stats(self, weights: Weights, key: int | None) -> Stats:
        values, wins, exposure = self._pass(weights, key)
        return Stats(wins, exposure, self._total(values))

    def _total(self, values: Array) -> float:
        seen = self.outcomes.counts > 0
        return float((self.outcomes.counts[seen] * values[seen]).sum())

    def expect(self, weights: Weights) -> Stats:
        """Return expected wins and exposure."""
        return self._stats(weights, None)

    def sample(self, weights: Weights, key: int) -> Stats:
        """Return sampled wins and exposure, as a function of weights and key alone."""
        check_counts(self.outcomes.counts, "counts", "situations")
        return self._stats(weights, key)

    def values(self, weights: Weights) -> Array:
        """Return ln Pr(outcome) of each situation, in input order and without its count."""
        values = np.empty(self.n_rows)
        values[self.order] = self._pass(weights, None)[0]
        return values

    def value(self, weights: Weights) -> float:
        """Return the log-likelihood Σ count · ln Pr(outcome)."""
        return self._total(self.values(weights)[self.order])

    def packed_for(self, n_components: int, dtype: npt.DTypeLike) -> tuple[Any, ...] | None:
        """Return None: chains are not compiled."""
        return None

    def walk(self) -> Likelihood | None:
        """Return the likelihood of worths for ties of unknown order, whose times are slow to draw; else None."""
        plain = self.features.shape == (1, 1) and bool(self.features[0, 0] == 1.0)
        return ByPasses(self) if plain and isinstance(self.response, UnknownOrder) else None

    def gradient(self, beta: Array, log_weights: Array) -> Slopes:
        """Return the log-likelihood for features exp(x·β), and its gradient in β (M, d) and ln λ (K, M)."""
        (start, bucket_start, sizes, count), group, x = self.outcomes, self.group, self.features[self.row]
        log_share = x @ beta.T + log_weights[group]
        log_rate = logsumexp(log_share, axis=1)
        values, slope = np.empty(self.n_rows), np.empty(len(group))
        for t, (low, high) in enumerate(itertools.pairwise(start)):
            rates = self._relative(log_rate[low:high])
            values[t], n, s = self.response.expect(rates, sizes[bucket_start[t] : bucket_start[t + 1]])
            slope[low:high] = count[t] * (n - rates * s)
        pull = slope[:, None] * np.exp(log_share - log_rate[:, None])
        to_weights = np.zeros_like(log_weights)
        np.add.at(to_weights, group, pull)
        return Slopes(self._total(values), pull.T @ x, to_weights)

    def _relative(self, log_rates: Array) -> Array:
        """Return positive rates of a situation, up to a common factor unless rates are absolute."""
        top = 0.0 if self.response.absolute else log_rates.max()
        return np.exp(np.maximum(log_rates - top, FAINT))
