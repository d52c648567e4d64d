"""Read by the type checker only: the stubs give these types."""

from typing import assert_type

import ultramarine as mx

x = mx.array([1.0, 2.0])
assert_type(x + 1, mx.array)
assert_type(2 * x, mx.array)
assert_type(x @ x, mx.array)
assert_type(x @ memoryview(b"ab"), mx.array)
assert_type(divmod(x, 2), tuple[mx.array, mx.array])
assert_type(mx.asarray(b"ab", copy=False, device=mx.cpu), mx.array)
assert_type(mx.from_dlpack(x), mx.array)
assert_type(x[0], mx.array)
assert_type(x.shape, tuple[int, ...])
assert_type(x.dtype, mx.Dtype)
assert_type(x.at[0].add(1), mx.array)
assert_type(mx.sum(x, axis=0, keepdims=True), mx.array)
assert_type(mx.zeros((2, 3), mx.float16), mx.array)
assert_type(mx.random.normal((2, 3)), mx.array)
assert_type(mx.dequantize(*mx.quantize(x), dtype=mx.float32), mx.array)
assert_type(mx.quantized_matmul(x, *mx.quantize(x), group_size=32), mx.array)
assert_type(mx.broadcast_shapes((1,), (2,)), tuple[int, ...])
assert_type(mx.get_active_memory(), int)
assert_type(mx.finfo(mx.float32).eps, float)
assert_type(mx.backends.load("libultramarine-name.so"), mx.backends.Backend)
assert_type(mx.backends.load_all(filter=lambda b: b.score > 1), list[mx.backends.Backend])
assert_type([c.reason for c in mx.backends.report()], list[str | None])
assert_type(mx.backends.search_paths(), list[tuple[str, str]])
