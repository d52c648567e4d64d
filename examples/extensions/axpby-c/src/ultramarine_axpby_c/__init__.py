"""axpby for Ultramarine: an operation of one's own, in C."""

from ultramarine_axpby_c._native import axpby

__all__ = ["axpby"]
