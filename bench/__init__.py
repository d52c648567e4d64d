"""Benchmarks: `python -m bench.run`, see README.md."""
