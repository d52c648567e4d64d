"""Ultramarine: lazy arrays on the CPU and on accelerators, with MLX's interface."""

# Made by python/tools/make_stubs.py of the module's docstrings: change those.

from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from types import ModuleType
from typing import Any, Literal, ParamSpec, Protocol, TypeAlias, TypeVar

from ultramarine import backends as backends
from ultramarine import cuda as cuda
from ultramarine import distributed as distributed
from ultramarine import fast as fast
from ultramarine import fft as fft
from ultramarine import linalg as linalg
from ultramarine import metal as metal
from ultramarine import random as random

_P = ParamSpec("_P")
_R = TypeVar("_R")

class SupportsArray(Protocol):
    """Object that converts itself to a NumPy array, such as a pandas Series."""

    def __array__(self) -> Any: ...

class SupportsDLPack(Protocol):
    """Object that exports its memory, such as arrays of NumPy, PyTorch and JAX."""

    def __dlpack__(self) -> Any: ...

class SupportsBuffer(Protocol):
    """Object with the buffer protocol, such as bytes, memoryview and array.array."""

    def __buffer__(self, flags: int, /) -> memoryview: ...

class SupportsMlxArray(Protocol):
    """Object that returns an array itself."""

    def __mlx_array__(self) -> array: ...

scalar: TypeAlias = int | float | bool | complex
Foreign: TypeAlias = SupportsDLPack | SupportsBuffer | SupportsArray | SupportsMlxArray
ArrayLike: TypeAlias = array | scalar | Foreign
StreamOrDevice: TypeAlias = Stream | ThreadLocalStream | Device | DeviceType | None
_Path: TypeAlias = str | PathLike[str] | Any

__version__: str

class ArrayAt:
    """Array and an index, at which updates are applied: `x.at[i]`.

    Example:
        >>> x = mx.array([1, 2, 3])
        >>> x.at[mx.array([0, 0, 2])].add(10)
        array([21, 2, 13], dtype=int32)
        >>> x
        array([1, 2, 3], dtype=int32)
    """

    def __getitem__(self, indices: Any) -> ArrayAt: ...
    def add(self, value: ArrayLike) -> array:
        """Adds at the index.

        Args:
            value (ArrayLike): Operand of the update, broadcast to the indexed part.

        Returns:
            array: Copy of the array, updated.

        Raises:
            IndexError: If the index is out of range.
            ValueError: If `value` cannot be broadcast to the part, or there is no index.

        Example:
            >>> mx.array([1.0, 2.0, 3.0]).at[mx.array([0, 0, 2])].add(2)
            array([5, 2, 5], dtype=float32)
        """
    def divide(self, value: ArrayLike) -> array:
        """Divides at the index.

        Args:
            value (ArrayLike): Operand of the update, broadcast to the indexed part.

        Returns:
            array: Copy of the array, updated.

        Raises:
            IndexError: If the index is out of range.
            ValueError: If `value` cannot be broadcast to the part, or there is no index.

        Example:
            >>> mx.array([1.0, 2.0, 3.0]).at[mx.array([0, 0, 2])].divide(2)
            array([0.25, 2, 1.5], dtype=float32)
        """
    def maximum(self, value: ArrayLike) -> array:
        """Takes the larger of element and value at the index.

        Args:
            value (ArrayLike): Operand of the update, broadcast to the indexed part.

        Returns:
            array: Copy of the array, updated.

        Raises:
            IndexError: If the index is out of range.
            ValueError: If `value` cannot be broadcast to the part, or there is no index.

        Example:
            >>> mx.array([1.0, 2.0, 3.0]).at[mx.array([0, 0, 2])].maximum(2)
            array([2, 2, 3], dtype=float32)
        """
    def minimum(self, value: ArrayLike) -> array:
        """Takes the smaller of element and value at the index.

        Args:
            value (ArrayLike): Operand of the update, broadcast to the indexed part.

        Returns:
            array: Copy of the array, updated.

        Raises:
            IndexError: If the index is out of range.
            ValueError: If `value` cannot be broadcast to the part, or there is no index.

        Example:
            >>> mx.array([1.0, 2.0, 3.0]).at[mx.array([0, 0, 2])].minimum(2)
            array([1, 2, 2], dtype=float32)
        """
    def multiply(self, value: ArrayLike) -> array:
        """Multiplies at the index.

        Args:
            value (ArrayLike): Operand of the update, broadcast to the indexed part.

        Returns:
            array: Copy of the array, updated.

        Raises:
            IndexError: If the index is out of range.
            ValueError: If `value` cannot be broadcast to the part, or there is no index.

        Example:
            >>> mx.array([1.0, 2.0, 3.0]).at[mx.array([0, 0, 2])].multiply(2)
            array([4, 2, 6], dtype=float32)
        """
    def subtract(self, value: ArrayLike) -> array:
        """Subtracts at the index.

        Args:
            value (ArrayLike): Operand of the update, broadcast to the indexed part.

        Returns:
            array: Copy of the array, updated.

        Raises:
            IndexError: If the index is out of range.
            ValueError: If `value` cannot be broadcast to the part, or there is no index.

        Example:
            >>> mx.array([1.0, 2.0, 3.0]).at[mx.array([0, 0, 2])].subtract(2)
            array([-3, 2, 1], dtype=float32)
        """

class ArrayIterator:
    """Iterator over the first axis of an array.

    Example:
        >>> [row.tolist() for row in iter(mx.array([[1, 2], [3, 4]]))]
        [[1, 2], [3, 4]]
    """

    def __iter__(self) -> ArrayIterator: ...
    def __next__(self) -> array: ...

class DeterministicContext:
    """Context manager in which equal calls have to give equal bits, or need not.

    Args:
        s (bool): Whether they have to; see `set_deterministic`.

    Example:
        >>> with mx.DeterministicContext(True):
        ...     total = mx.sum(mx.ones(1000)).item()
        >>> total
        1000.0
    """

    def __init__(self, s: bool) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(
        self, exc_type: Any = None, exc_value: Any = None, traceback: Any = None
    ) -> None: ...

class Device:
    """Device: its kind, and its index among devices of that kind.

    Args:
        type (DeviceType): Kind of the device.
        index (int): Index, from 0.

    Raises:
        ValueError: If the index does not fit into 16 bits.

    Example:
        >>> mx.Device(mx.cpu)
        Device(cpu, 0)
        >>> mx.Device(mx.cpu) == mx.cpu
        True
    """

    def __init__(self, type: DeviceType, index: int = 0) -> None: ...
    @property
    def index(self) -> int:
        """int: Index of the device among those of its kind."""
    @property
    def type(self) -> DeviceType:
        """DeviceType: Kind of the device."""

class DeviceType:
    """Kind of a device, `cpu` or `gpu`. It stands for the first device of that kind; called with an
    index, it gives any.

    Example:
        >>> mx.cpu(0)
        Device(cpu, 0)
    """

    cpu: DeviceType
    gpu: DeviceType
    @property
    def name(self) -> str:
        """str: Name of the member."""
    @property
    def value(self) -> int:
        """int: Number of the member."""
    def __call__(self, index: int = 0) -> Device: ...

class Dtype:
    """Type of an array's elements, such as `float32`.

    Example:
        >>> mx.array([1.5]).dtype
        ultramarine.float32
        >>> mx.float32.size
        4
    """

    @property
    def size(self) -> int:
        """int: Bytes of an element; 1 for packed dtypes, whose elements are smaller."""

class DtypeCategory:
    """A group of dtypes; see `issubdtype`.

    Example:
        >>> mx.issubdtype(mx.int8, mx.signedinteger)
        True
    """

    complexfloating: DtypeCategory
    floating: DtypeCategory
    inexact: DtypeCategory
    signedinteger: DtypeCategory
    unsignedinteger: DtypeCategory
    integer: DtypeCategory
    number: DtypeCategory
    generic: DtypeCategory
    @property
    def name(self) -> str:
        """str: Name of the member."""
    @property
    def value(self) -> int:
        """int: Number of the member."""

class FunctionExporter:
    """Exports several traces of a function to one file. `exporter` makes it; a call traces the function for arguments like those of
    the call.

    The file is written at the end of the `with` statement, by `close`, or when the exporter goes.

    Example:
        >>> with mx.exporter("square.mlxfn", lambda x: x * x) as export:
        ...     export(mx.ones(2))
        ...     export(mx.ones((2, 3)))
        >>> mx.import_function("square.mlxfn")(mx.array([2.0, 3.0]))
        (array([4, 9], dtype=float32),)
    """

    def __call__(self, *args: Any, **kwargs: array) -> None: ...
    def __enter__(self) -> FunctionExporter: ...
    def __exit__(
        self, exc_type: object = None, exc_value: object = None, traceback: object = None
    ) -> None: ...
    def close(self) -> None:
        """Writes the file. No traces can be added then.

        Raises:
            RuntimeError: If the file cannot be written.

        Example:
            >>> export = mx.exporter("double.mlxfn", lambda x: 2 * x)
            >>> export(mx.ones(2))
            >>> export.close()
            >>> mx.import_function("double.mlxfn")(mx.array([2.0, 3.0]))
            (array([4, 6], dtype=float32),)
        """

class InterchangeDeviceError(InterchangeError, TypeError):
    """Memory cannot be imported or exported because of the device that it is on.

    Example:
        >>> issubclass(mx.InterchangeDeviceError, mx.InterchangeError)
        True
    """

class InterchangeError(BufferError, ValueError):
    """Memory cannot be imported or exported as asked: a copy would be needed and was forbidden,
    no array can be that tensor, read-only memory in a form that cannot say so.

    Example:
        >>> issubclass(mx.InterchangeError, (BufferError, ValueError))
        True
    """

class PrecisionContext:
    """Context manager in which products of float32 have a precision.

    Args:
        s (Literal["highest", "high", "medium"]): Precision; see `set_matmul_precision`.

    Example:
        >>> with mx.PrecisionContext("high"):
        ...     y = mx.matmul(mx.ones((2, 3)), mx.ones((3, 2)))
        >>> y.shape
        (2, 2)
    """

    def __init__(self, s: Literal["highest", "high", "medium"]) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(
        self, exc_type: Any = None, exc_value: Any = None, traceback: Any = None
    ) -> None: ...

class PrintOptions:
    """Options of printing numbers.

    Args:
        precision (int): Digits behind the decimal point; -1 for six digits in all.

    Example:
        >>> mx.set_printoptions(precision=3)
        >>> mx.get_printoptions().precision
        3
        >>> mx.set_printoptions(precision=-1)
    """

    def __init__(self, precision: int = -1) -> None: ...
    precision: int

class Profile:
    """Context manager that records what evaluations run, where, and for how long; made by `profile`.

    A profile is of the whole process: evaluations of all threads that begin inside of the `with` statement are
    recorded. Its end waits for all streams.

    Example:
        >>> with mx.profile() as p:
        ...     mx.eval(mx.ones(3) * 2)
        >>> isinstance(p, mx.Profile)
        True
    """

    def __enter__(self) -> Profile: ...
    def __exit__(
        self, exc_type: Any = None, exc_value: Any = None, traceback: Any = None
    ) -> None: ...
    def events(self) -> list[dict[str, Any]]:
        """Returns one dictionary for each task, in the order in which the host was done with them: parts of a
        decomposition, and operations of a compiled function's call, before the whole. Their `depth` is above 0.

        Keys: `op` (str; of a fused program the last), `fused` (list of str, empty for an operation by itself), `inputs` and
        `outputs` (lists of tuples of shape and dtype), `device`, `backend`, `stream` (int), `dispatch` ("native",
        "decomposed", "fallback", "view"; "compiled" for the call of a compiled function), `depth`, `part` (bool: in a
        decomposition, whose time has this in it), `replayed` (bool: by recorded commands of a compiled function), `commands`,
        `bytes_read`, `bytes_written`, `clock` ("device", "host", "submission"), `start_ns` and `duration_ns` by that clock,
        `host_start_ns` and `host_duration_ns` by the host's, and `thread`. Times are in nanoseconds since the profile began.

        Returns:
            list[dict[str, Any]]: Tasks.

        Raises:
            RuntimeError: If the profile has not ended.

        Example:
            >>> with mx.profile() as p:
            ...     mx.eval(mx.sum(mx.ones((2, 3)), axis=1))
            >>> [(e["op"], e["outputs"][0][0]) for e in p.events()]
            [('full', (2, 3)), ('sum', (2, 1)), ('reshape', (2,))]
        """
    def save(self, path: str | PathLike[str]) -> None:
        """Writes the events as JSON in Chrome's trace event format, which Perfetto (ui.perfetto.dev) and `chrome://tracing`
        show: a row for each stream of a device, and one for each thread of the host with planning and submissions.

        Args:
            path (str | PathLike[str]): File.

        Raises:
            RuntimeError: If the profile has not ended.
            OSError: If the file cannot be written.

        Example:
            >>> with mx.profile() as p:
            ...     mx.eval(mx.sum(mx.ones((2, 3)), axis=1))
            >>> p.save("trace.json")
        """
    def table(self, limit: int | None = None) -> str:
        """Returns the events by operation, tensors, device and means, those that took the longest first, as text.

        Columns: the operation, or those of a fused program joined by `+`; dtypes and shapes; device; `native`,
        `decomposed` (by simpler operations), `fallback` (on the CPU) or `view` (without a command); the clock: `device`,
        `host`, or `submission` for a backend without a clock, whose times are those of the submission; number of calls, and
        of those that replayed a compiled function's commands; total and mean time, bytes read and written, and both per
        second. Calls of compiled functions have no rows of their own, but their operations have.

        Args:
            limit (int | None): Most rows; by default all.

        Returns:
            str: Table.

        Raises:
            RuntimeError: If the profile has not ended.

        Example:
            >>> with mx.profile() as p:
            ...     mx.eval(mx.sum(mx.ones((2, 3)), axis=1))
            >>> "sum" in p.table()
            True
        """

class Stream:
    """Ordered queue of work on a device. Made by `new_stream`.

    Example:
        >>> mx.new_stream(mx.cpu).device
        Device(cpu, 0)
    """

    @property
    def device(self) -> Device:
        """Device: Device of the stream."""
    @property
    def index(self) -> int:
        """int: Index of the stream, unique among streams that are in use."""
    @property
    def native(self) -> int | None:
        """int | None: Number by which other libraries know the stream, such as the address of a CUDA stream for
        `torch.cuda.ExternalStream`; None on the CPU and on devices whose streams no other library knows.
        """

class StreamContext:
    """Context manager in which operations use a stream.

    Args:
        s (Stream | ThreadLocalStream | Device | DeviceType): Stream, or device whose default
            stream is meant.

    Example:
        >>> with mx.StreamContext(mx.cpu):
        ...     y = mx.add(1, 2)
        >>> y
        array(3, dtype=int32)
    """

    def __init__(self, s: Stream | ThreadLocalStream | Device | DeviceType) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(
        self, exc_type: Any = None, exc_value: Any = None, traceback: Any = None
    ) -> None: ...

class ThreadLocalStream:
    """Stream of each thread's own: where a stream is asked for, it is the calling thread's.

    Made by `new_thread_local_stream`.

    Example:
        >>> stream = mx.new_thread_local_stream(mx.cpu)
        >>> mx.add(1, 2, stream=stream)
        array(3, dtype=int32)
    """

    @property
    def device(self) -> Device:
        """Device: Device of the streams."""
    @property
    def index(self) -> int:
        """int: Index, unique among thread-local streams."""

class TransferContext:
    """Context manager in which operations use a transfer policy.

    Args:
        s (Literal["error", "host"]): Policy; see `set_transfer_policy`.

    Example:
        >>> with mx.TransferContext("host"):
        ...     mx.get_transfer_policy()
        'host'
    """

    def __init__(self, s: Literal["error", "host"]) -> None: ...
    def __enter__(self) -> None: ...
    def __exit__(
        self, exc_type: Any = None, exc_value: Any = None, traceback: Any = None
    ) -> None: ...

class _PrintOptionsContext:
    """Context manager that restores the options that it replaced.

    Args:
        options (PrintOptions): Options within the context.
    """

    def __init__(self, options: PrintOptions) -> None: ...
    def __enter__(self) -> _PrintOptionsContext: ...
    def __exit__(self, *args: Any) -> None: ...

