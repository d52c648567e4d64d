"""MLX's module names for Ultramarine's modules, so that unmodified MLX programs run.

    python -m ultramarine.as_mlx PROGRAM [ARGUMENT ...]     # or -m MODULE, or -c CODE

runs a program as `python` would, with the names installed. Importing this module installs them in the
running process:

    import ultramarine.as_mlx
    import mlx.core as mx, mlx.nn as nn     # ultramarine and ultramarine.nn

The names stand for the same module objects, so that classes are identical whichever way they are imported. An
MLX on disk is shadowed as a whole. `mlx.core.__version__` and `importlib.metadata.version("mlx")` are
`MLX_VERSION`, the version of MLX whose interface this is; Ultramarine's own version is
`importlib.metadata.version("ultramarine")`. Processes that `multiprocessing` starts have the names, too.
"""

from ultramarine.as_mlx._install import MLX_VERSION, Installation, install, installed, uninstall

__all__ = ["MLX_VERSION", "Installation", "install", "installed", "uninstall"]

install()
