"""Parameters as mlx documents them, beside ours."""

from __future__ import annotations

import ast
import inspect
import re
from typing import Any

import mlx.core as mlx

import ultramarine as um

from .table import found

Parameter = tuple[str, str, str]  # name, "position" | "both" | "keyword" | "*" | "**", default

LINE = re.compile(r"^\s*(?:\d+\. ``)?(\w+)\((.*)\)\s*(?:->.*)?$")


def documented(thing: Any) -> list[Parameter] | None:
    """The parameters in the first line of a docstring; None where there is not one such line."""
    lines = [m for m in map(LINE.match, (thing.__doc__ or "").split("\n")[:4]) if m]
    if len(lines) != 1:
        return None
    text = lines[0].group(2)
    # Types that are no Python, and defaults that are objects.
    text = text.replace("ndarray[writable=False]", "object").replace("numpy.ndarray[]", "object")
    try:
        tree = ast.parse(f"def f({text}): pass").body[0]
    except SyntaxError:
        return None
    assert isinstance(tree, ast.FunctionDef)
    a = tree.args
    out: list[Parameter] = []
    place = [(p, "position") for p in a.posonlyargs] + [(p, "both") for p in a.args]
    defaults = [None] * (len(place) - len(a.defaults)) + list(a.defaults)
    for (p, kind), default in zip(place, defaults):
        if p.arg != "self":
            out.append((p.arg, kind, plain(default)))
    if a.vararg:
        out.append((a.vararg.arg, "*", ""))
    for p, default in zip(a.kwonlyargs, a.kw_defaults):
        out.append((p.arg, "keyword", plain(default)))
    if a.kwarg:
        out.append((a.kwarg.arg, "**", ""))
    return out


def plain(default: ast.expr | None) -> str:
    """A default as text; dtypes without their module, [] as ()."""
    if default is None:
        return ""
    return shown(ast.unparse(default))


def shown(text: str) -> str:
    text = text.rsplit(".", 1)[-1] if re.fullmatch(r"[a-z_.]+\w*", text) else text
    text = {"[]": "()", "[-2, -1]": "(-2, -1)"}.get(text, text)
    try:
        value = ast.literal_eval(text)
    except ValueError:
        return text
    return (
        repr(float(value))
        if isinstance(value, int) and not isinstance(value, bool)
        else repr(value)
    )


def same_default(mine: str, default: str) -> bool:
    """Ours may be one that Python cannot show, or None for a dtype that is meant anyway: what
    an argument comes to that is left out is compared by cases."""
    if mine == "Ellipsis":
        return bool(default)
    return mine == default or (mine == "None" and default in ("float32", "int32", "bfloat16"))


KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: "position",
    inspect.Parameter.POSITIONAL_OR_KEYWORD: "both",
    inspect.Parameter.KEYWORD_ONLY: "keyword",
    inspect.Parameter.VAR_POSITIONAL: "*",
    inspect.Parameter.VAR_KEYWORD: "**",
}


def ours(thing: Any) -> list[Parameter] | None:
    try:
        signature = inspect.signature(thing)
    except (ValueError, TypeError):
        return None
    return [
        (p.name, KINDS[p.kind], "" if p.default is p.empty else shown(repr(p.default)))
        for p in signature.parameters.values()
        if p.name != "self"
    ]


def names() -> list[str]:
    """All documented callables of mlx that ultramarine has."""
    out = []
    for prefix in ("", "random.", "linalg.", "fft.", "distributed.", "array."):
        space = getattr(mlx, prefix.rstrip(".")) if prefix else mlx
        for name in dir(space):
            thing = getattr(space, name)
            if name.startswith("_") or isinstance(thing, type) or not callable(thing):
                continue
            if found(um, prefix + name):
                out.append(prefix + name)
    return out


def difference(name: str) -> str:
    """Differences of our parameters from those that mlx documents; "" for none."""
    want_thing: Any = mlx
    our_thing: Any = um
    for part in name.split("."):
        want_thing, our_thing = getattr(want_thing, part), getattr(our_thing, part)
    want, have = documented(want_thing), ours(our_thing)
    if want is None:
        return ""
    if have is None:
        return "no signature"
    by_name = {p[0]: p for p in have}
    variable = {p[1] for p in have if p[1] in "**"}
    for place, (parameter, kind, default) in enumerate(want):
        if kind in ("*", "**"):
            if kind not in variable:
                return f"no {kind}{parameter}"
            continue
        if kind == "position":
            # Its name is nobody's business.
            if place >= len(have) or have[place][1] not in ("position", "both", "*"):
                return f"nothing in place {place} for {parameter}"
            if have[place][1] != "*" and not same_default(have[place][2], default):
                return f"{parameter} is {have[place][2] or 'needed'}, in mlx {default or 'needed'}"
            continue
        if parameter == "a" and have and have[0][1] == "position":
            # mlx itself does not take the first array by name.
            continue
        mine = by_name.get(parameter)
        if mine is None:
            return f"no {parameter}"
        if mine[1] not in ("both", "keyword"):
            return f"{parameter} cannot be given by name"
        if kind == "both" and mine[1] == "keyword" and parameter != "stream":
            return f"{parameter} cannot be given by place"
        if mine[1] == "both" and kind == "both" and have.index(mine) != place:
            return f"{parameter} stands in place {have.index(mine)}, in mlx {place}"
        if not same_default(mine[2], default):
            return f"{parameter} is {mine[2] or 'needed'}, in mlx {default or 'needed'}"
    return ""
