"""Tiny work from Python: microseconds of single calls, beside the same in numpy and torch.

All libraries run in this process, on one core, in turns; figures are the best of all rounds. Ours are always evaluated,
torch's record a gradient only where one is taken. Words pick rows by part of the name.
"""

import argparse
import os
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bench import record, table
from bench.cpu.data import normal

LIBRARIES = ("ultramarine", "numpy", "torch")
SECONDS = 0.004  # of one measurement
WIDTH, BATCH, RATE = 16, 8, 0.01  # of the layers, and of the training step


class Row(NamedTuple):
    """Statements over the names of `data`; numpy's and torch's are ours where they are None, `-` is none."""

    ours: str
    numpy: str | None = None
    torch: str | None = None
    # Ours gives no lazy array.
    eager: bool = False

    def statement(self, library: str) -> str | None:
        own = {"numpy": self.numpy, "torch": self.torch}.get(library) or self.ours
        if own == "-":
            return None
        return own if self.eager or library != "ultramarine" else f"evaluate({own})"


def rows() -> dict[str, Row]:
    """The table's rows by name."""
    sizes = {f"{op} of {n}": Row(text) for n in (1, 16, 1024) for op, text in (
        ("x + y", f"x{n} + y{n}"), ("exp", f"m.exp(x{n})"), ("x > y", f"x{n} > y{n}"))}  # fmt: skip
    return sizes | {
        "x * 2.0 of 16": Row("x16 * 2.0"),
        "2.0 * x + 1.0 of 16": Row("2.0 * x16 + 1.0"),
        "row + column of 16": Row("row + column"),
        "x += y of 16": Row("add_to(z16, y16)"),
        "where of 16": Row("m.where(mask16, x16, y16)"),
        "x[i]": Row("x2[3]"),
        "x[i, j]": Row("x2[3, 4]"),
        "x[1:3]": Row("x2[1:3]"),
        "x[:, 1:3]": Row("x2[:, 1:3]"),
        "x[None]": Row("x2[None]"),
        "x[indices]": Row("x2[indices]"),
        "x[i] = v": Row("put(z2, 3, x16)"),
        "x[i, j] = 1.0": Row("put(z2, (3, 4), 1.0)"),
        "x.item()": Row("x1.item()", eager=True),
        "float(x[0])": Row("float(x16[0])", eager=True),
        "float of a sum": Row("float((x16 * y16).sum())", eager=True),
        "array of 3 numbers": Row(
            "m.array([1.0, 2.0, 3.0])",
            "m.array([1.0, 2.0, 3.0], 'f')",
            "m.tensor([1.0, 2.0, 3.0])",
        ),
        "array of 16 x 16 numbers": Row("m.array(lists)", "m.array(lists, 'f')", "m.tensor(lists)"),
        "array of 1000 numbers": Row("m.array(long)", "m.array(long, 'f')", "m.tensor(long)"),
        "array of a number": Row("m.array(1.5)", "m.array(1.5, 'f')", "m.tensor(1.5)"),
        "zeros of 16 x 16": Row("m.zeros((16, 16))", "m.zeros((16, 16), 'f')"),
        "arange of 16": Row("m.arange(16)"),
        "reshape": Row("x2.reshape(4, 64)"),
        "x.T": Row("x2.T"),
        "x.T + y of 16 x 16": Row("x2.T + y2"),
        "broadcast_to": Row("m.broadcast_to(x16, (16, 16))"),
        "concatenate": Row("m.concatenate([x16, y16])", torch="m.cat([x16, y16])"),
        "astype": Row("x16.astype(m.int32)", torch="x16.to(m.int32)"),
        "sum of 16": Row("x16.sum()"),
        "sum of rows, 16 x 16": Row("x2.sum(axis=1)"),
        "argmax of 16": Row("m.argmax(x16)"),
        "matmul 16 x 16": Row("x2 @ y2"),
        "matrix-vector 64": Row("matrix @ x64"),
        "softmax of 64": Row("m.softmax(x64, axis=-1)", "softmax(x64)"),
        "np.array(x)": Row("np.array(x16)", eager=True),
        "array of a numpy array": Row("m.array(host16)", torch="m.tensor(host16)"),
        "tolist of 16": Row("x16.tolist()", eager=True),
        "tolist of 16 x 16": Row("x2.tolist()", eager=True),
        "Linear 16 to 16": Row("linear(batch)"),
        "MLP 16 to 16 to 16": Row("mlp(batch)"),
        "gradient and update of an MLP": Row("step()", "-", eager=True),
    }


def add_to(z: Any, y: Any) -> Any:
    z += y
    return z


def put(z: Any, index: Any, value: Any) -> Any:
    z[index] = value
    return z


