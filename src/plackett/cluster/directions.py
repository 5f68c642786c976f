"""Learned directions where rows lie on workers: a `plackett.directions.task.ClassTask` whose passes are questions.

The rows of a worker are packed as those of `plackett.engines.exponential`, or lie on its GPU, fold by fold, so that
chains that must not see a fold leave it out of the sum: rows are packed once for all of them. Slopes are added in the
order of the blocks. A bounded number of rows, which their keys choose, comes here: starts, w and κ, the scale of
covariates, diagnoses and summaries are had from those.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plackett.cluster.client import ClusterError, in_use
from plackett.cluster.folded import packed, slopes
from plackett.cluster.gpus import go_to_gpus
from plackett.cluster.held import Held, made
from plackett.cluster.observed import Keys, folds_of, identity, keys_of, observed, some_rows, tally, weights_by_fold
from plackett.cluster.scales import Scale, scale_from_sums, scores_from_sums
from plackett.cluster.together import Together
from plackett.directions.prior import Prior
from plackett.directions.starts import start
from plackett.directions.task import ENOUGH, Task, merge
from plackett.engines.dask import ENTRIES, power_of_two
from plackett.engines.device import MANY_ROWS
from plackett.features.standardise import mean_and_scale
from plackett.inference.folds import Folds
from plackett.model.race import Array, Slopes
from plackett.posterior.directions import DirectionDraws

MOST = 1 << 24  # numbers of X that come here
RARE = 1000  # rows of a class, or all, that come here
Codes = npt.NDArray[np.intp]


class Without(NamedTuple):
    """What a fold trains on: all rows but those of the fold."""

    fold: int
    n_folds: int
    weight: Array  # (K,) of the rows of each class that are left


class DirectionBlocks:
    """Rows on the workers, with their pass."""

    def __init__(self, blocks: Together, n_classes: int, without: int | None, present: Codes | None):
        self.blocks, self.n_classes, self.without, self.present = blocks, n_classes, without, present

    def gradient(self, beta: Array, log_weights: Array) -> Slopes:
        """ln p(Y|β, λ) and its gradient; classes that have no rows have no weights."""
        asked = log_weights
        if self.present is not None:
            asked = np.full((self.n_classes, log_weights.shape[1]), -np.inf)
            asked[self.present] = log_weights
        found = reduce(add, self.blocks.ask(beta, asked, self.without))
        return found if self.present is None else replace(found, log_weights=found.log_weights[self.present])


class Blocks:
    """Rows as they came, and packed for the passes that are under way: in one precision, in one number of folds."""

    def __init__(self, held: Held):
        self.held = held
        self._packing = threading.Lock()  # chains ask side by side
        self._kind: tuple[str, int] = ("", 0)
        self._packed: dict[bool, Together] = {}

    def packed(self, scale: Scale, dtype: npt.DTypeLike, n_folds: int, many: bool) -> Together:
        """On this scale; those of another precision are let go once nobody asks them. Of many rows on GPUs."""
        kind, scored = (np.dtype(dtype).name, n_folds), scale.knots is not None
        with self._packing:
            if kind != self._kind:
                self._kind, self._packed = kind, {}
            if scored not in self._packed:
                there = go_to_gpus(self.held.client, many)
                parts = [(block, scale, *kind, there) for block in self.held.blocks]
                held = made(self.held.client, "directions", packed, parts, len(parts))
                self._packed[scored] = Together(held, slopes)
            return self._packed[scored]


@dataclass(frozen=True)
class ClusterTask:
    """Rows on workers, all of them or all but a fold.

    Attributes
    ----------
    here : Task
        Rows that came here, on the same scale; where they are not all, weights are such that they stand for a part.
    key : array
        Their keys.
    weight : (K,) array
        Of the rows of each class, on all workers.
    n_rows : int
        Distinct rows: of each block, or of all where all are here.
    present : array, optional
        Classes that this part has, where it lacks others.
    """

    blocks: Blocks
    scale: Scale
    here: Task
    key: Keys
    weight: Array
    n_rows: int
    without: Without | None = None
    present: Codes | None = None

    flies, waits = False, True

    @property
    def seed(self) -> np.random.SeedSequence:
        """Of the chains."""
        return self.here.seed

    @property
    def progress(self) -> bool:
        """Whether to show bars."""
        return self.here.progress

    @property
    def seeded(self) -> bool:
        """Whether the user chose the seed."""
        return self.here.seeded

    @property
    def n_seen(self) -> float:
        """Rows, each as often as it counts."""
        return float((self.weight if self.without is None else self.without.weight).sum())

    @property
    def n_columns(self) -> int:
        """d."""
        return self.here.n_columns

    @property
    def n_classes(self) -> int:
        """K."""
        return len(self.weight) if self.present is None else len(self.present)

    @property
    def n_predicted(self) -> int:
        """A probability for each class."""
        return self.n_classes

    @property
    def wide(self) -> bool:
        """Whether covariates outnumber rows."""
        return self.n_columns > self.n_rows

    @property
    def identity(self) -> tuple[Any, ...]:
        """Digests of the blocks, and the scale."""
        return *self.blocks.held.each(identity), *self.scale

    def prepared(self, dtype: npt.DTypeLike) -> DirectionBlocks:
        """The rows packed where they lie."""
        fold, n_folds = (None, 1) if self.without is None else self.without[:2]
        packed = self.blocks.packed(self.scale, dtype, n_folds, self.n_rows >= MANY_ROWS)
        return DirectionBlocks(packed, len(self.weight), fold, self.present)

    def compiled_walk(self, rows: Any, prior: Prior) -> Callable[..., None] | None:
        """A walk asks for every gradient."""
        return None

    def dealt(self, n_folds: int) -> Folds:
        """Folds by keys; one of which no row is here is left out."""
        by_fold = reduce(add, self.blocks.held.each(weights_by_fold, n_folds, len(self.weight)))
        fold, left = folds_of(self.key, n_folds), [np.delete(by_fold, f, axis=0).sum(axis=0) for f in range(n_folds)]
        folds = [(Without(f, n_folds, left[f]), np.flatnonzero(fold == f)) for f in range(n_folds)]
        return [(train, test) for train, test in folds if len(test)]

    def splits(self, cv: Any) -> Folds:
        """So many folds; other ways to cut rows were refused."""
        folds = self.dealt(int(cv)) if cv > 1 else []
        if len(folds) < 2:
            raise ValueError(
                f"EM cross-validates learned directions, and needs two folds of distinct rows or more: EM(cv={cv}), "
                f"{self.n_rows:,} distinct rows."
            )
        return folds

    def part(self, some: Without) -> ClusterTask:
        """All rows but those of a fold."""
        return replace(self, without=some)

    def with_classes_of(self, train: Without) -> tuple[ClusterTask, Codes]:
        """All rows but those of a fold, with the classes that they have alone, and which these are."""
        present = np.flatnonzero(train.weight)
        return replace(self, without=train, present=present), present

    def with_scores(self) -> ClusterTask:
        """The same rows with covariates as normal scores."""
        if self.all_here:
            here = self.here.with_scores()
            return replace(self, here=here, scale=Scale(here.mean, here.scale, here.knots))
        scale = scores_from_sums(self.blocks.held, self.here.rows)
        assert scale.knots is not None
        return replace(self, here=self.here.on_scale(scale.mean, scale.scale, scale.knots), scale=scale)

    @property
    def all_here(self) -> bool:
        """Whether all rows came."""
        return self.n_rows == len(self.here.Z)

    def start(self, prior: Prior, rng: np.random.Generator) -> Array:
        """Sub-classes of each class, of the rows here that are not held out."""
        here = self.here
        if self.without is not None:
            here = here.part(folds_of(self.key, self.without.n_folds) != self.without.fold)
        if self.present is not None:
            here = replace(here, codes=np.searchsorted(self.present, here.codes))
        return start(here, prior, rng)

    def unpacked(self, positions: Array, prior: Prior) -> DirectionDraws:
        """Draws from positions (chain, draw, D)."""
        return self.here.unpacked(positions, prior)

    def probed(self, draws: DirectionDraws) -> Array:
        """Class probabilities of some rows."""
        return self.here.probed(draws)

    def predicted(self, positions: Array, prior: Prior, some: npt.NDArray[Any]) -> Array:
        """Class probabilities (n, K) of some of the rows here."""
        return self.here.predicted(positions, prior, some)


def make_cluster_task(
    held: Held, seed: np.random.SeedSequence, progress: bool = False, seeded: bool = True
) -> ClusterTask:
    """Of rows on workers, as `plackett.cluster.observed` has them."""
    tallies = held.each(tally)
    n_classes, d = max(len(each.rows) for each in tallies), tallies[0].n_columns
    count, weight = np.zeros(n_classes, dtype=np.intp), np.zeros(n_classes)
    least = np.full(n_classes, np.iinfo(np.uint64).max, dtype=np.uint64)
    for each in tallies:
        some = slice(len(each.rows))
        count[some] += each.rows
        weight[some] += each.weight
        least[some] = np.minimum(least[some], each.least)
    n, room = int(count.sum()), min(ENOUGH, max(MOST // max(d, 1), RARE))
    share = np.ones(n_classes) if n <= room else np.minimum(np.maximum(room / n, RARE / count), 1.0)
    limits = np.array([min(int(each * 2.0**64), 2**64 - 1) for each in share], dtype=np.uint64)
    found = held.each(some_rows, np.maximum(limits, least))
    rows, codes, counts, _ = merge(*(np.concatenate(each) for each in zip(*found, strict=True)))
    if n <= room:
        n, scale = len(rows), Scale(*mean_and_scale(rows, counts))
    else:
        counts, scale = counts * (share.min() / share)[codes], scale_from_sums(held)
    here = Task(scale.of(rows), codes, counts, scale.mean, scale.scale, None, rows, seed, progress, seeded)
    return ClusterTask(Blocks(held), scale, here, keys_of(rows, codes), weight, n)


def task_of_array(
    X: Array,
    codes: Codes,
    weight: Array | None,
    seed: np.random.SeedSequence,
    progress: bool = False,
    seeded: bool = True,
) -> ClusterTask:
    """Cut the rows, in an order of their own, into blocks of the same size, and send them to the workers in turn."""
    client = in_use()
    if client is None:
        raise ClusterError("engine='dask' needs a distributed.Client here.")
    rows, codes, counts, _ = merge(X, codes, weight)
    n, d = rows.shape
    size = -(-n // power_of_two(n * d / ENTRIES))
    cuts = (slice(begin, begin + size) for begin in range(0, n, size))
    held = made(client, "rows", observed, ((rows[some], codes[some], counts[some]) for some in cuts), -(-n // size))
    return make_cluster_task(held, seed, progress, seeded)
