"""Optional libraries: import one, or name the extra that installs it."""

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
}  # name of the library, and the extra that installs it


def optional(module: str, what: str) -> Any:
    """Import a module of an optional library.

    Parameters
    ----------
    module : str
        Module, such as "matplotlib.pyplot".
    what : str
        What needs it: the subject of the error's sentence, in the singular.

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
