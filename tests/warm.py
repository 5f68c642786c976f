"""Compile the kernels before the tests, so that the processes that run them hold no memory of the compiler.

Run as a script: python tests/warm.py
"""

import pkgutil
from importlib import import_module

import plackett
from plackett.compute.compiled import APART
from plackett.compute.side_by_side import make_all

if __name__ == "__main__":
    for module in pkgutil.walk_packages(plackett.__path__, "plackett."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    make_all(list(APART.values()))
