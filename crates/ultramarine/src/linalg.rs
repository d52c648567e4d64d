//! Linear algebra: decompositions of matrices.
//!
//! Matrices stand in the last two axes, and leading axes are a batch. Decompositions take float32,
//! float64 and complex64. They run on any device: where a backend has no kernel the CPU computes
//! them, by way of the host, which [`crate::op_counts`] counts.

// The public functions. The operations, with their rules, are in `ops/linalg`.

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
