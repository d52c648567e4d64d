"""Writes the type stubs of the package from the package itself. `backends.pyi` is written by hand.

Names, arguments and defaults come from the built module, types from the tables beside this file, so a
stub cannot name what is not there. Run it with the package importable:

    PYTHONPATH=python python python/tools/make_stubs.py
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from types import ModuleType
from typing import Any

from stub_headers import (
    CUDA_HEADER,
    FAST_HEADER,
    FFT_HEADER,
    HEADER,
    LINALG_HEADER,
    METAL_HEADER,
    RANDOM_HEADER,
)
from stub_tables import ARGUMENTS, PROPERTIES, RESULTS, SPECIAL

import ultramarine as mx

PACKAGE = Path(mx.__file__).parent

OPERANDS = {"a", "b"}


def parameter(owner: str, p: inspect.Parameter, elementwise: bool) -> str:
    kind = ARGUMENTS.get(f"{owner}.{p.name}")
    if kind is None and elementwise and p.name in OPERANDS:
        kind = "ArrayLike"
    kind = kind or ARGUMENTS[p.name]
    if p.default is None and p.name == "device":
        kind += " | None"
    star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
    default = "" if p.default is p.empty else " = ..."
    if p.default is None or isinstance(p.default, (bool, int, float, str)):
        default = f" = {p.default!r}"
    return f"{star}{p.name}: {kind}{default}"


def define(name: str, function: Any, indent: str = "", method: bool = False) -> str:
    text = getattr(function, "__text_signature__", None) or str(inspect.signature(function))
    text = text.replace("$self", "self")
    # Defaults that are objects of ours are no literals to `inspect`.
    text = text.replace("=float32", "=...").replace("=int32", "=...").replace("=[]", "=()")
    space: dict[str, Any] = {}
    exec(f"def f{text}: pass", space)
    parameters = list(inspect.signature(space["f"]).parameters.values())
    others = [p.name for p in parameters if p.name not in ("self", "stream")]
    elementwise = not method and (
        (others == ["a"] and name in ELEMENTWISE) or (others == ["a", "b"] and name in ELEMENTWISE)
    )
    parts: list[str] = []
    positional = star = False
    for p in parameters:
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
        parts.append("self" if p.name == "self" else parameter(name, p, elementwise))
    if positional:
        parts.append("/")
    if method and "self" not in parts:
        parts.insert(0, "self")
    result = RESULTS.get(name, "array")
    return f"{indent}def {name}({', '.join(parts)}) -> {result}: ..."


ELEMENTWISE = set(
    re.findall(
        r"\w+",
        """abs square sqrt rsqrt reciprocal exp log log2 log10 log1p sin cos conj conjugate sign
        positive negative trunc floor ceil logical_not bitwise_invert expm1 erf erfinv tan arcsin
        arccos arctan sinh cosh tanh arcsinh arccosh arctanh degrees radians sigmoid isnan isinf
        isfinite isposinf isneginf real imag stop_gradient add subtract multiply divide
        floor_divide remainder power maximum minimum logaddexp xlogy arctan2 equal not_equal less
        less_equal greater greater_equal logical_and logical_or logical_xor bitwise_and bitwise_or
        bitwise_xor left_shift right_shift divmod""",
    )
)


def class_stub(name: str, kind: type) -> str:
    bases = ", ".join(b.__name__ for b in kind.__bases__ if b is not object)
    lines = [f"class {name}({bases}):" if issubclass(kind, Exception) else f"class {name}:"]
    doc = inspect.cleandoc(kind.__doc__ or "").split("\n\n")[0].replace("\n", "\n    ")
    if doc:
        lines.append(f'    """{doc}"""\n')
    if name in ("DtypeCategory", "DeviceType"):
        lines += [f"    {n}: {name}" for n, v in vars(kind).items() if isinstance(v, kind)]
    else:
        try:
            signature = inspect.signature(kind)
        except ValueError:
            signature = None
        own = any("def __init__" in text for text in SPECIAL.get(name, []))
        if signature and "__new__" in vars(kind) and not own:
            parts = [parameter(name, p, False) for p in signature.parameters.values()]
            kinds = [p.kind for p in signature.parameters.values()]
            if inspect.Parameter.KEYWORD_ONLY in kinds:
                parts.insert(kinds.index(inspect.Parameter.KEYWORD_ONLY), "*")
            lines.append(f"    def __init__({', '.join(['self', *parts])}) -> None: ...")
    for attribute, type_ in PROPERTIES.get(name, {}).items():
        lines += ["    @property", f"    def {attribute}(self) -> {type_}: ..."]
    special = SPECIAL.get(name, [])
    lines += [f"    {text}" for text in special]
    done = {text.split("(")[0].removeprefix("def ") for text in special}
    for attribute, value in sorted(vars(kind).items()):
        if attribute.startswith("_") or attribute in done or not inspect.isroutine(value):
            continue
        lines.append(define(attribute, value, "    ", method=True))
    if len(lines) == 1:
        lines.append("    ...")
    return "\n".join(lines)


def public(module: ModuleType) -> dict[str, Any]:
    extra = {"_PrintOptionsContext": getattr(module, "_PrintOptionsContext", None)}
    found = {n: v for n, v in vars(module).items() if not n.startswith("_")}
    found.update({n: v for n, v in extra.items() if v is not None})
    return {n: v for n, v in sorted(found.items()) if not isinstance(v, ModuleType)}


def module_stub(module: ModuleType, header: str) -> str:
    classes, functions, constants, aliases = [], [], [], []
    for name, value in public(module).items():
        if isinstance(value, type):
            classes.append(class_stub(name, value))
        elif callable(value):
            own = value.__name__
            if own != name and hasattr(module, own):
                aliases.append(f"{name} = {own}")
            else:
                functions.append(define(name, value))
        elif name not in ("state",):
            kind = "None" if value is None else type(value).__name__
            constants.append(f"{name}: {kind}")
    parts = [header, *classes, "\n".join(constants), *functions, "\n".join(aliases)]
    return "\n\n".join(p.rstrip() for p in parts if p.strip()) + "\n"


def main() -> None:
    (PACKAGE / "__init__.pyi").write_text(module_stub(mx, HEADER))
    (PACKAGE / "linalg.pyi").write_text(module_stub(mx.linalg, LINALG_HEADER))
    (PACKAGE / "random.pyi").write_text(module_stub(mx.random, RANDOM_HEADER))
    (PACKAGE / "fft.pyi").write_text(module_stub(mx.fft, FFT_HEADER))
    (PACKAGE / "fast.pyi").write_text(module_stub(mx.fast, FAST_HEADER))
    (PACKAGE / "cuda.pyi").write_text(module_stub(mx.cuda, CUDA_HEADER))
    (PACKAGE / "metal.pyi").write_text(module_stub(mx.metal, METAL_HEADER))


if __name__ == "__main__":
    main()
