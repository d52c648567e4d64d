"""Trees that are nested deeper than the stack of their thread allows: an error, whatever the stack's size."""

import subprocess
import sys
import threading
from typing import Any

import pytest

import ultramarine as um

# Runs a case in a thread with a small stack, and says what came of it.
CHILD = """
import sys, threading
import ultramarine as um

size, levels, case = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
x = um.array([1.0, 2.0])
kinds = {"list": lambda t: [t], "tuple": lambda t: (t,), "dict": lambda t: {"a": t}}

class Layers(list):
    pass

def tree(kind="list"):
    made = x
    for i in range(levels):
        made = (kinds[kind] if kind in kinds else lambda t: Layers([t]))(made)
    return made

def flat(t):
    while not isinstance(t, um.array):
        t = t["a"] if isinstance(t, dict) else t[0]
    return t.sum()

cases = {
    "eval": lambda: um.eval(tree()),
    "async_eval": lambda: um.async_eval(tree("dict")),
    "grad": lambda: um.grad(flat)(tree("dict")),
    "beside grad": lambda: um.grad(lambda x, t: (x * flat(t)).sum())(x, tree("tuple")),
    "vmap": lambda: um.vmap(flat)(tree("tuple")),
    "vmap's axes": lambda: um.vmap(flat, in_axes=0)(tree("list")),
    "in_axes": lambda: um.vmap(flat, in_axes=(axes(),))(tree("list")),
    "compile": lambda: um.compile(flat)(tree("dict")),
    "compile's result": lambda: um.compile(lambda x: tree("list"))(x),
    "state": lambda: um.compile(lambda x: x, inputs=tree("list"))(x),
    "outputs": lambda: um.compile(lambda x: x, outputs=tree("dict"))(x),
    "checkpoint": lambda: um.checkpoint(flat)(tree("list")),
    "subclass": lambda: um.checkpoint(flat)(tree("Layers")),
}

def axes():
    made = 0
    for i in range(levels):
        made = [made]
    return made

outcome = []

def run():
    try:
        cases[case]()
        outcome.append("done")
    except RecursionError as error:
        outcome.append(f"RecursionError: {error}")

um.eval(x + 1)
threading.stack_size(size)
thread = threading.Thread(target=run)
thread.start()
thread.join()
print(*outcome)
"""

CASES = [
    "eval", "async_eval", "grad", "beside grad", "vmap", "vmap's axes", "in_axes", "compile",
    "compile's result", "state", "outputs", "checkpoint", "subclass",
]  # fmt: skip


def child(size: int, levels: int, case: str) -> str:
    command = [sys.executable, "-c", CHILD, str(size), str(levels), case]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    return done.stdout.strip()


@pytest.mark.parametrize("case", CASES)
def test_a_small_stack(case: str) -> None:
    outcome = child(64 << 10, 2000, case)
    assert outcome.startswith("RecursionError: ") and "too deeply" in outcome


@pytest.mark.parametrize("case", ["eval", "grad", "compile", "checkpoint"])
def test_a_large_stack(case: str) -> None:
    """What a small stack has no room for is no deeper than a large one's."""
    assert child(64 << 20, 2000, case) == "done"


@pytest.mark.parametrize("levels", [50, 100, 200])
def test_either_way_the_process_lives(levels: int) -> None:
    assert child(64 << 10, levels, "eval").startswith(("done", "RecursionError"))


def test_trees_that_contain_themselves() -> None:
    loop: list[Any] = [um.array(1.0)]
    loop.append(loop)
    state: dict[str, Any] = {}
    state["self"] = state
    for call in (
        lambda: um.eval(loop),
        lambda: um.grad(lambda t: t[0])(loop),
        lambda: um.vmap(lambda t: t[0])(loop),
        lambda: um.checkpoint(lambda t: t[0])(loop),
        lambda: um.compile(lambda t: t[0])(loop),
        lambda: um.compile(lambda x: x, inputs=state)(um.array(1.0)),
    ):
        with pytest.raises(RecursionError, match="contains itself"):
            call()


def test_a_thread_of_the_usual_size() -> None:
    """The bounds of each thread's stack are its own."""
    tree: Any = um.array(1.0)
    for _ in range(300):
        tree = [tree]
    made: list[Any] = []

    def run() -> None:
        um.eval(tree)
        made.append(um.grad(lambda t: um.vmap(lambda x: x)(um.ones(2)).sum() * leaf(t))(tree))

    def leaf(t: Any) -> Any:
        while isinstance(t, list):
            t = t[0]
        return t

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [leaf(m).item() for m in made] == [2.0] * 4
