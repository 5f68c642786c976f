"""Eight doubles at a time, in compiled code: what a loop over rows does is written down, not left to the compiler.

A compiler that is free to reorder sums rounds differently by what was compiled before, and a chain amplifies the last
bit. Here every operation is one IEEE operation on each of eight lanes, and `total` adds lanes in a stated order: the
same numbers whatever is inlined, vectorised or loaded from a cache.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, models, register_model

from plackett.compute.compiled import inner

WIDTH = 8
DOUBLE, LONG, INT = ir.DoubleType(), ir.IntType(64), ir.IntType(32)
DOUBLES, LONGS = ir.VectorType(DOUBLE, WIDTH), ir.VectorType(LONG, WIDTH)


class Lanes(types.Type):
    """The type of eight doubles."""

    def __init__(self) -> None:
        super().__init__(name="lanes")


lanes = Lanes()


@register_model(Lanes)
class _Model(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Any):
        super().__init__(dmm, fe_type, DOUBLES)


def _arithmetic(symbol: Any, instruction: str) -> None:
    @infer_global(symbol)
    class Template(AbstractTemplate):
        def generic(self, args: Any, kws: Any) -> Any:
            return signature(lanes, lanes, lanes) if args == (lanes, lanes) else None

    @lower_builtin(symbol, lanes, lanes)
    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return getattr(builder, instruction)(*args)


for _symbol, _instruction in (
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):
    _arithmetic(_symbol, _instruction)


def _constant(value: float | int, kind: ir.VectorType = DOUBLES) -> ir.Constant:
    return ir.Constant(kind, [ir.Constant(kind.element, value)] * WIDTH)


def _spread(builder: Any, scalar: Any) -> Any:
    one = builder.insert_element(ir.Constant(DOUBLES, ir.Undefined), scalar, INT(0))
    return builder.shuffle_vector(one, ir.Constant(DOUBLES, ir.Undefined), ir.Constant(ir.VectorType(INT, WIDTH), None))


def _place(context: Any, builder: Any, array: Any, value: Any, index: Any) -> Any:
    """A pointer to eight entries from array.flat[index] on."""
    data = builder.gep(context.make_array(array)(context, builder, value).data, [index])
    return builder.bitcast(data, ir.VectorType(data.type.pointee, WIDTH).as_pointer())


def _multiply_add(builder: Any, a: Any, b: Any, c: Any) -> Any:
    kind = a.type
    name = "llvm.fma.v8f64" if isinstance(kind, ir.VectorType) else "llvm.fma.f64"
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind] * 3), name)
    return builder.call(function, [a, b, c])


def _polynomial(builder: Any, x: Any, coefficients: list[float]) -> Any:
    """Horner's scheme, the highest power first."""
    value = _constant(coefficients[0])
    for c in coefficients[1:]:
        value = _multiply_add(builder, value, x, _constant(c))
    return value


@intrinsic
def load(typingctx: Any, array: Any, index: Any) -> Any:
    """Eight entries of a contiguous array (its flat order) from `index` on; floats of either size become doubles."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        place = _place(context, builder, sig.args[0], *args)
        value = builder.load(place, align=array.dtype.bitwidth // 8)
        return value if array.dtype == types.float64 else builder.fpext(value, DOUBLES)

    return lanes(array, types.intp), codegen


@intrinsic
def store(typingctx: Any, array: Any, index: Any, value: Any) -> Any:
    """Write eight doubles to array.flat from `index` on."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        builder.store(args[2], _place(context, builder, sig.args[0], *args[:2]), align=8)
        return context.get_dummy_value()

    return types.void(array, types.intp, lanes), codegen


@intrinsic
def spread(typingctx: Any, scalar: Any) -> Any:
    """The same double in all lanes."""
    return lanes(types.float64), lambda context, builder, sig, args: _spread(builder, args[0])


@intrinsic
def multiply_add(typingctx: Any, a: Any, b: Any, c: Any) -> Any:
    """a·b + c with one rounding, of lanes or of doubles."""
    kind = lanes if lanes in (a, b, c) else types.float64
    return kind(kind, kind, kind), lambda context, builder, sig, args: _multiply_add(builder, *args)


def _chosen(predicate: str) -> Callable[..., Any]:
    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        a, b = args
        return builder.select(builder.fcmp_ordered(predicate, a, b), a, b)

    return codegen


@intrinsic
def larger(typingctx: Any, a: Any, b: Any) -> Any:
    """The larger of two, lane by lane."""
    return lanes(lanes, lanes), _chosen(">")


@intrinsic
def smaller(typingctx: Any, a: Any, b: Any) -> Any:
    """The smaller of two, lane by lane."""
    return lanes(lanes, lanes), _chosen("<")


