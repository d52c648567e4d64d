"""Two processes with a GPU each, through NCCL: every collective over dtypes and strides against NumPy, transforms, groups, faults,
data-parallel training against one GPU with the joint batch, and the rates of all-reduce beside torch.distributed's.

    python3 testing/gpu-checks/two_ranks.py [--quick] [--ranks N] [--part NAME]

Starts its processes itself, with the variables of mlx.launch, and takes about three minutes. Prints a line for each check and a
table of rates; the exit status is 1 if a check fails. With one GPU it says so and ends. `--quick` leaves out the rates, as on
emulated devices (ULTRAMARINE_CUDA_DEVICES=2 EMULATED_CUDA_DEVICES=2). Parts: see PARTS.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import all_reduce_rates
import numpy as np
import rank_ctas
import rank_replays

MIB = 1 << 20
LIMIT = 100.0  # seconds that a job may take

# Jobs by their names: the function that ranks run, and variables. Faults have jobs of their own, since they end groups.
PARTS: dict[str, tuple[str, dict[str, str]]] = {
    "collectives": ("collectives", {}),
    "programs": ("programs", {}),
    "training": ("training", {}),
    "replays": ("replays", {}),
    "replays in debug mode": ("replays", {"ULTRAMARINE_DISTRIBUTED_DEBUG": "1"}),
    "limits of thread blocks": ("limited", {}),
    "exit beside a group that ends": ("ends_beside_a_group", {"EMULATED_NCCL_SLOW_END": "500"}),
    "a rank that dies": ("dies", {}),
    "a rank that does not come": ("sleeps", {"ULTRAMARINE_DISTRIBUTED_TIMEOUT": "4"}),
    "ranks that differ": ("differs", {"ULTRAMARINE_DISTRIBUTED_DEBUG": "1"}),
    "a rank that dies, calls that do not block": ("dies", {"ULTRAMARINE_NCCL_BLOCKING": "0"}),
    "a rank that dies in a replay": ("dies_in_a_replay", {}),
    "rates": ("rates", {}),
    "rates, calls that do not block": ("rates_small", {"ULTRAMARINE_NCCL_BLOCKING": "0"}),
    "rates by thread blocks": ("table", {}),
}
# Left out where times mean nothing.
RATES = ("rates", "rates, calls that do not block", "rates by thread blocks")
# Ranks that a fault ends by design.
MAY_FAIL = {name: 1 for name in PARTS if name.startswith("a rank that dies")}


# ---- the parent ------------------------------------------------------------------------------------------------------------


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def run_part(name: str, ranks: int) -> list[dict[str, Any]]:
    """The lines that the ranks of a job wrote, and one for each rank that failed."""
    function, variables = PARTS[name]
    lines: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        begun, port, other = time.monotonic(), free_port(), free_port()
        processes = []
        for rank in range(ranks):
            environment = {
                # Multicast can put shared hosts out of service.
                "NCCL_NVLS_ENABLE": "0",
                **os.environ,
                **variables,
                "MLX_RANK": str(rank),
                "MLX_WORLD_SIZE": str(ranks),
                "NCCL_HOST_IP": "127.0.0.1",
                "NCCL_PORT": str(port),
                "CHECK_TORCH_PORT": str(other),
            }
            command = [sys.executable, __file__, "--rank-of", function, "--output", folder]
            with Path(folder, f"stderr{rank}").open("w") as errors:
                processes.append(subprocess.Popen(command, env=environment, stderr=errors))
        for rank, process in enumerate(processes):
            try:
                status: int | str = process.wait(max(1.0, begun + LIMIT - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                status = f"no end within {LIMIT:.0f} s"
            output, errors_file = Path(folder, f"rank{rank}"), Path(folder, f"stderr{rank}")
            if output.exists():
                lines += [json.loads(line) for line in output.read_text().splitlines()]
            if status != 0 and MAY_FAIL.get(name) != rank:
                said = errors_file.read_text().strip().splitlines()[-12:]
                text = f"rank {rank}: status {status}\n    " + "\n    ".join(said)
                lines.append({"check": name, "text": text})
        seconds = time.monotonic() - begun
        if not any("check" in line for line in lines):
            lines.append({"check": name, "text": "no check ran"})
        print(f"-- {name}: {seconds:.1f} s", flush=True)
    return lines


def merged(lines: list[dict[str, Any]]) -> dict[str, str | None]:
    """Each check with what is wrong with it on any rank."""
    checks: dict[str, str | None] = {}
    for line in lines:
        if "check" in line:
            checks[line["check"]] = checks.get(line["check"]) or line["text"]
    return checks


def parent(options: argparse.Namespace) -> int:
    import ultramarine as mx

    devices = mx.device_count(mx.gpu)
    if devices < options.ranks:
        print(f"there are {devices} GPUs for {options.ranks} ranks: nothing was checked")
        return 0
    names = [n for n in PARTS if not (options.quick and n in RATES)]
    if options.part:
        names = [n for n in names if n in options.part]
    passed = total = 0
    for name in names:
        lines = run_part(name, options.ranks)
        for check, wrong in merged(lines).items():
            total += 1
            passed += wrong is None
            print(
                f"{'ok    ' if wrong is None else 'WRONG '} {check}"
                + (f": {wrong}" if wrong else "")
            )
        for line in lines:
            if "note" in line:
                print(line["note"])
        sys.stdout.flush()
    print(f"{passed} of {total} passed")
    return 0 if passed == total else 1


# ---- ranks -----------------------------------------------------------------------------------------------------------------


class Ranks:
    """A rank: its number, the number of all, and the file that it writes to."""

    def __init__(self, folder: str) -> None:
        self.rank, self.size = int(os.environ["MLX_RANK"]), int(os.environ["MLX_WORLD_SIZE"])
        self.path = Path(folder, f"rank{self.rank}")

    def write(self, **line: object) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")

    def check(self, name: str, body: Callable[[], object]) -> None:
        try:
            body()
            self.write(check=name, text=None)
        except Exception:
            said = traceback.format_exc().strip().splitlines()
            self.write(check=name, text=f"rank {self.rank}: " + " | ".join(said[-3:]))
            # The ranks may be apart now.
            raise

    def note(self, text: str) -> None:
        if self.rank == 0:
            self.write(note=text)


DTYPES = [
    *("bool_", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    *("float16", "float32", "float64", "bfloat16", "complex64"),
]


def values(dtype: str, rank: int, shape: tuple[int, ...]) -> np.ndarray:
    """The elements of a rank: small, so that sums are exact in every dtype."""
    source = np.random.default_rng([rank, sum(map(ord, dtype)), *shape])
    if dtype == "bool_":
        return source.integers(0, 2, shape).astype(bool)
    if dtype.startswith("uint"):
        return source.integers(0, 100, shape).astype(dtype)
    if dtype.startswith("int"):
        return source.integers(-60, 60, shape).astype(dtype)
    if dtype == "complex64":
        return (source.integers(-3, 3, shape) + 1j * source.integers(-9, 9, shape)).astype(dtype)
    plain = source.integers(-64, 64, shape) / 2
    return plain.astype("float32" if dtype == "bfloat16" else dtype)


def as_numpy(x: Any) -> np.ndarray:
    import ultramarine as mx

    return np.array(x.astype(mx.float32) if x.dtype == mx.bfloat16 else x)


def equal(found: Any, wanted: np.ndarray, what: str) -> None:
    got = as_numpy(found)
    assert got.shape == wanted.shape, f"{what}: shape {got.shape}, not {wanted.shape}"
    same = np.array_equal(got, wanted.astype(got.dtype), equal_nan=got.dtype.kind in "fc")
    assert same, f"{what}: {got.ravel()[:6]}, not {wanted.ravel()[:6]}"


def layouts(size: int) -> dict[str, tuple[tuple[int, ...], Callable[[Any, Any], Any]]]:
    """Arrays by their layout: the shape in memory, and how the array comes of it, by NumPy's functions or ours."""
    wide = (4 * size, 6)
    return {
        "a line": ((6 * size,), lambda _, x: x),
        "odd": ((size, 7, 13), lambda _, x: x),
        "long": ((size * 50_021,), lambda _, x: x),
        "transposed": ((5, 4 * size), lambda _, x: x.T),
        "reversed": ((4 * size, 3), lambda _, x: x[::-1]),
        "a part": ((2 * size, 11), lambda _, x: x[:, 2:9:3]),
        "broadcast": ((6,), lambda xp, x: xp.broadcast_to(x, wide)),
        "none": ((0, 3), lambda _, x: x),
        "a number": ((), lambda _, x: x),
    }


