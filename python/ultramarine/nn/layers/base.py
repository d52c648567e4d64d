"""The base class of layers and models."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import ultramarine as mx
from ultramarine.nn.layers._items import Items
from ultramarine.nn.layers._trees import is_leaf, select, update_modules, update_parameters
from ultramarine.nn.layers._weights import check_weights
from ultramarine.utils import tree_flatten, tree_unflatten

__all__ = ["Module"]


class Module(Items):
    """Base class of layers and models: a dictionary of parameters and submodules.

    Attributes that are arrays, modules, lists, tuples or dictionaries are items of the dictionary; others are
    ordinary attributes. Modules and arrays are found in lists and dictionaries at any depth, but not in tuples.
    Attributes whose names start with an underscore are no parameters.

    A parameter is trainable unless `freeze` was called for it. Subclasses call `super().__init__()` first.

    Example:
        >>> class Net(nn.Module):
        ...     def __init__(self, dims):
        ...         super().__init__()
        ...         self.layers = [nn.Linear(dims, dims), nn.Linear(dims, 1)]
        ...     def __call__(self, x):
        ...         for layer in self.layers:
        ...             x = layer(x)
        ...         return x
        >>> Net(2)
        Net(
          (layers.0): Linear(input_dims=2, output_dims=2, bias=True)
          (layers.1): Linear(input_dims=2, output_dims=1, bias=True)
        )
    """

    __call__: Callable[..., Any]

    # Names of this module's parameters that are not trained, including paths in lists and dictionaries.
    _no_grad: set[str]
    _training: bool

    def __init__(self) -> None:
        """Makes a module without parameters, in training mode."""
        self._no_grad = set()
        self._training = True

    @property
    def training(self) -> bool:
        """Training mode, in which layers such as `Dropout` behave differently; see `train`."""
        return self._training

    @property
    def state(self) -> Module:
        """The module itself, as the dictionary of all its arrays, modules and containers.

        It is a reference: changes of it change the module. Compiled functions take it as inputs or outputs.
        """
        return self

    def _extra_repr(self) -> str:
        """Returns what `repr` shows between the parentheses, for subclasses to override."""
        return ""

    def __repr__(self) -> str:
        children = tree_flatten(self.children(), is_leaf=self.is_module)
        lines = [textwrap.indent(f"({path}): {child!r}", "  ") for path, child in children]
        text = f"{type(self).__name__}({self._extra_repr()}"
        if lines:
            text += "\n" + "\n".join(lines) + "\n"
        return text + ")"

    def __getattr__(self, key: str) -> Any:
        value = self.get(key)
        if value is None:
            # Raises the usual AttributeError, or the error of a property's getter.
            return super().__getattribute__(key)
        return value

    def __setattr__(self, key: str, val: Any) -> None:
        if isinstance(val, (mx.array, dict, list, tuple)):
            # An ordinary attribute would hide the item, so delete it first. An attribute of the class cannot be
            # deleted, which raises an error.
            if key not in self and hasattr(self, key):
                super().__delattr__(key)
            self[key] = val
        else:
            super().__setattr__(key, val)
            self.pop(key, None)

    def __delattr__(self, name: str) -> None:
        if name in self:
            del self[name]
        else:
            super().__delattr__(name)

    # Walks over parameters and submodules.

    @staticmethod
    def is_module(value: Any) -> bool:
        """Returns True for a module.

        Args:
            value (Any): Any object.

        Returns:
            bool: True if `value` is a `Module`.

        Example:
            >>> nn.Module.is_module(nn.ReLU()), nn.Module.is_module(mx.ones(2))
            (True, False)
        """
        return isinstance(value, Module)

    @staticmethod
    def valid_child_filter(module: Module, key: str, value: Any) -> bool:
        """Selects what may be or contain a submodule: a filter for `filter_and_map`.

        Args:
            module (Module): Module that has the value.
            key (str): Its name, with a path in lists and dictionaries.
            value (Any): The value.

        Returns:
            bool: True if `value` is a module, a list or a dictionary.

        Example:
            >>> list(nn.Sequential(nn.ReLU()).filter_and_map(nn.Module.valid_child_filter))
            ['layers']
        """
        return isinstance(value, (dict, list))

    @staticmethod
    def valid_parameter_filter(module: Module, key: str, value: Any) -> bool:
        """Selects what is or may contain a parameter: a filter for `filter_and_map`.

        Args:
            module (Module): Module that has the value.
            key (str): Its name, with a path in lists and dictionaries.
            value (Any): The value.

        Returns:
            bool: True if `value` is an array, a module, a list or a dictionary, and `key` does not start
            with an underscore.

        Example:
            >>> list(nn.Linear(3, 2).filter_and_map(nn.Module.valid_parameter_filter))
            ['weight', 'bias']
        """
        return isinstance(value, (dict, list, mx.array)) and not key.startswith("_")

    @staticmethod
    def trainable_parameter_filter(module: Module, key: str, value: Any) -> bool:
        """Selects what is or may contain a trainable parameter: a filter for `filter_and_map`.

        Args:
            module (Module): Module that has the value.
            key (str): Its name, with a path in lists and dictionaries.
            value (Any): The value.

        Returns:
            bool: True if `valid_parameter_filter` is and the value is not frozen.

        Example:
            >>> layer = nn.Linear(3, 2).freeze(keys="bias")
            >>> list(layer.filter_and_map(nn.Module.trainable_parameter_filter))
            ['weight']
        """
        return Module.valid_parameter_filter(module, key, value) and key not in module._no_grad

    def filter_and_map(
        self,
        filter_fn: Callable[[Module, str, Any], bool],
        map_fn: Callable[..., Any] | None = None,
        is_leaf_fn: Callable[[Module, str, Any], bool] | None = None,
    ) -> dict[str, Any]:
        """Returns the contents that a filter selects, as a tree of dictionaries and lists.

        The filter is asked for nodes before their contents. In lists and dictionaries, whose keys are paths such
        as `layers.0`, an empty dictionary takes the place of what is left out.

        Args:
            filter_fn (Callable): Predicate of the module, the name and the value.
            map_fn (Callable, optional): Function of a leaf that gives its value in the result.
            is_leaf_fn (Callable, optional): Predicate of the module, the name and the value that makes it a leaf.
                By default modules, lists and dictionaries are nodes and all else leaves.

        Returns:
            dict: Tree of what was selected.

        Raises:
            RuntimeError: If `is_leaf_fn` denies that a value is a leaf that is no module, list or dictionary.

        Example:
            >>> layer = nn.Linear(3, 2)
            >>> layer.filter_and_map(nn.Module.valid_parameter_filter, lambda x: x.shape)
            {'weight': (2, 3), 'bias': (2,)}
        """
        map_fn = map_fn or (lambda x: x)
        is_leaf_fn = is_leaf_fn or is_leaf
        return {
            k: select(self, k, v, filter_fn, map_fn, is_leaf_fn)
            for k, v in self.items()
            if filter_fn(self, k, v)
        }

    def parameters(self) -> dict[str, Any]:
        """Returns all arrays of the module and its submodules.

        Returns:
            dict: Tree of dictionaries and lists with the arrays.

        Example:
            >>> list(nn.Linear(3, 2).parameters())
            ['weight', 'bias']
        """
        return self.filter_and_map(self.valid_parameter_filter)

    def trainable_parameters(self) -> dict[str, Any]:
        """Returns the arrays of the module and its submodules that are not frozen.

        Returns:
            dict: Tree of dictionaries and lists with the arrays.

        Example:
            >>> list(nn.Linear(3, 2).freeze(keys="bias").trainable_parameters())
            ['weight']
        """
        return self.filter_and_map(self.trainable_parameter_filter)

    def children(self) -> dict[str, Any]:
        """Returns the direct submodules.

        Returns:
            dict: Tree of dictionaries and lists with the modules.

        Example:
            >>> nn.Sequential(nn.ReLU(), nn.Tanh()).children()
            {'layers': [ReLU(), Tanh()]}
        """
        return self.filter_and_map(
            self.valid_child_filter, is_leaf_fn=lambda m, k, v: isinstance(v, Module)
        )

    def leaf_modules(self) -> dict[str, Any]:
        """Returns the modules at any depth that have no submodules.

        Returns:
            dict: Tree of dictionaries and lists with the modules.

        Example:
            >>> nn.Sequential(nn.Sequential(nn.ReLU()), nn.Tanh()).leaf_modules()
            {'layers': [{'layers': [ReLU()]}, Tanh()]}
        """
        return self.filter_and_map(self.valid_child_filter, is_leaf_fn=_is_leaf_module)

    def modules(self) -> list[Module]:
        """Returns the module itself and its submodules at any depth.

        Returns:
            list: The modules, parents before their children. One that is reached twice is there twice.

        Example:
            >>> len(nn.Sequential(nn.ReLU(), nn.Tanh()).modules())
            3
        """
        return [module for _, module in self.named_modules()]

    def named_modules(self) -> list[tuple[str, Module]]:
        """Returns the module itself and its submodules at any depth, with their paths.

        Returns:
            list: Pairs of path, such as `layers.0.attention`, and module. The module itself has the path "".

        Example:
            >>> sorted(path for path, _ in nn.Sequential(nn.ReLU(), nn.Tanh()).named_modules())
            ['', 'layers.0', 'layers.1']
        """
        found: list[tuple[str, Module]] = []
        stack: list[tuple[str, Module]] = [("", self)]
        while stack:
            path, module = stack.pop()
            found.append((path, module))
            prefix = f".{path}" if path else ""
            tree_flatten(module.children(), prefix, self.is_module, stack)
        return found

    # Changes.

    def update(self, parameters: dict[str, Any], strict: bool = True) -> Module:  # type: ignore[override]
        """Replaces parameters by those of a tree.

        Args:
            parameters (dict): Tree of dictionaries and lists with arrays, such as `parameters` returns. Places that
                it lacks are left as they are.
            strict (bool): Makes places that the module lacks, and values that are no arrays, an error. Otherwise
                unknown places are ignored.

        Returns:
            Module: The module itself.

        Raises:
            ValueError: If `strict` and the tree does not fit the module.

        Example:
            >>> nn.Linear(3, 1).update({"bias": mx.array([0.5])}).bias
            array([0.5], dtype=float32)
        """
        update_parameters(self, parameters, strict)
        return self

    def update_modules(self, modules: dict[str, Any], strict: bool = True) -> Module:
        """Replaces submodules by those of a tree.

        Args:
            modules (dict): Tree of dictionaries and lists with modules, such as `children` or `leaf_modules`
                return. Places that it lacks are left as they are.
            strict (bool): Makes places that are no submodules, and values that are no modules, an error. Otherwise
                they are ignored.

        Returns:
            Module: The module itself.

        Raises:
            ValueError: If `strict` and the tree does not fit the module.

        Example:
            >>> nn.Sequential(nn.ReLU(), nn.Tanh()).update_modules({"layers": [nn.SiLU()]}).layers
            [SiLU(), Tanh()]
        """
        update_modules(self, modules, strict)
        return self

    def apply(
        self,
        map_fn: Callable[[mx.array], mx.array],
        filter_fn: Callable[[Module, str, Any], bool] | None = None,
    ) -> Module:
        """Replaces every parameter by a function of it.

        Args:
            map_fn (Callable): Function of an array that returns an array.
            filter_fn (Callable, optional): Predicate as in `filter_and_map` that selects parameters; by default
                `valid_parameter_filter`.

        Returns:
            Module: The module itself.

        Example:
            >>> layer = nn.Linear(3, 1).apply(lambda x: mx.zeros_like(x))
            >>> layer(mx.ones(3))
            array([0], dtype=float32)
        """
        self.update(self.filter_and_map(filter_fn or self.valid_parameter_filter, map_fn))
        return self

    def apply_to_modules(self, apply_fn: Callable[[str, Module], Any]) -> Module:
        """Calls a function with the module itself and its submodules at any depth.

        Args:
            apply_fn (Callable): Function of a path, such as `layers.0.attention`, and the module there.

        Returns:
            Module: The module itself.

        Example:
            >>> found = {}
            >>> model = nn.Sequential(nn.ReLU()).apply_to_modules(lambda path, module: found.update({path: module}))
            >>> found["layers.0"]
            ReLU()
        """
        for path, module in self.named_modules():
            apply_fn(path, module)
        return self

    def set_dtype(
        self,
        dtype: mx.Dtype,
        predicate: Callable[[mx.Dtype], bool] | None = lambda dtype: mx.issubdtype(
            dtype, mx.floating
        ),
    ) -> None:
        """Casts parameters.

        Args:
            dtype (Dtype): The new dtype.
            predicate (Callable, optional): Predicate of a parameter's dtype that selects it. By default floats are
                cast; None casts all.

        Example:
            >>> layer = nn.Linear(3, 1)
            >>> layer.set_dtype(mx.float16)
            >>> layer.weight.dtype
            ultramarine.float16
        """
        if predicate is None:
            predicate = lambda _: True
        self.apply(lambda x: x.astype(dtype) if predicate(x.dtype) else x)

    # Training.

    def freeze(
        self,
        *,
        recurse: bool = True,
        keys: str | Sequence[str] | None = None,
        strict: bool = False,
    ) -> Module:
        """Excludes parameters from training: `trainable_parameters` leaves them out.

        Args:
            recurse (bool): Freezes parameters of submodules, too.
            keys (str or sequence, optional): Names of the parameters, in each module; by default all.
            strict (bool): Makes keys that no module has an error.

        Returns:
            Module: The module itself.

        Raises:
            KeyError: If `strict` and a key is unknown.

        Example:
            >>> nn.Linear(3, 2).freeze().trainable_parameters()
            {}
        """
        names = self._validate_keys(keys, strict, recurse)

        def freeze_one(_: str, module: Module) -> None:
            chosen = names
            if chosen is None:
                arrays = module.filter_and_map(
                    lambda m, k, v: not isinstance(v, Module) and m.valid_parameter_filter(m, k, v)
                )
                chosen = [path for path, _ in tree_flatten(arrays)]
            module._no_grad.update(chosen)

        return self._apply_here_or_below(freeze_one, recurse)

    def unfreeze(
        self,
        *,
        recurse: bool = True,
        keys: str | Sequence[str] | None = None,
        strict: bool = False,
    ) -> Module:
        """Makes frozen parameters trainable again.

        Args:
            recurse (bool): Includes parameters of submodules.
            keys (str or sequence, optional): Names of the parameters, in each module; by default all.
            strict (bool): Makes keys that no module has an error.

        Returns:
            Module: The module itself.

        Raises:
            KeyError: If `strict` and a key is unknown.

        Example:
            >>> list(nn.Linear(3, 1).freeze().unfreeze(keys="bias").trainable_parameters())
            ['bias']
        """
        names = self._validate_keys(keys, strict, recurse)

        def unfreeze_one(_: str, module: Module) -> None:
            if names is None:
                module._no_grad.clear()
            else:
                module._no_grad.difference_update(names)

        return self._apply_here_or_below(unfreeze_one, recurse)

    def _validate_keys(
        self, keys: str | Sequence[str] | None, strict: bool, recurse: bool
    ) -> list[str] | None:
        """The keys as a list, of which each is in one of the modules if `strict`."""
        if keys is None:
            return None
        names = [keys] if isinstance(keys, str) else list(keys)
        if strict:
            modules = self.modules() if recurse else [self]
            for name in names:
                if not any(name in module for module in modules):
                    raise KeyError(
                        f"{type(self).__name__} has no member {name!r}. Check the name or pass strict=False."
                    )
        return names

    def _apply_here_or_below(self, fn: Callable[[str, Module], None], recurse: bool) -> Module:
        if recurse:
            self.apply_to_modules(fn)
        else:
            fn("", self)
        return self

    def _set_training_mode(self, mode: bool) -> None:
        self._training = mode

    def train(self, mode: bool = True) -> Module:
        """Sets training mode, in the module and its submodules.

        Args:
            mode (bool): Training mode if True, else evaluation mode.

        Returns:
            Module: The module itself.

        Example:
            >>> nn.Dropout().eval().train().training
            True
        """
        self.apply_to_modules(lambda _, module: module._set_training_mode(mode))
        return self

    def eval(self) -> Module:
        """Sets evaluation mode, in the module and its submodules.

        Returns:
            Module: The module itself.

        Example:
            >>> nn.Dropout().eval()(mx.ones(3))
            array([1, 1, 1], dtype=float32)
        """
        return self.train(False)

    # Files.

    def load_weights(
        self, file_or_weights: str | list[tuple[str, mx.array]], strict: bool = True
    ) -> Module:
        """Replaces parameters by those of a file or a list.

        Args:
            file_or_weights (str or list): Path of a file, `.npz` or `.safetensors`, or pairs of path, such as
                `layers.0.weight`, and array.
            strict (bool): Makes it an error if the weights are not all the module's parameters, with their shapes.
                Otherwise those that it has are loaded, whatever their shapes.

        Returns:
            Module: The module itself.

        Raises:
            ValueError: If `strict` and names or shapes differ, or a value is no array.

        Example:
            >>> layer = nn.Linear(3, 1)
            >>> layer.load_weights([("weight", mx.ones((1, 3))), ("bias", mx.zeros(1))])(mx.ones(3))
            array([3], dtype=float32)
        """
        weights: list[tuple[str, Any]]
        if isinstance(file_or_weights, (str, os.PathLike)):
            loaded: Any = mx.load(os.fspath(file_or_weights))
            weights = list(loaded.items())
        else:
            weights = list(file_or_weights)
        if strict:
            current = dict(tree_flatten(self.parameters()))
            check_weights(type(self).__name__, current, dict(weights))
        if weights:
            self.update(tree_unflatten(weights), strict=False)
        return self

    def save_weights(self, file: str) -> None:
        """Writes all parameters to a file.

        Args:
            file (str): Path of the file, whose end is its format: `.npz` or `.safetensors`.

        Raises:
            ValueError: If the path ends in anything else.

        Example:
            >>> nn.Linear(3, 1).save_weights("layer.safetensors")
            >>> nn.Linear(3, 1).load_weights("layer.safetensors").weight.shape
            (1, 3)
        """
        file = os.fspath(file)
        weights = dict(tree_flatten(self.parameters()))
        if file.endswith(".npz"):
            mx.savez(file, **weights)
        elif file.endswith(".safetensors"):
            mx.save_safetensors(file, weights)
        else:
            raise ValueError(
                f"[save_weights] {file} has an unknown extension. Use .npz or .safetensors."
            )


def _is_leaf_module(module: Module, key: str, value: Any) -> bool:
    return isinstance(value, Module) and not tree_flatten(
        value.children(), is_leaf=Module.is_module
    )
