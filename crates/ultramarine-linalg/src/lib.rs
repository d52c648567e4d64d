//! Dense matrix decompositions over plain memory. They process one matrix at a time and have no threads of their own;
//! divide and conquer uses the caller's ([`Threads`]).
//!
//! Most algorithms are faer's. They are in a separate crate, with one concrete function for each scalar type, because
//! generic decompositions take a minute to compile. This way they are compiled once, and not after every change of a
//! kernel.
//!
//! Matrices are slices in column-major order without gaps; element `(i, j)` of `m` rows is at `i + j * m`. Sizes may be
//! zero. An error is a message: the iteration did not converge, an element is infinite or NaN (for the functions whose
//! iteration would fail then: [`Scalar::svd`], [`Scalar::eigh`], [`Scalar::eig`]), or memory ran out. No function
//! unwinds.
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

/// The singular vectors to compute, and the memory for them.
pub struct SingularVectors<'a, T> {
    /// Left singular vectors: the columns of an `m` x `m` or `m` x `min(m, n)` matrix.
    pub u: &'a mut [T],
    /// Right singular vectors: the columns of an `n` x `n` or `n` x `min(m, n)` matrix.
    pub v: &'a mut [T],
    /// True for all vectors, false for only those that belong to singular values.
    pub full: bool,
}

macro_rules! scalar {
    ($($(#[$m:meta])* fn $name:ident($($arg:ident: $t:ty),*) -> $out:ty = $module:ident;)*) => {
        /// A type of matrix elements, with the decompositions.
        pub trait Scalar: Number {
            $($(#[$m])*
            ///
            /// # Errors
            /// A message; see the crate.
            ///
            /// # Panics
            /// If a slice is shorter than its matrix.
            fn $name($($arg: $t),*) -> Result<$out, String>;)*
        }

        // Not inlined, so that the generic code is compiled in this crate and not at the caller.
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
    /// Replaces the lower triangle of the `n` x `n` matrix `a` by L of `a = L L^H`. Only that triangle is read. Returns
    /// false, with unspecified elements, if `a` is not positive definite.
    fn cholesky(a: &mut [Self], n: usize, work: &mut Work) -> bool = factor;

    /// Replaces the `m` x `n` matrix `a` by its LU factors: U in and above the diagonal, and L below it, without L's
    /// diagonal of ones. With k = min(m, n), row `i` was swapped with row `pivots[i]`, in order for all `i < k`. Row
    /// `i` of `L U` is row `rows[i]` of `a`.
    fn lu(a: &mut [Self], m: usize, n: usize, pivots: &mut [u32], rows: &mut [u32]) -> () = lu;

    /// Factors the `m` x `n` matrix `a = q r`: `q` is `m` x k, k = min(m, n), and the first k rows of `a` become r. The
    /// diagonal of r is real.
    fn qr(a: &mut [Self], m: usize, n: usize, q: &mut [Self]) -> () = qr;

    /// Replaces the `n` x `k` matrix `b` by the solution x of `a x = b`. Of the `n` x `n` matrix `a`, only the upper
    /// triangle, or else the lower one, is read. A zero on its diagonal is an error.
    fn solve_triangular(a: &[Self], n: usize, upper: bool, b: &mut [Self], k: usize) -> () = factor;

    /// Decomposes the `m` x `n` matrix `a = u diag(s) v^H`, and overwrites `a`. Computes singular values in descending
    /// order and, if requested, singular vectors.
    fn svd(
        a: &mut [Self], m: usize, n: usize, s: &mut [Self::Norm],
        vectors: Option<SingularVectors<'_, Self>>, work: &mut Work
    ) -> () = singular;

    /// Computes the eigenvalues of the Hermitian `n` x `n` matrix `a` in ascending order and, if requested, orthonormal
    /// eigenvectors as the columns of `v`. Only the lower triangle of `a` is read, and `a` is overwritten.
    fn eigh(
        a: &mut [Self], n: usize, w: &mut [Self::Norm], v: Option<&mut [Self]>, work: &mut Work
    ) -> () = eigen;

    /// Computes the eigenvalues of the `n` x `n` matrix `a` in any order and, if requested, eigenvectors as the columns
    /// of `v`. They have norm 1 and a real largest element. The computation is in double precision.
    fn eig(a: &[Self], n: usize, w: &mut [c32], v: Option<&mut [c32]>, work: &mut Work) -> () = eigen;
}
