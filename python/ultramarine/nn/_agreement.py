"""Agreement of the processes of a group: a step that all take, and whose failure in one is an error in all."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import ultramarine as mx


def agree(name: str, group: mx.distributed.Group, step: Callable[[], Any]) -> list[Any]:
    """Runs a step in all processes and exchanges the results.

    Args:
        name (str): Function for the message.
        group (Group): The processes, all of which call this.
        step (Callable): The step. Its result is a value of JSON.

    Returns:
        list: The results by rank.

    Raises:
        RuntimeError: If the step failed in another process; a failure in this one is raised as it is.
    """
    own: Exception | None = None
    said: dict[str, Any]
    try:
        said = {"value": step()}
    except Exception as error:
        own, said = error, {"error": f"{type(error).__name__}: {error}"}
    everyone = [json.loads(text) for text in _gather(json.dumps(said).encode(), group)]
    if own is not None:
        raise own
    for rank, other in enumerate(everyone):
        if "error" in other:
            raise RuntimeError(f"[{name}] rank {rank} failed: {other['error']}")
    return [other["value"] for other in everyone]


def _gather(text: bytes, group: mx.distributed.Group) -> list[bytes]:
    """Bytes of all processes by rank."""
    if group.size() == 1:
        return [text]
    lengths: Any = mx.distributed.all_gather(mx.array([len(text)], mx.int32), group=group).tolist()
    row = mx.array(list(text.ljust(max(lengths))), mx.uint8).reshape(1, -1)
    rows: Any = mx.distributed.all_gather(row, group=group).tolist()
    return [bytes(row[:length]) for row, length in zip(rows, lengths)]
