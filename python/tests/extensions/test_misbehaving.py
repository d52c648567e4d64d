"""Operations from outside that break the contract: each is an exception that names the primitive, and leaves the
process as it was."""

import gc
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest
from support import extensions
from support.memory import active

import ultramarine as mx


@pytest.fixture(scope="module")
def c(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return extensions.load(extensions.build(tmp_path_factory.mktemp("c"), "misbehaving.c"))


# It fails and leaves a result, which by the contract it was to release: nobody else can know it.
LEAKS = "compose_leaves"


@pytest.fixture(autouse=True)
def unharmed(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whatever a test did, arithmetic goes on: on the stream that it used, and on others."""
    memory = active()
    yield
    assert (mx.array(1) + 1).item() == 2
    assert mx.add(mx.ones(1000), 1, stream=mx.new_stream(mx.cpu)).sum().item() == 2000
    if LEAKS not in request.node.name:
        assert active() == memory, "a failure holds memory"


Run = Callable[[Callable[[mx.array], mx.array]], Any]

X = [1.0, 2.0, 3.0]
CALL: Run = lambda f: f(mx.array(X))
EVAL: Run = lambda f: mx.eval(f(mx.array(X)))
LATER: Run = lambda f: (mx.exp(f(mx.array(X) * 2)) + 1).tolist()
VJP: Run = lambda f: mx.vjp(f, [mx.array(X)], [mx.ones(3)])[1]
GRAD: Run = lambda f: mx.grad(lambda x: mx.exp(f(x)).sum())(mx.array(X))
JVP: Run = lambda f: mx.jvp(f, [mx.array(X)], [mx.ones(3)])[1]
VMAP: Run = lambda f: mx.vmap(f)(mx.ones((5, 3))).tolist()

# The primitive, what is done with it, the exception, and what its text has beside the name.
CASES: list[tuple[str, list[Run], type[Exception], str]] = [
    ("infer_fails", [CALL, GRAD, VMAP], ValueError, "infer found nothing"),
    ("infer_silent", [CALL], RuntimeError, "infer.*no message"),
    ("infer_strange", [CALL], RuntimeError, "infer.*77"),
    ("infer_unsupported", [CALL], Exception, "infer"),
    ("infer_negative", [CALL], Exception, "-3"),
    ("infer_rank", [CALL], Exception, "1000000"),
    ("infer_dtype", [CALL], Exception, "99"),
    ("infer_huge", [CALL], Exception, ""),
    ("infer_missing", [CALL], Exception, "infer"),
    ("eval_fails", [EVAL, LATER], ValueError, "eval found nothing"),
    ("eval_silent", [EVAL, LATER], RuntimeError, "no message"),
    ("eval_strange", [EVAL], RuntimeError, "77"),
    ("eval_no_memory", [EVAL], MemoryError, "memory"),
    ("eval_unsupported", [EVAL, LATER], Exception, "compose"),
    ("eval_unallocated", [EVAL, LATER], RuntimeError, "output"),
    ("eval_allocates_index", [EVAL], Exception, "55"),
    ("eval_allocates_twice", [EVAL], Exception, "output"),
    ("eval_shares_window", [EVAL], Exception, ""),
    ("nothing_at_all", [EVAL], Exception, ""),
    ("compose_fails", [EVAL, LATER], ValueError, "compose found nothing"),
    ("compose_silent", [EVAL], RuntimeError, "compose"),
    ("compose_nothing", [EVAL], ValueError, "compose"),
    ("compose_shape", [EVAL], ValueError, "compose"),
    ("compose_dtype", [EVAL], ValueError, "compose"),
    ("compose_leaves", [EVAL], ValueError, "compose found nothing"),
    ("compose_half", [EVAL], ValueError, "compose"),
    ("vjp_fails", [VJP, GRAD], ValueError, "vjp found nothing"),
    ("vjp_silent", [VJP, GRAD], RuntimeError, "vjp"),
    ("vjp_shape", [VJP, GRAD], ValueError, "vjp"),
    ("vjp_missing", [VJP, GRAD], Exception, "vjp"),
    ("vjp_unsupported", [VJP, GRAD], Exception, "vjp"),
    ("jvp_fails", [JVP], ValueError, "jvp found nothing"),
    ("jvp_shape", [JVP], ValueError, "jvp"),
    ("jvp_missing", [JVP], Exception, "jvp"),
    ("vmap_fails", [VMAP], ValueError, "vmap found nothing"),
    ("vmap_shape", [VMAP], ValueError, "vmap"),
    ("vmap_axis", [VMAP], ValueError, "vmap"),
    ("vmap_nothing", [VMAP], ValueError, "vmap"),
    ("vmap_missing", [VMAP], Exception, "vmap"),
    ("no_outputs", [CALL], ValueError, "output"),
    ("absurd_outputs", [CALL], ValueError, "4294967295"),
    ("no_attributes", [CALL], ValueError, "attributes"),
]
NAMELESS = [
    ("no_name", "name"),
    ("no_utf8", "name"),
    ("short_struct", "64"),
    ("no_size", "um_primitive"),
]
# Nothing can be done about their contexts: where they are told is behind the struct's end.
TOO_SHORT = {"short_struct", "no_size"}


@pytest.mark.parametrize("case", CASES, ids=lambda c: c[0])
def test_an_exception_names_the_primitive(
    c: ModuleType, case: tuple[str, list[Run], type[Exception], str]
) -> None:
    name, runs, error, text = case
    before = c.contexts()
    for run in runs:
        with pytest.raises(error, match=f"(?s){name}.*{text}"):
            run(lambda x: c.apply(name, x)[0])
    gc.collect()
    mx.synchronize()
    assert c.contexts() == before, "contexts end once each"


@pytest.mark.parametrize("name,text", NAMELESS)
def test_structs_without_a_name(c: ModuleType, name: str, text: str) -> None:
    before = c.contexts()
    with pytest.raises(ValueError, match=text):
        c.apply(name, mx.array(X))
    assert c.contexts() == before + (name in TOO_SHORT)


@pytest.mark.parametrize("name", ["right", "composed", "eval_falls_back", "vjp_zero"])
def test_what_behaves(c: ModuleType, name: str) -> None:
    before = c.contexts()
    f = lambda x: c.apply(name, x)[0]
    assert f(mx.array(X)).tolist() == [2, 4, 6]
    assert JVP(f)[0].tolist() == [2, 2, 2]
    assert VJP(f)[0].tolist() == ([0, 0, 0] if name == "vjp_zero" else [2, 2, 2])
    assert VMAP(f) == [[2, 2, 2]] * 5
    gc.collect()
    assert c.contexts() == before
    a, b = c.apply("two", mx.array(X))
    assert a.tolist() == [2, 4, 6] and b.tolist() == [3, 6, 9]


def test_the_table_is_whole(c: ModuleType) -> None:
    """Each row of misbehaving.c is in one of the tests."""
    wrong = {case[0] for case in CASES} | {n for n, _ in NAMELESS}
    right = {"right", "composed", "eval_falls_back", "vjp_zero", "two", "eval_unwritten"}
    assert set(c.names()) == wrong | right


def test_a_failure_reaches_all_waiters(c: ModuleType) -> None:
    x = c.apply("eval_fails", mx.array(X))[0]
    users = [x + 1, mx.exp(x), x]
    for user in users:
        for _ in range(2):
            with pytest.raises(ValueError, match="eval_fails"):
                mx.eval(user)
    assert mx.ones(3).sum().item() == 3


@pytest.fixture
def poison() -> Iterator[None]:
    mx.backends.set_poison(True)
    yield
    mx.backends.set_poison(False)


@pytest.mark.usefixtures("poison")
def test_unwritten_outputs(c: ModuleType) -> None:
    assert mx.backends.is_poison()
    for run in (EVAL, LATER):
        with pytest.raises(RuntimeError, match=r"eval_unwritten.*3 of 3 elements.*unwritten"):
            run(lambda x: c.apply("eval_unwritten", x)[0])
    # What behaves is left alone, whatever it writes.
    for name in ("right", "two", "composed"):
        assert c.apply(name, mx.array(X))[0].tolist() == [2, 4, 6]
    pattern = mx.array([0xA5A5A5A5, 0x5B5B5B5B], dtype=mx.uint32).view(mx.float32) / 2
    assert mx.array_equal(c.apply("right", pattern)[0], pattern * 2)


def test_poison_by_the_environment() -> None:
    printed = extensions.python(
        "-c",
        "import ultramarine as mx; print(mx.backends.is_poison())",
        ULTRAMARINE_POISON="1",
    )
    assert printed.strip() == "True"
    assert not mx.backends.is_poison()


@pytest.fixture(scope="module")
def rust(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return extensions.load(extensions.cargo(tmp_path_factory.mktemp("rust"), "panicking"))


PANICS: dict[str, Run] = {
    "infer": CALL,
    "eval_cpu": EVAL,
    "a task of eval_cpu": EVAL,
    "vjp": GRAD,
    "jvp": JVP,
    "vmap": VMAP,
}


@pytest.mark.parametrize("rule", list(PANICS))
def test_a_panic_is_an_exception(rust: ModuleType, rule: str) -> None:
    with pytest.raises(RuntimeError, match=rf"(?s)\[panics\].*a panic in {rule}"):
        PANICS[rule](lambda x: rust.apply(rule, x))
    with pytest.raises(RuntimeError, match=f"a panic in {rule}"):
        PANICS[rule](lambda x: rust.apply(rule, x) + 1)


def test_a_panic_when_a_primitive_ends(rust: ModuleType) -> None:
    assert rust.apply("drop", mx.array(X)).tolist() == [2, 4, 6]
    assert rust.apply("nowhere", mx.array(X)).tolist() == [2, 4, 6]
