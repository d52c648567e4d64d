"""`ultramarine._C_API`: arrays to and from a C extension that lies outside of everything of ours. What is
counted: references to objects, objects alive, and bytes of arrays alive."""

import re
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from support import extensions
from support.memory import active

import ultramarine as mx

BYTES = 1 << 20


@pytest.fixture(scope="module")
def c(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return extensions.load(extensions.build(tmp_path_factory.mktemp("c"), "minimal.c"))


def big() -> mx.array:
    """An array whose memory shows in the counters."""
    x = mx.zeros((BYTES // 4,)) + 1
    mx.eval(x)
    return x


def balanced(*objects: Any) -> Callable[[Callable[[], Any]], None]:
    """A check that calls leave the objects' references, and memory, as they were."""

    def check(call: Callable[[], Any]) -> None:
        call()  # What is made once is not counted.
        counts, memory = [sys.getrefcount(o) for o in objects], active()
        blocks = sys.getallocatedblocks()
        for _ in range(200):
            call()
        assert [sys.getrefcount(o) for o in objects] == counts
        assert active() == memory
        # A leak is one block or more for each call.
        assert sys.getallocatedblocks() - blocks < 100

    return check


def raises(error: type[Exception], call: Callable[[], Any]) -> Callable[[], None]:
    def caught() -> None:
        try:
            call()
        except error:
            return
        raise AssertionError("no exception")

    return caught


def test_the_capsule() -> None:
    assert type(mx._C_API).__name__ == "PyCapsule"  # type: ignore[attr-defined]
    assert '"ultramarine._C_API"' in repr(mx._C_API)  # type: ignore[attr-defined]


def test_versions(c: ModuleType) -> None:
    major, minor, size, host_size, version = c.versions()
    assert (major, minor) == (1, 2)
    assert size > 0 and host_size > 0
    assert version == mx.__version__


def test_borrow_and_return(c: ModuleType) -> None:
    x = big()
    y = c.same(x)
    assert type(y) is mx.array and y is not x
    assert mx.array_equal(x, y)
    balanced(x)(lambda: c.same(x))


def test_a_result_lives_alone(c: ModuleType) -> None:
    before = active()
    x = big()
    with_x = active()
    assert with_x - before >= BYTES
    y = c.same(x)
    gone = weakref.ref(x)
    del x
    assert gone() is None
    # The same memory, which the second object holds now.
    assert active() == with_x
    assert y[0].item() == 1
    del y
    assert active() == before


def test_handles_outlive_objects(c: ModuleType) -> None:
    before = active()
    x = big()
    handle = c.hold(x)
    gone = weakref.ref(x)
    del x
    assert gone() is None, "a handle is no reference to an object"
    assert active() - before >= BYTES
    assert c.held(handle)[7].item() == 1
    del handle
    assert active() == before


def test_a_handle_keeps_what_it_was_taken_of(c: ModuleType) -> None:
    """An in-place operation makes the object another array."""
    x = mx.array([1.0, 2.0])
    handle = c.hold(x)
    x += 1
    assert c.held(handle).tolist() == [1, 2]
    assert x.tolist() == [2, 3]


def test_is_array(c: ModuleType) -> None:
    class Own(mx.array):
        pass

    assert c.is_array(mx.array(1)) and c.is_array(Own([1]))
    for other in (1, None, [1], np.ones(2), mx.array, mx):
        assert not c.is_array(other)
    assert c.same(Own([1.0, 2.0])).tolist() == [1, 2]


def test_operations(c: ModuleType) -> None:
    x, y = big(), big()
    assert c.add(x, y)[3].item() == 2
    balanced(x, y)(lambda: c.add(x, y))
    balanced(x, y)(lambda: mx.eval(c.add(x, y)))
    n = np.ones(1000, dtype=np.float32)
    assert c.add_any(n, 2).tolist()[:2] == [3, 3]
    balanced(n, x)(lambda: c.add_any(n, 2))


def test_errors_end_what_was_made(c: ModuleType) -> None:
    x, y = big(), mx.ones((3,))
    n = np.ones(5, dtype=np.float32)
    nothing = object()
    for error, call, objects in [
        (TypeError, lambda: c.same(nothing), [nothing]),
        (TypeError, lambda: c.same(n), [n]),
        (TypeError, lambda: c.add(x, nothing), [x, nothing]),
        (ValueError, lambda: c.add(x, y), [x, y]),
        (ValueError, lambda: c.made(nothing), [nothing]),
        (ValueError, lambda: c.add_any(x, nothing), [x, nothing]),
        (ValueError, lambda: c.add_any(n, y), [n, y]),
        (TypeError, lambda: c.hold(None), []),
    ]:
        balanced(*objects)(raises(error, call))
    with pytest.raises(TypeError, match=r"expected an ultramarine\.array, got ndarray"):
        c.same(n)
    with pytest.raises(ValueError) as ours:
        mx.add(x, y)
    with pytest.raises(ValueError) as theirs:
        c.add(x, y)
    assert str(theirs.value) == str(ours.value)


def test_an_exception_in_an_object_comes_through(c: ModuleType) -> None:
    class Bad:
        def __len__(self) -> int:
            return 2

        def __getitem__(self, i: int) -> float:
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        c.made(Bad())


def test_a_handle_is_taken_over_when_there_is_no_object(c: ModuleType) -> None:
    nomemory = pytest.importorskip("_testcapi")
    before = active()
    kept = [big()]
    functions = nomemory.set_nomemory, nomemory.remove_mem_hooks
    fails = lambda: c.without_memory(kept[0], *functions)
    balanced(kept[0])(raises(MemoryError, fails))
    with pytest.raises(MemoryError):
        fails()
    kept.clear()
    assert active() == before, "the handle went with the failure"


@pytest.mark.parametrize(
    "how", ["no object", "no object to make of", "no array", "no error", "no place", "short place"]
)
def test_mistakes_are_system_errors(c: ModuleType, how: str) -> None:
    with pytest.raises(SystemError):
        c.wrong(how)


def test_the_page_is_true(tmp_path: Path) -> None:
    """The module of docs/native-arrays.md, and its setup.py."""
    page = (extensions.ROOT / "docs/native-arrays.md").read_text()
    blocks = dict(re.findall(r"^```(\w+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    (tmp_path / "page.c").write_text(
        blocks["c"]
        + """
        static PyMethodDef methods[] = {{"add", add, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};
        static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)start}, {0, NULL}};
        static struct PyModuleDef definition = {
          PyModuleDef_HEAD_INIT, "page", NULL, 0, methods, slots, NULL, NULL, NULL};
        PyMODINIT_FUNC PyInit_page(void) { return PyModuleDef_Init(&definition); }
        """
    )
    page_c = extensions.load(extensions.build(tmp_path, str(tmp_path / "page.c")))
    assert page_c.add(mx.array([1, 2]), mx.array(3)).tolist() == [4, 5]
    with pytest.raises(TypeError):
        page_c.add(1, 2)
    assert "from ultramarine.extension import BuildExtension, Extension" in blocks["python"]
    compile(blocks["python"], "setup.py", "exec")


def test_conversions(c: ModuleType) -> None:
    """As `asarray` has them, and not `array`: float64 stays."""
    for given in (1, 2.5, True, 1j, [[1, 2], [3, 4]], np.ones((2, 3)), b"ab", mx.ones(2), range(4)):
        have, want = c.made(given), mx.asarray(given)
        assert have.dtype == want.dtype and have.shape == want.shape
        assert mx.array_equal(have, want)
    n = np.ones(10, dtype=np.float32)
    balanced(n)(lambda: c.made(n))
    shared = c.made(n)
    n[0] = 5
    assert shared[0].item() == 5, "the memory is NumPy's"


def test_types_and_values(c: ModuleType) -> None:
    assert c.type_of(mx.ones((3, 4), dtype=mx.bfloat16)) == ((3, 4), 4, 16)
    assert c.type_of(mx.array(True)) == ((), 6, 8)
    x = mx.arange(12, dtype=mx.float32)
    assert c.sum(x) == 66
    assert c.sum(x[::-2]) == 36
    assert c.sum(np.arange(4, dtype=np.float32)) == 6
    balanced(x)(lambda: c.sum(x))
    assert c.from_bytes(b"\1\2\xff").tolist() == [1, 2, 255]
    assert c.from_bytes(b"").shape == (0,)
    data = bytes(1000)
    balanced(data)(lambda: c.from_bytes(data))


def test_places(c: ModuleType) -> None:
    stream = mx.new_stream(mx.cpu)
    own = mx.new_thread_local_stream(mx.cpu)
    default = mx.default_stream(mx.cpu).index
    assert c.place_of(None)[0] == 0
    for device in (mx.cpu, mx.Device(mx.cpu), mx.Device(mx.cpu, 0)):
        assert c.place_of(device) == (2, 0, 0, default)
    assert c.place_of(stream) == (2, 0, 0, stream.index)
    kind, device_type, device_index, index = c.place_of(own)
    assert (kind, device_type, device_index) == (2, 0, 0) and index not in (default, stream.index)
    assert c.place_of(own)[3] == index
    with pytest.raises(TypeError, match="expected a Stream, Device, DeviceType or None, got str"):
        c.place_of("cpu")
    with pytest.raises(ValueError):
        c.place_of(mx.Device(mx.cpu, 9))
    nothing = object()
    balanced(nothing)(raises(TypeError, lambda: c.place_of(nothing)))
    balanced(stream)(lambda: c.place_of(stream))


@pytest.mark.parametrize(
    ("status", "error"), [(6, ValueError), (4, MemoryError), (1, RuntimeError), (2, RuntimeError)]
)
def test_statuses(c: ModuleType, status: int, error: type[Exception]) -> None:
    with pytest.raises(error, match="what went wrong") as caught:
        c.raise_status(status, "what went wrong")
    assert type(caught.value) is error
    balanced()(raises(error, lambda: c.raise_status(status, "what went wrong")))
