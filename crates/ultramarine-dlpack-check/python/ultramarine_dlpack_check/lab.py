"""The native half under one name: fabricated tensors, and a consumer that reads every field."""

from typing import Any

from ultramarine_dlpack_check._lab import (
    Memory,
    Table,
    Taken,
    Tensor,
    drop_pending,
    inspect,
    make_table,
    table,
    table_calls,
    take,
)

# The fields of a tensor by name, as `inspect` and `Taken.info` return them.
Info = dict[str, Any]

__all__ = [
    "Info",
    "Memory",
    "Table",
    "Taken",
    "Tensor",
    "drop_pending",
    "inspect",
    "make_table",
    "table",
    "table_calls",
    "take",
]
