"""The only module that compiles: Numba options, the cache, and a message about a slow first start."""

from __future__ import annotations

import ctypes
import dis
import functools
import hashlib
import sys
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import llvmlite.binding
import numba
from numba import types
from numba.extending import intrinsic

from plackett.compute import numba_private as private
from plackett.compute.numba_private import AbstractTemplate, Dispatcher, cgutils, event, infer_global, lower_builtin
from plackett.compute.side_by_side import make_all

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
    """Return a digest of every module with kernels: a cached kernel holds copies of what it calls in other modules."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.parent.rglob("*.py")):
        text = path.read_bytes()
        if b"plackett.compute.compiled" in text or b"plackett.compute.vectors" in text:
            digest.update(text)
    return digest.hexdigest()


SOURCES = _sources()


def jit(function: Callable[..., Any], **options: Any) -> Any:
    """Apply `numba.njit`, releasing the interpreter lock and caching where a cache can be written.

    Arithmetic is strict: sums are computed as written and nothing is fused, so that a kernel rounds the same wherever
    it is inlined, and a seed gives the same draws. Fast loops over rows are written with `plackett.compute.vectors`. A
    cached kernel is recompiled after an edit of any kernel of the package.
    """
    kernel = numba.njit(nogil=True, error_model="numpy", **options)(function)
    try:
        kernel.enable_caching()
        private.follow(kernel, SOURCES, found=_make_callees_of, missing=lambda: make_all(_callees(function)))
    except RuntimeError:  # neither the package's folder nor the user's cache folder can be written
        pass
    return kernel


def inner(function: Callable[..., Any]) -> Any:
    """Compile a function that only other kernels call: without an entry point for Python or reference counts.

    Such a kernel can neither allocate nor return an array.
    """
    return jit(function, **private.INNER)


def is_compiled(function: Any) -> bool:
    """True for kernels."""
    return isinstance(function, Dispatcher)


def record(kind: Any, *fields: Any) -> Any:
    """Return the compiled type of a NamedTuple whose fields have these types."""
    return types.BaseTuple.from_types(fields, kind)


PREFIX = "plackett:"  # prefix of the symbols of kernels that are called by address


class Apart:
    """Kernel of one signature that other kernels call by its address; compiled or loaded when first needed."""

    def __init__(self, function: Callable[..., Any], signature: Any, allocates: bool):
        self.function, self.signature = function, signature
        self.module = function.__module__
        kind = hashlib.sha256(str(signature.args).encode()).hexdigest()[:8]
        self.symbol = f"{PREFIX}{self.module}.{function.__qualname__}.{kind}"
        self.kernel = jit(function, _nrt=allocates)
        self.made = False
        APART[self.symbol] = self

    @property
    def cached(self) -> bool:
        """True if the cache on disk contains it."""
        return private.is_cached(self.kernel, self.signature)

    def compile(self) -> None:
        """Compile the kernel, or load it from the cache."""
        self.kernel.compile(self.signature)

    def make(self) -> None:
        """Compile or load the kernel and publish its address to its callers."""
        with private.global_compiler_lock:
            if not self.made:
                self.compile()
                self.kernel.disable_compile()
                llvmlite.binding.add_symbol(self.symbol, private.address(self.kernel, self.signature))
                self.made = True


APART: dict[str, Apart] = {}  # by symbol


def pretend_made() -> None:
    """Give all kernels a fake address, in a process that compiles callers and never calls them."""
    somewhere = ctypes.cast(ctypes.pythonapi.Py_GetVersion, ctypes.c_void_p).value
    for kernel in APART.values():
        llvmlite.binding.add_symbol(kernel.symbol, somewhere)
        kernel.made = True


def _make_callees_of(object_code: bytes) -> None:
    for symbol in sorted(private.symbols(object_code, PREFIX)):
        APART[symbol].make()


def _callees(function: Callable[..., Any]) -> list[Any]:
    """List kernels that a function calls by address, directly or indirectly, and that are not made; callees first.

    They are found by the names in its code. A missed one, such as one of several signatures, costs only time.
    """
    found: dict[str, Apart] = {}
    _look(_named_in(function), found, set())
    return list(found.values())


def make_together(*functions: Any) -> None:
    """Make kernels and what they call by address, with a second process if many are missing."""
    found: dict[str, Apart] = {}
    _look(functions, found, set())
    make_all(list(found.values()))


def _look(values: Iterable[Any], found: dict[str, Apart], seen: set[int]) -> None:
    """Add kernels of one signature that are not made, and their callees before them."""
    for value in values:
        variants = getattr(value, "variants", None)
        if id(value) in seen or not (isinstance(value, Dispatcher) or variants):
            continue
        seen.add(id(value))
        _look(_named_in(value.py_func), found, seen)
        if variants and len(variants) == 1 and not variants[0].made:
            found[variants[0].symbol] = variants[0]


def _named_in(function: Callable[..., Any]) -> list[Any]:
    """Return the values of names in a function's code: in its cells, its module, and modules that it names."""
    named = {each.argval for each in dis.get_instructions(function) if each.opname == "LOAD_GLOBAL"}
    values = [cell.cell_contents for cell in function.__closure__ or ()]
    values += [function.__globals__.get(name) for name in sorted(named)]
    modules = [value for value in values if isinstance(value, ModuleType)]
    return values + [getattr(module, name, None) for module in modules for name in function.__code__.co_names]


