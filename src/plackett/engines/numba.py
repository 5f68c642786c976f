"""Fast engine: compiled passes on all cores."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from plackett.capabilities import Offers
from plackett.compute.pieces import cores
from plackett.data.observations import Observations, Situations
from plackett.engines import entries, exponential_choices, exponential_rankings, exponential_situations
from plackett.engines import sparse as sparse_rows
from plackett.engines.alike_orders import likelihood_of_orders
from plackett.engines.base import ClassRows, Features, Likelihood, Places, Rows, canonical_order, check_counts
from plackett.engines.exponential import ExponentialRows
from plackett.engines.panels import LANES, Panels, expect_blocks, pack, sample_blocks
from plackett.engines.plain_rankings import CompiledLeftSets, plain_rows
from plackett.engines.situations import NumpySituations
from plackett.model.race import Array, Slopes, Stats, Weights, scaled
from plackett.responses.base import Whole

SMALL_PANELS = 1 << 18  # entries of W below which handing out blocks costs more than it saves
SMALL_SPARSE = 1 << 18  # entries and weights together below which handing out work costs more than it saves
COLUMNS = 1 << 12  # columns per task of a thread
BLOCK = 4096  # entries per block of situations, for at most BLOCKS blocks
BLOCKS = 64
ROOM = 1 << 22  # maximum of numbers in the wins of all blocks


class PanelRows(ClassRows):
    """Dense rows of classes in panels; threads share the blocks of large data.

    `place` (panel, lane) is the position of each row among all rows if these are a part; random numbers depend on it.
    """

    place: Places | None = None

    def __init__(self, panels: Panels, n_groups: int, order: npt.NDArray[np.intp]):
        self.panels, self.order = panels, order
        self.n_groups = n_groups
        self.n_rows = int(panels.fill.sum())
        self.n_features, self.n_seen = panels.values.shape[1], float(panels.weight.sum())
        self.work = self.n_rows * self.n_features
        self.whole = bool(panels.plain.all() or (panels.weight == np.round(panels.weight)).all())
        per_panel = panels.weight.sum(axis=1)
        self.class_weight = np.zeros(n_groups)
        np.add.at(self.class_weight, np.repeat(panels.block_class, np.diff(panels.block_start)), per_panel)
        self.set_threads(1 if panels.values.size < SMALL_PANELS else cores())

    def set_threads(self, n_threads: int) -> None:
        """Share passes among so many threads; results do not change."""
        self.n_threads = n_threads
        self._pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None

    def put(self, places: Places) -> None:
        """Set the positions of these rows among all, given in input order."""
        first, fill = self.panels.first_row, self.panels.fill
        self.place = np.zeros(self.panels.weight.shape, dtype=places.dtype)
        lanes = np.arange(LANES)
        used = lanes < fill[:, None]
        self.place[used] = places[self.order][(first[:, None] + lanes)[used]]

    def _pass(self, kernel: Any, weights: Weights, *draws: Any) -> Stats:
        own, own_scale = weights.scaled_own
        total, total_scale = weights.scaled_total
        n_blocks = len(self.panels.block_class)
        wins = np.empty((n_blocks, self.n_features))
        exposure = np.empty((n_blocks, self.n_features))
        value = np.empty(n_blocks)

        def work(bounds: tuple[int, int]) -> None:
            kernel(self.panels, *bounds, own, total[0], *draws, wins, exposure, value)

        if self._pool is None:
            work((0, n_blocks))
        else:
            cuts = np.linspace(0, n_blocks, min(n_blocks, 8 * self.n_threads) + 1).astype(int).tolist()
            list(self._pool.map(work, itertools.pairwise(cuts)))
        by_class = np.zeros((self.n_groups, self.n_features))
        np.add.at(by_class, self.panels.block_class, wins)
        offset = self.class_weight @ (own_scale - total_scale)
        for_all = np.broadcast_to(np.exp(-total_scale) * exposure.sum(axis=0), by_class.shape)
        return Stats(by_class, for_all, float(value.sum() + offset))

    def expect(self, weights: Weights) -> Stats:
        """Return expected wins and exposure."""
        return self._pass(expect_blocks, weights)

    def sample(self, weights: Weights, key: int) -> Stats:
        """Return sampled wins and exposure."""
        if not self.whole:
            check_counts(self.panels.weight)
        return self._pass(sample_blocks, weights, np.uint64(key), self.place)

    def value(self, weights: Weights) -> float:
        """Return Σ_i ln(W_i·U_{Y_i}) − ln(W_i·Σ_l V_l)."""
        return self.expect(weights).value

    def moves(self) -> PanelRows:
        """Return these rows."""
        return self


class SparseRows(ClassRows):
    """Sparse rows of classes; threads share large data by blocks of rows and by columns."""

    def __init__(self, features: Any, seen: Observations):
        codes, sample_weight, n_groups = seen.class_codes, seen.counts, seen.n_groups
        self.order, _ = canonical_order(features, codes, sample_weight)
        self.describe_in_order(features, seen, self.order)
        self.n_rows, self.n_features = features.shape
        self.n_groups = n_groups
        features, codes = features[self.order], codes[self.order]
        weight = np.ones(self.n_rows) if sample_weight is None else sample_weight[self.order]
        self.n_seen, self.work = float(weight.sum()), int(features.nnz)
        self.class_weight = np.bincount(codes, weight, minlength=n_groups)
        columns = np.append(features.indices.astype(np.uint32), np.zeros(sparse_rows.AHEAD, dtype=np.uint32))
        start = features.indptr.astype(np.int64)
        self.entries = sparse_rows.SparseEntries(
            features.data, columns, start, weight, *sparse_rows.blocks(codes, n_groups)
        )
        self._rooms: list[tuple[Array, Array]] = []  # scratch of earlier passes: fresh memory costs a third
        self.set_threads(1 if features.nnz + n_groups * self.n_features < SMALL_SPARSE else cores())

    def set_threads(self, n_threads: int) -> None:
        """Share passes among so many threads; results do not change."""
        self.n_threads = n_threads
        self._pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None

    def _share(self, work: Callable[[int, int], None], cuts: Iterable[int]) -> None:
        """Run the work between each two cuts."""
        if self._pool is None:
            for first, last in itertools.pairwise(cuts):
                work(first, last)
        else:
            list(self._pool.map(lambda piece: work(*piece), itertools.pairwise(cuts)))

    def _pass(self, kernel: Any, weights: Weights, key: int) -> Stats:
        own, rival = (np.ascontiguousarray(each) for each in (weights.log_own, weights.log_rival))
        own_scale = np.maximum(own.max(axis=1), sparse_rows.LEAST)
        scale = max(float(rival.max()), sparse_rows.LEAST)
        n_blocks, p = len(self.entries.block_class), self.n_features
        pairs, sums = self._rooms.pop() if self._rooms else [np.empty((m, p, 2)) for m in (self.n_groups, n_blocks)]
        value, wins, exposure = np.empty(n_blocks), np.empty((self.n_groups, p)), np.empty(p)
        columns = [*range(0, p, COLUMNS), p]
        self._share(lambda first, last: sparse_rows.weigh(own, rival, own_scale, scale, first, last, pairs), columns)
        entries, bits, expected = self.entries, np.uint64(key), kernel is sparse_rows.expect_blocks
        self._share(lambda first, last: kernel(entries, first, last, pairs, bits, sums, value), range(n_blocks + 1))
        self._share(
            lambda first, last: sparse_rows.gather(entries, pairs, sums, expected, first, last, wins, exposure), columns
        )
        self._rooms.append((pairs, sums))
        for_all = np.broadcast_to(np.exp(-scale) * exposure, wins.shape)
        return Stats(wins, for_all, float(value.sum() + self.class_weight @ (own_scale - scale)))

    def expect(self, weights: Weights) -> Stats:
        """Return expected wins and exposure."""
        return self._pass(sparse_rows.expect_blocks, weights, 0)

    def sample(self, weights: Weights, key: int) -> Stats:
        """Return sampled wins and exposure."""
        check_counts(self.entries.weight)
        return self._pass(sparse_rows.sample_blocks, weights, key)

    def value(self, weights: Weights) -> float:
        """Return Σ_i ln(W_i·U_{Y_i}) − ln(W_i·Σ_l V_l)."""
        return self.expect(weights).value


class CompiledSituations(NumpySituations):
    """Situations with compiled passes; threads share blocks.

    `number` and `first_entry` (T,) are the positions of situations and of their first entries among all; random numbers
    depend on them.
    """

    n_threads = 1

    def __init__(self, features: Features, seen: Observations):
        super().__init__(features, seen)
        self.situations = Situations(self.outcomes, self.group, self.row)
        self.number: Whole = np.arange(self.n_rows)
        self.first_entry: Whole = self.outcomes.start[:-1]
        n_entries = len(self.group)
        n_blocks = max(1, min(n_entries // BLOCK, BLOCKS, ROOM // (self.n_groups * self.n_features)))
        cuts = np.searchsorted(self.outcomes.start, np.linspace(0, n_entries, n_blocks + 1).astype(np.int64))
        self.cuts = np.unique(cuts).tolist()
        self.set_threads(cores() if len(self.cuts) > 2 else 1)

    def set_threads(self, n_threads: int) -> None:
        """Share passes among so many threads; results do not change."""
        self.n_threads = n_threads
        self._pool = ThreadPoolExecutor(n_threads) if n_threads > 1 else None

    def put(self, places: tuple[Whole, Whole]) -> None:
        """Set the positions of these situations and their first entries among all, in input order."""
        self.number, self.first_entry = places[0][self.order], places[1][self.order]

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
            entries.dots(self.features, *place, rival, waited)
            entries.rates(*place, waited, factor, rates)
            if key is None:
                self.response.expect_block(self.outcomes, first, last, rates, arrivals, at_risk, values)
            else:
                seed = np.uint64(key)
                some = self.number, first, last
                self.response.sample_block(self.outcomes, *some, rates, seed, arrivals, at_risk, values)
            arrived = waited
            if not same:
                arrived = np.empty(size)
                entries.dots(self.features, *place, own, arrived)
                entries.add_gain(*place, arrivals, arrived, own_scale, waited, rival_scale, values)
            if not scatter:
                return
            if key is None:
                entries.scatter(self.features, *place, arrivals, arrived, at_risk, wins[block], exposure[block])
            else:
                drawn = self.features, self.situations, self.first_entry, first, last, seed
                entries.scatter_draws(*drawn, arrivals, own, arrived, at_risk, wins[block], exposure[block])

        list((map if self._pool is None else self._pool.map)(work, range(len(self.cuts) - 1)))
        factor_of_wins = own if key is None else 1.0
        return values, wins.sum(axis=0) * factor_of_wins, np.exp(-top) * exposure.sum(axis=0)

    def values(self, weights: Weights) -> Array:
        """Return ln Pr(outcome) of each situation, in input order and without its count."""
        values = np.empty(self.n_rows)
        values[self.order] = self._pass(weights, None, scatter=False)[0]
        return values

    @cached_property
    def covariates(self) -> exponential_situations.SituationCovariates | None:
        """Features packed as covariates x of exp(x·β); None if a compiled pass does not know the response."""
        return exponential_situations.pack(self.features.astype(np.float64), *self.situations, self.response)

    def in_lanes(self, dtype: npt.DTypeLike) -> tuple[Any, ...] | None:
        """Return the packed form for choices with shared weights, or for rankings with their own rows; else None."""
        outcomes, group, row = self.situations
        if exponential_choices.has_shared_weights(self.n_groups, self.response):
            return exponential_choices.pack(self.features, outcomes, row, dtype)
        if exponential_rankings.ranks_items(outcomes, group, row, self.n_groups, self.response):
            return exponential_rankings.pack(self.features, outcomes, group, self.n_groups, self.response, dtype)
        return None

    def packed_for(self, n_components: int, dtype: npt.DTypeLike) -> tuple[Any, ...] | None:
        """Return the packed form for compiled chains; None for many situations or an external response."""
        packed = self.in_lanes(dtype)
        packed = self.covariates if packed is None else packed
        return None if packed is None or passes_over(packed).is_large(packed, n_components) else packed

    @cached_property
    def _packed(self) -> tuple[Any, ...] | None:
        packed = self.in_lanes(np.float64)
        return self.covariates if packed is None else packed

    def gradient(self, beta: Array, log_weights: Array) -> Slopes:
        """Return the log-likelihood for features exp(x·β), and its gradient in β (M, d) and ln λ (K, M).

        A response from outside this package uses the reference.
        """
        if self._packed is None:
            return super().gradient(beta, log_weights)
        found: Slopes = passes_over(self._packed).gradient(self._packed, beta, log_weights)
        return found

    def walk(self) -> Likelihood | None:
        """Return the likelihood of worths for ties of unknown order, or None."""
        return None if super().walk() is None else likelihood_of_orders(self)

    def moves(self) -> CompiledSituations | None:
        """Return self; None without features, where plain sweeps mix, or if the likelihood depends on Λ."""
        return self if self.n_features > 1 and not self.absolute else None


def passes_over(packed: tuple[Any, ...]) -> Any:
    """Return the module with `gradient` and `is_large` of packed situations."""
    kinds: dict[type, Any] = {
        exponential_choices.PackedChoices: exponential_choices,
        exponential_rankings.RankedRows: exponential_rankings,
        exponential_situations.SituationCovariates: exponential_situations,
    }
    return kinds[type(packed)]


class NumbaEngine:
    """Compiled passes on all cores."""

    offers = Offers()

    def rows(self, W: Features | None, seen: Observations, places: Any = None) -> Rows:
        """Pack the rows in canonical order."""
        if W is None:
            return plain_rows(seen, CompiledLeftSets, CompiledSituations)
        if seen.situations is None and sparse.issparse(W):
            return SparseRows(W, seen)
        found: Any = CompiledSituations(W, seen) if seen.codes is None else panel_rows(W, seen)
        if places is not None:
            found.put(places)
        rows: Rows = found
        return rows

    def gradient(self, Z: Array, seen: Observations, dtype: npt.DTypeLike) -> ExponentialRows | CompiledSituations:
        """Pack covariates; situations are stored in both precisions."""
        if seen.codes is None:
            return CompiledSituations(Z, seen)
        return ExponentialRows(Z, seen.codes, seen.weights, dtype)


def panel_rows(W: Features, seen: Observations) -> PanelRows:
    """Pack dense rows of classes in canonical order."""
    order, _ = canonical_order(W, seen.class_codes, seen.counts)
    panels = pack(W, seen.class_codes, seen.counts, seen.n_groups, order)
    return PanelRows(panels, seen.n_groups, order).describe_in_order(W, seen, order)
