"""Undocumented parts of Numba that plackett uses, each with its reason.

`RELIED_ON` lists the names; tests/test_private_names.py looks for every one of them in the Numba that is installed.
pyproject.toml bounds the releases of Numba from above for their sake.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from numba.core import cgutils as cgutils
from numba.core import event as event
from numba.core.compiler_lock import global_compiler_lock as global_compiler_lock
from numba.core.dispatcher import Dispatcher as Dispatcher
from numba.core.imputils import lower_builtin as lower_builtin
from numba.core.typing.templates import AbstractTemplate as AbstractTemplate
from numba.core.typing.templates import infer_global as infer_global
from numba.core.typing.templates import signature as signature
from numba.np.random.generator_core import next_uint64 as next_uint64

if TYPE_CHECKING:
    from numba.core.base import BaseContext as BaseContext
    from numba.core.typing import Context as Context
    from numba.core.typing.templates import Signature as Signature

RELIED_ON = (
    ("numba.core.typing.templates", "AbstractTemplate", "type operators of vectors, and calls of kernels by address"),
    ("numba.core.typing.templates", "infer_global", "give a function or an operator such a typing rule"),
    ("numba.core.typing.templates", "signature", "type operators of vectors"),
    ("numba.core.imputils", "lower_builtin", "translate operators of vectors and calls of kernels to LLVM"),
    ("numba.core", "cgutils.get_or_insert_function", "declare an LLVM intrinsic or a kernel once per module"),
    ("numba.core", "cgutils.if_unlikely", "pass on an exception of a kernel that was called by address"),
    ("numba.core", "event.register", "say that kernels are being compiled"),
    ("numba.core", "event.Listener", "say that kernels are being compiled"),
    ("numba.core.compiler_lock", "global_compiler_lock", "make a kernel once; another lock could deadlock with it"),
    ("numba.core.dispatcher", "Dispatcher", "tell kernels from other functions"),
    ("numba.np.random.generator_core", "next_uint64", "draw raw bits of a NumPy generator inside a kernel"),
    ("Kernel", "enable_caching", "keep compiled kernels on disk where that is possible"),
    ("Kernel", "_cache._cache_file._source_stamp", "compile a kernel anew when any kernel of the package was edited"),
    ("Kernel", "_cache._cache_file._load_index", "ignore the cache of a version whose types no longer exist"),
    ("Kernel", "_cache._cache_file.load", "load what a cached kernel calls before the kernel itself"),
    ("Kernel", "_cache._index_key", "know which kernels are missing, so that two processes can share them"),
    ("Kernel", "targetctx.codegen", "know which kernels are missing, so that two processes can share them"),
    ("Kernel", "overloads", "find the machine code of a kernel"),
    ("Overload", "library.get_pointer_to_function", "find the machine code of a kernel"),
    ("Overload", "fndesc.llvm_func_name", "find the machine code of a kernel"),
)  # object, name, and use in plackett

# Undocumented `njit` options: no entry points for Python and C, and no reference counts.
INNER = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False}


def follow(kernel: Any, stamp: str, found: Callable[[bytes], None], missing: Callable[[], None]) -> None:
    """Make the cache of a kernel depend on `stamp` instead of its file's date, and report look-ups.

    `found` is called with object code before it is loaded, `missing` before a kernel is compiled. An index written by
    another version, with types from modules that no longer exist, counts as empty.
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
    """True if the cache on disk contains this kernel for this signature and processor."""
    cache = kernel._cache
    if not hasattr(cache, "_cache_file"):
        return False
    return cache._index_key(signature, kernel.targetctx.codegen()) in cache._cache_file._load_index()


def symbols(object_code: bytes, prefix: str) -> set[str]:
    """Return names that begin with `prefix` in the symbol table of object code: its calls by address."""
    return {found.decode() for found in re.findall(re.escape(prefix.encode()) + rb"[^\0]+", object_code)}


def address(kernel: Any, signature: Any) -> int:
    """Return the address of the machine code of a kernel compiled for this signature."""
    made = kernel.overloads[signature.args]
    return int(made.library.get_pointer_to_function(made.fndesc.llvm_func_name))
