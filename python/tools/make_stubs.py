"""Writes the type stubs of the package from the package itself.

The one definition of a function is its binding: names, arguments and defaults are those of the built module,
docstrings are its docstrings, and types are those of their sections `Args` and `Returns`:

    Args:
        axis (int | None): Axis to reduce.

    Returns:
        array: Sums.

A function without `Returns` returns None. The docstring of a property begins with its type: `int: Number of
elements.` Special methods that are slots have no signature: stub_slots.py has theirs. The signatures of
`backends.pyi` are written by hand; its docstrings are those of the module. Run it with the package importable:

    PYTHONPATH=python python python/tools/make_stubs.py
"""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path
from types import GetSetDescriptorType, ModuleType
from typing import Any

import stub_headers
from stub_slots import SLOTS

import ultramarine as mx
from ultramarine import backends

ROOT = Path(__file__).resolve().parents[1] / "ultramarine"

# Each stub that is made: its module, and how it begins.
MODULES: dict[str, tuple[ModuleType, str]] = {
    "__init__.pyi": (mx, stub_headers.PACKAGE),
    "linalg.pyi": (mx.linalg, stub_headers.LINALG),
    "random.pyi": (mx.random, stub_headers.RANDOM),
    "fft.pyi": (mx.fft, stub_headers.FFT),
    "fast.pyi": (mx.fast, stub_headers.FAST),
    "cuda.pyi": (mx.cuda, stub_headers.CUDA),
    "distributed/__init__.pyi": (mx.distributed, stub_headers.DISTRIBUTED),
    "metal.pyi": (mx.metal, stub_headers.METAL),
}

# Names of types in docstrings that stubs declare for themselves.
PRIVATE = {"P": "_P", "R": "_R", "Path": "_Path"}

# Methods with two underscores that are no slots.
METHODS = {"__array__", "__array_namespace__", "__dlpack__", "__dlpack_device__"}


class Documented:
    """The types in a docstring."""

    def __init__(self, doc: str) -> None:
        self.arguments: dict[str, str] = {}
        self.result = "None"
        section = previous = ""
        for line in doc.splitlines():
            if match := re.fullmatch(r"(\w+):", line):
                section = match[1]
            elif section == "Args" and (match := re.match(r" {4}\*{0,2}(\w+) \((.+?)\):", line)):
                self.arguments[match[1]] = private(match[2])
            elif previous == "Returns:" and (match := re.match(r" {4}(.+?):(?: |$)", line)):
                self.result = private(match[1])
            previous = line


def private(kind: str) -> str:
    """A type as stubs write it."""
    return re.sub(r"\b(?<!\.)(P|R|Path)\b", lambda match: PRIVATE[match[1]], kind)


def docstring(doc: str, indent: str) -> str:
    """A docstring as source."""
    if "\n" in doc:
        doc += "\n"
    text = "\n".join((indent + line).rstrip() for line in f'"""{doc}"""'.split("\n"))
    return text.replace("\\", "\\\\")


def parameter(owner: str, p: inspect.Parameter, types: dict[str, str]) -> str:
    if p.name not in types:
        raise SystemExit(f"the docstring of {owner} has no type of {p.name} among its `Args`")
    star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
    default = "" if p.default is p.empty else " = ..."
    if p.default is None or isinstance(p.default, (bool, int, float, str)):
        default = f" = {p.default!r}"
    return f"{star}{p.name}: {types[p.name]}{default}"


def parameters(owner: str, signature: inspect.Signature, types: dict[str, str]) -> list[str]:
    """The parameters, with the marks of positional-only and keyword-only ones."""
    parts: list[str] = []
    positional = star = False
    for p in signature.parameters.values():
        if p.kind == p.POSITIONAL_ONLY and p.name != "self":
            positional = True
        elif positional:
            parts.append("/")
            positional = False
        if p.kind == p.VAR_POSITIONAL:
            star = True
        if p.kind == p.KEYWORD_ONLY and not star:
            parts.append("*")
            star = True
        parts.append("self" if p.name == "self" else parameter(owner, p, types))
    return [*parts, "/"] if positional else parts


def signature_of(function: Any) -> inspect.Signature:
    text = getattr(function, "__text_signature__", None) or str(inspect.signature(function))
    # Defaults that are objects of ours are no literals to `inspect`.
    text = text.replace("$self", "self").replace("=[]", "=()")
    space: dict[str, Any] = {}
    exec(f"def f{text}: pass", space)
    return inspect.signature(space["f"])


def define(name: str, function: Any, indent: str = "", method: bool = False) -> str:
    doc = inspect.getdoc(function) or ""
    types = Documented(doc)
    parts = parameters(name, signature_of(function), types.arguments)
    if method and "self" not in parts:
        parts.insert(0, "self")
    head = f"{indent}def {name}({', '.join(parts)}) -> {types.result}:"
    return f"{head}\n{docstring(doc, indent + '    ')}"


