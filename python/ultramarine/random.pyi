"""Random numbers. Without a key they come from a state of the thread's own; see `seed`."""

# Made by python/tools/make_stubs.py of the module's docstrings: change those.

from collections.abc import Sequence

from ultramarine import ArrayLike, Device, DeviceType, Dtype, StreamOrDevice, array

class _RandomState:
    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> array: ...
    def __setitem__(self, index: int, key: array) -> None: ...

state: _RandomState

def bernoulli(
    p: ArrayLike = 0.5,
    shape: Sequence[int] | None = None,
    key: array | None = None,
    stream: StreamOrDevice = None,
    *,
    device: Device | DeviceType | None = None,
) -> array:
    """Draws bools that are True with a probability.

    Args:
        p (ArrayLike): Probability of True, broadcast to the shape.
        shape (Sequence[int] | None): Shape of the result; by default that of `p`.
        key (array | None): Key of the numbers; by default the thread's state.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.
        device (Device | DeviceType | None): Device to run on, in place of `stream`.

    Returns:
        array: Random bools.

    Raises:
        ValueError: If `p` is not of floats, or cannot be broadcast to the shape.

    Example:
        >>> mx.random.bernoulli(1.0, (2,))
        array([True, True], dtype=bool)
    """

def bits(
    shape: Sequence[int] = ...,
    width: int = 4,
    key: array | None = None,
    stream: StreamOrDevice = None,
    *,
    device: Device | DeviceType | None = None,
) -> array:
    """Draws uniformly random bits.

    Args:
        shape (Sequence[int]): Shape of the result.
        width (int): Bytes of an element: 1, 2 or 4.
        key (array | None): Key of the numbers; by default the thread's state.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.
        device (Device | DeviceType | None): Device to run on, in place of `stream`.

    Returns:
        array: uint8, uint16 or uint32.

    Raises:
        ValueError: If the width is another, or a size is negative.

    Example:
        >>> mx.random.bits((2, 3), width=1, key=mx.random.key(0)).dtype
        ultramarine.uint8
    """

def categorical(
    logits: array,
    axis: int = -1,
    shape: Sequence[int] | None = None,
    num_samples: int | None = None,
    key: array | None = None,
    stream: StreamOrDevice = None,
    *,
    device: Device | DeviceType | None = None,
) -> array:
    """Draws indices along an axis with the probabilities `softmax(logits, axis)`.

    Args:
        logits (array): Logarithms of probabilities, up to a constant.
        axis (int): Axis of a distribution.
        shape (Sequence[int] | None): Shape of the result, to which the other axes of `logits`
            are broadcast.
        num_samples (int | None): Number of indices of each distribution, along a new last axis;
            not together with `shape`.
        key (array | None): Key of the numbers; by default the thread's state.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.
        device (Device | DeviceType | None): Device to run on, in place of `stream`.

    Returns:
        array: Indices as uint32: without `shape` and `num_samples` one of each distribution.

    Raises:
        IndexError: If the axis is out of range.
        ValueError: If both `shape` and `num_samples` are given, or the shape does not fit.

    Example:
        >>> mx.random.categorical(mx.array([[-mx.inf, 0.0]]))
        array([1], dtype=uint32)
    """

def gumbel(
    shape: Sequence[int] = ...,
    dtype: Dtype | None = None,
    key: array | None = None,
    stream: StreamOrDevice = None,
    *,
    device: Device | DeviceType | None = None,
) -> array:
    """Draws numbers from the standard Gumbel distribution.

    Args:
        shape (Sequence[int]): Shape of the result.
        dtype (Dtype | None): float32 (the default), float16 or bfloat16.
        key (array | None): Key of the numbers; by default the thread's state.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.
        device (Device | DeviceType | None): Device to run on, in place of `stream`.

    Returns:
        array: Random numbers.

    Raises:
        ValueError: If the dtype is not of floats.
        RuntimeError: If the dtype is float64.

    Example:
        >>> mx.random.gumbel((2, 3), key=mx.random.key(0)).shape
        (2, 3)
    """

def key(seed: int) -> array:
    """Makes the key of a seed. The same key gives the same numbers.

    Args:
        seed (int): Integer from 0 to 2**64 - 1.

    Returns:
        array: Two uint32.

    Raises:
        TypeError: If the seed is no such integer.

    Example:
        >>> mx.random.key(7)
        array([0, 7], dtype=uint32)
    """

