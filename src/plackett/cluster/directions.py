"""Learned directions with passes on workers, over classes or situations.

Classes may be stored on the workers from the start. A bounded number of rows, selected by their keys, comes to the
client for starting points, w and κ, the design, diagnostics and summaries. Situations are all on the client and are
also sent to the workers, in blocks of canonical order, once with the covariates of all designs. Gradients are added in
the order of the blocks.
"""

from __future__ import annotations

import hashlib
import threading
import weakref
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from plackett.cluster.client import ClusterError, in_use
from plackett.cluster.direction_blocks import packed_classes, packed_situations, received, slopes
from plackett.cluster.gpus import go_to_gpus
from plackett.cluster.held import Held, made
from plackett.cluster.observed import Keys, folds_of, identity, keys_of, observed, some_rows, tally, weights_by_fold
from plackett.cluster.scales import scaling_from_sums, scores_from_sums
from plackett.cluster.together import Together
from plackett.data.observations import Codes, Observations
from plackett.directions.class_task import ENOUGH, ClassReader, merge
from plackett.directions.situation_task import SituationReader
from plackett.directions.task import Numbers, Task
from plackett.engines.dask import ENTRIES, power_of_two
from plackett.engines.device import MANY_ROWS
from plackett.features.standardise import Scaling, mean_and_scale
from plackett.inference.driver import Source
from plackett.inference.folds import Folds
from plackett.model.race import Array, Slopes
from plackett.responses.base import checked

MOST_NUMBERS = 1 << 24  # maximum of numbers of X on the client
RARE = 1000  # number of rows of a class (or all its rows) that come to the client
NUMBERS = 1 << 20  # maximum of covariates and entries per block of situations: a pass takes some milliseconds


class RemoteGradient:
    """Passes on the workers over all blocks."""

    def __init__(self, blocks: Together, n_groups: int, without: int | None = None, present: Codes | None = None):
        self.blocks, self.n_groups, self.without, self.present = blocks, n_groups, without, present

    def gradient(self, beta: Array, log_weights: Array) -> Slopes:
        """Return ln p(Y|β, λ) and its gradient; classes without rows in this part have no weights."""
        asked = log_weights
        if self.present is not None:
            asked = np.full((self.n_groups, log_weights.shape[1]), -np.inf)
            asked[self.present] = log_weights
        found = reduce(add, self.blocks.ask(beta, asked, self.without))
        return found if self.present is None else replace(found, log_weights=found.log_weights[self.present])

    def packed_for(self, n_components: int, dtype: npt.DTypeLike) -> None:
        """Return None: chains request every gradient."""


class Without(NamedTuple):
    """Training part of a fold of classes: all rows but those of the fold."""

    fold: int
    n_folds: int
    weight: Array  # (K,): total weight of the remaining rows of each class


class DirectionBlocks:
    """Rows in input order, and packed rows for current passes in one precision and number of folds."""

    def __init__(self, held: Held):
        self.held = held
        self._packing = threading.Lock()  # chains ask concurrently
        self._kind: tuple[str, int] = ("", 0)
        self._packed: dict[bool, Together] = {}

    def packed(self, scaling: Scaling, dtype: str, n_folds: int, many: bool) -> Together:
        """Return rows packed in this design, on GPUs if rows are many; unused other precisions are dropped."""
        kind, scored = (dtype, n_folds), scaling.knots is not None
        with self._packing:
            if kind != self._kind:
                self._kind, self._packed = kind, {}
            if scored not in self._packed:
                self._packed[scored] = self.pack(scaling, dtype, n_folds, many)
            return self._packed[scored]

    def pack(self, scaling: Scaling, dtype: str, n_folds: int, many: bool, draw: int | None = None) -> Together:
        """Pack the rows anew; with the seed of a draw under random weights, which depend on it and the block number."""
        on_gpu = go_to_gpus(self.held.client, many)
        parts = [
            (block, scaling, dtype, n_folds, on_gpu, None if draw is None else (draw, number))
            for number, block in enumerate(self.held.blocks)
        ]
        return Together(made(self.held.client, "directions", packed_classes, parts, len(parts)), slopes)


