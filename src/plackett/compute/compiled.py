"""The one place that compiles: Numba options, the cache beside the package, and word of a slow first start."""

from __future__ import annotations

import functools
import hashlib
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite.binding
import numba
from numba import types
from numba.core import cgutils, event
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AbstractTemplate, infer_global

REAL, FLOAT, WHOLE, TRUTH, NOTHING, RNG = (
    types.float64,
    types.float32,
    types.int64,
    types.boolean,
    types.void,
    types.npy_rng,
)
REALS, TABLE, CUBE = (types.Array(REAL, dimensions, "C") for dimensions in (1, 2, 3))
FLOATS, FLOAT_TABLE, FLOAT_CUBE = (types.Array(FLOAT, dimensions, "C") for dimensions in (1, 2, 3))
WHOLES, WHOLE_TABLE = (types.Array(WHOLE, dimensions, "C") for dimensions in (1, 2))


def _sources() -> str:
    """A digest of every module with kernels: a cached kernel holds copies of what it calls in other modules."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.parent.rglob("*.py")):
        text = path.read_bytes()
        if b"plackett.compute.compiled" in text or b"plackett.compute.vectors" in text:
            digest.update(text)
    return digest.hexdigest()


SOURCES = _sources()


def jit(function: Callable[..., Any], **options: Any) -> Any:
    """`numba.njit` that releases the interpreter lock and caches where a cache can be written.

    Arithmetic is strict: sums are taken as they are written and nothing is fused, so that a kernel rounds the same
    whatever it is compiled into, and a seed gives the same draws. Loops over rows that must be fast are written with
    `plackett.compute.vectors`. A cached kernel is compiled anew when any kernel of the package has been edited.
    """
    kernel = numba.njit(nogil=True, error_model="numpy", **options)(function)
    try:
        kernel.enable_caching()
        held = kernel._cache._cache_file
        held._source_stamp, held._load_index = SOURCES, functools.partial(_index, held._load_index)
    except RuntimeError:  # neither the package's folder nor the user's cache folder can be written
        pass
    return kernel


def _index(load: Callable[[], Any]) -> Any:
    """The kernels in a cache file; none where an earlier version wrote it, with types from modules that are gone."""
    try:
        return load()
    except (AttributeError, ImportError):
        return {}


def inner(function: Callable[..., Any]) -> Any:
    """The same for what only other kernels call: no way in from Python is compiled, and no references are counted.

    Such a kernel can neither allocate nor return an array.
    """
    return jit(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False)


def record(kind: Any, *fields: Any) -> Any:
    """The compiled type of a NamedTuple whose fields have these types."""
    return types.BaseTuple.from_types(fields, kind)


def apart(returned: Any, *arguments: Any, allocates: bool = False) -> Callable[..., Any]:
    """A kernel of one signature that other kernels call without taking its body in.

    Numba links what a kernel calls into the kernel and optimises all of it anew, so that a body at the bottom is
    compiled once for every function above it. A kernel made apart is compiled, or loaded, when its module is imported,
    and its callers know its address alone. Where it does not allocate, no references are counted.
    """

    def compile(function: Callable[..., Any]) -> Any:
        kernel = jit(function, _nrt=allocates)
        kernel.compile(returned(*arguments))
        kernel.disable_compile()
        (made,) = kernel.overloads.values()
        kind = hashlib.sha256(str(arguments).encode()).hexdigest()[:8]
        symbol = f"{function.__module__}.{function.__qualname__}.{kind}"
        llvmlite.binding.add_symbol(symbol, made.library.get_pointer_to_function(made.fndesc.llvm_func_name))

        @functools.wraps(function)
        def call(*values: Any) -> Any:
            return kernel(*values)

        @infer_global(call, typing_key=symbol)
        class Template(AbstractTemplate):
            def generic(self, args: Any, kws: Any) -> Any:
                return returned(*arguments)

        @lower_builtin(symbol, types.VarArg(types.Any))
        def lower(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            kind = context.call_conv.get_function_type(returned, arguments)
            callee = cgutils.get_or_insert_function(builder.module, kind, symbol)
            status, result = context.call_conv.call_function(builder, callee, returned, arguments, values)
            with cgutils.if_unlikely(builder, status.is_error):
                context.call_conv.return_status_propagate(builder, status)
            return result

        call.py_func = function  # type: ignore[attr-defined]
        return call

    return compile


WORD = "plackett: compiling the kernels; this happens once, later runs load them from the cache\n"
PATIENCE = 1.0  # seconds of compiling before a word is said


class _Word(event.Listener):
    """Says once, on standard error, that kernels of this package are being compiled, if that takes a while."""

    def __init__(self) -> None:
        self.depth, self.said = 0, False
        self.timer = threading.Timer(0.0, self.say)

    def say(self) -> None:
        if not self.said:
            self.said = True
            sys.stderr.write(WORD)

    def on_start(self, event: Any) -> None:
        if self.depth == 0 and not self.said and event.data["dispatcher"].py_func.__module__.startswith("plackett."):
            self.timer = threading.Timer(PATIENCE, self.say)
            self.timer.daemon = True
            self.timer.start()
        self.depth += 1

    def on_end(self, event: Any) -> None:
        self.depth -= 1
        if self.depth == 0:
            self.timer.cancel()


event.register("numba:compile", _Word())
