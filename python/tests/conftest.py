"""Settings for all tests: both libraries on the CPU."""

import mlx.core as mlx
from harness import tally

__all__ = ["tally"]

# float64 runs in mlx on its CPU only.
mlx.set_default_device(mlx.cpu)
