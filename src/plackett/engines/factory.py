"""Engines by name."""

from plackett.capabilities import Offers
from plackett.data.observations import Observations
from plackett.engines.base import Engine
from plackett.engines.cupy import CupyEngine
from plackett.engines.cupy_situations import ROOM, known
from plackett.engines.dask import DaskEngine
from plackett.engines.device import MANY_ENTRIES, MANY_ROWS, chosen_engine
from plackett.engines.numba import NumbaEngine
from plackett.engines.numpy import NumpyEngine

ENGINES: dict[str, type[Engine]] = {
    "numpy": NumpyEngine,
    "numba": NumbaEngine,
    "cupy": CupyEngine,
    "dask": DaskEngine,
}


def engine_class(name: str, partitions: bool = False) -> type[Engine]:
    """Return the engine class with this name; "auto" is "dask" for partitioned data, else "numba"."""
    name = ("dask" if partitions else "numba") if name == "auto" else name
    if name not in ENGINES:
        raise ValueError(f"engine must be 'auto' or one of {sorted(ENGINES)}, got {name!r} instead.")
    return ENGINES[name]


def offers_of(name: str, partitions: bool = False) -> Offers:
    """Return what the engine with this name offers."""
    return engine_class(name, partitions).offers


def choose_engine(asked: str, shape: tuple[int, ...], seen: Observations, learned: bool = False) -> str:
    """Choose the engine of a fit in memory: "auto" becomes "cupy" if a GPU is present and faster.

    Parameters
    ----------
    asked : str
        The user's setting.
    shape : (int, int)
        Shape of W, or of the covariates if directions are learned.
    seen : Observations
        Classes or situations.
    learned : bool
        True if directions are learned.
    """
    n, p = shape
    if seen.situations is not None:
        entries = len(seen.situations.group)
        return chosen_engine(asked, entries * p >= MANY_ENTRIES and known(seen), n * (16 * p + ROOM) + 132 * entries)
    if learned:
        return chosen_engine(asked, n >= MANY_ROWS, 24 * n * p)
    return chosen_engine(asked, n * p >= MANY_ENTRIES, 8 * n * p)


def make_engine(name: str, exact: bool = False) -> Engine:
    """Make the engine with this name; "auto" is "numba". With `exact` a GPU stores features in float64 (for EM).

    Examples
    --------
    Three items are ranked twice, once to the end and once with the last two left open; there are no covariates.

    >>> import numpy as np
    >>> from plackett.data.observations import Observations
    >>> from plackett.model.race import Weights
    >>> from plackett.responses import Outcomes, make_response
    >>> outcomes, item = Outcomes.of([3, 3], [[1, 1, 1], [1]]), np.array([2, 0, 1, 0, 1, 2])
    >>> rows = make_engine("numba").rows(None, Observations.of_rankings(outcomes, item, make_response("ranking"), 3))
    >>> stats = rows.expect(Weights.point(np.zeros((3, 1))))
    >>> stats.wins.ravel(), stats.exposure.ravel().round(3), round(float(stats.value), 6)
    (array([2., 0., 1.]), array([1.167, 1.167, 0.667]), -2.890372)
    """
    engine = engine_class(name)
    return CupyEngine(exact) if engine is CupyEngine else engine()
