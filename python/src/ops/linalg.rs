//! Linear algebra: the module `ultramarine.linalg`.

use crate::array::PyArray;
use crate::convert::{ArrayArg, Ints};
use crate::error::{Res, type_, value};
use crate::stream::{StreamArg, on};
use pyo3::prelude::*;
use pyo3::types::PyComplex;
use ultramarine::linalg::{self, NormOrder};
use ultramarine::{Array, Reduced, Result};

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
    /// Computes the inverses of square matrices.
    ///
    /// Args:
    ///     a (array): Matrices in the last two axes: float32, float64 or complex64.
    ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
    ///         else the default device.
    ///
    /// Returns:
    ///     array: Inverses, in shape and dtype of `a`.
    ///
    /// Raises:
    ///     ValueError: If the matrices are not square, or of another dtype.
    ///     RuntimeError: When the result is evaluated, if a matrix is singular.
    ///
    /// Example:
    ///     >>> mx.linalg.inv(mx.array([[2.0, 0.0], [0.0, 4.0]]))
    ///     array([[0.5, 0],
    ///            [0, 0.25]], dtype=float32)
    inv: PyArray = one;
    /// Computes the Moore-Penrose pseudo-inverses of matrices, by singular values.
    ///
    /// Args:
    ///     a (array): Matrices in the last two axes: float32, float64 or complex64.
    ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
    ///         else the default device.
    ///
    /// Returns:
    ///     array: Pseudo-inverses: the last two sizes are exchanged.
    ///
    /// Raises:
    ///     ValueError: If there are less than two dimensions, or the dtype is another.
    ///
    /// Example:
    ///     >>> mx.linalg.pinv(mx.array([[2.0], [0.0]]))
    ///     array([[0.5, 0]], dtype=float32)
    pinv: PyArray = one;
    /// Computes the determinants of square matrices.
    ///
    /// Args:
    ///     a (array): Matrices in the last two axes: float32, float64 or complex64.
    ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
    ///         else the default device.
    ///
    /// Returns:
    ///     array: Determinants, without the last two axes.
    ///
    /// Raises:
    ///     ValueError: If the matrices are not square, or of another dtype.
    ///
    /// Example:
    ///     >>> mx.linalg.det(mx.array([[2.0, 1.0], [0.0, 3.0]]))
    ///     array(6, dtype=float32)
    det: PyArray = one;
    /// Computes the signs and the logarithms of the absolute values of determinants.
    ///
    /// Args:
    ///     a (array): Matrices in the last two axes: float32, float64 or complex64.
    ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
    ///         else the default device.
    ///
    /// Returns:
    ///     tuple[array, array]: Signs (0 for a singular matrix) and logarithms (negative infinity
    ///         for a singular matrix), without the last two axes.
    ///
    /// Raises:
    ///     ValueError: If the matrices are not square, or of another dtype.
    ///
    /// Example:
    ///     >>> mx.linalg.slogdet(mx.array([[1.0, 0.0], [0.0, -1.0]]))
    ///     (array(-1, dtype=float32), array(0, dtype=float32))
    slogdet: Two = two;
    /// Factors matrices into triangular ones, with partial pivoting: `a = l[p, :] @ u`.
    ///
    /// Args:
    ///     a (array): Matrices in the last two axes: float32, float64 or complex64.
    ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
    ///         else the default device.
    ///
    /// Returns:
    ///     tuple[array, array, array]: The row permutation `p` (uint32), the lower triangle `l`
    ///         with ones on its diagonal, and the upper triangle `u`.
    ///
    /// Raises:
    ///     ValueError: If there are less than two dimensions, or the dtype is another.
    ///
    /// Example:
    ///     >>> p, l, u = mx.linalg.lu(mx.array([[0.0, 1.0], [2.0, 3.0]]))
    ///     >>> p
    ///     array([1, 0], dtype=uint32)
    ///     >>> mx.take(l, p, axis=0) @ u
    ///     array([[0, 1],
    ///            [2, 3]], dtype=float32)
    lu: Three = three;
    /// Factors matrices as `lu`, with both triangles in one array.
    ///
    /// Args:
    ///     a (array): Matrices in the last two axes: float32, float64 or complex64.
    ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
    ///         else the default device.
    ///
    /// Returns:
    ///     tuple[array, array]: The triangles, without the ones on the diagonal of `l`; and the
    ///         pivots (uint32): row i was exchanged with row pivots[i].
    ///
    /// Raises:
    ///     ValueError: If there are less than two dimensions, or the dtype is another.
    ///
    /// Example:
    ///     >>> lu, pivots = mx.linalg.lu_factor(mx.array([[0.0, 1.0], [2.0, 3.0]]))
    ///     >>> pivots
    ///     array([1, 1], dtype=uint32)
    lu_factor: Two = two;
    /// Factors matrices into an orthonormal and an upper triangular one: `a = q @ r`, in reduced
    /// form.
    ///
    /// Args:
    ///     a (array): Matrices of the shape (..., m, n): float32, float64 or complex64.
    ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
    ///         else the default device.
    ///
    /// Returns:
    ///     tuple[array, array]: `q` of the shape (..., m, k) and `r` of the shape (..., k, n),
    ///         where k is the smaller of m and n.
    ///
    /// Raises:
    ///     ValueError: If there are less than two dimensions, or the dtype is another.
    ///
    /// Example:
    ///     >>> a = mx.array([[3.0, 1.0], [4.0, 2.0], [0.0, 5.0]])
    ///     >>> q, r = mx.linalg.qr(a)
    ///     >>> q.shape, r.shape
    ///     ((3, 2), (2, 2))
    ///     >>> mx.allclose(q @ r, a, atol=1e-5)
    ///     array(True, dtype=bool)
    qr: Two = two;
    /// Computes the eigenvalues and eigenvectors of square matrices.
    ///
    /// Args:
    ///     a (array): Matrices in the last two axes: float32, float64 or complex64.
    ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
    ///         else the default device.
    ///
    /// Returns:
    ///     tuple[array, array]: Eigenvalues in no particular order, and eigenvectors of norm 1 in
    ///         columns; both complex64.
    ///
    /// Raises:
    ///     ValueError: If the matrices are not square, or of another dtype.
    ///
    /// Example:
    ///     >>> values, vectors = mx.linalg.eig(mx.array([[2.0, 0.0], [0.0, 2.0]]))
    ///     >>> values
    ///     array([2+0j, 2+0j], dtype=complex64)
    eig: Two = two;
    /// Computes the eigenvalues of square matrices.
    ///
    /// Args:
    ///     a (array): Matrices in the last two axes: float32, float64 or complex64.
    ///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
    ///         else the default device.
    ///
    /// Returns:
    ///     array: Eigenvalues in no particular order; complex64.
    ///
    /// Raises:
    ///     ValueError: If the matrices are not square, or of another dtype.
    ///
    /// Example:
    ///     >>> mx.linalg.eigvals(mx.array([[2.0, 0.0], [0.0, 2.0]]))
    ///     array([2+0j, 2+0j], dtype=complex64)
    eigvals: PyArray = one;
}

