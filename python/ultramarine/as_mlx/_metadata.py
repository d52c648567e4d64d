"""The distribution `mlx`, as `importlib.metadata` reports it while the names are installed."""

from __future__ import annotations

from importlib.metadata import Distribution
from os import PathLike
from pathlib import Path
from typing import Any


class MlxDistribution(Distribution):
    """Name, version and top-level package of a distribution that has no files.

    Args:
        version (str): The version.
    """

    def __init__(self, version: str) -> None:
        self._files = {
            "METADATA": f"Metadata-Version: 2.1\nName: mlx\nVersion: {version}\n"
            "Summary: Ultramarine's modules by MLX's names\n",
            "top_level.txt": "mlx\n",
        }

    def read_text(self, filename: str | PathLike[str]) -> str | None:
        """Returns the text of a file of the metadata; None if there is no such file."""
        return self._files.get(str(filename))

    def locate_file(self, path: str | PathLike[str]) -> Any:
        """Returns where a file of the distribution would be."""
        return Path(__file__).parent / path
