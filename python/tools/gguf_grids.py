"""Writes the codebooks of GGUF's types as the crate holds them, from the package `gguf`.

    python python/tools/gguf_grids.py [--check]

Each row is 16 bits: the indexes of its four or eight numbers, of four or two bits. The numbers that they choose are in
`grids.rs` beside the file.
"""

import sys
from pathlib import Path

import numpy as np
from gguf import quants

FILE = Path(__file__).parents[2] / "crates/ultramarine/src/io/gguf/blocks/grids.bin"
# In the order of the file.
TYPES = ["IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S", "IQ1_S"]


def rows(name: str) -> bytes:
    kind = getattr(quants, name)
    kind.init_grid()
    grid = kind.grid.reshape(kind.grid_shape)
    codes = np.searchsorted(np.array(kind.grid_map, np.float32), grid).astype(np.uint32)
    width = kind.grid_shape[1]
    shifts = np.arange(width, dtype=np.uint32) * (16 // width)
    return (codes << shifts).sum(axis=1).astype("<u2").tobytes()


def main() -> None:
    data = b"".join(map(rows, TYPES))
    if sys.argv[1:] != ["--check"]:
        FILE.write_bytes(data)
    elif FILE.read_bytes() != data:
        sys.exit(f"{FILE.name} is not what the package has. Run this program without --check.")


if __name__ == "__main__":
    main()
