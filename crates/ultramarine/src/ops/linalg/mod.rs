//! Linear algebra: the operations that factorise matrices, and the functions that are computed from them.
//! [`crate::linalg`] exports them.

pub(crate) mod cholesky;
pub(crate) mod cross;
mod derivatives;
pub(crate) mod determinant;
pub(crate) mod eig;
pub(crate) mod eigh;
pub(crate) mod inverse;
pub(crate) mod lu;
pub(crate) mod matrices;
pub(crate) mod norm;
pub(crate) mod pinv;
pub(crate) mod qr;
pub(crate) mod svd;
pub(crate) mod triangular;
