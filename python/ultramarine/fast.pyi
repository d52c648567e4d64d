"""Kernels in source form: operations of your own on devices, without building anything; and parts of layers.

The guide to kernels is docs/kernels.md.
"""

# Made by python/tools/make_stubs.py of the module's docstrings: change those.

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ultramarine import ArrayLike, Dtype, StreamOrDevice, array

class CustomKernel:
    """Kernel that is called with arrays and returns a list of arrays.

    Made by `kernel`, `metal_kernel` and `cuda_kernel`.

    Example:
        >>> source = {"cuda-c": "y[thread_position_in_grid.x] = 1.0f;"}
        >>> kernel = mx.fast.kernel("fill", [], ["y"], source)
        >>> isinstance(kernel, mx.fast.CustomKernel), kernel.name
        (True, 'fill')
    """

    @property
    def name(self) -> str:
        """str: The kernel's name."""
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

class ForeignKernel:
    """Operation whose outputs a function of another library writes.

    Made by `foreign_kernel`.

    Example:
        >>> kernel = mx.fast.foreign_kernel(lambda x, out: None, name="nothing")
        >>> isinstance(kernel, mx.fast.ForeignKernel), kernel.name
        (True, 'nothing')
    """

    @property
    def name(self) -> str:
        """str: The kernel's name."""
    def __call__(
        self,
        *,
        inputs: Sequence[ArrayLike],
        output_shapes: Sequence[Sequence[int]],
        output_dtypes: Sequence[Dtype],
        init_value: float | None = None,
        stream: StreamOrDevice = None,
    ) -> list[array]: ...

def cross_entropy(logits: array, targets: array, *, stream: StreamOrDevice = None) -> array:
    """Computes the cross entropy of class indices, `logsumexp(logits) - logits[target]`, along the
    last axis.

    float16 and bfloat16 are summed in float32.

    Args:
        logits (array): Unnormalised logits, (..., classes), of floats.
        targets (array): Class indices, (...), of integers in [0, classes); negative ones count
            from the end.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Loss of each target, in float32, of the shape of `targets`.

    Raises:
        ValueError: If the logits have no axis, no class or no floating dtype, or if the targets
            are no integers or of another shape.

    Example:
        >>> mx.fast.cross_entropy(mx.array([[0.0, 0.0]]), mx.array([1]))
        array([0.693147], dtype=float32)
    """

def cuda_kernel(
    name: str,
    input_names: Sequence[str],
    output_names: Sequence[str],
    source: str,
    header: str = "",
    ensure_row_contiguous: bool = True,
    shared_memory: int = 0,
) -> CustomKernel:
    """Makes a kernel of its body in CUDA C++.

    As `kernel` with one language, and with names of MLX's headers: `elem_to_loc`,
    `complex64_t`, `inf`.

    Args:
        name (str): Name of the kernel, for errors.
        input_names (Sequence[str]): Names of the inputs in the body.
        output_names (Sequence[str]): Names of the outputs in the body.
        source (str): Body.
        header (str): Text before the function.
        ensure_row_contiguous (bool): Makes inputs row-major first.
        shared_memory (int): Bytes of dynamic shared memory.

    Returns:
        CustomKernel: Kernel to call. On a device that takes no CUDA a call raises a
            RuntimeError.

    Raises:
        ValueError: If there is no output, or a name is no identifier.

    Example:
        >>> source = "unsigned int i = thread_position_in_grid.x; y[i] = x[i] * x[i];"
        >>> square = mx.fast.cuda_kernel("square", ["x"], ["y"], source)
        >>> square.name
        'square'
    """

