//! Rows of the table: sums of products.

use super::{Case, case};
use ultramarine::einsum;

const SQUARE: (&[usize], f64, f64) = (&[3, 3], -1.0, 1.0);

pub fn cases() -> Vec<Case> {
    const A: (&[usize], f64, f64) = (&[2, 3], -1.0, 1.0);
    const B: (&[usize], f64, f64) = (&[3, 4], -1.0, 1.0);
    vec![
        case("einsum, a diagonal", &[SQUARE], |x| einsum("ii->i", x)),
        case("einsum, a trace", &[SQUARE], |x| einsum("ii", x)),
        case("einsum, a sum", &[A], |x| einsum("ij->j", x)),
        case("einsum, an outer product", &[A, (&[2], -1.0, 1.0)], |x| einsum("ij,k->kji", x)),
        case("einsum, a matrix product", &[A, B], |x| einsum("ij,jk->ki", x)),
        case("einsum, batches", &[(&[2, 2, 3], -1.0, 1.0), (&[2, 3, 2], -1.0, 1.0)], |x| {
            einsum("bij,bjk->ikb", x)
        }),
        case("einsum, broadcast", &[(&[2, 1], -1.0, 1.0), B], |x| einsum("ij,jk->ik", x)),
        case("einsum, three operands", &[A, B, (&[4], -1.0, 1.0)], |x| einsum("ij,jk,k->i", x)),
        case("einsum, an ellipsis", &[(&[2, 2, 3], -1.0, 1.0), B], |x| einsum("...i,ij->j...", x)),
    ]
}
