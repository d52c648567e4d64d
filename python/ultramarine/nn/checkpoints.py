"""Checkpoints that any number of processes writes and reads.

`save_checkpoint` and `load_checkpoint` are for a model and its optimizer, of which each process may have parts;
`save_sharded` and `load_sharded` for any arrays. The files hold whole arrays, so that `ultramarine.load` of the index and
programs of one process read them, too.
"""

from __future__ import annotations

import os
import re
from typing import Any

import ultramarine as mx
from ultramarine.nn._agreement import agree
from ultramarine.nn._sharded_files import (
    INDEX,
    FileSet,
    part_of,
    referenced,
    remove,
    write_index,
)
from ultramarine.nn.layers._fully_sharded import FullyShardedModule
from ultramarine.nn.layers._sharding import NOTE, Axis, Predicate, default_group
from ultramarine.nn.layers.base import Module
from ultramarine.utils import tree_flatten, tree_unflatten

__all__ = ["load_checkpoint", "load_sharded", "save_checkpoint", "save_sharded"]

# Largest number of bytes of a file, the same as Hugging Face's.
_MOST = 5 << 30

# Prefix of the state of one of several optimizers.
_STATES = re.compile(r"(states\.\d+\.)*")


def save_sharded(
    path: str,
    arrays: dict[str, mx.array],
    sharding: Predicate | None = None,
    *,
    group: mx.distributed.Group | None = None,
    metadata: dict[str, str] | None = None,
    max_file_bytes: int = _MOST,
) -> None:
    """Writes arrays of which each process has a part to files of whole arrays, with an index.

    All processes of the group call it, and write into a folder that all reach. Each writes some of the arrays, and
    gathers their parts for that, one file at a time. The index is written last, at once: what fails before leaves that of
    an earlier save, and its files.

    Args:
        path (str): Path of the index, which ends in `.safetensors.index.json`.
        arrays (dict): This process's arrays, by name.
        sharding (Callable, optional): Function of a name and an array that returns the axis along which the processes have
            parts, the axis and its segments, as `nn.layers.distributed.shard_inplace` takes it, or None for an array that
            all have whole. By default all arrays are whole. Parts of an axis without segments may have any lengths.
        group (Group, optional): The processes among which arrays are split; by default all.
        metadata (dict, optional): Texts that are saved with the arrays. Those of rank 0 count.
        max_file_bytes (int): Bytes of a file at most, unless an array is larger.

    Raises:
        ValueError: If the path has another end, or the arrays of two processes do not fit.
        TypeError: If a value is no array, or of a storage dtype.
        OSError: If files cannot be written.
        RuntimeError: If another process failed.

    Example:
        >>> nn.checkpoints.save_sharded("weights.safetensors.index.json", {"w": mx.ones((2, 3))})
        >>> mx.load("weights.safetensors.index.json")["w"].shape
        (2, 3)
    """
    folder, stem = _split("save_sharded", path)
    group = default_group(group)
    files = FileSet("save_sharded", folder, stem, arrays, sharding, group, max_file_bytes)
    metadata = metadata or {}
    files.write({"format": "mlx", **metadata})

    def commit() -> None:
        if group.rank() == 0:
            before = referenced(path)
            write_index(path, files.index(metadata))
            remove(folder, before)

    agree("save_sharded", group, commit)


def load_sharded(
    path: str,
    sharding: Predicate | None = None,
    *,
    group: mx.distributed.Group | None = None,
) -> dict[str, mx.array]:
    """Reads a process's parts of the arrays of a file, or of the files of an index.

    Nothing is communicated. As those of `ultramarine.load`, arrays are read when they are evaluated, and each process reads the
    bytes of its parts alone. (Where these are in pieces of less than 4 KiB, along a later axis, it reads the whole array.)

    Args:
        path (str): Path of an index, or of a file that `ultramarine.load` reads.
        sharding (Callable, optional): Function of a name and a whole array that returns the axis that is split, as
            `save_sharded` takes it. Where a length is no multiple of the number of processes, the first parts are longer
            by 1. By default each process gets all arrays whole.
        group (Group, optional): The processes; by default all.

    Returns:
        dict: Arrays by name.

    Raises:
        ValueError: If an array has no such axis or segments.
        RuntimeError: If a file is missing or damaged.

    Example:
        >>> nn.checkpoints.save_sharded("model.safetensors.index.json", {"w": mx.ones(2)})
        >>> nn.checkpoints.load_sharded("model.safetensors.index.json")["w"]
        array([1, 1], dtype=float32)
    """
    group = default_group(group)
    loaded: Any = mx.load(path)
    if sharding is None:
        return dict(loaded)
    size, rank = group.size(), group.rank()
    return {
        name: part_of(f"[load_sharded] {name}", x, sharding(name, x), size, rank)
        for name, x in loaded.items()
    }


