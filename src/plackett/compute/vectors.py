"""Vectors of eight doubles or sixteen floats: compiled loops over rows state their vector operations explicitly.

A compiler that may reorder sums rounds differently depending on what was compiled before, and a chain amplifies the
last bit. Here every operation is one IEEE operation on each lane, and `total` adds lanes in a stated order, so that
numbers do not depend on inlining, vectorisation or the cache.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, models, register_model

from plackett.compute.compiled import inner
from plackett.compute.numba_private import AbstractTemplate, cgutils, infer_global, lower_builtin, signature

if TYPE_CHECKING:
    from plackett.compute.numba_private import BaseContext, Signature
    from plackett.compute.numba_private import Context as TypingContext

    Values = tuple[ir.Value, ...]
    Typed = tuple[Signature, Callable[..., ir.Value]]  # signature of an intrinsic and its code generator

BYTES = 64  # bytes per vector
WIDTH = BYTES // 8  # doubles per vector
DOUBLE, FLOAT, LONG, INT = ir.DoubleType(), ir.FloatType(), ir.IntType(64), ir.IntType(32)


class Lanes(types.Type):
    """Type of eight doubles, or of sixteen floats."""

    def __init__(self, scalar: types.Type, number: ir.Type, whole: ir.Type) -> None:
        super().__init__(name=f"lanes of {scalar}")
        self.scalar, self.width = scalar, BYTES * 8 // scalar.bitwidth
        self.numbers, self.wholes = ir.VectorType(number, self.width), ir.VectorType(whole, self.width)


doubles, floats = Lanes(types.float64, DOUBLE, LONG), Lanes(types.float32, FLOAT, INT)
KINDS = {types.float64: doubles, types.float32: floats}


@register_model(Lanes)
class _Model(models.PrimitiveModel):
    def __init__(self, dmm: object, fe_type: Lanes):
        super().__init__(dmm, fe_type, fe_type.numbers)


def _arithmetic(symbol: Callable[..., object], instruction: str) -> None:
    @infer_global(symbol)
    class Template(AbstractTemplate):
        def generic(self, args: tuple[types.Type, ...], kws: object) -> Signature | None:
            return signature(args[0], *args) if args in ((doubles, doubles), (floats, floats)) else None

    @lower_builtin(symbol, Lanes, Lanes)
    def lower(context: BaseContext, builder: ir.IRBuilder, sig: Signature, args: Values) -> ir.Value:
        return getattr(builder, instruction)(*args)


for _symbol, _instruction in (
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):
    _arithmetic(_symbol, _instruction)


def _constant(kind: ir.VectorType, value: float | int) -> ir.Constant:
    return ir.Constant(kind, [ir.Constant(kind.element, value)] * kind.count)


def _spread(builder: ir.IRBuilder, kind: ir.VectorType, scalar: ir.Value) -> ir.Value:
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), scalar, INT(0))
    first = ir.Constant(ir.VectorType(INT, kind.count), None)
    return builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), first)


def _place(
    context: BaseContext, builder: ir.IRBuilder, width: int, array: types.Array, value: ir.Value, index: ir.Value
) -> ir.Value:
    """Return a pointer to `width` entries from array.flat[index] on."""
    data = builder.gep(context.make_array(array)(context, builder, value).data, [index])
    return builder.bitcast(data, ir.VectorType(data.type.pointee, width).as_pointer())


FUSED = {DOUBLE: "llvm.fma.f64", doubles.numbers: "llvm.fma.v8f64", floats.numbers: "llvm.fma.v16f32"}


def _multiply_add(builder: ir.IRBuilder, a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
    name = next(name for kind, name in FUSED.items() if kind == a.type)
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(a.type, [a.type] * 3), name)
    return builder.call(function, [a, b, c])


def _polynomial(builder: ir.IRBuilder, x: ir.Value, coefficients: list[float]) -> ir.Value:
    """Horner's scheme, the highest power first."""
    value = _constant(x.type, coefficients[0])
    for c in coefficients[1:]:
        value = _multiply_add(builder, value, x, _constant(x.type, c))
    return value


