"""Whether there is CUDA."""

# Made by python/tools/make_stubs.py: change the tables beside it.

def is_available() -> bool: ...