def foreign_kernel(
    function: Callable[..., Any], /, *, name: str | None = None, ensure_row_contiguous: bool = True
) -> ForeignKernel:
    """Makes an operation of a function of another library, which launches a kernel that writes into arrays.

    The function is called as `function(*inputs, *outputs)` when an output is computed. All of them have memory, which the
    library takes by DLPack; the outputs' elements are uninitialised. On a GPU it launches on the stream that DLPack names, and
    returns without a wait: what comes before and after the operation is in order with it, in `compile`, too. It runs on the
    thread that evaluates, and computes no arrays of its own. docs/kernels.md has an example for each library.

    Args:
        function (Callable[..., Any]): Function of the inputs and outputs. Its result is ignored.
        name (str | None): Name of the operation, for errors and profiles. Default: the function's.
        ensure_row_contiguous (bool): Makes inputs row-major first.

    Returns:
        ForeignKernel: Kernel to call: `kernel(inputs=..., output_shapes=..., output_dtypes=...)`.

    Raises:
        TypeError: If the function cannot be called.

    Example:
        >>> import numpy
        >>> @mx.fast.foreign_kernel
        ... def double(x, out):
        ...     numpy.multiply(numpy.from_dlpack(x), 2, out=numpy.from_dlpack(out))
        >>> x = mx.array([1.0, 2.0])
        >>> double(inputs=[x], output_shapes=[x.shape], output_dtypes=[x.dtype], stream=mx.cpu)
        [array([2, 4], dtype=float32)]
    """

def gated_delta_update(
    q: array,
    k: array,
    v: array,
    gamma: array,
    beta: array,
    initial_state: array | None = None,
    mask: array | None = None,
    stream: StreamOrDevice = None,
) -> list[array]:
    """Takes steps of a linear attention whose state forgets and corrects itself (gated delta rule).

    A step is `S = gamma * S; S = S + beta * outer(v - S @ k, k); o = S @ q`. Steps are computed in
    chunks, by matrix products, in float32 (float64 if `q` or `k` is).

    Args:
        q (array): Queries, (batch, steps, key heads, size).
        k (array): Keys, of the shape of `q`.
        v (array): Values, (batch, steps, heads, value size). Each key head serves `heads / key heads`
            neighbouring heads.
        gamma (array): Decay of the state, (batch, steps, heads).
        beta (array): Rate of the update, (batch, steps, heads).
        initial_state (array | None): The state at first, (batch, heads, value size, size); by default zeros.
        mask (array | None): (batch, steps), false for steps that leave the state alone and output zeros.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        list[array]: The output, (batch, steps, heads, value size), in the floating dtype that `q` and
        `k` promote to; and the state behind the last step, in float32 (or float64).

    Raises:
        ValueError: If operands have other ranks or sizes that do not fit, or are complex.

    Example:
        >>> x, one = mx.array([[[[3.0]]]]), mx.ones((1, 1, 1))
        >>> [a.item() for a in mx.fast.gated_delta_update(x, x, x, one, one)]
        [27.0, 9.0]
    """

def kernel(
    name: str,
    input_names: Sequence[str],
    output_names: Sequence[str],
    source: Mapping[str, str],
    header: str | Mapping[str, str] = "",
    ensure_row_contiguous: bool = True,
    atomic_outputs: bool = False,
    shared_memory: int = 0,
) -> CustomKernel:
    """Makes a kernel of its body in one or more languages. docs/kernels.md is the guide.

    Args:
        name (str): Name of the kernel, for errors.
        input_names (Sequence[str]): Names of the inputs in the body.
        output_names (Sequence[str]): Names of the outputs in the body.
        source (Mapping[str, str]): Body in each language: "opencl-c", "cuda-c", "msl", "wgsl".
            The signature around it is made of the names and of the arguments of a call.
        header (str | Mapping[str, str]): Text before the function, for all languages or for
            each.
        ensure_row_contiguous (bool): Makes inputs row-major first.
        atomic_outputs (bool): Makes outputs pointers to atomics.
        shared_memory (int): Bytes of shared memory of a group that is sized at the launch.

    Returns:
        CustomKernel: Kernel to call with `inputs`, `grid`, `threadgroup`, `output_shapes` and
            `output_dtypes`.

    Raises:
        ValueError: If there is no output or no source, a name is no identifier, or a language
            is unknown.

    Example:
        >>> source = {
        ...     "cuda-c": "unsigned int i = thread_position_in_grid.x; y[i] = x[i] * x[i];",
        ...     "wgsl": "let i = thread_position_in_grid.x; y[i] = x[i] * x[i];",
        ... }
        >>> square = mx.fast.kernel("square", ["x"], ["y"], source)
        >>> square.name
        'square'
    """