@intrinsic
def load(typingctx: TypingContext, array: types.Array, index: types.Type) -> Typed:
    """Entries of a contiguous array (its flat order) from `index` on: eight doubles, or sixteen floats."""
    kind = KINDS[array.dtype]

    def codegen(context: BaseContext, builder: ir.IRBuilder, sig: Signature, args: Values) -> ir.Value:
        return builder.load(_place(context, builder, kind.width, sig.args[0], *args), align=array.dtype.bitwidth // 8)

    return kind(array, types.intp), codegen


@intrinsic
def load_doubles(typingctx: TypingContext, array: types.Array, index: types.Type) -> Typed:
    """Eight entries of a contiguous array from `index` on; floats become doubles."""

    def codegen(context: BaseContext, builder: ir.IRBuilder, sig: Signature, args: Values) -> ir.Value:
        place = _place(context, builder, WIDTH, sig.args[0], *args)
        value = builder.load(place, align=array.dtype.bitwidth // 8)
        return value if array.dtype == types.float64 else builder.fpext(value, doubles.numbers)

    return doubles(array, types.intp), codegen


@intrinsic
def store(typingctx: TypingContext, array: types.Array, index: types.Type, value: types.Type) -> Typed:
    """Write lanes to array.flat from `index` on."""

    def codegen(context: BaseContext, builder: ir.IRBuilder, sig: Signature, args: Values) -> ir.Value:
        place = _place(context, builder, value.width, sig.args[0], *args[:2])
        builder.store(args[2], place, align=array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return types.void(array, types.intp, value), codegen


@intrinsic
def spread(typingctx: TypingContext, scalar: types.Type) -> Typed:
    """Broadcast a number to all lanes."""
    kind = floats if scalar == types.float32 else doubles
    return kind(kind.scalar), lambda context, builder, sig, args: _spread(builder, kind.numbers, args[0])


@intrinsic
def spread_at(typingctx: TypingContext, array: types.Array, index: types.Type) -> Typed:
    """Broadcast the entry array.flat[index], index ≥ 0, to all lanes."""
    kind = KINDS[array.dtype]

    def codegen(context: BaseContext, builder: ir.IRBuilder, sig: Signature, args: Values) -> ir.Value:
        data = context.make_array(sig.args[0])(context, builder, args[0]).data
        return _spread(builder, kind.numbers, builder.load(builder.gep(data, [args[1]])))

    return kind(array, types.intp), codegen


@intrinsic
def all_lanes(typingctx: TypingContext, array: types.Array, scalar: types.Type) -> Typed:
    """Broadcast a number to all lanes of the type that `load` returns for this array."""
    kind = KINDS[array.dtype]
    return kind(array, kind.scalar), lambda context, builder, sig, args: _spread(builder, kind.numbers, args[1])


@intrinsic
def multiply_add(typingctx: TypingContext, a: types.Type, b: types.Type, c: types.Type) -> Typed:
    """a·b + c with one rounding, of lanes or of doubles."""
    kind = a if isinstance(a, Lanes) else types.float64
    return kind(kind, kind, kind), lambda context, builder, sig, args: _multiply_add(builder, *args)


def _chosen(predicate: str) -> Callable[..., ir.Value]:
    def codegen(context: BaseContext, builder: ir.IRBuilder, sig: Signature, args: Values) -> ir.Value:
        a, b = args
        return builder.select(builder.fcmp_ordered(predicate, a, b), a, b)

    return codegen


@intrinsic
def larger(typingctx: TypingContext, a: types.Type, b: types.Type) -> Typed:
    """Lane-wise maximum."""
    return a(a, a), _chosen(">")


@intrinsic
def smaller(typingctx: TypingContext, a: types.Type, b: types.Type) -> Typed:
    """Lane-wise minimum."""
    return a(a, a), _chosen("<")


@intrinsic
def count_below(typingctx: TypingContext, a: types.Type, b: types.Type) -> Typed:
    """Return 1 in the lanes where a < b, else 0."""

    def codegen(context: BaseContext, builder: ir.IRBuilder, sig: Signature, args: Values) -> ir.Value:
        below = builder.fcmp_ordered("<", *args)
        return builder.select(below, _constant(a.numbers, 1.0), _constant(a.numbers, 0.0))

    return a(a, a), codegen


def _folded(builder: ir.IRBuilder, value: ir.Value, join: Callable[[ir.Value, ir.Value], ir.Value]) -> ir.Value:
    """Reduce the lanes by joining the two halves repeatedly."""
    width = value.type.count
    while width > 1:
        width //= 2
        index = ir.VectorType(INT, width)
        low = ir.Constant(index, [INT(i) for i in range(width)])
        high = ir.Constant(index, [INT(i + width) for i in range(width)])
        nothing = ir.Constant(value.type, ir.Undefined)
        value = join(builder.shuffle_vector(value, nothing, low), builder.shuffle_vector(value, nothing, high))
    return builder.extract_element(value, INT(0))


@intrinsic
def total(typingctx: TypingContext, a: types.Type) -> Typed:
    """Sum of the lanes, in a fixed order, as a double."""

    def codegen(context: BaseContext, builder: ir.IRBuilder, sig: Signature, args: Values) -> ir.Value:
        value = args[0] if a is doubles else builder.fpext(args[0], ir.VectorType(DOUBLE, a.width))
        return _folded(builder, value, builder.fadd)

    return types.float64(a), codegen


@intrinsic
def smallest(typingctx: TypingContext, a: types.Type) -> Typed:
    """Smallest lane."""

    def codegen(context: BaseContext, builder: ir.IRBuilder, sig: Signature, args: Values) -> ir.Value:
        return _folded(builder, args[0], lambda x, y: builder.select(builder.fcmp_ordered("<", x, y), x, y))

    return a.scalar(a), codegen


LN2 = 0.6931471805599453
# For doubles and floats: the number whose addition rounds to an integer, left in the low bits; ln 2 in two parts;
# bias and position of the exponent; bits of √½; and as many series terms as the last bit needs.
ROUNDING = {doubles: 6755399441055744.0, floats: 12582912.0}
LN2_PARTS = {doubles: (0.6931471803691238, 1.9082149292705877e-10), floats: (0.693359375, -2.12194440e-4)}
BIAS, PLACE = {doubles: 1023, floats: 127}, {doubles: 52, floats: 23}
ROOT_HALF = {doubles: 0x3FE6A09E667F3BCD, floats: 0x3F3504F3}
EXP_TERMS, LOG_TERMS = {doubles: 14, floats: 8}, {doubles: 10, floats: 5}


@intrinsic
def exp(typingctx: TypingContext, x: types.Type) -> Typed:
    """e^x, to the second last bit, for −600 ≤ x ≤ 600; for floats −80 ≤ x ≤ 80.

    x = k ln 2 + r with |r| ≤ ½ ln 2: the series of e^r, and 2^k put together from its exponent bits.
    """
    numbers, wholes, (high, low) = x.numbers, x.wholes, LN2_PARTS[x]

    def codegen(context: BaseContext, builder: ir.IRBuilder, sig: Signature, args: Values) -> ir.Value:
        shift = _constant(numbers, ROUNDING[x])
        rounded = _multiply_add(builder, args[0], _constant(numbers, 1 / LN2), shift)
        k = builder.fsub(rounded, shift)
        r = _multiply_add(builder, k, _constant(numbers, -high), args[0])
        r = _multiply_add(builder, k, _constant(numbers, -low), r)
        series, factor = [], 1.0
        for degree in range(EXP_TERMS[x]):
            factor *= degree or 1
            series.append(1 / factor)
        bits = builder.add(builder.bitcast(rounded, wholes), _constant(wholes, BIAS[x]))
        power = builder.bitcast(builder.shl(bits, _constant(wholes, PLACE[x])), numbers)
        return builder.fmul(_polynomial(builder, r, series[::-1]), power)

    return x(x), codegen


@intrinsic
def log(typingctx: TypingContext, x: types.Type) -> Typed:
    """ln x of normal positive numbers.

    x = 2^e m with m in [√½, √2), and ln m = 2 artanh(s) with s = (m−1)/(m+1), |s| < 0.172: the series reaches the last
    bit.
    """
    numbers, wholes = x.numbers, x.wholes

    def codegen(context: BaseContext, builder: ir.IRBuilder, sig: Signature, args: Values) -> ir.Value:
        bits, place, one = builder.bitcast(args[0], wholes), _constant(wholes, PLACE[x]), _constant(numbers, 1.0)
        e = builder.ashr(builder.sub(bits, _constant(wholes, ROOT_HALF[x])), place)
        m = builder.bitcast(builder.sub(bits, builder.shl(e, place)), numbers)
        s = builder.fdiv(builder.fsub(m, one), builder.fadd(m, one))
        series = _polynomial(builder, builder.fmul(s, s), [2 / (2 * i + 1) for i in range(LOG_TERMS[x] - 1, -1, -1)])
        return _multiply_add(builder, builder.sitofp(e, numbers), _constant(numbers, LN2), builder.fmul(s, series))

    return x(x), codegen


@intrinsic
def exponent(typingctx: TypingContext, x: types.Type) -> Typed:
    """Exponent e of x = 2^e m with 1 ≤ m < 2, for normal positive x, as a floating-point number."""

    def codegen(context: BaseContext, builder: ir.IRBuilder, sig: Signature, args: Values) -> ir.Value:
        e = builder.ashr(builder.bitcast(args[0], x.wholes), _constant(x.wholes, PLACE[x]))
        return builder.sitofp(builder.sub(e, _constant(x.wholes, BIAS[x])), x.numbers)

    return x(x), codegen


@intrinsic
def mantissa(typingctx: TypingContext, x: types.Type) -> Typed:
    """Mantissa m of x = 2^e m with 1 ≤ m < 2, for normal positive x."""

    def codegen(context: BaseContext, builder: ir.IRBuilder, sig: Signature, args: Values) -> ir.Value:
        bits = builder.and_(builder.bitcast(args[0], x.wholes), _constant(x.wholes, (1 << PLACE[x]) - 1))
        return builder.bitcast(builder.or_(bits, _constant(x.wholes, BIAS[x] << PLACE[x])), x.numbers)

    return x(x), codegen


@inner
def dot(a, b):
    """a·b of contiguous arrays of any length: full vectors first, then the remainder."""
    whole = a.size - a.size % WIDTH
    sums = spread(0.0)
    for i in range(0, whole, WIDTH):
        sums = multiply_add(load_doubles(a, i), load_doubles(b, i), sums)
    result = total(sums)
    for i in range(whole, a.size):
        result += a[i] * b[i]
    return result
