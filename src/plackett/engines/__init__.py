"""Where the pass over the rows runs. An engine never sees a prior."""

from plackett.engines.base import ENGINES, Engine, Features, Rows, make_engine

__all__ = ["ENGINES", "Engine", "Features", "Rows", "make_engine"]
