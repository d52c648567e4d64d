"""A conformance suite for DLPack 1.3 in Python, for any library.

    python -m ultramarine_dlpack_check                      # Ultramarine
    python -m ultramarine_dlpack_check numpy torch jax      # others, side by side
    python -m ultramarine_dlpack_check mylibrary --only 'reject/*' --verbose
    python -m ultramarine_dlpack_check --list               # the cases, and where each rule is from

It fabricates tensors in which any field may be wrong, gives them to the library under test,
takes the library's own exports apart, and counts deleters. Nothing is assumed of the library but
the array API's names (`from_dlpack`, `asarray`) and what an adapter adds (see `adapters.py`).

Cases run in processes of their own: a crash is a result, and the run goes on. Outcomes:

- pass
- fail: with what came instead
- crash: the process died; with the signal
- hang: it did not come to an end
- n.a.: the library does not have the feature (no exchange API, no argument `copy` ...)
- skip: this machine does not have what is needed (a CUDA device)

A rule is *required* if DLPack's header, its Python specification or the array API says so, and
*ours* if those leave the choice: such cases show, but do not count as failures of others
(`--strict` counts them; for Ultramarine they always count).

The guide, with results for other libraries, is docs/dlpack-check.md.
"""

from ultramarine_dlpack_check.runner import Result, run

__all__ = ["Result", "run"]
