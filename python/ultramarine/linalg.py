"""Linear algebra. Matrices stand in the last two axes, and leading axes are a batch.

Decompositions take float32 and float64, and beyond MLX complex64. Derivatives, which MLX does not have for most of these, are
those of textbooks: signs and phases of vectors are held, and nothing turns vectors of equal values.
"""

from ultramarine import _core

__all__ = [
    "cholesky",
    "cholesky_inv",
    "cross",
    "det",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lu",
    "lu_factor",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "tri_inv",
]

cholesky = _core._linalg.cholesky
cholesky_inv = _core._linalg.cholesky_inv
cross = _core._linalg.cross
det = _core._linalg.det
eig = _core._linalg.eig
eigh = _core._linalg.eigh
eigvals = _core._linalg.eigvals
eigvalsh = _core._linalg.eigvalsh
inv = _core._linalg.inv
lu = _core._linalg.lu
lu_factor = _core._linalg.lu_factor
norm = _core._linalg.norm
pinv = _core._linalg.pinv
qr = _core._linalg.qr
slogdet = _core._linalg.slogdet
solve = _core._linalg.solve
solve_triangular = _core._linalg.solve_triangular
svd = _core._linalg.svd
tri_inv = _core._linalg.tri_inv
