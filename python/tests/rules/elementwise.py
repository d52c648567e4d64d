"""Functions of elements."""

from .case import Case, case, flat, parts, real, truth, whole

# Where each function of one array is smooth.
UNARY = {
    "abs": (0.2, 2), "negative": (-2, 2), "positive": (-2, 2), "square": (-2, 2), "sqrt": (0.5, 2),
    "rsqrt": (0.5, 2), "reciprocal": (0.5, 2), "exp": (-1, 1), "expm1": (-1, 1), "log": (0.5, 2),
    "log2": (0.5, 2), "log10": (0.5, 2), "log1p": (-0.5, 2), "sin": (-2, 2), "cos": (-2, 2),
    "tan": (-1, 1), "arcsin": (-0.8, 0.8), "arccos": (-0.8, 0.8), "arctan": (-2, 2),
    "sinh": (-1, 1), "cosh": (-1, 1), "tanh": (-1, 1), "arcsinh": (-2, 2), "arccosh": (1.3, 3),
    "arctanh": (-0.8, 0.8), "erf": (-1, 1), "erfinv": (-0.8, 0.8), "sigmoid": (-2, 2),
    "softplus": (-2, 2),
    "degrees": (-2, 2), "radians": (-2, 2), "nan_to_num": (-1, 1), "real": (-1, 1),
    "conjugate": (-1, 1), "conj": (-1, 1),
}  # fmt: skip

BINARY = {
    "add": (-1, 1, -1, 1), "subtract": (-1, 1, -1, 1), "multiply": (-1, 1, -1, 1),
    "divide": (-1, 1, 0.5, 2), "remainder": (0.1, 0.9, 1.1, 1.9), "power": (0.5, 2, -1.5, 1.5),
    "maximum": (-1, 1, -1, 1), "minimum": (-1, 1, -1, 1), "logaddexp": (-1, 1, -1, 1),
    "arctan2": (0.5, 1, 0.5, 1), "xlogy": (-1, 1, 0.5, 2),
}  # fmt: skip

STEPS = ("sign", "floor", "ceil", "round", "trunc", "isnan", "isinf", "isfinite", "isneginf",
         "isposinf", "logical_not", "imag")  # fmt: skip

COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal",
               "floor_divide", "isclose", "logical_and", "logical_or", "logical_xor")  # fmt: skip

BITS = ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift")


def called(name: str):
    return lambda um, *x: getattr(um, name)(*x)


CASES: list[Case] = [
    *(case(n, called(n), real(2, 3, low=a, high=b)) for n, (a, b) in UNARY.items()),
    *(
        case(n, called(n), real(2, 3, low=a, high=b), real(3, low=c, high=d))
        for n, (a, b, c, d) in BINARY.items()
    ),
    *(flat(n, called(n), real(2, 3, low=-3, high=3)) for n in STEPS),
    *(flat(n, called(n), real(2, 3, low=1, high=3), real(3, low=1, high=3)) for n in COMPARISONS),
    *(flat(n, called(n), whole(2, 3), whole(3)) for n in BITS),
    flat("equal, whole", called("equal"), whole(2, 3, high=2), whole(2, 3, high=2)),
    flat("bitwise_invert", called("bitwise_invert"), whole(2, 3)),
    case("divmod", lambda um, x, y: um.divmod(x, y)[1], real(2, 3, low=2.1, high=2.9), real(3, low=1.1, high=1.4)),
    case("clip", lambda um, x, a, b: um.clip(x, a, b), real(2, 3), real(low=-0.6, high=-0.5), real(low=0.5, high=0.6)),
    case("where", lambda um, x, y: um.where(um.array([True, False, True]), x, y), real(2, 3), real(3)),
    flat("where, condition", lambda um, c, x: um.where(c, x, 0.0), truth(2, 3), real(2, 3)),
    case("stop_gradient", lambda um, x: um.stop_gradient(x) * 0 + x, real(2, 3)),
    case("astype", lambda um, x: um.astype(um.astype(x, um.float64), um.float64), real(2, 3)),
    case("real, of complex", lambda um, x, y: um.real((x + 1j * y) * (y - 2j * x)), real(3), real(3), single=True),
    case("imag, of complex", lambda um, x, y: um.imag((x + 1j * y) * um.conj(y - 2j * x)), real(3), real(3), single=True),
    case("exp, of complex", lambda um, x, y: parts(um, um.exp(x + 1j * y)), real(3), real(3), single=True),
    flat("allclose", lambda um, x, y: um.allclose(x, y), real(2, 3), real(3)),
    flat("array_equal", lambda um, x, y: um.array_equal(x, y), real(2, 3), real(2, 3)),
]  # fmt: skip

EXEMPT = {
    alias: f"the same function as {name}"
    for alias, name in {
        "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh",
        "atan": "arctan", "atan2": "arctan2", "atanh": "arctanh", "pow": "power",
        "bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift",
    }.items()
}  # fmt: skip
