"""Sums of products by subscripts, and linear algebra."""

from .case import Case, case, real

CASES: list[Case] = [
    case("einsum, a diagonal", lambda um, x: um.einsum("iij->ji", x), real(3, 3, 2)),
    case("einsum, matrices", lambda um, x, y: um.einsum("ij,jk->ki", x, y), real(2, 3), real(3, 2)),
    case("einsum, batches", lambda um, x, y: um.einsum("b...i,bij->j...b", x, y), real(2, 2, 3), real(2, 3, 2)),
    case("einsum, broadcast", lambda um, x, y: um.einsum("ij,jk->ik", x, y), real(2, 1), real(3, 2)),
    case("einsum, of three", lambda um, x, y, z: um.einsum("ij,jk,k->i", x, y, z), real(2, 3), real(3, 2), real(2)),
]  # fmt: skip

EXEMPT: dict[str, str] = {"einsum_path": "no function of arrays"}
