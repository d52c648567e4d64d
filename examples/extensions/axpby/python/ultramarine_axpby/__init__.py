"""z = alpha x + beta y for Ultramarine, as an operation of its own: one pass over memory.

>>> import ultramarine as um
>>> from ultramarine_axpby import axpby
>>> axpby(um.ones((2,)), um.ones((2,)), 4.0, 2.0)
array([6, 6], dtype=float32)
"""

from ultramarine_axpby._native import __version__, axpby

__all__ = ["__version__", "axpby"]
