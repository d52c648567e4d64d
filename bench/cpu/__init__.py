"""Benchmarks of the CPU backend, beside other libraries."""