def laplace(
    shape: Sequence[int] = ...,
    dtype: Dtype | None = None,
    loc: float = 0.0,
    scale: float = 1.0,
    key: array | None = None,
    stream: StreamOrDevice = None,
    *,
    device: Device | DeviceType | None = None,
) -> array:
    """Draws numbers from the Laplace distribution.

    Args:
        shape (Sequence[int]): Shape of the result.
        dtype (Dtype | None): Dtype of floats; float32 by default.
        loc (float): Mean.
        scale (float): Scale; the standard deviation is sqrt(2) times as large.
        key (array | None): Key of the numbers; by default the thread's state.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.
        device (Device | DeviceType | None): Device to run on, in place of `stream`.

    Returns:
        array: Random numbers.

    Raises:
        ValueError: If the dtype is not of floats.

    Example:
        >>> mx.random.laplace((2, 3), loc=10.0, scale=0.5, key=mx.random.key(0)).shape
        (2, 3)
    """

def multivariate_normal(
    mean: array,
    cov: array,
    shape: Sequence[int] = ...,
    dtype: Dtype | None = None,
    key: array | None = None,
    stream: StreamOrDevice = None,
    *,
    device: Device | DeviceType | None = None,
) -> array:
    """Draws vectors from a joint normal distribution.

    Args:
        mean (array): Means, of the shape (..., n).
        cov (array): Covariances, of the shape (..., n, n).
        shape (Sequence[int]): Leading shape of the result, broadcast with the leading axes of
            both.
        dtype (Dtype | None): float32, the only one.
        key (array | None): Key of the numbers; by default the thread's state.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.
        device (Device | DeviceType | None): Device to run on, in place of `stream`.

    Returns:
        array: Random vectors, of the shape (..., n).

    Raises:
        ValueError: If the shapes do not fit, or the dtype is another.

    Example:
        >>> mean, cov = mx.zeros(2), mx.array([[1.0, 0.5], [0.5, 1.0]])
        >>> mx.random.multivariate_normal(mean, cov, (100,)).shape
        (100, 2)
    """

def normal(
    shape: Sequence[int] = ...,
    dtype: Dtype | None = None,
    loc: ArrayLike | None = None,
    scale: ArrayLike | None = None,
    key: array | None = None,
    stream: StreamOrDevice = None,
    *,
    device: Device | DeviceType | None = None,
) -> array:
    """Draws numbers from the normal distribution.

    Args:
        shape (Sequence[int]): Shape of the result.
        dtype (Dtype | None): Dtype of floats, or complex64; float32 by default.
        loc (ArrayLike | None): Mean, broadcast with the shape; 0 by default.
        scale (ArrayLike | None): Standard deviation, broadcast with the shape; 1 by default.
        key (array | None): Key of the numbers; by default the thread's state.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.
        device (Device | DeviceType | None): Device to run on, in place of `stream`.

    Returns:
        array: Random numbers.

    Raises:
        ValueError: If the dtype is neither of floats nor complex.

    Example:
        >>> mx.random.normal((2, 3), key=mx.random.key(0)).shape
        (2, 3)
    """

def permutation(
    x: int | array,
    axis: int = 0,
    key: array | None = None,
    stream: StreamOrDevice = None,
    *,
    device: Device | DeviceType | None = None,
) -> array:
    """Puts numbers, or the slices of an array, into random order.

    Args:
        x (int | array): Array to permute; or an integer, for the numbers below it.
        axis (int): Axis whose slices are permuted.
        key (array | None): Key of the numbers; by default the thread's state.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.
        device (Device | DeviceType | None): Device to run on, in place of `stream`.

    Returns:
        array: Permuted array; of an integer, uint32.

    Raises:
        IndexError: If the axis is out of range.
        ValueError: If the integer is negative.

    Example:
        >>> mx.sort(mx.random.permutation(4))
        array([0, 1, 2, 3], dtype=uint32)
    """