@dataclass(frozen=True)
class RemoteClasses:
    """Rows on workers, all of them or all but one fold.

    Attributes
    ----------
    key : array
        Keys of the rows on the client.
    weight : (K,) array
        Total weight of the rows of each class on all workers.
    n_rows : int
        Number of distinct rows: within blocks, or of all if all are on the client.
    present : array, optional
        Classes in this part, if some are missing.
    draw : int, optional
        Seed of random weights of the rows, if any.
    """

    blocks: DirectionBlocks
    key: Keys
    weight: Array
    n_rows: int
    without: Without | None = None
    present: Codes | None = None
    draw: int | None = None

    @property
    def n_seen(self) -> float:
        """Total weight of this part."""
        return float((self.weight if self.without is None else self.without.weight).sum())

    def identity(self, design: Scaling) -> tuple[Any, ...]:
        """Return digests of the blocks, and the scaling."""
        return *self.blocks.held.each(identity), design.mean, design.scale, design.knots

    def gradient(self, design: Scaling, dtype: npt.DTypeLike) -> RemoteGradient:
        """Return the passes over rows packed on their workers."""
        fold, n_folds = (None, 1) if self.without is None else self.without[:2]
        kind = design, np.dtype(dtype).name, n_folds, self.n_rows >= MANY_ROWS
        packed = self.blocks.packed(*kind) if self.draw is None else self.blocks.pack(*kind, self.draw)
        return RemoteGradient(packed, len(self.weight), fold, self.present)

    def part(self, train: Without) -> tuple[Numbers, Self]:
        """Return all rows but those of a fold."""
        here = np.flatnonzero(folds_of(self.key, train.n_folds) != train.fold)
        return here, replace(self, without=train)

    def reweighted(self, seen: Observations, rng: np.random.Generator) -> Self:
        """Return the rows with random weights, drawn by every block, with about the same sum."""
        return replace(self, draw=int(rng.integers(1 << 62)))


@dataclass(frozen=True)
class RemoteClassReader(ClassReader):
    """Reader of rows on workers, some of which are on the client."""

    remote: RemoteClasses

    def with_scores(self, task: Task) -> Task:
        """Return the same rows with covariates as normal scores."""
        if all_on_client(task):
            return super().with_scores(task)
        scaling = scores_from_sums(self.remote.blocks.held, self.rows)
        return replace(task, Z=scaling.of(self.rows), design=scaling)

    def deciding(self, task: Task, most: int) -> Task:
        """Return the rows on the client, with local passes."""
        here = ClassReader(self.rows)
        return here.deciding(replace(task, reader=here, remote=None), most)

    def identity(self, task: Task) -> tuple[Any, ...]:
        """Return the identity of the rows on the workers."""
        return self.remote.identity(task.design)

    def folds(self, task: Task, n_folds: int) -> Folds:
        """Return folds by keys, without folds that have no row on the client."""
        key, n_classes = self.remote.key, len(self.remote.weight)
        by_fold = reduce(add, self.remote.blocks.held.each(weights_by_fold, n_folds, n_classes))
        fold, left = folds_of(key, n_folds), [np.delete(by_fold, f, axis=0).sum(axis=0) for f in range(n_folds)]
        folds = [(Without(f, n_folds, left[f]), np.flatnonzero(fold == f)) for f in range(n_folds)]
        return [(train, test) for train, test in folds if len(test)]

    def splits(self, task: Task, cv: Any) -> Folds:
        """Return this number of folds; other values of `cv` were refused."""
        folds = self.folds(task, int(cv)) if cv > 1 else []
        if len(folds) < 2:
            raise ValueError(
                f"EM cross-validates learned directions, and needs two folds of distinct rows or more: EM(cv={cv}), "
                f"{task.n_rows:,} distinct rows."
            )
        return folds

    def present(self, task: Task, train: Without) -> Numbers:
        """Return classes that have rows in the part, on any worker."""
        return np.flatnonzero(train.weight)

    def training(self, task: Task, train: Without) -> tuple[Task, Numbers | None]:
        """Return the training part with classes renumbered."""
        part, present = super().training(task, train)
        return replace(part, remote=replace(self.remote, without=train, present=present)), present


def all_on_client(task: Task) -> bool:
    """True if all rows are on the client."""
    return task.n_rows == len(task.seen)


