//! Linear algebra: decompositions of matrices.
//!
//! Matrices occupy the last two axes; leading axes are a batch. Decompositions take float32,
//! float64 and complex64. They run on any device: if a backend has no kernel, the CPU computes them
//! and the data goes through the host. [`crate::op_counts`] counts these cases.

// The public functions. Their operations, with rules, are in `ops/linalg`.

pub use crate::ops::linalg::{
    cholesky::cholesky,
    cross::cross,
    determinant::{det, slogdet},
    eig::{eig, eigvals},
    eigh::{eigh, eigvalsh},
    inverse::{cholesky_inv, inv, solve, tri_inv},
    lu::{lu, lu_factor},
    norm::{NormOrder, norm},
    pinv::pinv,
    qr::qr,
    svd::{svd, svdvals},
    triangular::solve_triangular,
};
