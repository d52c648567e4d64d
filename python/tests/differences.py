"""Where Ultramarine differs from mlx.core on purpose, with the reason.

Keys are patterns (as in fnmatch) over `module/test[parameters]/case`; what they match is
not compared with mlx, so every row needs a test of its own elsewhere.
"""

DELIBERATE: dict[str, str] = {
    "create/*/empty*": "empty and empty_like are uninitialised; in mlx they are zeros",
    "create/*/asarray float64*": "asarray and from_dlpack keep float64; mlx casts it to float32",
    "create/*/*other endian": "NumPy arrays of the other byte order are read; mlx refuses them",
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
