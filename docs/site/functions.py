"""The directive `functions`: a table of names of a module, and the docstring of each below it.

    ```{functions} ultramarine
    abs add
    matmul
    ```

Every public name of the modules in `MODULES` has to stand in one such list; the build warns of those that do not.
"""

import importlib
import inspect
from types import ModuleType

from docutils import nodes
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from ultramarine import _core

MODULES = [
    "ultramarine",
    "ultramarine.backends",
    "ultramarine.cuda",
    "ultramarine.distributed",
    "ultramarine.extension",
    "ultramarine.fast",
    "ultramarine.fft",
    "ultramarine.linalg",
    "ultramarine.metal",
    "ultramarine.nn",
    "ultramarine.nn.checkpoints",
    "ultramarine.nn.init",
    "ultramarine.nn.layers.distributed",
    "ultramarine.nn.losses",
    "ultramarine.nn.utils",
    "ultramarine.optimizers",
    "ultramarine.random",
    "ultramarine.utils",
]

LOG = logging.getLogger(__name__)


def public(name: str) -> set[str]:
    """The functions and classes that a module shows, without what it imports."""
    module = importlib.import_module(name)
    listed = getattr(module, "__all__", None)
    names = listed if listed is not None else [n for n in vars(module) if not n.startswith("_")]
    found = set()
    for each in names:
        value = getattr(module, each)
        origin = getattr(value, "__module__", None) or ""
        documented = isinstance(value, type) or inspect.isroutine(value)
        if documented and not isinstance(value, ModuleType) and origin.startswith("ultramarine"):
            found.add(each)
    return found


def kind(value: object) -> str:
    """The directive of autodoc for a value."""
    if isinstance(value, type):
        return "autoexception" if issubclass(value, Exception) else "autoclass"
    return "autofunction" if inspect.isroutine(value) else "autodata"


class Functions(SphinxDirective):
    """A table of names, then the docstrings."""

    required_arguments = 1
    has_content = True

    def run(self) -> list[nodes.Node]:
        module = self.arguments[0]
        names = sorted(" ".join(self.content).split(), key=str.lower)
        seen = self.env.__dict__.setdefault("documented_names", set())
        # Docstrings are in the built module, of whose changes Sphinx knows nothing otherwise.
        for source in (importlib.import_module(module).__file__, _core.__file__):
            self.env.note_dependency(source)
        lines = [f".. currentmodule:: {module}", "", ".. autosummary::", "   :nosignatures:", ""]
        lines += [f"   {name}" for name in names] + [""]
        for name in names:
            value = getattr(importlib.import_module(module), name, None)
            if value is None:
                LOG.warning("%s has no %s", module, name, location=self.get_location())
                continue
            seen.add(f"{module}.{name}")
            lines.append(f".. {kind(value)}:: {name}")
            if isinstance(value, type):
                lines.append("   :members:")
            lines.append("")
        block = ["```{eval-rst}", *lines, "```"]
        return self.parse_text_to_nodes("\n".join(block))


def value_of(name: str) -> object:
    """The value of a dotted name."""
    module, _, last = name.rpartition(".")
    return getattr(importlib.import_module(module), last)


def check(app, env) -> None:
    """Warns of public names that no page has, under this module or another that shows the same thing."""
    seen = getattr(env, "documented_names", set())
    values = {id(value_of(name)) for name in seen}
    for module in MODULES:
        names = (n for n in public(module) if id(value_of(f"{module}.{n}")) not in values)
        if missing := sorted(n for n in names if f"{module}.{n}" not in seen):
            LOG.warning("docs/api lacks names of %s: %s", module, " ".join(missing))


def merge(app, env, docnames, other) -> None:
    """Joins what parallel readers saw."""
    mine = env.__dict__.setdefault("documented_names", set())
    mine |= getattr(other, "documented_names", set())


def setup(app) -> dict[str, int]:
    app.add_directive("functions", Functions)
    app.connect("env-check-consistency", check)
    app.connect("env-merge-info", merge)
    # A new number makes Sphinx read pages again that it read with another version of this directive.
    return {"parallel_read_safe": True, "parallel_write_safe": True, "env_version": 1}