class array:
    """Lazy n-dimensional array.

    `array(val, dtype=None, *, copy=None, device=None)` makes one of, in this order:

    1. an array;
    2. a Python number (NumPy's float64 and complex128 scalars are such); a list or a tuple of
       numbers, arrays and sequences;
    3. a DLPack capsule;
    4. an object whose type has `__dlpack__`: arrays of NumPy, PyTorch, JAX, pyarrow and others;
    5. an object with the buffer protocol (bytes, memoryview, array.array, ctypes), then one
       whose type has `__array__` (a pandas Series);
    6. an object whose type has `__mlx_array__`;
    7. any other sequence, as a range: `__len__` and `__getitem__`, no text, no mapping.

    Where a producer (4) cannot give its memory, the later ones of 4 and 5 are asked. Without a
    dtype float64 becomes float32 and complex128 complex64, as in MLX; `asarray` keeps float64.

    Operators and functions that take numbers beside arrays take objects of 3 to 6, too, on
    either side. They are copied at the call, so that later writes by their owner do not matter.
    Functions, and operators with the object on the right, convert it to the dtype of the array
    beside it (floats beside integers lose their fraction, as in MLX). With the object on the left,
    and in comparisons, no value is lost: it is what `array(object)` makes (float64 beside float64
    stays float64), and the dtypes are promoted. The result is an array, also of
    `numpy_array + array` (in MLX a NumPy array) and of pandas objects on the left.
    `numpy_array += array` binds the name to a new array and leaves NumPy's as it was;
    `numpy_array[...] += array` writes into it. NumPy's functions (`numpy.add(x, y)`) give NumPy
    arrays, its reductions (`numpy.sum(x)`) what the method of that name gives.

    Integers and slices in an index are checked at the call. What index arrays hold is known when
    they are evaluated: reading with an index out of bounds gives the first or the last element,
    whichever is nearer, and writing there (`x[i] = v`, `x.at[i].add(v)`) does nothing. In a process
    that started with `ULTRAMARINE_VALIDATE=1` both are an IndexError when the result is evaluated.

    Args:
        val (ArrayLike | Sequence[Any]): Object to make the array of.
        dtype (Dtype | None): Dtype of the elements.
        copy (bool | None): True always copies, False never: it raises where a copy is needed.
            None copies foreign memory; an array, which never changes, it does not copy.
        device (Device | DeviceType | None): Device of the array; by default where the memory is, the
            host for Python's numbers.

    Raises:
        ValueError: If no array can be made of `val`.
        InterchangeError: (a ValueError and a BufferError) If a copy is needed and `copy` is
            False, or the memory is not accessible.

    Example:
        >>> mx.array([[1, 2], [3, 4]]) * 2.0
        array([[2, 4],
               [6, 8]], dtype=float32)
    """

    def __init__(
        self,
        val: ArrayLike | Sequence[Any],
        dtype: Dtype | None = None,
        *,
        copy: bool | None = None,
        device: Device | DeviceType | None = None,
    ) -> None: ...
    @property
    def T(self) -> array:
        """array: The array with its axes reversed.

        Example:
            >>> mx.ones((2, 3, 4)).T.shape
            (4, 3, 2)
        """
    @property
    def at(self) -> ArrayAt:
        """ArrayAt: Updates at an index, `x.at[i].add(v)`, which return a new array.

        Where an index occurs several times, all its updates count.

        Example:
            >>> mx.array([1, 2, 3]).at[1:].add(10)
            array([1, 12, 13], dtype=int32)
        """
    @property
    def device(self) -> Device:
        """Device: Device that computes the array.

        Example:
            >>> mx.array([1.0], device=mx.cpu).device
            Device(cpu, 0)
        """
    @property
    def dtype(self) -> Dtype:
        """Dtype: Type of the elements.

        Example:
            >>> mx.array([1, 2]).dtype
            ultramarine.int32
        """
    @property
    def imag(self) -> array:
        """array: Imaginary part of each element: float32 for complex numbers, else zeros.

        Example:
            >>> mx.array([1 + 2j]).imag
            array([2], dtype=float32)
        """
    @property
    def itemsize(self) -> int:
        """int: Bytes of an element.

        Example:
            >>> mx.array([1.0]).itemsize
            4
        """
    @property
    def mT(self) -> array:
        """array: The array with its last two axes exchanged; it has two dimensions at least.

        Example:
            >>> mx.ones((5, 2, 3)).mT.shape
            (5, 3, 2)
        """
    @property
    def nbytes(self) -> int:
        """int: Bytes of all elements.

        Example:
            >>> mx.ones((2, 3), mx.float16).nbytes
            12
        """
    @property
    def ndim(self) -> int:
        """int: Number of dimensions.

        Example:
            >>> mx.ones((2, 3)).ndim
            2
        """
    @property
    def real(self) -> array:
        """array: Real part of each element: float32 for complex numbers, else the array itself.

        Example:
            >>> mx.array([1 + 2j]).real
            array([1], dtype=float32)
        """
    @property
    def shape(self) -> tuple[int, ...]:
        """tuple[int, ...]: Sizes of the dimensions.

        Example:
            >>> mx.ones((2, 3)).shape
            (2, 3)
        """
    @property
    def size(self) -> int:
        """int: Number of elements.

        Example:
            >>> mx.ones((2, 3)).size
            6
        """
    def __add__(self, other: ArrayLike) -> array: ...
    def __radd__(self, other: ArrayLike) -> array: ...
    def __iadd__(self, other: ArrayLike) -> array: ...
    def __sub__(self, other: ArrayLike) -> array: ...
    def __rsub__(self, other: ArrayLike) -> array: ...
    def __isub__(self, other: ArrayLike) -> array: ...
    def __mul__(self, other: ArrayLike) -> array: ...
    def __rmul__(self, other: ArrayLike) -> array: ...
    def __imul__(self, other: ArrayLike) -> array: ...
    def __truediv__(self, other: ArrayLike) -> array: ...
    def __rtruediv__(self, other: ArrayLike) -> array: ...
    def __itruediv__(self, other: ArrayLike) -> array: ...
    def __floordiv__(self, other: ArrayLike) -> array: ...
    def __rfloordiv__(self, other: ArrayLike) -> array: ...
    def __ifloordiv__(self, other: ArrayLike) -> array: ...
    def __mod__(self, other: ArrayLike) -> array: ...
    def __rmod__(self, other: ArrayLike) -> array: ...
    def __imod__(self, other: ArrayLike) -> array: ...
    def __pow__(self, other: ArrayLike) -> array: ...
    def __rpow__(self, other: ArrayLike) -> array: ...
    def __ipow__(self, other: ArrayLike) -> array: ...
    def __and__(self, other: ArrayLike) -> array: ...
    def __rand__(self, other: ArrayLike) -> array: ...
    def __iand__(self, other: ArrayLike) -> array: ...
    def __or__(self, other: ArrayLike) -> array: ...
    def __ror__(self, other: ArrayLike) -> array: ...
    def __ior__(self, other: ArrayLike) -> array: ...
    def __xor__(self, other: ArrayLike) -> array: ...
    def __rxor__(self, other: ArrayLike) -> array: ...
    def __ixor__(self, other: ArrayLike) -> array: ...
    def __lshift__(self, other: ArrayLike) -> array: ...
    def __rlshift__(self, other: ArrayLike) -> array: ...
    def __ilshift__(self, other: ArrayLike) -> array: ...
    def __rshift__(self, other: ArrayLike) -> array: ...
    def __rrshift__(self, other: ArrayLike) -> array: ...
    def __irshift__(self, other: ArrayLike) -> array: ...
    def __lt__(self, other: ArrayLike) -> array: ...
    def __le__(self, other: ArrayLike) -> array: ...
    def __gt__(self, other: ArrayLike) -> array: ...
    def __ge__(self, other: ArrayLike) -> array: ...
    def __eq__(self, other: object) -> array: ...  # type: ignore[override]
    def __ne__(self, other: object) -> array: ...  # type: ignore[override]
    def __matmul__(self, other: array | Foreign) -> array: ...
    def __rmatmul__(self, other: array | Foreign) -> array: ...
    def __imatmul__(self, other: array | Foreign) -> array: ...
    __array_priority__: float
    def __divmod__(self, other: ArrayLike) -> tuple[array, array]: ...
    def __rdivmod__(self, other: ArrayLike) -> tuple[array, array]: ...
    def __neg__(self) -> array: ...
    def __pos__(self) -> array: ...
    def __abs__(self) -> array: ...
    def __invert__(self) -> array: ...
    def __getitem__(self, arg: Any, /) -> array: ...
    def __setitem__(self, arg0: Any, arg1: ArrayLike, /) -> None: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[array]: ...
    def __bool__(self) -> bool: ...
    def __int__(self) -> int: ...
    def __float__(self) -> float: ...
    def __complex__(self) -> complex: ...
    def __index__(self) -> int: ...
    def __bytes__(self) -> bytes: ...
    def __hash__(self) -> int: ...
    def __format__(self, spec: str, /) -> str: ...
    def __copy__(self) -> array: ...
    def __deepcopy__(self, memo: Any, /) -> array: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Returns the array as NumPy's, over the same memory where that is possible.

        Args:
            dtype (Any): Dtype of NumPy, for which elements are copied if it is another.
            copy (bool | None): As NumPy passes it: True always copies, False never does.

        Returns:
            Any: NumPy array.

        Raises:
            ValueError: If `copy` is False and a copy is needed: for another dtype, or where the
                elements are not in the host's memory.
            ImportError: If NumPy lacks the dtype and the package ml_dtypes is not installed.
        """
    def __array_namespace__(self, api_version: str | None = None) -> ModuleType:
        """Returns the namespace of the Python array API standard: `ultramarine.array_api`.

        Args:
            api_version (str | None): Version of the standard, such as "2025.12", which is also the
                latest; the namespace fulfils all of them.

        Returns:
            ModuleType: The namespace.

        Raises:
            ValueError: If there is no such version.
        """
    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """Exports the array as a tensor in a capsule, for `from_dlpack` of another library.

        Args:
            stream (int | None): The consumer's stream, as DLPack numbers those of the device; None on the CPU.
            max_version (tuple[int, int] | None): Newest version of DLPack that the consumer takes; without
                it the tensor has no version, as before DLPack 1.0.
            dl_device (tuple[int, int] | None): DLPack's type and number of a device to copy to.
            copy (bool | None): True copies in any case; False forbids it.

        Returns:
            Any: Capsule.

        Raises:
            BufferError: If the array cannot be exported so.
        """
    def __dlpack_device__(self) -> tuple[int, int]:
        """Returns DLPack's type and number of the device that the array is on.

        Returns:
            tuple[int, int]: Type and number.
        """
    def abs(self, *, stream: StreamOrDevice = None) -> array:
        """Computes the absolute value of each element.

        Complex numbers give their magnitude in float32. The smallest signed integer stays itself.

        Args:
            stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
                else the default device.

        Returns:
            array: Results in the shape of the array.

        Example:
            >>> mx.array([-1.5, 2.0]).abs()
            array([1.5, 2], dtype=float32)
        """
    def all(
        self,
        axis: int | Sequence[int] | None = None,
        keepdims: bool = False,
        *,
        dtype: None = None,
        out: None = None,
        stream: StreamOrDevice = None,
    ) -> array:
        """Tests whether all elements are non-zero; bools, True for nothing.

        Args:
            axis (int | Sequence[int] | None): Axes to reduce; by default all of them.
            keepdims (bool): Keeps the reduced axes, with size 1.
            dtype (None): None alone, as NumPy's functions pass it.
            out (None): None alone, as NumPy's functions pass it.
            stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
                else the default device.

        Returns:
            array: Results without the reduced axes.

        Raises:
            IndexError: If an axis is out of range.

        Example:
            >>> mx.array([[1, 0], [2, 3]]).all(axis=1)
            array([False, True], dtype=bool)
        """
    def any(
        self,
        axis: int | Sequence[int] | None = None,
        keepdims: bool = False,
        *,
        dtype: None = None,
        out: None = None,
        stream: StreamOrDevice = None,
    ) -> array:
        """Tests whether any element is non-zero; bools, False for nothing.

        Args:
            axis (int | Sequence[int] | None): Axes to reduce; by default all of them.
            keepdims (bool): Keeps the reduced axes, with size 1.
            dtype (None): None alone, as NumPy's functions pass it.
            out (None): None alone, as NumPy's functions pass it.
            stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
                else the default device.

        Returns:
            array: Results without the reduced axes.

        Raises:
            IndexError: If an axis is out of range.

        Example:
            >>> mx.array([[0, 0], [2, 0]]).any(axis=1)
            array([False, True], dtype=bool)
        """
    def argmax(
        self, axis: int | None = None, keepdims: bool = False, *, stream: StreamOrDevice = None
    ) -> array:
        """Finds the index of the largest element, the first of equal ones, as uint32.

        NaN counts as the largest. A reduction of no elements raises a ValueError.

        Args:
            axis (int | None): Axis to reduce; by default the array is flattened.
            keepdims (bool): Keeps the reduced axes, with size 1.
            stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
                else the default device.

        Returns:
            array: Results without the reduced axes.

        Raises:
            IndexError: If an axis is out of range.

        Example:
            >>> mx.array([[3, 1, 2], [4, 4, 5]]).argmax(axis=1)
            array([0, 2], dtype=uint32)
        """
    def argmin(
        self, axis: int | None = None, keepdims: bool = False, *, stream: StreamOrDevice = None
    ) -> array:
        """Finds the index of the smallest element, the first of equal ones, as uint32.

        NaN counts as the smallest. A reduction of no elements raises a ValueError.

        Args:
            axis (int | None): Axis to reduce; by default the array is flattened.
            keepdims (bool): Keeps the reduced axes, with size 1.
            stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
                else the default device.

        Returns:
            array: Results without the reduced axes.

        Raises:
            IndexError: If an axis is out of range.

        Example:
            >>> mx.array([[3, 1, 2], [4, 4, 5]]).argmin(axis=1)
            array([1, 0], dtype=uint32)
        """
    def astype(self, dtype: Dtype, stream: StreamOrDevice = None) -> array:
        """Converts the array to another dtype; see the function `astype`.

        Args:
            dtype (Dtype): Dtype of the result.
            stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
                else the default device.

        Returns:
            array: Elements in the new dtype.

        Example:
            >>> mx.array([1.7, -1.7]).astype(mx.int32)
            array([1, -1], dtype=int32)
        """
    def conj(self, *, stream: StreamOrDevice = None) -> array:
        """Computes the complex conjugate of each element. Real arrays stay as they are.

        Args:
            stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
                else the default device.

        Returns:
            array: Results in the shape of the array.

        Example:
            >>> mx.array([1 + 2j, 3.0]).conj()
            array([1-2j, 3+-0j], dtype=complex64)
        """
    def cos(self, *, stream: StreamOrDevice = None) -> array:
        """Computes the cosine of each element, an angle in radians.

        Integers and bools give float32.

        Args:
            stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
                else the default device.

        Returns:
            array: Results in the shape of the array.

        Example:
            >>> mx.array([0.0, mx.pi]).cos()
            array([1, -1], dtype=float32)
        """
    def cummax(
        self,
        axis: int | None = None,
        *,
        reverse: bool = False,
        inclusive: bool = True,
        stream: StreamOrDevice = None,
    ) -> array:
        """Computes the running maximum; NaN from the first NaN on.

        Args:
            axis (int | None): Axis to run along; by default the array is flattened.
            reverse (bool): Runs from the end to the start.
            inclusive (bool): Includes the element itself; else the first result is that of nothing.
            stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
                else the default device.

        Returns:
            array: Results in the shape of the array, or flattened.

        Raises:
            IndexError: If the axis is out of range.

        Example:
            >>> mx.array([1, 3, 2]).cummax()
            array([1, 3, 3], dtype=int32)
        """
    def cummin(
        self,
        axis: int | None = None,
        *,
        reverse: bool = False,
        inclusive: bool = True,
        stream: StreamOrDevice = None,
    ) -> array:
        """Computes the running minimum; NaN from the first NaN on.

        Args:
            axis (int | None): Axis to run along; by default the array is flattened.
            reverse (bool): Runs from the end to the start.
            inclusive (bool): Includes the element itself; else the first result is that of nothing.
            stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
                else the default device.

        Returns:
            array: Results in the shape of the array, or flattened.

        Raises:
            IndexError: If the axis is out of range.

        Example:
            >>> mx.array([2, 3, 1]).cummin()
            array([2, 2, 1], dtype=int32)
        """
    def cumprod(
        self,
        axis: int | None = None,
        *,
        reverse: bool = False,
        inclusive: bool = True,
        stream: StreamOrDevice = None,
    ) -> array:
        """Computes the running product.

        Args:
            axis (int | None): Axis to run along; by default the array is flattened.
            reverse (bool): Runs from the end to the start.
            inclusive (bool): Includes the element itself; else the first result is that of nothing.
            stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
                else the default device.

        Returns:
            array: Results in the shape of the array, or flattened.

        Raises:
            IndexError: If the axis is out of range.

        Example:
            >>> mx.array([1, 2, 3]).cumprod()
            array([1, 2, 6], dtype=int32)
        """
    def cumsum(
        self,
        axis: int | None = None,
        *,
        reverse: bool = False,
        inclusive: bool = True,
        stream: StreamOrDevice = None,
    ) -> array:
        """Computes the running sum. Bools are summed as int32.

        Args:
            axis (int | None): Axis to run along; by default the array is flattened.
            reverse (bool): Runs from the end to the start.
            inclusive (bool): Includes the element itself; else the first result is that of nothing.
            stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
                else the default device.

        Returns:
            array: Results in the shape of the array, or flattened.

        Raises:
            IndexError: If the axis is out of range.

        Example:
            >>> mx.array([1, 2, 3]).cumsum()
            array([1, 3, 6], dtype=int32)
        """
    def diag(self, k: int = 0, *, stream: StreamOrDevice = None) -> array:
        """Takes the diagonal of a matrix, or makes a matrix with a vector as its diagonal.

        Args:
            k (int): Diagonal: 0 for the main one, above it positive, below it negative.
            stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
                else the default device.

        Returns:
            array: Vector of a matrix, or matrix of a vector.

        Raises:
            IndexError: If an axis is out of range.
            ValueError: If the shape, or the number of dimensions, does not fit.

        Example:
            >>> mx.array([[1, 2], [3, 4]]).diag(1)
            array([2], dtype=int32)
        """
    def diagonal(
        self, offset: int = 0, axis1: int = 0, axis2: int = 1, stream: StreamOrDevice = None
    ) -> array:
        """Takes the diagonals of the matrices that two axes span; see the function `diagonal`.

        Args:
            offset (int): Diagonal: 0 for the main one, above it positive, below it negative.
            axis1 (int): Axis of the rows.
            axis2 (int): Axis of the columns.
            stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
                else the default device.

        Returns:
            array: Array without the two axes, with the diagonals as the last axis.

        Example:
            >>> mx.array([[1, 2], [3, 4]]).diagonal()
            array([1, 4], dtype=int32)
        """
    def exp(self, *, stream: StreamOrDevice = None) -> array:
        """Computes e to the power of each element.

        Integers and bools give float32.

        Args:
            stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
                else the default device.

        Returns:
            array: Results in the shape of the array.

        Example:
            >>> mx.array([0.0, 1.0]).exp()
            array([1, 2.71828], dtype=float32)
        """
    def flatten(
        self, start_axis: int = 0, end_axis: int = -1, *, stream: StreamOrDevice = None
    ) -> array:
        """Joins the axes from `start_axis` to `end_axis`, both included, into one.

        Args:
            start_axis (int): First axis to join.
            end_axis (int): Last axis to join.
            stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
                else the default device.

        Returns:
            array: Array with the axes joined; one dimension at least.

        Raises:
            IndexError: If an axis is out of range.
            ValueError: If the shape, or the number of dimensions, does not fit.

        Example:
            >>> mx.ones((2, 3, 4)).flatten(1).shape
            (2, 12)
        """
    def item(self) -> Any:
        """Returns the only element as a Python number. Evaluates the array.

        Returns:
            Any: bool, int, float or complex.

        Raises:
            ValueError: If there is not exactly one element.

        Example:
            >>> mx.array([[2.5]]).item()
            2.5
        """
    def log(self, *, stream: StreamOrDevice = None) -> array:
        """Computes the natural logarithm of each element.

        Zero gives negative infinity and negative real numbers give NaN. Integers and bools give
        float32.

        Args:
            stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
                else the default device.

        Returns:
            array: Results in the shape of the array.

        Example:
            >>> mx.array([1.0, mx.e]).log()
            array([0, 1], dtype=float32)
        """
    def log10(self, *, stream: StreamOrDevice = None) -> array:
        """Computes the logarithm to base 10 of each element.

        Zero gives negative infinity and negative real numbers give NaN. Integers and bools give
        float32.

        Args:
            stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
                else the default device.

        Returns:
            array: Results in the shape of the array.

        Example:
            >>> mx.array([1.0, 100.0]).log10()
            array([0, 2], dtype=float32)
        """
    def log1p(self, *, stream: StreamOrDevice = None) -> array:
        """Computes the natural logarithm of one plus each element.

        It is accurate near zero, where `log(1 + a)` loses digits. Integers and bools give float32.

        Args:
            stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
                else the default device.

        Returns:
            array: Results in the shape of the array.

        Example:
            >>> mx.array([0.0, 1e-10]).log1p()
            array([0, 1e-10], dtype=float32)
        """
    def log2(self, *, stream: StreamOrDevice = None) -> array:
        """Computes the logarithm to base 2 of each element.

        Zero gives negative infinity and negative real numbers give NaN. Integers and bools give
        float32.

        Args:
            stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
                else the default device.

        Returns:
            array: Results in the shape of the array.

        Example:
            >>> mx.array([0.5, 8.0]).log2()
            array([-1, 3], dtype=float32)
        """
    def logcumsumexp(
        self,
        axis: int | None = None,
        *,
        reverse: bool = False,
        inclusive: bool = True,
        stream: StreamOrDevice = None,
    ) -> array:
        """Computes the logarithm of the running sum of exponentials, without overflow.

        Integers and bools give float32.

        Args:
            axis (int | None): Axis to run along; by default the array is flattened.
            reverse (bool): Runs from the end to the start.
            inclusive (bool): Includes the element itself; else the first result is that of nothing.
            stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
                else the default device.

        Returns:
            array: Results in the shape of the array, or flattened.

        Raises:
            IndexError: If the axis is out of range.

        Example:
            >>> mx.array([0.0, 0.0, 0.0]).logcumsumexp()
            array([0, 0.693147, 1.09861], dtype=float32)
        """
    def logsumexp(
        self,
        axis: int | Sequence[int] | None = None,
        keepdims: bool = False,
        *,
        dtype: None = None,
        out: None = None,
        stream: StreamOrDevice = None,
    ) -> array:
        """Computes the logarithm of the sum of exponentials, without overflow.

        Integers and bools give float32.

        Args:
            axis (int | Sequence[int] | None): Axes to reduce; by default all of them.
            keepdims (bool): Keeps the reduced axes, with size 1.
            dtype (None): None alone, as NumPy's functions pass it.
            out (None): None alone, as NumPy's functions pass it.
            stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
                else the default device.

        Returns:
            array: Results without the reduced axes.

        Raises:
            IndexError: If an axis is out of range.

        Example:
            >>> mx.array([[0.0, 0.0], [1000.0, 0.0]]).logsumexp(axis=1)
            array([0.693147, 1000], dtype=float32)
        """
    def max(
        self,
        axis: int | Sequence[int] | None = None,
        keepdims: bool = False,
        *,
        dtype: None = None,
        out: None = None,
        stream: StreamOrDevice = None,
    ) -> array:
        """Finds the largest element; NaN if there is one.

        A reduction of no elements raises a ValueError.

        Args:
            axis (int | Sequence[int] | None): Axes to reduce; by default all of them.
            keepdims (bool): Keeps the reduced axes, with size 1.
            dtype (None): None alone, as NumPy's functions pass it.
            out (None): None alone, as NumPy's functions pass it.
            stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
                else the default device.

        Returns:
            array: Results without the reduced axes.

        Raises:
            IndexError: If an axis is out of range.

        Example:
            >>> mx.array([[1, 2], [4, 3]]).max(axis=1)
            array([2, 4], dtype=int32)
        """
    def mean(
        self,
        axis: int | Sequence[int] | None = None,
        keepdims: bool = False,
        *,
        dtype: None = None,
        out: None = None,
        stream: StreamOrDevice = None,
    ) -> array:
        """Averages elements.

        Integers and bools give float32.

        Args:
            axis (int | Sequence[int] | None): Axes to reduce; by default all of them.
            keepdims (bool): Keeps the reduced axes, with size 1.
            dtype (None): None alone, as NumPy's functions pass it.
            out (None): None alone, as NumPy's functions pass it.
            stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
                else the default device.

        Returns:
            array: Results without the reduced axes.

        Raises:
            IndexError: If an axis is out of range.

        Example:
            >>> mx.array([[1, 2], [3, 4]]).mean(axis=1)
            array([1.5, 3.5], dtype=float32)
        """
    def min(
        self,
        axis: int | Sequence[int] | None = None,
        keepdims: bool = False,
        *,
        dtype: None = None,
        out: None = None,
        stream: StreamOrDevice = None,
    ) -> array:
        """Finds the smallest element; NaN if there is one.

        A reduction of no elements raises a ValueError.

        Args:
            axis (int | Sequence[int] | None): Axes to reduce; by default all of them.
            keepdims (bool): Keeps the reduced axes, with size 1.
            dtype (None): None alone, as NumPy's functions pass it.
            out (None): None alone, as NumPy's functions pass it.
            stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
                else the default device.

        Returns:
            array: Results without the reduced axes.

        Raises:
            IndexError: If an axis is out of range.

        Example:
            >>> mx.array([[1, 2], [4, 3]]).min(axis=1)
            array([1, 3], dtype=int32)
        """
    def moveaxis(self, source: int, destination: int, *, stream: StreamOrDevice = None) -> array:
        """Moves an axis to another position. The others keep their order.

        Args:
            source (int): Axis to move.
            destination (int): Position of the axis in the result.
            stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
                else the default device.

        Returns:
            array: View with the axis moved.

        Raises:
            IndexError: If an axis is out of range.
            ValueError: If the shape, or the number of dimensions, does not fit.

        Example:
            >>> mx.ones((2, 3, 4)).moveaxis(0, 2).shape
            (3, 4, 2)
        """
    def prod(
        self,
        axis: int | Sequence[int] | None = None,
        keepdims: bool = False,
        *,
        dtype: None = None,
        out: None = None,
        stream: StreamOrDevice = None,
    ) -> array:
        """Multiplies elements.

        Bools and integers of less than 32 bits are multiplied as int32, unsigned ones as uint32.
        The product of nothing is 1.

        Args:
            axis (int | Sequence[int] | None): Axes to reduce; by default all of them.
            keepdims (bool): Keeps the reduced axes, with size 1.
            dtype (None): None alone, as NumPy's functions pass it.
            out (None): None alone, as NumPy's functions pass it.
            stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
                else the default device.

        Returns:
            array: Results without the reduced axes.

        Raises:
            IndexError: If an axis is out of range.

        Example:
            >>> mx.array([[1, 2], [3, 4]]).prod(axis=1)
            array([2, 12], dtype=int32)
        """
    def reciprocal(self, *, stream: StreamOrDevice = None) -> array:
        """Computes one over each element.

        Zero gives infinity. Integers and bools give float32.

        Args:
            stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
                else the default device.

        Returns:
            array: Results in the shape of the array.

        Example:
            >>> mx.array([0.5, -4.0]).reciprocal()
            array([2, -0.25], dtype=float32)
        """
    def reshape(self, *shape: int | Sequence[int], stream: StreamOrDevice = None) -> array:
        """Gives the elements, in row-major order, another shape.

        Args:
            *shape (int | Sequence[int]): Sizes, as several arguments or as one sequence; one may be
                -1 and follows from the others.
            stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
                else the default device.

        Returns:
            array: Array of that shape; a view where strides allow it.

        Raises:
            ValueError: If the shape holds another number of elements.

        Example:
            >>> mx.arange(6).reshape(2, -1).shape
            (2, 3)
        """
    def round(self, decimals: int = 0, *, stream: StreamOrDevice = None) -> array:
        """Rounds each element to a number of decimals, halves to even; see the function `round`.

        Args:
            decimals (int): Digits behind the decimal point; negative ones round to tens, hundreds
                and so on.
            stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
                else the default device.

        Returns:
            array: Rounded elements in the dtype of the array.

        Example:
            >>> mx.array([0.5, 1.5, 2.34]).round(1)
            array([0.5, 1.5, 2.3], dtype=float32)
        """
    def rsqrt(self, *, stream: StreamOrDevice = None) -> array:
        """Computes the reciprocal of the square root of each element.

        Zero gives infinity and negative numbers give NaN. Integers and bools give float32.

        Args:
            stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
                else the default device.

        Returns:
            array: Results in the shape of the array.

        Example:
            >>> mx.array([0.25, 4.0]).rsqrt()
            array([2, 0.5], dtype=float32)
        """
    def sin(self, *, stream: StreamOrDevice = None) -> array:
        """Computes the sine of each element, an angle in radians.

        Integers and bools give float32.

        Args:
            stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
                else the default device.

        Returns:
            array: Results in the shape of the array.

        Example:
            >>> mx.array([0.0, mx.pi / 2]).sin()
            array([0, 1], dtype=float32)
        """
    def split(
        self,
        indices_or_sections: int | Sequence[int] | array,
        axis: int = 0,
        *,
        stream: StreamOrDevice = None,
    ) -> list[array]:
        """Splits the array along an axis; see the function `split`.

        Args:
            indices_or_sections (int | Sequence[int] | array): Number of equal parts, or the indices
                before which to cut.
            axis (int): Axis to cut.
            stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
                else the default device.

        Returns:
            list[array]: The parts.

        Raises:
            IndexError: If the axis is out of range.
            ValueError: If the parts would not be equal.

        Example:
            >>> mx.arange(6).split(3)
            [array([0, 1], dtype=int32), array([2, 3], dtype=int32), array([4, 5], dtype=int32)]
        """
    def sqrt(self, *, stream: StreamOrDevice = None) -> array:
        """Computes the square root of each element.

        Negative real numbers give NaN. Integers and bools give float32.

        Args:
            stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
                else the default device.

        Returns:
            array: Results in the shape of the array.

        Example:
            >>> mx.array([0.25, 4.0]).sqrt()
            array([0.5, 2], dtype=float32)
        """
    def square(self, *, stream: StreamOrDevice = None) -> array:
        """Computes the square of each element, in the dtype of `a`.

        Args:
            stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
                else the default device.

        Returns:
            array: Results in the shape of the array.

        Example:
            >>> mx.array([1, -2, 3]).square()
            array([1, 4, 9], dtype=int32)
        """
    def squeeze(
        self, axis: int | Sequence[int] | None = None, *, stream: StreamOrDevice = None
    ) -> array:
        """Removes axes of size 1.

        Args:
            axis (int | Sequence[int] | None): Axes to remove; by default all of size 1.
            stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
                else the default device.

        Returns:
            array: View without the axes.

        Raises:
            IndexError: If an axis is out of range.
            ValueError: If the shape, or the number of dimensions, does not fit.

        Example:
            >>> mx.ones((2, 1, 3, 1)).squeeze(-1).shape
            (2, 1, 3)
        """
    def std(
        self,
        axis: int | Sequence[int] | None = None,
        keepdims: bool = False,
        ddof: int = 0,
        *,
        correction: int | None = None,
        dtype: None = None,
        out: None = None,
        stream: StreamOrDevice = None,
    ) -> array:
        """Computes the standard deviation: the square root of the variance.

        Integers, bools and complex numbers give float32.

        Args:
            axis (int | Sequence[int] | None): Axes to reduce; by default all of them.
            keepdims (bool): Keeps the reduced axes, with size 1.
            ddof (int): The divisor is the number of elements less this.
            correction (int | None): Another name of `ddof`, which goes before it.
            dtype (None): None alone, as NumPy's functions pass it.
            out (None): None alone, as NumPy's functions pass it.
            stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
                else the default device.

        Returns:
            array: Results without the reduced axes; infinity or NaN where the divisor is not positive.

        Raises:
            IndexError: If an axis is out of range.
            ValueError: If the divisor's correction is negative.

        Example:
            >>> mx.array([1, 2, 3, 6]).std()
            array(1.87083, dtype=float32)
        """
    def sum(
        self,
        axis: int | Sequence[int] | None = None,
        keepdims: bool = False,
        *,
        dtype: None = None,
        out: None = None,
        stream: StreamOrDevice = None,
    ) -> array:
        """Sums elements.

        Bools and integers of less than 32 bits are summed as int32, unsigned ones as uint32. The
        sum of nothing is 0.

        Args:
            axis (int | Sequence[int] | None): Axes to reduce; by default all of them.
            keepdims (bool): Keeps the reduced axes, with size 1.
            dtype (None): None alone, as NumPy's functions pass it.
            out (None): None alone, as NumPy's functions pass it.
            stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
                else the default device.

        Returns:
            array: Results without the reduced axes.

        Raises:
            IndexError: If an axis is out of range.

        Example:
            >>> mx.array([[1, 2], [3, 4]]).sum(axis=1)
            array([3, 7], dtype=int32)
        """
    def swapaxes(self, axis1: int, axis2: int, *, stream: StreamOrDevice = None) -> array:
        """Exchanges two axes.

        Args:
            axis1 (int): First axis.
            axis2 (int): Second axis.
            stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
                else the default device.

        Returns:
            array: View with the axes exchanged.

        Raises:
            IndexError: If an axis is out of range.
            ValueError: If the shape, or the number of dimensions, does not fit.

        Example:
            >>> mx.ones((2, 3, 4)).swapaxes(0, 2).shape
            (4, 3, 2)
        """
    def to_device(self, device: Device | DeviceType, /, *, stream: None = None) -> array:
        """Returns the array on a device: itself, if it is there already, else a copy.

        Args:
            device (Device | DeviceType): Device of the result.
            stream (None): Only None: copies are ordered by the arrays.

        Returns:
            array: Array on the device.

        Raises:
            ValueError: If there is no such device, or a stream is given.

        Example:
            >>> mx.ones(2).to_device(mx.cpu).device
            Device(cpu, 0)
        """
    def tolist(self) -> Any:
        """Returns the elements as nested lists of Python numbers. Evaluates the array.

        Returns:
            Any: Nested lists; a number, if there are no dimensions.

        Example:
            >>> mx.array([[1, 2], [3, 4]]).tolist()
            [[1, 2], [3, 4]]
        """
    def transpose(self, *axes: int | Sequence[int], stream: StreamOrDevice = None) -> array:
        """Puts the axes into another order.

        Args:
            *axes (int | Sequence[int]): The axes in their new order, as several arguments or as one
                sequence; without any they are reversed.
            stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
                else the default device.

        Returns:
            array: View with the axes in that order.

        Raises:
            IndexError: If an axis is out of range.
            ValueError: If the axes are no permutation.

        Example:
            >>> mx.ones((2, 3, 4)).transpose(1, 0, 2).shape
            (3, 2, 4)
        """
    def var(
        self,
        axis: int | Sequence[int] | None = None,
        keepdims: bool = False,
        ddof: int = 0,
        *,
        correction: int | None = None,
        dtype: None = None,
        out: None = None,
        stream: StreamOrDevice = None,
    ) -> array:
        """Computes the variance: the mean of the squared distances from the mean.

        Integers, bools and complex numbers give float32.

        Args:
            axis (int | Sequence[int] | None): Axes to reduce; by default all of them.
            keepdims (bool): Keeps the reduced axes, with size 1.
            ddof (int): The divisor is the number of elements less this.
            correction (int | None): Another name of `ddof`, which goes before it.
            dtype (None): None alone, as NumPy's functions pass it.
            out (None): None alone, as NumPy's functions pass it.
            stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
                else the default device.

        Returns:
            array: Results without the reduced axes; infinity or NaN where the divisor is not positive.

        Raises:
            IndexError: If an axis is out of range.
            ValueError: If the divisor's correction is negative.

        Example:
            >>> mx.array([1, 2, 3, 6]).var()
            array(3.5, dtype=float32)
        """
    def view(self, dtype: Dtype, *, stream: StreamOrDevice = None) -> array:
        """Reads the bytes of the array as elements of another dtype; see the function `view`.

        Args:
            dtype (Dtype): Dtype to read the bytes in.
            stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
                else the default device.

        Returns:
            array: The same bytes in row-major order.

        Raises:
            ValueError: If the bytes of the last axis are no multiple of the new size.

        Example:
            >>> mx.array([1.0]).view(mx.int32)
            array([1065353216], dtype=int32)
        """

class custom_function:
    """Function with gradients and batching of its own; a decorator.

    It is called as the function. Transforms use the rules that its methods `vjp`, `jvp` and
    `vmap` set, each of which is optional: without one the transform is that of the function
    itself. With a rule it is a pure function: arrays that it closes over are constants to
    derivatives.

    Args:
        f (Callable[..., Any]): The function.

    Example:
        >>> @mx.custom_function
        ... def f(x):
        ...     return mx.sin(x)
        >>> @f.vjp
        ... def f_vjp(primals, cotangents, outputs):
        ...     return 10 * cotangents
        >>> mx.grad(f)(mx.array(0.5))
        array(10, dtype=float32)
    """

    def __init__(self, f: Callable[..., Any]) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    @property
    def __wrapped__(self) -> Callable[..., Any]: ...
    def jvp(self, f: Callable[..., Any]) -> custom_function:
        """Sets the forward rule `f(primals, tangents)`; a decorator.

        `tangents` have the structure of `primals` (see `vjp`), with None where an argument has no
        tangent. The rule returns tangents in the structure of what the function returns.

        Args:
            f (Callable[..., Any]): The rule.

        Returns:
            custom_function: The function, with the rule.

        Example:
            >>> @mx.custom_function
            ... def f(x):
            ...     return x * x
            >>> @f.jvp
            ... def f_jvp(primals, tangents):
            ...     return 2 * primals * tangents
            >>> mx.jvp(f, [mx.array(3.0)], [mx.array(1.0)])[1]
            [array(6, dtype=float32)]
        """
    def vjp(self, f: Callable[..., Any]) -> custom_function:
        """Sets the reverse rule `f(primals, cotangents, outputs)`; a decorator.

        `primals` are the positional arguments: the argument if there is one, else a tuple.
        `cotangents` and `outputs` have the structure of what the function returns. The rule returns
        cotangents in the structure of `primals`; None stands for zeros. Keyword arguments are
        passed on, and get no gradient.

        Args:
            f (Callable[..., Any]): The rule.

        Returns:
            custom_function: The function, with the rule.

        Example:
            >>> @mx.custom_function
            ... def f(x, y):
            ...     return x * y
            >>> @f.vjp
            ... def f_vjp(primals, cotangents, outputs):
            ...     x, y = primals
            ...     return cotangents * y, None
            >>> mx.grad(f)(mx.array(2.0), mx.array(3.0))
            array(3, dtype=float32)
        """
    def vmap(self, f: Callable[..., Any]) -> custom_function:
        """Sets the batching rule `f(inputs, axes)`; a decorator.

        `axes` have the structure of `inputs` (the positional arguments, see `vjp`), with the mapped
        axis of each array or None. The rule returns a tuple: outputs as of the function, and their
        mapped axes.

        Args:
            f (Callable[..., Any]): The rule.

        Returns:
            custom_function: The function, with the rule.

        Example:
            >>> @mx.custom_function
            ... def f(x):
            ...     return x * x
            >>> @f.vmap
            ... def f_vmap(inputs, axes):
            ...     return inputs * inputs, axes
            >>> mx.vmap(f)(mx.array([1, 2, 3]))
            array([1, 4, 9], dtype=int32)
        """

class finfo:
    """Limits of a floating-point or complex dtype.

    Args:
        arg (Dtype): The dtype.

    Raises:
        ValueError: If the dtype is neither of floats nor complex.

    Example:
        >>> mx.finfo(mx.float16).max
        65504.0
        >>> mx.finfo(mx.float32).bits
        32
    """

    def __init__(self, arg: Dtype) -> None: ...
    @property
    def bits(self) -> int:
        """int: Bits of a number; of a part, for complex numbers."""
    @property
    def dtype(self) -> Dtype:
        """Dtype: Dtype of the limits: float32 for complex64."""
    @property
    def eps(self) -> float:
        """float: Distance from 1 to the next larger number."""
    @property
    def max(self) -> float:
        """float: Largest finite number."""
    @property
    def min(self) -> float:
        """float: Lowest finite number."""
    @property
    def smallest_normal(self) -> float:
        """float: Smallest positive number of full precision."""

class iinfo:
    """Limits of an integer dtype.

    Args:
        arg (Dtype): The dtype.

    Raises:
        ValueError: If the dtype is not of integers.

    Example:
        >>> mx.iinfo(mx.int8).min, mx.iinfo(mx.int8).max
        (-128, 127)
    """

    def __init__(self, arg: Dtype) -> None: ...
    @property
    def bits(self) -> int:
        """int: Bits of a number."""
    @property
    def dtype(self) -> Dtype:
        """Dtype: The dtype."""
    @property
    def max(self) -> int:
        """int: Largest number."""
    @property
    def min(self) -> int:
        """int: Lowest number."""

bfloat16: Dtype
bool_: Dtype
complex64: Dtype
complexfloating: DtypeCategory
cpu: DeviceType
e: float
euler_gamma: float
float16: Dtype
float32: Dtype
float4_e2m1fn: Dtype
float4_e2m1fn_packed: Dtype
float4_e2m1fn_x2: Dtype
float64: Dtype
float6_e2m3fn: Dtype
float6_e2m3fn_packed: Dtype
float6_e3m2fn: Dtype
float6_e3m2fn_packed: Dtype
float8_e3m4: Dtype
float8_e4m3: Dtype
float8_e4m3b11fnuz: Dtype
float8_e4m3fn: Dtype
float8_e4m3fnuz: Dtype
float8_e5m2: Dtype
float8_e5m2fnuz: Dtype
float8_e8m0fnu: Dtype
floating: DtypeCategory
generic: DtypeCategory
gpu: DeviceType
inexact: DtypeCategory
inf: float
int16: Dtype
int32: Dtype
int64: Dtype
int8: Dtype
integer: DtypeCategory
nan: float
newaxis: None
number: DtypeCategory
pi: float
signedinteger: DtypeCategory
uint16: Dtype
uint32: Dtype
uint64: Dtype
uint8: Dtype
unsignedinteger: DtypeCategory

def __array_namespace_info__() -> Any:
    """Returns the inspection functions of the Python array API standard; see `ultramarine.array_api`.

    Returns:
        Any: Object with the functions.
    """

def abs(a: ArrayLike, /, stream: StreamOrDevice = None) -> array:
    """Computes the absolute value of each element.

    Complex numbers give their magnitude in float32. The smallest signed integer stays itself.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`.

    Example:
        >>> mx.abs(mx.array([-1.5, 2.0]))
        array([1.5, 2], dtype=float32)
    """

def add(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Adds two arrays elementwise.

    Shapes are broadcast and dtypes promoted; a number takes the dtype of the array beside it.

    Args:
        a (ArrayLike): Left operand.
        b (ArrayLike): Right operand.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape that `a` and `b` are broadcast to.

    Raises:
        ValueError: If the shapes cannot be broadcast.

    Example:
        >>> mx.add(mx.array([1, 2]), 0.5)
        array([1.5, 2.5], dtype=float32)
    """

def addmm(
    c: array,
    a: array,
    b: array,
    /,
    alpha: float = 1.0,
    beta: float = 1.0,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """Computes `alpha * (a @ b) + beta * c` as one operation.

    Args:
        c (array): Array that is broadcast to the shape of the product.
        a (array): Left operand, as in `matmul`.
        b (array): Right operand, as in `matmul`.
        alpha (float): Factor of the product.
        beta (float): Factor of `c`.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Sum, in the promoted dtype.

    Raises:
        ValueError: If the shapes do not fit, or all are integers.

    Example:
        >>> mx.addmm(mx.array([1.0]), mx.array([[1.0, 2.0]]), mx.array([[3.0], [4.0]]))
        array([[12]], dtype=float32)
    """

def all(
    a: array,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """Tests whether all elements are non-zero; bools, True for nothing.

    Args:
        a (array): Array to reduce.
        axis (int | Sequence[int] | None): Axes to reduce; by default all of them.
        keepdims (bool): Keeps the reduced axes, with size 1.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results without the reduced axes.

    Raises:
        IndexError: If an axis is out of range.

    Example:
        >>> mx.all(mx.array([[1, 0], [2, 3]]), axis=1)
        array([False, True], dtype=bool)
    """

def allclose(
    a: array,
    b: array,
    /,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    *,
    equal_nan: bool = False,
    stream: StreamOrDevice = None,
) -> array:
    """Tests whether all elements are close, as `isclose` defines it.

    Args:
        a (array): First operand.
        b (array): Second operand, the one that the relative tolerance refers to.
        rtol (float): Relative tolerance.
        atol (float): Absolute tolerance.
        equal_nan (bool): Makes NaN close to NaN.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: One bool, without dimensions.

    Raises:
        ValueError: If the shapes cannot be broadcast.

    Example:
        >>> mx.allclose(mx.array([1.0]), mx.array([1.0 + 1e-7]))
        array(True, dtype=bool)
    """

def any(
    a: array,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """Tests whether any element is non-zero; bools, False for nothing.

    Args:
        a (array): Array to reduce.
        axis (int | Sequence[int] | None): Axes to reduce; by default all of them.
        keepdims (bool): Keeps the reduced axes, with size 1.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results without the reduced axes.

    Raises:
        IndexError: If an axis is out of range.

    Example:
        >>> mx.any(mx.array([[0, 0], [2, 0]]), axis=1)
        array([False, True], dtype=bool)
    """

def arange(
    start: float | None = None,
    stop: float | None = None,
    step: float | None = None,
    dtype: Dtype | None = None,
    *,
    stream: StreamOrDevice = None,
    device: Device | DeviceType | None = None,
) -> array:
    """Creates numbers from `start` up to, and without, `stop`.

    With one number it is the stop, and numbers start at 0. By name that is `stop`; `start` alone is
    an error. An infinite step gives the first number alone.

    Args:
        start (float | None): First number; or the stop, if it is the only one, by place.
        stop (float | None): Number that the result stays below (above, for a negative step).
        step (float | None): Difference of neighbours; 1 by default.
        dtype (Dtype | None): Dtype of the result; by default int32 for integers (int64 where
            they do not fit), else float32.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.
        device (Device | DeviceType | None): Device to run on, in place of `stream`.

    Returns:
        array: Numbers in one dimension.

    Raises:
        TypeError: If there is no stop.
        ValueError: If all numbers are bools, one is NaN, the step is zero, or there would be too
            many numbers.

    Example:
        >>> mx.arange(0, 1, 0.25)
        array([0, 0.25, 0.5, 0.75], dtype=float32)
    """

def arccos(a: ArrayLike, /, stream: StreamOrDevice = None) -> array:
    """Computes the inverse cosine of each element, in radians.

    Real numbers outside of -1 to 1 give NaN. Integers and bools give float32.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`.

    Example:
        >>> mx.arccos(mx.array([1.0, 0.0]))
        array([0, 1.5708], dtype=float32)
    """

def arccosh(a: ArrayLike, /, stream: StreamOrDevice = None) -> array:
    """Computes the inverse hyperbolic cosine of each element.

    Real numbers below 1 give NaN. Integers and bools give float32.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`.

    Example:
        >>> mx.arccosh(mx.array([1.0, 2.0]))
        array([0, 1.31696], dtype=float32)
    """

def arcsin(a: ArrayLike, /, stream: StreamOrDevice = None) -> array:
    """Computes the inverse sine of each element, in radians.

    Real numbers outside of -1 to 1 give NaN. Integers and bools give float32.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`.

    Example:
        >>> mx.arcsin(mx.array([0.0, 1.0]))
        array([0, 1.5708], dtype=float32)
    """

def arcsinh(a: ArrayLike, /, stream: StreamOrDevice = None) -> array:
    """Computes the inverse hyperbolic sine of each element.

    Integers and bools give float32.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`.

    Example:
        >>> mx.arcsinh(mx.array([0.0, 1.0]))
        array([0, 0.881374], dtype=float32)
    """

def arctan(a: ArrayLike, /, stream: StreamOrDevice = None) -> array:
    """Computes the inverse tangent of each element, in radians.

    Integers and bools give float32. See `arctan2` for the angle of a point.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`.

    Example:
        >>> mx.arctan(mx.array([0.0, 1.0]))
        array([0, 0.785398], dtype=float32)
    """

def arctan2(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Computes the angle of the point (`b`, `a`) elementwise, from -pi to pi.

    Integers and bools give float32; complex numbers raise a ValueError.

    Shapes are broadcast and dtypes promoted; a number takes the dtype of the array beside it.

    Args:
        a (ArrayLike): Left operand.
        b (ArrayLike): Right operand.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape that `a` and `b` are broadcast to.

    Raises:
        ValueError: If the shapes cannot be broadcast.

    Example:
        >>> mx.arctan2(mx.array([1.0, -1.0]), 1)
        array([0.785398, -0.785398], dtype=float32)
    """

