"""Eight threads that build and evaluate on shared arrays."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from support.harness import Tally
from support.memory import active

import ultramarine as mx

THREADS = 8


def together(work: Callable[[int], None]) -> None:
    """Runs work(0) to work(7) at once; the first failure is raised, a thread that hangs too."""
    failures: list[BaseException] = []
    gate = threading.Barrier(THREADS)

    def run(i: int) -> None:
        try:
            gate.wait(60)
            work(i)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive(), "a thread hangs"
    if failures:
        raise failures[0]


def test_training_beside_traces_keeps_its_size() -> None:
    """Eight threads make 2,000 steps while another one is inside of a compiled function's trace."""
    begun, over = threading.Event(), threading.Event()

    def traced(x: mx.array) -> mx.array:
        begun.set()
        assert over.wait(120)
        return mx.exp(x)

    def loss(w: mx.array) -> mx.array:
        return mx.sin(w * w).sum()

    step = mx.value_and_grad(loss)
    weights = [mx.full((1024,), 1.0 + i / 8) for i in range(THREADS)]

    def train(i: int, steps: int) -> None:
        for _ in range(steps):
            value, gradient = step(weights[i])
            weights[i] = weights[i] - 0.01 * gradient
            mx.eval(value, weights[i])

    tracer = threading.Thread(
        target=mx.compile(mx.grad(traced)), args=(mx.array(1.0),), daemon=True
    )
    tracer.start()
    try:
        assert begun.wait(120)
        together(lambda i: train(i, 10))
        before = active()
        together(lambda i: train(i, 250))
        assert active() - before < 64 << 10
    finally:
        over.set()
        tracer.join(120)


def test_each_its_own_arrays() -> None:
    def work(i: int) -> None:
        for n in range(200):
            x = mx.arange(1000) * i + n
            assert x.sum().item() == 1000 * 999 // 2 * i + 1000 * n

    together(work)


def test_one_shared_lazy_graph() -> None:
    """All evaluate the same unevaluated array: it is computed right, whoever comes first."""
    for _ in range(50):
        x = mx.arange(5000, dtype=mx.float32)
        for _ in range(30):
            x = x * 1.0 + 1.0
        want = np.arange(5000, dtype=np.float32) + 30
        together(lambda i, x=x: np.testing.assert_array_equal(np.array(x), want))


def test_shared_inputs_with_own_ends() -> None:
    base = mx.arange(10000, dtype=mx.float32) + 0
    shared = mx.sqrt(base) + 1

    def work(i: int) -> None:
        for n in range(50):
            end = (shared * (i + 1) + n)[:: i + 1]
            want = ((np.sqrt(np.arange(10000, dtype=np.float32)) + 1) * (i + 1) + n)[:: i + 1]
            np.testing.assert_allclose(np.array(end), want, rtol=1e-5)

    together(work)


def test_large_work_beside_small() -> None:
    big = mx.ones((600, 600))

    def work(i: int) -> None:
        if i % 2:
            for _ in range(10):
                assert (big @ big)[0, 0].item() == 600
        else:
            for n in range(300):
                assert (mx.array(n) + 1).item() == n + 1

    together(work)


def test_grad_in_threads() -> None:
    step = mx.value_and_grad(lambda w, x: ((x @ w) ** 2).sum())
    x = mx.arange(12, dtype=mx.float32).reshape(3, 4)
    plain = np.array(x)

    def work(i: int) -> None:
        w = mx.full((4,), float(i))
        for _ in range(50):
            value, grad = step(w, x)
            y = plain @ np.full(4, i, np.float32)
            assert value.item() == float((y**2).sum())
            np.testing.assert_allclose(np.array(grad), 2 * plain.T @ y, rtol=1e-5)

    together(work)


def test_async_eval_and_streams() -> None:
    def work(i: int) -> None:
        stream = mx.new_stream(mx.cpu)
        for n in range(50):
            with mx.stream(stream):
                x = mx.full((1000,), i + n, dtype=mx.int32) * 2
                y = x + 1
            mx.async_eval(y)
            z = mx.add(x, y, stream=mx.cpu)
            assert z[999].item() == 4 * (i + n) + 1
        mx.synchronize(stream)

    together(work)


def test_python_runs_while_we_evaluate() -> None:
    """The lock is released: another thread counts during one long evaluation."""
    counted = 0
    done = threading.Event()

    def count() -> None:
        nonlocal counted
        while not done.is_set():
            counted += 1
            done.wait(0.0005)

    x = mx.ones((1500, 1500))
    for _ in range(5):
        x = mx.softmax(x @ x, axis=-1)
    thread = threading.Thread(target=count)
    thread.start()
    before = counted
    mx.eval(x)
    during = counted - before
    done.set()
    thread.join()
    assert during > 2


def test_errors_in_threads_stay_there() -> None:
    def work(i: int) -> None:
        for _ in range(100):
            try:
                mx.ones((2, 3)) @ mx.ones((4, 5))
            except ValueError:
                pass
            else:
                raise AssertionError("no error")
            assert (mx.ones(3) * i).tolist() == [i] * 3

    together(work)


def in_thread(work: Callable[[], Any]) -> Any:
    """What `work` gives in a thread of its own."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result(60)


def test_threads_leave_each_others_random_numbers_alone() -> None:
    def case(lib: Any) -> Any:
        def draw() -> Any:
            return lib.random.uniform(shape=(3,)).tolist()

        def seeded() -> Any:
            lib.random.seed(5)
            return draw()

        def key() -> Any:
            return lib.random.state[0].tolist()

        lib.random.seed(1)
        numbers = [draw(), in_thread(seeded), draw()]
        in_thread(draw)
        in_thread(lambda: lib.random.state[0])
        return [numbers, draw(), key(), in_thread(lambda: (seeded(), key()))]

    assert case(mx) == case(pytest.importorskip("mlx.core"))


def test_threads_that_do_not_seed_have_numbers_of_their_own(tally: Tally) -> None:
    def keys_of(lib: Any) -> Any:
        key, other = (in_thread(lambda: lib.random.state[0].tolist()) for _ in range(2))
        return lib.array(key == other)

    tally.same("states of threads", keys_of)
    mx.random.seed(3)
    keys = [mx.random.state[0].tolist()]
    keys += [in_thread(lambda: mx.random.state[0].tolist()) for _ in range(3)]
    assert len({tuple(key) for key in keys}) == 4


def test_captured_random_state_is_the_calling_threads() -> None:
    def case(lib: Any) -> Any:
        state = lib.random.state
        step = lib.compile(lambda: lib.random.uniform(shape=(2,)), inputs=state, outputs=state)

        def seeded() -> Any:
            lib.random.seed(7)
            return [step().tolist(), step().tolist()]

        lib.random.seed(4)
        before = step().tolist()
        return [before, in_thread(seeded), step().tolist(), state[0].tolist(), seeded()]

    found = case(mx)
    mx.random.seed(4)
    assert [found[0], found[2]] == [mx.random.uniform(shape=(2,)).tolist() for _ in range(2)]
    assert found[1] == found[4]
    assert found == case(pytest.importorskip("mlx.core"))
