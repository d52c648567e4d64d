"""Operations that a backend leaves to the CPU although the suite runs it in strict mode, by
backend and operation, each with the reason."""

ON_CPU: dict[str, dict[str, str]] = {
    "opencl": {},
}
