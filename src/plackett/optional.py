"""Optional libraries: import one, or say in words which extra brings it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

EXTRAS = {
    "arviz": ("ArviZ", "arviz"),
    "dask": ("Dask", "dask"),
    "distributed": ("Dask", "dask"),
    "matplotlib": ("Matplotlib", "plots"),
    "pandas": ("pandas", "cli"),
    "pyarrow": ("pyarrow", "cli"),
}  # the library's name in words, and the extra that brings it


def optional(module: str, what: str) -> Any:
    """Import a module of an optional library.

    Parameters
    ----------
    module : str
        The module, such as "matplotlib.pyplot".
    what : str
        Who needs it, in the singular: the subject of the error's sentence.

    Raises
    ------
    ImportError
        If the library is not installed; the message names the extra to install.
    """
    library = module.partition(".")[0]
    name, extra = EXTRAS[library]
    try:
        return import_module(module)
    except ImportError as error:
        if isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] == library:
            raise ImportError(f"{what} needs {name}: pip install 'plackett[{extra}]'") from error
        raise ImportError(f"{what} needs {name}, which is installed but cannot be imported: {error}") from error
