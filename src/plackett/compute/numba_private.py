"""The one place that uses names of Numba that its documentation does not promise; pyproject.toml bounds its version.

`tests/test_numba_private.py` tries each of them, so that a release that drops one is named at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from numba.core import cgutils, event
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.np.random.generator_core import next_uint64

__all__ = [
    "AbstractTemplate",  # types a call by a rule: vectors, and kernels that are called by their address
    "Dispatcher",  # what `njit` returns
    "cgutils",  # declares LLVM intrinsics and external functions once per module
    "event",  # tells when a kernel is being compiled
    "global_compiler_lock",  # held while a kernel is made: a lock of our own could deadlock with it
    "infer_global",  # gives a Python function or operator such a typing rule
    "lower_builtin",  # gives it its LLVM instructions
    "next_uint64",  # raw bits of a NumPy generator inside a kernel
    "signature",
]

# `njit` options without documentation: no entry from Python, none from C, and no reference counts.
INNER = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False}


def follow(kernel: Any, stamp: str, found: Callable[[bytes], None], missing: Callable[[], None]) -> None:
    """Have the cache of a kernel follow `stamp` instead of its file's date, and tell what becomes of each look-up.

    `found` is called with object code before it is loaded, `missing` before a kernel is compiled. An index that
    another version wrote, with types from modules that no longer exist, counts as empty.
    """
    file = kernel._cache._cache_file
    load_index, load = file._load_index, file.load

    def index() -> Any:
        try:
            return load_index()
        except (AttributeError, ImportError):
            return {}

    def look_up(key: Any) -> Any:
        payload = load(key)
        if payload is None:
            missing()
        else:
            (_, _, (object_code, _)), *_ = payload
            found(object_code)
        return payload

    file._source_stamp, file._load_index, file.load = stamp, index, look_up


def is_cached(kernel: Any, signature: Any) -> bool:
    """True if the cache on disk holds this kernel for this signature and processor."""
    cache = kernel._cache
    if not hasattr(cache, "_cache_file"):
        return False
    return cache._index_key(signature, kernel.targetctx.codegen()) in cache._cache_file._load_index()


def symbols(object_code: bytes, prefix: str) -> set[str]:
    """Names that begin with `prefix` in the symbol table of object code: what it calls by address."""
    return {found.decode() for found in re.findall(re.escape(prefix.encode()) + rb"[^\0]+", object_code)}


def address(kernel: Any, signature: Any) -> int:
    """Address of the machine code of a kernel that has been compiled for this signature."""
    made = kernel.overloads[signature.args]
    return int(made.library.get_pointer_to_function(made.fndesc.llvm_func_name))