def save_checkpoint(
    folder: str,
    model: Module,
    optimizer: Any = None,
    *,
    group: mx.distributed.Group | None = None,
    metadata: dict[str, str] | None = None,
    max_file_bytes: int = _MOST,
) -> None:
    """Writes a model's parameters and its optimizer's state, of which each process may have parts, to a folder.

    All processes of the group call it. Layers of `nn.layers.distributed` and modules that `shard_inplace` or
    `fully_shard` split are gathered; of all else rank 0's or another rank's values are written. The index of the model is
    `model.safetensors.index.json` with the names that the model has in one process. It is replaced at once, when all files
    are there: what fails leaves the checkpoint of before.

    Args:
        folder (str): Folder of the checkpoint, which all processes reach.
        model (Module): The model.
        optimizer (Optimizer, optional): Its optimizer.
        group (Group, optional): The processes over which the model is split; by default all. Where several groups have the
            same model, one of them saves it.
        metadata (dict, optional): Texts that are saved with it, such as the number of the step. Those of rank 0 count.
        max_file_bytes (int): Bytes of a file at most, unless an array is larger.

    Raises:
        ValueError: If the model is split over another number of processes, or an entry of the state is neither a number
            nor of its parameter's shape, so that its parts cannot be put together.
        TypeError: If an entry of the state is no array.
        OSError: If files cannot be written.
        RuntimeError: If another process failed.

    Example:
        >>> model = nn.Linear(3, 2)
        >>> nn.checkpoints.save_checkpoint("run", model, metadata={"step": "100"})
        >>> sorted(mx.load("run/model.safetensors.index.json"))
        ['bias', 'weight']
    """
    group, name = default_group(group), "save_checkpoint"
    layout = _agreed_layout(name, model, group)
    metadata = metadata or {}
    if reserved := {"optimizer", "total_size"} & metadata.keys():
        raise ValueError(f"[{name}] metadata has the reserved name {reserved.pop()!r}. Rename it.")

    def file_set(stem: str, arrays: dict[str, Any], axes: dict[str, Axis]) -> FileSet:
        sharding = lambda path, _: axes.get(path)
        return FileSet(name, folder, stem, arrays, sharding, group, max_file_bytes)

    parameters = {layout.saved(path): x for path, x in tree_flatten(model.parameters())}
    sets = [file_set("model", _arrays(parameters), layout.saved_axes())]
    if optimizer is not None:
        state = _arrays(dict(tree_flatten(optimizer.state)))
        agree(name, group, lambda: layout.check_state(name, state, group.size()))
        axes = {layout.saved(path): layout.state_axis(path, x) for path, x in state.items()}
        arrays = {layout.saved(path): x for path, x in state.items()}
        sets.append(file_set("optimizer", arrays, axes))
    for files in sets:
        files.write({"format": "mlx", **metadata})

    def commit() -> None:
        if group.rank() != 0:
            return
        index = os.path.join(folder, f"model{INDEX}")
        before = referenced(index)
        more = {}
        if optimizer is not None:
            # The model's index names this file and is replaced last, so both belong to the same
            # save.
            more["optimizer"] = f"optimizer-{sets[1].id}{INDEX}"
            write_index(os.path.join(folder, more["optimizer"]), sets[1].index(metadata))
        write_index(index, sets[0].index({**metadata, **more}))
        remove(folder, before)

    agree(name, group, commit)


