"""The command line.

`commands.py`, `rank_command.py` and `reproduce_command.py` declare commands and options. The modules that execute them
load the whole library. They are attributes of this package, imported on first use, so that ``--help`` is fast and
Ctrl-C is handled during the import.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plackett.cli import choice_commands as choice_commands
    from plackett.cli import class_commands as class_commands
    from plackett.cli import cluster_commands as cluster_commands
    from plackett.cli import models as models
    from plackett.cli import ranking_commands as ranking_commands
    from plackett.data import columns as columns
    from plackett.data import tablefile as tablefile

_DEFERRED = {
    name: f"plackett.{package}.{name}"
    for package, names in {
        "cli": ("choice_commands", "class_commands", "cluster_commands", "models", "ranking_commands"),
        "data": ("columns", "tablefile"),
    }.items()
    for name in names
}


def __getattr__(name: str) -> ModuleType:
    if name not in _DEFERRED:
        raise AttributeError(f"module 'plackett.cli' has no attribute {name!r}")
    return import_module(_DEFERRED[name])
