"""A consumer in plain C, without Python: it gets the tensor of a capsule, writes, and gives it back."""

from __future__ import annotations

import ctypes
import gc
import shutil
import subprocess
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.capsules import address, header

import ultramarine as mx

# The struct in the test's own words: what DLPack 1.x promises to any consumer.
SOURCE = r"""
#include <pthread.h>
#include <stdint.h>

struct tensor {
    void *data; int32_t device_type, device_id, ndim;
    uint8_t code, bits; uint16_t lanes;
    int64_t *shape, *strides; uint64_t byte_offset;
};
struct managed {
    uint32_t major, minor; void *context;
    void (*deleter)(struct managed *); uint64_t flags;
    struct tensor t;
};

/* Adds `value` to each element of a float32 matrix. */
void add(struct managed *m, float value) {
    for (int64_t i = 0; i < m->t.shape[0]; i++)
        for (int64_t j = 0; j < m->t.shape[1]; j++)
            ((float *)((char *)m->t.data + m->t.byte_offset))[i * m->t.strides[0] + j * m->t.strides[1]] += value;
}

static void *last(void *m) {
    ((struct managed *)m)->deleter(m);
    return 0;
}

/* Gives the tensor back on a thread that Python has never heard of. */
int give_back_elsewhere(struct managed *m) {
    pthread_t thread;
    return pthread_create(&thread, 0, last, m) || pthread_join(thread, 0);
}
"""

take_name = ctypes.pythonapi.PyCapsule_SetName
take_name.restype, take_name.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
pointer = ctypes.pythonapi.PyCapsule_GetPointer
pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
USED = b"used_dltensor_versioned"


def take(x: mx.array) -> int:
    """The tensor of `x`, taken out of its capsule as DLPack says."""
    capsule = x.__dlpack__(max_version=(1, 3))
    tensor = pointer(capsule, b"dltensor_versioned")
    assert take_name(capsule, USED) == 0
    return int(tensor or 0)


@pytest.fixture(scope="module")
def lib(tmp_path_factory: pytest.TempPathFactory) -> Any:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler (cc)")
    place: Path = tmp_path_factory.mktemp("plain")
    source, library = place / "plain.c", place / "plain.so"
    source.write_text(SOURCE)
    flags = ["-O1", "-shared", "-fPIC", "-pthread", str(source), "-o", str(library)]
    subprocess.run([compiler, *flags], check=True, timeout=120)
    loaded = ctypes.CDLL(str(library))
    loaded.add.restype, loaded.add.argtypes = None, [ctypes.c_void_p, ctypes.c_float]
    loaded.give_back_elsewhere.argtypes = [ctypes.c_void_p]
    return loaded


def test_it_writes_to_our_memory(lib: Any) -> None:
    x = mx.array(np.zeros((4, 6), np.float32))
    tensor = take(x[1:3, ::2].T)
    lib.add(tensor, 2.5)
    assert lib.give_back_elsewhere(tensor) == 0
    want = np.zeros((4, 6))
    want[1:3, ::2] = 2.5
    assert x.tolist() == want.tolist()


def test_given_back_without_the_interpreter(lib: Any) -> None:
    """The memory goes when the deleter ran, on a thread of the system, and not before."""
    gc.collect()  # what earlier tests left
    before = mx.get_active_memory()
    x = mx.array(np.ones((512, 512), np.float32))
    tensor = take(x)
    del x
    gc.collect()
    assert mx.get_active_memory() >= before + (1 << 20)
    lib.add(tensor, 1)
    assert lib.give_back_elsewhere(tensor) == 0
    assert mx.get_active_memory() < before + (1 << 20)


def test_imports_are_given_back_there_too(lib: Any) -> None:
    """The deleter of an import of NumPy's takes the interpreter's lock by itself."""
    data = np.ones((3, 3), np.float32)
    x = mx.from_dlpack(data)
    tensor = take(x)
    del x
    done = []
    thread = threading.Thread(target=lambda: done.append(lib.give_back_elsewhere(tensor)))
    thread.start()
    thread.join()
    assert done == [0]
    assert data.sum() == 9


def test_exported_header() -> None:
    x = mx.array(np.zeros((4, 6), np.float32))
    exported = header(x[1:3, ::2])
    assert exported.version == (1, 3)
    assert (exported.shape, exported.strides) == ((2, 3), (6, 2))
    assert exported.dtype == (2, 32, 1)
    assert exported.device == (1, 0)
    assert exported.address == address(x) + 24
    assert exported.data % 256 == 0
