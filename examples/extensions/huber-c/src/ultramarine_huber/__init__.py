"""The Huber function for Ultramarine."""

from ultramarine_huber._native import huber

__all__ = ["huber"]
