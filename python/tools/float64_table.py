"""Writes the table that the CPU backend's float64 functions are tested against.

Usage: python float64_table.py (needs mpmath)

Each line of `crates/ultramarine-cpu/tests/units/elementwise/float64.table` is a function of the schema, its
operands and the correctly rounded result as bits, and what the exact result has beyond it, in thousandths of
a unit in the last place. Operands are drawn from ranges where the functions change their formula, lose bits
or overflow; the generator is seeded, so the table is the same every time.
"""

import math
import random
import struct
from pathlib import Path

import mpmath as mp

TABLE = Path(__file__).parents[2] / "crates/ultramarine-cpu/tests/units/elementwise/float64.table"
HALF_PI = math.pi / 2
mp.mp.prec = 1400  # the reduction of arguments up to 2^1023, and cancellations


def logistic(x):
    return 1 / (1 + mp.exp(-x))


def inverse_erf(x):
    y = mp.mpf(math.sqrt(max(0.0, -math.log1p(-abs(float(x))))))
    with mp.workprec(300):
        for _ in range(200):
            left = mp.erf(y) - abs(x) if abs(x) < 0.5 else (1 - abs(x)) - mp.erfc(y)
            step = left * mp.sqrt(mp.pi) / 2 * mp.exp(y * y)
            y -= step / (1 + y * step)
            if abs(step) < mp.mpf(2) ** -250 * abs(y):
                break
    return mp.sign(x) * y


def sum_of_powers(x, y):
    return max(x, y) + mp.log1p(mp.exp(-abs(x - y)))


# Ranges of operands: (lowest, highest), uniform; ("log2", lowest, highest), by exponents; ("turns", n),
# multiples of pi/2; ("one", lowest, highest), near 1 and -1.
WIDE = ("log2", -1070, 1020)
TINY = ("log2", -60, -1)
UNARY = {
    "exp": (mp.exp, [(-1, 1), (-700, 700), (-745.1, -707), (709, 709.78), TINY]),
    "expm1": (mp.expm1, [(-1, 1), (-0.4, 0.4), (-40, 60), (708, 709.78), TINY]),
    "log": (mp.log, [(0.6, 1.6), (0.999, 1.001), (0, 10), WIDE]),
    "log2": (lambda x: mp.log(x) / mp.log(2), [(0.6, 1.6), (0.999, 1.001), (0, 10), WIDE]),
    "log10": (lambda x: mp.log(x) / mp.log(10), [(0.6, 1.6), (0.999, 1.001), (0, 10), WIDE]),
    "log1p": (mp.log1p, [(-0.999, 1), (-0.5, 0.6), (0, 1e17), TINY, WIDE]),
    "sin": (mp.sin, [(-1, 1), (-10, 10), ("turns", 600_000), (-1e6, 1e6), WIDE]),
    "cos": (mp.cos, [(-1, 1), (-10, 10), ("turns", 600_000), (-1e6, 1e6), WIDE]),
    "tan": (mp.tan, [(-1, 1), (-10, 10), ("turns", 600_000), (-1e6, 1e6), WIDE]),
    "arcsin": (mp.asin, [(-1, 1), (0.45, 0.6), (0.999, 1), TINY]),
    "arccos": (mp.acos, [(-1, 1), (0.45, 0.6), (0.999, 1), (-1, -0.999), TINY]),
    "arctan": (mp.atan, [(-1, 1), (0.38, 0.46), (-9, 9), TINY, WIDE]),
    "sinh": (mp.sinh, [(-1, 1), (-40, 40), (-710.4, 710.4), TINY]),
    "cosh": (mp.cosh, [(-1, 1), (-40, 40), (-710.4, 710.4)]),
    "tanh": (mp.tanh, [(-1, 1), (-0.4, 0.4), (-20, 20), TINY]),
    "arcsinh": (mp.asinh, [(-1, 1), (-9, 9), TINY, WIDE]),
    "arccosh": (mp.acosh, [(1, 2), (1, 1.001), (1, 1000), ("log2", 1, 1020)]),
    "arctanh": (mp.atanh, [(-1, 1), (-0.3, 0.3), (0.999, 1), TINY]),
    "erf": (mp.erf, [(-1, 1), (0.9, 1), (-6, 6), TINY]),
    "erfinv": (inverse_erf, [(-1, 1), (-0.1, 0.1), (0.99, 1), ("one", -53, -5), TINY]),
    "sigmoid": (logistic, [(-1, 1), (-40, 40), (-745, -700), TINY]),
}
BINARY = {
    "power": (
        mp.power,
        [
            ((0, 3), (-3, 3)),
            ((0.99, 1.01), (-70_000, 70_000)),
            (("log2", 0, 1000), (-1, 1)),
            "edges",
        ],
    ),
    "arctan2": (
        mp.atan2,
        [((-1, 1), (-1, 1)), (("log2", -1070, -900), ("log2", -1070, -900)), (WIDE, WIDE)],
    ),
    "logaddexp": (sum_of_powers, [((0, 9), (0, 9)), ((0, 700), (0, 700)), ((99, 100), (70, 99))]),
}
# Operands of each range.
EACH = 24


def draw(rng, kind):
    if kind[0] == "log2":
        size = math.ldexp(rng.uniform(1, 2), rng.randint(kind[1], kind[2]))
        return size if kind == WIDE or kind[1] >= 0 else rng.choice([size, -size])
    if kind[0] == "turns":
        return rng.randint(-kind[1], kind[1]) * HALF_PI
    if kind[0] == "one":
        return rng.choice([-1, 1]) * (1 - math.ldexp(1, rng.randint(kind[1], kind[2])))
    return rng.uniform(*kind)


def bits(x):
    return f"{struct.unpack('<Q', struct.pack('<d', x))[0]:016x}"


def rounded(exact):
    """The nearest float64 and what the exact number has beyond it, in thousandths of a unit."""
    exponent = max(mp.frexp(exact)[1], -1021) if exact else -1021
    unit = mp.ldexp(mp.mpf(1), exponent - 53)
    whole = mp.nint(exact / unit)
    return float(whole * unit), int(mp.nint((exact / unit - whole) * 1000))


def main():
    rng = random.Random(64)
    lines = []
    for name, (function, kinds) in UNARY.items():
        for kind in kinds:
            for _ in range(EACH):
                x = draw(rng, kind)
                result, rest = rounded(function(mp.mpf(x)))
                lines.append(f"{name} {bits(x)} {bits(result)} {rest}")
    for name, (function, kinds) in BINARY.items():
        for kind in kinds:
            for _ in range(EACH):
                if kind == "edges":
                    # Results from the smallest to the largest number.
                    x = math.ldexp(rng.uniform(1, 2), rng.randint(-900, 900))
                    y = rng.uniform(-744, 709) / math.log(x)
                else:
                    x, y = draw(rng, kind[0]), draw(rng, kind[1])
                result, rest = rounded(function(mp.mpf(x), mp.mpf(y)))
                lines.append(f"{name} {bits(x)} {bits(y)} {bits(result)} {rest}")
    TABLE.write_text("".join(line + "\n" for line in lines))


if __name__ == "__main__":
    main()
