"""Operations that a backend leaves to the CPU although the suite runs it in strict mode, by
backend and operation, each with the reason."""

DECOMPOSITIONS = """cholesky lu qr svd singular_values eigh eigvalsh eig eigvals solve_triangular"""

ON_CPU: dict[str, dict[str, str]] = {
    "opencl": {
        **dict.fromkeys(DECOMPOSITIONS.split(), "no kernels for matrix decompositions"),
        "fft": "no kernel; lengths with a prime factor above 256 are no matrix products",
    },
    "vulkan": {
        **dict.fromkeys(DECOMPOSITIONS.split(), "no kernels for matrix decompositions"),
        "fft": "no kernel; lengths with a prime factor above 256 are no matrix products",
    },
    "cuda": {
        **dict.fromkeys(DECOMPOSITIONS.split(), "no kernels for matrix decompositions (cuSOLVER)"),
        "fft": "no kernel (cuFFT); lengths with a prime factor above 256 are no matrix products",
    },
}
