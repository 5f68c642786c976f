"""What an engine offers, and what all engines share: the order of the rows and their random numbers."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy import sparse

from plackett.capabilities import NoMoves, Offers
from plackett.model.race import Array, Slopes, Stats, Weights

COMPILED = NoMoves(
    "Gibbs(moves='exchange') is compiled and cannot be had with engine='{engine}'. Use Gibbs(moves='none') or "
    "engine='auto'.",
    "there are no moves with Gibbs(moves='none'), engine='numpy' or 'cupy'.",
)
ON_WORKERS = NoMoves(
    "Gibbs(moves='exchange') cannot be had with engine='dask': the moves go through all {what} at once, and with "
    "engine='dask' they lie on workers. Use Gibbs(moves='none'), or engine='auto' where the {what} fit into memory.",
    "there are no moves with engine='dask': they go through all {what} at once, and with engine='dask' they lie on "
    "workers.",
)
ENGINES = {
    "numpy": Offers("NumpyEngine", COMPILED),
    "numba": Offers("NumbaEngine"),
    "cupy": Offers("CupyEngine", COMPILED),
    "dask": Offers("DaskEngine", ON_WORKERS, partitions=True),
}
RUN = 4096  # rows of W looked at together


class Features(Protocol):
    """W (n, p) as engines see it: an array, CSR rows, or anything that makes the rows that it is asked for."""

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, p)."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """float64 or float32."""
        ...

    def __getitem__(self, rows: Any, /) -> npt.NDArray[np.floating]:
        """The rows of a slice, or those with these numbers."""
        ...


def runs(features: Features) -> Iterator[tuple[slice, npt.NDArray[np.floating]]]:
    """The rows in runs, each with its place."""
    for start in range(0, features.shape[0], RUN):
        place = slice(start, min(start + RUN, features.shape[0]))
        yield place, features[place]


class Rows(Protocol):
    """The data as an engine holds them, ready for passes."""

    n_rows: int
    n_classes: int
    n_features: int
    order: npt.NDArray[np.intp]  # which of the rows that came is where
    absolute: bool  # whether they know the scale Λ of the weights, as race ties do

    def expect(self, weights: Weights) -> Stats:
        """Expected wins and exposure, E-step of (10) and (18)."""
        ...

    def sample(self, weights: Weights, key: int) -> Stats:
        """Sampled wins and exposure, (11) and (12); a function of the weights and the key alone."""
        ...


class SituationRows(Rows, Protocol):
    """Situations as an engine holds them."""

    n_seen: float  # situations, each as often as it was seen

    @property
    def features(self) -> Features:
        """The rows of W that are used, in the order of the situations."""
        ...

    @property
    def held(self) -> tuple[Any, ...]:
        """The arrays that say what was seen."""
        ...

    @property
    def work(self) -> int:
        """How many numbers a pass goes through."""
        ...

    def set_threads(self, n_threads: int) -> None:
        """Share passes out to so many threads; the results stay the same."""
        ...

    def value(self, weights: Weights) -> float:
        """The log-likelihood."""
        ...


class DirectionRows(Protocol):
    """Covariates as an engine holds them, whose features exp(x·β) are made as a pass goes."""

    def gradient(self, beta: Array, log_weights: Array) -> Slopes:
        """ln p(Y|β, λ) and its gradient, for β (M, d) and ln λ (K, M)."""
        ...


class Engine(Protocol):
    """Makes rows out of features, and out of covariates."""

    def prepare(
        self,
        features: Features,
        codes: npt.NDArray[np.intp],
        sample_weight: Array | None,
        n_classes: int,
    ) -> Rows:
        """Sort, pack and keep the rows."""
        ...

    def prepare_directions(
        self, X: Array, codes: npt.NDArray[np.intp], weight: Array, dtype: npt.DTypeLike
    ) -> DirectionRows:
        """Pack and keep rows of covariates, in the order in which they come within a class; float32 will do, or not."""
        ...


def offers_of(name: str, partitions: bool = False) -> Offers:
    """What the engine of that name offers; "auto" is the cluster for data in partitions, and else compiled."""
    name = ("dask" if partitions else "numba") if name == "auto" else name
    if name not in ENGINES:
        raise ValueError(f"engine must be 'auto' or one of {sorted(ENGINES)}, got {name!r} instead.")
    return ENGINES[name]


def make_engine(name: str) -> Engine:
    """The engine of that name; "auto" is compiled."""
    maker = offers_of(name).maker
    module = importlib.import_module(f"plackett.engines.{'numba' if name == 'auto' else name}")
    engine: Engine = getattr(module, maker)()
    return engine


def canonical_order(
    features: Features, codes: npt.NDArray[np.intp], sample_weight: Array | None = None
) -> tuple[npt.NDArray[np.intp], Array]:
    """Rows by class, then by a projection of their features on a fixed direction; and that projection.

    The order depends on what the rows hold and not on how they came, so that sums and random draws are
    the same for shuffled data; equal rows are interchangeable. On the first direction, zeros and ones in different
    columns often have equal sums: a second one tells such rows apart, and rows that are equal go by their weights.
    """
    n, p = features.shape
    key = _projection(features, np.arange(n), np.modf(np.arange(1, p + 1) * 0.6180339887498949)[0])
    order = np.lexsort((key, codes))
    equal = (np.diff(key[order]) == 0) & (np.diff(codes[order]) == 0)
    if equal.any():
        tied = np.append(equal, False) | np.append(False, equal)
        rows = order[tied]
        keys = (_projection(features, rows, uniforms(1, p)), key[rows], codes[rows])
        order[tied] = rows[np.lexsort(keys if sample_weight is None else (sample_weight[rows], *keys))]
    return order, key


def _projection(features: Features, rows: npt.NDArray[np.intp], direction: Array) -> Array:
    """W_r·direction of these rows; a library's matrix product would round a row by its place."""
    if hasattr(features, "project"):  # where the rows are, if that is elsewhere
        return features.project(rows, direction)
    found = np.empty(len(rows))
    for start in range(0, len(rows), RUN):
        some = slice(start, start + RUN)
        W = features[rows[some]]
        if sparse.issparse(W):
            found[some] = W @ direction  # an entry after the other
        else:
            np.einsum("ij,j->i", np.asarray(W, dtype=np.float64), direction, out=found[some])
    return found


def check_counts(counts: Array, name: str = "weights", of: str = "rows") -> Array:
    """Refuse fractions in a sampled pass, where a weight of 2 is two rows."""
    if (counts != np.round(counts)).any():
        raise ValueError(
            f"a sampler takes whole numbers as {name} (a {name[:-1]} of 2 is two {of}), got "
            f"{counts[counts != np.round(counts)][0]}; 'em' and 'variational' take any."
        )
    return counts


# Uniform random numbers as a function of (key, row): the output function of SplitMix64 over a counter.
STEP, MIX_1, MIX_2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
KEY_OF_TIMES = 0xD1342543DE82EF95  # xor-ed into the key for the second stream, the arrival times


def uniforms(key: int, count: int) -> Array:
    """Uniforms in (0, 1) of rows 0 to count − 1 (the compiled engine computes the same numbers)."""
    bits = np.uint64(key) + np.arange(count, dtype=np.uint64) * np.uint64(STEP)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(MIX_1)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(MIX_2)
    bits ^= bits >> np.uint64(31)
    return ((bits >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
