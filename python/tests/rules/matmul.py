"""Products and sums of products by subscripts."""

from .case import Case, case, real, truth, whole

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
    case("gather_mm", lambda um, x, y, i, j: um.gather_mm(x, y, i, j), real(2, 2, 3), real(3, 3, 2), whole(4, high=2), whole(4, high=3)),
    case("gather_mm, in order", lambda um, x, y, j: um.gather_mm(x, y, None, j), real(2, 2, 3), real(3, 3, 2), whole(2, high=3)),
    case("block_masked_mm", lambda um, x, y, o, a, b: um.block_masked_mm(x, y, 32, o, a, b), real(33, 2), real(2, 3), real(2, 1), real(2, 1), real(1, 1)),
    case("block_masked_mm, of bools", lambda um, x, y, o: um.block_masked_mm(x, y, 32, o), real(33, 2), real(2, 3), truth(2, 1)),
    case("segmented_mm", lambda um, x, y: um.segmented_mm(x, y, um.array([[0, 2], [1, 4], [3, 3]])), real(2, 4), real(4, 3)),
    case("hadamard_transform", lambda um, x: um.hadamard_transform(x), real(2, 8)),
    case("hadamard_transform, not symmetric", lambda um, x: um.hadamard_transform(x), real(1, 20)),
    case("einsum, a diagonal", lambda um, x: um.einsum("iij->ji", x), real(3, 3, 2)),
    case("einsum, matrices", lambda um, x, y: um.einsum("ij,jk->ki", x, y), real(2, 3), real(3, 2)),
    case("einsum, batches", lambda um, x, y: um.einsum("b...i,bij->j...b", x, y), real(2, 2, 3), real(2, 3, 2)),
    case("einsum, broadcast", lambda um, x, y: um.einsum("ij,jk->ik", x, y), real(2, 1), real(3, 2)),
    case("einsum, of three", lambda um, x, y, z: um.einsum("ij,jk,k->i", x, y, z), real(2, 3), real(3, 2), real(2)),
]  # fmt: skip


EXEMPT: dict[str, str] = {}
