"""Kernels in source form: operations of your own on devices, without building anything; and parts of layers."""

# Made by python/tools/make_stubs.py: change the tables beside it.

from collections.abc import Mapping, Sequence

from ultramarine import ArrayLike, Dtype, StreamOrDevice, array

class CustomKernel:
    """A kernel: called with arrays, it gives a list of arrays. Made by `kernel`, `metal_kernel`, `cuda_kernel`."""

    @property
    def name(self) -> str: ...
    def __call__(
        self,
        *,
        inputs: Sequence[ArrayLike],
        output_shapes: Sequence[Sequence[int]],
        output_dtypes: Sequence[Dtype],
        grid: tuple[int, int, int],
        threadgroup: tuple[int, int, int],
        template: Sequence[tuple[str, Dtype | int | bool]] | None = None,
        init_value: float | None = None,
        verbose: bool = False,
        stream: StreamOrDevice = None,
    ) -> list[array]: ...

def cuda_kernel(
    name: str,
    input_names: Sequence[str],
    output_names: Sequence[str],
    source: str,
    header: str = "",
    ensure_row_contiguous: bool = True,
    shared_memory: int = 0,
) -> CustomKernel: ...
def kernel(
    name: str,
    input_names: Sequence[str],
    output_names: Sequence[str],
    source: Mapping[str, str],
    header: str | Mapping[str, str] = "",
    ensure_row_contiguous: bool = True,
    atomic_outputs: bool = False,
    shared_memory: int = 0,
) -> CustomKernel: ...
def layer_norm(
    x: array, weight: array | None, bias: array | None, eps: float, *, stream: StreamOrDevice = None
) -> array: ...
def metal_kernel(
    name: str,
    input_names: Sequence[str],
    output_names: Sequence[str],
    source: str,
    header: str = "",
    ensure_row_contiguous: bool = True,
    atomic_outputs: bool = False,
    compile_options: Mapping[str, str] | None = None,
) -> CustomKernel: ...
def precompiled_cuda_kernel(
    *,
    name: str,
    compiled_source: bytes,
    inputs: Sequence[ArrayLike],
    output_shapes: Sequence[Sequence[int]],
    output_dtypes: Sequence[Dtype],
    scalars: Sequence[bool | int | float],
    grid: tuple[int, int, int],
    threadgroup: tuple[int, int, int],
    shared_memory: int = 0,
    init_value: float | None = None,
    ensure_row_contiguous: bool = False,
    stream: StreamOrDevice = None,
) -> list[array]: ...
def rms_norm(
    x: array, weight: array | None, eps: float, *, stream: StreamOrDevice = None
) -> array: ...
def rope(
    a: array,
    dims: int,
    *,
    traditional: bool,
    base: float | None,
    scale: float,
    offset: int | array,
    freqs: array | None = None,
    stream: StreamOrDevice = None,
) -> array: ...