def class_task_of(held: Held, source: Source) -> Task:
    """Return the task of classes whose rows are on workers, as in `plackett.cluster.observed`."""
    tallies = held.each(tally)
    n_classes, d = max(len(each.rows) for each in tallies), tallies[0].n_columns
    count, weight = np.zeros(n_classes, dtype=np.intp), np.zeros(n_classes)
    least = np.full(n_classes, np.iinfo(np.uint64).max, dtype=np.uint64)
    for each in tallies:
        some = slice(len(each.rows))
        count[some] += each.rows
        weight[some] += each.weight
        least[some] = np.minimum(least[some], each.least)
    n, room = int(count.sum()), min(ENOUGH, max(MOST_NUMBERS // max(d, 1), RARE))
    share = np.ones(n_classes) if n <= room else np.minimum(np.maximum(room / n, RARE / count), 1.0)
    limits = np.array([min(int(each * 2.0**64), 2**64 - 1) for each in share], dtype=np.uint64)
    found = held.each(some_rows, np.maximum(limits, least))
    rows, codes, counts, _ = merge(*(np.concatenate(each) for each in zip(*found, strict=True)))
    if n <= room:
        n, scaling = len(rows), Scaling(*mean_and_scale(rows, counts))
    else:  # weighted so that the rows on the client represent a part of all
        counts, scaling = counts * (share.min() / share)[codes], scaling_from_sums(held)
    seen = Observations.of_classes(codes, n_classes, counts)
    remote = RemoteClasses(DirectionBlocks(held), keys_of(rows, codes), weight, n)
    return Task(seen, scaling.of(rows), RemoteClassReader(rows, remote), source, remote=remote, design=scaling)


def send_classes(X: Array, codes: Codes, weight: Array | None, source: Source) -> Task:
    """Cut the rows, in lexicographic order, into blocks of equal size, and send them to the workers in turn."""
    client = client_in_use()
    rows, codes, counts, _ = merge(X, codes, weight)
    n, d = rows.shape
    size = -(-n // power_of_two(n * d / ENTRIES))
    cuts = (slice(begin, begin + size) for begin in range(0, n, size))
    held = made(client, "rows", observed, ((rows[some], codes[some], counts[some]) for some in cuts), -(-n // size))
    return class_task_of(held, source)


def client_in_use() -> Any:
    """Return the client; raises if there is none."""
    client = in_use()
    if client is None:
        raise ClusterError("engine='dask' needs a distributed.Client here.")
    return client


class SituationBlocks:
    """All situations of a task on the workers, and those packed for current passes."""

    def __init__(self, designs: tuple[Array, ...], seen: Observations):
        self.client, situations = client_in_use(), seen.all_situations
        self.n_groups, T = seen.n_groups, len(seen)
        numbers = max(Z.size for Z in designs) + len(situations.group)
        self.size = -(-T // power_of_two(numbers / NUMBERS))
        self.firsts, self.on_gpus = range(0, T, self.size), go_to_gpus(self.client, T >= MANY_ROWS)

        def block(first: int) -> tuple[tuple[Array, ...], Observations]:
            some = situations.part(np.arange(first, min(first + self.size, T)))
            used, row = np.unique(some.row, return_inverse=True)
            sent = Observations.of_situations(some._replace(row=row), seen.response, seen.n_groups)
            return tuple(Z[used] for Z in designs), sent

        self.held = made(self.client, "situations", received, map(block, self.firsts), len(self.firsts))
        self._packing = threading.Lock()  # chains ask concurrently
        self._packed: weakref.WeakValueDictionary[Any, RemoteGradient] = weakref.WeakValueDictionary()

    def packed(self, which: int, places: Numbers, counts: Array, dtype: npt.DTypeLike) -> RemoteGradient:
        """Return situations with these numbers (ascending), packed for one design; dropped when unused."""
        name = np.dtype(dtype).name
        key = which, name, hashlib.sha256(places.astype(np.int64).tobytes() + counts.tobytes()).digest()
        with self._packing:
            found = self._packed.get(key)
            if found is None:
                ends = np.searchsorted(places, [*self.firsts[1:], self.firsts[-1] + self.size])[:-1]
                each = zip(self.held.blocks, self.firsts, np.split(places, ends), np.split(counts, ends), strict=True)
                parts = [
                    (block, which, some - first, counted, name, self.on_gpus)
                    for block, first, some, counted in each
                    if len(some)
                ]
                blocks = made(self.client, "directions", packed_situations, parts, len(parts))
                found = self._packed[key] = RemoteGradient(Together(blocks, slopes), self.n_groups)
            return found


@dataclass(frozen=True)
class RemoteSituations:
    """Situations with these numbers on the workers, and their counts."""

    blocks: SituationBlocks
    places: Numbers
    counts: Array

    @property
    def n_rows(self) -> int:
        """Number of situations."""
        return len(self.places)

    @property
    def n_seen(self) -> float:
        """Total weight of this part."""
        return float(self.counts.sum())

    def identity(self, design: int) -> tuple[Any, ...]:
        """Return the block size: sums are rounded accordingly."""
        return "blocks", self.blocks.size

    def gradient(self, design: int, dtype: npt.DTypeLike) -> RemoteGradient:
        """Return passes over situations packed on their workers."""
        return self.blocks.packed(design, self.places, self.counts, dtype)

    def part(self, train: Numbers) -> tuple[Numbers, Self]:
        """Return the training situations of a fold."""
        return train, replace(self, places=self.places[train], counts=self.counts[train])

    def reweighted(self, seen: Observations, rng: np.random.Generator) -> Self:
        """Return the situations with the weights of those on the client."""
        return replace(self, counts=seen.weights)


def send_situations(task: Task) -> Task:
    """Return the task with passes on workers."""
    assert isinstance(task.reader, SituationReader)
    task.seen.response.check(checked(task.seen.all_situations.outcomes))
    blocks = SituationBlocks(task.reader.designs, task.seen)
    remote = RemoteSituations(blocks, np.arange(len(task.seen)), task.seen.weights)
    return replace(task, engine="auto", remote=remote)
