"""Memory in use: of the process, and of arrays."""

import gc
import resource
from pathlib import Path

import ultramarine as mx


def resident() -> int:
    """Bytes of memory that the process holds now (Linux), else its peak."""
    status = Path("/proc/self/statm")
    if status.exists():
        return int(status.read_text().split()[1]) * resource.getpagesize()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def active() -> int:
    """Bytes of arrays in use, after garbage was collected and work is done."""
    gc.collect()
    mx.synchronize()
    return mx.get_active_memory()
