"""Runs a program as `python` itself would, with MLX's names installed."""

from __future__ import annotations

import builtins
import importlib
import importlib.util
import io
import os
import pkgutil
import sys
from collections.abc import Callable
from importlib.machinery import BuiltinImporter, ModuleSpec, SourceFileLoader
from types import CodeType, ModuleType, TracebackType
from typing import Any, NoReturn

from ultramarine.as_mlx._children import set_device

USAGE = "usage: python -m ultramarine.as_mlx [--device DEVICE] (PROGRAM | -m MODULE | -c CODE | -) [ARGUMENT ...]"

HELP = f"""{USAGE}

Runs a program that was written for MLX on Ultramarine: `mlx.core`, `mlx.nn`, `mlx.optimizers` and `mlx.utils` are
Ultramarine's modules in it. PROGRAM is a script, or a directory or an archive with a `__main__.py`; `-` reads the
program from standard input. Everything else is as with `python` itself: sys.argv, sys.path, `__main__`, the exit
status. Options of `python` stand before `-m ultramarine.as_mlx`.

DEVICE is the default device, cpu if not given: gpu, or gpu:1. `python -m ultramarine backends` lists devices."""

# A loaded program: its code, and its module `__main__`.
Loaded = tuple[CodeType, ModuleType]


def main() -> None:
    """Runs the program that `sys.argv` names."""
    arguments = sys.argv[1:]
    if arguments[:1] in (["-h"], ["--help"]):
        print(HELP)
        return
    if arguments and arguments[0].partition("=")[0] == "--device":
        arguments = _choose_device(arguments)
    if not arguments:
        _fail(USAGE, 2)
    first, rest = arguments[0], arguments[1:]
    load: Callable[[], Loaded]
    if first[:2] in ("-m", "-c"):
        if not first[2:] and not rest:
            _fail(f"{USAGE}\nArgument expected for the {first} option", 2)
        value = first[2:] or rest.pop(0)
        # `python -m` sets the same sys.argv until a module is found.
        sys.argv[:] = [first[:2], *rest]
        load = (lambda: _module(value)) if first[:2] == "-m" else (lambda: _code(value))
    elif first.startswith("-") and first != "-":
        _fail(f"{USAGE}\nUnknown option: {first}", 2)
    else:
        sys.argv[:] = arguments
        load = _standard_input if first == "-" else lambda: _program(first)
    try:
        code, module = load()
        # The module of `python -m` itself stays alive, because its functions are still running.
        module.__dict__["__builtins__"] = builtins
        sys.modules["__main__"] = module
        exec(code, module.__dict__)
    except BaseException as error:
        if not isinstance(error, SystemExit):
            _leave_out_frames(error)
        raise


def _choose_device(arguments: list[str]) -> list[str]:
    """Sets the default device that the arguments begin with; returns the others."""
    _, equals, name = arguments[0].partition("=")
    if not equals:
        name = arguments[1] if arguments[1:] else ""
    try:
        set_device(name)
    except (ValueError, RuntimeError) as error:
        _fail(f"{sys.executable}: --device {name}: {error}", 2)
    return arguments[1 if equals else 2 :]


def _fail(text: str, status: int) -> NoReturn:
    print(text, file=sys.stderr)
    raise SystemExit(status)


def _search_first(directory: str) -> None:
    """Puts the program's directory where `python` would, in place of the one that `python -m` put there."""
    if not sys.flags.safe_path:
        sys.path[0] = directory


def _main_module(**attributes: Any) -> ModuleType:
    module = ModuleType("__main__")
    module.__dict__.update(__spec__=None, __package__=None, __loader__=BuiltinImporter)
    module.__dict__.update(attributes)
    return module


def _of_spec(spec: ModuleSpec) -> Loaded:
    """Loads a module that an import system found, to be `__main__`."""
    loader: Any = spec.loader
    code = loader.get_code(spec.name) if hasattr(loader, "get_code") else None
    if code is None:
        _fail(f"{sys.executable}: No code object available for {spec.name}", 1)
    module = _main_module(
        __spec__=spec,
        __package__=spec.parent,
        __loader__=loader,
        __file__=spec.origin,
        __cached__=spec.cached,
    )
    return code, module


def _code(source: str) -> Loaded:
    _search_first("")
    return compile(source, "<string>", "exec", dont_inherit=True), _main_module()


def _standard_input() -> Loaded:
    _search_first("")
    source = sys.stdin.buffer.read()
    module = _main_module(__file__="<stdin>")
    return compile(source, "<stdin>", "exec", dont_inherit=True), module


def _program(path: str) -> Loaded:
    """A script; or a directory or an archive with a `__main__.py`."""
    file = os.path.join(os.getcwd(), path)
    importer: Any = pkgutil.get_importer(file)
    if importer is not None:
        _search_first(file)
        spec = importer.find_spec("__main__")
        if spec is None:
            _fail(f"{sys.executable}: can't find '__main__' module in {file!r}", 1)
        return _of_spec(spec)
    try:
        with io.open_code(file) as stream:
            source = stream.read()
    except OSError as error:
        reason = f"[Errno {error.errno}] {error.strerror}"
        _fail(f"{sys.executable}: can't open file {file!r}: {reason}", 2)
    _search_first(os.path.dirname(os.path.realpath(path)))
    module = _main_module(
        __file__=file, __cached__=None, __loader__=SourceFileLoader("__main__", file)
    )
    return compile(source, file, "exec", dont_inherit=True), module


def _module(name: str) -> Loaded:
    """A module, or the module `__main__` of a package."""
    spec = _found(name)
    if spec is not None and spec.submodule_search_locations is not None:
        package, spec = name, _found(f"{name}.__main__")
        if spec is None:
            _fail(
                f"{sys.executable}: No module named {package}.__main__; {package!r} is a package and cannot be "
                "directly executed",
                1,
            )
    if spec is None:
        _fail(f"{sys.executable}: No module named {name}", 1)
    loaded = _of_spec(spec)
    sys.argv[0] = spec.origin or name
    return loaded


def _found(name: str) -> ModuleSpec | None:
    """The spec of a module. An error of a package that contains it is the program's."""
    package = name.rpartition(".")[0]
    try:
        if package:
            importlib.import_module(package)
    except ImportError as error:
        if error.name is None or not f"{package}.".startswith(f"{error.name}."):
            raise
    try:
        return importlib.util.find_spec(name)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        kind = type(error).__name__
        _fail(
            f"{sys.executable}: Error while finding module specification for {name!r} ({kind}: {error})",
            1,
        )


def _leave_out_frames(error: BaseException) -> None:
    """Has the interpreter print the traceback from the program's first frame on, whatever prints it in the end."""
    ours = (__file__, importlib.__file__, importlib.util.__file__)
    shown: TracebackType | None = error.__traceback__
    while shown is not None:
        file = shown.tb_frame.f_code.co_filename
        if file not in ours and not file.startswith("<frozen importlib"):
            break
        shown = shown.tb_next
    hook = sys.excepthook

    def print_program(
        kind: type[BaseException], value: BaseException, traceback: TracebackType | None
    ) -> None:
        if value is error:
            value, traceback = value.with_traceback(shown), shown
        hook(kind, value, traceback)

    sys.excepthook = print_program