def combined(name: str, all_ranks: list[np.ndarray]) -> np.ndarray:
    stack = np.stack(all_ranks)
    if name == "all_sum":
        with np.errstate(over="ignore"):
            return stack.any(0) if stack.dtype == bool else stack.sum(0, dtype=stack.dtype)
    if stack.dtype == np.complex64:
        # By real, then by imaginary parts.
        pick = min if name == "all_min" else max
        flat = stack.reshape(len(stack), -1)
        rows = [pick(column, key=lambda z: (z.real, z.imag)) for column in flat.T.tolist()]
        return np.array(rows, np.complex64).reshape(stack.shape[1:])
    return stack.max(0) if name == "all_max" else stack.min(0)


def collectives(r: Ranks) -> None:
    import ultramarine as mx

    group = mx.distributed.init(strict=True, backend="nccl")
    assert (group.rank(), group.size()) == (r.rank, r.size)
    assert mx.default_device() == mx.Device(mx.gpu, r.rank % mx.device_count(mx.gpu))
    assert mx.distributed.is_available("nccl")

    def case(name: str, dtype: str) -> None:
        for layout, (shape, of) in layouts(r.size).items():
            what = f"{name} of {dtype}, {layout}"
            given = [values(dtype, rank, shape) for rank in range(r.size)]
            numpy = [of(np, x) for x in given]
            own = numpy[r.rank]
            x = of(mx, mx.array(given[r.rank]).astype(getattr(mx, dtype)))
            function = getattr(mx.distributed, name)
            if name == "all_gather":
                wanted = np.concatenate([np.atleast_1d(a) for a in numpy])
            elif name == "sum_scatter":
                if own.ndim == 0 or own.shape[0] % r.size:
                    continue
                part = own.shape[0] // r.size
                wanted = combined("all_sum", numpy)[r.rank * part : (r.rank + 1) * part]
            else:
                wanted = combined(name, numpy)
            equal(function(x, group=group), wanted, what)

    for name in ("all_sum", "all_max", "all_min", "all_gather", "sum_scatter"):

        def every(name: str = name) -> None:
            for dtype in DTYPES:
                case(name, dtype)

        r.check(f"{name}: {len(DTYPES)} dtypes, 9 layouts", every)

    def messages() -> None:
        to, source = (r.rank + 1) % r.size, (r.rank - 1) % r.size
        for dtype in DTYPES:
            for shape in ((), (3,), (7, 300), (0, 2)):
                x = mx.array(values(dtype, r.rank, shape)).astype(getattr(mx, dtype))
                if r.rank == 0:
                    mx.eval(mx.distributed.send(x, to, group=group))
                y = mx.distributed.recv(shape, x.dtype, source, group=group)
                mx.eval(y)
                if r.rank != 0:
                    mx.eval(mx.distributed.send(x, to, group=group))
                equal(y, values(dtype, source, shape), f"a message of {dtype} {shape}")
        like = mx.zeros((5,))
        if r.rank == 0:
            mx.eval(mx.distributed.send(like + 3, to, group=group))
        elif r.rank == 1:
            equal(
                mx.distributed.recv_like(like, 0, group=group),
                np.full(5, 3, np.float32),
                "recv_like",
            )

    r.check("send, recv and recv_like: 14 dtypes", messages)

    def nan() -> None:
        for dtype in ("float16", "float32", "float64", "bfloat16"):
            own = np.array([r.rank, np.nan if r.rank else 1, -np.inf, np.inf, -0.0], np.float32)
            x = mx.array(own).astype(getattr(mx, dtype))
            last = r.size - 1
            large, small = [last, np.nan, -np.inf, np.inf, 0], [0, np.nan, -np.inf, np.inf, 0]
            equal(
                mx.distributed.all_max(x, group=group), np.array(large, np.float32), f"max {dtype}"
            )
            equal(
                mx.distributed.all_min(x, group=group), np.array(small, np.float32), f"min {dtype}"
            )

    r.check("NaN and infinity in all_max and all_min", nan)

    def on_host() -> None:
        own = values("float32", r.rank, (4, 5))
        with mx.stream(mx.cpu):
            x = mx.array(own)
        y = mx.distributed.all_sum(x, group=group)
        equal(
            y,
            combined("all_sum", [values("float32", k, (4, 5)) for k in range(r.size)]),
            "of the CPU",
        )

    r.check("an array of the CPU", on_host)


