"""Whether there is CUDA."""

# Made by python/tools/make_stubs.py: change the tables there.

def is_available() -> bool: ...
