"""Random calls of the whole surface on a GPU, compared with the CPU: operations, shapes, strides, dtypes, Python scalars.

    python3 testing/gpu-checks/random_cases.py [CASES] [--device gpu:0] [--only PATTERN] [--jobs 8]

The calls are those of python/tests/parity (case i of a name is always the same). The device has to agree with the CPU in
dtype, shape, values within the entry's tolerance, and the kind of error. Where values differ by more, NumPy in float64
decides.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2] / "python" / "tests"
sys.path.insert(0, str(TESTS))


# What tells where an array is, hands its memory to the host alone, or is for one kind of device.
ABOUT_DEVICES = (
    "array.__dlpack__",
    "array.__dlpack_device__",
    "default_device",
    "default_stream",
    "fast.cuda_kernel",
)


def child(total: int, only: str, device: str, shard: int, shards: int) -> int:
    from parity.outcome import nearer, run_in
    from parity.running import plan
    from support.harness import problem, um

    kind, _, index = device.partition(":")
    gpu = um.Device(getattr(um, kind), int(index or 0))
    counts: Counter[str] = Counter()
    for entry, i in plan(total, only)[shard::shards]:
        if entry.name in ABOUT_DEVICES:
            continue
        case = entry.case(i)
        if "type('" in case.reproducer():
            # A class that the call itself makes is another one at each call.
            continue
        um.set_default_device(um.cpu)
        want_kind, want = run_in(um, case)
        um.set_default_device(gpu)
        print(f"at {entry.name}/{i}", file=sys.stderr)
        got_kind, got = run_in(um, case)
        difference = ""
        if want_kind != got_kind:
            difference = f"{want_kind} on the CPU: {want!r}; {got_kind} on {device}: {got!r}"
        elif want_kind == "raises":
            if type(want) is not type(got):
                difference = f"raises {got!r}, on the CPU {want!r}"
        else:
            scale = entry.scale if isinstance(entry.scale, str) else entry.scale(case)
            difference = problem(want, got, entry.ulps, scale=scale)
            if difference and entry.by_numpy and nearer(case, got, scale):
                counts["numpy"] += 1
                continue
        # A device is named by what prints it: counted apart, so that nothing hides there.
        if difference and "Device(" in difference:
            counts["names_a_device"] += 1
            continue
        counts["differs" if difference else "raises" if want_kind == "raises" else "same"] += 1
        if difference:
            line = case.reproducer().replace("\n", "; ")
            print(
                f"DIFFERS {entry.name}/{i}: {difference[:300]}\n    {line[:500]}".replace(
                    "mlx has", "the CPU has"
                ),
                flush=True,
            )
    print("COUNTS", *(f"{k}={v}" for k, v in counts.items()), flush=True)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", type=int, nargs="?", default=6000)
    parser.add_argument("--device", default="gpu:0")
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=min(8, os.cpu_count() or 1))
    parser.add_argument("--shard", type=int, default=-1, help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.shard >= 0:
        return child(a.cases, a.only, a.device, a.shard, a.jobs)
    command = [
        sys.executable,
        __file__,
        str(a.cases),
        "--device",
        a.device,
        "--only",
        a.only,
        "--jobs",
        str(a.jobs),
    ]

    def run(shard: int) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*command, "--shard", str(shard)], capture_output=True, text=True)

    # A thread for each, so that none waits with a full pipe for its turn to be read.
    with ThreadPoolExecutor(a.jobs) as pool:
        ended = list(pool.map(run, range(a.jobs)))
    total: Counter[str] = Counter()
    differs: list[str] = []
    dead = 0
    for process in ended:
        for line in process.stdout.splitlines():
            if line.startswith("COUNTS"):
                total.update({k: int(v) for k, v in (w.split("=") for w in line.split()[1:])})
            else:
                differs.append(line)
        if process.returncode:
            dead += 1
            differs.append(
                f"a process ended with {process.returncode}: "
                + " | ".join(process.stderr.splitlines()[-4:])
            )
    print("\n".join(differs[:400]))
    names = Counter(line.split()[1].split("/")[0] for line in differs if line.startswith("DIFFERS"))
    print("by name:", dict(names.most_common()))
    print(f"{sum(total.values())} cases:", dict(total))
    return 1 if total["differs"] or dead else 0


if __name__ == "__main__":
    sys.exit(main())