def programs(r: Ranks) -> None:
    import ultramarine as mx

    group = mx.distributed.init(strict=True, backend="nccl")
    total = sum(range(1, r.size + 1))
    x = mx.arange(6, dtype=mx.float32) + r.rank

    def orders() -> None:
        # Results are evaluated in another order on each rank.
        source = np.random.default_rng(r.rank)
        for _ in range(20):
            made = [mx.distributed.all_sum(x * (k + 1), group=group) for k in range(12)]
            for k in source.permutation(12):
                wanted = sum((np.arange(6) + rank) * (k + 1) for rank in range(r.size))
                equal(made[k], wanted.astype(np.float32), f"sum {k}")

    r.check("evaluated in shuffled orders", orders)

    def unevaluated() -> None:
        for k in range(50):
            y = mx.distributed.all_sum(x + k, group=group)
            if (k + r.rank) % 3 == 0:
                mx.eval(y)
        equal(
            mx.distributed.all_sum(mx.array([1.0]), group=group),
            np.array([r.size], np.float32),
            "last",
        )

    r.check("sums that one rank does not evaluate", unevaluated)

    def transforms() -> None:
        def loss(w: Any) -> Any:
            return (mx.distributed.all_sum(w * (r.rank + 1), group=group) ** 2).sum()

        w = mx.array([1.0, 2.0])
        for f in (mx.grad(loss), mx.compile(mx.grad(loss))):
            for _ in range(3):
                wanted = 2 * total * np.array([1.0, 2.0]) * (r.rank + 1)
                equal(f(w), wanted.astype(np.float32), "a gradient")
        y = mx.vmap(lambda v: mx.distributed.all_sum(v, group=group))(mx.ones((3, 2)))
        equal(y, np.full((3, 2), r.size, np.float32), "vmap")

    r.check("grad, compile and vmap", transforms)

    def parts() -> None:
        back = group.split(0, r.size - 1 - r.rank)
        assert (back.rank(), back.size()) == (r.size - 1 - r.rank, r.size)
        equal(
            mx.distributed.all_gather(mx.array([float(r.rank)]), group=back),
            np.arange(r.size)[::-1].astype(np.float32),
            "reversed",
        )
        own = group.split(r.rank)
        assert (own.rank(), own.size()) == (0, 1)
        equal(
            mx.distributed.all_sum(x, group=group),
            sum(np.arange(6) + k for k in range(r.size)).astype(np.float32),
            "the whole after its parts",
        )

    r.check("parts of a group", parts)

    def overlap() -> None:
        # Computation on the default stream beside sums of the group's.
        a = mx.random.normal((256, 256), key=mx.random.key(3))
        for _ in range(5):
            y = mx.distributed.all_sum(a, group=group)
            b = a
            for _ in range(4):
                b = b @ a / 16
            equal((y + b * 0).sum() * 0 + 1, np.array(1, np.float32), "beside products")
        assert np.allclose(as_numpy(y), as_numpy(a) * r.size, rtol=1e-6)

    r.check("beside computation", overlap)