def arctanh(a: ArrayLike, /, stream: StreamOrDevice = None) -> array:
    """Computes the inverse hyperbolic tangent of each element.

    Real numbers outside of -1 to 1 give NaN. Integers and bools give float32.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`.

    Example:
        >>> mx.arctanh(mx.array([0.0, 0.5]))
        array([0, 0.549306], dtype=float32)
    """

def argmax(
    a: array, /, axis: int | None = None, keepdims: bool = False, *, stream: StreamOrDevice = None
) -> array:
    """Finds the index of the largest element, the first of equal ones, as uint32.

    NaN counts as the largest. A reduction of no elements raises a ValueError.

    Args:
        a (array): Array to reduce.
        axis (int | None): Axis to reduce; by default the array is flattened.
        keepdims (bool): Keeps the reduced axes, with size 1.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results without the reduced axes.

    Raises:
        IndexError: If an axis is out of range.

    Example:
        >>> mx.argmax(mx.array([[3, 1, 2], [4, 4, 5]]), axis=1)
        array([0, 2], dtype=uint32)
    """

def argmin(
    a: array, /, axis: int | None = None, keepdims: bool = False, *, stream: StreamOrDevice = None
) -> array:
    """Finds the index of the smallest element, the first of equal ones, as uint32.

    NaN counts as the smallest. A reduction of no elements raises a ValueError.

    Args:
        a (array): Array to reduce.
        axis (int | None): Axis to reduce; by default the array is flattened.
        keepdims (bool): Keeps the reduced axes, with size 1.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results without the reduced axes.

    Raises:
        IndexError: If an axis is out of range.

    Example:
        >>> mx.argmin(mx.array([[3, 1, 2], [4, 4, 5]]), axis=1)
        array([1, 0], dtype=uint32)
    """

def argpartition(
    a: array, /, kth: int, axis: int | None = -1, *, stream: StreamOrDevice = None
) -> array:
    """Finds the indices, as uint32, by which `partition` rearranges elements.

    Args:
        a (array): Array of any shape.
        kth (int): Index of the element; negative ones count from the end.
        axis (int | None): Axis to sort along; None for the flattened array.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results along the axis, or flattened.

    Raises:
        IndexError: If the axis is out of range.
        ValueError: If the number is out of range.

    Example:
        >>> mx.argpartition(mx.array([3, 1, 2]), 1)[1]
        array(2, dtype=uint32)
    """

def argsort(a: array, /, axis: int | None = -1, *, stream: StreamOrDevice = None) -> array:
    """Finds the indices, as uint32, that sort an array along an axis; NaN comes last.

    Args:
        a (array): Array of any shape.
        axis (int | None): Axis to sort along; None for the flattened array.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`, or flattened.

    Raises:
        IndexError: If the axis is out of range.

    Example:
        >>> mx.argsort(mx.array([3, 1, 2]))
        array([1, 2, 0], dtype=uint32)
    """

def array_equal(
    a: ArrayLike, b: ArrayLike, equal_nan: bool = False, stream: StreamOrDevice = None
) -> array:
    """Tests whether two arrays have the same shape and equal elements.

    The dtypes may differ: elements are compared in the promoted dtype.

    Args:
        a (ArrayLike): First operand.
        b (ArrayLike): Second operand.
        equal_nan (bool): Makes NaN equal to NaN.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: One bool, without dimensions; False for different shapes.

    Example:
        >>> mx.array_equal(mx.array([1, 2]), mx.array([1, 2]))
        array(True, dtype=bool)
    """