def layer_norm(
    x: array, weight: array | None, bias: array | None, eps: float, *, stream: StreamOrDevice = None
) -> array:
    """Normalises vectors along the last axis to mean 0 and variance 1.

    `(x - mean(x)) / sqrt(var(x) + eps) * weight + bias`; float16 and bfloat16 are computed in
    float32.

    Args:
        x (array): Array of one dimension at least, of floats.
        weight (array | None): Factor for each element of the last axis; None for none.
        bias (array | None): Summand for each element of the last axis; None for none.
        eps (float): Number that is added to the variance.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Array of the shape of `x`, in the dtype that `x`, weight and bias promote to;
            without a weight in that of `x`.

    Raises:
        ValueError: If `x` has no axis, is not of floats, or weight or bias do not fit the last
            axis.

    Example:
        >>> mx.fast.layer_norm(mx.array([1.0, 3.0]), None, None, 0.0)
        array([-1, 1], dtype=float32)
    """

def metal_kernel(
    name: str,
    input_names: Sequence[str],
    output_names: Sequence[str],
    source: str,
    header: str = "",
    ensure_row_contiguous: bool = True,
    atomic_outputs: bool = False,
    compile_options: Mapping[str, str] | None = None,
) -> CustomKernel:
    """Makes a kernel of its body in the Metal Shading Language.

    As `kernel` with one language, and with names of MLX's headers: `elem_to_loc`, `float16_t`,
    `bfloat16_t`, `complex64_t`.

    Args:
        name (str): Name of the kernel, for errors.
        input_names (Sequence[str]): Names of the inputs in the body.
        output_names (Sequence[str]): Names of the outputs in the body.
        source (str): Body.
        header (str): Text before the function.
        ensure_row_contiguous (bool): Makes inputs row-major first.
        atomic_outputs (bool): Makes outputs `device atomic<T>*`.
        compile_options (Mapping[str, str] | None): "math_mode": "safe", "relaxed" or "fast".

    Returns:
        CustomKernel: Kernel to call. On a device that takes no Metal a call raises a
            RuntimeError.

    Raises:
        ValueError: If there is no output, a name is no identifier, or an option is unknown.

    Example:
        >>> source = "uint i = thread_position_in_grid.x; y[i] = x[i] * x[i];"
        >>> square = mx.fast.metal_kernel("square", ["x"], ["y"], source)
        >>> square.name
        'square'
    """

def precompiled_kernel(
    *,
    name: str,
    compiled_source: bytes,
    inputs: Sequence[ArrayLike],
    output_shapes: Sequence[Sequence[int]],
    output_dtypes: Sequence[Dtype],
    scalars: Sequence[bool | int | float | tuple[float, Dtype]],
    grid: tuple[int, int, int],
    threadgroup: tuple[int, int, int],
    shared_memory: int = 0,
    init_value: float | None = None,
    ensure_row_contiguous: bool = False,
    stream: StreamOrDevice = None,
) -> list[array]:
    """Runs a kernel of compiled code: PTX or a cubin on a CUDA device, SPIR-V on a Vulkan device.

    The kernel's parameters are the inputs, the outputs and the scalars, in this order: on CUDA addresses and values, on Vulkan
    bindings of descriptor set 0, storage buffers and for each scalar a uniform buffer. There is no
    guard around it: of threads beyond the grid, which a grid has that is no multiple of the group, the kernel takes care.

    Args:
        name (str): Name of the kernel in the code: mangled, unless its CUDA source said `extern "C"`; of SPIR-V the entry point.
        compiled_source (bytes): PTX, a cubin, or an archive of several; or SPIR-V.
        inputs (Sequence[ArrayLike]): Inputs.
        output_shapes (Sequence[Sequence[int]]): Shapes of the outputs.
        output_dtypes (Sequence[Dtype]): Dtypes of the outputs.
        scalars (Sequence[bool | int | float | tuple[float, Dtype]]): Numbers: a bool is passed as one byte, an int as int32, a
            float as float32, a pair of a number and a dtype as that.
        grid (tuple[int, int, int]): Threads in all, along x, y and z.
        threadgroup (tuple[int, int, int]): Threads of a group, along x, y and z; cut to the grid, but for SPIR-V,
            which says itself how many it has.
        shared_memory (int): Bytes of dynamic shared memory; SPIR-V has none.
        init_value (float | None): Value that outputs are filled with first.
        ensure_row_contiguous (bool): Makes inputs row-major first.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        list[array]: Outputs.

    Raises:
        RuntimeError: If the device takes no such code; when an output is computed, if the driver refuses the code (another
            architecture), or it has no kernel of that name, or another number of parameters.
        ValueError: If there is no output, or a group without threads.
    """