def training(r: Ranks) -> None:
    """Data-parallel training beside that with the joint batch, which each rank computes for itself."""
    import ultramarine as mx

    group = mx.distributed.init(strict=True, backend="nccl")
    sizes, batch = (20, 64, 64, 5), 32 * r.size
    keys = mx.random.split(mx.random.key(1), len(sizes))
    begin = [mx.random.normal((a, b), key=k) / a**0.5 for a, b, k in zip(sizes, sizes[1:], keys)]
    x = mx.random.normal((batch, sizes[0]), key=keys[-1])
    y = mx.sin(x @ mx.ones((sizes[0], sizes[-1])))

    def loss(weights: list[Any], x: Any, y: Any) -> Any:
        for w in weights[:-1]:
            x = mx.tanh(x @ w)
        return ((x @ weights[-1] - y) ** 2).mean()

    def run(share: slice, mean: Callable[[Any], Any]) -> list[float]:
        weights, losses = begin, []
        step = mx.value_and_grad(loss)
        for _ in range(20):
            value, gradients = step(weights, x[share], y[share])
            weights = [w - 0.05 * mean(g) for w, g in zip(weights, gradients)]
            losses.append(mean(value))
            mx.eval(weights, losses)
        return [v.item() for v in losses]

    def same() -> None:
        n = batch // r.size
        joint = run(slice(0, batch), lambda g: g)
        parallel = run(
            slice(r.rank * n, (r.rank + 1) * n),
            lambda g: mx.distributed.all_sum(g, group=group) / r.size,
        )
        assert joint[-1] < joint[0] * 0.9, f"no training: {joint}"
        worst = max(abs(a - b) / abs(a) for a, b in zip(joint, parallel))
        assert worst < 1e-4, f"losses differ by {worst:.1e}: {joint[-3:]} and {parallel[-3:]}"
        r.note(
            f"       20 steps: loss {joint[0]:.4f} to {joint[-1]:.4f}, relative difference at most {worst:.1e}"
        )

    r.check("data-parallel training has the losses of the joint batch", same)


