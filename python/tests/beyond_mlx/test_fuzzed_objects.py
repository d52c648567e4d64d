"""Objects put together at random of protocols that lie, raise, recurse or change meanwhile: an array, or an error."""

import os
import signal
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
from support import mutations

import ultramarine as mx

# Objects are cheap.
COUNT = 25 * mutations.COUNT

# Seconds until an object counts as one that hangs.
PATIENCE = 60

ERRORS = [
    ValueError,
    TypeError,
    IndexError,
    KeyError,
    AttributeError,
    OverflowError,
    MemoryError,
    RecursionError,
    RuntimeError,
    ZeroDivisionError,
    BufferError,
    StopIteration,
    OSError,
]
LENGTHS = [0, 1, 2, 3, 4, 5, -1, 2**50, 2**62, 2**70, 2.5, "2", None, True]
NUMBERS = [
    0,
    1,
    -1,
    2**63,
    -(2**70),
    1.5,
    float("nan"),
    1e400,
    1j,
    "1",
    None,
    b"1",
    True,
    np.float32(2),
    np.array(3),
]


# Protocols that are nothing without each other.
WHOLE = [
    ("__len__", "__getitem__"),
    ("__len__", "__getitem__", "__iter__"),
    ("__dlpack__", "__dlpack_device__"),
    ("__array__",),
    ("__array_interface__",),
    ("__mlx_array__",),
    ("__buffer__",),
    ("__float__", "__int__", "__index__"),
    (),
]


