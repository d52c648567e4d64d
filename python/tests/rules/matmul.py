"""Products and sums of products by subscripts."""

from .case import Case, case, real

CASES: list[Case] = [
    case("matmul", lambda um, x, y: um.matmul(x, y), real(2, 3), real(3, 2)),
    case("matmul, in batches", lambda um, x, y: um.matmul(x, y), real(2, 1, 2, 3), real(2, 3, 2)),
    case("matmul, with a vector", lambda um, x, y: um.matmul(x, y), real(2, 3), real(3)),
    case("addmm", lambda um, c, x, y: um.addmm(c, x, y, 0.5, 2.0), real(2), real(3, 2), real(2, 2)),
    case("tensordot", lambda um, x, y: um.tensordot(x, y, 1), real(2, 3), real(3, 2)),
    case("inner", lambda um, x, y: um.inner(x, y), real(2, 3), real(3)),
    case("outer", lambda um, x, y: um.outer(x, y), real(2), real(3)),
    case("kron", lambda um, x, y: um.kron(x, y), real(2, 1), real(2, 3)),
    case("vecdot", lambda um, x, y: um.vecdot(x, y), real(2, 3), real(2, 3)),
    case("einsum, a diagonal", lambda um, x: um.einsum("iij->ji", x), real(3, 3, 2)),
    case("einsum, matrices", lambda um, x, y: um.einsum("ij,jk->ki", x, y), real(2, 3), real(3, 2)),
    case("einsum, batches", lambda um, x, y: um.einsum("b...i,bij->j...b", x, y), real(2, 2, 3), real(2, 3, 2)),
    case("einsum, broadcast", lambda um, x, y: um.einsum("ij,jk->ik", x, y), real(2, 1), real(3, 2)),
    case("einsum, of three", lambda um, x, y, z: um.einsum("ij,jk,k->i", x, y, z), real(2, 3), real(3, 2), real(2)),
]  # fmt: skip


EXEMPT: dict[str, str] = {}