def randint(
    low: ArrayLike,
    high: ArrayLike,
    shape: Sequence[int] = ...,
    dtype: Dtype | None = None,
    key: array | None = None,
    stream: StreamOrDevice = None,
    *,
    device: Device | DeviceType | None = None,
) -> array:
    """Draws integers uniformly from `low` up to, and without, `high`.

    Args:
        low (ArrayLike): Lower bound, broadcast to the shape.
        high (ArrayLike): Upper bound, broadcast to the shape.
        shape (Sequence[int]): Shape of the result.
        dtype (Dtype | None): Dtype of integers, or bool; int32 by default.
        key (array | None): Key of the numbers; by default the thread's state.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.
        device (Device | DeviceType | None): Device to run on, in place of `stream`.

    Returns:
        array: Random integers.

    Raises:
        ValueError: If the dtype is another, or a bound cannot be broadcast to the shape.

    Example:
        >>> x = mx.random.randint(0, 10, (100,))
        >>> bool(mx.all((x >= 0) & (x < 10)))
        True
    """

def seed(seed: int) -> None:
    """Seeds the calling thread's state, from which its numbers come where no key is given.

    Each thread has a state of its own, as in MLX: seeding or drawing leaves the numbers of other
    threads alone. A thread that does not seed has a state from the clock (in MLX, all have the same).

    Args:
        seed (int): Integer from 0 to 2**64 - 1.

    Raises:
        TypeError: If the seed is no such integer.

    Example:
        >>> mx.random.seed(7)
        >>> x = mx.random.uniform()
        >>> mx.random.seed(7)
        >>> mx.array_equal(x, mx.random.uniform())
        array(True, dtype=bool)
    """

def split(
    key: array,
    num: int = 2,
    stream: StreamOrDevice = None,
    *,
    device: Device | DeviceType | None = None,
) -> list[array]:
    """Makes several keys of one.

    Args:
        key (array): Key to split, of two uint32.
        num (int): Number of keys.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.
        device (Device | DeviceType | None): Device to run on, in place of `stream`.

    Returns:
        list[array]: Keys as the rows of an array of the shape (num, 2).

    Raises:
        ValueError: If `num` is negative, or `key` is no key.

    Example:
        >>> mx.random.split(mx.random.key(0), 3).shape
        (3, 2)
    """

def truncated_normal(
    lower: ArrayLike,
    upper: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: Dtype | None = None,
    key: array | None = None,
    stream: StreamOrDevice = None,
    *,
    device: Device | DeviceType | None = None,
) -> array:
    """Draws numbers from the standard normal distribution, restricted to an interval.

    Args:
        lower (ArrayLike): Lower bound.
        upper (ArrayLike): Upper bound, broadcast with `lower`.
        shape (Sequence[int] | None): Shape of the result; by default that of the bounds.
        dtype (Dtype | None): float32 (the default), float16 or bfloat16.
        key (array | None): Key of the numbers; by default the thread's state.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.
        device (Device | DeviceType | None): Device to run on, in place of `stream`.

    Returns:
        array: Random numbers.

    Raises:
        ValueError: If the dtype is not of floats, or the bounds cannot be broadcast to the
            shape.
        RuntimeError: If the dtype is float64.

    Example:
        >>> x = mx.random.truncated_normal(-1, 2, (100,))
        >>> mx.all((x >= -1) & (x <= 2))
        array(True, dtype=bool)
    """

def uniform(
    low: ArrayLike = 0,
    high: ArrayLike = 1,
    shape: Sequence[int] = ...,
    dtype: Dtype | None = None,
    key: array | None = None,
    stream: StreamOrDevice = None,
    *,
    device: Device | DeviceType | None = None,
) -> array:
    """Draws numbers uniformly from `low` up to, and without, `high`.

    Args:
        low (ArrayLike): Lower bound, broadcast to the shape.
        high (ArrayLike): Upper bound, broadcast to the shape.
        shape (Sequence[int]): Shape of the result.
        dtype (Dtype | None): float32 (the default), float16 or bfloat16.
        key (array | None): Key of the numbers; by default the thread's state.
        stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
            else the default device.
        device (Device | DeviceType | None): Device to run on, in place of `stream`.

    Returns:
        array: Random numbers.

    Raises:
        ValueError: If the dtype is not of floats, or a bound cannot be broadcast to the shape.
        RuntimeError: If the dtype is float64.

    Example:
        >>> mx.random.uniform(0, 10, (2, 3), key=mx.random.key(0)).shape
        (2, 3)
    """