class World:
    """State that the objects of one case share, and change."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.items: list[Any] = []
        self.depth = 0

    def leaf(self) -> Any:
        return self.random.choice(
            [*NUMBERS, mx.array(2), mx.array([1, 2]), np.ones(2), [1, 2], (), range(2), "text"]
        )

    def value(self) -> Any:
        """A leaf, a list, or another object of these."""
        self.depth += 1
        if self.depth > 6 or self.random.random() < 0.4:
            return self.leaf()
        kind = self.random.random()
        if kind < 0.3:
            return [self.value() for _ in range(self.random.randint(0, 3))]
        if kind < 0.4:
            return self.items
        return hostile(self)

    def disturb(self) -> None:
        """Changes the list that others may be reading."""
        match self.random.randrange(4):
            case 0:
                self.items.clear()
            case 1:
                self.items.append(self.leaf())
            case 2:
                self.items[:] = self.items[:1] * 3
            case _:
                self.items.insert(0, self.items)

    def answer(self, honest: Callable[[], Any]) -> Any:
        """The result of a method: what it should, something else, or an error; and changes on the way."""
        if self.random.random() < 0.3:
            self.disturb()
        match self.random.randrange(6):
            case 0:
                raise self.random.choice(ERRORS)("on purpose")
            case 1:
                return self.leaf()
            case _:
                return honest()


def interface(world: World) -> Any:
    """An array interface over bytes, whose numbers may be wrong."""
    random = world.random
    return {
        "version": random.choice([3, 3, 3, 2, None]),
        "shape": random.choice([(2,), (2, 1), (), (4,), (-1,), (2**40,), "x", (2.5,)]),
        "typestr": random.choice(
            ["<f4", "<i4", ">i4", "|u1", "<f8", "|O", "<U4", "zz", None, "<c8"]
        ),
        "data": random.choice([bytes(8), bytearray(8), bytes(3), None, "x"]),
        "strides": random.choice([None, None, (4,), (-4,), (0,), (2**40,), (1, 2)]),
    }


def hostile(world: World) -> Any:
    """An object of a class of its own, with some of the protocols."""
    random, answer = world.random, world.answer
    size, constant = random.choice(LENGTHS), random.random() < 0.5

    def capsule(self: Any, **keywords: Any) -> Any:
        return answer(lambda: np.arange(3).__dlpack__())

    def number(self: Any) -> Any:
        return answer(lambda: random.choice(NUMBERS))

    def item(self: Any, at: Any) -> Any:
        if not isinstance(at, int) or not 0 <= at < 3:
            raise IndexError(at)
        return answer(lambda: self if random.random() < 0.1 else world.value())

    def buffer(self: Any, flags: int) -> memoryview:
        return answer(
            lambda: memoryview(bytearray(random.choice([0, 3, 8]))).cast(random.choice("Bbc"))
        )

    methods: dict[str, Any] = {
        "__len__": lambda self: size if constant else answer(lambda: random.choice(LENGTHS)),
        "__getitem__": item,
        "__iter__": lambda self: answer(lambda: iter([world.leaf()])),
        "__array__": lambda self, *a, **k: answer(lambda: np.arange(4.0).reshape(2, 2)),
        "__array_interface__": property(lambda self: answer(lambda: interface(world))),
        "__dlpack__": capsule,
        "__dlpack_device__": lambda self: answer(
            lambda: random.choice([(1, 0), (2, 0), (99, -1), (1,), None])
        ),
        "__mlx_array__": lambda self: answer(lambda: mx.array([1, 2])),
        "__buffer__": buffer,
        "__float__": number,
        "__int__": number,
        "__index__": number,
        "__complex__": number,
        "__bool__": number,
        "__getattr__": lambda self, name: answer(lambda: object.__getattribute__(self, name)),
        "dtype": property(
            lambda self: answer(lambda: random.choice([mx.float32, np.dtype("f4"), "f4", 3]))
        ),
        "shape": property(lambda self: answer(lambda: (2,))),
        "keys": lambda self: answer(list),
    }
    names = [*random.choice(WHOLE), *random.sample(sorted(methods), random.choice([0, 0, 1, 3]))]
    base = random.choice([object, object, object, list, tuple, int, float, dict])
    try:
        return type("Hostile", (base,), {name: methods[name] for name in names})()
    except Exception:
        return type("Hostile", (), {name: methods[name] for name in names})()


CALLS: list[Callable[[Any], Any]] = [
    mx.array,
    mx.asarray,
    lambda odd: mx.array([1, odd]),
    lambda odd: mx.asarray([[odd], [odd]]),
    lambda odd: mx.array(odd, mx.int8),
    lambda odd: mx.asarray(odd, copy=False),
    lambda odd: mx.arange(3) + odd,
    lambda odd: mx.maximum(odd, mx.arange(3)),
    lambda odd: mx.zeros(odd),
    lambda odd: mx.arange(3)[odd],
    lambda odd: mx.full((2,), odd),
    lambda odd: mx.stack([mx.arange(3), odd]),
    lambda odd: mx.from_dlpack(odd),
]


def outcome(number: int) -> str:
    """Gives the object of a number to a call."""
    random = Random(f"object {number}")
    world = World(random)
    world.items += [world.leaf(), hostile(world)]
    odd = world.items if random.random() < 0.2 else hostile(world)
    try:
        made = random.choice(CALLS)(odd)
        made = [made] if isinstance(made, mx.array) else made
        mx.eval(made)
        for a in made:
            a.tolist()
        return "array"
    except Exception as error:
        return "a panic" if "panicked" in str(error) else "error"


def test_objects_that_are_put_together_at_random() -> None:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            for number in range(COUNT):
                os.write(write, f"{number} ".encode())
                signal.alarm(PATIENCE)
                os.write(write, f"{outcome(number)}\n".encode())
        except BaseException as error:
            os.write(write, f"{type(error).__name__}: {error}\n".encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as lines:
        told = lines.read().splitlines()
    _, status = os.waitpid(child, 0)
    assert not os.WIFSIGNALED(status), (
        f"object {told[-1]}: {signal.Signals(os.WTERMSIG(status)).name}"
    )
    outcomes = Counter(line.partition(" ")[2] for line in told)
    assert set(outcomes) == {"array", "error"}, [
        line for line in told if "rror:" in line or "panic" in line or "xception" in line
    ]
    assert sum(outcomes.values()) == COUNT
    assert outcomes["array"] > COUNT / 20, outcomes