/// Computes the triangular factors of symmetric (Hermitian) positive definite matrices: `a = l
/// @ l.T`.
///
/// Args:
///     a (array): Matrices in the last two axes: float32, float64 or complex64.
///     upper (bool): Returns the upper factors `u`, with `a = u.T @ u`.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Factors, in shape and dtype of `a`; those of other matrices have NaN.
///
/// Raises:
///     ValueError: If the matrices are not square, or of another dtype.
///
/// Example:
///     >>> mx.linalg.cholesky(mx.array([[4.0, 2.0], [2.0, 5.0]]), stream=mx.cpu)
///     array([[2, 0],
///            [1, 2]], dtype=float32)
#[pyfunction]
#[pyo3(signature = (a, upper=false, *, stream=None))]
fn cholesky(a: ArrayArg, upper: bool, stream: Option<StreamArg>) -> Res<PyArray> {
    one(stream, || linalg::cholesky(&a.0, upper))
}

/// Computes the inverses of positive definite matrices, given their Cholesky factors.
///
/// Args:
///     a (array): Factors, as `cholesky` returns them.
///     upper (bool): Takes the factors for upper ones.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Inverses of the matrices whose factors are given.
///
/// Raises:
///     ValueError: If the matrices are not square, or of another dtype.
///
/// Example:
///     >>> l = mx.linalg.cholesky(mx.array([[4.0, 0.0], [0.0, 16.0]]))
///     >>> mx.linalg.cholesky_inv(l)
///     array([[0.25, 0],
///            [0, 0.0625]], dtype=float32)
#[pyfunction]
#[pyo3(signature = (a, upper=false, *, stream=None))]
fn cholesky_inv(a: ArrayArg, upper: bool, stream: Option<StreamArg>) -> Res<PyArray> {
    one(stream, || linalg::cholesky_inv(&a.0, upper))
}