def define_property(name: str, value: Any) -> str:
    kind, _, _ = (inspect.getdoc(value) or "").partition(":")
    doc = docstring(inspect.getdoc(value) or "", "        ")
    return f"    @property\n    def {name}(self) -> {private(kind)}:\n{doc}"


def class_stub(name: str, kind: type) -> str:
    bases = ", ".join(b.__name__ for b in kind.__bases__ if b is not object)
    doc = inspect.cleandoc(kind.__doc__ or "")
    lines = [f"class {name}({bases}):" if issubclass(kind, Exception) else f"class {name}:"]
    lines.append(docstring(doc, "    ") + "\n")
    slots = SLOTS.get(name, [])
    done = {re.split(r"\W", text.removeprefix("def "))[0] for text in slots}
    if name in ("DtypeCategory", "DeviceType"):
        lines += [f"    {n}: {name}" for n, v in vars(kind).items() if isinstance(v, kind)]
    elif "__new__" in vars(kind) and "__init__" not in done:
        parts = parameters(name, inspect.signature(kind), Documented(doc).arguments)
        # `finfo` and `iinfo` take their argument by position only, which the stub does not demand.
        parts = [p for p in parts if p != "/"]
        lines.append(f"    def __init__({', '.join(['self', *parts])}) -> None: ...")
    found = sorted((n, v) for n, v in vars(kind).items() if n not in done)
    for n, v in found:
        if isinstance(v, GetSetDescriptorType) and not n.startswith("_"):
            lines.append(define_property(n, v))
    lines += [f"    {text}" for text in slots]
    for n, v in found:
        if inspect.isroutine(v) and (n in METHODS or not n.startswith("_")):
            lines.append(define(n, v, "    ", method=True))
    return "\n".join(lines)


def public(module: ModuleType) -> dict[str, Any]:
    extra = {
        n: getattr(module, n, None) for n in ("_PrintOptionsContext", "__array_namespace_info__")
    }
    found = {n: v for n, v in vars(module).items() if not n.startswith("_")}
    found.update({n: v for n, v in extra.items() if v is not None})
    return {n: v for n, v in sorted(found.items()) if not isinstance(v, ModuleType)}


def module_stub(module: ModuleType, header: str) -> str:
    classes, functions, constants, aliases = [], [], [], []
    for name, value in public(module).items():
        if f"\n{name}: TypeAlias" in header:
            continue  # a type of annotations, which has a wider meaning for type checkers
        if isinstance(value, type):
            classes.append(class_stub(name, value))
        elif inspect.isroutine(value):
            own = value.__name__
            if own != name and hasattr(module, own):
                aliases.append(f"{name} = {own}")
            else:
                functions.append(define(name, value))
        elif name not in ("state",):
            kind = "None" if value is None else type(value).__name__
            constants.append(f"{name}: {kind}")
    doc = docstring(inspect.getdoc(module) or "", "")
    comment = "# Made by python/tools/make_stubs.py of the module's docstrings: change those."
    parts = [doc, comment, header, *classes, "\n".join(constants), *functions, "\n".join(aliases)]
    return "\n\n".join(p.strip("\n") for p in parts if p.strip()) + "\n"


def with_docstrings(stub: str, module: ModuleType) -> str:
    """A stub that is written by hand, with the docstrings of the module's functions and classes."""
    lines = stub.splitlines()
    for node in reversed(ast.parse(stub).body):
        if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.name.startswith("_"):
            continue
        doc = docstring(inspect.getdoc(getattr(module, node.name)) or "", "    ")
        first = node.body[0]
        bare = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
        assert bare and first.end_lineno is not None, f"{node.name} has no docstring to replace"
        # The body of a function may stand behind its head.
        head = lines[first.lineno - 1][: first.col_offset].rstrip()
        lines[first.lineno - 1 : first.end_lineno] = [*([head] if head else []), *doc.split("\n")]
    return "\n".join(lines) + "\n"


def made() -> dict[Path, str]:
    """The text of each stub."""
    stubs = {ROOT / name: module_stub(*of) for name, of in MODULES.items()}
    by_hand = ROOT / "backends.pyi"
    return stubs | {by_hand: with_docstrings(by_hand.read_text(), backends)}


def stale() -> list[str]:
    """Stubs that say something else than what is made now; formatting and comments do not matter."""

    def content(text: str) -> str:
        return ast.dump(ast.parse(text))

    return [
        path.name for path, text in made().items() if content(path.read_text()) != content(text)
    ]


def main() -> None:
    stubs = made()
    for path, text in stubs.items():
        path.write_text(text)
    subprocess.run([sys.executable, "-m", "ruff", "format", "--quiet", *stubs], check=True)


if __name__ == "__main__":
    main()
