"""Processes that fail, disagree or do not come, as the first argument says."""

import os
import sys
import time

import ultramarine as mx

group = mx.distributed.init(strict=True, backend=os.environ.get("RANKS_BACKEND", "any"))
rank = group.rank()
x = mx.ones((2, 3))
mx.eval(mx.distributed.all_sum(x))
fault = sys.argv[1]

if fault == "raises":
    if rank == 1:
        raise KeyError("rank 1 fails on purpose")
    mx.eval(mx.distributed.all_sum(x))

elif fault == "hangs":
    if rank == 1:
        time.sleep(8)
    else:
        try:
            mx.eval(mx.distributed.all_sum(x))
        except RuntimeError as error:
            said = str(error).replace("\n", " ")
            # One write: lines of ranks are not to mix.
            sys.stdout.write(f"caught: {said}\n")
            # All later operations are errors at once.
            start = time.monotonic()
            try:
                mx.eval(mx.distributed.all_sum(x))
            except RuntimeError:
                print("again after", round(time.monotonic() - start), "s", flush=True)
            sys.exit(3)

elif fault == "dies":
    if rank == 1:
        os._exit(7)
    mx.eval(mx.distributed.all_sum(x))

elif fault == "shapes":
    y = mx.distributed.all_sum(x if rank != 1 else x[:1])
elif fault == "dtypes":
    y = mx.distributed.all_sum(x if rank != 1 else x.astype(mx.int32))
elif fault == "kinds":
    y = mx.distributed.all_sum(x) if rank != 1 else mx.distributed.all_gather(x)
elif fault == "parts":
    # A group that split() made, in the opposite order of ranks: rank 1 of all is the first but one.
    part = group.split(0, -rank + group.size())
    mx.eval(mx.distributed.all_sum(x, group=part))
    y = mx.distributed.all_sum(x if rank != 1 else x[:1], group=part)

if fault in ("shapes", "dtypes", "kinds", "parts"):
    try:
        mx.eval(y)
    except RuntimeError as error:
        sys.stdout.write(f"caught: {error}\n")

if fault == "input":
    # An operand that cannot be computed is this rank's error, and poisons what comes behind it.
    bad = mx.zeros((1 << 45,)).sum(keepdims=True) if rank == 0 else x[0, :1]
    print("done", flush=True)

if fault == "interrupt":
    import signal
    import threading

    if rank == 0:
        threading.Timer(1.0, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        try:
            mx.eval(mx.distributed.all_sum(x))
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    else:
        time.sleep(3)
        mx.eval(mx.distributed.all_sum(x))
    mx.eval(mx.distributed.all_sum(x))
    print("done", flush=True)
