"""Where Ultramarine differs from mlx.core on purpose, with the reason.

Keys are patterns (as in fnmatch) over `module/test[parameters]/case`; what they match is
not compared with mlx, so every row needs a test of its own elsewhere.
"""

DELIBERATE: dict[str, str] = {
    "create/*/empty*": "empty and empty_like are uninitialised; in mlx they are zeros",
    "create/*/asarray float64*": "asarray and from_dlpack keep float64; mlx casts it to float32",
    "create/*/*other endian": "NumPy arrays of the other byte order are read; mlx refuses them",
    "create/*/full by dtype": "full(dtype=) has that dtype; mlx ignores it for floats in integers",
    "dtype/*against others*/*": "a Dtype compared with something else is unequal; mlx raises for None",
    "index/test_set*/with leading 1*": "values with leading axes of size 1 broadcast everywhere",
    "index/test_set[[]None[]]/*": "x[None] = v keeps the dtype of x; in mlx it takes that of v",
    "index/test_at[[]None-*/*": "as x[None] = v",
    "index/test_set[[]...[]]/*": "x[...] = v keeps the dtype of x; in mlx it takes that of v",
    "index/test_at[[]...-*/*": "as x[...] = v",
    "create/*complex128*/operator numpy scalar": "a NumPy complex128 scalar is a Python complex",
    "create/*/*reversed": "NumPy arrays with negative strides are read; mlx refuses them",
}

# Errors of mlx that nobody meant: words of the C++ library instead of a message. What we do
# there is for test_own_errors.
ACCIDENTS = ("std::",)

# Where mlx says that it lacks something we may have it.
LACKS = (
    "not implemented",
    "not yet implemented",
    "Unsupported type",
    "Currently only supports",
    "Does not yet support",
)