def load_checkpoint(
    folder: str,
    model: Module,
    optimizer: Any = None,
    *,
    group: mx.distributed.Group | None = None,
) -> dict[str, str]:
    """Replaces a model's parameters and its optimizer's state by those of a checkpoint, or this process's parts of them.

    All processes of the group call it. Their number may be another than that of the processes that wrote it.

    Args:
        folder (str): Folder of a checkpoint of `save_checkpoint`, or with `model.safetensors.index.json` or
            `model.safetensors` of another program, without the optimizer.
        model (Module): The model, split as it is to be.
        optimizer (Optimizer, optional): Its optimizer.
        group (Group, optional): The processes over which the model is split; by default all.

    Returns:
        dict: Metadata of the checkpoint.

    Raises:
        ValueError: If names or shapes are not those of the model, or the checkpoint has no optimizer.
        RuntimeError: If a file is missing or damaged, or another process failed. The model is left as it was.

    Example:
        >>> nn.checkpoints.save_checkpoint("run", nn.Linear(3, 2), metadata={"step": "100"})
        >>> nn.checkpoints.load_checkpoint("run", nn.Linear(3, 2))
        {'step': '100'}
    """
    group, name = default_group(group), "load_checkpoint"
    layout = _agreed_layout(name, model, group)
    loaded: list[dict[str, mx.array]] = []
    metadata: dict[str, str] = {}

    def read() -> None:
        path = os.path.join(folder, f"model{INDEX}")
        single = os.path.join(folder, "model.safetensors")
        if not os.path.exists(path) and os.path.exists(single):
            path = single
        arrays, known = _load(path)
        metadata.update(known)
        other = metadata.pop("optimizer", None)
        metadata.pop("total_size", None)
        parameters = layout.parameters(name, arrays, group)
        loaded.append(parameters)
        if optimizer is not None:
            if other is None:
                raise ValueError(
                    f"[{name}] {path} names no state of an optimizer. Pass the model alone, or save both."
                )
            state, _ = _load(os.path.join(folder, os.path.basename(other)))
            loaded.append(layout.state(name, state, arrays, group))
        mx.eval(loaded)

    agree(name, group, read)
    if loaded[0]:
        model.update(tree_unflatten(list(loaded[0].items())))
    if optimizer is not None:
        optimizer.state = tree_unflatten(list(loaded[1].items()))
    return metadata


