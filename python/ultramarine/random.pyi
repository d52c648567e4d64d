"""Random numbers. Without a key they come from a global state; see `seed`."""

# Made by python/tools/make_stubs.py: change the tables beside it.

from collections.abc import Sequence

from ultramarine import ArrayLike, Dtype, StreamOrDevice, array

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
) -> array: ...
def bits(
    shape: Sequence[int] = ...,
    width: int = 4,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array: ...
def categorical(
    logits: array,
    axis: int = ...,
    shape: Sequence[int] | None = None,
    num_samples: int | None = None,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array: ...
def gumbel(
    shape: Sequence[int] = ...,
    dtype: Dtype | None = None,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array: ...
def key(seed: int) -> array: ...
def laplace(
    shape: Sequence[int] = ...,
    dtype: Dtype | None = None,
    loc: float = 0.0,
    scale: float = 1.0,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array: ...
def multivariate_normal(
    mean: array,
    cov: array,
    shape: Sequence[int] = ...,
    dtype: Dtype | None = None,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array: ...
def normal(
    shape: Sequence[int] = ...,
    dtype: Dtype | None = None,
    loc: ArrayLike | None = None,
    scale: ArrayLike | None = None,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array: ...
def permutation(
    x: int | array, axis: int = 0, key: array | None = None, stream: StreamOrDevice = None
) -> array: ...
def randint(
    low: ArrayLike,
    high: ArrayLike,
    shape: Sequence[int] = ...,
    dtype: Dtype | None = None,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array: ...
def seed(seed: int) -> None: ...
def split(key: array, num: int = 2, stream: StreamOrDevice = None) -> list[array]: ...
def truncated_normal(
    lower: ArrayLike,
    upper: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: Dtype | None = None,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array: ...
def uniform(
    low: ArrayLike = 0,
    high: ArrayLike = 1,
    shape: Sequence[int] = ...,
    dtype: Dtype | None = None,
    key: array | None = None,
    stream: StreamOrDevice = None,
) -> array: ...