def rms_norm(x: array, weight: array | None, eps: float, *, stream: StreamOrDevice = None) -> array:
    """Divides vectors along the last axis by the root of the mean of their squares.

    `x / sqrt(mean(x ** 2) + eps) * weight`; float16 and bfloat16 are computed in float32.

    Args:
        x (array): Array of one dimension at least, of floats.
        weight (array | None): Factor for each element of the last axis; None for none.
        eps (float): Number that is added to the mean of squares.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Array of the shape of `x`, in the dtype that `x` and the weight promote to.

    Raises:
        ValueError: If `x` has no axis, is not of floats, or the weight does not fit the last
            axis.

    Example:
        >>> mx.fast.rms_norm(mx.array([3.0, 4.0]), mx.ones(2), 0.0)
        array([0.848528, 1.13137], dtype=float32)
    """

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
) -> array:
    """Rotates pairs of elements of the last axis by angles that grow with the position.

    Positions are the indices along the axis before the last, times `scale`. float16 and
    bfloat16 are computed in float32.

    Args:
        a (array): Array of three dimensions at least, of floats: (batch, ..., positions,
            elements).
        dims (int): Number of leading elements of the last axis to rotate; the others stay.
        traditional (bool): Pairs neighbours; else element i is paired with element i + dims /
            2.
        base (float | None): Pair i of n rotates by the angle base ** (-i / n) for each
            position. None where `freqs` is given.
        scale (float): Factor of the positions.
        offset (int | array): First position; or an array with one for each element of the first
            axis.
        freqs (array | None): Instead of a base: positions for the angle 1, for each of the dims
            / 2 pairs.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Rotated array, in shape and dtype of `a`.

    Raises:
        ValueError: If the shapes do not fit, or not exactly one of `base` and `freqs` is given.

    Example:
        >>> mx.fast.rope(mx.ones((1, 2, 4)), 4, traditional=False, base=10000.0, scale=1.0, offset=0).shape
        (1, 2, 4)
    """

def scaled_dot_product_attention(
    q: array,
    k: array,
    v: array,
    *,
    scale: float,
    mask: str | array | None = None,
    sinks: array | None = None,
    force_fused: bool = False,
    lengths: array | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Computes scaled dot-product attention, `softmax(scale * q @ k.T + mask) @ v`.

    Each key head serves `heads / key heads` neighbouring query heads. Scores and softmax are
    computed in float32 for float16 and bfloat16. A query whose keys are all masked gets the mean
    of all values (zeros, with a finite sink).

    Args:
        q (array): Queries, (batch, heads, queries, size), of floats.
        k (array): Keys, (batch, key heads, keys, size).
        v (array): Values, (batch, key heads, keys, value size).
        scale (float): Factor of the scores, usually size ** -0.5.
        mask (str | array | None): `"causal"`: a query sees the keys up to its own position,
            and the last query is at the last key's. Or an array that broadcasts to
            (batch, heads, queries, keys): of bools, true for the keys that are seen, or
            of numbers that are added to the scores. By default every key is seen.
        sinks (array | None): Score for each query head, (heads,), that joins the sum of the softmax and
            has no value.
        force_fused (bool): Raises an error where no fused kernel is available.
        lengths (array | None): Number of keys that count, of each batch, (batch,): those behind it
            are as masked, and a causal mask is aligned at it. What is there has to be finite.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: (batch, heads, queries, value size), in the dtype that q, k and v promote to.

    Raises:
        ValueError: If operands are not of 4 axes or not floating, if their sizes do not fit, if the
            mask's or the sinks' dtype does not promote to the result's, or if `force_fused` is
            True and no fused kernel is available.
        TypeError: If the mask is neither a string nor an array.

    Example:
        >>> x = mx.array([[[[0.0], [0.0]]]])
        >>> v = mx.array([[[[1.0], [3.0]]]])
        >>> mx.fast.scaled_dot_product_attention(x, x, v, scale=1.0, mask="causal").tolist()
        [[[[1.0], [2.0]]]]
    """

precompiled_cuda_kernel = precompiled_kernel
