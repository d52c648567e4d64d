"""Numbers of few bits."""

from .case import Case, flat, real, whole

CASES: list[Case] = [
    flat("to_fp8", lambda um, x: um.to_fp8(x), real(3)),
    flat(
        "from_fp8",
        lambda um, x: um.from_fp8(x.astype(um.uint8), um.float32),
        whole(3, high=120),
    ),
]

EXEMPT: dict[str, str] = {}
