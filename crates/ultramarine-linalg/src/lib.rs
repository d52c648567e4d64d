//! Dense matrix decompositions over plain memory, for one matrix at a time and without threads of their own: divide and conquer
//! gets the caller's ([`Threads`]).
//!
//! Most algorithms are faer's. They stand in a crate of their own, with one concrete function for each scalar type, because
//! generic decompositions take a minute to compile: so they are compiled once, and not with every change of a kernel.
//!
//! Matrices are slices in column-major order without gaps, element `(i, j)` of `m` rows at `i + j * m`. Sizes
//! may be zero. An error is a text: the iteration did not converge, an element is infinite or NaN (where an iteration would
//! not end well: [`Scalar::svd`], [`Scalar::eigh`], [`Scalar::eig`]), or there is no memory. Nothing unwinds.
//!
//! ```
//! use ultramarine_linalg::{Scalar, Work};
//! let mut a = [4.0f64, 2.0, 2.0, 10.0];
//! assert!(f64::cholesky(&mut a, 2, &mut Work::default())?);
//! assert_eq!([a[0], a[1], a[3]], [2.0, 1.0, 3.0]);
//! # Ok::<(), String>(())
//! ```

mod conquer;
mod eigen;
mod factor;
mod lu;
mod number;
mod qr;
mod singular;
mod work;

pub use conquer::{
    Eigen, Singular, Threads, bidiagonal_values, bidiagonal_vectors, tridiagonal_values,
    tridiagonal_vectors,
};
pub use faer::{c32, c64};
pub use number::{Number, Real};
pub use work::{Work, power_of_two};

/// The singular vectors that a decomposition computes, and the memory for them.
pub struct SingularVectors<'a, T> {
    /// Left ones, the columns of `m` x `m`, or `m` x `min(m, n)`.
    pub u: &'a mut [T],
    /// Right ones, the columns of `n` x `n`, or `n` x `min(m, n)`.
    pub v: &'a mut [T],
    /// All of them, not only those that belong to singular values.
    pub full: bool,
}

macro_rules! scalar {
    ($($(#[$m:meta])* fn $name:ident($($arg:ident: $t:ty),*) -> $out:ty = $module:ident;)*) => {
        /// A type of matrix elements, with the decompositions.
        pub trait Scalar: Number {
            $($(#[$m])*
            ///
            /// # Errors
            /// A text; see the crate.
            ///
            /// # Panics
            /// If a slice is shorter than its matrix.
            fn $name($($arg: $t),*) -> Result<$out, String>;)*
        }

        // Not inlined: the generic code is compiled here, not where it is called.
        scalar!(@impl f32 $($name($($arg: $t),*) -> $out = $module;)*);
        scalar!(@impl f64 $($name($($arg: $t),*) -> $out = $module;)*);
        scalar!(@impl c32 $($name($($arg: $t),*) -> $out = $module;)*);
    };
    (@impl $s:ident $($name:ident($($arg:ident: $t:ty),*) -> $out:ty = $module:ident;)*) => {
        impl Scalar for $s {
            $(#[inline(never)]
            fn $name($($arg: $t),*) -> Result<$out, String> {
                work::guarded(|| $module::$name::<$s>($($arg),*))
            })*
        }
    };
}

scalar! {
    /// Replaces the lower triangle of the `n` x `n` matrix `a`, which alone is read, by L of
    /// `a = L L^H`. False, and anything there, if it is not positive definite.
    fn cholesky(a: &mut [Self], n: usize, work: &mut Work) -> bool = factor;

    /// Replaces the `m` x `n` matrix `a` by U, in and above the diagonal, and L, whose diagonal
    /// of ones is left out, below. For k = min(m, n): row `i` was swapped with row `pivots[i]`, for
    /// `i < k` in turn; row `i` of `L U` is row `rows[i]` of `a`.
    fn lu(a: &mut [Self], m: usize, n: usize, pivots: &mut [u32], rows: &mut [u32]) -> () = lu;

    /// `a = q r` of the `m` x `n` matrix `a`: `q` is `m` x k, k = min(m, n), and the first k rows of
    /// `a` become r. The diagonal of r is real.
    fn qr(a: &mut [Self], m: usize, n: usize, q: &mut [Self]) -> () = qr;

    /// Replaces the `n` x `k` matrix `b` by x of `a x = b`, for the `n` x `n` matrix `a` of which
    /// the upper, or else the lower, triangle is read. A zero on its diagonal is an error.
    fn solve_triangular(a: &[Self], n: usize, upper: bool, b: &mut [Self], k: usize) -> () = factor;

    /// `a = u diag(s) v^H` of the `m` x `n` matrix `a`, whose memory is used: singular values in
    /// descending order and, if asked for, singular vectors.
    fn svd(
        a: &mut [Self], m: usize, n: usize, s: &mut [Self::Norm],
        vectors: Option<SingularVectors<'_, Self>>, work: &mut Work
    ) -> () = singular;

    /// Eigenvalues in ascending order, and, if asked for, orthonormal eigenvectors, the columns of `v`, of the
    /// Hermitian `n` x `n` matrix `a`, whose lower triangle alone is read; its memory is used.
    fn eigh(
        a: &mut [Self], n: usize, w: &mut [Self::Norm], v: Option<&mut [Self]>, work: &mut Work
    ) -> () = eigen;

    /// Eigenvalues in any order, and, if asked for, eigenvectors, the columns of `v`, of norm 1 and with
    /// a real largest element, of the `n` x `n` matrix `a`. Computed in double precision.
    fn eig(a: &[Self], n: usize, w: &mut [c32], v: Option<&mut [c32]>, work: &mut Work) -> () = eigen;
}
