//! Linear algebra: the module `ultramarine.linalg`.

use crate::array::PyArray;
use crate::convert::{ArrayArg, Ints};
use crate::error::{Res, type_, value};
use crate::stream::{StreamArg, on};
use pyo3::prelude::*;
use pyo3::types::PyComplex;
use ultramarine::linalg::{self, NormOrder};
use ultramarine::{Array, Result};

type Two = (PyArray, PyArray);
type Three = (PyArray, PyArray, PyArray);

fn one(stream: Option<StreamArg>, f: impl FnOnce() -> Result<Array>) -> Res<PyArray> {
    Ok(PyArray::new(on(stream, f)?))
}

fn two(stream: Option<StreamArg>, f: impl FnOnce() -> Result<(Array, Array)>) -> Res<Two> {
    let (a, b) = on(stream, f)?;
    Ok((PyArray::new(a), PyArray::new(b)))
}

fn three(
    stream: Option<StreamArg>,
    f: impl FnOnce() -> Result<(Array, Array, Array)>,
) -> Res<Three> {
    let (a, b, c) = on(stream, f)?;
    Ok((PyArray::new(a), PyArray::new(b), PyArray::new(c)))
}

/// Functions of matrices without other arguments.
macro_rules! of_matrices {
    ($($(#[doc = $doc:literal])* $name:ident: $result:ty = $as:ident;)*) => {
        $(
        $(#[doc = $doc])*
        #[pyfunction]
        #[pyo3(signature = (a, *, stream=None))]
        fn $name(a: ArrayArg, stream: Option<StreamArg>) -> Res<$result> {
            $as(stream, || linalg::$name(&a.0))
        }
        )*

        pub fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
            let m = &PyModule::new(parent.py(), "ultramarine.linalg")?;
            crate::functions!(m: $($name)* cholesky cholesky_inv tri_inv eigh eigvalsh svd norm cross solve
                solve_triangular);
            parent.add("_linalg", m)
        }
    };
}

of_matrices! {
    /// The inverses of square matrices.
    inv: PyArray = one;
    /// The Moore-Penrose pseudo-inverses of matrices, by singular values.
    pinv: PyArray = one;
    /// The determinants of square matrices.
    det: PyArray = one;
    /// The signs of determinants, and the logarithms of their sizes: 0 and negative infinity of a matrix without
    /// an inverse.
    slogdet: Two = two;
    /// The LU factors of matrices, with partial pivoting: (p, l, u) with a = l[p, :] @ u.
    lu: Three = three;
    /// The LU factors of matrices in one array, and the pivots: row i was swapped with row pivots[i].
    lu_factor: Two = two;
    /// The reduced QR factors of matrices: a = q @ r.
    qr: Two = two;
    /// The eigenvalues of square matrices, and their eigenvectors in columns of norm 1: complex.
    eig: Two = two;
    /// The eigenvalues of square matrices: complex, in no particular order.
    eigvals: PyArray = one;
}

/// The triangular factor of symmetric positive definite matrices: a = l @ l.T, or, with `upper`,
/// a = u.T @ u.
#[pyfunction]
#[pyo3(signature = (a, upper=false, *, stream=None))]
fn cholesky(a: ArrayArg, upper: bool, stream: Option<StreamArg>) -> Res<PyArray> {
    one(stream, || linalg::cholesky(&a.0, upper))
}

/// The inverses of symmetric positive definite matrices, of their Cholesky factors.
#[pyfunction]
#[pyo3(signature = (a, upper=false, *, stream=None))]
fn cholesky_inv(a: ArrayArg, upper: bool, stream: Option<StreamArg>) -> Res<PyArray> {
    one(stream, || linalg::cholesky_inv(&a.0, upper))
}

/// The inverses of triangular matrices: lower, or with `upper` upper ones.
#[pyfunction]
#[pyo3(signature = (a, upper=false, *, stream=None))]
fn tri_inv(a: ArrayArg, upper: bool, stream: Option<StreamArg>) -> Res<PyArray> {
    one(stream, || linalg::tri_inv(&a.0, upper))
}

/// Whether the upper triangle is meant.
fn is_upper(uplo: &str) -> Res<bool> {
    match uplo {
        "L" | "l" => Ok(false),
        "U" | "u" => Ok(true),
        _ => Err(value(format!("[linalg::eigh] UPLO must be 'L' or 'U', not '{uplo}'."))),
    }
}

/// The eigenvalues of symmetric (Hermitian) matrices, ascending, and their eigenvectors in orthonormal columns.
/// `UPLO`: the triangle that is read.
#[pyfunction]
#[pyo3(signature = (a, UPLO="L", *, stream=None))]
#[allow(non_snake_case)]
fn eigh(a: ArrayArg, UPLO: &str, stream: Option<StreamArg>) -> Res<Two> {
    let upper = is_upper(UPLO)?;
    two(stream, || linalg::eigh(&a.0, upper))
}

/// The eigenvalues of symmetric (Hermitian) matrices, ascending. `UPLO`: the triangle that is read.
#[pyfunction]
#[pyo3(signature = (a, UPLO="L", *, stream=None))]
#[allow(non_snake_case)]
fn eigvalsh(a: ArrayArg, UPLO: &str, stream: Option<StreamArg>) -> Res<PyArray> {
    let upper = is_upper(UPLO)?;
    one(stream, || linalg::eigvalsh(&a.0, upper))
}

/// The full singular value decomposition (u, s, vt) of matrices: a = u[:, :k] * s @ vt[:k]. Without
/// `compute_uv` only s, which descends.
#[pyfunction]
#[pyo3(signature = (a, compute_uv=true, *, stream=None))]
fn svd(py: Python<'_>, a: ArrayArg, compute_uv: bool, stream: Option<StreamArg>) -> Res<Py<PyAny>> {
    if compute_uv {
        let all = three(stream, || linalg::svd(&a.0))?;
        return Ok(all.into_pyobject(py)?.into_any().unbind());
    }
    let s = one(stream, || linalg::svdvals(&a.0))?;
    Ok(s.into_pyobject(py)?.into_any().unbind())
}

/// What `ord` says.
fn order(ord: &Bound<'_, PyAny>) -> Res<NormOrder> {
    if let Ok(name) = ord.extract::<String>() {
        return match &name[..] {
            "f" | "fro" => Ok(NormOrder::Frobenius),
            "nuc" => Ok(NormOrder::Nuclear),
            _ => Err(value(format!("[linalg::norm] Invalid ord value '{name}' for matrix norm."))),
        };
    }
    match ord.extract::<f64>() {
        Ok(p) if !ord.is_instance_of::<PyComplex>() => Ok(NormOrder::Number(p)),
        _ => Err(type_("norm: ord must be a number or a string")),
    }
}

/// Norms of vectors (one axis) and matrices (two axes); of the whole array without `axis`. `ord`: None
/// for the root of the sum of squares; 1, 2, inf, -inf and any number of vectors; 1, -1, 2, -2, inf, -inf, "fro"
/// and "nuc" of matrices.
#[pyfunction]
#[pyo3(signature = (a, /, ord=None, axis=None, keepdims=false, *, stream=None))]
fn norm(
    a: ArrayArg,
    ord: Option<&Bound<'_, PyAny>>,
    axis: Option<Ints>,
    keepdims: bool,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    let ord = ord.map(order).transpose()?;
    let axes = axis.as_ref().map(|i| &i.0[..]);
    one(stream, || linalg::norm(&a.0, ord, axes, keepdims))
}

/// The cross product along an axis of size 3, or 2: the third element is then zero.
#[pyfunction]
#[pyo3(signature = (a, b, axis=-1, *, stream=None))]
fn cross(a: ArrayArg, b: ArrayArg, axis: isize, stream: Option<StreamArg>) -> Res<PyArray> {
    one(stream, || linalg::cross(&a.0, &b.0, axis))
}

/// The solution x of a @ x = b.
#[pyfunction]
#[pyo3(signature = (a, b, *, stream=None))]
fn solve(a: ArrayArg, b: ArrayArg, stream: Option<StreamArg>) -> Res<PyArray> {
    one(stream, || linalg::solve(&a.0, &b.0))
}

/// The solution x of a @ x = b for triangular a: lower, or with `upper` upper.
#[pyfunction]
#[pyo3(signature = (a, b, *, upper=false, stream=None))]
fn solve_triangular(
    a: ArrayArg,
    b: ArrayArg,
    upper: bool,
    stream: Option<StreamArg>,
) -> Res<PyArray> {
    one(stream, || linalg::solve_triangular(&a.0, &b.0, upper))
}