class _Layout:
    """Names and splits of a model's parameters.

    A parameter's name in files is its path without the items that `FullyShardedModule` adds, so that it does not depend on
    the number of processes.
    """

    def __init__(self, name: str, model: Module, size: int) -> None:
        self.model = model
        self.current: dict[str, mx.array] = _arrays(dict(tree_flatten(model.parameters())))
        self.axes: dict[str, Axis] = {}
        self.wrappers: list[str] = []
        for path, module in model.named_modules():
            prefix = f"{path}." if path else ""
            if isinstance(module, FullyShardedModule):
                self.wrappers.append(f"{prefix}module.")
            over, axes = getattr(module, NOTE, (1, {}))
            for key, axis in axes.items():
                own = prefix + key
                if own not in self.current or over == 1:
                    continue
                if over != size:
                    raise ValueError(
                        f"[{name}] {own} is split over {over} processes, and the group has {size}. Pass the group that the model "
                        "is split over."
                    )
                if own in self.axes:
                    raise ValueError(
                        f"[{name}] {own} is split twice, by its layer and by fully_shard or shard_inplace. Use one of them."
                    )
                self.axes[own] = axis
        # Inner wrappers first.
        self.wrappers.sort(key=len, reverse=True)
        self.by_saved = {self.saved(path): path for path in self.current}

    def saved(self, path: str) -> str:
        """Name in files of a parameter, or of an entry of the state."""
        states = _states(path)
        own = path[len(states) :]
        for wrapper in self.wrappers:
            if own.startswith(wrapper):
                own = wrapper.removesuffix("module.") + own[len(wrapper) :]
        return states + own

    def saved_axes(self) -> dict[str, Axis]:
        """Axes by names in files."""
        return {self.saved(path): axis for path, axis in self.axes.items()}

    def parameter_of(self, path: str) -> str | None:
        """The parameter that an entry of the state belongs to."""
        own = path[len(_states(path)) :]
        while own and own not in self.current:
            own = own.rpartition(".")[0]
        return own or None

    def state_axis(self, path: str, x: mx.array) -> Axis:
        """Axis of an entry of the state: that of its parameter, unless it is a number."""
        parameter = self.parameter_of(path)
        return self.axes.get(parameter) if parameter and x.ndim else None

    def check_state(self, name: str, state: dict[str, Any], size: int) -> None:
        """Raises ValueError for entries that are not split as their parameters are."""
        for path, x in state.items():
            parameter = self.parameter_of(path)
            if not isinstance(x, mx.array):
                raise TypeError(
                    f"[{name}] the state {path} is of type {type(x).__name__}. Keep only arrays in the state."
                )
            if parameter not in self.axes:
                continue
            shape = self.current[parameter].shape
            if x.shape not in (shape, ()):
                raise ValueError(
                    f"[{name}] the state {path} has the shape {x.shape}, and its parameter {shape} is one of {size} parts: "
                    "entries of another shape cannot be joined. Use an optimizer whose state has its parameters' shapes, "
                    "such as AdamW, or save without the optimizer."
                )

    def parameters(
        self, name: str, arrays: dict[str, mx.array], group: mx.distributed.Group
    ) -> dict[str, mx.array]:
        """This process's parameters, of the whole ones by their names in files."""
        for what, names in (
            ("are not in the checkpoint", self.by_saved.keys() - arrays.keys()),
            (
                "of the checkpoint are no parameters of the model",
                arrays.keys() - self.by_saved.keys(),
            ),
        ):
            if names:
                shown = ", ".join(sorted(names)[:5]) + (", ..." if len(names) > 5 else "")
                raise ValueError(
                    f"[{name}] {len(names)} arrays {what}: {shown}. Load it into the model that was saved."
                )
        found = {}
        for saved, path in self.by_saved.items():
            whole, axis = arrays[saved], self.axes.get(path)
            part = part_of(f"[{name}] {saved}", whole, axis, group.size(), group.rank())
            if part.shape != self.current[path].shape:
                of = "" if axis is None else f", of which rank {group.rank()} gets {part.shape}"
                raise ValueError(
                    f"[{name}] {saved} has the shape {whole.shape}{of}, and the model's parameter "
                    f"{self.current[path].shape}. Load it into the model that was saved."
                )
            found[path] = part
        return found

    def state(
        self,
        name: str,
        arrays: dict[str, mx.array],
        wholes: dict[str, mx.array],
        group: mx.distributed.Group,
    ) -> dict[str, mx.array]:
        """This process's state of the optimizer, of the whole one by its names in files."""
        found = {}
        for saved, x in arrays.items():
            states = _states(saved)
            own = saved[len(states) :]
            key = own
            while key and key not in self.by_saved:
                key = key.rpartition(".")[0]
            parameter = self.by_saved.get(key)
            axis = self.axes.get(parameter) if parameter and x.ndim else None
            path = states + (parameter or "") + own[len(key) :]
            if axis is not None and x.shape != wholes[key].shape:
                raise ValueError(
                    f"[{name}] the state {saved} has the shape {x.shape}, and its parameter {wholes[key].shape}, which is "
                    "split, which entries of another shape cannot be. Load the model alone."
                )
            found[path] = part_of(f"[{name}] {saved}", x, axis, group.size(), group.rank())
        return found


def _agreed_layout(name: str, model: Module, group: mx.distributed.Group) -> _Layout:
    made: list[_Layout] = []
    agree(name, group, lambda: made.append(_Layout(name, model, group.size())))
    return made[0]


def _states(path: str) -> str:
    found = _STATES.match(path)
    return found.group() if found else ""


def _arrays(leaves: dict[str, Any]) -> dict[str, Any]:
    """Leaves without None, which stand for parameters that a layer lacks."""
    return {path: x for path, x in leaves.items() if x is not None}


def _load(path: str) -> tuple[dict[str, mx.array], dict[str, str]]:
    loaded: Any = mx.load(path, return_metadata=True)
    arrays, metadata = loaded
    return arrays, metadata


def _split(name: str, path: str) -> tuple[str, str]:
    """Folder and stem of an index."""
    path = os.fspath(path)
    folder, file = os.path.split(path)
    if not file.endswith(INDEX) or file == INDEX:
        raise ValueError(
            f"[{name}] {path} is not the name of an index. Use a name that ends in {INDEX}."
        )
    return folder or ".", file.removesuffix(INDEX)