def as_strided(
    a: array,
    /,
    shape: Sequence[int] | None = None,
    strides: Sequence[int] | None = None,
    offset: int = 0,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """Views the row-major elements of an array with any shape and strides.

    Elements may be seen several times.

    Args:
        a (array): Array of any shape.
        shape (Sequence[int] | None): Shape of the view; by default that of `a`.
        strides (Sequence[int] | None): Distances, in elements, along each axis; by default
            those of a row-major array.
        offset (int): First element of the view.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: View of that shape.

    Raises:
        ValueError: If the view would leave the array.

    Example:
        >>> mx.as_strided(mx.arange(6), (3, 2), (1, 2))
        array([[0, 2],
               [1, 3],
               [2, 4]], dtype=int32)
    """

def asarray(
    a: ArrayLike | Sequence[Any],
    dtype: Dtype | None = None,
    *,
    copy: bool | None = None,
    device: Device | DeviceType | None = None,
) -> array:
    """Makes an object an array, over the same memory where that is possible.

    Objects are recognised in the order that `array` names. Unlike there, memory of other
    libraries keeps its dtype: float64 stays float64 (in MLX it becomes float32). complex128,
    foreign byte order, bit-packed and misaligned elements can only be copied.

    Shared memory stays its owner's: work that was not evaluated yet sees later writes. Objects
    of the buffer protocol stay locked while the array needs them: a bytearray cannot be
    resized.

    Args:
        a (ArrayLike | Sequence[Any]): Array, number, sequence, or object with memory.
        dtype (Dtype | None): Dtype of the result; by default that of the memory.
        copy (bool | None): True always copies; False never does, and raises where a copy, or a
            cast, would be needed; None copies where it is needed.
        device (Device | DeviceType | None): Device of the result; by default where the memory
            is.

    Returns:
        array: The array.

    Raises:
        InterchangeError: (a BufferError and a ValueError) If a copy is needed and `copy` is
            False, or a producer cannot give its memory.
        ValueError: If no array can be made of the object.

    Example:
        >>> mx.asarray([1, 2], dtype=mx.float16)
        array([1, 2], dtype=float16)
    """

def astype(a: array, dtype: Dtype, /, *, stream: StreamOrDevice = None) -> array:
    """Converts an array to another dtype.

    Floats lose their fraction when they become integers. The array is not copied if it has that
    dtype.

    Args:
        a (array): Array of any shape.
        dtype (Dtype): Dtype of the result.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Elements in the new dtype.

    Example:
        >>> mx.astype(mx.array([1.5, -1.5]), mx.int32)
        array([1, -1], dtype=int32)
    """

def async_eval(*args: Any) -> None:
    """Begins to compute the arrays of trees, without waiting for them.

    Args:
        *args (Any): Arrays, and lists, tuples and dictionaries of them; other leaves are left
            alone.

    Example:
        >>> x = mx.ones(2) + 1
        >>> mx.async_eval(x)
        >>> x
        array([2, 2], dtype=float32)
    """

def atleast_1d(*arys: array, stream: StreamOrDevice = None) -> array | list[array]:
    """Gives arrays without dimensions one axis of size 1.

    Args:
        *arys (array): Arrays of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array | list[array]: View of the array; a list of views, if there are several arrays.

    Example:
        >>> mx.atleast_1d(mx.ones(2)).shape
        (2,)
    """

def atleast_2d(*arys: array, stream: StreamOrDevice = None) -> array | list[array]:
    """Gives arrays of less than two dimensions axes of size 1; a vector becomes a row.

    Args:
        *arys (array): Arrays of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array | list[array]: View of the array; a list of views, if there are several arrays.

    Example:
        >>> mx.atleast_2d(mx.ones(2)).shape
        (1, 2)
    """

def atleast_3d(*arys: array, stream: StreamOrDevice = None) -> array | list[array]:
    """Gives arrays of less than three dimensions axes of size 1; a matrix gets them behind its
    own.

    Args:
        *arys (array): Arrays of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array | list[array]: View of the array; a list of views, if there are several arrays.

    Example:
        >>> mx.atleast_3d(mx.ones(2)).shape
        (1, 2, 1)
    """

def bartlett(
    M: int, *, stream: StreamOrDevice = None, device: Device | DeviceType | None = None
) -> array:
    """Creates Bartlett's window, a triangle: `1 - abs(2 * n / (M - 1) - 1)`.

    Args:
        M (int): Number of samples; of a negative number there are none.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.
        device (Device | DeviceType | None): Device to run on, in place of `stream`.

    Returns:
        array: Window as float32.

    Example:
        >>> mx.bartlett(5)
        array([0, 0.5, 1, 0.5, 0], dtype=float32)
    """

def bitwise_and(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Computes `a & b` elementwise, of integers and bools. Other dtypes raise a RuntimeError.

    Shapes are broadcast and dtypes promoted; a number takes the dtype of the array beside it.

    Args:
        a (ArrayLike): Left operand.
        b (ArrayLike): Right operand.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape that `a` and `b` are broadcast to.

    Raises:
        ValueError: If the shapes cannot be broadcast.

    Example:
        >>> mx.bitwise_and(mx.array([5, 6]), 4)
        array([4, 4], dtype=int32)
    """

def bitwise_invert(a: ArrayLike, /, stream: StreamOrDevice = None) -> array:
    """Inverts the bits of each integer; of bools it is the logical not.

    Other dtypes raise a ValueError.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`.

    Example:
        >>> mx.bitwise_invert(mx.array([0, 5]))
        array([-1, -6], dtype=int32)
    """

def bitwise_or(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Computes `a | b` elementwise, of integers and bools. Other dtypes raise a RuntimeError.

    Shapes are broadcast and dtypes promoted; a number takes the dtype of the array beside it.

    Args:
        a (ArrayLike): Left operand.
        b (ArrayLike): Right operand.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape that `a` and `b` are broadcast to.

    Raises:
        ValueError: If the shapes cannot be broadcast.

    Example:
        >>> mx.bitwise_or(mx.array([5, 6]), 8)
        array([13, 14], dtype=int32)
    """

def bitwise_xor(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Computes `a ^ b` elementwise, of integers and bools. Other dtypes raise a RuntimeError.

    Shapes are broadcast and dtypes promoted; a number takes the dtype of the array beside it.

    Args:
        a (ArrayLike): Left operand.
        b (ArrayLike): Right operand.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape that `a` and `b` are broadcast to.

    Raises:
        ValueError: If the shapes cannot be broadcast.

    Example:
        >>> mx.bitwise_xor(mx.array([5, 6]), 4)
        array([1, 2], dtype=int32)
    """

def blackman(
    M: int, *, stream: StreamOrDevice = None, device: Device | DeviceType | None = None
) -> array:
    """Creates Blackman's window: `0.42 - 0.5 * cos(2 * pi * n / (M - 1)) + 0.08 * cos(4 * pi * n /
    (M - 1))`.

    Args:
        M (int): Number of samples; of a negative number there are none.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.
        device (Device | DeviceType | None): Device to run on, in place of `stream`.

    Returns:
        array: Window as float32.

    Example:
        >>> mx.blackman(5)[1:4]
        array([0.34, 1, 0.34], dtype=float32)
    """

def block_masked_mm(
    a: array,
    b: array,
    /,
    block_size: int = 64,
    mask_out: array | None = None,
    mask_lhs: array | None = None,
    mask_rhs: array | None = None,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """Multiplies matrices of which blocks are masked.

    A mask has an element for each block of `block_size` rows and columns, also for the smaller ones
    at the ends: bools say which blocks are kept, numbers are factors.

    Args:
        a (array): Array of the shape (..., m, k), of floats or complex numbers.
        b (array): Array of the shape (..., k, n).
        block_size (int): Rows and columns of a block, 32 or 64.
        mask_out (array | None): Mask of the result's blocks.
        mask_lhs (array | None): Mask of the blocks of `a`.
        mask_rhs (array | None): Mask of the blocks of `b`.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Array of the shape (..., m, n), in the promoted dtype.

    Raises:
        ValueError: As `matmul`, for another `block_size`, and if a mask cannot be broadcast to the
            blocks.

    Example:
        >>> a = mx.ones((64, 64))
        >>> mx.block_masked_mm(a, a, 32, mx.array([[True, False], [False, True]]))[0, ::32].tolist()
        [64.0, 0.0]
    """

def broadcast_arrays(*arrays: array, stream: StreamOrDevice = None) -> list[array]:
    """Broadcasts arrays against each other, without copies.

    Args:
        *arrays (array): Arrays whose shapes can be broadcast.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        list[array]: Views of the arrays in the common shape.

    Raises:
        ValueError: If the shapes cannot be broadcast.

    Example:
        >>> [x.shape for x in mx.broadcast_arrays(mx.ones((2, 1)), mx.ones(3))]
        [(2, 3), (2, 3)]
    """

def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Computes the shape that arrays of several shapes are broadcast to.

    Args:
        *shapes (Sequence[int]): Shapes, one at least.

    Returns:
        tuple[int, ...]: The common shape.

    Raises:
        ValueError: If there are no shapes, or they cannot be broadcast.

    Example:
        >>> mx.broadcast_shapes((2, 1), (3,))
        (2, 3)
    """

def broadcast_to(a: ArrayLike, /, shape: Sequence[int], *, stream: StreamOrDevice = None) -> array:
    """Broadcasts an array to a shape, without a copy.

    Args:
        a (ArrayLike): Array or number.
        shape (Sequence[int]): Sizes; each axis of `a`, counted from the last, has that size or
            size 1.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: View of that shape.

    Raises:
        ValueError: If the array cannot be broadcast to the shape.

    Example:
        >>> mx.broadcast_to(mx.array([1, 2]), (2, 2))
        array([[1, 2],
               [1, 2]], dtype=int32)
    """

def can_cast(from_: array | Dtype, to: Dtype) -> bool:
    """Tests whether promotion converts a dtype to another: whether both promote to `to`.

    Args:
        from_ (array | Dtype): Array or dtype to convert.
        to (Dtype): Dtype to convert to.

    Returns:
        bool: True if both promote to `to`.

    Example:
        >>> mx.can_cast(mx.float32, mx.int32)
        False
    """

def ceil(a: ArrayLike, /, stream: StreamOrDevice = None) -> array:
    """Rounds each element up to an integer, in the dtype of `a`.

    Complex numbers raise a ValueError.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`.

    Example:
        >>> mx.ceil(mx.array([-1.5, 1.5]))
        array([-1, 2], dtype=float32)
    """

def checkpoint(fun: Callable[_P, _R]) -> Callable[_P, _R]:
    """Returns a function that computes `fun`, and computes it again for a gradient.

    Values between arguments and results are not kept: less memory for more work. Arguments
    and results may be trees, of which `fun` gets copies. Gradients are those of `fun`, also with
    respect to arrays that it closes over.

    Args:
        fun (Callable[P, R]): Function of arrays.

    Returns:
        Callable[P, R]: Function with the arguments and results of `fun`.

    Example:
        >>> mx.grad(mx.checkpoint(lambda x: mx.sin(x) * x))(mx.array(0.0))
        array(0, dtype=float32)
    """

def clear_cache(device: Device | DeviceType | None = None) -> None:
    """Returns the memory that is kept for reuse to the system, and copies that reading arrays of
    other devices left on the CPU.

    Args:
        device (Device | DeviceType | None): Device; by default all devices.

    Example:
        >>> mx.clear_cache()
    """

def clear_streams() -> None:
    """Waits for the streams that the calling thread made, and forgets them.

    Thread-local ones begin anew. Arrays and other threads that use one of the streams may go
    on.

    Example:
        >>> y = mx.add(1, 2, stream=mx.new_stream(mx.cpu))
        >>> mx.eval(y)
        >>> mx.clear_streams()
    """

def clip(
    a: array, /, a_min: ArrayLike | None, a_max: ArrayLike | None, *, stream: StreamOrDevice = None
) -> array:
    """Limits elements to a range. If the limits cross, the upper one wins.

    Args:
        a (array): Array of any shape.
        a_min (ArrayLike | None): Lower limit, broadcast with `a`; None for no limit.
        a_max (ArrayLike | None): Upper limit, broadcast with `a`; None for no limit.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Limited elements, in the dtype that the operands promote to.

    Raises:
        ValueError: If both limits are None, or the shapes cannot be broadcast.

    Example:
        >>> mx.clip(mx.arange(5), 1, 3)
        array([1, 1, 2, 3, 3], dtype=int32)
    """

def compile(
    fun: Callable[_P, _R], inputs: Any = None, outputs: Any = None, shapeless: bool = False
) -> Callable[_P, _R]:
    """Returns a function that does what `fun` does, by a graph that is recorded at the first call.

    `fun` is called once for each set of shapes and dtypes of the arrays among its arguments,
    and of constants (numbers, strings, None) among them, on arrays without values. Later calls
    run the graph. So it should be pure: arrays that it closes over are constants. The 256 graphs
    that were called last are kept.

    Args:
        fun (Callable[P, R]): Function of arrays, and trees of them.
        inputs (Any): List or dictionary, nested or not, of arrays that are arguments, too;
            `random.state` may be among them.
        outputs (Any): List or dictionary of arrays that are results, too, which each call puts
            there.
        shapeless (bool): Records no other graph for other sizes.

    Returns:
        Callable[P, R]: Function with the arguments and results of `fun`.

    Example:
        >>> mx.compile(lambda x: mx.exp(-x) + 1)(mx.zeros(2))
        array([2, 2], dtype=float32)
    """

def concatenate(
    arrays: Sequence[array], axis: int | None = 0, *, stream: StreamOrDevice = None
) -> array:
    """Joins arrays along an axis that they have. Dtypes are promoted.

    Args:
        arrays (Sequence[array]): Arrays of the same shape but for the axis.
        axis (int | None): Axis to join along; None for the flattened arrays.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Joined array.

    Raises:
        IndexError: If the axis is out of range.
        ValueError: If there are no arrays, or their shapes do not fit.

    Example:
        >>> mx.concatenate([mx.array([1, 2]), mx.array([3])])
        array([1, 2, 3], dtype=int32)
    """

def conj(a: ArrayLike, /, stream: StreamOrDevice = None) -> array:
    """Computes the complex conjugate of each element. Real arrays stay as they are.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`.

    Example:
        >>> mx.conj(mx.array([1 + 2j, 3.0]))
        array([1-2j, 3+-0j], dtype=complex64)
    """

def conjugate(a: ArrayLike, /, stream: StreamOrDevice = None) -> array:
    """Computes the complex conjugate of each element. Real arrays stay as they are.

    Another name of `conj`.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`.

    Example:
        >>> mx.conjugate(mx.array([1 + 2j, 3.0]))
        array([1-2j, 3+-0j], dtype=complex64)
    """

def contiguous(
    a: array, /, allow_col_major: bool = False, *, stream: StreamOrDevice = None
) -> array:
    """Lays the elements out in row-major order in memory, with a copy only where it is needed.

    Args:
        a (array): Array of any shape.
        allow_col_major (bool): Accepted for compatibility with MLX, without effect.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: The same elements.

    Example:
        >>> mx.contiguous(mx.ones((2, 3)).T).shape
        (3, 2)
    """

def conv1d(
    input: array,
    weight: array,
    /,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """Computes the cross-correlation of a signal with a weight, along one axis.

    The output length is `(L + 2 * padding - dilation * (K - 1) - 1) // stride + 1`.

    Args:
        input (array): Array of the shape (N, L, C_in), of floats.
        weight (array): Array of the shape (C_out, K, C_in / groups).
        stride (int): Distance of neighbouring outputs in the input.
        padding (int): Number of zeros on either side.
        dilation (int): Distance of neighbouring elements of the weight in the input.
        groups (int): Number of groups of channels, each of which sees only its inputs.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Array of the shape (N, L_out, C_out).

    Raises:
        ValueError: If the shapes do not fit, or the dtypes are not floats.

    Example:
        >>> mx.conv1d(mx.ones((1, 4, 1)), mx.ones((1, 2, 1))).flatten()
        array([2, 2, 2], dtype=float32)
    """

def conv2d(
    input: array,
    weight: array,
    /,
    stride: int | tuple[int, int] = 1,
    padding: int | tuple[int, int] = 0,
    dilation: int | tuple[int, int] = 1,
    groups: int = 1,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """Computes the cross-correlation of images with a weight, along two axes.

    Output sizes are those of `conv1d` for each axis.

    Args:
        input (array): Array of the shape (N, H, W, C_in), of floats.
        weight (array): Array of the shape (C_out, KH, KW, C_in / groups).
        stride (int | tuple[int, int]): Distance of neighbouring outputs in the input, for both
            axes or for each.
        padding (int | tuple[int, int]): Number of zeros on either side, for both axes or for
            each.
        dilation (int | tuple[int, int]): Distance of neighbouring elements of the weight in the
            input, for both axes or for each.
        groups (int): Number of groups of channels, each of which sees only its inputs.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Array of the shape (N, H_out, W_out, C_out).

    Raises:
        ValueError: If the shapes do not fit, or the dtypes are not floats.

    Example:
        >>> mx.conv2d(mx.ones((1, 4, 4, 3)), mx.ones((8, 3, 3, 3)), padding=1).shape
        (1, 4, 4, 8)
    """

def conv3d(
    input: array,
    weight: array,
    /,
    stride: int | tuple[int, int, int] = 1,
    padding: int | tuple[int, int, int] = 0,
    dilation: int | tuple[int, int, int] = 1,
    groups: int = 1,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """Computes the cross-correlation of volumes with a weight, along three axes.

    Output sizes are those of `conv1d` for each axis.

    Args:
        input (array): Array of the shape (N, D, H, W, C_in), of floats.
        weight (array): Array of the shape (C_out, KD, KH, KW, C_in / groups).
        stride (int | tuple[int, int, int]): Distance of neighbouring outputs in the input, for
            all axes or for each.
        padding (int | tuple[int, int, int]): Number of zeros on either side, for all axes or
            for each.
        dilation (int | tuple[int, int, int]): Distance of neighbouring elements of the weight
            in the input, for all axes or for each.
        groups (int): Number of groups of channels, each of which sees only its inputs.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Array of the shape (N, D_out, H_out, W_out, C_out).

    Raises:
        ValueError: If the shapes do not fit, or the dtypes are not floats.

    Example:
        >>> mx.conv3d(mx.ones((1, 4, 4, 4, 3)), mx.ones((8, 3, 3, 3, 3)), padding=1).shape
        (1, 4, 4, 4, 8)
    """

def conv_general(
    input: array,
    weight: array,
    /,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | tuple[Sequence[int], Sequence[int]] = 0,
    kernel_dilation: int | Sequence[int] = 1,
    input_dilation: int | Sequence[int] = 1,
    groups: int = 1,
    flip: bool = False,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """Computes a convolution along one to three axes, with all options.

    Args:
        input (array): Array of the shape (N, ..., C_in), of floats.
        weight (array): Array of the shape (C_out, ..., C_in / groups).
        stride (int | Sequence[int]): Distance of neighbouring outputs in the input, for all
            axes or for each.
        padding (int | Sequence[int] | tuple[Sequence[int], Sequence[int]]): Number of zeros on
            either side, for all axes or for each; or a pair of lists, before and after.
            Negative ones cut off.
        kernel_dilation (int | Sequence[int]): Distance of neighbouring elements of the weight,
            for all axes or for each.
        input_dilation (int | Sequence[int]): Distance of neighbouring elements of the input,
            between which are zeros, for all axes or for each.
        groups (int): Number of groups of channels, each of which sees only its inputs.
        flip (bool): Reverses the weight along the spatial axes; without it this is a
            cross-correlation.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Array of the shape (N, ..., C_out).

    Raises:
        ValueError: If the shapes do not fit, or the dtypes are not floats.

    Example:
        >>> mx.conv_general(mx.ones((1, 4, 1)), mx.ones((1, 2, 1)), padding=([1], [0])).flatten()
        array([1, 2, 2, 2], dtype=float32)
    """

def conv_transpose1d(
    input: array,
    weight: array,
    /,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    output_padding: int = 0,
    groups: int = 1,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """Computes the transposed convolution of a signal with a weight, along one axis.

    The output length is `stride * (L - 1) - 2 * padding + dilation * (K - 1) + 1 +
    output_padding`.

    Args:
        input (array): Array of the shape (N, L, C_in), of floats.
        weight (array): Array of the shape (C_out, K, C_in / groups).
        stride (int): Distance of neighbouring inputs in the output.
        padding (int): Number of outputs that are cut off on either side.
        dilation (int): Distance of neighbouring elements of the weight in the output.
        output_padding (int): Number of outputs that are added behind.
        groups (int): Number of groups of channels, each of which sees only its inputs.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Array of the shape (N, L_out, C_out).

    Raises:
        ValueError: If the shapes do not fit, or the dtypes are not floats.

    Example:
        >>> mx.conv_transpose1d(mx.ones((1, 3, 1)), mx.ones((1, 2, 1)), stride=2).shape
        (1, 6, 1)
    """

def conv_transpose2d(
    input: array,
    weight: array,
    /,
    stride: int | tuple[int, int] = 1,
    padding: int | tuple[int, int] = 0,
    dilation: int | tuple[int, int] = 1,
    output_padding: int | tuple[int, int] = 0,
    groups: int = 1,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """Computes the transposed convolution of images with a weight, along two axes.

    Output sizes are those of `conv_transpose1d` for each axis.

    Args:
        input (array): Array of the shape (N, H, W, C_in), of floats.
        weight (array): Array of the shape (C_out, KH, KW, C_in / groups).
        stride (int | tuple[int, int]): Distance of neighbouring inputs in the output, for both
            axes or for each.
        padding (int | tuple[int, int]): Number of outputs that are cut off on either side, for
            both axes or for each.
        dilation (int | tuple[int, int]): Distance of neighbouring elements of the weight in the
            output, for both axes or for each.
        output_padding (int | tuple[int, int]): Number of outputs that are added behind, for
            both axes or for each.
        groups (int): Number of groups of channels, each of which sees only its inputs.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Array of the shape (N, H_out, W_out, C_out).

    Raises:
        ValueError: If the shapes do not fit, or the dtypes are not floats.

    Example:
        >>> mx.conv_transpose2d(mx.ones((1, 3, 3, 1)), mx.ones((4, 2, 2, 1)), stride=2).shape
        (1, 6, 6, 4)
    """

def conv_transpose3d(
    input: array,
    weight: array,
    /,
    stride: int | tuple[int, int, int] = 1,
    padding: int | tuple[int, int, int] = 0,
    dilation: int | tuple[int, int, int] = 1,
    output_padding: int | tuple[int, int, int] = 0,
    groups: int = 1,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """Computes the transposed convolution of volumes with a weight, along three axes.

    Output sizes are those of `conv_transpose1d` for each axis.

    Args:
        input (array): Array of the shape (N, D, H, W, C_in), of floats.
        weight (array): Array of the shape (C_out, KD, KH, KW, C_in / groups).
        stride (int | tuple[int, int, int]): Distance of neighbouring inputs in the output, for
            all axes or for each.
        padding (int | tuple[int, int, int]): Number of outputs that are cut off on either side,
            for all axes or for each.
        dilation (int | tuple[int, int, int]): Distance of neighbouring elements of the weight
            in the output, for all axes or for each.
        output_padding (int | tuple[int, int, int]): Number of outputs that are added behind,
            for all axes or for each.
        groups (int): Number of groups of channels, each of which sees only its inputs.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Array of the shape (N, D_out, H_out, W_out, C_out).

    Raises:
        ValueError: If the shapes do not fit, or the dtypes are not floats.

    Example:
        >>> mx.conv_transpose3d(mx.ones((1, 3, 3, 3, 1)), mx.ones((4, 2, 2, 2, 1)), stride=2).shape
        (1, 6, 6, 6, 4)
    """

def convolve(
    a: array,
    v: array,
    /,
    mode: Literal["full", "valid", "same"] = "full",
    *,
    stream: StreamOrDevice = None,
) -> array:
    """Computes the discrete convolution of two vectors, of which the shorter one is reversed.

    Args:
        a (array): Vector of floats.
        v (array): Vector of floats.
        mode (Literal["full", "valid", "same"]): Part of the result: "full", "valid" (where they
            overlap completely) or "same" (as long as the longer one).
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Vector in the promoted dtype.

    Raises:
        ValueError: If an operand is no vector of floats or is empty, or the mode is another
            word.

    Example:
        >>> mx.convolve(mx.array([1.0, 2.0]), mx.array([1.0, 1.0, 1.0]), "same")
        array([1, 3, 3], dtype=float32)
    """

def copy(a: array, /, device: Device | DeviceType) -> array:
    """Copies an array to a device, lazily.

    Within one backend the copy is its own, else it goes through the host. The gradient flows
    back to the device of `a`.

    Args:
        a (array): Array to copy.
        device (Device | DeviceType): Device of the copy.

    Returns:
        array: Array on the device.

    Raises:
        ValueError: If there is no such device.

    Example:
        >>> mx.copy(mx.ones(2), mx.cpu)
        array([1, 1], dtype=float32)
    """

def cos(a: ArrayLike, /, stream: StreamOrDevice = None) -> array:
    """Computes the cosine of each element, an angle in radians.

    Integers and bools give float32.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`.

    Example:
        >>> mx.cos(mx.array([0.0, mx.pi]))
        array([1, -1], dtype=float32)
    """

def cosh(a: ArrayLike, /, stream: StreamOrDevice = None) -> array:
    """Computes the hyperbolic cosine of each element.

    Integers and bools give float32.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`.

    Example:
        >>> mx.cosh(mx.array([0.0, 1.0]))
        array([1, 1.54308], dtype=float32)
    """

def count_nonzero(
    a: array,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """Counts the elements that are not zero.

    Args:
        a (array): Array to reduce.
        axis (int | Sequence[int] | None): Axes to reduce; by default all of them.
        keepdims (bool): Keeps the reduced axes, with size 1.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Counts as int32.

    Raises:
        IndexError: If an axis is out of range.

    Example:
        >>> mx.count_nonzero(mx.array([[1, 0], [2, 3]]), axis=1)
        array([1, 2], dtype=int32)
    """

def cummax(
    a: array,
    /,
    axis: int | None = None,
    *,
    reverse: bool = False,
    inclusive: bool = True,
    dtype: Dtype | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Computes the running maximum; NaN from the first NaN on.

    Args:
        a (array): Array of any shape.
        axis (int | None): Axis to run along; by default the array is flattened.
        reverse (bool): Runs from the end to the start.
        inclusive (bool): Includes the element itself; else the first result is that of nothing.
        dtype (Dtype | None): Dtype to convert to first.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`, or flattened.

    Raises:
        IndexError: If the axis is out of range.

    Example:
        >>> mx.cummax(mx.array([1, 3, 2]))
        array([1, 3, 3], dtype=int32)
    """

def cummin(
    a: array,
    /,
    axis: int | None = None,
    *,
    reverse: bool = False,
    inclusive: bool = True,
    dtype: Dtype | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Computes the running minimum; NaN from the first NaN on.

    Args:
        a (array): Array of any shape.
        axis (int | None): Axis to run along; by default the array is flattened.
        reverse (bool): Runs from the end to the start.
        inclusive (bool): Includes the element itself; else the first result is that of nothing.
        dtype (Dtype | None): Dtype to convert to first.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`, or flattened.

    Raises:
        IndexError: If the axis is out of range.

    Example:
        >>> mx.cummin(mx.array([2, 3, 1]))
        array([2, 2, 1], dtype=int32)
    """

def cumprod(
    a: array,
    /,
    axis: int | None = None,
    *,
    reverse: bool = False,
    inclusive: bool = True,
    dtype: Dtype | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Computes the running product.

    Args:
        a (array): Array of any shape.
        axis (int | None): Axis to run along; by default the array is flattened.
        reverse (bool): Runs from the end to the start.
        inclusive (bool): Includes the element itself; else the first result is that of nothing.
        dtype (Dtype | None): Dtype to convert to first.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`, or flattened.

    Raises:
        IndexError: If the axis is out of range.

    Example:
        >>> mx.cumprod(mx.array([1, 2, 3]))
        array([1, 2, 6], dtype=int32)
    """

def cumsum(
    a: array,
    /,
    axis: int | None = None,
    *,
    reverse: bool = False,
    inclusive: bool = True,
    dtype: Dtype | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Computes the running sum. Bools are summed as int32.

    Args:
        a (array): Array of any shape.
        axis (int | None): Axis to run along; by default the array is flattened.
        reverse (bool): Runs from the end to the start.
        inclusive (bool): Includes the element itself; else the first result is that of nothing.
        dtype (Dtype | None): Dtype to convert to first.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`, or flattened.

    Raises:
        IndexError: If the axis is out of range.

    Example:
        >>> mx.cumsum(mx.array([1, 2, 3]))
        array([1, 3, 6], dtype=int32)
    """

def default_device() -> Device:
    """Returns the device that operations use unless a stream or their inputs decide otherwise.

    Returns:
        Device: The CPU, unless `set_default_device` or `stream` set another.

    Example:
        >>> mx.default_device().index
        0
    """

def default_stream(device: Device | DeviceType) -> Stream:
    """Returns the default stream of a device.

    Args:
        device (Device | DeviceType): Device.

    Returns:
        Stream: The stream that operations on the device use unless one is given.

    Raises:
        ValueError: If there is no such device.

    Example:
        >>> mx.default_stream(mx.cpu).device
        Device(cpu, 0)
    """

def degrees(a: ArrayLike, /, stream: StreamOrDevice = None) -> array:
    """Converts angles from radians to degrees.

    Integers and bools give float32.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`.

    Example:
        >>> mx.degrees(mx.array([0.0, mx.pi]))
        array([0, 180], dtype=float32)
    """

def depends(inputs: array | Sequence[array], dependencies: array | Sequence[array]) -> Any:
    """Returns the same arrays, each of which is computed only after others.

    Derivatives flow through to `inputs`.

    Args:
        inputs (array | Sequence[array]): Array, or list or tuple of arrays.
        dependencies (array | Sequence[array]): Array, or list or tuple of arrays, that are
            computed first.

    Returns:
        Any: Array, or list of arrays, with the values of `inputs`.

    Example:
        >>> x, log = mx.array(1.0), mx.array(2.0) + 1
        >>> mx.depends(x, log)
        array(1, dtype=float32)
    """

def dequantize(
    w: array,
    /,
    scales: array,
    biases: array | None = None,
    group_size: int | None = None,
    bits: int | None = None,
    mode: str = "affine",
    global_scale: array | None = None,
    dtype: Dtype | None = None,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """Converts numbers of few bits to floats.

    Args:
        w (array): Words, as of `quantize`.
        scales (array): Scales of the groups.
        biases (array | None): Biases of the groups, of affine alone.
        group_size (int | None): Elements that share a scale; by default the mode's.
        bits (int | None): Bits of an element; by default the mode's. Of affine any number up to 32.
        mode (str): What the bits mean; see `quantize`.
        global_scale (array | None): Scale of all elements, of nvfp4 alone: float32, of one element.
        dtype (Dtype | None): Dtype of the result, a real float; by default that of scales and biases,
            float32 with a global scale, and else bfloat16.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Array of the shape (..., n, k).

    Raises:
        ValueError: If the words are not uint32 or have less than two axes, scales and biases do not fit
            them or the mode, or the dtype is no real float.

    Example:
        >>> w = mx.array([[1.0, 2.0, 3.0, 6.0] * 8])
        >>> mx.dequantize(*mx.quantize(w, mode="mxfp4"), mode="mxfp4")[0, :4]
        array([1, 2, 3, 6], dtype=bfloat16)
    """

def deterministic(on: bool = True, /) -> DeterministicContext:
    """Returns a context manager in which equal calls of this thread have to give equal bits, or need not, on all devices.

    Args:
        on (bool): Whether they have to; see `set_deterministic`.

    Returns:
        DeterministicContext: Context manager.

    Example:
        >>> with mx.deterministic():
        ...     total = mx.sum(mx.ones(1000)).item()
        >>> total
        1000.0
    """

def device_count(device_type: Device | DeviceType) -> int:
    """Counts the devices of a kind.

    Args:
        device_type (Device | DeviceType): Kind, or a device of that kind.

    Returns:
        int: Number of devices, over all backends.

    Example:
        >>> mx.device_count(mx.cpu)
        1
    """

def device_info(d: Device | DeviceType | None = None) -> dict[str, str | int]:
    """Describes a device.

    Args:
        d (Device | DeviceType | None): Device; by default the default one.

    Returns:
        dict[str, str | int]: `device_name`, `architecture`, `backend` and, as far as they are
            known, `memory_size` and `total_memory` (both the same, in bytes),
            `max_buffer_length` (bytes) and `threads`. Empty for a device that is not there.

    Example:
        >>> mx.device_info(mx.cpu)["backend"]
        'cpu'
    """

def diag(a: array, /, k: int = 0, *, stream: StreamOrDevice = None) -> array:
    """Takes the diagonal of a matrix, or makes a matrix with a vector as its diagonal.

    Args:
        a (array): Array of any shape.
        k (int): Diagonal: 0 for the main one, above it positive, below it negative.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Vector of a matrix, or matrix of a vector.

    Raises:
        IndexError: If an axis is out of range.
        ValueError: If the shape, or the number of dimensions, does not fit.

    Example:
        >>> mx.diag(mx.array([[1, 2], [3, 4]]), 1)
        array([2], dtype=int32)
    """

def diagonal(
    a: array, offset: int = 0, axis1: int = 0, axis2: int = 1, stream: StreamOrDevice = None
) -> array:
    """Takes the diagonals of the matrices that two axes span.

    Args:
        a (array): Array of two dimensions at least.
        offset (int): Diagonal: 0 for the main one, above it positive, below it negative.
        axis1 (int): Axis of the rows.
        axis2 (int): Axis of the columns.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Array without the two axes, with the diagonals as the last axis.

    Raises:
        IndexError: If an axis is out of range.
        ValueError: If there are less than two dimensions, or the axes are the same.

    Example:
        >>> mx.diagonal(mx.array([[1, 2], [3, 4]]))
        array([1, 4], dtype=int32)
    """

def diff(a: array, /, n: int = 1, axis: int = -1, *, stream: StreamOrDevice = None) -> array:
    """Computes the differences of neighbours along an axis.

    Args:
        a (array): Array of one dimension at least; of bools the result is True where neighbours
            differ.
        n (int): Number of times that differences are taken.
        axis (int): Axis along which neighbours are subtracted.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Differences; the axis is shorter by `n`, and not shorter than 0.

    Raises:
        IndexError: If the axis is out of range.
        ValueError: If `n` is negative.

    Example:
        >>> mx.diff(mx.array([1, 4, 9, 16]))
        array([3, 5, 7], dtype=int32)
    """

def disable_compile() -> None:
    """Makes compiled functions run uncompiled, everywhere, until `enable_compile`.

    Example:
        >>> mx.disable_compile()
        >>> mx.compile(lambda x: x + 1)(mx.array(1))
        array(2, dtype=int32)
        >>> mx.enable_compile()
    """

def divide(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Divides `a` by `b` elementwise.

    Integers and bools are divided as float32; division by zero gives infinity or NaN.

    Shapes are broadcast and dtypes promoted; a number takes the dtype of the array beside it.

    Args:
        a (ArrayLike): Left operand.
        b (ArrayLike): Right operand.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape that `a` and `b` are broadcast to.

    Raises:
        ValueError: If the shapes cannot be broadcast.

    Example:
        >>> mx.divide(mx.array([1, 2]), 4)
        array([0.25, 0.5], dtype=float32)
    """

def divmod(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> list[array]:
    """Divides `a` by `b` elementwise, with remainder.

    Shapes are broadcast and dtypes promoted; a number takes the dtype of the array beside it.

    Args:
        a (ArrayLike): Dividend.
        b (ArrayLike): Divisor.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        list[array]: The quotient rounded down, as `floor_divide`, and the remainder, as
            `remainder`.

    Raises:
        ValueError: If the shapes cannot be broadcast, or the elements are complex.

    Example:
        >>> mx.divmod(mx.array([7, -7]), 3)
        [array([2, -3], dtype=int32), array([1, 2], dtype=int32)]
    """

def einsum(subscripts: str, *operands: array, stream: StreamOrDevice = None) -> array:
    """Computes the sum of products that subscripts describe: "ij,jk->ik" is the matrix product.

    Letters that the result lacks are summed over. A letter twice in one operand takes its
    diagonal. "..." stands for axes without a letter, which are broadcast. Without "->" the
    result has the letters that are named once, in alphabetical order.

    Args:
        subscripts (str): Letters for the axes of each operand, separated by commas, and of the
            result behind "->".
        *operands (array): Arrays, one for each part of the subscripts.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Sum of products, in the promoted dtype.

    Raises:
        ValueError: If the subscripts are malformed or do not fit the operands, or integers
            would be contracted.

    Example:
        >>> mx.einsum("ij->j", mx.array([[1.0, 2.0], [3.0, 4.0]]))
        array([4, 6], dtype=float32)
    """

def einsum_path(subscripts: str, *operands: array) -> tuple[list[tuple[int, ...]], str]:
    """Finds the order in which `einsum` contracts operands.

    Args:
        subscripts (str): Subscripts as of `einsum`.
        *operands (array): Arrays, of which only the shapes matter.

    Returns:
        tuple[list[tuple[int, ...]], str]: Positions in the list of operands that are taken out
            at each step, whose result is put at the end; and a text about the cost.

    Raises:
        ValueError: If the subscripts are malformed or do not fit the operands.

    Example:
        >>> mx.einsum_path("ij,jk,kl", mx.ones((2, 3)), mx.ones((3, 4)), mx.ones((4, 2)))[0]
        [(1, 2), (0, 1)]
    """

def empty(
    shape: int | Sequence[int],
    dtype: Dtype | None = None,
    *,
    stream: StreamOrDevice = None,
    device: Device | DeviceType | None = None,
) -> array:
    """Creates an array whose elements are whatever its memory holds; bools are False.

    It is for foreign kernels that fill it through DLPack. In MLX the elements are zeros.

    Args:
        shape (int | Sequence[int]): Sizes of the dimensions.
        dtype (Dtype | None): Dtype of the result; float32 by default.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.
        device (Device | DeviceType | None): Device to run on, in place of `stream`.

    Returns:
        array: New array.

    Raises:
        ValueError: If a size is negative, or the whole is too large.

    Example:
        >>> mx.empty((2, 3)).shape
        (2, 3)
    """

def empty_like(
    a: array,
    /,
    dtype: Dtype | None = None,
    *,
    stream: StreamOrDevice = None,
    device: Device | DeviceType | None = None,
) -> array:
    """Creates an array in the shape of another, whose elements are whatever its memory holds: see
    `empty`.

    Args:
        a (array): Array that gives the shape.
        dtype (Dtype | None): Dtype of the result; by default that of `a`.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.
        device (Device | DeviceType | None): Device to run on, in place of `stream`.

    Returns:
        array: New array.

    Example:
        >>> mx.empty_like(mx.array([[1, 2, 3]])).shape
        (1, 3)
    """

def enable_compile() -> None:
    """Lets compiled functions run their graphs.

    They do unless the environment variable `ULTRAMARINE_DISABLE_COMPILE` is set; see
    `disable_compile`.

    Example:
        >>> mx.disable_compile()
        >>> mx.enable_compile()
        >>> mx.compile(lambda x: x + 1)(mx.array(1))
        array(2, dtype=int32)
    """

def equal(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Tests `a == b` elementwise; bools. NaN equals nothing.

    Shapes are broadcast and dtypes promoted; a number takes the dtype of the array beside it.

    Args:
        a (ArrayLike): Left operand.
        b (ArrayLike): Right operand.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape that `a` and `b` are broadcast to.

    Raises:
        ValueError: If the shapes cannot be broadcast.

    Example:
        >>> mx.equal(mx.array([1, 2, 3]), 2)
        array([False, True, False], dtype=bool)
    """

def erf(a: ArrayLike, /, stream: StreamOrDevice = None) -> array:
    """Computes the error function of each element.

    Integers and bools give float32; complex numbers raise a ValueError.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`.

    Example:
        >>> mx.erf(mx.array([0.0, 0.5]))
        array([0, 0.5205], dtype=float32)
    """

def erfinv(a: ArrayLike, /, stream: StreamOrDevice = None) -> array:
    """Computes the inverse of the error function at each element, which lies between -1 and 1.

    Integers and bools give float32; complex numbers raise a ValueError.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`.

    Example:
        >>> mx.erfinv(mx.array([0.0, 0.5]))
        array([0, 0.476936], dtype=float32)
    """

def eval(*args: Any) -> None:
    """Computes the arrays of trees and waits for them.

    Args:
        *args (Any): Arrays, and lists, tuples and dictionaries of them; other leaves are left
            alone.

    Raises:
        RuntimeError: If an operation fails.

    Example:
        >>> x = mx.ones(2) + 1
        >>> mx.eval(x)
    """

def exp(a: ArrayLike, /, stream: StreamOrDevice = None) -> array:
    """Computes e to the power of each element.

    Integers and bools give float32.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`.

    Example:
        >>> mx.exp(mx.array([0.0, 1.0]))
        array([1, 2.71828], dtype=float32)
    """

def expand_dims(a: array, /, axis: int | Sequence[int], *, stream: StreamOrDevice = None) -> array:
    """Inserts axes of size 1.

    Args:
        a (array): Array of any shape.
        axis (int | Sequence[int]): Positions of the new axes in the result.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: View with the new axes.

    Raises:
        IndexError: If an axis is out of range.
        ValueError: If the shape, or the number of dimensions, does not fit.

    Example:
        >>> mx.expand_dims(mx.ones((2, 3)), (0, -1)).shape
        (1, 2, 3, 1)
    """

def expm1(a: ArrayLike, /, stream: StreamOrDevice = None) -> array:
    """Computes e to the power of each element, minus one.

    It is accurate near zero, where `exp(a) - 1` loses digits. Integers and bools give float32;
    complex numbers raise a ValueError.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`.

    Example:
        >>> mx.expm1(mx.array([0.0, 1e-10]))
        array([0, 1e-10], dtype=float32)
    """

def export_function(
    file_or_callback: _Path | Callable[[dict[str, Any]], Any],
    fun: Callable[..., Any],
    *args: Any,
    shapeless: bool = False,
    metadata: str | None = None,
    **kwargs: array,
) -> None:
    """Exports a function of arrays to a file, which `import_function` reads, and programs in Rust, too.

    `fun` is called once, on arrays without values. Arrays that it closes over are constants of the file. Streams and devices
    are not in the file: the function runs where its arguments are. A file holds no code, so that one from elsewhere is safe to
    import.

    A callback in place of a file is called with dictionaries that describe the trace: of the types `inputs`,
    `keyword_inputs`, `outputs` and `constants`, and then `primitive` for each operation, in the order in which they run.

    Args:
        file_or_callback (Path | Callable[[dict[str, Any]], Any]): Path of the file, which is replaced; or a callback.
        fun (Callable[..., Any]): Function of arrays that returns an array, or a tuple or list of them.
        *args (Any): Arrays like the arguments; or a tuple or list of them, a dictionary of keyword arguments, or both.
        shapeless (bool): Lets the function take arguments of other sizes, with as many dimensions.
        metadata (str | None): Text that the file carries.
        **kwargs (array): Arrays like the keyword arguments.

    Raises:
        ValueError: If arguments or results are no arrays, for metadata with a callback, and for operations that files do not
            have, such as kernels of the caller's own.
        RuntimeError: If the file cannot be written.

    Example:
        >>> def fun(x, y):
        ...     return x + y
        >>> mx.export_function("fun.mlxfn", fun, mx.array(1), y=mx.array([1, 2, 3]))
    """

def export_to_dot(file: _Path, *args: Any, **kwargs: array) -> None:
    """Writes the graph of what is to be computed for arrays in DOT, the language of graphviz.

    Operations are rectangles, arrays ellipses. Arrays that have their values have no operation.

    Args:
        file (Path): Path of the file, or a file object for text.
        *args (Any): Arrays, or trees of them.
        **kwargs (array): Arrays with names, which are drawn, too. Others are called A, B and so on.

    Raises:
        ValueError: If `file` is neither a path nor a file object, and for what is no array.
        OSError: If the file cannot be written.

    Example:
        >>> x, y = mx.array(1.0), mx.array(2.0)
        >>> mx.export_to_dot("graph.dot", mx.exp(x + y), x=x, y=y)
    """

def exporter(
    file: _Path, fun: Callable[..., Any], *, shapeless: bool = False, metadata: str | None = None
) -> FunctionExporter:
    """Makes an exporter of several traces of a function, for arguments of other numbers, names, shapes and dtypes.

    Args:
        file (Path): Path of the file, which is replaced when the exporter is closed.
        fun (Callable[..., Any]): Function of arrays that returns an array, or a tuple or list of them.
        shapeless (bool): Lets the function take arguments of other sizes, with as many dimensions.
        metadata (str | None): Text that the file carries.

    Returns:
        FunctionExporter: A context manager, which is called with arrays like the arguments.

    Raises:
        RuntimeError: If there is no folder for the file.

    Example:
        >>> def fun(*args):
        ...     return sum(args)
        >>> with mx.exporter("fun.mlxfn", fun) as exporter:
        ...     exporter(mx.array(1))
        ...     exporter(mx.array(1), mx.array(2))
    """

def eye(
    n: int,
    m: int | None = None,
    k: int = 0,
    dtype: Dtype | None = None,
    *,
    stream: StreamOrDevice = None,
    device: Device | DeviceType | None = None,
) -> array:
    """Creates a matrix with ones on a diagonal and zeros elsewhere.

    Args:
        n (int): Number of rows.
        m (int | None): Number of columns; by default `n`.
        k (int): Diagonal: 0 for the main one, above it positive, below it negative.
        dtype (Dtype | None): Dtype of the result; float32 by default.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.
        device (Device | DeviceType | None): Device to run on, in place of `stream`.

    Returns:
        array: Matrix of the shape (n, m).

    Raises:
        ValueError: If a size is negative.

    Example:
        >>> mx.eye(2, 3)
        array([[1, 0, 0],
               [0, 1, 0]], dtype=float32)
    """

def flatten(
    a: array, /, start_axis: int = 0, end_axis: int = -1, *, stream: StreamOrDevice = None
) -> array:
    """Joins the axes from `start_axis` to `end_axis`, both included, into one.

    Args:
        a (array): Array of any shape.
        start_axis (int): First axis to join.
        end_axis (int): Last axis to join.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Array with the axes joined; one dimension at least.

    Raises:
        IndexError: If an axis is out of range.
        ValueError: If the shape, or the number of dimensions, does not fit.

    Example:
        >>> mx.flatten(mx.ones((2, 3, 4)), 1).shape
        (2, 12)
    """

def flip(
    a: array, /, axis: int | Sequence[int] | None = None, *, stream: StreamOrDevice = None
) -> array:
    """Reverses the order of elements along axes.

    Args:
        a (array): Array of any shape.
        axis (int | Sequence[int] | None): Axes to reverse; by default all of them.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: View with the elements reversed.

    Raises:
        IndexError: If an axis is out of range.
        ValueError: If the shape, or the number of dimensions, does not fit.

    Example:
        >>> mx.flip(mx.array([1, 2, 3]))
        array([3, 2, 1], dtype=int32)
    """

def floor(a: ArrayLike, /, stream: StreamOrDevice = None) -> array:
    """Rounds each element down to an integer, in the dtype of `a`.

    Complex numbers raise a ValueError.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`.

    Example:
        >>> mx.floor(mx.array([-1.5, 1.5]))
        array([-2, 1], dtype=float32)
    """

def floor_divide(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Divides `a` by `b` elementwise and rounds the quotient down, in the promoted dtype.

    Shapes are broadcast and dtypes promoted; a number takes the dtype of the array beside it.

    Args:
        a (ArrayLike): Left operand.
        b (ArrayLike): Right operand.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape that `a` and `b` are broadcast to.

    Raises:
        ValueError: If the shapes cannot be broadcast.

    Example:
        >>> mx.floor_divide(mx.array([7, -7]), 2)
        array([3, -4], dtype=int32)
    """

def from_dlpack(
    x: SupportsDLPack | Any,
    /,
    *,
    device: Device | DeviceType | None = None,
    copy: bool | None = None,
) -> array:
    """Imports the tensor of another library as an array, without a copy.

    Both share the memory: work that was not evaluated yet sees later writes by its owner.

    Args:
        x (SupportsDLPack | Any): Object with `__dlpack__` (and `__dlpack_device__`), or a capsule that
            `__dlpack__` gave.
        device (Device | DeviceType | None): Device of the result; by default where `x` is.
        copy (bool | None): True copies; False raises where a copy would be needed; None copies where
            it is needed.

    Returns:
        array: The array.

    Raises:
        InterchangeError: (a BufferError and a ValueError) If the memory cannot be imported, or a copy
            is needed and `copy` is False.
        InterchangeDeviceError: (also a TypeError) If that is because of the device.
        TypeError: If `x` is no producer of DLPack.

    Example:
        >>> import numpy
        >>> mx.from_dlpack(numpy.arange(3, dtype="int32"))
        array([0, 1, 2], dtype=int32)
    """

def from_fp8(x: array, dtype: Dtype | None = None, *, stream: StreamOrDevice = None) -> array:
    """Converts from 8-bit floats (E4M3), which are uint8.

    Args:
        x (array): Array of uint8.
        dtype (Dtype | None): Dtype of the result, a real float; by default bfloat16.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Array of the same shape.

    Raises:
        ValueError: If the array is not of uint8, or the dtype is no real float.

    Example:
        >>> mx.from_fp8(mx.array([56, 254], dtype=mx.uint8), mx.float32)
        array([1, -448], dtype=float32)
    """

def full(
    shape: int | Sequence[int],
    vals: ArrayLike,
    dtype: Dtype | None = None,
    *,
    stream: StreamOrDevice = None,
    device: Device | DeviceType | None = None,
) -> array:
    """Creates an array filled with a number, or with an array that is broadcast.

    Args:
        shape (int | Sequence[int]): Sizes of the dimensions.
        vals (ArrayLike): Number or array to fill with.
        dtype (Dtype | None): Dtype of the result; by default that of `vals`, for Python numbers
            int32, float32, bool or complex64.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.
        device (Device | DeviceType | None): Device to run on, in place of `stream`.

    Returns:
        array: Filled array.

    Raises:
        ValueError: If a size is negative, or `vals` cannot be broadcast to the shape.

    Example:
        >>> mx.full((2, 2), 7)
        array([[7, 7],
               [7, 7]], dtype=int32)
    """

def full_like(
    a: array,
    vals: ArrayLike,
    dtype: Dtype | None = None,
    *,
    stream: StreamOrDevice = None,
    device: Device | DeviceType | None = None,
) -> array:
    """Creates an array in the shape of another, filled with a number or an array that is
    broadcast.

    Args:
        a (array): Array that gives the shape.
        vals (ArrayLike): Number or array to fill with.
        dtype (Dtype | None): Dtype of the result; by default that of `a`.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.
        device (Device | DeviceType | None): Device to run on, in place of `stream`.

    Returns:
        array: Filled array.

    Raises:
        ValueError: If `vals` cannot be broadcast to the shape.

    Example:
        >>> mx.full_like(mx.array([1.5, 2]), 7)
        array([7, 7], dtype=float32)
    """

def gather_mm(
    a: array,
    b: array,
    /,
    lhs_indices: array | None = None,
    rhs_indices: array | None = None,
    *,
    sorted_indices: bool = False,
    stream: StreamOrDevice = None,
) -> array:
    """Multiplies matrices that indices choose: `a[lhs_indices] @ b[rhs_indices]`.

    Indices are flat ones along all but the last two dimensions, and are broadcast with each other.
    Those of a mixture of experts choose the experts' matrices.

    Args:
        a (array): Array of the shape (..., m, k), of real floats.
        b (array): Array of the shape (..., k, n), of real floats.
        lhs_indices (array | None): Indices of the matrices of `a`, integers; by default all in order.
        rhs_indices (array | None): Indices of the matrices of `b`, integers; by default all in order.
        sorted_indices (bool): The indices ascend, which may be faster.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Array of the indices' shape and (m, n), in the promoted dtype.

    Raises:
        ValueError: If an operand is no array of real floats, inner sizes differ, indices are no
            integers, or shapes cannot be broadcast.

    Example:
        >>> experts = mx.array([[[1.0]], [[10.0]]])
        >>> mx.gather_mm(mx.array([[[2.0]], [[3.0]]]), experts, rhs_indices=mx.array([1, 0])).tolist()
        [[[20.0]], [[3.0]]]
    """

def gather_qmm(
    x: array,
    w: array,
    /,
    scales: array,
    biases: array | None = None,
    lhs_indices: array | None = None,
    rhs_indices: array | None = None,
    transpose: bool = True,
    group_size: int | None = None,
    bits: int | None = None,
    mode: str = "affine",
    global_scale: array | None = None,
    *,
    sorted_indices: bool = False,
    stream: StreamOrDevice = None,
) -> array:
    """Multiplies matrices that indices choose by matrices of few bits that indices choose.

    Indices are flat ones along all but the last two axes, and are broadcast with each other. Those of a
    mixture of experts choose the experts' matrices.

    Args:
        x (array): Array of the shape (..., m, k), of real floats (of affine any real numbers).
        w (array): Words, as of `quantize`, of matrices (..., n, k), or (..., k, n) without `transpose`.
        scales (array): Scales of the groups.
        biases (array | None): Biases of the groups, of affine alone.
        lhs_indices (array | None): Indices of the matrices of `x`, integers; by default all in order.
        rhs_indices (array | None): Indices of the matrices of `w`, integers; by default all in order.
        transpose (bool): Multiplies by the transposed matrices.
        group_size (int | None): Elements that share a scale; by default the mode's.
        bits (int | None): Bits of an element; by default the mode's.
        mode (str): What the bits mean; see `quantize`.
        global_scale (array | None): Scale of all elements of `w`, or one of each matrix, of nvfp4 alone:
            float32.
        sorted_indices (bool): The indices ascend, which may be faster.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Array of the indices' shape and (m, n), in the dtype that `x`, scales and biases promote
            to.

    Raises:
        ValueError: As `quantized_matmul`; if `x` is a vector, or indices are no integers.

    Example:
        >>> experts = mx.quantize(mx.full((3, 2, 64), mx.arange(3.0).reshape(3, 1, 1)))
        >>> x = mx.ones((2, 1, 64))
        >>> mx.gather_qmm(x, *experts, rhs_indices=mx.array([2, 0])).tolist()
        [[[128.0, 128.0]], [[0.0, 0.0]]]
    """

def gather_qqmm(
    x: array,
    w: array,
    /,
    scales: array | None = None,
    lhs_indices: array | None = None,
    rhs_indices: array | None = None,
    group_size: int | None = None,
    bits: int | None = None,
    mode: str = "nvfp4",
    global_scale_x: array | None = None,
    global_scale_w: array | None = None,
    *,
    sorted_indices: bool = False,
    stream: StreamOrDevice = None,
) -> array:
    """Multiplies matrices that indices choose, with both factors rounded to floats of few bits.

    Indices as of `gather_qmm`, factors as of `qqmm`.

    Args:
        x (array): Array of the shape (..., m, k): float32, float16 or bfloat16.
        w (array): Words of matrices (..., n, k), or floats of that shape.
        scales (array | None): Scales of the groups, if `w` is words.
        lhs_indices (array | None): Indices of the matrices of `x`, integers; by default all in order.
        rhs_indices (array | None): Indices of the matrices of `w`, integers; by default all in order.
        group_size (int | None): Elements that share a scale; by default the mode's.
        bits (int | None): Bits of an element; by default the mode's.
        mode (str): What the bits mean: `"nvfp4"`, `"mxfp8"` or `"mxfp4"`; see `quantize`.
        global_scale_x (array | None): Scale of all elements of `x`, of nvfp4 alone: float32, of one element.
        global_scale_w (array | None): That of `w`; words may have one for each matrix. Either both have
            one or neither has.
        sorted_indices (bool): The indices ascend, which may be faster.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Array of the indices' shape and (m, n), in the dtype of `x`.

    Raises:
        ValueError: As `qqmm`; if `x` is a vector, or indices are no integers.

    Example:
        >>> experts = mx.array([[[1.0] * 32], [[2.0] * 32]])
        >>> x, chosen = mx.ones((1, 32)), mx.array([1, 0])
        >>> mx.gather_qqmm(x, experts, rhs_indices=chosen, mode="mxfp8").tolist()
        [[[64.0]], [[32.0]]]
    """

def get_active_memory(device: Device | DeviceType | None = None) -> int:
    """Counts the bytes of arrays that exist.

    Args:
        device (Device | DeviceType | None): Device; by default all accelerators, or the CPU
            where there is none.

    Returns:
        int: Number of bytes.

    Example:
        >>> x = mx.zeros(1000)
        >>> mx.eval(x)
        >>> mx.get_active_memory() >= x.nbytes
        True
    """

def get_array_buffer_size(*args: Any) -> int:
    """Counts the bytes of the memory blocks behind evaluated arrays. A block that several share
    counts once.

    Args:
        *args (Any): Trees of arrays; leaves that are no arrays are left out.

    Returns:
        int: Number of bytes.

    Example:
        >>> x = mx.zeros(1000)
        >>> mx.eval(x)
        >>> mx.get_array_buffer_size(x, x[:10]) >= x.nbytes
        True
    """

def get_cache_memory(device: Device | DeviceType | None = None) -> int:
    """Counts the bytes of freed memory that are kept for reuse.

    Args:
        device (Device | DeviceType | None): Device; by default all accelerators, or the CPU
            where there is none.

    Returns:
        int: Number of bytes.

    Example:
        >>> mx.get_cache_memory() >= 0
        True
    """

def get_deterministic(*, device: Device | DeviceType | None = None) -> bool:
    """Returns whether equal calls have to give equal bits.

    Args:
        device (Device | DeviceType | None): Device asked about. Default: those that have no setting of their own.

    Returns:
        bool: The setting; see `set_deterministic`.

    Example:
        >>> mx.get_deterministic()
        False
    """

def get_include() -> str:
    """Returns the directory of the C and C++ headers, for a compiler's `-I`.

    They are those of extensions (`ultramarine/extension.h`) and of backends (`ultramarine/backend.h`).
    `ultramarine.extension` builds extensions with setuptools.

    Returns:
        str: Path of the directory.

    Example:
        >>> import os
        >>> os.path.isfile(os.path.join(mx.get_include(), "ultramarine", "extension.h"))
        True
    """

def get_matmul_precision(
    *, device: Device | DeviceType | None = None
) -> Literal["highest", "high", "medium"]:
    """Returns how exactly matrix products and convolutions of float32 are made.

    Args:
        device (Device | DeviceType | None): Device asked about. Default: those that have no precision of their own.

    Returns:
        Literal["highest", "high", "medium"]: The precision; see `set_matmul_precision`.

    Example:
        >>> mx.get_matmul_precision()
        'highest'
    """

def get_memory_limit(device: Device | DeviceType | None = None) -> int:
    """Returns the number of bytes that arrays and cache should take at most.

    Args:
        device (Device | DeviceType | None): Device; by default the sum over the backends with
            accelerators, or the CPU where there is none.

    Returns:
        int: Number of bytes.

    Example:
        >>> mx.get_memory_limit() > 0
        True
    """

def get_peak_memory(device: Device | DeviceType | None = None) -> int:
    """Returns the most bytes that arrays took since the start or the last `reset_peak_memory`.

    Args:
        device (Device | DeviceType | None): Device; by default the sum over all accelerators,
            or the CPU where there is none.

    Returns:
        int: Number of bytes.

    Example:
        >>> mx.eval(mx.zeros(1000))
        >>> mx.get_peak_memory() >= 4000
        True
    """

def get_printoptions() -> PrintOptions:
    """Returns the options of printing numbers.

    Returns:
        PrintOptions: A copy of the options.

    Example:
        >>> mx.get_printoptions().precision
        -1
    """

def get_transfer_policy() -> Literal["error", "host"]:
    """Returns what happens when arrays of two accelerators meet in an operation.

    Returns:
        Literal["error", "host"]: "error" or "host"; see `set_transfer_policy`.

    Example:
        >>> mx.get_transfer_policy()
        'error'
    """

def grad(
    fun: Callable[_P, _R],
    argnums: int | Sequence[int] | None = None,
    argnames: str | Sequence[str] = ...,
) -> Callable[_P, Any]:
    """Returns a function that computes the gradient of `fun`.

    `fun` returns an array without dimensions. The gradient has the structure of the argument,
    which may be a tree of arrays. Several `argnums` give a tuple, in the order of the arguments;
    with `argnames` it is a pair of that and a dictionary.

    `fun` is called with the caller's own lists and dictionaries. Their arrays are replaced for the
    call; what `fun` assigns to them stays.

    Args:
        fun (Callable[P, R]): Function to differentiate.
        argnums (int | Sequence[int] | None): Positional arguments to differentiate with respect
            to; by default the first, or none if there are `argnames`.
        argnames (str | Sequence[str]): Keyword arguments to differentiate with respect to.

    Returns:
        Callable[P, Any]: Function with the arguments of `fun`, which returns the gradient.

    Raises:
        ValueError: If an argument is named twice or is negative; at a call, if it is not there, has
            no array or anything else in it, or `fun` returns something else.

    Example:
        >>> mx.grad(lambda x: (x * x).sum())(mx.array([1.0, 2.0]))
        array([2, 4], dtype=float32)
    """

def greater(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Tests `a > b` elementwise; bools, False where either is NaN.

    Shapes are broadcast and dtypes promoted; a number takes the dtype of the array beside it.

    Args:
        a (ArrayLike): Left operand.
        b (ArrayLike): Right operand.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape that `a` and `b` are broadcast to.

    Raises:
        ValueError: If the shapes cannot be broadcast.

    Example:
        >>> mx.greater(mx.array([1, 2, 3]), 2)
        array([False, False, True], dtype=bool)
    """

def greater_equal(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Tests `a >= b` elementwise; bools, False where either is NaN.

    Shapes are broadcast and dtypes promoted; a number takes the dtype of the array beside it.

    Args:
        a (ArrayLike): Left operand.
        b (ArrayLike): Right operand.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape that `a` and `b` are broadcast to.

    Raises:
        ValueError: If the shapes cannot be broadcast.

    Example:
        >>> mx.greater_equal(mx.array([1, 2, 3]), 2)
        array([False, True, True], dtype=bool)
    """

def hadamard_transform(
    a: array, scale: float | None = None, stream: StreamOrDevice = None
) -> array:
    """Computes the Walsh-Hadamard transform along the last axis.

    Args:
        a (array): Array whose last size is 2^k, or 12, 20 or 28 times that.
        scale (float | None): Factor of the result; by default 1 / sqrt(size), which makes it orthonormal.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Array of the same shape; float32 for integers, bool and complex numbers.

    Raises:
        ValueError: If the last axis has another size, or there are no elements.

    Example:
        >>> mx.hadamard_transform(mx.array([1.0, 2.0, 3.0, 4.0]), scale=1.0)
        array([10, -2, -4, 0], dtype=float32)
    """

def hamming(
    M: int, *, stream: StreamOrDevice = None, device: Device | DeviceType | None = None
) -> array:
    """Creates Hamming's window: `0.54 - 0.46 * cos(2 * pi * n / (M - 1))`.

    Args:
        M (int): Number of samples; of a negative number there are none.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.
        device (Device | DeviceType | None): Device to run on, in place of `stream`.

    Returns:
        array: Window as float32.

    Example:
        >>> mx.hamming(5)
        array([0.08, 0.54, 1, 0.54, 0.08], dtype=float32)
    """

def hanning(
    M: int, *, stream: StreamOrDevice = None, device: Device | DeviceType | None = None
) -> array:
    """Creates Hann's window: `0.5 - 0.5 * cos(2 * pi * n / (M - 1))`.

    Args:
        M (int): Number of samples; of a negative number there are none.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.
        device (Device | DeviceType | None): Device to run on, in place of `stream`.

    Returns:
        array: Window as float32.

    Example:
        >>> mx.hanning(5)
        array([0, 0.5, 1, 0.5, 0], dtype=float32)
    """

def identity(
    n: int,
    dtype: Dtype | None = None,
    *,
    stream: StreamOrDevice = None,
    device: Device | DeviceType | None = None,
) -> array:
    """Creates an identity matrix: `eye` of one size.

    Args:
        n (int): Number of rows and columns.
        dtype (Dtype | None): Dtype of the result; float32 by default.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.
        device (Device | DeviceType | None): Device to run on, in place of `stream`.

    Returns:
        array: Matrix of the shape (n, n).

    Raises:
        ValueError: If the size is negative.

    Example:
        >>> mx.identity(2)
        array([[1, 0],
               [0, 1]], dtype=float32)
    """

def imag(a: ArrayLike, /, stream: StreamOrDevice = None) -> array:
    """Returns the imaginary part of each element.

    Complex numbers give float32; of other arrays it is zero, in their dtype.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`.

    Example:
        >>> mx.imag(mx.array([1 + 2j, 3.0]))
        array([2, 0], dtype=float32)
    """

def import_function(
    file: _Path, return_metadata: bool = False
) -> Callable[..., tuple[array, ...]] | tuple[Callable[..., tuple[array, ...]], str]:
    """Imports a function from a file that `export_function` or `exporter` wrote.

    Every operation of the file is checked, and there is no code in it: a file from elsewhere is safe to import. (What it says
    may take time and memory to compute.) The function is called with arrays, or with a tuple or list of arrays, a dictionary
    of them, or both; it returns a tuple of arrays. Transforms go through it, and its calls are compiled.

    Args:
        file (Path): Path of the file.
        return_metadata (bool): Returns the text that the file carries, too.

    Returns:
        Callable[..., tuple[array, ...]] | tuple[Callable[..., tuple[array, ...]], str]: The function; with `return_metadata` a
            tuple of it and the text, which is empty if there is none.

    Raises:
        RuntimeError: If the file cannot be opened, is cut short or wrong, or newer than this package.

    Example:
        >>> x, y = mx.array(1), mx.array([1, 2, 3])
        >>> mx.export_function("sum.mlxfn", lambda x, y: x + y, x, y=y)
        >>> fun = mx.import_function("sum.mlxfn")
        >>> fun(x, y=y)[0]
        array([2, 3, 4], dtype=int32)
        >>> fun((x,), {"y": y})[0]
        array([2, 3, 4], dtype=int32)
    """

def inner(a: array, b: array, /, *, stream: StreamOrDevice = None) -> array:
    """Computes the inner products of the vectors along the last axes, each of `a` with each of
    `b`.

    Args:
        a (array): Array of the shape (..., k), or without dimensions: then it is a factor.
        b (array): Array of the shape (..., k), or without dimensions.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Array with the other axes of `a`, then those of `b`.

    Raises:
        ValueError: If the last sizes differ, or both are integers.

    Example:
        >>> mx.inner(mx.array([1.0, 2.0]), mx.array([3.0, 4.0]))
        array(11, dtype=float32)
    """

def is_available(device: Device | DeviceType) -> bool:
    """Tests whether a device can be used.

    Args:
        device (Device | DeviceType): Device, or kind whose first device is meant.

    Returns:
        bool: True if there is such a device.

    Example:
        >>> mx.is_available(mx.cpu)
        True
    """

def isclose(
    a: ArrayLike,
    b: ArrayLike,
    /,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    *,
    equal_nan: bool = False,
    stream: StreamOrDevice = None,
) -> array:
    """Tests where `abs(a - b) <= atol + rtol * abs(b)`, elementwise.

    Infinities of one sign are close to each other. Shapes are broadcast.

    Args:
        a (ArrayLike): First operand.
        b (ArrayLike): Second operand, the one that the relative tolerance refers to.
        rtol (float): Relative tolerance.
        atol (float): Absolute tolerance.
        equal_nan (bool): Makes NaN close to NaN.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Bools in the broadcast shape.

    Raises:
        ValueError: If the shapes cannot be broadcast.

    Example:
        >>> mx.isclose(mx.array([1.0, 2.0]), mx.array([1.0, 2.1]))
        array([True, False], dtype=bool)
    """

def isdtype(dtype: Dtype, kind: Dtype | str | tuple[Dtype | str, ...]) -> bool:
    """Tests whether a dtype is of a kind.

    Args:
        dtype (Dtype): Dtype to test.
        kind (Dtype | str | tuple[Dtype | str, ...]): Another dtype; "bool", "signed integer",
            "unsigned integer", "integral", "real floating", "complex floating" or "numeric"; or
            a tuple of these.

    Returns:
        bool: True if the dtype is of that kind, or of one of them.

    Raises:
        ValueError: If the kind is unknown.

    Example:
        >>> mx.isdtype(mx.int32, ("integral", mx.bool_))
        True
    """

def isfinite(a: ArrayLike, /, stream: StreamOrDevice = None) -> array:
    """Tests which elements are neither infinite nor NaN: bools.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`.

    Example:
        >>> mx.isfinite(mx.array([1.0, mx.nan, mx.inf]))
        array([True, False, False], dtype=bool)
    """

def isinf(a: ArrayLike, /, stream: StreamOrDevice = None) -> array:
    """Tests which elements are infinite: bools. Of complex numbers either part counts.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`.

    Example:
        >>> mx.isinf(mx.array([1.0, mx.nan, -mx.inf]))
        array([False, False, True], dtype=bool)
    """

def isnan(a: ArrayLike, /, stream: StreamOrDevice = None) -> array:
    """Tests which elements are NaN: bools. Of complex numbers either part counts.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`.

    Example:
        >>> mx.isnan(mx.array([1.0, mx.nan, mx.inf]))
        array([False, True, False], dtype=bool)
    """

def isneginf(a: ArrayLike, /, stream: StreamOrDevice = None) -> array:
    """Tests which elements are negative infinity: bools.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`.

    Example:
        >>> mx.isneginf(mx.array([mx.inf, -mx.inf]))
        array([False, True], dtype=bool)
    """

def isposinf(a: ArrayLike, /, stream: StreamOrDevice = None) -> array:
    """Tests which elements are positive infinity: bools.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`.

    Example:
        >>> mx.isposinf(mx.array([mx.inf, -mx.inf]))
        array([True, False], dtype=bool)
    """

def issubdtype(arg1: Dtype | DtypeCategory, arg2: Dtype | DtypeCategory) -> bool:
    """Tests whether a dtype or category lies within another.

    Args:
        arg1 (Dtype | DtypeCategory): Dtype or category that may lie within.
        arg2 (Dtype | DtypeCategory): Dtype, which holds only itself, or category.

    Returns:
        bool: True if `arg1` lies within `arg2`.

    Raises:
        TypeError: If an argument is None.
        ValueError: If an argument is neither a dtype nor a category.

    Example:
        >>> mx.issubdtype(mx.int32, mx.integer)
        True
    """

def jvp(
    fun: Callable[..., Any], primals: Sequence[array], tangents: Sequence[array]
) -> tuple[list[array], list[array]]:
    """Computes a function and the products of its Jacobian with tangents: forward mode.

    Args:
        fun (Callable[..., Any]): Function of arrays that returns an array, or a list or tuple
            of arrays.
        primals (Sequence[array]): Arguments of the function.
        tangents (Sequence[array]): One array for each of `primals`, in its shape.

    Returns:
        tuple[list[array], list[array]]: Outputs; and the products, one for each output.

    Raises:
        ValueError: If the tangents do not fit the primals.

    Example:
        >>> mx.jvp(lambda x: x * x, [mx.array(3.0)], [mx.array(1.0)])
        ([array(9, dtype=float32)], [array(6, dtype=float32)])
    """

def kron(a: array, b: array, *, stream: StreamOrDevice = None) -> array:
    """Computes the Kronecker product: blocks of `b`, scaled by each element of `a`.

    Args:
        a (array): Array of any shape.
        b (array): Array of any shape; the one of fewer dimensions gets axes of size 1 in front.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Array whose sizes are products of those of `a` and `b`.

    Example:
        >>> mx.kron(mx.array([1, 2]), mx.array([1, 1]))
        array([1, 1, 2, 2], dtype=int32)
    """

def left_shift(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Shifts the bits of `a` to the left by `b` places elementwise, of integers.

    Bools count as uint8. Other dtypes raise a RuntimeError.

    Shapes are broadcast and dtypes promoted; a number takes the dtype of the array beside it.

    Args:
        a (ArrayLike): Left operand.
        b (ArrayLike): Right operand.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape that `a` and `b` are broadcast to.

    Raises:
        ValueError: If the shapes cannot be broadcast.

    Example:
        >>> mx.left_shift(mx.array([1, 5]), 2)
        array([4, 20], dtype=int32)
    """

def less(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Tests `a < b` elementwise; bools, False where either is NaN.

    Shapes are broadcast and dtypes promoted; a number takes the dtype of the array beside it.

    Args:
        a (ArrayLike): Left operand.
        b (ArrayLike): Right operand.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape that `a` and `b` are broadcast to.

    Raises:
        ValueError: If the shapes cannot be broadcast.

    Example:
        >>> mx.less(mx.array([1, 2, 3]), 2)
        array([True, False, False], dtype=bool)
    """

def less_equal(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Tests `a <= b` elementwise; bools, False where either is NaN.

    Shapes are broadcast and dtypes promoted; a number takes the dtype of the array beside it.

    Args:
        a (ArrayLike): Left operand.
        b (ArrayLike): Right operand.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape that `a` and `b` are broadcast to.

    Raises:
        ValueError: If the shapes cannot be broadcast.

    Example:
        >>> mx.less_equal(mx.array([1, 2, 3]), 2)
        array([True, True, False], dtype=bool)
    """

def linspace(
    start: float,
    stop: float,
    num: int = 50,
    endpoint: bool = True,
    dtype: Dtype | None = None,
    stream: StreamOrDevice = None,
    *,
    device: Device | DeviceType | None = None,
) -> array:
    """Creates numbers that are evenly spaced from `start` to `stop`.

    Args:
        start (float): First number.
        stop (float): Last number; with `endpoint=False` the one that would come next.
        num (int): Number of numbers.
        endpoint (bool): Includes `stop`.
        dtype (Dtype | None): Dtype of the result; float32 by default.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.
        device (Device | DeviceType | None): Device to run on, in place of `stream`.

    Returns:
        array: Numbers in one dimension.

    Raises:
        ValueError: If `num` is negative.

    Example:
        >>> mx.linspace(0, 1, 5)
        array([0, 0.25, 0.5, 0.75, 1], dtype=float32)
    """

def load(
    file: _Path,
    /,
    format: str | None = None,
    return_metadata: bool = False,
    *,
    stream: StreamOrDevice = None,
    packing: str | None = None,
    dtype: Dtype | None = None,
) -> Any:
    """Loads arrays from a file.

    Of a path the header is read at once, and each array's data when the array is evaluated: onto
    the device of `stream`, else of the operation that needs it. A file object is read whole.

    Args:
        file (Path): Path, or a binary file object that can seek.
        format (str | None): "npy", "npz", "safetensors", "gguf" or "index.json" (safetensors files
            with an index); by default the ending of the file's name.
        return_metadata (bool): Also returns the metadata; of `.safetensors`, `.gguf` and indexes
            only.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.
        packing (str | None): Tensors of `.gguf` that become quantised arrays: "common", those that
            MLX gives as such (Q4_0, Q4_1 and Q8_0), which is the default; "lossless", also others
            whose numbers such an array holds; "never", none.
        dtype (Dtype | None): Of the other tensors of blocks in `.gguf`: float16 (default), bfloat16
            or float32.

    Returns:
        Any: An array of a `.npy` file, or a dictionary of arrays of any other file; with
            `return_metadata` a pair of that and a dictionary of text, for `.gguf` also of arrays,
            bytes and lists.

    Raises:
        RuntimeError: If the file cannot be read; when an array is evaluated, if the file was
            written to or cut since.
        ValueError: If the format is unknown, or has no metadata, packing or dtype that is asked for.

    Example:
        >>> mx.save_safetensors("weights.safetensors", {"w": mx.ones(2), "b": mx.zeros(1)})
        >>> sorted(mx.load("weights.safetensors"))
        ['b', 'w']
    """

def log(a: ArrayLike, /, stream: StreamOrDevice = None) -> array:
    """Computes the natural logarithm of each element.

    Zero gives negative infinity and negative real numbers give NaN. Integers and bools give
    float32.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`.

    Example:
        >>> mx.log(mx.array([1.0, mx.e]))
        array([0, 1], dtype=float32)
    """

def log10(a: ArrayLike, /, stream: StreamOrDevice = None) -> array:
    """Computes the logarithm to base 10 of each element.

    Zero gives negative infinity and negative real numbers give NaN. Integers and bools give
    float32.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`.

    Example:
        >>> mx.log10(mx.array([1.0, 100.0]))
        array([0, 2], dtype=float32)
    """

def log1p(a: ArrayLike, /, stream: StreamOrDevice = None) -> array:
    """Computes the natural logarithm of one plus each element.

    It is accurate near zero, where `log(1 + a)` loses digits. Integers and bools give float32.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`.

    Example:
        >>> mx.log1p(mx.array([0.0, 1e-10]))
        array([0, 1e-10], dtype=float32)
    """

def log2(a: ArrayLike, /, stream: StreamOrDevice = None) -> array:
    """Computes the logarithm to base 2 of each element.

    Zero gives negative infinity and negative real numbers give NaN. Integers and bools give
    float32.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`.

    Example:
        >>> mx.log2(mx.array([0.5, 8.0]))
        array([-1, 3], dtype=float32)
    """

def logaddexp(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Computes `log(exp(a) + exp(b))` elementwise, without overflow.

    Integers and bools give float32.

    Shapes are broadcast and dtypes promoted; a number takes the dtype of the array beside it.

    Args:
        a (ArrayLike): Left operand.
        b (ArrayLike): Right operand.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape that `a` and `b` are broadcast to.

    Raises:
        ValueError: If the shapes cannot be broadcast.

    Example:
        >>> mx.logaddexp(mx.array([0.0, 100.0]), 100)
        array([100, 100.693], dtype=float32)
    """

def logcumsumexp(
    a: array,
    /,
    axis: int | None = None,
    *,
    reverse: bool = False,
    inclusive: bool = True,
    dtype: Dtype | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Computes the logarithm of the running sum of exponentials, without overflow.

    Integers and bools give float32.

    Args:
        a (array): Array of any shape.
        axis (int | None): Axis to run along; by default the array is flattened.
        reverse (bool): Runs from the end to the start.
        inclusive (bool): Includes the element itself; else the first result is that of nothing.
        dtype (Dtype | None): Dtype to convert to first.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`, or flattened.

    Raises:
        IndexError: If the axis is out of range.

    Example:
        >>> mx.logcumsumexp(mx.array([0.0, 0.0, 0.0]))
        array([0, 0.693147, 1.09861], dtype=float32)
    """

def logical_and(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Tests where both `a` and `b` are non-zero; bools.

    Shapes are broadcast and dtypes promoted; a number takes the dtype of the array beside it.

    Args:
        a (ArrayLike): Left operand.
        b (ArrayLike): Right operand.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape that `a` and `b` are broadcast to.

    Raises:
        ValueError: If the shapes cannot be broadcast.

    Example:
        >>> mx.logical_and(mx.array([0, 1, 2]), True)
        array([False, True, True], dtype=bool)
    """

def logical_not(a: ArrayLike, /, stream: StreamOrDevice = None) -> array:
    """Tests where elements are zero: bools, True for 0 and False.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`.

    Example:
        >>> mx.logical_not(mx.array([0, 1, 2]))
        array([True, False, False], dtype=bool)
    """

def logical_or(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Tests where `a` or `b` or both are non-zero; bools.

    Shapes are broadcast and dtypes promoted; a number takes the dtype of the array beside it.

    Args:
        a (ArrayLike): Left operand.
        b (ArrayLike): Right operand.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape that `a` and `b` are broadcast to.

    Raises:
        ValueError: If the shapes cannot be broadcast.

    Example:
        >>> mx.logical_or(mx.array([0, 1, 2]), False)
        array([False, True, True], dtype=bool)
    """

def logical_xor(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Tests where exactly one of `a` and `b` is non-zero; bools.

    Shapes are broadcast and dtypes promoted; a number takes the dtype of the array beside it.

    Args:
        a (ArrayLike): Left operand.
        b (ArrayLike): Right operand.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape that `a` and `b` are broadcast to.

    Raises:
        ValueError: If the shapes cannot be broadcast.

    Example:
        >>> mx.logical_xor(mx.array([0, 1, 2]), True)
        array([True, False, False], dtype=bool)
    """

def logsumexp(
    a: array,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """Computes the logarithm of the sum of exponentials, without overflow.

    Integers and bools give float32.

    Args:
        a (array): Array to reduce.
        axis (int | Sequence[int] | None): Axes to reduce; by default all of them.
        keepdims (bool): Keeps the reduced axes, with size 1.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results without the reduced axes.

    Raises:
        IndexError: If an axis is out of range.

    Example:
        >>> mx.logsumexp(mx.array([[0.0, 0.0], [1000.0, 0.0]]), axis=1)
        array([0.693147, 1000], dtype=float32)
    """

def matmul(a: array, b: array, /, *, stream: StreamOrDevice = None) -> array:
    """Multiplies matrices in the last two axes; other axes are broadcast.

    A vector on the left is a row and one on the right a column, whose axis the result lacks.

    Args:
        a (array): Array of the shape (..., m, k) or (k,), of floats or complex numbers.
        b (array): Array of the shape (..., k, n) or (k,).
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Array of the shape (..., m, n), in the promoted dtype.

    Raises:
        ValueError: If an array has no dimensions, inner sizes differ, batches cannot be
            broadcast, or both are integers.

    Example:
        >>> mx.matmul(mx.array([[1.0, 2.0]]), mx.array([[3.0], [4.0]]))
        array([[11]], dtype=float32)
    """

def matmul_precision(precision: Literal["highest", "high", "medium"]) -> PrecisionContext:
    """Returns a context manager in which this thread's products of float32 have a precision, on all devices.

    Args:
        precision (Literal["highest", "high", "medium"]): Precision; see `set_matmul_precision`.

    Returns:
        PrecisionContext: Context manager.

    Example:
        >>> with mx.matmul_precision("high"):
        ...     mx.get_matmul_precision()
        'high'
    """

def matrix_norm(
    a: array,
    /,
    ord: int | float | str | None = None,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """Computes norms of vectors along one axis, or of matrices along two.

    `ord` is None for the root of the sum of squares. Vectors have 1, 2, inf, -inf and any other
    number p; matrices have 1, -1, 2, -2, inf, -inf, "fro" (Frobenius) and "nuc" (nuclear).

    Args:
        a (array): Array of any shape.
        ord (int | float | str | None): Order of the norm.
        axis (int | Sequence[int] | None): One axis for vectors, two for matrices; by default
            the whole array: flattened, if `ord` is None.
        keepdims (bool): Keeps the axes, with size 1.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Norms; float32 for integers, bools and complex numbers.

    Raises:
        IndexError: If an axis is out of range.
        ValueError: If there are more than two axes, or vectors or matrices have no such order.

    Example:
        >>> mx.linalg.norm(mx.array([3.0, 4.0]))
        array(5, dtype=float32)
    """

def matrix_transpose(a: array, /, *, stream: StreamOrDevice = None) -> array:
    """Exchanges the last two axes.

    Args:
        a (array): Array of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: View with the axes exchanged.

    Raises:
        IndexError: If an axis is out of range.
        ValueError: If the shape, or the number of dimensions, does not fit.

    Example:
        >>> mx.matrix_transpose(mx.ones((5, 2, 3))).shape
        (5, 3, 2)
    """

def max(
    a: array,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """Finds the largest element; NaN if there is one.

    A reduction of no elements raises a ValueError.

    Args:
        a (array): Array to reduce.
        axis (int | Sequence[int] | None): Axes to reduce; by default all of them.
        keepdims (bool): Keeps the reduced axes, with size 1.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results without the reduced axes.

    Raises:
        IndexError: If an axis is out of range.

    Example:
        >>> mx.max(mx.array([[1, 2], [4, 3]]), axis=1)
        array([2, 4], dtype=int32)
    """

def maximum(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Returns the larger of `a` and `b` elementwise; NaN where either is NaN.

    Shapes are broadcast and dtypes promoted; a number takes the dtype of the array beside it.

    Args:
        a (ArrayLike): Left operand.
        b (ArrayLike): Right operand.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape that `a` and `b` are broadcast to.

    Raises:
        ValueError: If the shapes cannot be broadcast.

    Example:
        >>> mx.maximum(mx.array([1, 5]), 3)
        array([3, 5], dtype=int32)
    """

def mean(
    a: array,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """Averages elements.

    Integers and bools give float32.

    Args:
        a (array): Array to reduce.
        axis (int | Sequence[int] | None): Axes to reduce; by default all of them.
        keepdims (bool): Keeps the reduced axes, with size 1.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results without the reduced axes.

    Raises:
        IndexError: If an axis is out of range.

    Example:
        >>> mx.mean(mx.array([[1, 2], [3, 4]]), axis=1)
        array([1.5, 3.5], dtype=float32)
    """

def median(
    a: array,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """Computes the median: the middle element, or the mean of the two middle ones.

    Args:
        a (array): Array to reduce.
        axis (int | Sequence[int] | None): Axes to reduce; by default all of them.
        keepdims (bool): Keeps the reduced axes, with size 1.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Medians; float32 for integers and bools.

    Raises:
        IndexError: If an axis is out of range.
        ValueError: If there are no elements.

    Example:
        >>> mx.median(mx.array([4, 1, 3, 2]))
        array(2.5, dtype=float32)
    """

def meshgrid(
    *arrays: array, sparse: bool = False, indexing: str = "xy", stream: StreamOrDevice = None
) -> tuple[array, ...]:
    """Creates the coordinates of the grid that vectors span.

    Args:
        *arrays (array): Vectors; other arrays are flattened.
        sparse (bool): Leaves axes at size 1 along which a coordinate does not change.
        indexing (str): "xy" for the order of plots, in which the first two axes are exchanged;
            "ij" for that of matrices.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        tuple[array, ...]: One array for each vector, with an axis for each vector.

    Raises:
        ValueError: If `indexing` is another word.

    Example:
        >>> mx.meshgrid(mx.arange(2), mx.arange(2), indexing="ij")[0]
        array([[0, 0],
               [1, 1]], dtype=int32)
    """

def min(
    a: array,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """Finds the smallest element; NaN if there is one.

    A reduction of no elements raises a ValueError.

    Args:
        a (array): Array to reduce.
        axis (int | Sequence[int] | None): Axes to reduce; by default all of them.
        keepdims (bool): Keeps the reduced axes, with size 1.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results without the reduced axes.

    Raises:
        IndexError: If an axis is out of range.

    Example:
        >>> mx.min(mx.array([[1, 2], [4, 3]]), axis=1)
        array([1, 3], dtype=int32)
    """

def minimum(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Returns the smaller of `a` and `b` elementwise; NaN where either is NaN.

    Shapes are broadcast and dtypes promoted; a number takes the dtype of the array beside it.

    Args:
        a (ArrayLike): Left operand.
        b (ArrayLike): Right operand.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape that `a` and `b` are broadcast to.

    Raises:
        ValueError: If the shapes cannot be broadcast.

    Example:
        >>> mx.minimum(mx.array([1, 5]), 3)
        array([1, 3], dtype=int32)
    """

def minmax(
    a: array,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    stream: StreamOrDevice = None,
) -> tuple[array, array]:
    """Finds the smallest and the largest element; both are NaN if there is one.

    Args:
        a (array): Array to reduce.
        axis (int | Sequence[int] | None): Axes to reduce; by default all of them.
        keepdims (bool): Keeps the reduced axes, with size 1.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        tuple[array, array]: Smallest and largest elements, in the dtype of `a`.

    Raises:
        IndexError: If an axis is out of range.
        ValueError: If there are no elements.

    Example:
        >>> mx.minmax(mx.array([3, 1, 2]))
        (array(1, dtype=int32), array(3, dtype=int32))
    """

def moveaxis(a: array, /, source: int, destination: int, *, stream: StreamOrDevice = None) -> array:
    """Moves an axis to another position. The others keep their order.

    Args:
        a (array): Array of any shape.
        source (int): Axis to move.
        destination (int): Position of the axis in the result.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: View with the axis moved.

    Raises:
        IndexError: If an axis is out of range.
        ValueError: If the shape, or the number of dimensions, does not fit.

    Example:
        >>> mx.moveaxis(mx.ones((2, 3, 4)), 0, 2).shape
        (3, 4, 2)
    """

def multiply(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Multiplies two arrays elementwise.

    Shapes are broadcast and dtypes promoted; a number takes the dtype of the array beside it.

    Args:
        a (ArrayLike): Left operand.
        b (ArrayLike): Right operand.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape that `a` and `b` are broadcast to.

    Raises:
        ValueError: If the shapes cannot be broadcast.

    Example:
        >>> mx.multiply(mx.array([1, 2]), mx.array([3.0, 0.5]))
        array([3, 1], dtype=float32)
    """

def nan_to_num(
    a: ArrayLike,
    nan: float = 0.0,
    posinf: float | None = None,
    neginf: float | None = None,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """Replaces NaN and infinities by numbers. Integers and bools stay as they are.

    Args:
        a (ArrayLike): Array or number of any shape.
        nan (float): Replaces NaN.
        posinf (float | None): Replaces positive infinity; by default the largest finite number
            of the dtype.
        neginf (float | None): Replaces negative infinity; by default the lowest finite number
            of the dtype.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Elements in the dtype of `a`.

    Raises:
        ValueError: If the elements are complex.

    Example:
        >>> mx.nan_to_num(mx.array([1.0, mx.nan]))
        array([1, 0], dtype=float32)
    """

def negative(a: ArrayLike, /, stream: StreamOrDevice = None) -> array:
    """Computes the negative of each element. Bools raise a ValueError: see `logical_not`.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`.

    Example:
        >>> mx.negative(mx.array([1, -2]))
        array([-1, 2], dtype=int32)
    """

def new_stream(device: Device | DeviceType) -> Stream:
    """Makes a new stream on a device. Any thread may use it.

    When nothing refers to the stream any more it is given back, and a later call may return it
    again. Work that it was given is done, and arrays that are to be computed there are, too.

    Args:
        device (Device | DeviceType): Device of the stream.

    Returns:
        Stream: The stream.

    Raises:
        ValueError: If there is no such device.

    Example:
        >>> s = mx.new_stream(mx.cpu)
        >>> mx.add(1, 2, stream=s)
        array(3, dtype=int32)
    """

def new_thread_local_stream(device: Device | DeviceType) -> ThreadLocalStream:
    """Makes a stream of each thread's own on a device.

    Args:
        device (Device | DeviceType): Device of the streams.

    Returns:
        ThreadLocalStream: The stream, which each thread that uses it has for itself.

    Raises:
        ValueError: If there is no such device.

    Example:
        >>> stream = mx.new_thread_local_stream(mx.cpu)
        >>> mx.add(1, 2, stream=stream)
        array(3, dtype=int32)
    """

def not_equal(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Tests `a != b` elementwise; bools. NaN differs from everything.

    Shapes are broadcast and dtypes promoted; a number takes the dtype of the array beside it.

    Args:
        a (ArrayLike): Left operand.
        b (ArrayLike): Right operand.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape that `a` and `b` are broadcast to.

    Raises:
        ValueError: If the shapes cannot be broadcast.

    Example:
        >>> mx.not_equal(mx.array([1, 2, 3]), 2)
        array([True, False, True], dtype=bool)
    """

def ones(
    shape: int | Sequence[int],
    dtype: Dtype | None = None,
    *,
    stream: StreamOrDevice = None,
    device: Device | DeviceType | None = None,
) -> array:
    """Creates an array of ones.

    Args:
        shape (int | Sequence[int]): Sizes of the dimensions.
        dtype (Dtype | None): Dtype of the result; float32 by default.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.
        device (Device | DeviceType | None): Device to run on, in place of `stream`.

    Returns:
        array: New array.

    Raises:
        ValueError: If a size is negative, or the whole is too large.

    Example:
        >>> mx.ones(3)
        array([1, 1, 1], dtype=float32)
    """

def ones_like(
    a: array,
    /,
    dtype: Dtype | None = None,
    *,
    stream: StreamOrDevice = None,
    device: Device | DeviceType | None = None,
) -> array:
    """Creates an array of ones in the shape of another.

    Args:
        a (array): Array that gives the shape.
        dtype (Dtype | None): Dtype of the result; by default that of `a`.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.
        device (Device | DeviceType | None): Device to run on, in place of `stream`.

    Returns:
        array: New array.

    Example:
        >>> mx.ones_like(mx.array([[1, 2, 3]]), mx.float16)
        array([[1, 1, 1]], dtype=float16)
    """

def outer(a: array, b: array, /, *, stream: StreamOrDevice = None) -> array:
    """Multiplies all elements of one array with all elements of another.

    Args:
        a (array): Array that is flattened: the rows.
        b (array): Array that is flattened: the columns.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Matrix of the shape (a.size, b.size).

    Example:
        >>> mx.outer(mx.array([1, 2]), mx.array([3, 4]))
        array([[3, 4],
               [6, 8]], dtype=int32)
    """

def pad(
    a: array,
    pad_width: int | Sequence[int] | Sequence[Sequence[int]],
    mode: Literal["constant", "edge", "reflect", "symmetric"] = "constant",
    constant_values: ArrayLike = 0,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """Adds elements before and after each axis.

    Args:
        a (array): Array of any shape.
        pad_width (int | Sequence[int] | Sequence[Sequence[int]]): One width for all, a pair
            (before, after) for all axes, or a pair for each axis.
        mode (Literal["constant", "edge", "reflect", "symmetric"]): New elements: "constant",
            the "edge", or the mirror image without ("reflect") or with ("symmetric") the edge.
        constant_values (ArrayLike): Value of new elements for the mode "constant".
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Padded array.

    Raises:
        ValueError: If a width is negative, the widths do not fit the axes, or the mode is
            another word.

    Example:
        >>> mx.pad(mx.array([1, 2, 3]), (1, 2), mode="reflect")
        array([2, 1, 2, 3, 2, 1], dtype=int32)
    """

def partition(
    a: array, /, kth: int, axis: int | None = -1, *, stream: StreamOrDevice = None
) -> array:
    """Rearranges elements so that element `kth` is where sorting would put it.

    Smaller or equal elements come before it and larger or equal ones behind it, in no
    particular order.

    Args:
        a (array): Array of any shape.
        kth (int): Index of the element; negative ones count from the end.
        axis (int | None): Axis to sort along; None for the flattened array.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results along the axis, or flattened.

    Raises:
        IndexError: If the axis is out of range.
        ValueError: If the number is out of range.

    Example:
        >>> mx.partition(mx.array([3, 1, 2]), 1)[1]
        array(2, dtype=int32)
    """

def permute_dims(
    a: array, /, axes: Sequence[int] | None = None, *, stream: StreamOrDevice = None
) -> array:
    """Puts the axes into another order; another name of `transpose`.

    Args:
        a (array): Array of any shape.
        axes (Sequence[int] | None): The axes of `a` in their new order; by default they are
            reversed.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: View with the axes in that order.

    Raises:
        IndexError: If an axis is out of range.
        ValueError: If the shape, or the number of dimensions, does not fit.

    Example:
        >>> mx.permute_dims(mx.ones((2, 3, 4)), (1, 0, 2)).shape
        (3, 2, 4)
    """

def positive(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Returns the array itself: the unary plus.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`.

    Example:
        >>> mx.positive(mx.array([1, -2]))
        array([1, -2], dtype=int32)
    """

def power(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Raises `a` to the power of `b` elementwise, in the promoted dtype.

    Shapes are broadcast and dtypes promoted; a number takes the dtype of the array beside it.

    Args:
        a (ArrayLike): Left operand.
        b (ArrayLike): Right operand.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape that `a` and `b` are broadcast to.

    Raises:
        ValueError: If the shapes cannot be broadcast.

    Example:
        >>> mx.power(mx.array([2, 3]), 2)
        array([4, 9], dtype=int32)
    """

def printoptions(precision: int = -1) -> _PrintOptionsContext:
    """Returns a context manager in which numbers are printed with other options.

    Args:
        precision (int): Digits behind the decimal point; -1 for six digits in all.

    Returns:
        _PrintOptionsContext: Context manager.

    Example:
        >>> with mx.printoptions(precision=2):
        ...     print(mx.array(3.14159))
        array(3.14, dtype=float32)
    """

def prod(
    a: array,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """Multiplies elements.

    Bools and integers of less than 32 bits are multiplied as int32, unsigned ones as uint32.
    The product of nothing is 1.

    Args:
        a (array): Array to reduce.
        axis (int | Sequence[int] | None): Axes to reduce; by default all of them.
        keepdims (bool): Keeps the reduced axes, with size 1.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results without the reduced axes.

    Raises:
        IndexError: If an axis is out of range.

    Example:
        >>> mx.prod(mx.array([[1, 2], [3, 4]]), axis=1)
        array([2, 12], dtype=int32)
    """

def profile() -> Profile:
    """Returns a context manager that records what evaluations run: each operation with its shapes, device, means, bytes
    and time.

    Devices note the times themselves where their backend can, so that nothing waits for them. One profile runs at a time
    in a process. Evaluate what is to be recorded inside: lazy arrays that are evaluated later are not.

    Returns:
        Profile: Context manager, which has the table, the events and the trace file when it has ended.

    Example:
        >>> with mx.profile() as p:
        ...     mx.eval(mx.exp(mx.array([1.0, 2.0])) + 1)
        >>> [(e["fused"], e["dispatch"]) for e in p.events()]
        [(['exp', 'add'], 'native')]
    """

def put_along_axis(
    a: array,
    /,
    indices: array,
    values: array,
    axis: int | None = None,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """Replaces elements at indices that differ for each line along an axis.

    Values for indices out of bounds are dropped; in a process that started with
    `ULTRAMARINE_VALIDATE=1` they are an IndexError when the result is evaluated.

    Args:
        a (array): Array of any shape.
        indices (array): Integers of as many dimensions as `a`; other axes are broadcast.
        values (array): New elements, broadcast to the shape of the indices.
        axis (int | None): Axis to index; None for the flattened array.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Copy of `a` with the elements replaced.

    Raises:
        IndexError: If the axis is out of range.
        ValueError: If the numbers of dimensions differ.

    Example:
        >>> mx.put_along_axis(mx.zeros((2, 2)), mx.array([[1], [0]]), mx.array(5.0), axis=1)
        array([[0, 5],
               [5, 0]], dtype=float32)
    """

def qqmm(
    x: array,
    w: array,
    scales: array | None = None,
    group_size: int | None = None,
    bits: int | None = None,
    mode: str = "nvfp4",
    global_scale_x: array | None = None,
    global_scale_w: array | None = None,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """Multiplies with both factors rounded to floats of few bits: `x @ w.T`.

    `w` is what `quantize` gives of the same mode, or floats, which are rounded, too. The gradients by
    factors that are rounded here are those of the product of the rounded ones.

    Args:
        x (array): Array of the shape (..., m, k) or (k): float32, float16 or bfloat16.
        w (array): Words of a matrix (n, k), or floats of that shape.
        scales (array | None): Scales of the groups, if `w` is words.
        group_size (int | None): Elements that share a scale; by default the mode's.
        bits (int | None): Bits of an element; by default the mode's.
        mode (str): What the bits mean: `"nvfp4"`, `"mxfp8"` or `"mxfp4"`; see `quantize`.
        global_scale_x (array | None): Scale of all elements of `x`, of nvfp4 alone: float32, of one element.
        global_scale_w (array | None): That of `w`; either both have one or neither has.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Array of the shape (..., m, n), or (n) for a vector, in the dtype of `x`.

    Raises:
        ValueError: If operands have other dtypes, `w` is no matrix, words and scales do not fit each
            other or the mode, inner sizes differ or are no multiple of the group size, or there is one
            global scale.

    Example:
        >>> mx.qqmm(mx.ones((1, 32)), mx.ones((2, 32)), mode="mxfp8")
        array([[32, 32]], dtype=float32)
    """

def quantize(
    w: array,
    /,
    group_size: int | None = None,
    bits: int | None = None,
    mode: str = "affine",
    global_scale: array | None = None,
    *,
    stream: StreamOrDevice = None,
) -> tuple[array, array, array]:
    """Rounds the rows of matrices to numbers of few bits.

    A group of `group_size` elements of a row shares a scale. Words hold the elements of a row one
    after the other, from the lowest bits on. The modes are:

    * `affine`: integers q of 1, 2, 3, 4, 5, 6 or 8 bits (by default 4) in groups of 32, 64 or 128 (by
      default 64), which stand for scale * q + bias; scales and biases have the dtype of `w`.
    * `mxfp4`: floats of 4 bits (E2M1) in groups of 32, whose scale is a power of 2: its exponent plus
      127, as uint8.
    * `mxfp8`: floats of 8 bits (E4M3), the rest as of mxfp4.
    * `nvfp4`: floats of 4 bits (E2M1) in groups of 16, whose scale is a float of 8 bits (E4M3), as
      uint8, and maybe a global scale: the largest magnitude of all elements.

    Args:
        w (array): Array of the shape (..., n, k), of real floats.
        group_size (int | None): Elements that share a scale, of which k is a multiple; by default the mode's.
        bits (int | None): Bits of an element; by default the mode's.
        mode (str): What the bits mean: `"affine"`, `"mxfp4"`, `"mxfp8"` or `"nvfp4"`.
        global_scale (array | None): Scale of all elements, of nvfp4 alone: float32, of one element.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        tuple[array, array, array]: Words, uint32, of the shape (..., n, k * bits / 32); scales of the
            shape (..., n, k / group_size); and biases of the same shape, of affine alone: of other modes
            it is a tuple of two.

    Raises:
        ValueError: If the array is none of real floats with two axes or more, k is not a multiple of the
            group size, the mode has no such sizes, or the global scale is none.

    Example:
        >>> w_q, scales, biases = mx.quantize(mx.arange(64.0)[None], bits=8)
        >>> w_q.shape, scales.shape
        ((1, 16), (1, 1))
    """

def quantized_matmul(
    x: array,
    w: array,
    /,
    scales: array,
    biases: array | None = None,
    transpose: bool = True,
    group_size: int | None = None,
    bits: int | None = None,
    mode: str = "affine",
    *,
    stream: StreamOrDevice = None,
) -> array:
    """Multiplies by a matrix of few bits: `x @ w.T`, or `x @ w` without `transpose`.

    The matrix is not written out. Leading axes are broadcast with each other.

    Args:
        x (array): Array of the shape (..., m, k) or (k), of real floats (of affine any real numbers).
        w (array): Words, as of `quantize`, of a matrix (..., n, k), or (..., k, n) without `transpose`.
        scales (array): Scales of the groups.
        biases (array | None): Biases of the groups, of affine alone.
        transpose (bool): Multiplies by the transposed matrix.
        group_size (int | None): Elements that share a scale; by default the mode's.
        bits (int | None): Bits of an element; by default the mode's.
        mode (str): What the bits mean; see `quantize`.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Array of the shape (..., m, n), or (..., n) for a vector, in the dtype that `x`, scales and
            biases promote to.

    Raises:
        ValueError: If operands have other dtypes, words, scales and biases do not fit each other or the
            mode, inner sizes differ, or shapes cannot be broadcast.

    Example:
        >>> w_q, scales, biases = mx.quantize(mx.ones((2, 64)))
        >>> mx.quantized_matmul(mx.ones((1, 64)), w_q, scales, biases)
        array([[64, 64]], dtype=float32)
    """

def radians(a: ArrayLike, /, stream: StreamOrDevice = None) -> array:
    """Converts angles from degrees to radians.

    Integers and bools give float32.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`.

    Example:
        >>> mx.radians(mx.array([0.0, 180.0]))
        array([0, 3.14159], dtype=float32)
    """

def real(a: ArrayLike, /, stream: StreamOrDevice = None) -> array:
    """Returns the real part of each element.

    Complex numbers give float32; other arrays stay as they are.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`.

    Example:
        >>> mx.real(mx.array([1 + 2j, 3.0]))
        array([1, 3], dtype=float32)
    """

def reciprocal(a: ArrayLike, /, stream: StreamOrDevice = None) -> array:
    """Computes one over each element.

    Zero gives infinity. Integers and bools give float32.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`.

    Example:
        >>> mx.reciprocal(mx.array([0.5, -4.0]))
        array([2, -0.25], dtype=float32)
    """

def remainder(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Computes the remainder of dividing `a` by `b` elementwise.

    It has the sign of `b`, as Python's `%`. Complex numbers raise a ValueError.

    Shapes are broadcast and dtypes promoted; a number takes the dtype of the array beside it.

    Args:
        a (ArrayLike): Left operand.
        b (ArrayLike): Right operand.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape that `a` and `b` are broadcast to.

    Raises:
        ValueError: If the shapes cannot be broadcast.

    Example:
        >>> mx.remainder(mx.array([7, -7]), 3)
        array([1, 2], dtype=int32)
    """

def repeat(
    array: array, repeats: int, axis: int | None = None, *, stream: StreamOrDevice = None
) -> array:
    """Repeats each element a number of times.

    Args:
        array (array): Array of any shape.
        repeats (int): Number of times.
        axis (int | None): Axis to repeat along; by default the array is flattened.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Array whose axis is `repeats` times as long.

    Raises:
        IndexError: If the axis is out of range.
        ValueError: If `repeats` is negative.

    Example:
        >>> mx.repeat(mx.array([1, 2]), 2)
        array([1, 1, 2, 2], dtype=int32)
    """

def reset_peak_memory(device: Device | DeviceType | None = None) -> None:
    """Starts the measurement of `get_peak_memory` afresh.

    Args:
        device (Device | DeviceType | None): Device; by default all devices.

    Example:
        >>> former = mx.get_peak_memory()
        >>> mx.reset_peak_memory()
        >>> mx.get_peak_memory() <= former
        True
    """

def reshape(a: array, /, shape: Sequence[int], *, stream: StreamOrDevice = None) -> array:
    """Gives the elements, in row-major order, another shape.

    Args:
        a (array): Array of any shape.
        shape (Sequence[int]): Sizes; one may be -1 and follows from the others.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Array of that shape; a view where strides allow it.

    Raises:
        IndexError: If an axis is out of range.
        ValueError: If the shape, or the number of dimensions, does not fit.

    Example:
        >>> mx.reshape(mx.arange(6), (2, -1))
        array([[0, 1, 2],
               [3, 4, 5]], dtype=int32)
    """

def result_type(*arrays_and_dtypes: array | Dtype) -> Dtype:
    """Computes the dtype that arrays and dtypes promote to together.

    Args:
        *arrays_and_dtypes (array | Dtype): Arrays and dtypes, one at least.

    Returns:
        Dtype: The promoted dtype.

    Raises:
        ValueError: If there are no arguments, or one is neither an array nor a dtype.

    Example:
        >>> mx.result_type(mx.int32, mx.float16)
        ultramarine.float16
    """

def right_shift(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Shifts the bits of `a` to the right by `b` places elementwise, of integers.

    Bools count as uint8. Other dtypes raise a RuntimeError.

    Shapes are broadcast and dtypes promoted; a number takes the dtype of the array beside it.

    Args:
        a (ArrayLike): Left operand.
        b (ArrayLike): Right operand.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape that `a` and `b` are broadcast to.

    Raises:
        ValueError: If the shapes cannot be broadcast.

    Example:
        >>> mx.right_shift(mx.array([8, 5]), 1)
        array([4, 2], dtype=int32)
    """

def roll(
    a: array,
    /,
    shift: int | Sequence[int],
    axis: int | Sequence[int] | None = None,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """Moves elements along axes by a number of positions, those beyond the end to the front.

    Args:
        a (array): Array of any shape.
        shift (int | Sequence[int]): Number of positions, for all axes or for each; those
            for one axis add up.
        axis (int | Sequence[int] | None): Axes to move along; by default the array is
            flattened and gets its shape back.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Moved elements in the shape of `a`.

    Raises:
        IndexError: If an axis is out of range.
        ValueError: If the shape, or the number of dimensions, does not fit.

    Example:
        >>> mx.roll(mx.arange(5), 2)
        array([3, 4, 0, 1, 2], dtype=int32)
    """

def round(a: ArrayLike, /, decimals: int = 0, stream: StreamOrDevice = None) -> array:
    """Rounds each element to a number of decimals, halves to even.

    Args:
        a (ArrayLike): Array or number of any shape.
        decimals (int): Digits behind the decimal point; negative ones round to tens, hundreds
            and so on.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Rounded elements in the dtype of `a`.

    Raises:
        ValueError: If `decimals` does not fit into 32 bits.

    Example:
        >>> mx.round(mx.array([0.5, 1.5, 2.345]), 1)
        array([0.5, 1.5, 2.3], dtype=float32)
    """

def rsqrt(a: ArrayLike, /, stream: StreamOrDevice = None) -> array:
    """Computes the reciprocal of the square root of each element.

    Zero gives infinity and negative numbers give NaN. Integers and bools give float32.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`.

    Example:
        >>> mx.rsqrt(mx.array([0.25, 4.0]))
        array([2, 0.5], dtype=float32)
    """

def save(file: _Path, arr: array) -> None:
    """Saves an array in NumPy's format `.npy`.

    Args:
        file (Path): Path, to which `.npy` is added if it lacks it; or a binary file object.
        arr (array): Array to save, which is evaluated.

    Raises:
        RuntimeError: If the file cannot be written.
        ValueError: If `file` is neither a path nor a file object.

    Example:
        >>> mx.save("x.npy", mx.arange(3))
        >>> mx.load("x.npy")
        array([0, 1, 2], dtype=int32)
    """

def save_gguf(
    file: _Path,
    arrays: Mapping[str, array],
    metadata: Mapping[str, array | str | bytes | list[Any]] | None = None,
) -> None:
    """Saves named arrays and metadata in the format `.gguf`.

    Quantised arrays, as `load` gives them, are saved as blocks without loss: words of uint32 with
    `.scales` and `.biases` of float16 beside them, of 4, 5 or 8 bits and group size 32.

    Args:
        file (Path): Path, to which `.gguf` is added if it lacks it; or a binary file object.
        arrays (Mapping[str, array]): Arrays by name: of floats but complex64, int8, int16, int32 or
            int64.
        metadata (Mapping[str, array | str | bytes | list[Any]] | None): Values by name: arrays of at most
            one axis, text, or lists.

    Raises:
        RuntimeError: If the format cannot hold an array or a value, or the file cannot be written.
        ValueError: If metadata has an array of a dtype that it cannot have, or `file` is neither a
            path nor a file object.

    Example:
        >>> mx.save_gguf("weights.gguf", {"w": mx.ones(2)}, {"general.name": "small"})
        >>> mx.load("weights.gguf")["w"]
        array([1, 1], dtype=float32)
    """

def save_safetensors(
    file: _Path, arrays: Mapping[str, array], metadata: Mapping[str, str] | None = None
) -> None:
    """Saves named arrays in the format `.safetensors`.

    Args:
        file (Path): Path, to which `.safetensors` is added if it lacks it; or a binary file
            object.
        arrays (Mapping[str, array]): Arrays by name.
        metadata (Mapping[str, str] | None): Text by name, saved with the arrays.

    Raises:
        RuntimeError: If the file cannot be written.
        ValueError: If metadata is not text, or `file` is neither a path nor a file object.

    Example:
        >>> mx.save_safetensors("w.safetensors", {"w": mx.ones(2)})
        >>> mx.load("w.safetensors")["w"]
        array([1, 1], dtype=float32)
    """

def savez(file: _Path, *args: array, **kwargs: array) -> None:
    """Saves arrays in NumPy's archive format `.npz`.

    Args:
        file (Path): Path, to which `.npz` is added if it lacks it; or a binary file object.
        *args (array): Arrays, which are named `arr_0` and so on.
        **kwargs (array): Arrays by name.

    Raises:
        RuntimeError: If the file cannot be written.
        ValueError: If two arrays have one name, or `file` is neither a path nor a file object.

    Example:
        >>> mx.savez("pair.npz", mx.arange(2), b=mx.ones(1))
        >>> sorted(mx.load("pair.npz"))
        ['arr_0', 'b']
    """

def savez_compressed(file: _Path, *args: array, **kwargs: array) -> None:
    """Saves arrays in NumPy's archive format `.npz`, compressed.

    Args:
        file (Path): Path, to which `.npz` is added if it lacks it; or a binary file object.
        *args (array): Arrays, which are named `arr_0` and so on.
        **kwargs (array): Arrays by name.

    Raises:
        RuntimeError: If the file cannot be written.
        ValueError: If two arrays have one name, or `file` is neither a path nor a file object.

    Example:
        >>> mx.savez_compressed("pair.npz", a=mx.arange(2), b=mx.ones(1))
        >>> mx.load("pair.npz")["a"]
        array([0, 1], dtype=int32)
    """

def searchsorted(
    sorted_sequence: array,
    values: array,
    /,
    side: Literal["left", "right"] = "left",
    *,
    stream: StreamOrDevice = None,
) -> array:
    """Finds where values go into a sorted array so that it stays sorted.

    Args:
        sorted_sequence (array): One dimension, ascending, NaN last.
        values (array): Values of any shape; both are compared in their promoted dtype.
        side (Literal["left", "right"]): An index counts the elements that are less than the
            value ("left") or less or equal ("right").
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Indices as uint32, in the shape of `values`.

    Raises:
        ValueError: If the sequence has not exactly one dimension, or `side` is another word.

    Example:
        >>> mx.searchsorted(mx.array([1, 3, 5]), mx.array([3, 9]))
        array([1, 3], dtype=uint32)
    """

def segmented_mm(a: array, b: array, /, segments: array, *, stream: StreamOrDevice = None) -> array:
    """Multiplies matrices over segments of the inner dimension, each for itself.

    Args:
        a (array): Array of the shape (m, k), of real floats.
        b (array): Array of the shape (k, n), of real floats.
        segments (array): Integers of the shape (..., 2): the start of each segment and its end, which
            is not part of it.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Array of the shape (..., m, n), in the promoted dtype.

    Raises:
        ValueError: If an operand is no matrix of real floats, inner sizes differ, or segments are no
            pairs of integers.

    Example:
        >>> a = mx.array([[1.0, 2.0, 3.0]])
        >>> mx.segmented_mm(a, mx.ones((3, 1)), mx.array([[0, 2], [2, 3]])).tolist()
        [[[3.0]], [[3.0]]]
    """

def set_cache_limit(limit: int, device: Device | DeviceType | None = None) -> int:
    """Sets the number of bytes of freed memory that may be kept for reuse.

    That of the CPU also limits the copies that reading arrays of other devices (`item`,
    printing, `tolist`) leaves in its memory; the oldest go first.

    Args:
        limit (int): Number of bytes; 0 keeps nothing.
        device (Device | DeviceType | None): Device; by default each device of the one backend
            that serves accelerators, or the CPU where there is none.

    Returns:
        int: The former limit.

    Raises:
        TypeError: If the limit is no number of bytes.

    Example:
        >>> former = mx.set_cache_limit(2**20)
        >>> mx.set_cache_limit(former) == 2**20
        True
    """

def set_default_device(device: Device | DeviceType) -> None:
    """Sets the default device.

    Args:
        device (Device | DeviceType): Device that operations use from now on.

    Raises:
        ValueError: If there is no such device.

    Example:
        >>> former = mx.default_device()
        >>> mx.set_default_device(mx.cpu)
        >>> mx.default_device()
        Device(cpu, 0)
        >>> mx.set_default_device(former)
    """

def set_default_stream(stream: Stream) -> None:
    """Makes a stream the default one of its device.

    Threads that already used the former one keep it until they change device. The stream is kept
    to the end of the process.

    Args:
        stream (Stream): Stream.

    Example:
        >>> former = mx.default_stream(mx.cpu)
        >>> mx.set_default_stream(mx.new_stream(mx.cpu))
        >>> mx.set_default_stream(former)
    """

def set_deterministic(on: bool, /, *, device: Device | DeviceType | None = None) -> bool:
    """Sets whether equal calls have to give equal bits, in all threads.

    It holds for operations that are called from now on, for their derivatives, and for functions that are compiled from now on.
    An operation whose bits may depend on the order of its work, on a device that does not say that they do not, is then an error
    that names both, when its result is computed. Those of the CPU and of CUDA have equal bits always. Kernels of your own are not
    concerned. The first setting is off; ``ULTRAMARINE_DETERMINISTIC=1`` is on.

    Args:
        on (bool): Whether they have to.
        device (Device | DeviceType | None): Device it is for. Default: all devices.

    Returns:
        bool: The former setting.

    Example:
        >>> former = mx.set_deterministic(True)
        >>> mx.get_deterministic()
        True
        >>> mx.set_deterministic(former)
        True
    """

def set_matmul_precision(
    precision: Literal["highest", "high", "medium"], /, *, device: Device | DeviceType | None = None
) -> Literal["highest", "high", "medium"]:
    """Sets how exactly matrix products and convolutions of float32 are made, in all threads.

    It holds for operations that are called from now on, for their derivatives, and for functions that are compiled
    from now on. It says what is allowed: a device that is no faster with less stays more exact, as the CPU does. Sums
    are in float32, and other dtypes are not concerned. The first setting is "highest"; the environment can name
    another (``ULTRAMARINE_MATMUL_PRECISION``, or ``MLX_ENABLE_TF32=1`` for "high").

    Args:
        precision (Literal["highest", "high", "medium"]): "highest" for factors in float32, of 24 significant bits; "high"
            for TensorFloat-32, of 11; "medium" for bfloat16, of 8.
        device (Device | DeviceType | None): Device it is for. Default: all devices.

    Returns:
        Literal["highest", "high", "medium"]: The former precision.

    Raises:
        ValueError: If the precision is another word.

    Example:
        >>> former = mx.set_matmul_precision("high")
        >>> mx.set_matmul_precision(former)
        'high'
    """

def set_memory_limit(limit: int, device: Device | DeviceType | None = None) -> int:
    """Sets the number of bytes that arrays and cache should take at most.

    Args:
        limit (int): Number of bytes.
        device (Device | DeviceType | None): Device; by default each device of the one backend
            that serves accelerators, or the CPU where there is none.

    Returns:
        int: The former limit.

    Raises:
        TypeError: If the limit is no number of bytes.

    Example:
        >>> former = mx.set_memory_limit(2**30)
        >>> mx.get_memory_limit() == 2**30
        True
        >>> mx.set_memory_limit(former) == 2**30
        True
    """

def set_printoptions(precision: int = -1) -> None:
    """Sets the options of printing numbers.

    Args:
        precision (int): Digits behind the decimal point; -1 for six digits in all.

    Example:
        >>> mx.set_printoptions(precision=2)
        >>> mx.array(3.14159)
        array(3.14, dtype=float32)
        >>> mx.set_printoptions(precision=-1)
    """

def set_transfer_policy(policy: Literal["error", "host"]) -> Literal["error", "host"]:
    """Sets what happens when arrays of two accelerators meet in an operation.

    Args:
        policy (Literal["error", "host"]): "error" for a ValueError; "host" for copies through
            the host to where the operation runs.

    Returns:
        Literal["error", "host"]: The former policy.

    Raises:
        ValueError: If the policy is another word.

    Example:
        >>> mx.set_transfer_policy("host")
        'error'
        >>> mx.set_transfer_policy("error")
        'host'
    """

def set_wired_limit(limit: int, device: Device | DeviceType | None = None) -> int:
    """Sets the number of bytes that may be pinned. On the CPU it has no effect.

    Args:
        limit (int): Number of bytes.
        device (Device | DeviceType | None): Device; by default each device of the one backend
            that serves accelerators, or the CPU where there is none.

    Returns:
        int: The former limit.

    Raises:
        TypeError: If the limit is no number of bytes.

    Example:
        >>> mx.set_wired_limit(0) >= 0
        True
    """

def sigmoid(a: ArrayLike, /, stream: StreamOrDevice = None) -> array:
    """Computes the logistic function `1 / (1 + exp(-a))` of each element.

    Integers and bools give float32; complex numbers raise a ValueError.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`.

    Example:
        >>> mx.sigmoid(mx.array([0.0, 2.0]))
        array([0.5, 0.880797], dtype=float32)
    """

def sign(a: ArrayLike, /, stream: StreamOrDevice = None) -> array:
    """Computes the sign of each element: -1, 0 or 1, in the dtype of `a`.

    A complex number is divided by its magnitude; 0 stays 0.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`.

    Example:
        >>> mx.sign(mx.array([-2.5, 0.0, 3.0]))
        array([-1, 0, 1], dtype=float32)
    """

def sin(a: ArrayLike, /, stream: StreamOrDevice = None) -> array:
    """Computes the sine of each element, an angle in radians.

    Integers and bools give float32.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`.

    Example:
        >>> mx.sin(mx.array([0.0, mx.pi / 2]))
        array([0, 1], dtype=float32)
    """

def sinh(a: ArrayLike, /, stream: StreamOrDevice = None) -> array:
    """Computes the hyperbolic sine of each element.

    Integers and bools give float32.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`.

    Example:
        >>> mx.sinh(mx.array([0.0, 1.0]))
        array([0, 1.1752], dtype=float32)
    """

def slice(
    a: array,
    start_indices: array,
    axes: Sequence[int],
    slice_size: Sequence[int],
    *,
    stream: StreamOrDevice = None,
) -> array:
    """Takes a part of fixed sizes that begins at computed positions.

    A part that would leave the array is moved inside.

    Args:
        a (array): Array of any shape.
        start_indices (array): Integers: where the part begins along each of `axes`.
        axes (Sequence[int]): Axes that `start_indices` is about; along others the part begins
            at 0.
        slice_size (Sequence[int]): Size of the part along every axis of `a`.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Part of the array, of the shape `slice_size`.

    Raises:
        ValueError: If the numbers of starts and axes differ, or the part is larger than `a`.

    Example:
        >>> mx.slice(mx.arange(6), mx.array([2]), (0,), (3,))
        array([2, 3, 4], dtype=int32)
    """

def slice_update(
    a: array,
    update: array,
    start_indices: array,
    axes: Sequence[int],
    *,
    stream: StreamOrDevice = None,
) -> array:
    """Replaces the part of an array that begins at computed positions.

    A part that would leave the array is moved inside. Where nothing else needs `a` once the result is
    evaluated, as in `cache = mx.slice_update(cache, ...)`, only the part is written.

    Args:
        a (array): Array of any shape.
        update (array): New elements, converted to the dtype of `a`.
        start_indices (array): Integers: where the part begins along each of `axes`.
        axes (Sequence[int]): Axes that `start_indices` is about; along others the part begins
            at 0.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Copy of `a` with the part replaced.

    Raises:
        ValueError: If the numbers of starts and axes differ, or the part is larger than `a`.

    Example:
        >>> mx.slice_update(mx.arange(6), mx.array([0, 0]), mx.array([2]), (0,))
        array([0, 1, 0, 0, 4, 5], dtype=int32)
    """

def softmax(
    a: array,
    /,
    axis: int | Sequence[int] | None = None,
    *,
    precise: bool = False,
    stream: StreamOrDevice = None,
) -> array:
    """Computes the exponentials of elements over their sum along axes, without overflow.

    Args:
        a (array): Array of any shape.
        axis (int | Sequence[int] | None): Axes to sum over; by default all of them.
        precise (bool): Computes float16 and bfloat16 in float32.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Numbers between 0 and 1 in the shape of `a`; float32 for integers and bools.

    Raises:
        IndexError: If an axis is out of range.

    Example:
        >>> mx.softmax(mx.array([0.0, 0.0]), axis=-1)
        array([0.5, 0.5], dtype=float32)
    """

def softplus(a: ArrayLike, /, stream: StreamOrDevice = None) -> array:
    """Computes `log(1 + exp(a))`, a smooth maximum of each element and zero, without overflow.

    Integers and bools give float32.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`.

    Example:
        >>> mx.softplus(mx.array([0.0, 100.0]))
        array([0.693147, 100], dtype=float32)
    """

def sort(a: array, /, axis: int | None = -1, *, stream: StreamOrDevice = None) -> array:
    """Sorts elements in ascending order along an axis; NaN comes last.

    Args:
        a (array): Array of any shape.
        axis (int | None): Axis to sort along; None for the flattened array.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`, or flattened.

    Raises:
        IndexError: If the axis is out of range.

    Example:
        >>> mx.sort(mx.array([3, 1, 2]))
        array([1, 2, 3], dtype=int32)
    """

def split(
    a: array,
    /,
    indices_or_sections: int | Sequence[int] | array,
    axis: int = 0,
    *,
    stream: StreamOrDevice = None,
) -> list[array]:
    """Splits an array along an axis.

    Args:
        a (array): Array of one dimension at least.
        indices_or_sections (int | Sequence[int] | array): Number of equal parts, or the indices
            before which to cut.
        axis (int): Axis to cut.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        list[array]: The parts.

    Raises:
        IndexError: If the axis is out of range.
        ValueError: If the parts would not be equal.

    Example:
        >>> mx.split(mx.arange(5), [1, 3])
        [array([0], dtype=int32), array([1, 2], dtype=int32), array([3, 4], dtype=int32)]
    """

def sqrt(a: ArrayLike, /, stream: StreamOrDevice = None) -> array:
    """Computes the square root of each element.

    Negative real numbers give NaN. Integers and bools give float32.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`.

    Example:
        >>> mx.sqrt(mx.array([0.25, 4.0]))
        array([0.5, 2], dtype=float32)
    """

def square(a: ArrayLike, /, stream: StreamOrDevice = None) -> array:
    """Computes the square of each element, in the dtype of `a`.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`.

    Example:
        >>> mx.square(mx.array([1, -2, 3]))
        array([1, 4, 9], dtype=int32)
    """

def squeeze(
    a: array, /, axis: int | Sequence[int] | None = None, *, stream: StreamOrDevice = None
) -> array:
    """Removes axes of size 1.

    Args:
        a (array): Array of any shape.
        axis (int | Sequence[int] | None): Axes to remove; by default all of size 1.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: View without the axes.

    Raises:
        IndexError: If an axis is out of range.
        ValueError: If the shape, or the number of dimensions, does not fit.

    Example:
        >>> mx.squeeze(mx.ones((2, 1, 3, 1)), -1).shape
        (2, 1, 3)
    """

def stack(arrays: Sequence[array], axis: int = 0, *, stream: StreamOrDevice = None) -> array:
    """Joins arrays of one shape along a new axis. Dtypes are promoted.

    Args:
        arrays (Sequence[array]): Arrays of the same shape.
        axis (int): Position of the new axis in the result.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Joined array, with one dimension more.

    Raises:
        IndexError: If the axis is out of range.
        ValueError: If there are no arrays, or their shapes differ.

    Example:
        >>> mx.stack([mx.array([1, 2]), mx.array([3, 4])], axis=1)
        array([[1, 3],
               [2, 4]], dtype=int32)
    """

def std(
    a: array,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    ddof: int = 0,
    *,
    correction: int | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Computes the standard deviation: the square root of the variance.

    Integers, bools and complex numbers give float32.

    Args:
        a (array): Array to reduce.
        axis (int | Sequence[int] | None): Axes to reduce; by default all of them.
        keepdims (bool): Keeps the reduced axes, with size 1.
        ddof (int): The divisor is the number of elements less this.
        correction (int | None): Another name of `ddof`, which goes before it.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results without the reduced axes; infinity or NaN where the divisor is not positive.

    Raises:
        IndexError: If an axis is out of range.
        ValueError: If the divisor's correction is negative.

    Example:
        >>> mx.std(mx.array([1, 2, 3, 6]))
        array(1.87083, dtype=float32)
    """

def stop_gradient(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Returns the array as a constant to transforms.

    Derivatives with respect to what it was computed from are zero.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: The elements of `a`.

    Example:
        >>> mx.grad(lambda x: x * mx.stop_gradient(x))(mx.array(3.0))
        array(3, dtype=float32)
    """

def stream(s: Stream | ThreadLocalStream | Device | DeviceType) -> StreamContext:
    """Returns a context manager in which operations use a stream.

    Args:
        s (Stream | ThreadLocalStream | Device | DeviceType): Stream, or device whose default
            stream is meant.

    Returns:
        StreamContext: Context manager.

    Example:
        >>> with mx.stream(mx.cpu):
        ...     y = mx.ones(2) + 1
    """

def subtract(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Subtracts `b` from `a` elementwise.

    Shapes are broadcast and dtypes promoted; a number takes the dtype of the array beside it.

    Args:
        a (ArrayLike): Left operand.
        b (ArrayLike): Right operand.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape that `a` and `b` are broadcast to.

    Raises:
        ValueError: If the shapes cannot be broadcast.

    Example:
        >>> mx.subtract(mx.array([5, 7]), mx.array([1, 2]))
        array([4, 5], dtype=int32)
    """

def sum(
    a: array,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """Sums elements.

    Bools and integers of less than 32 bits are summed as int32, unsigned ones as uint32. The
    sum of nothing is 0.

    Args:
        a (array): Array to reduce.
        axis (int | Sequence[int] | None): Axes to reduce; by default all of them.
        keepdims (bool): Keeps the reduced axes, with size 1.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results without the reduced axes.

    Raises:
        IndexError: If an axis is out of range.

    Example:
        >>> mx.sum(mx.array([[1, 2], [3, 4]]), axis=1)
        array([3, 7], dtype=int32)
    """

def swapaxes(a: array, /, axis1: int, axis2: int, *, stream: StreamOrDevice = None) -> array:
    """Exchanges two axes.

    Args:
        a (array): Array of any shape.
        axis1 (int): First axis.
        axis2 (int): Second axis.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: View with the axes exchanged.

    Raises:
        IndexError: If an axis is out of range.
        ValueError: If the shape, or the number of dimensions, does not fit.

    Example:
        >>> mx.swapaxes(mx.ones((2, 3, 4)), 0, 2).shape
        (4, 3, 2)
    """

def synchronize(stream: Stream | ThreadLocalStream | Device | DeviceType | None = None) -> None:
    """Waits until a stream has completed all its work.

    Args:
        stream (Stream | ThreadLocalStream | Device | DeviceType | None): Stream, or device
            whose default stream is meant; by default that of the default device.

    Raises:
        RuntimeError: If the device failed, or work that `async_eval` began did; what failed first
            and was not raised yet is raised, with the type of its own error, once.

    Example:
        >>> mx.async_eval(mx.ones(3) + 1)
        >>> mx.synchronize()
    """

def take(
    a: array, /, indices: int | array, axis: int | None = None, *, stream: StreamOrDevice = None
) -> array:
    """Takes elements at indices along an axis, or of the flattened array.

    Negative indices count from the end. A Python integer is checked. An index in an array that is
    out of bounds gives the first or the last element, whichever is nearer; in a process that
    started with `ULTRAMARINE_VALIDATE=1` it is an IndexError when the result is evaluated.

    Args:
        a (array): Array of any shape.
        indices (int | array): Integer, or array of integers of any shape.
        axis (int | None): Axis to index; by default the array is flattened.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Elements, the axis replaced by the shape of `indices`.

    Raises:
        IndexError: If the axis, or an index that is a Python integer, is out of range.

    Example:
        >>> mx.take(mx.array([10, 20, 30]), mx.array([2, 0]))
        array([30, 10], dtype=int32)
    """

def take_along_axis(
    a: array, /, indices: array, axis: int | None = -1, *, stream: StreamOrDevice = None
) -> array:
    """Takes elements at indices that differ for each line along an axis, as `argsort` returns
    them.

    Indices out of bounds give the nearest element, as those of `take`.

    Args:
        a (array): Array of any shape.
        indices (array): Integers of as many dimensions as `a`; other axes are broadcast.
        axis (int | None): Axis to index; None for the flattened array.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Elements in the shape of the indices, broadcast.

    Raises:
        IndexError: If the axis is out of range.
        ValueError: If the numbers of dimensions differ.

    Example:
        >>> mx.take_along_axis(mx.array([[3, 1, 2]]), mx.array([[1, 2, 0]]), axis=1)
        array([[1, 2, 3]], dtype=int32)
    """

def tan(a: ArrayLike, /, stream: StreamOrDevice = None) -> array:
    """Computes the tangent of each element, an angle in radians.

    Integers and bools give float32.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`.

    Example:
        >>> mx.tan(mx.array([0.0, 1.0]))
        array([0, 1.55741], dtype=float32)
    """

def tanh(a: ArrayLike, /, stream: StreamOrDevice = None) -> array:
    """Computes the hyperbolic tangent of each element.

    Integers and bools give float32.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`.

    Example:
        >>> mx.tanh(mx.array([0.0, 1.0]))
        array([0, 0.761594], dtype=float32)
    """

def tensordot(
    a: array, b: array, /, axes: int | Sequence[Sequence[int]] = 2, *, stream: StreamOrDevice = None
) -> array:
    """Multiplies two arrays and sums over axes of both.

    Args:
        a (array): Left operand.
        b (array): Right operand.
        axes (int | Sequence[Sequence[int]]): Number of axes, the last of `a` and the first of
            `b`; or two lists of axes, for `a` and for `b`.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Array with the other axes of `a`, then those of `b`.

    Raises:
        ValueError: If the sizes of summed axes differ, or the lists have different lengths.

    Example:
        >>> mx.tensordot(mx.ones((2, 3)), mx.ones((3, 4)), axes=1).shape
        (2, 4)
    """

def tile(a: array, reps: int | Sequence[int], /, *, stream: StreamOrDevice = None) -> array:
    """Repeats a whole array along its axes.

    Args:
        a (array): Array of any shape.
        reps (int | Sequence[int]): Number of times for each of the last axes; with more numbers
            than axes, axes are added in front.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Repeated array.

    Raises:
        ValueError: If a number is negative.

    Example:
        >>> mx.tile(mx.array([1, 2]), (2, 2))
        array([[1, 2, 1, 2],
               [1, 2, 1, 2]], dtype=int32)
    """

def to_fp8(x: array, *, stream: StreamOrDevice = None) -> array:
    """Converts to 8-bit floats (E4M3), as uint8.

    Numbers are rounded to the nearest, ties to even. What is too large, infinities and NaN give the
    largest number, 448, with their sign.

    Args:
        x (array): Array of real floats.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Array of uint8, of the same shape.

    Raises:
        ValueError: If the array has no real floats.

    Example:
        >>> mx.to_fp8(mx.array([1.0, -448.0, 0.0]))
        array([56, 254, 0], dtype=uint8)
    """

def topk(a: array, /, k: int, axis: int | None = -1, *, stream: StreamOrDevice = None) -> array:
    """Finds the `k` largest elements along an axis, in no particular order.

    Args:
        a (array): Array of any shape.
        k (int): Number of elements, not more than the axis has.
        axis (int | None): Axis to sort along; None for the flattened array.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results along the axis, or flattened.

    Raises:
        IndexError: If the axis is out of range.
        ValueError: If the number is out of range.

    Example:
        >>> mx.sort(mx.topk(mx.array([3, 1, 4, 2]), 2))
        array([3, 4], dtype=int32)
    """

def trace(
    a: array,
    /,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: Dtype | None = None,
    *,
    stream: StreamOrDevice = None,
) -> array:
    """Sums the diagonals of the matrices that two axes span.

    Args:
        a (array): Array of two dimensions at least.
        offset (int): Diagonal: 0 for the main one, above it positive, below it negative.
        axis1 (int): Axis of the rows.
        axis2 (int): Axis of the columns.
        dtype (Dtype | None): Dtype to sum in; by default as `sum`.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Sums in the shape of `a` without the two axes.

    Raises:
        IndexError: If an axis is out of range.
        ValueError: If there are less than two dimensions, or the axes are the same.

    Example:
        >>> mx.trace(mx.eye(3))
        array(3, dtype=float32)
    """

def transfers(policy: Literal["error", "host"]) -> TransferContext:
    """Returns a context manager in which operations use a transfer policy.

    Args:
        policy (Literal["error", "host"]): "error" or "host"; see `set_transfer_policy`.

    Returns:
        TransferContext: Context manager.

    Example:
        >>> with mx.transfers("host"):
        ...     mx.get_transfer_policy()
        'host'
    """

def transpose(
    a: array, /, axes: Sequence[int] | None = None, *, stream: StreamOrDevice = None
) -> array:
    """Puts the axes into another order.

    Args:
        a (array): Array of any shape.
        axes (Sequence[int] | None): The axes of `a` in their new order; by default they are
            reversed.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: View with the axes in that order.

    Raises:
        IndexError: If an axis is out of range.
        ValueError: If the axes are no permutation.

    Example:
        >>> mx.transpose(mx.zeros((2, 3, 4)), (1, 0, 2)).shape
        (3, 2, 4)
    """

def tri(
    n: int,
    m: int | None = None,
    k: int = 0,
    dtype: Dtype | None = None,
    *,
    stream: StreamOrDevice = None,
    device: Device | DeviceType | None = None,
) -> array:
    """Creates a matrix with ones on and below a diagonal and zeros above it.

    Args:
        n (int): Number of rows.
        m (int | None): Number of columns; by default `n`.
        k (int): Diagonal: 0 for the main one, above it positive, below it negative.
        dtype (Dtype | None): Dtype of the result; float32 by default.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.
        device (Device | DeviceType | None): Device to run on, in place of `stream`.

    Returns:
        array: Matrix of the shape (n, m).

    Example:
        >>> mx.tri(2, 3)
        array([[1, 0, 0],
               [1, 1, 0]], dtype=float32)
    """

def tril(x: array, k: int = 0, *, stream: StreamOrDevice = None) -> array:
    """Replaces the elements above a diagonal of matrices by zeros.

    Args:
        x (array): Matrices in the last two axes.
        k (int): Diagonal: 0 for the main one, above it positive, below it negative.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Lower triangles, in shape and dtype of `x`.

    Raises:
        ValueError: If there are less than two dimensions.

    Example:
        >>> mx.tril(mx.ones((2, 3)))
        array([[1, 0, 0],
               [1, 1, 0]], dtype=float32)
    """

def triu(x: array, k: int = 0, *, stream: StreamOrDevice = None) -> array:
    """Replaces the elements below a diagonal of matrices by zeros.

    Args:
        x (array): Matrices in the last two axes.
        k (int): Diagonal: 0 for the main one, above it positive, below it negative.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Upper triangles, in shape and dtype of `x`.

    Raises:
        ValueError: If there are less than two dimensions.

    Example:
        >>> mx.triu(mx.ones((2, 3)))
        array([[1, 1, 1],
               [0, 1, 1]], dtype=float32)
    """

def trunc(a: ArrayLike, /, *, stream: StreamOrDevice = None) -> array:
    """Rounds each element towards zero to an integer, in the dtype of `a`.

    Complex numbers raise a ValueError.

    Args:
        a (ArrayLike): Array or number of any shape.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape of `a`.

    Example:
        >>> mx.trunc(mx.array([-1.5, 1.5]))
        array([-1, 1], dtype=float32)
    """

def unflatten(
    a: array, /, axis: int, shape: Sequence[int], *, stream: StreamOrDevice = None
) -> array:
    """Splits an axis into several.

    Args:
        a (array): Array of any shape.
        axis (int): Axis to split.
        shape (Sequence[int]): Sizes of the new axes; one may be -1.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Array with the new axes in place of the axis.

    Raises:
        IndexError: If an axis is out of range.
        ValueError: If the shape, or the number of dimensions, does not fit.

    Example:
        >>> mx.unflatten(mx.arange(6), 0, (2, 3)).shape
        (2, 3)
    """

def unique(
    a: array,
    /,
    size: int,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    fill_value: ArrayLike | None = None,
    *,
    stream: StreamOrDevice = None,
) -> array | tuple[array, ...]:
    """Finds the first `size` different elements of the flattened array, in ascending order.

    The size is given so that `a` is not evaluated. Further elements are left out, and have
    `size - 1` in the inverse. Missing ones are filled up: values with `fill_value`, counts with
    0. NaN differs from NaN.

    Args:
        a (array): Array of any shape.
        size (int): Number of elements of the result.
        return_index (bool): Also returns the index in the flattened array of the first
            occurrence of each: uint32.
        return_inverse (bool): Also returns the position in the result of each element of `a`:
            uint32, in its shape.
        return_counts (bool): Also returns how often each occurs: int32.
        fill_value (ArrayLike | None): Number or array of one element; by default the smallest
            element.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array | tuple[array, ...]: The elements; or a tuple of them, index, inverse and counts,
            as far as asked for.

    Raises:
        ValueError: If `size` is negative, or `a` is empty and there is nothing to fill with.

    Example:
        >>> mx.unique(mx.array([3, 1, 3]), 2, return_counts=True)
        (array([1, 3], dtype=int32), array([1, 2], dtype=int32))
    """

def unstack(x: array, /, *, axis: int = 0, stream: StreamOrDevice = None) -> tuple[array, ...]:
    """Splits an array into the slices along an axis, without that axis.

    Args:
        x (array): Array of one dimension at least.
        axis (int): Axis to split.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        tuple[array, ...]: The slices.

    Raises:
        IndexError: If the axis is out of range.

    Example:
        >>> mx.unstack(mx.array([[1, 2], [3, 4]]))
        (array([1, 2], dtype=int32), array([3, 4], dtype=int32))
    """

def value_and_grad(
    fun: Callable[_P, _R],
    argnums: int | Sequence[int] | None = None,
    argnames: str | Sequence[str] = ...,
) -> Callable[_P, tuple[_R, Any]]:
    """Returns a function that computes the value of `fun` and its gradient; see `grad`.

    `fun` may return a tuple whose first element is the array to differentiate.

    Args:
        fun (Callable[P, R]): Function to differentiate.
        argnums (int | Sequence[int] | None): Positional arguments to differentiate with respect
            to; by default the first, or none if there are `argnames`.
        argnames (str | Sequence[str]): Keyword arguments to differentiate with respect to.

    Returns:
        Callable[P, tuple[R, Any]]: Function with the arguments of `fun`, which returns a pair:
            the value and the gradient.

    Raises:
        ValueError: If an argument is named twice or is negative; at a call, if it is not there, has
            no array or anything else in it, or `fun` returns something else.

    Example:
        >>> mx.value_and_grad(lambda x: x * x)(mx.array(3.0))
        (array(9, dtype=float32), array(6, dtype=float32))
    """

def var(
    a: array,
    /,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
    ddof: int = 0,
    *,
    correction: int | None = None,
    stream: StreamOrDevice = None,
) -> array:
    """Computes the variance: the mean of the squared distances from the mean.

    Integers, bools and complex numbers give float32.

    Args:
        a (array): Array to reduce.
        axis (int | Sequence[int] | None): Axes to reduce; by default all of them.
        keepdims (bool): Keeps the reduced axes, with size 1.
        ddof (int): The divisor is the number of elements less this.
        correction (int | None): Another name of `ddof`, which goes before it.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results without the reduced axes; infinity or NaN where the divisor is not positive.

    Raises:
        IndexError: If an axis is out of range.
        ValueError: If the divisor's correction is negative.

    Example:
        >>> mx.var(mx.array([1, 2, 3, 6]))
        array(3.5, dtype=float32)
    """

def vecdot(a: array, b: array, /, *, axis: int = -1, stream: StreamOrDevice = None) -> array:
    """Computes the inner products of vectors along an axis. The left operand is conjugated.

    Args:
        a (array): Left operand.
        b (array): Right operand; other axes are broadcast.
        axis (int): Axis of the vectors.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Products, without the axis; integers are summed as `sum` does.

    Raises:
        IndexError: If the axis is out of range.
        ValueError: If the sizes of the axis differ, or the others cannot be broadcast.

    Example:
        >>> mx.vecdot(mx.array([1.0, 2.0]), mx.array([3.0, 4.0]))
        array(11, dtype=float32)
    """

def view(a: ArrayLike, dtype: Dtype, stream: StreamOrDevice = None) -> array:
    """Reads the bytes of an array as elements of another dtype.

    The last axis shrinks or grows where the sizes of the dtypes differ.

    Args:
        a (ArrayLike): Array of any shape; without dimensions only if the sizes are the same.
        dtype (Dtype): Dtype to read the bytes in.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: The same bytes in row-major order.

    Raises:
        ValueError: If the bytes of the last axis are no multiple of the new size.

    Example:
        >>> mx.view(mx.array([1.0]), mx.int32)
        array([1065353216], dtype=int32)
    """

def vjp(
    fun: Callable[..., Any], primals: Sequence[array], cotangents: Sequence[array]
) -> tuple[list[array], list[array]]:
    """Computes a function and the products of cotangents with its Jacobian: reverse mode.

    Args:
        fun (Callable[..., Any]): Function of arrays that returns an array, or a list or tuple
            of arrays.
        primals (Sequence[array]): Arguments of the function.
        cotangents (Sequence[array]): One array for each output, in its shape.

    Returns:
        tuple[list[array], list[array]]: Outputs; and the products, one for each of `primals`.

    Raises:
        ValueError: If the cotangents do not fit the outputs.

    Example:
        >>> mx.vjp(lambda x: x * x, [mx.array(3.0)], [mx.array(1.0)])
        ([array(9, dtype=float32)], [array(6, dtype=float32)])
    """

def vmap(fun: Callable[_P, _R], in_axes: Any = 0, out_axes: Any = 0) -> Callable[_P, _R]:
    """Returns a function that applies `fun` to each slice of its arguments, all at once.

    An axis stands for all arrays below it: `in_axes` and `out_axes` are an axis, or lists, tuples
    and dictionaries of them in the structure of the arguments and of the result. `fun` gets
    containers of the call's own, of the same classes as the arguments.

    Args:
        fun (Callable[P, R]): Function of arrays, and trees of them.
        in_axes (Any): Axis that is mapped, of all arguments; or a tuple with an entry for each,
            which may be a tree; or the tree of the only argument. None: not mapped.
        out_axes (Any): Position of the mapped axis in the outputs, likewise. None: the output does
            not depend on mapped arguments, and is the same for all.

    Returns:
        Callable[P, R]: Function with the positional arguments of `fun`.

    Raises:
        ValueError: If an axis is neither an integer nor None; at a call, if the axes do not fit
            the structure of the arguments or of the result, or the sizes of mapped axes differ.

    Example:
        >>> mx.vmap(lambda x, y: (x * y).sum())(mx.ones((2, 3)), mx.ones((2, 3)))
        array([3, 3], dtype=float32)
    """

def where(
    condition: ArrayLike, x: ArrayLike, y: ArrayLike, /, *, stream: StreamOrDevice = None
) -> array:
    """Selects elements of `x` where a condition holds, else of `y`.

    All three are broadcast. The result has the promoted dtype of `x` and `y`.

    Args:
        condition (ArrayLike): Bools, or numbers of which non-zero ones hold.
        x (ArrayLike): Elements where the condition holds.
        y (ArrayLike): Elements elsewhere.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Selected elements in the broadcast shape.

    Raises:
        ValueError: If the shapes cannot be broadcast.

    Example:
        >>> mx.where(mx.array([True, False]), 1, mx.array([5, 6]))
        array([1, 6], dtype=int32)
    """

def xlogy(a: ArrayLike, b: ArrayLike, stream: StreamOrDevice = None) -> array:
    """Computes `a * log(b)` elementwise: 0 where `a` is 0, unless `b` is NaN.

    Integers and bools give float32; complex numbers raise a ValueError.

    Shapes are broadcast and dtypes promoted; a number takes the dtype of the array beside it.

    Args:
        a (ArrayLike): Left operand.
        b (ArrayLike): Right operand.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.

    Returns:
        array: Results in the shape that `a` and `b` are broadcast to.

    Raises:
        ValueError: If the shapes cannot be broadcast.

    Example:
        >>> mx.xlogy(mx.array([0.0, 1.0]), mx.array([0.0, mx.e]))
        array([0, 1], dtype=float32)
    """

def zeros(
    shape: int | Sequence[int],
    dtype: Dtype | None = None,
    *,
    stream: StreamOrDevice = None,
    device: Device | DeviceType | None = None,
) -> array:
    """Creates an array of zeros.

    Args:
        shape (int | Sequence[int]): Sizes of the dimensions.
        dtype (Dtype | None): Dtype of the result; float32 by default.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.
        device (Device | DeviceType | None): Device to run on, in place of `stream`.

    Returns:
        array: New array.

    Raises:
        ValueError: If a size is negative, or the whole is too large.

    Example:
        >>> mx.zeros(2, mx.int32)
        array([0, 0], dtype=int32)
    """

def zeros_like(
    a: array,
    /,
    dtype: Dtype | None = None,
    *,
    stream: StreamOrDevice = None,
    device: Device | DeviceType | None = None,
) -> array:
    """Creates an array of zeros in the shape of another.

    Args:
        a (array): Array that gives the shape.
        dtype (Dtype | None): Dtype of the result; by default that of `a`.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.
        device (Device | DeviceType | None): Device to run on, in place of `stream`.

    Returns:
        array: New array.

    Example:
        >>> mx.zeros_like(mx.array([[1, 2, 3]]))
        array([[0, 0, 0]], dtype=int32)
    """

acos = arccos
acosh = arccosh
asin = arcsin
asinh = arcsinh
atan = arctan
atan2 = arctan2
atanh = arctanh
bitwise_left_shift = left_shift
bitwise_right_shift = right_shift
concat = concatenate
cumulative_prod = cumprod
cumulative_sum = cumsum
new_thread_unsafe_stream = new_stream
pow = power
