"""The cases, by subject. Each registers itself when its file is imported."""

import importlib

SUBJECTS = [
    "layouts",
    "types",
    "flags",
    "copies",
    "exports",
    "reject",
    "lifetime",
    "threads",
    "exchange",
    "tables",
    "peers",
    "cuda",
]


def load() -> None:
    """Imports all of them."""
    for subject in SUBJECTS:
        importlib.import_module(f"{__name__}.{subject}")