/// Computes the inverses of triangular matrices.
///
/// Args:
///     a (array): Matrices in the last two axes, of which only a triangle is read.
///     upper (bool): Reads the upper triangle instead of the lower one.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Inverses, in shape and dtype of `a`.
///
/// Raises:
///     ValueError: If the matrices are not square, or of another dtype.
///
/// Example:
///     >>> mx.linalg.tri_inv(mx.array([[2.0, 0.0], [0.0, 4.0]]))
///     array([[0.5, 0],
///            [0, 0.25]], dtype=float32)
#[pyfunction]
#[pyo3(signature = (a, upper=false, *, stream=None))]
fn tri_inv(a: ArrayArg, upper: bool, stream: Option<StreamArg>) -> Res<PyArray> {
    one(stream, || linalg::tri_inv(&a.0, upper))
}

/// Reads `UPLO`: true for the upper triangle.
fn is_upper(uplo: &str) -> Res<bool> {
    match uplo {
        "L" | "l" => Ok(false),
        "U" | "u" => Ok(true),
        _ => Err(value(format!(
            "[linalg::eigh] UPLO must be 'L' or 'U', not '{uplo}'. Pass one of these."
        ))),
    }
}

/// Computes the eigenvalues and eigenvectors of symmetric (Hermitian) matrices.
///
/// Args:
///     a (array): Matrices in the last two axes: float32, float64 or complex64.
///     UPLO (Literal["L", "U", "l", "u"]): Triangle that is read: "L" for the lower, "U" for
///         the upper one.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     tuple[array, array]: Eigenvalues, which are real and ascend, and orthonormal
///         eigenvectors in columns.
///
/// Raises:
///     ValueError: If the matrices are not square or of another dtype, or `UPLO` is another
///         letter.
///
/// Example:
///     >>> mx.linalg.eigh(mx.array([[2.0, 0.0], [0.0, 3.0]]), stream=mx.cpu)[0]
///     array([2, 3], dtype=float32)
#[pyfunction]
#[pyo3(signature = (a, UPLO="L", *, stream=None))]
#[allow(non_snake_case)]
fn eigh(a: ArrayArg, UPLO: &str, stream: Option<StreamArg>) -> Res<Two> {
    let upper = is_upper(UPLO)?;
    two(stream, || linalg::eigh(&a.0, upper))
}

/// Computes the eigenvalues of symmetric (Hermitian) matrices.
///
/// Args:
///     a (array): Matrices in the last two axes: float32, float64 or complex64.
///     UPLO (Literal["L", "U", "l", "u"]): Triangle that is read: "L" for the lower, "U" for
///         the upper one.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Eigenvalues, which are real and ascend.
///
/// Raises:
///     ValueError: If the matrices are not square or of another dtype, or `UPLO` is another
///         letter.
///
/// Example:
///     >>> mx.linalg.eigvalsh(mx.array([[2.0, 0.0], [0.0, 3.0]]), stream=mx.cpu)
///     array([2, 3], dtype=float32)
#[pyfunction]
#[pyo3(signature = (a, UPLO="L", *, stream=None))]
#[allow(non_snake_case)]
fn eigvalsh(a: ArrayArg, UPLO: &str, stream: Option<StreamArg>) -> Res<PyArray> {
    let upper = is_upper(UPLO)?;
    one(stream, || linalg::eigvalsh(&a.0, upper))
}

/// Computes the full singular value decomposition: `a = u[..., :k] * s @ vt[..., :k, :]`.
///
/// Args:
///     a (array): Matrices of the shape (..., m, n): float32, float64 or complex64. k is the
///         smaller of m and n.
///     compute_uv (bool): Computes the vectors, too.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     Any: The tuple (u, s, vt) of shapes (..., m, m), (..., k) and (..., n, n); or, without
///         `compute_uv`, the array s alone. Singular values are real and descend.
///
/// Raises:
///     ValueError: If there are less than two dimensions, or the dtype is another.
///
/// Example:
///     >>> mx.linalg.svd(mx.array([[3.0, 0.0], [0.0, 2.0]]), compute_uv=False, stream=mx.cpu)
///     array([3, 2], dtype=float32)
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

