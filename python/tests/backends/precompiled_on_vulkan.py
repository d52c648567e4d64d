"""`fast.precompiled_kernel` on a Vulkan device, with SPIR-V that glslang made: run by test_precompiled.py, and by hand

PLUGIN=libultramarine-vulkan.so python -m pytest -p no:cacheprovider precompiled_on_vulkan.py
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ultramarine as mx
from ultramarine import backends

backends.load(os.environ["PLUGIN"])
mx.set_default_device(mx.gpu)

GLSLANG = shutil.which("glslangValidator")
pytestmark = pytest.mark.skipif(GLSLANG is None, reason="glslangValidator (glslang-tools)")

SCALE = """
layout(local_size_x = 64) in;
layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) buffer Y { float y[]; };
layout(binding = 2) uniform N { int n; };
layout(binding = 3) uniform By { float by; };
void main() {
  uint i = gl_GlobalInvocationID.x;
  if (i < n) y[i] = by * x[i];
}
"""


@cache
def spirv(source: str, target: str = "vulkan1.2") -> bytes:
    assert GLSLANG is not None
    with tempfile.TemporaryDirectory() as folder:
        text, out = Path(folder) / "kernel.comp", Path(folder) / "kernel.spv"
        text.write_text("#version 450\n" + source)
        command = [GLSLANG, "-V", "--target-env", target, str(text), "-o", str(out)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout
        return out.read_bytes()


def call(code: bytes, *inputs: mx.array, scalars: Any = (), **change: Any) -> mx.array:
    shape = change.pop("shape", inputs[0].shape if inputs else (1,))
    usual: dict[str, Any] = {
        "name": "main",
        "compiled_source": code,
        "inputs": list(inputs),
        "output_shapes": [shape],
        "output_dtypes": [change.pop("dtype", mx.float32)],
        "scalars": list(scalars),
        "grid": (max(int(np.prod(shape)), 1), 1, 1),
        "threadgroup": (64, 1, 1),
    }
    return mx.fast.precompiled_kernel(**{**usual, **change})[0]


def scaled(x: mx.array, by: float, target: str = "vulkan1.2", **change: Any) -> mx.array:
    return call(spirv(SCALE, target), x, scalars=[x.size, by], **change)


# Of 1.0 buffers are uniforms with a decoration of their own.
@pytest.mark.parametrize("target", ["vulkan1.0", "vulkan1.1", "vulkan1.2"])
def test_arrays_and_scalars(target: str) -> None:
    x = mx.arange(300, dtype=mx.float32)
    for view in (x, x[1:], x[4:200], x.reshape(3, 100), x[:1], x[:0]):
        y = scaled(view, 2.5, target, ensure_row_contiguous=True)
        np.testing.assert_array_equal(np.array(y), np.array(view) * 2.5)
    y = scaled(x.reshape(20, 15).T, -1.0, target, ensure_row_contiguous=True)
    np.testing.assert_array_equal(np.array(y), -np.arange(300.0).reshape(20, 15).T)


def test_it_is_an_operation_as_any_other() -> None:
    x = mx.arange(1000, dtype=mx.float32)
    twice = mx.compile(lambda x: mx.exp(-scaled(scaled(x + 1, 2.0), 0.5)))
    for _ in range(3):
        np.testing.assert_allclose(np.array(twice(x)), np.exp(-np.arange(1.0, 1001)), 1e-5, 1e-37)
    # Its writes are ordered with what comes before and behind it.
    y = mx.zeros((1000,))
    for _ in range(20):
        y = scaled(y + 1, 2.0)
    assert set(np.array(y).tolist()) == {2.0**21 - 2}


def test_shared_memory_and_subgroups() -> None:
    source = """
    #extension GL_KHR_shader_subgroup_arithmetic : require
    layout(local_size_x = 128) in;
    layout(binding = 0) readonly buffer X { float x[]; };
    layout(binding = 1) writeonly buffer Y { float y[]; };
    shared float part[128];
    void main() {
      float sum = subgroupAdd(x[gl_GlobalInvocationID.x]);
      if (subgroupElect()) part[gl_SubgroupID] = sum;
      barrier();
      if (gl_LocalInvocationID.x != 0) return;
      float all = 0;
      for (uint i = 0; i < gl_NumSubgroups; i++) all += part[i];
      y[gl_WorkGroupID.x] = all;
    }
    """
    x = mx.arange(512, dtype=mx.float32)
    y = call(spirv(source), x, shape=(4,), grid=(512, 1, 1), threadgroup=(128, 1, 1))
    assert y.tolist() == np.arange(512.0).reshape(4, 128).sum(1).tolist()


WIDE = {
    "float64_t": (mx.float64, 10.5),
    "int64_t": (mx.int64, 1_000_000_007),
    "int16_t": (mx.int16, 300),
    "uint8_t": (mx.uint8, 7),
}


@pytest.mark.parametrize("of", WIDE)
def test_other_widths(of: str) -> None:
    dtype, number = WIDE[of]
    source = f"""
    #extension GL_EXT_shader_explicit_arithmetic_types : require
    layout(local_size_x = 64) in;
    layout(binding = 0) readonly buffer X {{ {of} x[]; }};
    layout(binding = 1) buffer Y {{ {of} y[]; }};
    void main() {{
      uint i = gl_GlobalInvocationID.x;
      if (i < x.length()) y[i] = {of}(x[i] + {of}({number}));
    }}
    """
    # A whole number of words: the length that a kernel sees ends with one.
    x = mx.array(np.arange(100), dtype)
    want = np.array(x) + np.array(number).astype(np.array(x).dtype)
    np.testing.assert_array_equal(np.array(call(spirv(source), x, dtype=dtype)), want)


def test_a_group_by_constants() -> None:
    source = SCALE.replace("local_size_x = 64", "local_size_x_id = 0")
    y = call(spirv(source), mx.ones(5), scalars=[5, 3.0], threadgroup=(1, 1, 1))
    assert y.tolist() == [3.0] * 5


BODY = "void main() { y[gl_GlobalInvocationID.x] = 1; }"
GROUP = "layout(local_size_x = 64) in;"
Y = "layout(binding = 0) buffer Y { float y[]; };"


@pytest.mark.parametrize(
    ("source", "says"),
    [
        (f"{GROUP} {Y} layout(push_constant) uniform P {{ float p; }}; void main() {{ y[0] = p; }}", "storage class 9"),
        (f"{GROUP} {Y.replace('binding', 'set = 1, binding')} {BODY}", "descriptor set 0"),
        (f"{GROUP} {Y.replace('0', '1')} {BODY}", r"numbered \[1\]"),
        (f"{GROUP} {Y} layout(binding = 1, rgba8) uniform image2D i; void main() {{ y[0] = imageLoad(i, ivec2(0)).x; }}", "storage class 0"),
        (f"{GROUP} {Y} layout(binding = 1) uniform M {{ mat4 m; }}; void main() {{ y[0] = m[0][0]; }}", "at most 16 bytes"),
        (f"{GROUP} {Y} shared float big[1 << 20]; void main() {{ big[0] = 1; y[0] = big[1]; }}", "4194304 bytes in a group"),
        (f"layout(local_size_x = 1024, local_size_y = 64) in; {Y} {BODY}", "a group of"),
        (f"{GROUP} {Y} layout(binding = 1) uniform A {{ float a; }}; void main() {{ y[0] = a; }}", "2 bindings, the launch 1"),
        (
            "#extension GL_EXT_buffer_reference : require\n"
            f"layout(buffer_reference) buffer R {{ float r; }}; {GROUP} {Y} layout(binding = 1) buffer P {{ R p; }}; void main() {{ y[0] = p.r; }}",
            "capability 5347",
        ),
    ],
)  # fmt: skip
def test_what_launches_cannot_give_is_named(source: str, says: str) -> None:
    with pytest.raises(RuntimeError, match=says):
        mx.eval(call(spirv(source), shape=(64,)))
    assert scaled(mx.ones(3), 2.0).tolist() == [2.0] * 3


def test_other_code_is_refused() -> None:
    code = spirv(SCALE)
    x = mx.ones(3)
    run = lambda code, **change: mx.eval(call(code, x, scalars=[3, 2.0], **change))
    with pytest.raises(RuntimeError, match="no kernel other; it has: main"):
        run(code, name="other")
    with pytest.raises(RuntimeError, match=r"SPIR-V 1\.6, and this device takes 1\.5"):
        run(spirv(SCALE, "spirv1.6"))
    with pytest.raises(RuntimeError, match=r"a group of \(32, 1, 1\) threads, and the source says"):
        run(code, threadgroup=(32, 1, 1), grid=(64, 1, 1))
    with pytest.raises(RuntimeError, match="takes: wgsl, spirv"):
        run(b"\x7fELF")
    with pytest.raises(
        RuntimeError, match="argument 2 is a tensor, and the kernel has var<uniform> there"
    ):
        mx.eval(call(code, x, x, scalars=[3]))
    # Cut anywhere, and with instructions of impossible lengths: an error, or another compiler's valid module.
    for length in (4, 8, 19, 20, 24, len(code) // 2 + 1, len(code) - 1):
        with pytest.raises(RuntimeError):
            run(code[:length])
    words = list(struct.unpack(f"<{len(code) // 4}I", code))
    for wrong in (0, 0xFFFF0001):
        broken = [*words[:5], wrong, *words[6:]]
        with pytest.raises(RuntimeError, match="SPIR-V"):
            run(struct.pack(f"<{len(broken)}I", *broken))
    assert scaled(x, 2.0).tolist() == [2.0] * 3