def raises(body: Callable[[], object], *texts: str) -> str:
    try:
        body()
    except RuntimeError as error:
        missing = [t for t in texts if t not in str(error)]
        assert not missing, f"{missing} is not in: {error}"
        return str(error)
    raise AssertionError("no error was raised")


def dies(r: Ranks) -> None:
    import ultramarine as mx

    group = mx.distributed.init(strict=True, backend="nccl")
    one = mx.ones((1000,))
    mx.eval(mx.distributed.all_sum(one, group=group))
    if r.rank == 1:
        os._exit(7)

    def error() -> None:
        begun = time.monotonic()
        said = raises(
            lambda: mx.eval(mx.distributed.all_sum(one, group=group)), "rank 1", "all_sum"
        )
        seconds = time.monotonic() - begun
        assert seconds < 30, f"it took {seconds:.0f} s"
        r.note(f"       after {seconds:.1f} s: {said}")
        raises(lambda: mx.eval(mx.distributed.all_sum(one, group=group)), "cannot be used any more")
        # The device and the rest of the program go on.
        assert (one + 1).sum().item() == 2000

    r.check("a rank that dies is an error on the others", error)


def sleeps(r: Ranks) -> None:
    import ultramarine as mx

    group = mx.distributed.init(strict=True, backend="nccl")
    one = mx.ones((10,))
    mx.eval(mx.distributed.all_sum(one, group=group))
    if r.rank == 1:
        time.sleep(12)
        return

    def error() -> None:
        begun = time.monotonic()
        said = raises(
            lambda: mx.eval(mx.distributed.all_sum(one, group=group)),
            "all_sum(float32, (10))"[:16],
            "for 4",
        )
        r.note(f"       after {time.monotonic() - begun:.1f} s: {said}")

    r.check("a rank that does not come is an error after the limit", error)


def differs(r: Ranks) -> None:
    import ultramarine as mx

    group = mx.distributed.init(strict=True, backend="nccl")
    mx.eval(mx.distributed.all_sum(mx.ones((3,)), group=group))

    def error() -> None:
        x = mx.ones((4 + r.rank,))
        said = raises(lambda: mx.eval(mx.distributed.all_sum(x, group=group)), "rank", "(4", "(5")
        r.note(f"       {said}")

    r.check("ranks that differ are named in debug mode", error)


# ---- rates -----------------------------------------------------------------------------------------------------------------


def rates_of(r: Ranks, sizes: list[int]) -> None:
    torch = all_reduce_rates.torch_group(r)
    import ultramarine as mx

    group = mx.distributed.init(strict=True, backend="nccl")
    if torch is None:
        r.note("       torch is not there, or sees too few GPUs")
    r.check("all-reduce was timed", lambda: all_reduce_rates.rows(r, mx, group, torch, sizes))


def rates(r: Ranks) -> None:
    rates_of(r, [4 << 10, 16 << 10, 64 << 10, 256 << 10, MIB, 16 * MIB, 256 * MIB])
    import ultramarine as mx

    group = mx.distributed.init(strict=True, backend="nccl")
    r.check("a decoder's steps were timed", lambda: rank_replays.decoder(r, mx, group))
    all_reduce_rates.speedup(r, mx, group)


def rates_small(r: Ranks) -> None:
    rates_of(r, [4 << 10, 64 << 10, MIB, 256 * MIB])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--quick", action="store_true", help="leave out the rates")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument(
        "--part", action="append", choices=list(PARTS), help="this part alone; again for more"
    )
    parser.add_argument("--rank-of", help=argparse.SUPPRESS)
    parser.add_argument("--output", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank_of is None:
        return parent(options)
    import ultramarine as mx

    # `init` makes it the rank's own.
    mx.set_default_device(mx.Device(mx.gpu))
    places = (globals(), vars(rank_replays), vars(rank_ctas))
    function = next(place[options.rank_of] for place in places if options.rank_of in place)
    function(Ranks(options.output))
    return 0


if __name__ == "__main__":
    sys.exit(main())
