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

class Streams:
    """Two streams of float32 that are read and one that is written: how fast memory is."""

    def __init__(self, bytes: int) -> None: ...
    def run(self) -> float:
        """Seconds to go over them once."""