@intrinsic
def count_below(typingctx: Any, a: Any, b: Any) -> Any:
    """1 in the lanes where a < b, else 0."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.select(builder.fcmp_ordered("<", *args), _constant(1.0), _constant(0.0))

    return lanes(lanes, lanes), codegen


def _folded(builder: Any, value: Any, join: Callable[[Any, Any], Any]) -> Any:
    """Lanes 0…3 joined with 4…7, of those 0, 1 with 2, 3, then 0 with 1."""
    width = WIDTH
    while width > 1:
        width //= 2
        index = ir.VectorType(INT, width)
        low = ir.Constant(index, [INT(i) for i in range(width)])
        high = ir.Constant(index, [INT(i + width) for i in range(width)])
        nothing = ir.Constant(value.type, ir.Undefined)
        value = join(builder.shuffle_vector(value, nothing, low), builder.shuffle_vector(value, nothing, high))
    return builder.extract_element(value, INT(0))


@intrinsic
def total(typingctx: Any, a: Any) -> Any:
    """The sum of the lanes, in a fixed order."""
    return types.float64(lanes), lambda context, builder, sig, args: _folded(builder, args[0], builder.fadd)


@intrinsic
def smallest(typingctx: Any, a: Any) -> Any:
    """The smallest of the lanes."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return _folded(builder, args[0], lambda x, y: builder.select(builder.fcmp_ordered("<", x, y), x, y))

    return types.float64(lanes), codegen


LN2 = 0.6931471805599453
ROUNDING = 6755399441055744.0  # 1.5·2⁵²: added, it rounds to an integer and leaves it in the low bits


@intrinsic
def exp(typingctx: Any, x: Any) -> Any:
    """e^x for −600 ≤ x ≤ 600, to the last bit but one.

    x = k ln 2 + r with |r| ≤ ½ ln 2: the series of e^r to degree 13, and 2^k put together from its exponent bits.
    """

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        rounded = _multiply_add(builder, args[0], _constant(1 / LN2), _constant(ROUNDING))
        k = builder.fsub(rounded, _constant(ROUNDING))
        r = _multiply_add(builder, k, _constant(-0.6931471803691238), args[0])
        r = _multiply_add(builder, k, _constant(-1.9082149292705877e-10), r)
        series, factor = [], 1.0
        for degree in range(14):
            factor *= degree or 1
            series.append(1 / factor)
        bits = builder.add(builder.bitcast(rounded, LONGS), _constant(1023, LONGS))
        power = builder.bitcast(builder.shl(bits, _constant(52, LONGS)), DOUBLES)
        return builder.fmul(_polynomial(builder, r, series[::-1]), power)

    return lanes(lanes), codegen


@intrinsic
def log(typingctx: Any, x: Any) -> Any:
    """ln x of normal positive doubles.

    x = 2^e m with m in [√½, √2), and ln m = 2 artanh(s) with s = (m−1)/(m+1), |s| < 0.172: ten terms of the series
    reach the last bit.
    """

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        bits = builder.bitcast(args[0], LONGS)
        e = builder.ashr(builder.sub(bits, _constant(0x3FE6A09E667F3BCD, LONGS)), _constant(52, LONGS))
        m = builder.bitcast(builder.sub(bits, builder.shl(e, _constant(52, LONGS))), DOUBLES)
        s = builder.fdiv(builder.fsub(m, _constant(1.0)), builder.fadd(m, _constant(1.0)))
        z = builder.fmul(s, s)
        series = _polynomial(builder, z, [2 / (2 * i + 1) for i in range(9, -1, -1)])
        return _multiply_add(builder, builder.sitofp(e, DOUBLES), _constant(LN2), builder.fmul(s, series))

    return lanes(lanes), codegen


@intrinsic
def exponent(typingctx: Any, x: Any) -> Any:
    """e of x = 2^e m with 1 ≤ m < 2, of normal positive doubles, as doubles."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        e = builder.ashr(builder.bitcast(args[0], LONGS), _constant(52, LONGS))
        return builder.sitofp(builder.sub(e, _constant(1023, LONGS)), DOUBLES)

    return lanes(lanes), codegen


@intrinsic
def mantissa(typingctx: Any, x: Any) -> Any:
    """m of x = 2^e m with 1 ≤ m < 2, of normal positive doubles."""

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        bits = builder.and_(builder.bitcast(args[0], LONGS), _constant(0xFFFFFFFFFFFFF, LONGS))
        return builder.bitcast(builder.or_(bits, _constant(0x3FF0000000000000, LONGS)), DOUBLES)

    return lanes(lanes), codegen


@inner
def dot(a, b):
    """a·b of contiguous arrays of any length: lanes first, then what is left."""
    whole = a.size - a.size % WIDTH
    sums = spread(0.0)
    for i in range(0, whole, WIDTH):
        sums = multiply_add(load(a, i), load(b, i), sums)
    result = total(sums)
    for i in range(whole, a.size):
        result += a[i] * b[i]
    return result