def apart(*signatures: Any, allocates: bool = False) -> Callable[..., Any]:
    """Declare a kernel that other kernels call without inlining it, for one signature or for each of several.

    Numba links callees into a kernel and optimises everything anew, so that a common callee would be compiled once per
    caller. A kernel made apart is compiled, or loaded, once, when a caller is, and its callers know only its address.
    If it does not allocate, it needs no reference counts.
    """

    def declare(function: Callable[..., Any]) -> Any:
        variants = {signature.args: Apart(function, signature, allocates) for signature in signatures}
        key = " ".join(made.symbol for made in variants.values())

        def chosen(arguments: Any, kind_of: Callable[[Any], Any]) -> Apart:
            if len(variants) == 1:
                return next(iter(variants.values()))  # arguments are converted
            return variants[tuple(map(kind_of, arguments))]

        @functools.wraps(function)
        def call(*values: Any) -> Any:
            made = chosen(values, numba.typeof)
            made.make()
            return made.kernel(*values)

        @infer_global(call, typing_key=key)
        class Template(AbstractTemplate):
            def generic(self, args: Any, kws: Any) -> Any:
                made = chosen(args, types.unliteral)
                made.make()
                return made.signature

        @lower_builtin(key, types.VarArg(types.Any))
        def lower(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            made = chosen(signature.args, types.unliteral)
            kind = context.call_conv.get_function_type(signature.return_type, signature.args)
            callee = cgutils.get_or_insert_function(builder.module, kind, made.symbol)
            return _call(context, builder, callee, signature, values)

        call.py_func, call.variants = function, list(variants.values())  # type: ignore[attr-defined]
        return call

    return declare


class Pointer:
    """Call, inside kernels, any kernel of one signature by its address, which is unknown at compile time.

    `address(kernel)` compiles the kernel for this signature; `call(address, …)` is for use inside kernels.
    """

    def __init__(self, returned: Any, *arguments: Any):
        self.signature = returned(*arguments)

        @intrinsic
        def call(typingctx: Any, address: Any, *values: Any) -> Any:
            def codegen(context: Any, builder: Any, signature: Any, given: Any) -> Any:
                kind = context.call_conv.get_function_type(returned, arguments).as_pointer()
                values = [builder.extract_value(given[1], i) for i in range(len(arguments))]
                return _call(context, builder, builder.inttoptr(given[0], kind), self.signature, values)

            return returned(address, types.StarArgTuple(arguments)), codegen

        self.call = call

    def address(self, kernel: Any) -> int:
        """Return the address of a kernel compiled for this signature, which is valid for the life of the process."""
        kernel.compile(self.signature)
        return private.address(kernel, self.signature)


def _call(context: Any, builder: Any, callee: Any, signature: Any, values: Any) -> Any:
    """Emit LLVM instructions that call a compiled kernel and propagate its exceptions."""
    kinds = signature.return_type, signature.args
    status, result = context.call_conv.call_function(builder, callee, *kinds, values)
    with cgutils.if_unlikely(builder, status.is_error):
        context.call_conv.return_status_propagate(builder, status)
    return result


WORD = "plackett: compiling the kernels; this happens once, later runs load them from the cache\n"
PATIENCE = 1.0  # seconds of compilation before a message


class _SlowCompilation(event.Listener):
    """Print a message once, on standard error, if compiling kernels of this package takes a while."""

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


event.register("numba:compile", _SlowCompilation())
