"""Names that other libraries do not promise: only adapters use them, and the installed releases have them."""

import ast
import sys
from importlib import import_module
from pathlib import Path

import dask.dataframe as dd
import distributed
import numba
import pandas as pd
import pytest
from distributed import Client
from distributed.scheduler import TaskState

import plackett
from plackett.cluster import dask_private
from plackett.compute import numba_private
from plackett.compute.compiled import jit

SOURCES = Path(plackett.__file__).parent


def private_imports(text):
    """Underscored names and modules of other libraries that a module imports."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            library, *parts = name.split(".")
            if library not in {"plackett", *sys.stdlib_module_names} and any(part.startswith("_") for part in parts):
                yield name


def test_private_imports_are_found():
    text = "import os._x\nfrom scipy._lib import a\nif 1:\n    from sklearn.utils import _b, c\nimport numpy._core"
    assert sorted(private_imports(text)) == ["numpy._core", "scipy._lib.a", "sklearn.utils._b"]


def test_only_adapters_import_private_names():
    found = {
        str(path.relative_to(SOURCES)): names
        for path in sorted(SOURCES.rglob("*.py"))
        if not path.stem.endswith("_private") and (names := list(private_imports(path.read_text(encoding="utf-8"))))
    }
    assert not found, "put these names, with their reasons, in an adapter called <library>_private.py"


def has(thing, name):
    """Whether there is such a name; in a dictionary, such an entry."""
    for part in name.split("."):
        if part not in thing if isinstance(thing, dict) else not hasattr(thing, part):
            return False
        thing = thing[part] if isinstance(thing, dict) else getattr(thing, part)
    return True


@pytest.fixture(scope="module")
def objects():
    """One of each kind that names belong to; modules are found by their names."""
    kernel = jit(lambda x: x + 1.0)
    kernel(1.0)
    with Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as client:
        yield {
            "Worker": dask_private.worker_here(),
            "Client": client,
            "Scheduler": client.cluster.scheduler,
            "TaskState": TaskState,
            "DataFrame": dd.from_pandas(pd.DataFrame({"a": [1, 2]}), npartitions=1),
            "Kernel": kernel,
            "Overload": next(iter(kernel.overloads.values())),
        }


RELIED_ON = [
    (*names, f"{library.__name__.title()} {library.__version__}", adapter.__file__)
    for library, adapter in ((distributed, dask_private), (numba, numba_private))
    for names in adapter.RELIED_ON
]


@pytest.mark.parametrize(
    ("kind", "name", "reason", "library", "adapter"), RELIED_ON, ids=[f"{kind}.{name}" for kind, name, *_ in RELIED_ON]
)
def test_libraries_have_what_is_relied_on(objects, kind, name, reason, library, adapter):
    try:
        found = has(objects[kind] if kind in objects else import_module(kind), name)
    except ModuleNotFoundError:
        found = False
    assert found, f"{library} has no {kind}.{name}, which plackett uses to {reason}: adapt {adapter}"