/// The order of a norm that `ord` names.
fn order(ord: &Bound<'_, PyAny>) -> Res<NormOrder> {
    if let Ok(name) = ord.extract::<String>() {
        return match &name[..] {
            "f" | "fro" => Ok(NormOrder::Frobenius),
            "nuc" => Ok(NormOrder::Nuclear),
            _ => Err(value(format!(
                "[linalg::norm] Invalid ord value '{name}' for matrix norm. Use 'fro', 'nuc' or a number."
            ))),
        };
    }
    match ord.extract::<f64>() {
        Ok(p) if !ord.is_instance_of::<PyComplex>() => Ok(NormOrder::Number(p)),
        _ => Err(type_("norm: ord must be a number or a string")),
    }
}

/// Computes norms of vectors along one axis, or of matrices along two.
///
/// `ord` is None for the root of the sum of squares. Vectors have 1, 2, inf, -inf and any other
/// number p; matrices have 1, -1, 2, -2, inf, -inf, "fro" (Frobenius) and "nuc" (nuclear).
///
/// Args:
///     a (array): Array of any shape.
///     ord (int | float | str | None): Order of the norm.
///     axis (int | Sequence[int] | None): One axis for vectors, two for matrices; by default
///         the whole array: flattened, if `ord` is None.
///     keepdims (bool): Keeps the axes, with size 1.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Norms; float32 for integers, bools and complex numbers.
///
/// Raises:
///     IndexError: If an axis is out of range.
///     ValueError: If there are more than two axes, or vectors or matrices have no such order.
///
/// Example:
///     >>> mx.linalg.norm(mx.array([3.0, 4.0]))
///     array(5, dtype=float32)
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
    one(stream, || linalg::norm(&a.0, ord, Reduced::new(axes, keepdims)))
}

/// Computes the cross products of vectors along an axis.
///
/// Args:
///     a (array): Array with 3 or 2 elements along the axis; of 2, the third counts as zero.
///     b (array): Array like `a`; other axes are broadcast.
///     axis (int): Axis of the vectors.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Products, with 3 elements along the axis.
///
/// Raises:
///     IndexError: If the axis is out of range.
///     ValueError: If the axis has another size, or the shapes cannot be broadcast.
///
/// Example:
///     >>> mx.linalg.cross(mx.array([1.0, 0.0, 0.0]), mx.array([0.0, 1.0, 0.0]))
///     array([0, 0, 1], dtype=float32)
#[pyfunction]
#[pyo3(signature = (a, b, axis=-1, *, stream=None),
    text_signature = "(a, b, axis=-1, *, stream=None)")]
fn cross(a: ArrayArg, b: ArrayArg, axis: isize, stream: Option<StreamArg>) -> Res<PyArray> {
    one(stream, || linalg::cross(&a.0, &b.0, axis))
}

/// Solves the linear equations `a @ x = b`.
///
/// Args:
///     a (array): Square matrices in the last two axes: float32, float64 or complex64.
///     b (array): Right sides: a vector, or matrices in the last two axes.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Solutions `x`, in the shape of `b`, with its leading axes broadcast.
///
/// Raises:
///     ValueError: If the matrices are not square, the shapes do not fit, or the dtype is
///         another.
///     RuntimeError: When the result is evaluated, if a matrix is singular.
///
/// Example:
///     >>> mx.linalg.solve(mx.array([[2.0, 0.0], [0.0, 4.0]]), mx.array([2.0, 4.0]))
///     array([1, 1], dtype=float32)
#[pyfunction]
#[pyo3(signature = (a, b, *, stream=None))]
fn solve(a: ArrayArg, b: ArrayArg, stream: Option<StreamArg>) -> Res<PyArray> {
    one(stream, || linalg::solve(&a.0, &b.0))
}

/// Solves the linear equations `a @ x = b` for triangular matrices.
///
/// Args:
///     a (array): Square matrices in the last two axes, of which only a triangle is read.
///     b (array): Right sides: a vector, or matrices in the last two axes.
///     upper (bool): Reads the upper triangle instead of the lower one.
///     stream (StreamOrDevice): Stream or device to run on; by default the inputs' accelerator,
///         else the default device.
///
/// Returns:
///     array: Solutions `x`, in the shape of `b`, with its leading axes broadcast.
///
/// Raises:
///     ValueError: If the matrices are not square, the shapes do not fit, or the dtype is
///         another.
///
/// Example:
///     >>> mx.linalg.solve_triangular(mx.array([[2.0, 0.0], [1.0, 1.0]]), mx.array([2.0, 3.0]))
///     array([1, 2], dtype=float32)
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
