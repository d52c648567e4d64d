"""Files of whole arrays that several processes write, of which each has a part of some.

An array is gathered in the process that writes it. So the files are those of one process, whatever the number of
processes that wrote them or that read them. An index, as Hugging Face writes it, names the file of each array.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ultramarine as mx
from ultramarine import _core  # type: ignore[attr-defined]
from ultramarine.nn._agreement import agree
from ultramarine.nn.layers._sharding import Axis, Predicate, Segments, segment_starts

INDEX = ".safetensors.index.json"

# Dtypes that can be communicated and read: all except the storage dtypes.
_DTYPES = {
    *(mx.bool_, mx.uint8, mx.uint16, mx.uint32, mx.uint64, mx.int8, mx.int16, mx.int32, mx.int64),
    *(mx.float16, mx.bfloat16, mx.float32, mx.float64, mx.complex64),
}

# Matches the names that `FileSet` makes. No other file is ever removed.
_OURS = re.compile(r".+-[0-9a-f]{8}(-\d{5}-of-\d{5}\.safetensors|\.safetensors\.index\.json)")


@dataclass(frozen=True)
class Plan:
    """An array of a file, as all processes know it.

    Attributes:
        path (str): Its name.
        shape (tuple): Shape of the whole array.
        axis (int or None): Axis that is split, from 0; None for an array that each process has whole.
        segments (list): Lengths of the segments of the axis, each of which is split by itself.
        parts (list): Shapes of the parts, by rank.
        nbytes (int): Bytes of the whole array.
    """

    path: str
    shape: tuple[int, ...]
    axis: int | None
    segments: list[int]
    parts: list[tuple[int, ...]]
    nbytes: int


def even_parts(length: int, size: int) -> list[int]:
    """Lengths of `size` parts: the first ones are longer by 1 where the length is no multiple."""
    return [length // size + (rank < length % size) for rank in range(size)]


def segment_lengths(where: str, length: int, segments: Segments) -> list[int]:
    """Lengths of the segments of an axis; `where` begins messages.

    Raises:
        ValueError: If the axis has no such segments.
    """
    if isinstance(segments, int):
        if segments < 1 or length % segments:
            raise ValueError(
                f"{where}: an axis of length {length} cannot be split into {segments} equal segments. Pass a divisor of the length."
            )
        return [length // segments] * segments
    ends = [*segment_starts(length, segments), length]
    lengths = [end - start for start, end in zip([0, *ends], ends)]
    if any(n < 0 for n in lengths):
        raise ValueError(
            f"{where}: segments that begin at {list(segments)} do not fit an axis of length {length}. Pass increasing indices below the length."
        )
    return lengths


def axis_of(where: str, shape: Sequence[int], axis: Axis) -> tuple[int, Segments] | None:
    """Axis from 0 and segments of an array that is split; `where` begins messages.

    Raises:
        ValueError: If the array has no such axis.
    """
    if axis is None:
        return None
    number, segments = (axis, 1) if isinstance(axis, int) else axis
    if not -len(shape) <= number < len(shape):
        raise ValueError(
            f"{where}: an array of shape {tuple(shape)} has no axis {number}. Pass the axis that is split, or None."
        )
    return number % len(shape), segments


def part_of(where: str, x: mx.array, axis: Axis, size: int, rank: int) -> mx.array:
    """A process's part of a whole array, in memory of its own. Of an array of a file that was not evaluated yet, only the part's bytes
    are read, unless they are in pieces of less than 4 KiB.

    Args:
        where (str): Function and name of the array, which begin messages.
        x (array): The whole.
        axis (int or tuple, optional): Axis that is split, maybe with its segments; None: each process has all of it.
        size (int): Number of processes.
        rank (int): Number of this one.

    Returns:
        array: The part: of each segment the part of this rank, of even lengths.

    Raises:
        ValueError: If there is no such axis or segment.
    """
    found = axis_of(where, x.shape, axis)
    if found is None or size == 1:
        return x
    number, segments = found
    places = []
    start = 0
    for length in segment_lengths(where, x.shape[number], segments):
        lengths = even_parts(length, size)
        first = start + sum(lengths[:rank])
        places.append((first, first + lengths[rank]))
        start += length
    part: mx.array = _core._part(x, number, places)
    return part


def _slice(x: mx.array, axis: int, start: int, stop: int) -> mx.array:
    return x[(slice(None),) * axis + (slice(start, stop),)]


class FileSet:
    """The files that the processes of a group write together.

    Args:
        name (str): Function for messages.
        folder (str): Folder of the files, which all processes reach.
        stem (str): Beginning of the files' names.
        arrays (dict): This process's arrays and parts, by name.
        sharding (Callable, optional): Function of a name and an array that returns the axis that is split.
        group (Group): The processes.
        max_file_bytes (int): Bytes of a file at most, unless an array is larger.
    """

    def __init__(
        self,
        name: str,
        folder: str,
        stem: str,
        arrays: dict[str, mx.array],
        sharding: Predicate | None,
        group: mx.distributed.Group,
        max_file_bytes: int,
    ) -> None:
        """Compares what the processes have, and plans the files.

        Raises:
            ValueError: If arrays of the processes do not fit.
            TypeError: If a value is no array.
            RuntimeError: If another process failed.
        """
        self.name, self.folder, self.stem, self.group = name, folder, stem, group
        self.arrays = dict(sorted(arrays.items()))
        everyone = agree(name, group, lambda: self._described(sharding))
        # Unique for this save: files of an earlier save stay until the index refers to the new
        # ones.
        self.id: str = everyone[0]["id"]
        self.plans = agree_on_plans(name, [described["arrays"] for described in everyone])
        self.files = self._files(max_file_bytes)
        count = sum(len(files) for files in self.files)
        self.names: list[list[str]] = []
        for files in self.files:
            before = sum(len(names) for names in self.names)
            numbers = range(before + 1, before + len(files) + 1)
            self.names.append(
                [f"{stem}-{self.id}-{number:05}-of-{count:05}.safetensors" for number in numbers]
            )

    def _described(self, sharding: Predicate | None) -> dict[str, Any]:
        arrays: dict[str, Any] = {}
        for path, x in self.arrays.items():
            if not isinstance(x, mx.array):
                raise TypeError(
                    f"[{self.name}] {path} is of type {type(x).__name__}. Save arrays only: convert it with mx.array."
                )
            if x.dtype not in _DTYPES:
                raise TypeError(
                    f"[{self.name}] {path} is of dtype {x.dtype}, which load does not read. Save its view(uint8)."
                )
            where = f"[{self.name}] {path}"
            axis = axis_of(where, x.shape, sharding(path, x) if sharding else None)
            arrays[path] = [str(x.dtype), x.itemsize, x.shape, axis]
        os.makedirs(self.folder, exist_ok=True)
        return {"id": os.urandom(4).hex(), "arrays": arrays}

    def _files(self, most: int) -> list[list[list[Plan]]]:
        """Arrays of each file of each rank: even amounts, in the order of names."""
        own: list[list[Plan]] = [[] for _ in range(self.group.size())]
        amounts = [0] * len(own)
        for plan in sorted(self.plans, key=lambda plan: -plan.nbytes):
            rank = amounts.index(min(amounts))
            own[rank].append(plan)
            amounts[rank] += plan.nbytes
        files: list[list[list[Plan]]] = []
        for plans in own:
            packed: list[list[Plan]] = []
            room = 0
            for plan in sorted(plans, key=lambda plan: plan.path):
                if not packed or plan.nbytes > room:
                    packed.append([])
                    room = most
                packed[-1].append(plan)
                room -= plan.nbytes
            files.append(packed)
        if not any(files):
            # Write one empty file, because an index without arrays would name no file.
            files[0].append([])
        return files

    def write(self, metadata: dict[str, str]) -> None:
        """Writes the files. Each process has one file's arrays whole at a time.

        Args:
            metadata (dict): Texts that each file gets.

        Raises:
            OSError: If this process cannot write.
            RuntimeError: If another process cannot, or communication fails.
        """
        failure: list[Exception] = []
        for turn in range(max(len(files) for files in self.files)):
            sent: list[mx.array] = []
            whole: dict[str, mx.array] = {}
            for writer, files in enumerate(self.files):
                for plan in files[turn] if turn < len(files) else []:
                    self._gather(plan, writer, whole, sent)
            mx.eval(sent, whole)
            names = self.names[self.group.rank()]
            if turn < len(names) and not failure:
                try:
                    mx.save_safetensors(os.path.join(self.folder, names[turn]), whole, metadata)
                except Exception as error:
                    # The other processes still wait for this process's parts, so continue.
                    failure.append(error)

        def outcome() -> None:
            if failure:
                raise failure[0]

        try:
            agree(self.name, self.group, outcome)
        except Exception:
            remove(self.folder, set(self.names[self.group.rank()]))
            raise

    def _gather(
        self, plan: Plan, writer: int, whole: dict[str, mx.array], sent: list[mx.array]
    ) -> None:
        """Adds an array to `whole` in the process that writes it, and in the others the message with its part to `sent`."""
        rank, x = self.group.rank(), self.arrays[plan.path]
        if plan.axis is None or self.group.size() == 1:
            if rank == writer:
                whole[plan.path] = x
            return
        if rank != writer:
            if x.size:
                sent.append(mx.distributed.send(x, writer, group=self.group))
            return
        parts = []
        for source, shape in enumerate(plan.parts):
            if source == rank or 0 in shape:
                parts.append(x if source == rank else mx.zeros(shape, x.dtype))
            else:
                parts.append(mx.distributed.recv(shape, x.dtype, source, group=self.group))
        whole[plan.path] = _joined(parts, plan)

    def index(self, metadata: dict[str, str]) -> dict[str, Any]:
        """Contents of the index."""
        places = {
            plan.path: name
            for files, names in zip(self.files, self.names)
            for plans, name in zip(files, names)
            for plan in plans
        }
        total = sum(plan.nbytes for plan in self.plans)
        return {
            "metadata": {"total_size": total, **metadata},
            "weight_map": dict(sorted(places.items())),
        }


def agree_on_plans(name: str, everyone: list[dict[str, Any]]) -> list[Plan]:
    """Plans of all arrays, by what each process has.

    Args:
        name (str): Function for messages.
        everyone (list): By rank, from names to dtype, bytes of an element, shape, and axis with segments.

    Returns:
        list: Plans in the order of names.

    Raises:
        ValueError: If the arrays of two processes do not fit.
    """
    plans = []
    for rank, other in enumerate(everyone):
        if other.keys() != everyone[0].keys():
            path = sorted(other.keys() ^ everyone[0].keys())[0]
            has, lacks = (rank, 0) if path in other else (0, rank)
            raise ValueError(
                f"[{name}] rank {has} has an array {path}, and rank {lacks} has none. Save the same names in all processes."
            )
    for path, (dtype, itemsize, shape, axis) in sorted(everyone[0].items()):
        shapes = [tuple(other[path][2]) for other in everyone]
        for rank, other in enumerate(everyone):
            # The shape without the length of the split axis.
            same = [n for i, n in enumerate(shape) if axis is None or i != axis[0]]
            own = [n for i, n in enumerate(other[path][2]) if axis is None or i != axis[0]]
            if [other[path][0], other[path][3], own] != [dtype, axis, same]:
                raise ValueError(
                    f"[{name}] parts of {path} do not fit: rank 0 has {_shown(everyone[0][path])}, and rank {rank} "
                    f"{_shown(other[path])}. Save arrays of one dtype, whose shapes differ along the axis that is split."
                )
        whole, segments = list(shape), []
        if axis is not None and len(everyone) > 1:
            whole[axis[0]] = sum(shape[axis[0]] for shape in shapes)
            segments = segment_lengths(f"[{name}] {path}", whole[axis[0]], axis[1])
            _check_parts(name, path, [shape[axis[0]] for shape in shapes], segments)
        count = itemsize
        for length in whole:
            count *= length
        number = None if axis is None else axis[0]
        plans.append(Plan(path, tuple(whole), number, segments, shapes, count))
    return plans


def _shown(described: list[Any]) -> str:
    dtype, _, shape, axis = described
    split = "not split" if axis is None else f"split along axis {axis[0]}"
    if axis is not None and axis[1] != 1:
        split += f" in segments {axis[1]}"
    return f"{dtype} {tuple(shape)}, {split}"


def _check_parts(name: str, path: str, lengths: list[int], segments: list[int]) -> None:
    """Raises ValueError if parts of several segments are not those that reading makes."""
    size = len(lengths)
    wanted = [sum(even_parts(n, size)[rank] for n in segments) for rank in range(size)]
    if len(segments) > 1 and lengths != wanted:
        raise ValueError(
            f"[{name}] parts of {path} have the lengths {lengths}, and segments of {segments} have parts of {wanted}. "
            "Split each segment as nn.layers.distributed.shard_inplace does."
        )


def _joined(parts: list[mx.array], plan: Plan) -> mx.array:
    """The whole array, of the parts by rank."""
    axis = plan.axis or 0
    if len(plan.segments) <= 1:
        return mx.concatenate(parts, axis)
    pieces = []
    starts = [0] * len(parts)
    for length in plan.segments:
        for rank, own in enumerate(even_parts(length, len(parts))):
            pieces.append(_slice(parts[rank], axis, starts[rank], starts[rank] + own))
            starts[rank] += own
    return mx.concatenate(pieces, axis)


def referenced(index: str) -> set[str]:
    """Files that an index names, which are in its folder; none if there is no such index."""
    try:
        with open(index, encoding="utf-8") as file:
            content = json.load(file)
        names = set(content["weight_map"].values())
        other = content["metadata"].get("optimizer")
    except (OSError, ValueError, LookupError, AttributeError, TypeError):
        return set()
    if isinstance(other, str):
        folder = os.path.dirname(index)
        names |= {other} | referenced(os.path.join(folder, os.path.basename(other)))
    return {name for name in names if isinstance(name, str)}


def write_index(path: str, content: dict[str, Any]) -> None:
    """Replaces an index at once."""
    unfinished = f"{path}.unfinished"
    with open(unfinished, "w", encoding="utf-8") as file:
        json.dump(content, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, path)


def remove(folder: str, names: set[str]) -> None:
    """Removes files that a `FileSet` made."""
    for name in names:
        if _OURS.fullmatch(name):
            try:
                os.remove(os.path.join(folder, name))
            except OSError:
                pass
