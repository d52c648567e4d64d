"""Inspection functions of the standard: dtypes, devices and capabilities."""

from __future__ import annotations

from typing import TypedDict

import ultramarine as mx
from ultramarine import Dtype

from ._dtypes import NAMES, UNIONS, DeviceLike, by_name

Capabilities = TypedDict(
    "Capabilities",
    {"boolean indexing": bool, "data-dependent shapes": bool, "max dimensions": int | None},
)
DefaultDtypes = TypedDict(
    "DefaultDtypes",
    {
        "real floating": Dtype,
        "complex floating": Dtype,
        "integral": Dtype,
        "indexing": Dtype,
    },
)


class Info:
    """The inspection functions."""

    def capabilities(self) -> Capabilities:
        """Masks and data-dependent shapes are supported outside of transforms, since they evaluate
        arrays."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 32}

    def default_device(self) -> mx.Device:
        """The device on which arrays are made unless told otherwise."""
        return mx.default_device()

    def default_dtypes(self, *, device: DeviceLike | None = None) -> DefaultDtypes:
        """The dtypes that arrays have unless told otherwise: the same on all devices."""
        return {
            "real floating": mx.float32,
            "complex floating": mx.complex64,
            "integral": mx.int32,
            "indexing": mx.int32,
        }

    def devices(self) -> tuple[mx.Device, ...]:
        """The devices that there are: the CPU, then the accelerators."""
        kinds = (mx.cpu, mx.gpu)
        return tuple(mx.Device(k, i) for k in kinds for i in range(mx.device_count(k)))

    def dtypes(
        self, *, device: DeviceLike | None = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, Dtype]:
        """The standard's dtypes that a device has, by name: of a kind, or of several.

        Raises:
            ValueError: For a kind that there is not.
        """
        asked = (*NAMES,) if kind is None else (kind,) if isinstance(kind, str) else kind
        for k in asked:
            if k not in NAMES and k not in UNIONS:
                raise ValueError(f"[dtypes] There is no kind {k!r}. Use a name such as 'integral'.")
        kinds = {one for k in asked for one in UNIONS.get(k, (k,))}
        names = [n for k, members in NAMES.items() if k in kinds for n in members]
        return {n: by_name(n) for n in names if _stores(device, by_name(n))}


def _stores(device: DeviceLike | None, dtype: Dtype) -> bool:
    """Tests whether a device has a dtype: an array of it can be made there."""
    try:
        with mx.stream(mx.default_device() if device is None else device):
            mx.eval(mx.zeros((1,), dtype))
    except ValueError:
        return False
    return True


def __array_namespace_info__() -> Info:
    """The inspection functions, as methods."""
    return Info()