def data(m: Any, array: Callable[[np.ndarray], Any]) -> dict[str, Any]:
    """Names of the statements, the same in all libraries."""
    host = {
        f"{name}{n}": normal(n, seed=i) for i, name in enumerate("xyz") for n in (1, 16, 64, 1024)
    }
    host |= {f"{name}2": normal(16, 16, seed=i) for i, name in enumerate("xyz")}
    host |= {"row": normal(1, 16), "column": normal(16, 1), "batch": normal(BATCH, WIDTH)}
    host |= {"mask16": normal(16) > 0, "indices": np.array([1, 5, 2]), "matrix": normal(64, 64)}
    given = {"m": m, "np": np, "add_to": add_to, "put": put, "host16": normal(16)}
    given |= {"lists": normal(16, 16).tolist(), "long": normal(1000).tolist()}
    return given | {name: array(value) for name, value in host.items()}


def in_numpy() -> dict[str, Any]:
    weights = [(normal(WIDTH, WIDTH, seed=i), normal(WIDTH, seed=i)) for i in (1, 2)]

    def linear(x, layer=0):
        weight, bias = weights[layer]
        return x @ weight.T + bias

    def softmax(x):
        e = np.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    def mlp(x):
        return linear(np.maximum(linear(x), 0), 1)

    return data(np, np.array) | {"linear": linear, "softmax": softmax, "mlp": mlp}


def in_torch() -> dict[str, Any]:
    import torch
    from torch import nn

    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    linear = nn.Linear(WIDTH, WIDTH)
    mlp = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))
    given = data(torch, torch.tensor)
    optimizer = torch.optim.SGD(mlp.parameters(), RATE)

    def step():
        with torch.enable_grad():
            loss = (mlp(given["batch"]) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
        optimizer.step()
        return loss

    return given | {"linear": linear, "mlp": mlp, "step": step}


def in_ours() -> dict[str, Any]:
    import ultramarine as mx
    from ultramarine import nn, optimizers

    linear = nn.Linear(WIDTH, WIDTH)
    mlp = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))
    given = data(mx, mx.array)
    optimizer = optimizers.SGD(RATE)
    gradient = nn.value_and_grad(mlp, lambda x: (mlp(x) ** 2).mean())

    def step():
        loss, gradients = gradient(given["batch"])
        optimizer.update(mlp, gradients)
        mx.eval(mlp.parameters(), loss)
        return loss

    mx.eval(
        linear.parameters(),
        mlp.parameters(),
        [v for v in given.values() if isinstance(v, mx.array)],
    )
    return given | {"linear": linear, "mlp": mlp, "step": step, "evaluate": mx.eval}


def measured(chosen: dict[str, Row], rounds: int) -> tuple[dict[str, dict[str, float]], list[str]]:
    """Microseconds by row and library, and complaints about libraries that are missing."""
    spaces, complaints = {}, []
    for library, make in zip(LIBRARIES, (in_ours, in_numpy, in_torch), strict=True):
        try:
            spaces[library] = make()
        except ImportError as error:
            complaints.append(f"{library} left out: {error}")
    figures: dict[str, dict[str, float]] = {name: {} for name in chosen}
    for name, row in chosen.items():
        timers = {}
        for library, space in spaces.items():
            if statement := row.statement(library):
                timer = timeit.Timer(statement, globals=space)
                timer.timeit(100)
                timers[library] = timer, max(1, int(SECONDS / (timer.timeit(100) / 100)))
        for _ in range(rounds):
            for library, (timer, calls) in timers.items():
                each = timer.timeit(calls) / calls * 1e6
                figures[name][library] = min(each, figures[name].get(library, each))
    return figures, complaints


def ratio(figures: dict[str, float], library: str) -> str:
    if library not in figures or "ultramarine" not in figures:
        return "-"
    return f"{figures['ultramarine'] / figures[library]:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="parts of the names of rows")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--figures", type=Path, help="file for the figures")
    asked = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    chosen = {
        n: row for n, row in rows().items() if not asked.words or any(w in n for w in asked.words)
    }
    figures, complaints = measured(chosen, asked.rounds)
    lines = [["microseconds", "ours", "numpy", "torch", "/ numpy", "/ torch", ""]]
    for name, of in figures.items():
        numbers = [table.number(of.get(library)) for library in LIBRARIES]
        behind = "BEHIND torch" if of.get("torch", 1e9) < of.get("ultramarine", 0) else ""
        lines.append([name, *numbers, ratio(of, "numpy"), ratio(of, "torch"), behind])
    table.show(lines, left=(0, 6))
    for line in complaints:
        print(line)
    if asked.figures:
        record.save(
            asked.figures,
            [
                record.Figure("tiny", name, library, value, "us", samples=asked.rounds)
                for name, of in figures.items()
                for library, value in of.items()
            ],
        )


if __name__ == "__main__":
    main()
