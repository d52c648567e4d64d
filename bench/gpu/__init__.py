"""Benchmarks of a GPU backend, beside torch."""
