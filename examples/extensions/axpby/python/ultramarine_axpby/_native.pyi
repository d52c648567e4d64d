import ultramarine as um

__version__: str

def axpby(
    x: um.array,
    y: um.array,
    alpha: float,
    beta: float,
    *,
    stream: um.Stream | um.Device | None = None,
) -> um.array:
    """alpha * x + beta * y, element by element, in one pass over memory."""

def bandwidth(bytes: int, runs: int = 15) -> float:
    """Bytes per second that memory gives to two streams that are read and one that is written."""
