"""The product that linear layers share."""

from __future__ import annotations

from collections.abc import Callable

import ultramarine as mx
from ultramarine import _core  # type: ignore[attr-defined]

# `x @ weight.T + bias` in one call; the bias is optional.
affine: Callable[..., mx.array] = _core._fast._linear
