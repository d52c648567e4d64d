"""Functions of each element. Tables where the core has the function, composed where it has not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

import ultramarine as mx
from ultramarine import array

from ._dtypes import (
    ANY,
    BITS,
    BOOL,
    COMPLEX,
    FLOATING,
    INTEGRAL,
    NUMERIC,
    REAL,
    REAL_FLOATING,
    Number,
    as_dtype,
    beside,
    check,
    is_number,
    kind_of,
    pair,
)

Unary: TypeAlias = Callable[[array], array]
Binary: TypeAlias = Callable[["array | Number", "array | Number"], array]


def _unary(name: str, core: Callable[[array], array], kinds: Sequence[str], doc: str) -> Unary:
    def function(x: array, /) -> array:
        return core(check(name, x, kinds))

    return _named(function, name, doc)


def _binary(
    name: str, core: Callable[[array, array], array], kinds: Sequence[str], doc: str
) -> Binary:
    def function(x1: array | Number, x2: array | Number, /) -> array:
        return core(*pair(name, x1, x2, kinds))

    return _named(function, name, doc)


def _named(function: Callable[..., array], name: str, doc: str) -> Callable[..., array]:
    function.__name__ = function.__qualname__ = name
    function.__module__ = "ultramarine.array_api"
    function.__doc__ = doc
    return function


def _whole(core: Callable[[array], array]) -> Callable[[array], array]:
    """A rounding, which leaves integers as they are."""
    return lambda x: x if kind_of(x.dtype) in INTEGRAL else core(x)


def _expm1(x: array) -> array:
    if kind_of(x.dtype) in REAL_FLOATING:
        return mx.expm1(x)
    # exp(a + ib) - 1 without cancellation: (exp(a) - 1) cos(b) - 2 sin(b / 2)**2 + i exp(a) sin(b).
    a, b = mx.real(x), mx.imag(x)
    half = mx.sin(0.5 * b)
    exact = mx.expm1(a)
    out = exact * mx.cos(b) - 2.0 * half * half + 1j * (mx.exp(a) * mx.sin(b))
    # For real numbers, the difference keeps the sign of b.
    out = mx.where(b == 0, x - (a - exact), out)
    # A product with 1j turns infinities into NaN and drops signs of zeros; use the exponential there, which has the
    # standard's values.
    ordinary = mx.isfinite(x) & mx.isfinite(out) & (x != 0)
    return mx.where(ordinary, out, mx.exp(x) - 1.0)


def _sign(x: array) -> array:
    out = mx.sign(x)
    return mx.where(mx.isnan(x), x, out) if kind_of(x.dtype) in REAL_FLOATING else out


# Integer dtype for the bits of a float, by the float's size in bytes.
_BITS = {2: mx.int16, 4: mx.int32, 8: mx.int64}


def _negative_sign(x: array) -> array:
    return x.view(_BITS[x.itemsize]) < 0


def _copysign(x1: array, x2: array) -> array:
    size = mx.abs(x1)
    return mx.where(_negative_sign(x2), -size, size)


def _hypot(x1: array, x2: array) -> array:
    a, b = mx.abs(x1), mx.abs(x2)
    large, small = mx.maximum(a, b), mx.minimum(a, b)
    # Divide by the larger part so that squares do not overflow, but never divide by 0.
    plain = mx.logical_or(large == 0, mx.isinf(large))
    ratio = small / mx.where(plain, mx.ones_like(large), large)
    ratio = mx.where(plain, mx.zeros_like(ratio), ratio)
    out = mx.where(plain, large, large * mx.sqrt(1.0 + ratio * ratio))
    infinite = mx.logical_or(mx.isinf(x1), mx.isinf(x2))
    return mx.where(infinite, mx.array(mx.inf, out.dtype), out)


def _nextafter(x1: array, x2: array) -> array:
    bits_of = _BITS[x1.itemsize]
    bits = x1.view(bits_of)
    away = (x2 > x1) == (x1 > 0)
    one = mx.array(1, bits_of)
    stepped = mx.where(away, bits + one, bits - one).view(x1.dtype)
    least = mx.full(x1.shape, 1, bits_of).view(x1.dtype)
    stepped = mx.where(x1 == 0, mx.where(x2 > 0, least, -least), stepped)
    stepped = mx.where(x1 == x2, x2, stepped)
    unknown = mx.logical_or(mx.isnan(x1), mx.isnan(x2))
    return mx.where(unknown, mx.array(mx.nan, x1.dtype), stepped)


def _reciprocal(x: array) -> array:
    return mx.divide(mx.ones_like(x), x)


def _same(x: array) -> array:
    return x


def _real(x: array) -> array:
    return mx.real(x) if kind_of(x.dtype) in COMPLEX else x


def _conj(x: array) -> array:
    return mx.conj(x) if kind_of(x.dtype) in COMPLEX else x


def _broadcast(core: Callable[[array, array], array]) -> Callable[[array, array], array]:
    def function(x1: array, x2: array) -> array:
        x1, x2 = mx.broadcast_arrays(x1, x2)
        return core(x1, x2)

    return function


# fmt: off
abs = _unary("abs", mx.abs, NUMERIC, "The magnitude of each element; real for complex numbers.")
acos = _unary("acos", mx.arccos, FLOATING, "The inverse cosine of each element.")
acosh = _unary("acosh", mx.arccosh, FLOATING, "The inverse hyperbolic cosine of each element.")
asin = _unary("asin", mx.arcsin, FLOATING, "The inverse sine of each element.")
asinh = _unary("asinh", mx.arcsinh, FLOATING, "The inverse hyperbolic sine of each element.")
atan = _unary("atan", mx.arctan, FLOATING, "The inverse tangent of each element.")
atanh = _unary("atanh", mx.arctanh, FLOATING, "The inverse hyperbolic tangent of each element.")
bitwise_invert = _unary("bitwise_invert", mx.bitwise_invert, BITS, "Each bit inverted; bool: not.")
ceil = _unary("ceil", _whole(mx.ceil), REAL, "The least whole number that is not below each element.")
conj = _unary("conj", _conj, NUMERIC, "The complex conjugate of each element.")
cos = _unary("cos", mx.cos, FLOATING, "The cosine of each element, in radians.")
cosh = _unary("cosh", mx.cosh, FLOATING, "The hyperbolic cosine of each element.")
exp = _unary("exp", mx.exp, FLOATING, "e to the power of each element.")
expm1 = _unary("expm1", _expm1, FLOATING, "exp(x) - 1, exact near 0.")
floor = _unary("floor", _whole(mx.floor), REAL, "The largest whole number that is not above each element.")
imag = _unary("imag", mx.imag, COMPLEX, "The imaginary part of each element.")
isfinite = _unary("isfinite", mx.isfinite, NUMERIC, "Where elements are neither infinite nor NaN.")
isinf = _unary("isinf", mx.isinf, NUMERIC, "Where elements are infinite.")
isnan = _unary("isnan", mx.isnan, NUMERIC, "Where elements are NaN.")
log = _unary("log", mx.log, FLOATING, "The natural logarithm of each element.")
log1p = _unary("log1p", mx.log1p, FLOATING, "log(1 + x), exact near 0.")
log2 = _unary("log2", mx.log2, FLOATING, "The logarithm to the base 2 of each element.")
log10 = _unary("log10", mx.log10, FLOATING, "The logarithm to the base 10 of each element.")
logical_not = _unary("logical_not", mx.logical_not, BOOL, "Each element inverted.")
negative = _unary("negative", mx.negative, NUMERIC, "Each element with the other sign.")
positive = _unary("positive", _same, NUMERIC, "The elements as they are.")
real = _unary("real", _real, NUMERIC, "The real part of each element.")
reciprocal = _unary("reciprocal", _reciprocal, FLOATING, "1 / x of each element.")
round = _unary("round", _whole(mx.round), NUMERIC, "The nearest whole number, the even one of two.")
sign = _unary("sign", _sign, NUMERIC, "-1, 0 or 1 as each element's sign; complex: x / abs(x).")
signbit = _unary("signbit", _negative_sign, REAL_FLOATING, "Where the sign bit is set, of -0.0, too.")
sin = _unary("sin", mx.sin, FLOATING, "The sine of each element, in radians.")
sinh = _unary("sinh", mx.sinh, FLOATING, "The hyperbolic sine of each element.")
square = _unary("square", mx.square, NUMERIC, "Each element times itself.")
sqrt = _unary("sqrt", mx.sqrt, FLOATING, "The square root of each element.")
tan = _unary("tan", mx.tan, FLOATING, "The tangent of each element, in radians.")
tanh = _unary("tanh", mx.tanh, FLOATING, "The hyperbolic tangent of each element.")
trunc = _unary("trunc", _whole(mx.trunc), REAL, "Each element without its fraction.")

add = _binary("add", mx.add, NUMERIC, "x1 + x2.")
atan2 = _binary("atan2", mx.arctan2, REAL_FLOATING, "The angle of the point (x2, x1) in radians.")
bitwise_and = _binary("bitwise_and", mx.bitwise_and, BITS, "The bits that both have.")
bitwise_left_shift = _binary("bitwise_left_shift", mx.left_shift, INTEGRAL, "x1 shifted left by x2 bits.")
bitwise_or = _binary("bitwise_or", mx.bitwise_or, BITS, "The bits that one of both has.")
bitwise_right_shift = _binary("bitwise_right_shift", mx.right_shift, INTEGRAL, "x1 shifted right by x2 bits.")
bitwise_xor = _binary("bitwise_xor", mx.bitwise_xor, BITS, "The bits in which both differ.")
copysign = _binary("copysign", _copysign, REAL_FLOATING, "The magnitude of x1 with the sign of x2.")
divide = _binary("divide", mx.divide, FLOATING, "x1 / x2.")
equal = _binary("equal", mx.equal, ANY, "Where both are equal.")
floor_divide = _binary("floor_divide", mx.floor_divide, REAL, "x1 / x2, rounded toward -infinity.")
greater = _binary("greater", mx.greater, REAL, "Where x1 > x2.")
greater_equal = _binary("greater_equal", mx.greater_equal, REAL, "Where x1 >= x2.")
hypot = _binary("hypot", _hypot, REAL_FLOATING, "sqrt(x1**2 + x2**2), without overflow.")
less = _binary("less", mx.less, REAL, "Where x1 < x2.")
less_equal = _binary("less_equal", mx.less_equal, REAL, "Where x1 <= x2.")
logaddexp = _binary("logaddexp", mx.logaddexp, REAL_FLOATING, "log(exp(x1) + exp(x2)), without overflow.")
logical_and = _binary("logical_and", mx.logical_and, BOOL, "Where both are true.")
logical_or = _binary("logical_or", mx.logical_or, BOOL, "Where one of both is true.")
logical_xor = _binary("logical_xor", mx.not_equal, BOOL, "Where both differ.")
maximum = _binary("maximum", mx.maximum, REAL, "The larger one of both; NaN if one is.")
minimum = _binary("minimum", mx.minimum, REAL, "The smaller one of both; NaN if one is.")
multiply = _binary("multiply", mx.multiply, NUMERIC, "x1 * x2.")
nextafter = _binary("nextafter", _broadcast(_nextafter), REAL_FLOATING, "The number next to x1 toward x2.")
not_equal = _binary("not_equal", mx.not_equal, ANY, "Where both differ.")
pow = _binary("pow", mx.power, NUMERIC, "x1 to the power of x2.")
remainder = _binary("remainder", mx.remainder, REAL, "The rest of x1 / x2, with the sign of x2.")
subtract = _binary("subtract", mx.subtract, NUMERIC, "x1 - x2.")
# fmt: on


def clip(
    x: array, /, min: array | Number | None = None, max: array | Number | None = None
) -> array:
    """The elements held between limits, in the dtype of `x`; NaN where a limit is."""
    out = check("clip", x, REAL)
    for limit, core in ((min, mx.maximum), (max, mx.minimum)):
        if limit is None:
            continue
        if is_number(limit):
            beside("clip", limit, x.dtype)
            out = core(out, as_dtype(limit, x.dtype))
        else:
            low, high = pair("clip", out, limit, REAL)
            out = core(low, high)
    return out.astype(x.dtype)
